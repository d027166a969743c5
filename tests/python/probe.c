/* SPDX-License-Identifier: MIT */
/*
 * An evaluator of somebody else's, to stand below tickmap's: it counts by whom
 * it is called. Each trampoline calls it from an address of its own, so the
 * counts say how often each function ran through its trampoline.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>

#if PY_VERSION_HEX < 0x030B0000
typedef PyFrameObject frame_type;
#else
typedef struct _PyInterpreterFrame frame_type;
#endif

enum { PLACES = 1 << 14 };

static struct {
	uintptr_t caller;
	unsigned long count;
} places[PLACES];
static int counting;
static _PyFrameEvalFunction below;

static __attribute__((noinline)) void count(uintptr_t caller)
{
	for (uintptr_t i = caller * 0x9e3779b1u;; i++) {
		if (places[i % PLACES].caller == 0)
			places[i % PLACES].caller = caller;
		if (places[i % PLACES].caller == caller) {
			places[i % PLACES].count++;
			return;
		}
	}
}

static PyObject *evaluate(PyThreadState *tstate, frame_type *frame, int throw)
{
	if (counting)
		count((uintptr_t)__builtin_return_address(0));
	return below(tstate, frame, throw);
}

static PyObject *install(PyObject *self, PyObject *unused)
{
	PyInterpreterState *interp = PyThreadState_Get()->interp;

	below = _PyInterpreterState_GetEvalFrameFunc(interp);
	_PyInterpreterState_SetEvalFrameFunc(interp, evaluate);
	Py_RETURN_NONE;
}

static PyObject *remove_(PyObject *self, PyObject *unused)
{
	_PyInterpreterState_SetEvalFrameFunc(PyThreadState_Get()->interp,
					     below);
	Py_RETURN_NONE;
}

static PyObject *is_installed(PyObject *self, PyObject *unused)
{
	return PyBool_FromLong(_PyInterpreterState_GetEvalFrameFunc(
				       PyThreadState_Get()->interp) ==
			       evaluate);
}

static PyObject *start(PyObject *self, PyObject *unused)
{
	memset(places, 0, sizeof(places));
	counting = 1;
	Py_RETURN_NONE;
}

/* [(caller, count), ...] since start. */
static PyObject *stop(PyObject *self, PyObject *unused)
{
	counting = 0;
	PyObject *list = PyList_New(0);

	for (int i = 0; list && i < PLACES; i++) {
		if (!places[i].caller)
			continue;
		PyObject *pair = Py_BuildValue(
			"Kk", (unsigned long long)places[i].caller,
			places[i].count);
		if (!pair || PyList_Append(list, pair) < 0)
			Py_CLEAR(list);
		Py_XDECREF(pair);
	}
	return list;
}

/* Return addresses by frame pointers alone, innermost first. */
static PyObject *chain(PyObject *self, PyObject *unused)
{
	uintptr_t *frame = __builtin_frame_address(0);
	PyObject *list = PyList_New(0);

	for (int i = 0; list && i < 200 && frame[0] > (uintptr_t)frame; i++) {
		PyObject *address = PyLong_FromUnsignedLongLong(frame[1]);

		if (!address || PyList_Append(list, address) < 0)
			Py_CLEAR(list);
		Py_XDECREF(address);
		frame = (uintptr_t *)frame[0];
	}
	return list;
}

static PyMethodDef methods[] = {
	{ "chain", chain, METH_NOARGS, NULL },
	{ "install", install, METH_NOARGS, NULL },
	{ "remove", remove_, METH_NOARGS, NULL },
	{ "is_installed", is_installed, METH_NOARGS, NULL },
	{ "start", start, METH_NOARGS, NULL },
	{ "stop", stop, METH_NOARGS, NULL },
	{ NULL, NULL, 0, NULL },
};

static struct PyModuleDef definition = {
	PyModuleDef_HEAD_INIT,
	"probe",
	NULL,
	-1,
	methods,
	NULL,
	NULL,
	NULL,
	NULL,
};

PyMODINIT_FUNC PyInit_probe(void)
{
	return PyModule_Create(&definition);
}

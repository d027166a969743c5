/* SPDX-License-Identifier: MIT */
#include "calibrate.h"

/*
 * All of these words exist: the shortest frame header has nine words, and the
 * probed function has four arguments and an operand stack behind it.
 */
enum { PROBED_WORDS = 13 };

static struct {
	PyObject *code, *function, *first, *second;
	_PyFrameEvalFunction evaluator;
	struct tickmap_frame_layout layout;
} probing;

static PyObject *probe(PyThreadState *tstate, tickmap_frame *frame,
		       int throwflag)
{
	struct tickmap_frame_layout found = { -1, -1, -1 };

	for (int i = 0; i < PROBED_WORDS; i++) {
		PyObject *object = tickmap_frame_object(frame, i);

		if (object == probing.code && found.code < 0)
			found.code = i;
		if (object == probing.function && found.function < 0)
			found.function = i;
		if (object == probing.first && found.arguments < 0 &&
		    i + 1 < PROBED_WORDS &&
		    tickmap_frame_object(frame, i + 1) == probing.second)
			found.arguments = i;
	}
	/* Other threads' calls come here as well. */
	if (found.code >= 0)
		probing.layout = found;
	return probing.evaluator(tstate, frame, throwflag);
}

static PyObject *function_new(void)
{
	PyObject *expression = Py_CompileString("lambda a, b, c, d: None",
						"<tickmap>", Py_eval_input);

	if (!expression)
		return NULL;
	PyObject *globals = PyDict_New();
	PyObject *function =
		globals ? PyEval_EvalCode(expression, globals, globals) : NULL;
	Py_XDECREF(globals);
	Py_DECREF(expression);
	return function;
}

int tickmap_calibrate(PyInterpreterState *interp,
		      struct tickmap_frame_layout *ret_layout)
{
	PyObject *function = function_new();
	PyObject *first = PyList_New(0);
	PyObject *second = PyList_New(0);
	PyObject *result = NULL;

	if (function && first && second) {
		probing.code = PyFunction_GetCode(function);
		probing.function = function;
		probing.first = first;
		probing.second = second;
		probing.layout = (struct tickmap_frame_layout) { -1, -1, -1 };
		probing.evaluator =
			_PyInterpreterState_GetEvalFrameFunc(interp);
		_PyInterpreterState_SetEvalFrameFunc(interp, probe);
		result = PyObject_CallFunctionObjArgs(function, first, second,
						      Py_None, Py_None, NULL);
		_PyInterpreterState_SetEvalFrameFunc(interp, probing.evaluator);
	}
	Py_XDECREF(function);
	Py_XDECREF(first);
	Py_XDECREF(second);
	if (!result)
		return -1;
	Py_DECREF(result);
	*ret_layout = probing.layout;
	if (ret_layout->code < 0) {
		PyErr_SetString(PyExc_RuntimeError,
				"this interpreter's frames have no code "
				"object that tickmap can find");
		return -1;
	}
	return 0;
}

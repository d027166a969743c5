/* SPDX-License-Identifier: MIT */
#include "native.h"

#include "compat.h"
#include "hook.h"

#if PY_VERSION_HEX >= 0x030C0000 && PY_VERSION_HEX < 0x030F0000

/* What sys had there; of the interpreter that lives now. */
static PyObject *original_activate, *original_deactivate;

static PyObject *activate(PyObject *sys, PyObject *backend)
{
	int aside = tickmap_hook_step_aside();
	PyObject *result = PyObject_CallOneArg(original_activate, backend);

	(void)sys;
	if (!result && aside) {
		SET_EXCEPTION_ASIDE(pending);
		tickmap_hook_come_back();
		PUT_EXCEPTION_BACK(pending);
	}
	return result;
}

static PyObject *deactivate(PyObject *sys, PyObject *unused)
{
	PyObject *result = PyObject_CallNoArgs(original_deactivate);

	(void)sys;
	(void)unused;
	if (result)
		tickmap_hook_come_back();
	return result;
}

static PyMethodDef activate_method = { "activate_stack_trampoline", activate,
				       METH_O, NULL };
static PyMethodDef deactivate_method = { "deactivate_stack_trampoline",
					 deactivate, METH_NOARGS, NULL };

/* The new function is of sys as well, and has the old one's text. */
static void stand_before(PyMethodDef *method, PyObject **ret_original)
{
	/* Borrowed; absent where the program has deleted it. */
	PyObject *original = PySys_GetObject(method->ml_name);

	if (!original || !PyCFunction_Check(original) ||
	    PyCFunction_GetFunction(original) == method->ml_meth)
		return;
	PyCFunctionObject *theirs = (PyCFunctionObject *)original;
	method->ml_doc = theirs->m_ml->ml_doc;
	PyObject *ours =
		PyCFunction_NewEx(method, theirs->m_self, theirs->m_module);
	if (ours) {
		Py_INCREF(original); /* for ever: other threads may be in it */
		*ret_original = original;
	}
	if (!ours || PySys_SetObject(method->ml_name, ours) < 0)
		PyErr_Clear();
	Py_XDECREF(ours);
}

void tickmap_native_watch(void)
{
	stand_before(&activate_method, &original_activate);
	stand_before(&deactivate_method, &original_deactivate);
}

#else

void tickmap_native_watch(void)
{
}

#endif

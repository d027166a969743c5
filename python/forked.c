/* SPDX-License-Identifier: MIT */
#include "forked.h"

#include "compat.h"

#include <pthread.h>
#include <stdlib.h>

#include "functions.h"
#include "guard.h"
#include "hook.h"
#include "switching.h"

static int is_followed, first_call;

/* The thread that forked is the only one here. */
static void in_child(void)
{
	tickmap_switching_forked();
	tickmap_hook_forked();
	if (is_followed)
		return;
	first_call = 1;
	/* Its next call goes the uncommon way, which finds the span anew. */
	tickmap_stack.span = 0;
}

int tickmap_forked_watch(void)
{
	static int watching;

	if (watching)
		return 0;
	is_followed = getenv("TICKMAP_FOLLOWED") != NULL;
	int error = pthread_atfork(NULL, NULL, in_child);
	watching = error == 0;
	return error;
}

void tickmap_forked_call(void)
{
	if (__atomic_load_n(&first_call, __ATOMIC_RELAXED) &&
	    __atomic_exchange_n(&first_call, 0, __ATOMIC_RELAXED))
		tickmap_functions_publish_again();
}

#ifdef Py_GIL_DISABLED
static PyObject *before(PyObject *self, PyObject *unused)
{
	(void)self;
	(void)unused;
	tickmap_changing_begin();
	Py_RETURN_NONE;
}

static PyObject *after_in_parent(PyObject *self, PyObject *unused)
{
	(void)self;
	(void)unused;
	tickmap_changing_end();
	Py_RETURN_NONE;
}
#endif

static PyObject *after_in_child(PyObject *self, PyObject *unused)
{
	(void)self;
	(void)unused;
	tickmap_changing_end();
	tickmap_hook_in_child();
	Py_RETURN_NONE;
}

/* As os.register_at_fork takes them. */
static PyMethodDef callbacks[] = {
#ifdef Py_GIL_DISABLED
	{ "before", before, METH_NOARGS, NULL },
	{ "after_in_parent", after_in_parent, METH_NOARGS, NULL },
#endif
	{ "after_in_child", after_in_child, METH_NOARGS, NULL },
	{ NULL, NULL, 0, NULL },
};

/* A new dict of the callbacks, or NULL. */
static PyObject *named_callbacks(void)
{
	PyObject *named = PyDict_New();

	for (PyMethodDef *method = callbacks; named && method->ml_name;
	     method++) {
		PyObject *callback = PyCFunction_New(method, NULL);
		if (!callback ||
		    PyDict_SetItemString(named, method->ml_name, callback) < 0)
			Py_CLEAR(named);
		Py_XDECREF(callback);
	}
	return named;
}

int tickmap_forked_watch_interpreter(void)
{
	PyObject *posix = PyImport_ImportModule("posix");
	PyObject *method =
		posix ? PyObject_GetAttrString(posix, "register_at_fork")
		      : NULL;
	PyObject *named = method ? named_callbacks() : NULL;
	PyObject *none = named ? PyTuple_New(0) : NULL;
	PyObject *result = none ? PyObject_Call(method, none, named) : NULL;

	Py_XDECREF(posix);
	Py_XDECREF(method);
	Py_XDECREF(named);
	Py_XDECREF(none);
	Py_XDECREF(result);
	return result ? 0 : -1;
}

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

static PyObject *after_fork(PyObject *self, PyObject *unused)
{
	(void)self;
	(void)unused;
	tickmap_hook_in_child();
	Py_RETURN_NONE;
}

static PyMethodDef after_fork_method = { "tickmap_after_fork", after_fork,
					 METH_NOARGS, NULL };

int tickmap_forked_watch_interpreter(void)
{
	PyObject *posix = PyImport_ImportModule("posix");
	PyObject *method =
		posix ? PyObject_GetAttrString(posix, "register_at_fork")
		      : NULL;
	PyObject *callback =
		method ? PyCFunction_New(&after_fork_method, NULL) : NULL;
	PyObject *none = callback ? PyTuple_New(0) : NULL;
	PyObject *named =
		none ? Py_BuildValue("{sO}", "after_in_child", callback) : NULL;
	PyObject *result = named ? PyObject_Call(method, none, named) : NULL;

	Py_XDECREF(posix);
	Py_XDECREF(method);
	Py_XDECREF(callback);
	Py_XDECREF(none);
	Py_XDECREF(named);
	Py_XDECREF(result);
	return result ? 0 : -1;
}

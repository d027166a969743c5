/* SPDX-License-Identifier: MIT */
/*
 * The module: switches the hook on and off, and says how it goes. All state
 * belongs to the process, not to the module object.
 */
#include "compat.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "farewell.h"
#include "forked.h"
#include "functions.h"
#include "hook.h"
#include "publish.h"
#include "switching.h"

/* NULL: as before. 0 and an exception for anything else but the three. */
static int convert_format(PyObject *object, void *address)
{
	uint32_t *sinks = address;

	if (object == Py_None)
		return 1;
	if (!PyUnicode_Check(object)) {
		PyErr_Format(PyExc_TypeError, "format must be str, not %.200s",
			     Py_TYPE(object)->tp_name);
		return 0;
	}
	if (PyUnicode_CompareWithASCIIString(object, "jitdump") == 0)
		*sinks = TICKMAP_EMIT_JITDUMP;
	else if (PyUnicode_CompareWithASCIIString(object, "perfmap") == 0)
		*sinks = TICKMAP_EMIT_PERF_MAP;
	else if (PyUnicode_CompareWithASCIIString(object, "both") == 0)
		*sinks = TICKMAP_EMIT_JITDUMP | TICKMAP_EMIT_PERF_MAP;
	else
		PyErr_Format(PyExc_ValueError,
			     "format must be 'jitdump', 'perfmap' or 'both', "
			     "not %R",
			     object);
	return *sinks != 0;
}

/* None, or what os.fsencode takes. */
static int convert_directory(PyObject *object, void *address)
{
	if (object == Py_None)
		return 1;
	return PyUnicode_FSConverter(object, address);
}

static void raise_status(int status)
{
	char folder[PATH_MAX];

	int error = errno;
	tickmap_publish_folder(folder, sizeof(folder));
	if (status == TICKMAP_EMIT_E_NOMEM) {
		PyErr_NoMemory();
		return;
	}
	if (status == TICKMAP_EMIT_E_OS) {
		errno = error;
		PyErr_SetFromErrnoWithFilename(PyExc_OSError, folder);
		return;
	}
	if (status == TICKMAP_EMIT_E_EXISTS)
		error = EEXIST;
	else if (status == TICKMAP_EMIT_E_UNSAFE)
		error = EPERM;
	else if (status == TICKMAP_EMIT_E_ARGUMENT)
		error = ENAMETOOLONG;
	else {
		PyErr_Format(PyExc_RuntimeError,
			     "cannot publish code in %s: %s", folder,
			     tickmap_emit_strerror(status));
		return;
	}
	PyObject *arguments =
		Py_BuildValue("isN", error, tickmap_emit_strerror(status),
			      PyUnicode_DecodeFSDefault(folder));
	if (!arguments)
		return;
	/* Called, OSError picks the subclass that belongs to the errno. */
	PyObject *exception = PyObject_CallObject(PyExc_OSError, arguments);
	Py_DECREF(arguments);
	if (!exception)
		return;
	PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
	Py_DECREF(exception);
}

/*
 * CPython's own trampolines, from 3.12 on: under both, each function would be
 * published twice, at two addresses. -1 with an exception set.
 */
static int own_trampolines_are_active(void)
{
	PyObject *question = PySys_GetObject("is_stack_trampoline_active");

	if (!question)
		return 0;
	PyObject *answer = PyObject_CallObject(question, NULL);
	if (!answer)
		return -1;
	int active = PyObject_IsTrue(answer);
	Py_DECREF(answer);
	if (active > 0) {
		PyErr_SetString(PyExc_RuntimeError,
				"the interpreter's own trampolines are active "
				"and publish already; "
				"sys.deactivate_stack_trampoline() "
				"switches them off");
		return -1;
	}
	return active;
}

/*
 * Several copies of the extension may be within reach (a recorder's, a virtual
 * environment's); the first one that an interpreter activates is the one that
 * works. Borrowed; NULL, perhaps with an exception: none yet.
 */
static PyObject *working_module(void)
{
	PyObject *dict =
		PyInterpreterState_GetDict(PyThreadState_Get()->interp);

	return dict ? PyDict_GetItemString(dict, "tickmap") : NULL;
}

static int remember(PyObject *module)
{
	PyObject *dict =
		PyInterpreterState_GetDict(PyThreadState_Get()->interp);

	return dict ? PyDict_SetItemString(dict, "tickmap", module) : 0;
}

static PyObject *call_other(PyObject *other, const char *name, PyObject *args,
			    PyObject *keywords)
{
	PyObject *method = PyObject_GetAttrString(other, name);

	if (!method)
		return NULL;
	PyObject *result = PyObject_Call(method, args, keywords);
	Py_DECREF(method);
	return result;
}

static void publish_and_install(const struct tickmap_publish_request *request)
{
	int anew;

	tickmap_switching_begin();
	int status = tickmap_publish_open(request, &anew);
	if (status != TICKMAP_EMIT_OK)
		raise_status(status);
	else if ((errno = tickmap_forked_watch()) != 0)
		raise_status(TICKMAP_EMIT_E_OS);
	else if (tickmap_hook_install() > 0 && anew)
		tickmap_functions_publish_again();
	tickmap_switching_end();
}

PyDoc_STRVAR(
	activate_doc,
	"activate($module, /, format=None, directory=None, "
	"keep_existing=False)\n--\n\n"
	"Give each Python function called from now on a native frame of its\n"
	"own, and publish its name.\n\n"
	"format is 'jitdump' (DIRECTORY/jit-PID.dump), 'perfmap'\n"
	"(DIRECTORY/perf-PID.map) or 'both'. What is None is as it was at the\n"
	"last time; at first, a jitdump in the folder that the environment\n"
	"variable TICKMAP_DIR names, else in /tmp, where perf looks. Other\n"
	"files than at the last time begin with all that was published\n"
	"before. keep_existing: replace no file that is there.\n\n"
	"Returns True; False in a subinterpreter, which stays as it is. While\n"
	"active, another call only checks its arguments.\n\n"
	"TypeError, ValueError: arguments that make no sense. OSError: the\n"
	"folder or a file in it, with errno and path. RuntimeError: the\n"
	"interpreter's own trampolines are active, or this interpreter's\n"
	"frames are not as expected. After any of them it is not active.\n\n"
	"It holds for all threads, which may call this at any time.");

static PyObject *activate(PyObject *module, PyObject *args, PyObject *keywords)
{
	static char name1[] = "format", name2[] = "directory",
		    name3[] = "keep_existing";
	char *names[] = { name1, name2, name3, NULL };
	struct tickmap_publish_request request = { 0 };
	PyObject *directory = NULL;
	int keep_existing = 0;

	PyObject *other = working_module();
	if (other && other != module)
		return call_other(other, "activate", args, keywords);
	if (!PyArg_ParseTupleAndKeywords(args, keywords, "|O&O&p", names,
					 convert_format, &request.sinks,
					 convert_directory, &directory,
					 &keep_existing)) {
		Py_XDECREF(directory);
		return NULL;
	}
	if (keep_existing)
		request.flags = TICKMAP_EMIT_KEEP_EXISTING;
	if (directory)
		request.dir = PyBytes_AS_STRING(directory);
	if (PyThreadState_Get()->interp == PyInterpreterState_Main() &&
	    !tickmap_hook_is_active() && own_trampolines_are_active() == 0 &&
	    remember(module) == 0)
		publish_and_install(&request);
	Py_XDECREF(directory);
	if (PyErr_Occurred())
		return NULL;
	return PyBool_FromLong(tickmap_hook_is_active());
}

PyDoc_STRVAR(
	deactivate_doc,
	"deactivate($module, /)\n--\n\n"
	"Calls from now on, in all threads, get no frames. Harmless if it\n"
	"is not active. Files and what they say stay.");

static PyObject *deactivate(PyObject *module, PyObject *unused)
{
	(void)module;
	(void)unused;
	tickmap_hook_remove();
	Py_RETURN_NONE;
}

PyDoc_STRVAR(is_active_doc, "is_active($module, /)\n--\n\n"
			    "Whether calls of this interpreter get frames.");

PyDoc_STRVAR(working_doc,
	     "working($module, /)\n--\n\n"
	     "The copy of this module that works in this interpreter.");

static PyObject *working(PyObject *module, PyObject *unused)
{
	PyObject *other = working_module();

	(void)unused;
	if (!other && PyErr_Occurred())
		return NULL;
	if (!other)
		other = module;
	Py_INCREF(other);
	return other;
}

static PyObject *is_active(PyObject *module, PyObject *unused)
{
	(void)module;
	(void)unused;
	return PyBool_FromLong(tickmap_hook_is_active());
}

static PyObject *path_or_none(uint32_t sink)
{
	char path[4096];

	tickmap_publish_lock();
	const char *borrowed = tickmap_publish_path(sink);
	int known = borrowed && strlen(borrowed) < sizeof(path);
	if (known)
		strcpy(path, borrowed);
	tickmap_publish_unlock();
	if (!known)
		Py_RETURN_NONE;
	return PyUnicode_DecodeFSDefault(path);
}

static PyObject *error_or_none(void)
{
	int error;

	tickmap_publish_lock();
	int result = tickmap_publish_status(&error);
	tickmap_publish_unlock();
	if (result == TICKMAP_EMIT_OK)
		Py_RETURN_NONE;
	if (result == TICKMAP_EMIT_E_OS && error != 0)
		return PyUnicode_FromFormat("%s: %s",
					    tickmap_emit_strerror(result),
					    strerror(error));
	return PyUnicode_FromString(tickmap_emit_strerror(result));
}

PyDoc_STRVAR(status_doc,
	     "status($module, /)\n--\n\n"
	     "A dict: active; functions: how many have a trampoline; jitdump,\n"
	     "perfmap: paths or None; error: why publishing stopped, or None.");

static PyObject *status(PyObject *module, PyObject *unused)
{
	(void)module;
	(void)unused;
	return Py_BuildValue("{sNsnsNsNsN}", "active",
			     PyBool_FromLong(tickmap_hook_is_active()),
			     "functions", (Py_ssize_t)tickmap_function_count(),
			     "jitdump", path_or_none(TICKMAP_EMIT_JITDUMP),
			     "perfmap", path_or_none(TICKMAP_EMIT_PERF_MAP),
			     "error", error_or_none());
}

PyDoc_STRVAR(tell_at_exit_doc,
	     "tell_at_exit($module, /)\n--\n\n"
	     "If publishing fails, say so on stderr when this process ends.");

static PyObject *tell_at_exit(PyObject *module, PyObject *unused)
{
	(void)module;
	(void)unused;
	tickmap_farewell_wanted();
	Py_RETURN_NONE;
}

/* By way of void *: the keyword form has another type than its slot. */
static PyMethodDef methods[] = {
	{ "activate", (PyCFunction)(void *)activate,
	  METH_VARARGS | METH_KEYWORDS, activate_doc },
	{ "deactivate", deactivate, METH_NOARGS, deactivate_doc },
	{ "is_active", is_active, METH_NOARGS, is_active_doc },
	{ "status", status, METH_NOARGS, status_doc },
	{ "tell_at_exit", tell_at_exit, METH_NOARGS, tell_at_exit_doc },
	{ "working", working, METH_NOARGS, working_doc },
	{ NULL, NULL, 0, NULL },
};

/* Importable everywhere; outside the main interpreter it is inert. */
static PyModuleDef_Slot slots[] = {
#if PY_VERSION_HEX >= 0x030C0000
	{ Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED },
#endif
#if PY_VERSION_HEX >= 0x030D0000
	{ Py_mod_gil, Py_MOD_GIL_NOT_USED },
#endif
	{ 0, NULL },
};

static struct PyModuleDef definition = {
	.m_base = PyModuleDef_HEAD_INIT,
	.m_name = "_tickmap",
	.m_doc = "Native frames for Python functions; see the package tickmap.",
	.m_methods = methods,
	.m_slots = slots,
};

PyMODINIT_FUNC PyInit__tickmap(void);

PyMODINIT_FUNC PyInit__tickmap(void)
{
	return PyModuleDef_Init(&definition);
}

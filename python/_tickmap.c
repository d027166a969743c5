/* SPDX-License-Identifier: MIT */
/*
 * The module: switches the hook on and off, and says how it goes. All state
 * belongs to the process, not to the module object.
 */
#include "compat.h"

#include <errno.h>
#include <string.h>

#include "functions.h"
#include "hook.h"
#include "publish.h"

/* "jitdump", "perfmap" or "both"; 0 and an exception for anything else. */
static uint32_t sinks_of(const char *format)
{
	if (strcmp(format, "jitdump") == 0)
		return TICKMAP_EMIT_JITDUMP;
	if (strcmp(format, "perfmap") == 0)
		return TICKMAP_EMIT_PERF_MAP;
	if (strcmp(format, "both") == 0)
		return TICKMAP_EMIT_JITDUMP | TICKMAP_EMIT_PERF_MAP;
	PyErr_Format(PyExc_ValueError,
		     "format must be 'jitdump', 'perfmap' or 'both', not '%s'",
		     format);
	return 0;
}

/* None, or what os.fsencode takes. */
static int convert_directory(PyObject *object, void *address)
{
	if (object == Py_None)
		return 1;
	return PyUnicode_FSConverter(object, address);
}

static PyObject *raise_status(int status, const char *directory)
{
	if (status == TICKMAP_EMIT_E_OS)
		return PyErr_SetFromErrnoWithFilename(
			PyExc_OSError, directory ? directory : "/tmp");
	PyErr_SetString(PyExc_OSError, tickmap_emit_strerror(status));
	return NULL;
}

PyDoc_STRVAR(
	activate_doc,
	"activate($module, /, format='jitdump', directory=None, "
	"keep_existing=False)\n--\n\n"
	"Give each Python function called from now on a native frame of its\n"
	"own, and publish its name.\n\n"
	"Returns True, or False in a subinterpreter. Does nothing if it is\n"
	"active; the files are opened by the first call, later ones cannot\n"
	"change format and directory.");

static PyObject *activate(PyObject *module, PyObject *args, PyObject *keywords)
{
	static char name1[] = "format", name2[] = "directory",
		    name3[] = "keep_existing";
	char *names[] = { name1, name2, name3, NULL };
	const char *format = "jitdump";
	PyObject *directory = NULL;
	int keep_existing = 0;

	(void)module;
	if (!PyArg_ParseTupleAndKeywords(args, keywords, "|sO&p", names,
					 &format, convert_directory, &directory,
					 &keep_existing))
		return NULL;
	uint32_t sinks = sinks_of(format);
	if (!sinks || PyThreadState_Get()->interp != PyInterpreterState_Main())
		goto out;
	const char *path = directory ? PyBytes_AS_STRING(directory) : NULL;
	int status = tickmap_publish_open(
		sinks, keep_existing ? TICKMAP_EMIT_KEEP_EXISTING : 0, path);
	if (status != TICKMAP_EMIT_OK)
		raise_status(status, path);
	else
		tickmap_hook_install();
out:
	Py_XDECREF(directory);
	if (PyErr_Occurred())
		return NULL;
	return PyBool_FromLong(tickmap_hook_is_active());
}

PyDoc_STRVAR(deactivate_doc,
	     "deactivate($module, /)\n--\n\n"
	     "Put the previous evaluator back. What was published stays.");

static PyObject *deactivate(PyObject *module, PyObject *unused)
{
	(void)module;
	(void)unused;
	tickmap_hook_remove();
	Py_RETURN_NONE;
}

PyDoc_STRVAR(is_active_doc, "is_active($module, /)\n--\n\n"
			    "Whether calls of this interpreter get frames.");

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

/* By way of void *: the keyword form has another type than its slot. */
static PyMethodDef methods[] = {
	{ "activate", (PyCFunction)(void *)activate,
	  METH_VARARGS | METH_KEYWORDS, activate_doc },
	{ "deactivate", deactivate, METH_NOARGS, deactivate_doc },
	{ "is_active", is_active, METH_NOARGS, is_active_doc },
	{ "status", status, METH_NOARGS, status_doc },
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

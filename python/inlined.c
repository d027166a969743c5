/* SPDX-License-Identifier: MIT */
#include "inlined.h"

#define IS_3_11 (TICKMAP_MINOR == 0x030B)
#define IS_3_13 TICKMAP_INLINES_INIT

#if IS_3_11 || IS_3_13

#if IS_3_13
#define METHOD "__init__"

static PyObject *allocate(PyTypeObject *type, Py_ssize_t items)
{
	return PyType_GenericAlloc(type, items);
}

static void keep_class(PyTypeObject *type)
{
	if (!PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) ||
	    type->tp_alloc != PyType_GenericAlloc)
		return;
	type->tp_alloc = allocate;
	/* Undo what was specialised before we came. */
	PyType_Modified(type);
}

void tickmap_inlined_call(const tickmap_frame *frame,
			  const struct tickmap_frame_layout *layout)
{
	if (layout->arguments < 0)
		return;
	PyObject *self = tickmap_frame_object(frame, layout->arguments);
	if (self)
		keep_class(Py_TYPE(self));
}

int tickmap_inlined_concerns(PyCodeObject *code)
{
	const int special = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR |
			    CO_VARARGS | CO_VARKEYWORDS;

	return code->co_argcount >= 1 && !(code->co_flags & special) &&
	       PyUnicode_CompareWithASCIIString(code->co_name, METHOD) == 0;
}

static int inlines(void)
{
	return 1;
}

static void sweep_class(PyTypeObject *type)
{
	if (type->tp_init != PyBaseObject_Type.tp_init)
		keep_class(type);
}
#else
#define METHOD "__getitem__"

/* Asked at run time: one build serves all of 3.11. */
static int inlines(void)
{
	return Py_Version < 0x030B0700;
}

/* The interpreter counts up from 1: these it never reaches. Its cache
 * compares 32 bits, so each function needs one of its own. */
static uint32_t next_version = UINT32_C(0xc0000000);

static void keep_function(PyObject *object)
{
	if (!object || !PyFunction_Check(object))
		return;
	PyFunctionObject *function = (PyFunctionObject *)object;
	if (function->func_version <= UINT16_MAX && next_version != UINT32_MAX)
		function->func_version = next_version++;
}

void tickmap_inlined_call(const tickmap_frame *frame,
			  const struct tickmap_frame_layout *layout)
{
	if (layout->function >= 0)
		keep_function(tickmap_frame_object(frame, layout->function));
}

int tickmap_inlined_concerns(PyCodeObject *code)
{
	return inlines() && code->co_argcount == 2 &&
	       PyUnicode_CompareWithASCIIString(code->co_name, METHOD) == 0;
}

static void sweep_class(PyTypeObject *type)
{
	if (PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) && type->tp_dict)
		keep_function(PyDict_GetItemString(type->tp_dict, METHOD));
}
#endif

/* Known by address: a metaclass may define what equal classes are. */
static int add(PyObject *classes, PyObject *seen, PyObject *class)
{
	PyObject *address = PyLong_FromVoidPtr(class);

	if (!address)
		return -1;
	int known = PySet_Contains(seen, address);
	if (known == 0 &&
	    (PySet_Add(seen, address) < 0 || PyList_Append(classes, class) < 0))
		known = -1;
	Py_DECREF(address);
	return known < 0 ? -1 : 0;
}

/* Breadth first, without recursion: `classes` grows while it is walked. */
static int sweep(PyObject *classes, PyObject *seen)
{
	for (Py_ssize_t i = 0; i < PyList_GET_SIZE(classes); i++) {
		PyObject *type = PyList_GET_ITEM(classes, i);

		if (!PyType_Check(type))
			continue;
		sweep_class((PyTypeObject *)type);
		PyObject *derived = PyObject_CallMethod(
			(PyObject *)&PyType_Type, "__subclasses__", "O", type);
		if (!derived)
			return -1;
		for (Py_ssize_t j = 0; j < PyList_GET_SIZE(derived); j++) {
			if (add(classes, seen, PyList_GET_ITEM(derived, j))) {
				Py_DECREF(derived);
				return -1;
			}
		}
		Py_DECREF(derived);
	}
	return 0;
}

void tickmap_inlined_sweep(void)
{
	if (!inlines())
		return;
	PyObject *classes = PyList_New(0);
	PyObject *seen = PySet_New(NULL);

	if (!classes || !seen ||
	    add(classes, seen, (PyObject *)&PyBaseObject_Type) < 0 ||
	    sweep(classes, seen) < 0)
		PyErr_Clear();
	Py_XDECREF(classes);
	Py_XDECREF(seen);
}

#else

int tickmap_inlined_concerns(PyCodeObject *code)
{
	(void)code;
	return 0;
}

void tickmap_inlined_call(const tickmap_frame *frame,
			  const struct tickmap_frame_layout *layout)
{
	(void)frame;
	(void)layout;
}

void tickmap_inlined_sweep(void)
{
}

#endif

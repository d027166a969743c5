/* SPDX-License-Identifier: MIT */
#include "inlined.h"

#include <stdint.h>

#include "deep.h"
#include "guard.h"

#define IS_3_11 (TICKMAP_MINOR == 0x030B)
#define IS_3_13 TICKMAP_INLINES_INIT

#if IS_3_11 || IS_3_13

/* What may be inlined for the time being: weak references to classes, or to
 * functions. */
static struct {
	PyObject **references;
	size_t count, capacity;
} let;

static int make_room(void)
{
	if (let.count < let.capacity)
		return 0;
	size_t more = let.capacity ? 2 * let.capacity : 16;
	PyObject **moved =
		PyMem_Realloc(let.references, more * sizeof(PyObject *));
	if (!moved)
		return -1;
	let.references = moved;
	let.capacity = more;
	return 0;
}

static int remember(PyObject *object)
{
	PyObject *reference = PyWeakref_NewRef(object, NULL);

	if (!reference) {
		PyErr_Clear();
		return -1;
	}
	if (make_room() < 0) {
		Py_DECREF(reference);
		return -1;
	}
	let.references[let.count++] = reference;
	return 0;
}

/* A new reference or NULL. */
static PyObject *referent(PyObject *reference)
{
	PyObject *object = NULL;

#if PY_VERSION_HEX >= 0x030D0000
	if (PyWeakref_GetRef(reference, &object) < 0)
		PyErr_Clear();
#else
	object = PyWeakref_GetObject(reference);
	object = object && object != Py_None ? Py_NewRef(object) : NULL;
#endif
	return object;
}

#if IS_3_13
#define METHOD "__init__"

/*
 * A class has a thousand versions, and each change of its allocator takes one.
 * So those that go deep again and again are let be inlined for good. They are
 * known by address: of one that has died, another may take it over.
 */
enum { MOST_CHANGES = 100, MOST_DEEP_CLASSES = 1024 };

static struct deep_class {
	const void *address;
	int changes;
} deep_classes[2 * MOST_DEEP_CLASSES];
static int deep_class_count;

static struct deep_class *deep_class_place(const void *address)
{
	size_t i = ((uintptr_t)address >> 4) % (2 * MOST_DEEP_CLASSES);

	while (deep_classes[i].address && deep_classes[i].address != address)
		i = (i + 1) % (2 * MOST_DEEP_CLASSES);
	return &deep_classes[i];
}

static void let_class(PyTypeObject *type);

/*
 * As long as another thread has the hook out, this one's recursion does not
 * come by it. If it takes what is not ours of the C stack, or of the calls
 * through C, it goes through constructors.
 */
static PyObject *allocate(PyTypeObject *type, Py_ssize_t items)
{
	PyThreadState *tstate = PyThreadState_Get();

	if (UNLIKELY(tickmap_stack_is_far_below() ||
		     !tickmap_c_calls_are_left(tstate))) {
		let_class(type);
		tickmap_deep_look_again(tstate);
	}
	return PyType_GenericAlloc(type, items);
}

static void keep_class(PyTypeObject *type)
{
	if (!PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) ||
	    type->tp_alloc != PyType_GenericAlloc ||
	    deep_class_place(type)->changes > MOST_CHANGES)
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

PyObject *tickmap_inlined_object(const tickmap_frame *frame,
				 const struct tickmap_frame_layout *layout)
{
	return layout->arguments < 0
		       ? NULL
		       : tickmap_frame_object(frame, layout->arguments);
}

static void let_class(PyTypeObject *type)
{
	struct deep_class *place = deep_class_place(type);

	if (type->tp_alloc != allocate)
		return;
	if (!place->address && deep_class_count == MOST_DEEP_CLASSES)
		return;
	if (remember((PyObject *)type) < 0)
		return;
	deep_class_count += !place->address;
	place->address = type;
	place->changes++;
	type->tp_alloc = PyType_GenericAlloc;
}

void tickmap_inlined_let(PyObject *self)
{
	let_class(Py_TYPE(self));
}

static void keep_again(PyObject *type)
{
	keep_class((PyTypeObject *)type);
}

/* The places that call a class have learnt that it is called through C, and do
 * not ask again: there is no way back. */
void tickmap_inlined_sweep_back(void)
{
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

/*
 * The interpreter counts up from 1: these it never reaches. Its cache compares
 * 32 bits, so each function needs one of its own. It has 2^16 to give, so the
 * one that a function has from it is kept in ours, and put back.
 */
#define FIRST_VERSION UINT32_C(0xc0000000)
#define HOLDS_ANOTHER UINT32_C(0xffff0000)

static uint32_t next_version = FIRST_VERSION;

static void keep_function(PyObject *object)
{
	if (!object || !PyFunction_Check(object))
		return;
	PyFunctionObject *function = (PyFunctionObject *)object;
	uint32_t version = function->func_version;
	if (version > UINT16_MAX)
		return;
	if (version > 0)
		function->func_version = HOLDS_ANOTHER | version;
	else if (next_version < HOLDS_ANOTHER)
		function->func_version = next_version++;
}

static void put_back(PyFunctionObject *function)
{
	uint32_t version = function->func_version;

	if (version >= HOLDS_ANOTHER)
		function->func_version = version & UINT16_MAX;
	else if (version >= FIRST_VERSION)
		function->func_version = 0;
}

PyObject *tickmap_inlined_object(const tickmap_frame *frame,
				 const struct tickmap_frame_layout *layout)
{
	return layout->function < 0
		       ? NULL
		       : tickmap_frame_object(frame, layout->function);
}

void tickmap_inlined_let(PyObject *object)
{
	if (!PyFunction_Check(object))
		return;
	PyFunctionObject *function = (PyFunctionObject *)object;
	if (function->func_version >= FIRST_VERSION && remember(object) == 0)
		put_back(function);
}

static void keep_again(PyObject *function)
{
	keep_function(function);
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

static int is_sweeping_back;

static void sweep_class(PyTypeObject *type)
{
	if (!PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) || !type->tp_dict)
		return;
	PyObject *method = PyDict_GetItemString(type->tp_dict, METHOD);
	if (!is_sweeping_back)
		keep_function(method);
	else if (method && PyFunction_Check(method))
		put_back((PyFunctionObject *)method);
}

void tickmap_inlined_sweep_back(void)
{
	is_sweeping_back = 1;
	tickmap_inlined_sweep();
	is_sweeping_back = 0;
}
#endif

void tickmap_inlined_keep_again(void)
{
	if (let.count == 0)
		return;
	SET_EXCEPTION_ASIDE(pending);
	while (let.count > 0) {
		PyObject *reference = let.references[--let.count];
		PyObject *object = referent(reference);

		if (object)
			keep_again(object);
		Py_XDECREF(object);
		Py_DECREF(reference);
	}
	PUT_EXCEPTION_BACK(pending);
}

void tickmap_inlined_forget(void)
{
	let.count = 0;
}

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

void tickmap_inlined_sweep_back(void)
{
}

PyObject *tickmap_inlined_object(const tickmap_frame *frame,
				 const struct tickmap_frame_layout *layout)
{
	(void)frame;
	(void)layout;
	return NULL;
}

void tickmap_inlined_let(PyObject *object)
{
	(void)object;
}

void tickmap_inlined_keep_again(void)
{
}

void tickmap_inlined_forget(void)
{
}

#endif

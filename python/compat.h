/* SPDX-License-Identifier: MIT */
/*
 * What differs between CPython 3.9 and 3.15 in the few interfaces the
 * extension stands on. No private header is included: the evaluator's
 * interface (PEP 523) and co_extra are exported by every build.
 */
#ifndef TICKMAP_PYTHON_COMPAT_H
#define TICKMAP_PYTHON_COMPAT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stddef.h>
#include <stdint.h>

#if PY_VERSION_HEX < 0x03090000
#error "CPython 3.9 or newer is needed"
#endif

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define NOINLINE __attribute__((noinline))

/* Opaque from 3.11 on: what lies where in it is found by calibration. */
#if PY_VERSION_HEX < 0x030B0000
#include <frameobject.h>
typedef PyFrameObject tickmap_frame;
#else
typedef struct _PyInterpreterFrame tickmap_frame;
#endif

/* A trampoline: the evaluator's arguments, and the evaluator to call. */
typedef PyObject *(*tickmap_entry)(PyThreadState *, tickmap_frame *, int,
				   _PyFrameEvalFunction);

#if PY_VERSION_HEX >= 0x030C0000
#define request_extra_index PyUnstable_Eval_RequestCodeExtraIndex
#define get_extra PyUnstable_Code_GetExtra
#define set_extra PyUnstable_Code_SetExtra
#else
#define request_extra_index _PyEval_RequestCodeExtraIndex
#define get_extra _PyCode_GetExtra
#define set_extra _PyCode_SetExtra
#endif

/*
 * Where a code object's block of co_extra may be made by us: it is freed by
 * PyMem_Free.
 */
#if PY_VERSION_HEX < 0x030E0000
#define TICKMAP_OWN_EXTRA_BLOCK
#endif

/*
 * 3.12 and 3.13 count C recursion apart from Python recursion, and charge an
 * evaluator that is called from C two units.
 */
#if PY_VERSION_HEX >= 0x030C0000 && PY_VERSION_HEX < 0x030E0000
#define TICKMAP_COUNTS_C_RECURSION 1
#define TICKMAP_EVALUATOR_UNITS 2
#if PY_VERSION_HEX >= 0x030D0000
#define TICKMAP_C_RECURSION_LIMIT Py_C_RECURSION_LIMIT
#else
#define TICKMAP_C_RECURSION_LIMIT C_RECURSION_LIMIT
#endif
#else
#define TICKMAP_COUNTS_C_RECURSION 0
#endif

/*
 * A lock whose waiters let a stop-the-world pass. With a GIL the lock is the
 * GIL itself.
 */
#ifdef Py_GIL_DISABLED
#define GATE_DEFINE(name) static PyMutex name
#define GATE_ENTER(name) PyMutex_Lock(&(name))
#define GATE_LEAVE(name) PyMutex_Unlock(&(name))
#define GATE_RESET(name) ((name) = (PyMutex) { 0 })
#else
#define GATE_DEFINE(name) struct name
#define GATE_ENTER(name) ((void)0)
#define GATE_LEAVE(name) ((void)0)
#define GATE_RESET(name) ((void)0)
#endif

#if PY_VERSION_HEX >= 0x030C0000
static inline PyObject *set_exception_aside(void)
{
	return PyErr_GetRaisedException();
}

static inline void put_exception_back(PyObject *exception)
{
	PyErr_SetRaisedException(exception);
}
#define SET_EXCEPTION_ASIDE(name) PyObject *name = set_exception_aside()
#define PUT_EXCEPTION_BACK(name) put_exception_back(name)
#else
struct exception_aside {
	PyObject *type, *value, *traceback;
};
#define SET_EXCEPTION_ASIDE(name)                                              \
	struct exception_aside name;                                           \
	PyErr_Fetch(&(name).type, &(name).value, &(name).traceback)
#define PUT_EXCEPTION_BACK(name)                                               \
	PyErr_Restore((name).type, (name).value, (name).traceback)
#endif

#endif

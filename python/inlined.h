/* SPDX-License-Identifier: MIT */
/*
 * Calls that the interpreter inlines although an evaluator is installed, and
 * how it is kept from doing so:
 *
 * 3.13: CALL_ALLOC_AND_ENTER_INIT enters a class's __init__ directly. It is
 * chosen only for classes that allocate with PyType_GenericAlloc; we put a
 * function that does the same in its place.
 *
 * 3.11 before 3.11.7: BINARY_SUBSCR_GETITEM enters __getitem__ directly. It
 * is chosen only for functions whose version fits 16 bits; we give those
 * functions a larger one.
 *
 * Neither can be seen from Python.
 */
#ifndef TICKMAP_PYTHON_INLINED_H
#define TICKMAP_PYTHON_INLINED_H

#include "calibrate.h"
#include "compat.h"

#define TICKMAP_MINOR (PY_VERSION_HEX >> 16)
/* 3.13 without a GIL does not specialise. */
#if TICKMAP_MINOR == 0x030D && !defined(Py_GIL_DISABLED)
#define TICKMAP_INLINES_INIT 1
#else
#define TICKMAP_INLINES_INIT 0
#endif

/* Whether calls of this code must be shown to tickmap_inlined_call. */
int tickmap_inlined_concerns(PyCodeObject *code);

/*
 * Whether that has been done for the function that this frame is about to run,
 * which is of code that tickmap_inlined_concerns. Quick.
 */
static inline int
tickmap_inlined_is_kept(const tickmap_frame *frame,
			const struct tickmap_frame_layout *layout)
{
#if TICKMAP_INLINES_INIT
	if (layout->arguments < 0)
		return 1;
	PyObject *self = tickmap_frame_object(frame, layout->arguments);
	return self && Py_TYPE(self)->tp_alloc != PyType_GenericAlloc;
#else
	(void)frame;
	(void)layout;
	return 0;
#endif
}

/* Keep the function that this frame is about to run from being inlined. */
void tickmap_inlined_call(const tickmap_frame *frame,
			  const struct tickmap_frame_layout *layout);

/* The same for all classes that exist already. Keeps errors to itself. */
void tickmap_inlined_sweep(void);

/* Undo it where that can be undone. */
void tickmap_inlined_sweep_back(void);

/* What of this frame is, or says, what is kept: __init__'s self, or the
 * function. Borrowed; NULL: nothing. */
PyObject *tickmap_inlined_object(const tickmap_frame *frame,
				 const struct tickmap_frame_layout *layout);

/*
 * Let it be inlined, because its calls go too deep for ours, until keep_again
 * is called: when no call goes that deep any more.
 */
void tickmap_inlined_let(PyObject *object);
void tickmap_inlined_keep_again(void);

/* The interpreter is gone. */
void tickmap_inlined_forget(void);

#endif

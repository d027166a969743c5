/* SPDX-License-Identifier: MIT */
/*
 * Where the interpreter keeps what we need in its frame, found by looking: a
 * known function is called once under a probing evaluator, and its code, its
 * function object and its arguments are searched for in the frame's words.
 */
#ifndef TICKMAP_PYTHON_CALIBRATE_H
#define TICKMAP_PYTHON_CALIBRATE_H

#include "compat.h"

/* Indexes of words in the frame; -1: not there. */
struct tickmap_frame_layout {
	int code;
	int function;
	int arguments;
};

/* Returns 0, or -1 with an exception set. */
int tickmap_calibrate(PyInterpreterState *interp,
		      struct tickmap_frame_layout *ret_layout);

/* 3.14 on tags references in their low bits; objects are aligned to 8. */
static inline PyObject *tickmap_frame_object(const tickmap_frame *frame,
					     int word)
{
	uintptr_t value = ((const uintptr_t *)frame)[word];

	return (PyObject *)(value & ~(uintptr_t)7);
}

/*
 * The word that holds the code object in this version, for the fast path. It
 * is used where calibration finds the same.
 */
#if PY_VERSION_HEX < 0x030B0000
#define TICKMAP_FRAME_CODE_WORD                                                \
	((int)(offsetof(PyFrameObject, f_code) / sizeof(void *)))
#elif PY_VERSION_HEX < 0x030C0000
#define TICKMAP_FRAME_CODE_WORD 4
#else
#define TICKMAP_FRAME_CODE_WORD 0
#endif

static inline const PyCodeObject *tickmap_frame_code(const tickmap_frame *frame)
{
	uintptr_t value = ((const uintptr_t *)frame)[TICKMAP_FRAME_CODE_WORD];

#if PY_VERSION_HEX >= 0x030E0000
	value &= ~(uintptr_t)7; /* a tagged reference */
#endif
	return (const PyCodeObject *)value;
}

#endif

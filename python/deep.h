/* SPDX-License-Identifier: MIT */
/*
 * What the interpreter inlines costs no C stack, and it learns only after a
 * while, for each place in the code, what can be inlined there. While an
 * evaluator is installed it has learnt that nothing can, and looks again after
 * up to 4,096 calls: too late for a recursion that is to go on without C
 * stack. So when a call goes deeper than ours may, the places where the calls
 * below it are being made look again at their next turn.
 */
#ifndef TICKMAP_PYTHON_DEEP_H
#define TICKMAP_PYTHON_DEEP_H

#include "calibrate.h"
#include "compat.h"

/* The hook is out, and this frame is about to run. */
void tickmap_deep_begin(PyThreadState *tstate, const tickmap_frame *frame,
			const struct tickmap_frame_layout *layout);

/* The place where the current frame calls something kept from being inlined,
 * which may be inlined by now. */
void tickmap_deep_look_again(PyThreadState *tstate);

#endif

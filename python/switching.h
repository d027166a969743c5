/* SPDX-License-Identifier: MIT */
/*
 * Switching on and off, done by one thread at a time, and the change of
 * evaluator that it ends in. Both are needed with a GIL as well: switching runs
 * a little Python code, at which the GIL may go to another thread.
 */
#ifndef TICKMAP_PYTHON_SWITCHING_H
#define TICKMAP_PYTHON_SWITCHING_H

#include "compat.h"

/*
 * The thread that is in it may begin again (a finalizer may run in between)
 * and ends as often. Others wait without the GIL.
 */
void tickmap_switching_begin(void);
void tickmap_switching_end(void);

/* The same where a GIL is enough, if there is one. */
#ifdef Py_GIL_DISABLED
#define tickmap_changing_begin() tickmap_switching_begin()
#define tickmap_changing_end() tickmap_switching_end()
#else
#define tickmap_changing_begin() ((void)0)
#define tickmap_changing_end() ((void)0)
#endif

/* In a forked child: another thread's turn has ended with that thread. */
void tickmap_switching_forked(void);

/*
 * As _PyInterpreterState_SetEvalFrameFunc, while other threads call. Without a
 * GIL in one's turn, which nobody else has while a thread forks: a child that
 * has inherited a world half stopped would wait for ever.
 */
void tickmap_set_evaluator(PyInterpreterState *interp,
			   _PyFrameEvalFunction evaluator);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * How much C stack the hook may use. The plain interpreter (3.11 on) runs
 * Python calls without C stack; with a hook each of them takes about 900
 * bytes. So that no program overflows its stack because of us, hooked calls
 * may use a part of each thread's stack only. A call that is deeper runs
 * without the hook, and so do the calls it makes.
 */
#ifndef TICKMAP_PYTHON_GUARD_H
#define TICKMAP_PYTHON_GUARD_H

#include "compat.h"
#include "stack_pointer.h"

struct tickmap_stack {
	uintptr_t floor; /* hooked calls stay above this */
	uintptr_t span;	 /* from floor to the stack's top; 0: not known yet */
	uintptr_t size;	 /* the whole stack's; 0: unknown */
	int suspended;	 /* calls of this thread that run without the hook */
};

/* Initial-exec: one load in the hook, where the general model would call. */
extern __thread struct tickmap_stack tickmap_stack
	__attribute__((tls_model("initial-exec")));

/*
 * Also false on a stack that is not the thread's own (a coroutine library's):
 * nobody knows how small that is.
 */
static inline int tickmap_stack_has_room(void)
{
	return tickmap_stack_pointer() - tickmap_stack.floor <
	       tickmap_stack.span;
}

/* Deeper than hooked calls go, by so much that the calls they make do not get
 * there; not on a stack of another kind. */
static inline int tickmap_stack_is_far_below(void)
{
	uintptr_t below = tickmap_stack.floor - tickmap_stack_pointer();

	return tickmap_stack.size > 0 && below > tickmap_stack.span / 8 &&
	       below < tickmap_stack.size;
}

/*
 * C recursion has a limit of its own in 3.12 and 3.13. Some calls are charged
 * there only because they are not inlined (3.12: of coroutines that wait for
 * another), so a part of it is left for those that would be charged anyway.
 */
static inline int tickmap_c_calls_are_left(const PyThreadState *tstate)
{
#if TICKMAP_COUNTS_C_RECURSION
	return tstate->c_recursion_remaining > TICKMAP_C_RECURSION_LIMIT / 4;
#else
	(void)tstate;
	return 1;
#endif
}

/*
 * Where the current thread's stack begins, above its first frame, and its
 * size. The system says it (linux.c, macos.c). 0: it does not, and both stay.
 */
int tickmap_stack_bounds(uintptr_t *ret_top, uintptr_t *ret_size);

/* Find the current thread's stack. Once per thread. */
void tickmap_stack_find(void);

/*
 * Inside a call without the hook, C recursion gets the share of its limit that
 * the rest of the stack is of the whole. Returns what to give back.
 */
int tickmap_stack_clamp(PyThreadState *tstate);
void tickmap_stack_unclamp(PyThreadState *tstate, int taken);

#endif

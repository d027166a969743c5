/* SPDX-License-Identifier: MIT */
#include "guard.h"

__thread struct tickmap_stack tickmap_stack
	__attribute__((tls_model("initial-exec")));

enum { KIB = 1024, MIB = 1024 * 1024 };

/*
 * A quarter of an ordinary stack holds some 2,300 nested calls of 8 MiB. Small
 * stacks were chosen by someone who knew what runs on them: an eighth.
 */
static uintptr_t budget(uintptr_t size)
{
	uintptr_t part = size >= MIB ? size / 4 : size / 8;

	return part < 4 * MIB ? part : 4 * MIB;
}

void tickmap_stack_find(void)
{
	uintptr_t top = tickmap_stack_pointer() + 4 * KIB;
	uintptr_t allowed = 64 * KIB;
	uintptr_t size = 0;

	if (tickmap_stack_bounds(&top, &size))
		allowed = budget(size);
	tickmap_stack.size = size;
	tickmap_stack.floor = top - allowed;
	tickmap_stack.span = allowed;
}

#if TICKMAP_COUNTS_C_RECURSION
int tickmap_stack_clamp(PyThreadState *tstate)
{
	uintptr_t top = tickmap_stack.floor + tickmap_stack.span;
	uintptr_t used = top - tickmap_stack_pointer();
	uintptr_t size = tickmap_stack.size;

	if (used >= size) /* unknown, or another stack */
		return 0;
	int allowed = (int)((double)TICKMAP_C_RECURSION_LIMIT *
			    ((double)(size - used) / (double)size));
	int taken = tstate->c_recursion_remaining - allowed;
	if (taken <= 0)
		return 0;
	tstate->c_recursion_remaining -= taken;
	return taken;
}

void tickmap_stack_unclamp(PyThreadState *tstate, int taken)
{
	tstate->c_recursion_remaining += taken;
}
#else
int tickmap_stack_clamp(PyThreadState *tstate)
{
	(void)tstate;
	return 0;
}

void tickmap_stack_unclamp(PyThreadState *tstate, int taken)
{
	(void)tstate;
	(void)taken;
}
#endif

/* SPDX-License-Identifier: MIT */
#ifndef TICKMAP_PYTHON_STACK_POINTER_H
#define TICKMAP_PYTHON_STACK_POINTER_H

#include <stdint.h>

static inline uintptr_t tickmap_stack_pointer(void)
{
	uintptr_t sp;

	__asm__("mov %%rsp, %0" : "=r"(sp));
	return sp;
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The interpreter's own trampolines beside ours. From 3.12 to 3.14
 * sys.activate_stack_trampoline refuses to work where any evaluator is
 * installed. A program that calls it must not fail because of us: ours step
 * aside while the interpreter's own are active.
 */
#ifndef TICKMAP_PYTHON_NATIVE_H
#define TICKMAP_PYTHON_NATIVE_H

/*
 * Stand before the two functions of sys that switch them. Once per
 * interpreter, again is harmless. Keeps errors to itself.
 */
void tickmap_native_watch(void);

#endif

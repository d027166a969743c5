/* SPDX-License-Identifier: MIT */
/*
 * The evaluator that sends each Python call through its function's trampoline.
 * It works in the main interpreter; in others it is inert.
 */
#ifndef TICKMAP_PYTHON_HOOK_H
#define TICKMAP_PYTHON_HOOK_H

#include "compat.h"

/*
 * Put the hook before the evaluator that is installed now. Does nothing if it
 * works already. Returns 1, or 0 if this is not the main interpreter, or -1
 * with an exception set.
 */
int tickmap_hook_install(void);

/* Undo it. Trampolines stay: frames may still return into them. */
void tickmap_hook_remove(void);

int tickmap_hook_is_active(void);

/*
 * The same for as long as another evaluator wants to be alone. step_aside
 * returns whether there was anything to remove; come_back does nothing if the
 * program has switched it on or off meanwhile.
 */
int tickmap_hook_step_aside(void);
void tickmap_hook_come_back(void);

/*
 * In a forked child, which has none of the other threads: at once, without the
 * interpreter; and as soon as there is one, if it is ours.
 */
void tickmap_hook_forked(void);
void tickmap_hook_in_child(void);

#endif

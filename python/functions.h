/* SPDX-License-Identifier: MIT */
/*
 * One trampoline for each distinct Python function: functions are the same if
 * qualified name, file and first line are, so that a program that compiles
 * the same source in a loop uses one trampoline, not a million.
 */
#ifndef TICKMAP_PYTHON_FUNCTIONS_H
#define TICKMAP_PYTHON_FUNCTIONS_H

#include "compat.h"

/* The trampoline of a code object, or NULL if it cannot have one. Keeps a
 * pending exception. */
tickmap_entry tickmap_function_entry(PyCodeObject *code);

/* Announce all of them in a code map that was opened anew. */
void tickmap_functions_publish_again(void);

/* How many functions have a trampoline. */
size_t tickmap_function_count(void);

#endif

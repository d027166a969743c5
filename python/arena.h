/* SPDX-License-Identifier: MIT */
/*
 * Executable memory full of trampolines. An arena is filled while writable,
 * then made executable, never both, and lives as long as the process: a frame
 * may return into any of them at any time.
 */
#ifndef TICKMAP_PYTHON_ARENA_H
#define TICKMAP_PYTHON_ARENA_H

#include <stdint.h>

#include "tickmap/emit.h"

/* The next unused trampoline, or NULL (errno says why). Callers lock. */
const uint8_t *tickmap_arena_take(const struct tickmap_unwind *unwind);

/*
 * Leave the rest of the current arena alone. A forked child does this, so that
 * no address ever means one function in the parent and another in the child.
 */
void tickmap_arena_abandon(void);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The one open code map of this process, and the lock around it, the arenas
 * and the table of functions. Knows nothing of Python.
 */
#ifndef TICKMAP_PYTHON_PUBLISH_H
#define TICKMAP_PYTHON_PUBLISH_H

#include <stdint.h>

#include "tickmap/emit.h"

/*
 * Open the code map; a second call changes nothing. Returns a
 * tickmap_emit_status, errno says more.
 */
int tickmap_publish_open(uint32_t sinks, uint32_t flags, const char *dir);

/*
 * No Python code runs and no other lock is taken between these two. The lock
 * is held over a fork, so that the child finds everything in one piece.
 */
void tickmap_publish_lock(void);
void tickmap_publish_unlock(void);

/*
 * Give the function `name` at `file`:`line` the next trampoline and announce
 * it. NULL if that is no longer possible; the program goes on without. Locked.
 */
const uint8_t *tickmap_publish_function(const char *name, size_t name_length,
					const char *file, int line);

/* Status of the last attempt to publish, and the errno behind it. Locked. */
int tickmap_publish_status(int *ret_errno);

/* Path of a sink's file or NULL. Borrowed until the lock is released. */
const char *tickmap_publish_path(uint32_t sink);

#endif

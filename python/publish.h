/* SPDX-License-Identifier: MIT */
/*
 * The one open code map of this process, and the lock around it, the arenas
 * and the table of functions. Knows nothing of Python.
 */
#ifndef TICKMAP_PYTHON_PUBLISH_H
#define TICKMAP_PYTHON_PUBLISH_H

#include <stddef.h>
#include <stdint.h>

#include "tickmap/emit.h"

struct tickmap_publish_request {
	uint32_t sinks;	 /* 0: as at the last time, at first a jitdump */
	uint32_t flags;	 /* TICKMAP_EMIT_KEEP_EXISTING */
	const char *dir; /* NULL: as at the last time, at first the environment
			    variable TICKMAP_DIR, else /tmp */
};

/*
 * Open the code map. If one is open, other sinks or another folder open another
 * in its place; the same change nothing. *ret_anew: nothing has been announced
 * there yet. Returns a tickmap_emit_status, errno says more; what was open
 * stays open then.
 */
int tickmap_publish_open(const struct tickmap_publish_request *request,
			 int *ret_anew);

/* The folder that was asked for last, cut to the size. */
void tickmap_publish_folder(char *ret_folder, size_t size);

/* Announce once more what has its trampoline at `at`. Locked. */
void tickmap_publish_again(const uint8_t *at, const char *name,
			   size_t name_length, const char *file, int line);

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

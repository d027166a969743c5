/* SPDX-License-Identifier: MIT */
/*
 * What is left of the code maps after a recording: perf maps where perf looks
 * for them if they are to be kept, nothing of ours otherwise.
 */
#ifndef TICKMAP_RECORD_KEEP_H
#define TICKMAP_RECORD_KEEP_H

#include "base/error.h"
#include "record/follow.h"

/*
 * Writes /tmp/perf-PID.map from every jitdump below `dir`, so that perf names
 * the same functions on this machine. Files that are there already are neither
 * used nor touched: for each, `refused` is called with its path.
 * Returns how many were written, or a negative status.
 */
int tickmap_keep_perf_maps(const struct tickmap_follower *follower,
			   const char *dir,
			   void (*refused)(void *context, const char *path),
			   void *context, struct tickmap_error *err);

/* Removes the files that the interpreter's own switch made: jitdumps that were
 * followed and lie outside `dir`, by their inode. */
void tickmap_remove_own_switch_files(const struct tickmap_follower *follower,
				     const char *dir);

#endif

/* SPDX-License-Identifier: MIT */
/* /proc/PID/maps, for processes that were there before the recording. */
#ifndef TICKMAP_CAPTURE_PROCMAPS_H
#define TICKMAP_CAPTURE_PROCMAPS_H

#include "base/error.h"
#include "capture/sample.h"

#include <sys/types.h>

/* Calls the handler with every executable mapping, as an MMAP2 would tell it
 * (a mapping without a name gets "//anon"). Its nonzero return ends the walk
 * and is returned. */
int tickmap_procmaps_read(pid_t pid,
			  int (*handler)(void *context,
					 const struct tickmap_mmap_record *),
			  void *context, struct tickmap_error *err);

/* The same from the text of such a file, for tests and fuzzing. */
int tickmap_procmaps_parse(const char *text, size_t size, pid_t pid,
			   int (*handler)(void *context,
					  const struct tickmap_mmap_record *),
			   void *context);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * What was there before the recording, told in the kernel's own words: records
 * made up for running processes and for the kernel, stamped with time 0.
 */
#ifndef TICKMAP_RECORD_ATTACH_H
#define TICKMAP_RECORD_ATTACH_H

#include "capture/perfdata.h"
#include "record/follow.h"
#include "record/processes.h"

/* COMM of every thread, MMAP2 of every executable mapping, code maps. */
int tickmap_attach_process(pid_t pid, struct tickmap_processes *processes,
			   struct tickmap_follower *follower,
			   struct tickmap_perfdata_writer *writer,
			   struct tickmap_error *err);

/* The kernel's own mapping, without which perf names no kernel function. */
int tickmap_attach_kernel(struct tickmap_perfdata_writer *writer,
			  struct tickmap_error *err);

#endif

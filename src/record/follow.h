/* SPDX-License-Identifier: MIT */
/*
 * Code maps followed while they grow: found by the marker mapping (jitdump) or
 * by their fixed name (perf map), read piece by piece, handed to the processes
 * for unwinding and copied into the recording. Only files that are certainly
 * the process's own are used: the marker's inode, or, for a perf map, bytes
 * that were not there when the process began.
 */
#ifndef TICKMAP_RECORD_FOLLOW_H
#define TICKMAP_RECORD_FOLLOW_H

#include "capture/perfdata.h"
#include "capture/sample.h"
#include "record/processes.h"

#include <stdbool.h>
#include <stdint.h>

struct tickmap_follower;

struct tickmap_follower *
tickmap_follower_new(struct tickmap_processes *processes,
		     struct tickmap_perfdata_writer *writer);
void tickmap_follower_free(struct tickmap_follower *follower);

/* Opens the dump that a marker mapping shows and reads all that is there. */
int tickmap_follow_marker(struct tickmap_follower *follower,
			  const struct tickmap_mmap_record *marker,
			  struct tickmap_error *err);

/* A process begins (launch, fork, exec): remembers what of its perf map, if
 * one lies there, an earlier process has left. */
void tickmap_follow_birth(struct tickmap_follower *follower,
			  struct tickmap_process *process);

/* Looks for the perf map of a process that runs unnamed code; not too often,
 * unless now_ns is 0. */
void tickmap_follow_perf_map(struct tickmap_follower *follower,
			     struct tickmap_process *process, uint64_t now_ns);

/* Reads what every followed file has gained. */
int tickmap_follow_poll(struct tickmap_follower *follower, uint64_t now_ns,
			struct tickmap_error *err);

/* The files of one process get no more bytes: reads the rest, closes. */
int tickmap_follow_end(struct tickmap_follower *follower, pid_t pid,
		       struct tickmap_error *err);

struct tickmap_followed {
	const char *path; /* as it can be opened from here */
	pid_t pid;
	bool perf_map;
	uint64_t device, inode;
	uint64_t bytes;
};
size_t tickmap_follower_count(const struct tickmap_follower *follower);
struct tickmap_followed
tickmap_follower_at(const struct tickmap_follower *follower, size_t index);

/* Functions published so far, over all files. */
uint64_t tickmap_follower_functions(const struct tickmap_follower *follower);
/* Markers whose file could not be opened. */
uint64_t tickmap_follower_missed(const struct tickmap_follower *follower);

#endif

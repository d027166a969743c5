/* SPDX-License-Identifier: MIT */
/*
 * The live recorder: kernel records in, a recording out. Stacks are walked as
 * the samples arrive, so that no stack bytes are stored; code maps are followed
 * while they grow and travel in the same file.
 */
#ifndef TICKMAP_RECORD_RECORDER_H
#define TICKMAP_RECORD_RECORDER_H

#include "base/error.h"
#include "capture/sampler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct tickmap_recorder_options {
	const char *output;
	uint64_t frequency; /* Hz */
	const pid_t *pids;
	size_t pid_count;
	/* The (one) pid is a child of ours that waits before its exec; else
	 * the pids run already. */
	bool launch;
};

struct tickmap_recorder;

/* Opens the events, then the file. Nothing is left behind on failure. */
int tickmap_recorder_open(const struct tickmap_recorder_options *options,
			  struct tickmap_recorder **ret_recorder,
			  struct tickmap_error *err);

/*
 * Waits for data, `extra_fd` or the time, and handles what there is. Returns 1
 * if extra_fd is readable, 0 if not, negative if recording cannot go on.
 */
int tickmap_recorder_step(struct tickmap_recorder *recorder, int extra_fd,
			  int timeout_ms, struct tickmap_error *err);

/* Ends sampling and gives the rings back; only _finish may follow. */
void tickmap_recorder_stop(struct tickmap_recorder *recorder);

/* Why a sampled Python process shows no Python names. */
struct tickmap_recorder_silent {
	pid_t pid;
	uint64_t samples;
	const char *interpreter; /* path; borrowed from the recorder */
};

struct tickmap_recorder_result {
	uint64_t samples, lost, truncated, functions, bytes;
	uint64_t late; /* records that came out of order */
	uint64_t missed_maps;
	uint64_t unwound_frames, cache_misses;
};

/* Stops sampling, handles what is left, completes the file. The recorder stays
 * (for the questions below) until freed. `command`: argv of tickmap itself;
 * `program`: what was recorded, as text. Both go into the file. */
int tickmap_recorder_finish(struct tickmap_recorder *recorder,
			    const char *const *command, size_t command_count,
			    const char *program,
			    struct tickmap_recorder_result *ret_result,
			    struct tickmap_error *err);
void tickmap_recorder_free(struct tickmap_recorder *recorder);

const struct tickmap_sampler *
tickmap_recorder_sampler(const struct tickmap_recorder *recorder);

/* Python processes that ran without a code map; fills at most `max`. */
size_t tickmap_recorder_silent(const struct tickmap_recorder *recorder,
			       struct tickmap_recorder_silent *ret_silent,
			       size_t max);

/* The code maps that were followed: see record/follow.h. */
struct tickmap_follower;
const struct tickmap_follower *
tickmap_recorder_follower(const struct tickmap_recorder *recorder);

#endif

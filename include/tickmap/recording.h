/* SPDX-License-Identifier: MIT */
/*
 * Recordings: any perf.data (of a perf from 4.x on, in a file, a directory or
 * from a pipe, compressed or not, of either byte order, finished or not) as
 * events in the order of the file, or as samples in the order of time whose
 * frames have names: native ones by the files of this machine, generated code
 * by the code maps in the recording, beside it or where they were written, at
 * the time of the sample. Stacks that were recorded as bytes are unwound.
 *
 * Strings and arrays are the recording's and live until it is closed, unless
 * said otherwise. A recording is its caller's, for one thread at a time. Times
 * are ns of the recording's clock.
 */
#ifndef TICKMAP_RECORDING_H
#define TICKMAP_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tickmap_recording;

struct tickmap_recording_options {
	size_t size; /* sizeof(struct tickmap_recording_options) */
	/* Folders with jitdumps and perf maps that lie elsewhere. */
	const char *const *code_map_dirs;
	size_t code_map_dir_count;
};

/*
 * "-": standard input. `options` may be NULL. 0, or a negative number; then
 * `message` (of `message_size` bytes, may be NULL) says in a line which file,
 * which offset and why. Of a damaged recording all that can be read is kept:
 * see tickmap_recording_finding.
 */
int tickmap_recording_open(const char *path,
			   const struct tickmap_recording_options *options,
			   struct tickmap_recording **ret_recording,
			   char *message, size_t message_size);
void tickmap_recording_close(struct tickmap_recording *recording);

/* ---- Samples ---- */

enum tickmap_recording_frame_kind {
	TICKMAP_RECORDING_NATIVE,
	TICKMAP_RECORDING_KERNEL,
	TICKMAP_RECORDING_PYTHON,  /* a Python function's own frame */
	TICKMAP_RECORDING_JIT,	   /* other generated code */
	TICKMAP_RECORDING_UNNAMED, /* `reason` says why */
};

struct tickmap_recording_frame {
	enum tickmap_recording_frame_kind kind;
	const char *name;   /* as published; demangled if native */
	const char *dso;    /* path; "[jit]", "[kernel]", "[unknown]" */
	const char *file;   /* source file by the code map, or NULL */
	uint32_t line;	    /* 0: unknown */
	const char *reason; /* "stripped", "no-code-map"...; NULL: named */
};

struct tickmap_recording_sample {
	uint64_t time_ns;
	uint32_t pid, tid, cpu;
	const char *comm; /* the thread's name then, or "" */
	uint64_t avma;	  /* of the leaf */
	/* Leaf first. Until the next call. */
	const struct tickmap_recording_frame *frames;
	size_t frame_count;
	/* Why the outermost frame is not the thread's first one; NULL: it is,
	 * as far as the recorder's own walk can be trusted. */
	const char *truncated;
};

/*
 * Samples of events that count time or cycles, in the order of time. 1: there
 * is one; 0: that were all; negative: no memory. The first call does the work.
 */
int tickmap_recording_next_sample(struct tickmap_recording *recording,
				  struct tickmap_recording_sample *ret_sample);

/* ---- Events ---- */

struct tickmap_recording_event {
	uint32_t type; /* PERF_RECORD_*, or of perf's user space from 64 on */
	uint16_t misc;
	uint64_t time_ns; /* 0: none */
	uint32_t pid, tid, cpu;
	const char *event; /* whose it is: "cycles", "cpu-clock:u" */
	bool counts_time;  /* that event's samples measure time or cycles */
	bool swapped;	   /* the bytes are of the other byte order */
	/* The whole record with its header. Until the next call. */
	const uint8_t *bytes;
	size_t size;
	const char *file; /* that it lies in, and where */
	uint64_t offset;
};

/*
 * Every record, in the order of the files; COMPRESSED ones unfolded. 1: there
 * is one; 0: that were all; negative: that were all, but something could not be
 * read, and `message` says the first of it.
 */
int tickmap_recording_next_event(struct tickmap_recording *recording,
				 struct tickmap_recording_event *ret_event,
				 char *message, size_t message_size);

/* ---- How good it is; known behind the first sample ---- */

struct tickmap_recording_quality {
	uint64_t samples, lost, truncated;
	uint64_t other_events;		    /* samples that measure no time */
	uint64_t jit_samples, jit_resolved; /* with generated code; all named */
	const char *clock_domain;	    /* "monotonic", "perf"... */
	const char *clock_method; /* "same", "offset", "fit", "none" */
	bool finished;		  /* its writer came to its end */
};
int tickmap_recording_quality(struct tickmap_recording *recording,
			      struct tickmap_recording_quality *ret_quality);

/* What was odd or could not be read, a line each; NULL: there are no more. */
const char *tickmap_recording_finding(struct tickmap_recording *recording,
				      size_t index);

#ifdef __cplusplus
}
#endif
#endif

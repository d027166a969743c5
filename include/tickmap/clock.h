/* SPDX-License-Identifier: MIT */
/*
 * Clocks: which one stamped what, and how the stamps of a code map become times
 * of a recording.
 *
 * An alignment collects evidence, pairs of a stamp and a time of the recording,
 * and then answers for each stamp between which two times it lies. Nothing is
 * guessed: what the evidence leaves open stays open, and the two times lie
 * apart. All times are ns of the recording's clock. No call blocks or keeps
 * global state; one alignment belongs to one thread at a time.
 */
#ifndef TICKMAP_CLOCK_H
#define TICKMAP_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum tickmap_clock {
	TICKMAP_CLOCK_UNKNOWN,
	TICKMAP_CLOCK_PERF, /* perf's default: the scheduler's clock */
	TICKMAP_CLOCK_REALTIME,
	TICKMAP_CLOCK_MONOTONIC,
	TICKMAP_CLOCK_MONOTONIC_RAW,
	TICKMAP_CLOCK_BOOTTIME,
	TICKMAP_CLOCK_TAI,
	TICKMAP_CLOCK_TICKS, /* the CPU's counter: TSC, CNTVCT */
};

/* "monotonic", "perf", ...: stable words. */
const char *tickmap_clock_name(enum tickmap_clock clock);

/* The clock of a recording, by perf_event_attr's two fields. */
enum tickmap_clock tickmap_clock_of_attr(bool use_clockid, int32_t clockid);

/*
 * Ticks of the CPU's counter -> ns, as a TIME_CONV record says it. `cycles` and
 * `mask` count only if the counter is short and wraps (arm64, riscv), else
 * leave them 0.
 */
struct tickmap_clock_conversion {
	uint64_t shift, mult, zero;
	uint64_t cycles, mask;
};

uint64_t
tickmap_clock_convert(const struct tickmap_clock_conversion *conversion,
		      uint64_t ticks);

enum tickmap_clock_method {
	TICKMAP_CLOCK_NONE,   /* only the order of the stamps is known */
	TICKMAP_CLOCK_SAME,   /* stamps are times */
	TICKMAP_CLOCK_OFFSET, /* time = stamp + a constant, within bounds */
};

/* "none", "same", "offset". */
const char *tickmap_clock_method_name(enum tickmap_clock_method method);

struct tickmap_alignment;

/* NULL: out of memory. */
struct tickmap_alignment *tickmap_alignment_new(void);
void tickmap_alignment_free(struct tickmap_alignment *alignment);

/* Whatever is stamped `stamp` or later happened at `time_ns` or later: a
 * program starts before it publishes. False: out of memory. */
bool tickmap_alignment_floor(struct tickmap_alignment *alignment,
			     uint64_t stamp, uint64_t time_ns);
/* Whatever is stamped `stamp` or earlier happened at `time_ns` or earlier: a
 * process publishes before it exits. */
bool tickmap_alignment_ceiling(struct tickmap_alignment *alignment,
			       uint64_t stamp, uint64_t time_ns);
/* The same, said by a sample in code: code is loaded before it runs. Few of
 * these may be wrong (a runtime may publish late): then they are outvoted. */
bool tickmap_alignment_sample(struct tickmap_alignment *alignment,
			      uint64_t stamp, uint64_t time_ns);

struct tickmap_alignment_claim {
	bool same;	  /* both claim to use one clock */
	bool nanoseconds; /* stamps advance as times do */
	/* From the first to the last stamp: clocks that advance by the same
	 * unit still drift apart over it. */
	uint64_t span_ns;
};

/* After all evidence, once. */
void tickmap_alignment_solve(struct tickmap_alignment *alignment,
			     const struct tickmap_alignment_claim *claim);

struct tickmap_alignment_result {
	enum tickmap_clock_method method;
	/* time = stamp + offset; bounds included. INT64_MIN, INT64_MAX: open.
	 * Of TICKMAP_CLOCK_NONE both are open unless stamps are ns. */
	int64_t low_ns, high_ns;
	int64_t offset_ns;   /* the likeliest; 0 unless the method has one */
	uint64_t error_ns;   /* it is no farther from the truth */
	uint64_t evidence;   /* pieces of it that were heard */
	uint64_t violations; /* those that contradict the result */
};

void tickmap_alignment_result(const struct tickmap_alignment *alignment,
			      struct tickmap_alignment_result *ret_result);

/* A second code map's bounds narrow this one's, if they agree at all (else
 * nothing changes and it is false): two programs of one machine. Of
 * TICKMAP_CLOCK_SAME nothing changes, ever. */
bool tickmap_alignment_narrow(struct tickmap_alignment *alignment,
			      int64_t low_ns, int64_t high_ns);

/* The first and the last time at which what is stamped so can have happened;
 * 0 and UINT64_MAX: open. Neither falls where the stamp grows. O(log n). */
uint64_t tickmap_alignment_earliest(const struct tickmap_alignment *alignment,
				    uint64_t stamp);
uint64_t tickmap_alignment_latest(const struct tickmap_alignment *alignment,
				  uint64_t stamp);

#ifdef __cplusplus
}
#endif

#endif

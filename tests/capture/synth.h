/* SPDX-License-Identifier: MIT */
/* Records as a recorder of ours writes them, made from a seed. */
#ifndef TICKMAP_TESTS_CAPTURE_SYNTH_H
#define TICKMAP_TESTS_CAPTURE_SYNTH_H

#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SYNTH_SAMPLE_TYPE = PERF_SAMPLE_IP | PERF_SAMPLE_TID |
			    PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |
			    PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN,
	SYNTH_RECORD_MAX = 65528,
};

void synth_attr(struct perf_event_attr *attr);

/* Random numbers that are the same everywhere. */
uint64_t synth_next(uint64_t *state);

/* Each fills `out` and returns the record's size. */
size_t synth_sample(uint8_t *out, uint64_t *state, uint64_t time_ns);
size_t synth_mmap2(uint8_t *out, uint32_t pid, uint64_t avma, uint64_t size,
		   const char *path, uint64_t time_ns);
size_t synth_comm(uint8_t *out, uint32_t pid, const char *comm,
		  uint64_t time_ns);

#endif

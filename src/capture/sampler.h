/* SPDX-License-Identifier: MIT */
/*
 * The kernel's sampler: one perf event and one ring a CPU, for a process tree
 * or for running processes. What comes out are the kernel's own records, in
 * time order. Knows rings, refuses to know what samples mean.
 */
#ifndef TICKMAP_CAPTURE_SAMPLER_H
#define TICKMAP_CAPTURE_SAMPLER_H

#include "base/error.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct tickmap_sampler_options {
	uint64_t frequency; /* Hz */
	const pid_t *pids;  /* processes to sample */
	size_t pid_count;
	bool enable_on_exec;  /* start with the (one) process's next exec */
	uint32_t stack_bytes; /* wanted user stack dump, <= 65528 */
	size_t ring_bytes;    /* wanted ring size of all CPUs together */
};

struct tickmap_sampler;

/*
 * Opens the events, trying in this order and remembering what it took:
 * hardware cycles, then cpu-clock; kernel and user, then user only; rings of
 * the wanted size, then halved ones (with smaller stack dumps) down to what
 * perf_event_mlock_kb and RLIMIT_MEMLOCK allow. Raises RLIMIT_NOFILE's soft
 * limit to the hard one. Every CPU that is online gets an event, whatever the
 * caller's own affinity.
 *
 * attr of all events: PERF_SAMPLE_IP, TID, TIME, CPU, PERIOD, CALLCHAIN (the
 * kernel's part only), REGS_USER, STACK_USER; mmap, mmap2, comm, comm_exec,
 * task, inherit, sample_id_all, use_clockid with CLOCK_MONOTONIC.
 *
 * TICKMAP_E_OS with os_errno EACCES, EPERM or ENOSYS: the kernel refuses;
 * err->what says in one phrase what was tried last.
 */
int tickmap_sampler_open(const struct tickmap_sampler_options *options,
			 struct tickmap_sampler **ret_sampler,
			 struct tickmap_error *err);

/* Closes everything. NULL is fine. */
void tickmap_sampler_close(struct tickmap_sampler *sampler);

int tickmap_sampler_enable(struct tickmap_sampler *sampler);
int tickmap_sampler_disable(struct tickmap_sampler *sampler);

/* After the last drain: gives the rings' memory back, keeps the answers. */
void tickmap_sampler_release_rings(struct tickmap_sampler *sampler);

/* What was taken. The attr is the kernel's; borrowed. */
const struct perf_event_attr *
tickmap_sampler_attr(const struct tickmap_sampler *sampler);
const char *tickmap_sampler_event_name(const struct tickmap_sampler *sampler);
bool tickmap_sampler_sees_kernel(const struct tickmap_sampler *sampler);
size_t tickmap_sampler_ring_bytes(const struct tickmap_sampler *sampler);
unsigned tickmap_sampler_cpu_count(const struct tickmap_sampler *sampler);

/*
 * Waits until a ring is filled to its watermark, `extra_fd` (or -1) is
 * readable, a signal arrives or the time is over. Returns 1 if extra_fd is
 * readable, 0 otherwise, negative on failure.
 */
int tickmap_sampler_wait(struct tickmap_sampler *sampler, int extra_fd,
			 int timeout_ms, struct tickmap_error *err);

/* One record as the kernel wrote it. Borrowed until the handler returns. */
struct tickmap_raw_record {
	uint32_t type; /* PERF_RECORD_* */
	uint16_t misc;
	const uint8_t *bytes; /* the whole record, header included */
	size_t size;
	uint64_t time_ns; /* CLOCK_MONOTONIC; 0 if the record has none */
	unsigned cpu;	  /* of the ring */
};

/*
 * Hands over all records older than `until_ns` (UINT64_MAX: everything), over
 * all rings in the order of their times. Records that turn up older than what
 * was handed over before are handed over first and counted.
 * The handler's nonzero return stops and is returned.
 */
int tickmap_sampler_drain(struct tickmap_sampler *sampler, uint64_t until_ns,
			  int (*handler)(void *context,
					 const struct tickmap_raw_record *),
			  void *context);

/* Records that came later than a younger one was handed over. */
uint64_t tickmap_sampler_late_count(const struct tickmap_sampler *sampler);

#endif

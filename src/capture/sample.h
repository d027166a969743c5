/* SPDX-License-Identifier: MIT */
/*
 * The layout of the kernel's records: sample fields, the trailer of the others,
 * and the bodies of MMAP2, COMM, FORK, EXIT, LOST. One decoder for live rings
 * and for files, driven by the attr (linux/perf_event.h, "struct
 * perf_event_header" and below).
 */
#ifndef TICKMAP_CAPTURE_SAMPLE_H
#define TICKMAP_CAPTURE_SAMPLE_H

#include "base/bytes.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What of an attr decides the layout of its records. */
struct tickmap_sample_layout {
	uint64_t sample_type;
	uint64_t read_format;
	uint64_t regs_user; /* mask */
	uint64_t regs_intr;
	uint64_t branch_sample_type;
	bool sample_id_all;
};

enum { TICKMAP_SAMPLE_REGS_MAX = 64 };

/* A decoded sample. Everything borrows from the record's bytes. */
struct tickmap_sample {
	uint64_t ip, time_ns, addr, id, stream_id, period;
	uint32_t pid, tid, cpu;
	size_t chain_count;   /* entries, context markers included */
	const uint8_t *chain; /* u64s, maybe unaligned: use _chain_at */
	bool swap;	      /* chain and stack are in the other order */
	uint64_t regs_abi;    /* PERF_SAMPLE_REGS_ABI_* */
	uint64_t regs_mask;   /* which of regs are set */
	uint64_t regs[TICKMAP_SAMPLE_REGS_MAX]; /* by perf's register number */
	const uint8_t *stack; /* user stack from the stack pointer up */
	size_t stack_size;    /* bytes that really hold stack */
};

uint64_t tickmap_sample_chain_at(const struct tickmap_sample *sample,
				 size_t index);

/* Decodes a PERF_RECORD_SAMPLE; `body` starts behind the header. */
int tickmap_sample_decode(const struct tickmap_sample_layout *layout,
			  struct tickmap_bytes *body,
			  struct tickmap_sample *ret_sample,
			  struct tickmap_error *err);

/* The trailer of a record that is not a sample (zeros where absent). */
struct tickmap_sample_id {
	uint32_t pid, tid, cpu;
	uint64_t time_ns, id;
};
int tickmap_sample_id_decode(const struct tickmap_sample_layout *layout,
			     const uint8_t *record, size_t size, bool swap,
			     struct tickmap_sample_id *ret_id);

/* Bodies. `body` starts behind the header. Strings borrow from it. */
struct tickmap_mmap_record {
	uint32_t pid, tid;
	uint64_t avma, size, file_offset;
	uint32_t maj, min;
	uint64_t ino, ino_generation;
	uint32_t prot, flags;
	uint8_t build_id[20];
	size_t build_id_size; /* 0: the inode fields are set instead */
	const char *path;
};
struct tickmap_comm_record {
	uint32_t pid, tid;
	const char *comm;
	bool exec; /* misc said that this is an exec */
};
struct tickmap_task_record { /* FORK and EXIT */
	uint32_t pid, ppid, tid, ptid;
	uint64_t time_ns;
};

int tickmap_mmap_decode(struct tickmap_bytes *body, uint32_t type,
			uint16_t misc, struct tickmap_mmap_record *ret_mmap);
int tickmap_comm_decode(struct tickmap_bytes *body, uint16_t misc,
			struct tickmap_comm_record *ret_comm);
int tickmap_task_decode(struct tickmap_bytes *body,
			struct tickmap_task_record *ret_task);

#endif

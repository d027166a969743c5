/* SPDX-License-Identifier: MIT */
/*
 * From whole jitdump records to code events and findings: what line and
 * unwinding records say is kept for the LOAD behind them.
 */
#ifndef TICKMAP_CODEMAP_JITDUMP_EMIT_H
#define TICKMAP_CODEMAP_JITDUMP_EMIT_H

#include "base/table.h"
#include "base/vec.h"
#include "codemap/findings.h"
#include "codemap/jitdump_record.h"

/* Small numbers as indexes are the rule: those need no table. */
struct tickmap_jit_indexes {
	TICKMAP_VEC(uint64_t) low;   /* of the header's pid: what each was */
	struct tickmap_table others; /* pid and code_index -> what it was */
};

struct tickmap_jit_emit {
	struct tickmap_code_handler handler;
	struct tickmap_jitdump_header header;
	uint32_t assumed_machine; /* if the header does not say */
	struct tickmap_jitdump_counts counts;
	bool no_memory;

	/* For the next LOAD. */
	struct tickmap_jit_debug debug;
	TICKMAP_VEC(uint8_t) debug_bytes; /* what it points into */
	uint64_t debug_at;		  /* offset of its record */
	bool has_debug;
	struct tickmap_jit_unwinding unwinding;
	TICKMAP_VEC(uint8_t) unwinding_bytes; /* what it points into */
	uint64_t unwinding_at;
	bool has_unwinding;

	struct tickmap_code_event load; /* of the LOAD at hand */
	struct tickmap_jit_indexes indexes;

	/* What is said once a dump. */
	uint64_t latest;	   /* time */
	uint64_t back_at, back_by; /* first place, largest step */
	uint64_t bias_at;	   /* of line addresses: first proof */
	unsigned bias_exact;	   /* functions that begin so */
	bool bias_proved, bias_likely, bias_denied;
	bool said_sign, said_pid, said_zero_time, said_header_time;
	bool closed, said_closed;
};

static inline void tickmap_jit_find(const struct tickmap_jit_emit *emit,
				    enum tickmap_finding_index index,
				    uint64_t offset, uint64_t value)
{
	tickmap_codemap_find(&emit->handler, index, offset, value);
}

/* A record, and what is known of it before it is read. */
struct tickmap_jit_place {
	struct tickmap_jit_prefix prefix;
	uint64_t offset;      /* in the file */
	uint32_t stated_size; /* what the prefix says; prefix.size is right */
	uint32_t fixed;	      /* size of a LOAD's fixed part */
	enum tickmap_jit_verdict verdict;
};

/* `span` holds a whole record. */
void tickmap_jit_emit_record(struct tickmap_jit_emit *emit,
			     struct tickmap_jit_span span,
			     const struct tickmap_jit_place *place);

/* The beginning of a LOAD that goes on behind the end of the file. False: its
 * name is not there. */
bool tickmap_jit_emit_cut_load(struct tickmap_jit_emit *emit,
			       struct tickmap_jit_span span, uint64_t offset,
			       uint32_t fixed);

/* The next LOAD is not the one that what is kept was written for. */
void tickmap_jit_emit_forget(struct tickmap_jit_emit *emit);

/* 0 as long as it is not proved. */
uint64_t tickmap_jit_emit_bias(const struct tickmap_jit_emit *emit);

/* The machine if the header names none. Before the first byte. */
void tickmap_jitdump_assume(struct tickmap_jitdump *dump, uint32_t elf_machine);

void tickmap_jit_emit_end(struct tickmap_jit_emit *emit);
void tickmap_jit_emit_free(struct tickmap_jit_emit *emit);

#endif

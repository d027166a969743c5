/* SPDX-License-Identifier: MIT */
/*
 * From whole jitdump records to code events and findings: what line and
 * unwinding records say is kept for the LOAD behind them.
 */
#ifndef TICKMAP_CODEMAP_JITDUMP_EMIT_H
#define TICKMAP_CODEMAP_JITDUMP_EMIT_H

#include "base/table.h"
#include "base/vec.h"
#include "codemap/codemap.h"
#include "codemap/jitdump_record.h"

struct tickmap_jit_emit {
	struct tickmap_code_handler handler;
	uint32_t elf_machine, pid; /* of the header */
	bool no_memory;

	/* For the next LOAD. */
	struct tickmap_jit_debug debug; /* its file is in debug_file */
	TICKMAP_VEC(char) debug_file;
	uint64_t debug_at; /* offset of its record */
	bool has_debug;
	TICKMAP_VEC(uint8_t) eh_frame;
	uint64_t eh_frame_at;
	bool has_eh_frame;

	struct tickmap_table indexes; /* pid and code_index -> what it was */

	/* What is said once a dump. */
	uint64_t latest;	   /* time */
	uint64_t back_at, back_by; /* first place, largest step */
	uint64_t bias_at;	   /* of line addresses: first proof */
	bool bias_proved, bias_denied;
	bool said_sign, said_pid, said_zero_time;
};

void tickmap_jit_finding(const struct tickmap_jit_emit *emit, const char *id,
			 uint64_t offset, uint64_t value, bool error,
			 const char *what);

/* `b` holds a whole record, `offset` is its place in the file. */
void tickmap_jit_emit_record(struct tickmap_jit_emit *emit,
			     struct tickmap_bytes b, uint64_t offset,
			     uint32_t fixed);

/* The beginning of a LOAD that goes on behind the end of the file. False: its
 * name is not there. */
bool tickmap_jit_emit_cut_load(struct tickmap_jit_emit *emit,
			       struct tickmap_bytes b, uint64_t offset,
			       uint32_t fixed);

/* The next LOAD is not the one that what is kept was written for. */
void tickmap_jit_emit_forget(struct tickmap_jit_emit *emit);

void tickmap_jit_emit_end(struct tickmap_jit_emit *emit);
void tickmap_jit_emit_free(struct tickmap_jit_emit *emit);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * A jitdump made anew. repair.c takes it apart and decides what stays, and
 * repair_write.c writes that down.
 */
#ifndef TICKMAP_CODEMAP_REPAIR_H
#define TICKMAP_CODEMAP_REPAIR_H

#include "base/arena.h"
#include "base/vec.h"
#include "codemap/codemap.h"

/* A LOAD with all that belongs to it, or a MOVE. */
struct tickmap_repair_item {
	uint64_t when, order;
	uint64_t avma, size, old_avma, index;
	uint32_t pid, tid;
	bool move, dropped;
	const uint8_t *name; /* in the input or the arena, as all of these */
	size_t name_length;
	const uint8_t *code;
	size_t code_there; /* less than size: zeros follow */
	/* Entries as they are written, but for the bias. */
	const uint8_t *lines;
	uint32_t lines_size, line_count;
	const uint8_t *unwinding; /* .eh_frame, then .eh_frame_hdr */
	uint32_t unwinding_size, header_size;
	uint64_t mapped_size;
};

struct tickmap_repair {
	struct tickmap_jitdump *dump; /* reads it */
	const uint8_t *input;
	size_t input_size;
	struct tickmap_jitdump_header header;
	struct tickmap_arena arena;
	TICKMAP_VEC(struct tickmap_repair_item) items;
	uint64_t bias; /* of line addresses */
	struct tickmap_repair_counts counts;
	bool no_memory;
};

/* False: the sink gave up, or there was no memory (no_memory). */
bool tickmap_repair_write(struct tickmap_repair *repair,
			  tickmap_repair_sink sink, void *context);

/* Nothing of size 0 stays. False: out of memory. */
bool tickmap_repair_empty(struct tickmap_repair *repair);

/* Unwinding data and their header as perf wants them, in the arena. False: out
 * of memory. */
bool tickmap_repair_unwinding(struct tickmap_repair *repair,
			      const struct tickmap_code_event *event,
			      struct tickmap_repair_item *item);

#endif

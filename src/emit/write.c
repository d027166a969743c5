/* SPDX-License-Identifier: MIT */
/* Codes to the files: the records of one or some of them in one append. */
#include "internal.h"

/* Three pieces a code: its records, its bytes, its tail. */
#define PIECES (3 * EMIT_GROUP)

struct group {
	struct emit_out out;
	struct iovec iov[PIECES];
	int pieces;
	uint64_t total;
};

static void add_piece(struct group *group, const void *bytes, uint64_t size)
{
	if (!size)
		return;
	/* iovec has no const; writev does not write. */
	group->iov[group->pieces].iov_base = (void *)(uintptr_t)bytes;
	group->iov[group->pieces++].iov_len = (size_t)size;
	group->total += size;
}

/* False: it does not fit what is left of the group, which is as before. */
static bool add_code(struct group *group, const struct emit_code *code,
		     const struct emit_stamp *stamp)
{
	size_t start = group->out.used;
	uint64_t size = code->code.bytes ? code->code.code_size : 0;

	tickmap_emit_jitdump_code(&group->out, code, stamp);
	if (group->out.full ||
	    group->out.used - start + size + code->tail_size >
		    EMIT_MAX_APPEND - group->total) {
		group->out.full = false;
		group->out.used = start;
		return false;
	}
	add_piece(group, group->out.base + start, group->out.used - start);
	add_piece(group, code->code.bytes, size);
	add_piece(group, &code->index, code->tail_size);
	return true;
}

static void set_all(int *statuses, size_t count, int status)
{
	for (size_t i = 0; i < count; i++) {
		if (!statuses[i])
			statuses[i] = status;
	}
}

static size_t write_dump(struct tickmap_emit *emit, struct emit_code **codes,
			 int *statuses, size_t count)
{
	struct group group = { .out = tickmap_emit_empty_out(emit) };
	size_t i;

	for (i = 0; i < count; i++) {
		struct emit_stamp stamp = { .ns = tickmap_emit_now(emit),
					    .pid = emit->pid,
					    .tid = codes[i]->tid };

		/* Nothing can be sampled in no bytes, and perf 6.1 may never
		 * end over a mapping without any. */
		if (!codes[i]->code.code_size && !codes[i]->tail_size)
			continue;
		if (statuses[i] || add_code(&group, codes[i], &stamp))
			continue;
		if (group.pieces)
			break; /* in the next append */
		statuses[i] = TICKMAP_EMIT_E_TOO_LARGE;
	}
	if (group.pieces)
		set_all(statuses, i,
			tickmap_emit_append(emit, &emit->dump, group.iov,
					    group.pieces));
	return i;
}

static void write_map(struct tickmap_emit *emit, struct emit_code **codes,
		      int *statuses, size_t count)
{
	struct emit_out out = tickmap_emit_empty_out(emit);

	for (size_t i = 0; i < count; i++) {
		size_t start = out.used;

		if (statuses[i])
			continue;
		tickmap_emit_perfmap_line(&out, &codes[i]->code);
		if (!out.full)
			continue;
		out.full = false;
		out.used = start;
		statuses[i] = TICKMAP_EMIT_E_TOO_LARGE;
	}
	if (out.used)
		set_all(statuses, count,
			tickmap_emit_append_out(emit, &emit->map, &out));
}

size_t tickmap_emit_write_codes(struct tickmap_emit *emit,
				struct emit_code **codes, int *statuses,
				size_t count)
{
	if (count > EMIT_GROUP)
		count = EMIT_GROUP;
	if (emit->dump.fd >= 0)
		count = write_dump(emit, codes, statuses, count);
	if (emit->map.fd >= 0)
		write_map(emit, codes, statuses, count);
	return count;
}

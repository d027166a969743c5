/* SPDX-License-Identifier: MIT */
/*
 * The code that is live, for the sinks that must remember it: a copy of each
 * function, in an array ordered by address. JITs hand out rising addresses, so
 * that most insertions are at its end.
 */
#include "internal.h"

#include <string.h>

struct emit_live {
	struct emit_code code; /* points into this block */
	struct emit_gdb *gdb;
	size_t size; /* of this block */
	union emit_align data[];
};

bool tickmap_emit_remembers(const struct tickmap_emit *emit)
{
	return emit->options.sinks & TICKMAP_EMIT_GDB ||
	       emit->options.flags & TICKMAP_EMIT_REPUBLISH;
}

/* Copies into a block, or, with a NULL base, adds up what they need. */
struct copier {
	uint8_t *base;
	size_t used;
};

static const void *copy_bytes(struct copier *to, const void *bytes, size_t size)
{
	const size_t unit = sizeof(union emit_align);
	uint8_t *at = to->base ? to->base + to->used : NULL;

	if (!bytes)
		return NULL;
	if (at && size)
		memcpy(at, bytes, size);
	to->used += (size + unit - 1) / unit * unit;
	return at;
}

static const char *copy_text(struct copier *to, const char *text)
{
	return text ? copy_bytes(to, text, strlen(text) + 1) : NULL;
}

static void copy_lines(struct copier *to, const struct tickmap_code *from,
		       struct tickmap_code *code)
{
	size_t size = from->line_count * sizeof(*from->lines);
	/* Written to again below, in our own block. */
	struct tickmap_line *lines =
		(struct tickmap_line *)(uintptr_t)copy_bytes(to, from->lines,
							     size);
	const char *last = NULL;
	const char *last_copy = NULL;

	for (size_t i = 0; i < from->line_count; i++) {
		const char *file = from->lines[i].file;

		if (file != last)
			last_copy = copy_text(to, file);
		last = file;
		if (lines)
			lines[i].file = last_copy;
	}
	code->lines = lines;
}

static void copy_code(struct copier *to, const struct emit_code *from,
		      struct emit_code *ret_code, bool with_bytes)
{
	struct tickmap_code *code = &ret_code->code;

	*ret_code = *from;
	code->name = copy_bytes(to, from->code.name, from->code.name_length);
	code->file = copy_text(to, from->code.file);
	if (from->code.line_count)
		copy_lines(to, &from->code, code);
	ret_code->cfi.bytes =
		from->cfi.size ? copy_bytes(to, from->cfi.bytes, from->cfi.size)
			       : NULL;
	code->unwind = NULL;
	code->eh_frame = NULL;
	code->bytes = with_bytes ? copy_bytes(to, from->code.bytes,
					      (size_t)from->code.code_size)
				 : NULL;
}

static bool make_room(struct tickmap_emit *emit)
{
	size_t room = emit->live_room ? emit->live_room * 2 : 256;
	size_t size = emit->live_room * sizeof(*emit->live);
	struct emit_live **live;

	if (emit->live_count < emit->live_room)
		return true;
	if (room > SIZE_MAX / sizeof(*live))
		return false;
	live = tickmap_emit_allocate(emit, room * sizeof(*live));
	if (!live)
		return false;
	if (size)
		memcpy(live, emit->live, size);
	emit->live_changing = true;
	tickmap_emit_release(emit, emit->live, size);
	emit->live = live;
	emit->live_room = room;
	emit->live_changing = false;
	return true;
}

int tickmap_emit_live_new(struct tickmap_emit *emit,
			  const struct emit_code *code,
			  struct emit_live **ret_entry)
{
	bool with_bytes = emit->options.flags & TICKMAP_EMIT_REPUBLISH;
	struct copier to = { 0 };
	struct emit_live *entry;
	struct emit_code measured;
	size_t size;
	int status;

	copy_code(&to, code, &measured, with_bytes);
	size = sizeof(*entry) + to.used;
	if (!make_room(emit))
		return TICKMAP_EMIT_E_NOMEM;
	entry = tickmap_emit_allocate(emit, size);
	if (!entry)
		return TICKMAP_EMIT_E_NOMEM;
	to = (struct copier) { .base = (uint8_t *)entry->data };
	copy_code(&to, code, &entry->code, with_bytes);
	entry->size = size;
	entry->gdb = NULL;
	if (emit->options.sinks & TICKMAP_EMIT_GDB) {
		status = tickmap_emit_gdb_new(emit, &entry->code, &entry->gdb);
		if (status) {
			tickmap_emit_live_drop(emit, entry);
			return status;
		}
	}
	*ret_entry = entry;
	return TICKMAP_EMIT_OK;
}

void tickmap_emit_live_drop(struct tickmap_emit *emit, struct emit_live *entry)
{
	tickmap_emit_gdb_drop(emit, entry->gdb);
	tickmap_emit_release(emit, entry, entry->size);
}

static uint64_t start_of(const struct emit_live *entry)
{
	return entry->code.code.addr;
}

static uint64_t end_of(const struct emit_live *entry)
{
	return entry->code.code.addr + entry->code.code.code_size;
}

/* The first entry that ends behind addr. */
static size_t find_live(const struct tickmap_emit *emit, uint64_t addr)
{
	size_t low = 0;
	size_t high = emit->live_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (end_of(emit->live[middle]) <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void take_out(struct tickmap_emit *emit, size_t first, size_t count)
{
	emit->live_count -= count;
	memmove(emit->live + first, emit->live + first + count,
		(emit->live_count - first) * sizeof(*emit->live));
}

/* Drop what overlaps the range; returns where the range belongs. */
static size_t clear_range(struct tickmap_emit *emit, uint64_t start,
			  uint64_t end)
{
	size_t first = find_live(emit, start);
	size_t last = first;

	while (last < emit->live_count && start_of(emit->live[last]) < end)
		tickmap_emit_live_drop(emit, emit->live[last++]);
	take_out(emit, first, last - first);
	return first;
}

void tickmap_emit_live_insert(struct tickmap_emit *emit,
			      struct emit_live *entry)
{
	size_t at;

	emit->live_changing = true;
	at = clear_range(emit, start_of(entry), end_of(entry));
	memmove(emit->live + at + 1, emit->live + at,
		(emit->live_count - at) * sizeof(*emit->live));
	emit->live[at] = entry;
	emit->live_count++;
	if (entry->gdb)
		tickmap_emit_gdb_register(entry->gdb);
	emit->live_changing = false;
}

void tickmap_emit_live_remove(struct tickmap_emit *emit, uint64_t addr)
{
	size_t at = find_live(emit, addr);

	if (at >= emit->live_count || start_of(emit->live[at]) != addr)
		return;
	emit->live_changing = true;
	tickmap_emit_live_drop(emit, emit->live[at]);
	take_out(emit, at, 1);
	emit->live_changing = false;
}

int tickmap_emit_live_move(struct tickmap_emit *emit, uint64_t old_addr,
			   uint64_t new_addr, uint64_t index)
{
	size_t at = find_live(emit, old_addr);
	struct emit_gdb *moved = NULL;
	struct emit_live *entry;
	int status;

	if (at >= emit->live_count)
		return TICKMAP_EMIT_OK;
	entry = emit->live[at];
	if (start_of(entry) != old_addr || entry->code.index != index)
		return TICKMAP_EMIT_OK;
	entry->code.code.addr = new_addr;
	if (entry->gdb) {
		status = tickmap_emit_gdb_new(emit, &entry->code, &moved);
		if (status) {
			entry->code.code.addr = old_addr;
			return status;
		}
	}
	emit->live_changing = true;
	take_out(emit, at, 1);
	tickmap_emit_gdb_drop(emit, entry->gdb);
	entry->gdb = moved;
	emit->live_changing = false;
	/* There is room: it has just been taken out. */
	tickmap_emit_live_insert(emit, entry);
	return TICKMAP_EMIT_OK;
}

int tickmap_emit_live_publish(struct tickmap_emit *emit)
{
	int status = TICKMAP_EMIT_OK;

	for (size_t i = 0; i < emit->live_count && !status; i++) {
		struct emit_code *code = &emit->live[i]->code;

		code->tid = tickmap_emit_os_tid(emit->pid);
		tickmap_emit_write_codes(emit, &code, &status, 1);
	}
	return status;
}

void tickmap_emit_live_clear(struct tickmap_emit *emit)
{
	for (size_t i = 0; i < emit->live_count; i++)
		tickmap_emit_live_drop(emit, emit->live[i]);
	tickmap_emit_release(emit, emit->live,
			     emit->live_room * sizeof(*emit->live));
	emit->live = NULL;
	emit->live_count = 0;
	emit->live_room = 0;
}

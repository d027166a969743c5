/* SPDX-License-Identifier: MIT */
/* The repaired dump, record by record, in the byte order of the damaged one. */
#include "codemap/repair.h"

#include "codemap/jitdump_record.h"

#include <string.h>

enum { HEADER = 40, HDR_SIZE = 20 };

struct out {
	tickmap_repair_sink sink;
	void *context;
	bool swap, good;
	size_t used;
	uint8_t bytes[128]; /* fixed parts */
};

static void put_bytes(struct out *out, const void *bytes, size_t size)
{
	if (size && out->good)
		out->good = out->sink(out->context, bytes, size);
}

static void put_u32(struct out *out, uint32_t value)
{
	if (out->swap)
		value = __builtin_bswap32(value);
	memcpy(out->bytes + out->used, &value, sizeof(value));
	out->used += sizeof(value);
}

static void put_u64(struct out *out, uint64_t value)
{
	if (out->swap)
		value = __builtin_bswap64(value);
	memcpy(out->bytes + out->used, &value, sizeof(value));
	out->used += sizeof(value);
}

static void flush(struct out *out)
{
	put_bytes(out, out->bytes, out->used);
	out->used = 0;
}

static void put_zeros(struct out *out, uint64_t size)
{
	static const uint8_t zeros[4096];

	for (; size && out->good; size -= size < 4096 ? size : 4096)
		put_bytes(out, zeros, size < 4096 ? (size_t)size : 4096);
}

static uint32_t padding(uint64_t size)
{
	return (uint32_t)(-size & 7);
}

static void put_prefix(struct out *out, uint32_t id, uint64_t size,
		       uint64_t when)
{
	put_u32(out, id);
	put_u32(out, (uint32_t)size);
	put_u64(out, when);
}

static void put_header(struct out *out,
		       const struct tickmap_jitdump_header *header)
{
	put_u32(out, 0x4a695444);
	put_u32(out, header->version);
	put_u32(out, HEADER);
	put_u32(out, header->elf_machine);
	put_u32(out, 0);
	put_u32(out, header->pid);
	put_u64(out, header->timestamp);
	put_u64(out, header->flags);
	flush(out);
}

static void put_debug(struct out *out, const struct tickmap_repair_item *item,
		      uint64_t bias)
{
	uint64_t size = TICKMAP_JIT_DEBUG_FIXED + (uint64_t)item->lines_size;
	uint32_t pad = padding(size);
	const uint8_t *at = item->lines;

	put_prefix(out, TICKMAP_JIT_DEBUG_INFO, size + pad, item->when);
	put_u64(out, item->avma);
	put_u64(out, item->line_count);
	flush(out);
	for (uint32_t i = 0; i < item->line_count; i++) {
		uint64_t avma;
		uint32_t line, column;
		size_t name = strlen((const char *)at + 16) + 1;
		memcpy(&avma, at, 8);
		memcpy(&line, at + 8, 4);
		memcpy(&column, at + 12, 4);
		put_u64(out, avma - bias);
		put_u32(out, line);
		put_u32(out, column);
		flush(out);
		put_bytes(out, at + 16, name);
		at += 16 + name;
	}
	put_zeros(out, pad);
}

/* Bytes that producers say lie behind the code. They may be rounded up a
 * little; otherwise what there is counts. */
static uint64_t mapped(const struct tickmap_repair_item *item)
{
	uint64_t size = item->unwinding_size;

	if (!item->mapped_size)
		return 0;
	if (item->mapped_size >= size && item->mapped_size - size < 32)
		return item->mapped_size;
	return size + padding(size);
}

static void put_unwinding(struct out *out,
			  const struct tickmap_repair_item *item)
{
	uint64_t size =
		TICKMAP_JIT_UNWINDING_FIXED + (uint64_t)item->unwinding_size;
	uint32_t pad = padding(size);

	put_prefix(out, TICKMAP_JIT_UNWINDING_INFO, size + pad, item->when);
	put_u64(out, item->unwinding_size);
	put_u64(out, item->header_size);
	put_u64(out, mapped(item));
	flush(out);
	put_bytes(out, item->unwinding, item->unwinding_size);
	put_zeros(out, pad);
}

static void put_load(struct out *out, const struct tickmap_repair_item *item)
{
	put_prefix(out, TICKMAP_JIT_LOAD,
		   TICKMAP_JIT_LOAD_FIXED + item->name_length + 1 + item->size,
		   item->when);
	put_u32(out, item->pid);
	put_u32(out, item->tid);
	put_u64(out, item->avma);
	put_u64(out, item->avma);
	put_u64(out, item->size);
	put_u64(out, item->index);
	flush(out);
	put_bytes(out, item->name, item->name_length);
	put_zeros(out, 1);
	put_bytes(out, item->code, item->code_there);
	put_zeros(out, item->size - item->code_there);
}

static void put_move(struct out *out, const struct tickmap_repair_item *item)
{
	put_prefix(out, TICKMAP_JIT_MOVE, TICKMAP_JIT_MOVE_FIXED, item->when);
	put_u32(out, item->pid);
	put_u32(out, item->tid);
	put_u64(out, item->avma);
	put_u64(out, item->old_avma);
	put_u64(out, item->avma);
	put_u64(out, item->size);
	put_u64(out, item->index);
	flush(out);
}

bool tickmap_repair_write(struct tickmap_repair *repair,
			  tickmap_repair_sink sink, void *context)
{
	struct out out = { .sink = sink,
			   .context = context,
			   .swap = repair->header.swap,
			   .good = true };
	uint64_t last = repair->header.timestamp;

	put_header(&out, &repair->header);
	for (size_t i = 0; out.good && i < repair->items.count; i++) {
		const struct tickmap_repair_item *item =
			&repair->items.items[i];
		if (item->dropped)
			continue;
		last = item->when;
		if (item->move) {
			put_move(&out, item);
			repair->counts.moves++;
			continue;
		}
		if (item->line_count)
			put_debug(&out, item, repair->bias);
		if (item->unwinding_size)
			put_unwinding(&out, item);
		put_load(&out, item);
		repair->counts.functions++;
	}
	put_prefix(&out, TICKMAP_JIT_CLOSE, TICKMAP_JIT_PREFIX, last);
	flush(&out);
	return out.good;
}

/* Where the first entry that describes code begins; 0: there is none. */
static uint32_t find_entry(const uint8_t *frame, size_t size, bool swap)
{
	struct tickmap_bytes b = tickmap_bytes_of(frame, size);

	b.swap = swap;
	while (tickmap_bytes_left(&b) >= 8) {
		size_t at = b.pos;
		uint32_t length = tickmap_u32(&b);
		uint32_t common = tickmap_u32(&b);
		if (length < 4 || length == UINT32_MAX)
			break;
		if (common)
			return at < INT32_MAX ? (uint32_t)at : 0;
		tickmap_take(&b, length - 4);
	}
	return 0;
}

/*
 * A search table of one function, whose data lie directly behind its code: all
 * its numbers are distances from the table itself, which follows the frame.
 */
static void make_header(const struct tickmap_code_event *event, bool swap,
			uint8_t *out)
{
	/* version; distance from here; 4 bytes; distance from the table */
	static const uint8_t forms[] = { 1, 0x1b, 0x03, 0x3b };
	uint32_t frame = (uint32_t)event->eh_frame_size;
	uint32_t code = (uint32_t)((event->size + 7) & ~UINT64_C(7));
	uint32_t entry = find_entry(event->eh_frame, frame, swap);
	uint32_t values[] = { -(frame + 4), entry != 0, -(frame + code),
			      entry - frame };

	memcpy(out, forms, sizeof(forms));
	for (size_t i = 0; i < 4; i++) {
		if (swap)
			values[i] = __builtin_bswap32(values[i]);
		memcpy(out + 4 + 4 * i, &values[i], 4);
	}
}

bool tickmap_repair_unwinding(struct tickmap_repair *repair,
			      const struct tickmap_code_event *event,
			      struct tickmap_repair_item *item)
{
	size_t header =
		event->eh_frame_hdr ? event->eh_frame_hdr_size : HDR_SIZE;
	size_t frame = event->eh_frame_size;
	uint8_t *copy;

	if (frame > UINT32_MAX / 2 || header > UINT32_MAX / 4)
		return true;
	copy = tickmap_arena_alloc(&repair->arena, frame + header);
	if (!copy)
		return false;
	if (frame)
		memcpy(copy, event->eh_frame, frame);
	if (event->eh_frame_hdr)
		memcpy(copy + frame, event->eh_frame_hdr, header);
	else
		make_header(event, tickmap_jitdump_header(repair->dump)->swap,
			    copy + frame);
	item->unwinding = copy;
	item->unwinding_size = (uint32_t)(frame + header);
	item->header_size = (uint32_t)header;
	item->mapped_size = event->mapped_size;
	return true;
}

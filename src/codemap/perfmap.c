/* SPDX-License-Identifier: MIT */
/*
 * A perf map: lines of START SIZE NAME, both numbers in hex with or without 0x.
 * The name is everything behind one separator, whatever its bytes.
 */
#include "codemap/findings.h"

#include "base/bytes.h"
#include "base/utf8.h"
#include "base/vec.h"

#include <stdlib.h>

enum {
	LINE_MAX_BYTES = 64 << 10,
	/* What an entry counts for whose size cannot be right. */
	SIZE_UNKNOWN = 4096,
};

/* No function is larger: 256 MiB. */
#define SIZE_MAX_BELIEVED (UINT64_C(1) << 28)

struct tickmap_perfmap {
	struct tickmap_code_handler handler;
	TICKMAP_VEC(char) line; /* begun, its newline not seen yet */
	uint64_t line_at;	/* offset of its first byte */
	uint64_t fed;
	bool overlong; /* the rest of the line is thrown away */
	bool said_cr;
};

struct tickmap_perfmap *
tickmap_perfmap_new(const struct tickmap_code_handler *handler)
{
	struct tickmap_perfmap *map = calloc(1, sizeof(*map));

	if (map)
		map->handler = *handler;
	return map;
}

void tickmap_perfmap_free(struct tickmap_perfmap *map)
{
	if (!map)
		return;
	tickmap_vec_free(&map->line);
	free(map);
}

static void find(const struct tickmap_perfmap *map,
		 enum tickmap_finding_index index, uint64_t offset,
		 uint64_t value)
{
	tickmap_codemap_find(&map->handler, index, offset, value);
}

static void show(const struct tickmap_perfmap *map,
		 const struct tickmap_code_event *event, uint64_t size)
{
	struct tickmap_codemap_record record = {
		.id = TICKMAP_RECORD_LOAD,
		.offset = event->offset,
		.size = size,
		.when = event->when,
		.avma = event->avma,
		.code_size = event->size,
		.name = event->name,
		.name_length = event->name_length,
	};

	if (map->handler.record)
		map->handler.record(map->handler.context, &record);
}

static bool is_utf8(const char *name, size_t length)
{
	for (size_t i = 0; i < length;) {
		uint64_t word, high = UINT64_C(0x8080808080808080);
		if (length - i >= sizeof(word)) {
			memcpy(&word, name + i, sizeof(word));
			if (!(word & high)) {
				i += sizeof(word);
				continue;
			}
		}
		size_t step = tickmap_utf8_length(name + i, length - i);
		if (!step)
			return false;
		i += step;
	}
	return true;
}

static void find_name_odd(const struct tickmap_perfmap *map,
			  const struct tickmap_code_event *event)
{
	if (!map->handler.finding)
		return;
	if (!is_utf8(event->name, event->name_length))
		find(map, TICKMAP_FOUND_PM008, event->offset,
		     event->name_length);
	if (event->name_length < 3)
		find(map, TICKMAP_FOUND_PM009, event->offset,
		     event->name_length);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static unsigned hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return (unsigned)(c - '0');
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10) : 16;
}

/* Blanks, then a number of at most 64 bits and a blank behind it, or the end.
 */
static bool read_hex(struct tickmap_bytes *b, uint64_t *ret_value)
{
	const char *at = (const char *)b->base + b->pos;
	const char *end = (const char *)b->base + b->size;
	uint64_t value = 0;
	const char *first;
	unsigned digit;

	while (at < end && is_blank(*at))
		at++;
	if (end - at > 1 && *at == '0' && (at[1] | 0x20) == 'x')
		at += 2;
	for (first = at; at < end && (digit = hex_digit(*at)) < 16; at++) {
		if (value >> 60)
			return false;
		value = value << 4 | digit;
	}
	tickmap_seek(b, (size_t)(at - (const char *)b->base));
	*ret_value = value;
	return at > first && (at == end || is_blank(*at));
}

static bool read_entry(const char *line, size_t length,
		       struct tickmap_code_event *event)
{
	struct tickmap_bytes b = tickmap_bytes_of(line, length);

	if (!read_hex(&b, &event->avma) || !read_hex(&b, &event->size))
		return false;
	/* One blank only: what else is there belongs to the name. */
	if (tickmap_bytes_left(&b) < 2)
		return false;
	tickmap_u8(&b);
	event->name_length = tickmap_bytes_left(&b);
	event->name = (const char *)tickmap_take(&b, event->name_length);
	return true;
}

static void take_line(struct tickmap_perfmap *map, const char *line,
		      size_t length, uint64_t offset, uint64_t when)
{
	uint64_t end_offset = offset + length;
	struct tickmap_code_event event = { .kind = TICKMAP_CODE_LOAD,
					    .when = when,
					    .offset = offset };

	if (length && line[length - 1] == '\r') {
		while (length && line[length - 1] == '\r')
			length--;
		if (!map->said_cr)
			find(map, TICKMAP_FOUND_PM003, offset, 0);
		map->said_cr = true;
	}
	if (!length || line[0] == '#')
		return;
	if (!read_entry(line, length, &event)) {
		find(map, TICKMAP_FOUND_PM001, offset, length);
		return;
	}
	show(map, &event, end_offset - offset);
	if (!event.size) {
		find(map, TICKMAP_FOUND_PM002, offset, event.avma);
		return;
	}
	if (event.size - 1 > UINT64_MAX - event.avma) {
		find(map, TICKMAP_FOUND_PM006, offset, event.size);
		return;
	}
	find_name_odd(map, &event);
	if (event.size > SIZE_MAX_BELIEVED) {
		find(map, TICKMAP_FOUND_PM007, offset, event.size);
		event.size = SIZE_UNKNOWN;
	}
	if (map->handler.code)
		map->handler.code(map->handler.context, &event);
}

static void end_line(struct tickmap_perfmap *map, uint64_t when)
{
	take_line(map, map->line.items, map->line.count, map->line_at, when);
	map->line.count = 0;
	map->overlong = false;
}

/* Part of a line without its newline. */
static bool keep(struct tickmap_perfmap *map, const char *bytes, size_t size)
{
	size_t room;

	if (!map->line.count) {
		/* A file cut short under its writer has a hole of zeros. */
		while (size && !*bytes) {
			bytes++;
			size--;
			map->fed++;
		}
		map->line_at = map->fed;
	}
	map->fed += size;
	room = LINE_MAX_BYTES - map->line.count;
	if (size > room) {
		if (!map->overlong)
			find(map, TICKMAP_FOUND_PM005, map->line_at,
			     LINE_MAX_BYTES);
		map->overlong = true;
		size = room;
	}
	if (!size)
		return true;
	if (!tickmap_vec_reserve(&map->line, map->line.count + size))
		return false;
	memcpy(map->line.items + map->line.count, bytes, size);
	map->line.count += size;
	return true;
}

bool tickmap_perfmap_feed(struct tickmap_perfmap *map, const void *bytes,
			  size_t size, uint64_t when)
{
	const char *at = bytes;

	while (size) {
		const char *newline = memchr(at, '\n', size);
		size_t length = newline ? (size_t)(newline - at) : size;
		/* Most lines lie in one piece, and need no copy. */
		if (newline && !map->line.count && *at &&
		    length <= LINE_MAX_BYTES) {
			take_line(map, at, length, map->fed, when);
			map->fed += length + 1;
			at = newline + 1;
			size -= length + 1;
			continue;
		}
		if (!keep(map, at, length))
			return false;
		if (!newline)
			return true;
		end_line(map, when);
		map->fed++;
		at = newline + 1;
		size -= length + 1;
	}
	return true;
}

void tickmap_perfmap_end(struct tickmap_perfmap *map, uint64_t when)
{
	if (!map->line.count)
		return;
	find(map, TICKMAP_FOUND_PM004, map->line_at, map->line.count);
	end_line(map, when);
}

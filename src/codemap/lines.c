/* SPDX-License-Identifier: MIT */
/*
 * The line entries of a debug record: address, line, column, name and NUL, one
 * behind the other. V8 writes freed memory as names, of the right length but
 * with NULs in them; such entries are found by their distance instead.
 */
#include "codemap/jitdump_record.h"

#include "base/utf8.h"

enum {
	ENTRY_FIXED = 16,
	/* With an empty name, and with one that says "as before". */
	ENTRY_MINIMUM = 17,
	ENTRY_REPEAT = 18,
	PADDING_MAX = 15,
};

/* Text that a person could have given a file. What is not UTF-8 may be of an
 * older encoding, if it looks like text all the same. */
static bool is_file_name(const char *name, size_t length)
{
	size_t plain = 0;
	bool utf8 = true;

	for (size_t i = 0; i < length;) {
		unsigned char c = (unsigned char)name[i];
		size_t step = tickmap_utf8_length(name + i, length - i);
		if (c < 0x20 || c == 0x7f || (!step && c >= 0x80 && c < 0xa0))
			return false;
		utf8 = utf8 && step;
		plain += c < 0x80;
		i += step ? step : 1;
	}
	return length && (utf8 || (length >= 4 && plain * 4 >= length * 3));
}

static struct tickmap_bytes cursor(const struct tickmap_code_lines *lines)
{
	struct tickmap_bytes b =
		tickmap_bytes_of(lines->at, (size_t)(lines->end - lines->at));

	b.swap = lines->swap;
	return b;
}

/* The name behind an entry's numbers; NULL and false: it does not end. */
static bool read_name(struct tickmap_code_lines *lines, struct tickmap_bytes *b,
		      struct tickmap_code_line *line)
{
	size_t length;
	const char *name = tickmap_cstr(b, &length);

	if (!name)
		return false;
	if (length == 1 && (unsigned char)name[0] == 0xff) {
		line->file = lines->last_file;
		line->file_length = lines->last_file_length;
		return true;
	}
	/* Mostly it is the same again. */
	if (lines->last_file && length == lines->last_file_length &&
	    !memcmp(name, lines->last_file, length)) {
		line->file = lines->last_file;
		line->file_length = length;
		return true;
	}
	line->file = !length || is_file_name(name, length) ? name : NULL;
	line->file_length = line->file ? length : 0;
	lines->last_file = line->file;
	lines->last_file_length = line->file_length;
	return true;
}

bool tickmap_code_lines_next(struct tickmap_code_lines *lines,
			     struct tickmap_code_line *ret_line)
{
	struct tickmap_bytes b = cursor(lines);
	struct tickmap_code_line line = { .file = NULL };

	if (!lines->count)
		return false;
	line.avma = tickmap_u64(&b);
	line.line = tickmap_u32(&b);
	line.column = tickmap_u32(&b);
	if (lines->stride) {
		tickmap_take(&b, lines->first - ENTRY_FIXED);
		lines->first = lines->stride;
	} else if (!read_name(lines, &b, &line)) {
		b.failed = true;
	}
	if (b.failed) {
		lines->count = 0;
		return false;
	}
	lines->at += b.pos;
	lines->count--;
	if (lines->narrow && tickmap_jit_is_sign_extended(line.avma))
		line.avma &= UINT32_MAX;
	if (lines->nameless) {
		line.file = NULL;
		line.file_length = 0;
	}
	*ret_line = line;
	return true;
}

/* Do entries that far apart look like entries? */
static bool is_walk(struct tickmap_code_lines lines)
{
	struct tickmap_code_line line;
	uint64_t before = 0;
	bool first = true;

	while (lines.count) {
		const uint8_t *at = lines.at;
		if (!tickmap_code_lines_next(&lines, &line) || lines.at[-1] ||
		    !line.line || line.line >> 24 || line.avma < before ||
		    (!first && (line.avma - before) >> 32))
			return false;
		/* In the repeating form all but the first say so. */
		if (!first && lines.stride == ENTRY_REPEAT &&
		    at[ENTRY_FIXED] != 0xff)
			return false;
		before = line.avma;
		first = false;
	}
	return true;
}

/* The distance of entries whose names cannot be walked, as all have one name:
 * written out each time, or once with repeats behind it. */
static bool find_stride(struct tickmap_code_lines *lines)
{
	size_t room = (size_t)(lines->end - lines->at);

	for (size_t pad = 0; pad < 8 && pad < room; pad++) {
		size_t all = room - pad, others;
		lines->stride = lines->first = (uint32_t)(all / lines->count);
		if (all % lines->count == 0 && lines->stride >= ENTRY_MINIMUM &&
		    is_walk(*lines))
			return true;
		others = (size_t)(lines->count - 1) * ENTRY_REPEAT;
		if (lines->count < 2 || all < others + ENTRY_MINIMUM)
			continue;
		lines->stride = ENTRY_REPEAT;
		lines->first = (uint32_t)(all - others);
		if (is_walk(*lines))
			return true;
	}
	lines->stride = lines->first = 0;
	return false;
}

/* What the record says as a whole. Returns where the walk ended. */
static const uint8_t *walk(struct tickmap_code_lines lines,
			   struct tickmap_jit_debug *debug)
{
	struct tickmap_code_line line;

	debug->first = UINT64_MAX;
	debug->last = debug->lines.count = 0;
	debug->line = 0;
	debug->file = NULL;
	debug->file_length = 0;
	while (tickmap_code_lines_next(&lines, &line)) {
		if (!line.file)
			debug->damaged = true;
		if (line.avma < debug->first)
			debug->first = line.avma;
		if (line.avma > debug->last)
			debug->last = line.avma;
		if (!debug->line && line.line) {
			debug->line = line.line;
			debug->file = line.file_length ? line.file : NULL;
			debug->file_length = line.file_length;
		}
		debug->lines.count++;
	}
	return lines.at;
}

/* The names cannot be walked. What is left are the numbers of the first entry,
 * and of the others if their distance shows. */
static void walk_damaged(struct tickmap_code_lines *lines,
			 struct tickmap_jit_debug *debug)
{
	bool one = debug->lines.count > 0;

	debug->damaged = true;
	if (!lines->count || !find_stride(lines))
		lines->count = one;
	lines->nameless = true;
	walk(*lines, debug);
}

void tickmap_jit_read_debug(struct tickmap_jit_span span, bool swap,
			    bool narrow, struct tickmap_jit_debug *ret_debug)
{
	struct tickmap_bytes b = tickmap_jit_cursor(span, swap);
	struct tickmap_jit_debug debug = { .line = 0 };
	struct tickmap_code_lines lines = { .swap = swap, .narrow = narrow };
	const uint8_t *end;

	tickmap_seek(&b, TICKMAP_JIT_DEBUG_FIXED - 16);
	debug.address = tickmap_u64(&b);
	debug.entry_count = tickmap_u64(&b);
	lines.count = debug.entry_count;
	lines.at = b.base + b.pos;
	lines.end = b.base + b.size;
	if (b.failed || lines.count > b.size / ENTRY_MINIMUM)
		lines.count = 0;
	end = walk(lines, &debug);
	if (debug.lines.count < debug.entry_count ||
	    lines.end - end > PADDING_MAX || (debug.damaged && !is_walk(lines)))
		walk_damaged(&lines, &debug);
	lines.count = debug.lines.count;
	debug.lines = lines;
	*ret_debug = debug;
}

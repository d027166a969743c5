/* SPDX-License-Identifier: MIT */
#include "output/paint.h"

#include "base/utf8.h"
#include "profile/profile.h"

#include <inttypes.h>
#include <string.h>

#define ELLIPSIS "\xe2\x80\xa6" /* one column */

static const char *const codes[] = {
	[TICKMAP_INK_PLAIN] = "",
	[TICKMAP_INK_BOLD] = "\033[1m",
	[TICKMAP_INK_DIM] = "\033[2m",
	[TICKMAP_INK_GOOD] = "\033[32m",
	[TICKMAP_INK_WARN] = "\033[33m",
	[TICKMAP_INK_PYTHON] = "\033[36m",
	[TICKMAP_INK_JIT] = "\033[32m",
	[TICKMAP_INK_KERNEL] = "\033[35m",
	[TICKMAP_INK_UNRESOLVED] = "\033[31m",
};

void tickmap_paint_on(const struct tickmap_paint *paint, enum tickmap_ink ink)
{
	if (paint->colour && ink != TICKMAP_INK_PLAIN)
		fputs(codes[ink], paint->out);
}

void tickmap_paint_off(const struct tickmap_paint *paint, enum tickmap_ink ink)
{
	if (paint->colour && ink != TICKMAP_INK_PLAIN)
		fputs("\033[0m", paint->out);
}

void tickmap_paint_text(const struct tickmap_paint *paint, enum tickmap_ink ink,
			const char *text)
{
	tickmap_paint_on(paint, ink);
	fputs(text, paint->out);
	tickmap_paint_off(paint, ink);
}

enum tickmap_ink tickmap_paint_kind(unsigned kind)
{
	static const enum tickmap_ink inks[] = {
		[TICKMAP_FRAME_PYTHON] = TICKMAP_INK_PYTHON,
		[TICKMAP_FRAME_JIT] = TICKMAP_INK_JIT,
		[TICKMAP_FRAME_NATIVE] = TICKMAP_INK_PLAIN,
		[TICKMAP_FRAME_KERNEL] = TICKMAP_INK_KERNEL,
		[TICKMAP_FRAME_UNRESOLVED] = TICKMAP_INK_UNRESOLVED,
	};

	return kind < sizeof(inks) / sizeof(inks[0]) ? inks[kind]
						     : TICKMAP_INK_PLAIN;
}

/* Nothing from a recording may steer the terminal. */
static void put_clean(FILE *out, const char *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		unsigned char c = (unsigned char)bytes[i];

		putc(c < 0x20 || c == 0x7f ? '?' : c, out);
	}
}

/* Bytes of the character at the front; a stray byte counts as one. */
static size_t step(const char *bytes, size_t length)
{
	size_t n = tickmap_utf8_length(bytes, length);

	return n ? n : 1;
}

size_t tickmap_paint_columns(const char *bytes, size_t length)
{
	size_t columns = 0;

	for (size_t i = 0; i < length; columns++)
		i += step(bytes + i, length - i);
	return columns;
}

static size_t skip(const char *bytes, size_t length, size_t columns)
{
	size_t i = 0;

	while (columns-- > 0 && i < length)
		i += step(bytes + i, length - i);
	return i;
}

size_t tickmap_paint_cut(const struct tickmap_paint *paint, const char *bytes,
			 size_t length, size_t columns)
{
	size_t all = tickmap_paint_columns(bytes, length);

	if (all <= columns) {
		put_clean(paint->out, bytes, length);
		return all;
	}
	if (columns == 0)
		return 0;
	/* The name's start tells more than its end. */
	size_t tail = (columns - 1) * 2 / 5, head = columns - 1 - tail;
	size_t from = skip(bytes, length, all - tail);

	put_clean(paint->out, bytes, skip(bytes, length, head));
	fputs(ELLIPSIS, paint->out);
	put_clean(paint->out, bytes + from, length - from);
	return columns;
}

size_t tickmap_paint_wrapped(const struct tickmap_paint *paint,
			     const char *text, size_t column, size_t indent)
{
	bool first = true;

	while (*text) {
		size_t length = strcspn(text, " ");
		size_t columns = tickmap_paint_columns(text, length);

		if (!first && paint->width &&
		    column + 1 + columns > paint->width) {
			fprintf(paint->out, "\n%*s", (int)indent, "");
			column = indent;
			first = true;
		}
		if (!first) {
			putc(' ', paint->out);
			column++;
		}
		put_clean(paint->out, text, length);
		column += columns;
		first = false;
		text += length;
		text += strspn(text, " ");
	}
	return column;
}

const char *tickmap_paint_count(uint64_t count)
{
	static char ring[8][32];
	static unsigned turn;
	char *text = ring[turn++ % 8], digits[24];
	int n = snprintf(digits, sizeof(digits), "%" PRIu64, count), at = 0;

	for (int i = 0; i < n; i++) {
		if (i && (n - i) % 3 == 0)
			text[at++] = ',';
		text[at++] = digits[i];
	}
	text[at] = 0;
	return text;
}

const char *tickmap_paint_counted(uint64_t count, const char *one)
{
	static char ring[8][64];
	static unsigned turn;
	char *text = ring[turn++ % 8];

	snprintf(text, sizeof(ring[0]), "%s %s%s", tickmap_paint_count(count),
		 one, count == 1 ? "" : "s");
	return text;
}

const char *tickmap_paint_share(uint64_t part, uint64_t whole)
{
	static char ring[8][16];
	static unsigned turn;
	char *text = ring[turn++ % 8];
	double share = whole ? (double)part * 100.0 / (double)whole : 0;

	if (part && share < 0.05)
		snprintf(text, sizeof(ring[0]), " <0.1%%");
	else
		snprintf(text, sizeof(ring[0]), "%5.1f%%", share);
	return text;
}

const char *tickmap_paint_part(uint64_t part, uint64_t whole)
{
	const char *text = tickmap_paint_share(part, whole);

	return text + strspn(text, " ");
}

/* SPDX-License-Identifier: MIT */
/* Text for a terminal: colours that can be off, widths, shares, counts. */
#ifndef TICKMAP_OUTPUT_PAINT_H
#define TICKMAP_OUTPUT_PAINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct tickmap_paint {
	FILE *out;
	bool colour;
	unsigned width; /* 0: unlimited */
};

enum tickmap_ink {
	TICKMAP_INK_PLAIN,
	TICKMAP_INK_BOLD,
	TICKMAP_INK_DIM,
	TICKMAP_INK_GOOD,
	TICKMAP_INK_WARN,
	TICKMAP_INK_PYTHON,
	TICKMAP_INK_JIT,
	TICKMAP_INK_KERNEL,
	TICKMAP_INK_UNRESOLVED,
};

void tickmap_paint_on(const struct tickmap_paint *paint, enum tickmap_ink ink);
void tickmap_paint_off(const struct tickmap_paint *paint, enum tickmap_ink ink);
void tickmap_paint_text(const struct tickmap_paint *paint, enum tickmap_ink ink,
			const char *text);

/* The ink of an enum tickmap_frame_kind. */
enum tickmap_ink tickmap_paint_kind(unsigned kind);

/* Columns that some bytes take: characters, not bytes. */
size_t tickmap_paint_columns(const char *bytes, size_t length);

/*
 * At most `columns` of the bytes; the middle of longer ones is left out, so
 * that "py::work:/a/long/path/app.py" keeps both its name and its file. Returns
 * how many columns were written.
 */
size_t tickmap_paint_cut(const struct tickmap_paint *paint, const char *bytes,
			 size_t length, size_t columns);

/* Words from `column` on, wrapped at the width and indented to `indent`;
 * without a newline at the end. Returns the column after them. */
size_t tickmap_paint_wrapped(const struct tickmap_paint *paint,
			     const char *text, size_t column, size_t indent);

/* "12,345,678" in a static ring of a few buffers. */
const char *tickmap_paint_count(uint64_t count);
/* "1 sample", "2 samples": `one` takes an s. In the same way. */
const char *tickmap_paint_counted(uint64_t count, const char *one);
/* " 12.3%", always 6 columns; " <0.1%" for a little. */
const char *tickmap_paint_share(uint64_t part, uint64_t whole);
/* The same without the blanks in front. */
const char *tickmap_paint_part(uint64_t part, uint64_t whole);

#endif

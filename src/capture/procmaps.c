/* SPDX-License-Identifier: MIT */
/* "7f00-7f10 r-xp 00001000 08:01 1234      /usr/lib/a.so" a line. */
#include "capture/procmaps.h"

#include "platform/platform.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
	PATH_SIZE = 4 * 4096, /* PATH_MAX, of which each byte may be escaped */
	MAPS_SIZE_MAX = 64 << 20,
};

struct line {
	const char *at, *end;
	bool failed;
};

static uint64_t take_number(struct line *line, unsigned base)
{
	uint64_t v = 0;
	const char *start = line->at;

	for (; line->at < line->end; line->at++) {
		char c = *line->at;
		unsigned digit =
			c >= '0' && c <= '9'   ? (unsigned)(c - '0')
			: c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
			: c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10
					       : 16;
		if (digit >= base)
			break;
		if (v > (UINT64_MAX - digit) / base)
			line->failed = true;
		v = v * base + digit;
	}
	if (line->at == start)
		line->failed = true;
	return v;
}

static void take_char(struct line *line, char c)
{
	if (line->at < line->end && *line->at == c)
		line->at++;
	else
		line->failed = true;
}

static void take_permissions(struct line *line,
			     struct tickmap_mmap_record *mmap)
{
	if (line->end - line->at < 4) {
		line->failed = true;
		return;
	}
	const char *p = line->at;
	mmap->prot = (uint32_t)((p[0] == 'r' ? PROT_READ : 0) |
				(p[1] == 'w' ? PROT_WRITE : 0) |
				(p[2] == 'x' ? PROT_EXEC : 0));
	mmap->flags = p[3] == 's' ? MAP_SHARED : MAP_PRIVATE;
	line->at += 4;
}

/* The kernel escapes the newline in a path, and nothing else. */
static bool take_path(struct line *line, char path[PATH_SIZE])
{
	size_t used = 0;

	while (line->at < line->end && *line->at == ' ')
		line->at++;
	while (line->at < line->end) {
		if (used == PATH_SIZE - 1)
			return false;
		if (line->end - line->at >= 4 &&
		    !memcmp(line->at, "\\012", 4)) {
			path[used++] = '\n';
			line->at += 4;
		} else {
			path[used++] = *line->at++;
		}
	}
	path[used] = '\0';
	if (!*path)
		strcpy(path, "//anon");
	return true;
}

static bool parse_line(struct line line, struct tickmap_mmap_record *mmap,
		       char path[PATH_SIZE])
{
	uint64_t start = take_number(&line, 16);

	take_char(&line, '-');
	uint64_t end = take_number(&line, 16);
	take_char(&line, ' ');
	take_permissions(&line, mmap);
	take_char(&line, ' ');
	mmap->file_offset = take_number(&line, 16);
	take_char(&line, ' ');
	mmap->maj = (uint32_t)take_number(&line, 16);
	take_char(&line, ':');
	mmap->min = (uint32_t)take_number(&line, 16);
	take_char(&line, ' ');
	mmap->ino = take_number(&line, 10);
	if (line.failed || end <= start || !take_path(&line, path))
		return false;
	mmap->avma = start;
	mmap->size = end - start;
	mmap->path = path;
	return true;
}

int tickmap_procmaps_parse(const char *text, size_t size, pid_t pid,
			   int (*handler)(void *context,
					  const struct tickmap_mmap_record *),
			   void *context)
{
	char path[PATH_SIZE];

	for (const char *at = text, *end = text + size; at < end;) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		struct line line = { at, newline ? newline : end, false };
		struct tickmap_mmap_record mmap = { .pid = (uint32_t)pid,
						    .tid = (uint32_t)pid };
		at = newline ? newline + 1 : end;
		if (!parse_line(line, &mmap, path) || !(mmap.prot & PROT_EXEC))
			continue;
		int status = handler(context, &mmap);
		if (status)
			return status;
	}
	return TICKMAP_OK;
}

int tickmap_procmaps_read(pid_t pid,
			  int (*handler)(void *context,
					 const struct tickmap_mmap_record *),
			  void *context, struct tickmap_error *err)
{
	char path[64];
	char *text;
	size_t size;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	int status = tickmap_read_file(path, MAPS_SIZE_MAX, &text, &size, err);
	if (status) {
		tickmap_error_source(err, path);
		return status;
	}
	status = tickmap_procmaps_parse(text, size, pid, handler, context);
	free(text);
	return status;
}

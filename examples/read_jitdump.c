/* SPDX-License-Identifier: MIT */
/*
 * Names the functions of a jitdump while it grows, as a profiler would follow
 * it: each call of `poll_dump` takes what was appended since the last one.
 *
 *	cc read_jitdump.c $(pkg-config --cflags --libs tickmap)
 *	./a.out jit-PID.dump
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <tickmap/codemap.h>

static void saw_code(void *context, const struct tickmap_code_event *event)
{
	struct tickmap_code_lines lines = event->lines;
	struct tickmap_code_line line;

	(void)context;
	if (event->kind != TICKMAP_CODE_LOAD)
		return;
	printf("%" PRIx64 " %" PRIx64 " %.*s", event->avma, event->size,
	       (int)event->name_length, event->name);
	if (tickmap_code_lines_next(&lines, &line) && line.file)
		printf(" (%.*s:%u)", (int)line.file_length, line.file,
		       line.line);
	putchar('\n');
}

static void saw_finding(void *context, const struct tickmap_finding *finding)
{
	fprintf(stderr, "%s: %s at %" PRIu64 ": %s\n", (const char *)context,
		finding->id, finding->offset, finding->what);
}

/* False: no jitdump, or out of memory. */
static bool poll_dump(struct tickmap_jitdump *dump, FILE *file)
{
	char block[4096];
	size_t got;

	clearerr(file);
	while ((got = fread(block, 1, sizeof(block), file)) > 0) {
		if (!tickmap_jitdump_feed(dump, block, got))
			return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	struct tickmap_code_handler handler = {
		.context = argc > 1 ? argv[1] : NULL,
		.code = saw_code,
		.finding = saw_finding,
	};
	struct tickmap_jitdump *dump;
	FILE *file;
	bool good;

	if (argc != 2) {
		fprintf(stderr, "usage: %s FILE\n", argv[0]);
		return 2;
	}
	file = fopen(argv[1], "rb");
	if (!file) {
		perror(argv[1]);
		return 3;
	}
	dump = tickmap_jitdump_new(&handler);
	good = dump && poll_dump(dump, file);
	/* A live profiler polls again, until the process is gone. */
	if (dump)
		tickmap_jitdump_end(dump);
	tickmap_jitdump_free(dump);
	fclose(file);
	return good ? 0 : 3;
}

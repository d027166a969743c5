/* SPDX-License-Identifier: MIT */
/*
 * What real runtimes wrote, against the counts in the corpus' manifest, which
 * another reader made. Files whose damage we read past may give more.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those first */
#include <cmocka.h>

#include "codemap/codemap.h"
#include "corpus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct counts {
	unsigned long loads, closes, lined, framed, in_order;
	unsigned long cut, errors, skipped_bytes, sizeless, no_entry;
};

static void saw_code(void *context, const struct tickmap_code_event *event)
{
	struct counts *counts = context;

	counts->loads += event->kind == TICKMAP_CODE_LOAD;
	counts->closes += event->kind == TICKMAP_CODE_CLOSE;
	counts->lined += event->line > 0;
	counts->framed += event->eh_frame != NULL;
}

static void saw_finding(void *context, const struct tickmap_finding *finding)
{
	struct counts *counts = context;

	counts->errors += finding->error;
	counts->cut += !strcmp(finding->id, "JD012");
	counts->sizeless += !strcmp(finding->id, "PM002");
	counts->no_entry += !strcmp(finding->id, "PM001");
	if (!strcmp(finding->id, "JD010"))
		counts->skipped_bytes += finding->value;
}

static struct counts count_file(const char *path, size_t chunk)
{
	struct counts counts = { .loads = 0 };
	struct tickmap_code_handler handler = { .context = &counts,
						.code = saw_code,
						.finding = saw_finding };
	bool is_dump = strstr(path, ".dump") != NULL;
	struct tickmap_jitdump *dump = tickmap_jitdump_new(&handler);
	struct tickmap_perfmap *map = tickmap_perfmap_new(&handler);
	size_t size;
	uint8_t *bytes = corpus_read(path, &size);

	for (size_t at = 0; at < size; at += chunk) {
		size_t n = size - at < chunk ? size - at : chunk;
		assert_true(
			is_dump ? tickmap_jitdump_feed(dump, bytes + at, n)
				: tickmap_perfmap_feed(map, bytes + at, n, 1));
	}
	if (is_dump)
		tickmap_jitdump_end(dump);
	else
		tickmap_perfmap_end(map, 1);
	tickmap_jitdump_free(dump);
	tickmap_perfmap_free(map);
	free(bytes);
	return counts;
}

/* "LOAD=436" in "UNWINDING_INFO=436 LOAD=436" */
static unsigned long stated(const char *kinds, const char *kind)
{
	const char *at = kinds;
	size_t length = strlen(kind);

	for (; (at = strstr(at, kind)); at++)
		if ((at == kinds || at[-1] == ' ') && at[length] == '=')
			return strtoul(at + length + 1, NULL, 10);
	return 0;
}

struct totals {
	unsigned files;
	unsigned long loads, lined, framed, cut, skipped_bytes;
};

/* "jit-1.dump: LOAD=2 CLOSE=1; jit-3.dump: LOAD=4" */
static void check_dumps(void *context, const char *name, char *cell)
{
	struct totals *totals = context;

	for (char *part; (part = strsep(&cell, ";"));) {
		char *file = strsep(&part, ":"), path[4096];
		struct counts counts, again;
		unsigned long loads;
		if (!part)
			continue;
		file += strspn(file, " ");
		snprintf(path, sizeof(path), "%s/%s/%s.xz", corpus_folder(),
			 name, file);
		counts = count_file(path, SIZE_MAX / 2);
		again = count_file(path, 4099);
		assert_memory_equal(&counts, &again, sizeof(counts));
		loads = stated(part, "LOAD");
		print_message("%s/%s: %lu of %lu loads, %lu with a line, %lu "
			      "with .eh_frame, %lu bytes skipped, %lu cut\n",
			      name, file, counts.loads, loads, counts.lined,
			      counts.framed, counts.skipped_bytes, counts.cut);
		/* Of a LOAD that is cut within its code we keep the name. */
		assert_in_range(counts.loads, loads, loads + counts.cut);
		assert_int_equal(counts.closes, stated(part, "CLOSE"));
		totals->files++;
		totals->loads += counts.loads;
		totals->lined += counts.lined;
		totals->framed += counts.framed;
		totals->cut += counts.cut;
		totals->skipped_bytes += counts.skipped_bytes;
	}
}

/* "perf-1.map: 1532" */
static void check_maps(void *context, const char *name, char *cell)
{
	struct totals *totals = context;

	for (char *part; (part = strsep(&cell, ";"));) {
		char *file = strsep(&part, ":"), path[4096];
		struct counts counts, again;
		unsigned long lines;
		if (!part)
			continue;
		file += strspn(file, " ");
		snprintf(path, sizeof(path), "%s/%s/%s.xz", corpus_folder(),
			 name, file);
		counts = count_file(path, SIZE_MAX / 2);
		again = count_file(path, 17);
		assert_memory_equal(&counts, &again, sizeof(counts));
		lines = strtoul(part, NULL, 10);
		print_message("%s/%s: %lu of %lu lines, %lu of size 0, %lu no "
			      "entries\n",
			      name, file, counts.loads, lines, counts.sizeless,
			      counts.no_entry);
		assert_int_equal(counts.loads + counts.sizeless +
					 counts.no_entry,
				 lines);
		totals->files++;
		totals->loads += counts.loads;
	}
}

static void every_real_dump_gives_all_its_records(void **unused)
{
	struct totals totals = { .files = 0 };

	(void)unused;
	if (!corpus_folder()) {
		print_message("skipped: TICKMAP_CORPUS names no folder\n");
		skip();
	}
	corpus_each_case("jitdump_records", &totals, check_dumps);
	print_message("%u dumps: %lu loads, %lu with a line, %lu with "
		      ".eh_frame; %lu bytes skipped, %lu records cut\n",
		      totals.files, totals.loads, totals.lined, totals.framed,
		      totals.skipped_bytes, totals.cut);
	assert_true(totals.files > 0);
}

static void every_real_map_gives_all_its_lines(void **unused)
{
	struct totals totals = { .files = 0 };

	(void)unused;
	if (!corpus_folder()) {
		print_message("skipped: TICKMAP_CORPUS names no folder\n");
		skip();
	}
	corpus_each_case("map_lines", &totals, check_maps);
	print_message("%u maps: %lu entries\n", totals.files, totals.loads);
	assert_true(totals.files > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_real_dump_gives_all_its_records),
		cmocka_unit_test(every_real_map_gives_all_its_lines),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

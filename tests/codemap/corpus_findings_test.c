/* SPDX-License-Identifier: MIT */
/*
 * What is found in the files of real runtimes, against expectations.tsv: a line
 * has the file, then ID=COUNT for each id. Files that are not in it (another
 * corpus) are counted. With TICKMAP_EXPECTATIONS=FILE they are written there
 * instead of compared.
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

enum { KINDS_MAX = 100 };

struct run {
	char *expected; /* the whole file */
	FILE *written;
	bool map;
	unsigned equal, wrong, unknown;
	unsigned long found[KINDS_MAX];
};

static void saw_finding(void *context, const struct tickmap_finding *finding)
{
	struct run *run = context;
	size_t count;

	run->found[finding->kind - tickmap_codemap_findings(&count)]++;
}

static void read_file(struct run *run, const char *path)
{
	struct tickmap_code_handler handler = { .context = run,
						.finding = saw_finding };
	size_t size;
	uint8_t *bytes = corpus_read(path, &size);

	memset(run->found, 0, sizeof(run->found));
	if (run->map) {
		struct tickmap_perfmap *map = tickmap_perfmap_new(&handler);
		assert_true(tickmap_perfmap_feed(map, bytes, size, 1));
		tickmap_perfmap_end(map, 1);
		tickmap_perfmap_free(map);
	} else {
		struct tickmap_jitdump *dump = tickmap_jitdump_new(&handler);
		assert_true(tickmap_jitdump_feed(dump, bytes, size));
		tickmap_jitdump_end(dump);
		tickmap_jitdump_free(dump);
	}
	free(bytes);
}

/* "NAME\tJD005=1 JD010=2\n" */
static char *describe(const struct run *run, const char *name)
{
	size_t count, size;
	const struct tickmap_finding_kind *kinds =
		tickmap_codemap_findings(&count);
	char *text;
	FILE *out = open_memstream(&text, &size);
	const char *blank = "";

	assert_in_range(count, 1, KINDS_MAX);
	fprintf(out, "%s\t", name);
	for (size_t i = 0; i < count; i++) {
		if (!run->found[i])
			continue;
		fprintf(out, "%s%s=%lu", blank, kinds[i].id, run->found[i]);
		blank = " ";
	}
	fputc('\n', out);
	fclose(out);
	return text;
}

static void compare(struct run *run, const char *name)
{
	char *line = describe(run, name), *there;
	size_t length = strlen(name) + 1;

	if (run->written)
		fputs(line, run->written);
	for (there = run->expected; there; there = strchr(there, '\n')) {
		there += *there == '\n';
		if (!strncmp(there, line, length))
			break;
	}
	if (!there) {
		run->unknown++;
	} else if (!strncmp(there, line, strlen(line))) {
		run->equal++;
	} else {
		run->wrong++;
		print_message("found:    %sexpected: %.*s\n", line,
			      (int)strcspn(there, "\n"), there);
	}
	free(line);
}

/* "jit-1.dump: LOAD=2; jit-3.dump: LOAD=4" or "perf-1.map: 1532" */
static void check_files(void *context, const char *name, char *cell)
{
	struct run *run = context;

	for (char *part; (part = strsep(&cell, ";"));) {
		char *file = strsep(&part, ":"), path[4096], key[512];
		if (!part)
			continue;
		file += strspn(file, " ");
		snprintf(key, sizeof(key), "%s/%s", name, file);
		snprintf(path, sizeof(path), "%s/%s.xz", corpus_folder(), key);
		read_file(run, path);
		compare(run, key);
	}
}

static void findings_in_real_files_are_the_expected_ones(void **unused)
{
	struct run run = { .map = false };
	const char *path = getenv("TICKMAP_EXPECTATIONS");
	size_t size;

	(void)unused;
	if (!corpus_folder()) {
		print_message("skipped: TICKMAP_CORPUS names no folder\n");
		skip();
	}
	run.expected = (char *)corpus_read(CODEMAP_EXPECTATIONS, &size);
	run.written = path ? fopen(path, "w") : NULL;
	corpus_each_case("jitdump_records", &run, check_files);
	run.map = true;
	corpus_each_case("map_lines", &run, check_files);
	print_message("%u of %u files as expected, %u not known here\n",
		      run.equal, run.equal + run.wrong, run.unknown);
	if (run.written)
		fclose(run.written);
	else
		assert_int_equal(run.wrong, 0);
	assert_true(run.equal + run.wrong + run.unknown > 0);
	free(run.expected);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(findings_in_real_files_are_the_expected_ones),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

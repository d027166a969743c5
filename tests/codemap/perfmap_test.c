/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those first */
#include <cmocka.h>

#include "codemap/codemap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct seen {
	char *text;
	size_t size;
	FILE *to;
	bool with_names;
};

static void saw_code(void *context, const struct tickmap_code_event *event)
{
	struct seen *seen = context;

	assert_int_equal(event->kind, TICKMAP_CODE_LOAD);
	assert_int_equal(event->pid, 0);
	assert_null(event->code);
	fprintf(seen->to, "%llu %llx+%llx @%llu [",
		(unsigned long long)event->when,
		(unsigned long long)event->avma,
		(unsigned long long)event->size,
		(unsigned long long)event->offset);
	fwrite(event->name, 1, event->name_length, seen->to);
	fputs("]\n", seen->to);
}

static void saw_finding(void *context, const struct tickmap_finding *finding)
{
	struct seen *seen = context;

	/* What is odd about names has a test of its own. */
	if (!seen->with_names && finding->id[4] >= '8')
		return;
	fprintf(seen->to, "%s%s @%llu %llu\n", finding->id,
		finding->error ? "!" : "", (unsigned long long)finding->offset,
		(unsigned long long)finding->value);
}

static char *read_map(const char *bytes, size_t size, size_t chunk)
{
	struct seen seen = { .to = NULL };
	struct tickmap_code_handler handler = { .context = &seen,
						.code = saw_code,
						.finding = saw_finding };
	struct tickmap_perfmap *map = tickmap_perfmap_new(&handler);

	seen.to = open_memstream(&seen.text, &seen.size);
	for (size_t at = 0; at < size; at += chunk) {
		size_t n = size - at < chunk ? size - at : chunk;
		char *copy = malloc(n);
		assert_non_null(copy);
		memcpy(copy, bytes + at, n);
		assert_true(tickmap_perfmap_feed(map, copy, n, 5));
		free(copy);
	}
	tickmap_perfmap_end(map, 5);
	tickmap_perfmap_free(map);
	fclose(seen.to);
	return seen.text;
}

static void check_bytes(const char *bytes, size_t size, const char *expected)
{
	static const size_t chunks[] = { 1, 2, 7, 4096, SIZE_MAX / 2 };

	for (size_t i = 0; i < sizeof(chunks) / sizeof(chunks[0]); i++) {
		char *text = read_map(bytes, size, chunks[i]);
		assert_string_equal(text, expected);
		free(text);
	}
}

static void check(const char *map, const char *expected)
{
	check_bytes(map, strlen(map), expected);
}

static void numbers_come_with_and_without_0x_in_either_case(void **unused)
{
	(void)unused;
	check("7fc9c7acc000 b py::f:file\n"
	      "0x7f929e02d000 68 $mod:f/1\n"
	      "0x00007f5ab4ec71c0 0x0000000000000270 long Wl.f(int)\n"
	      "0X7FAB 1A Upper\n"
	      "  7fac\t1b\ttab\n"
	      "ffffffffffffffff 1 top\n",
	      "5 7fc9c7acc000+b @0 [py::f:file]\n"
	      "5 7f929e02d000+68 @26 [$mod:f/1]\n"
	      "5 7f5ab4ec71c0+270 @53 [long Wl.f(int)]\n"
	      "5 7fab+1a @106 [Upper]\n"
	      "5 7fac+1b @122 [tab]\n"
	      "5 ffffffffffffffff+1 @136 [top]\n");
}

static void a_name_is_whatever_stands_behind_one_blank(void **unused)
{
	(void)unused;
	check("10 1 a\n20 1  two\n50 1 Ünïcödé_函数 :3:31\n",
	      "5 10+1 @0 [a]\n"
	      "5 20+1 @7 [ two]\n"
	      "5 50+1 @17 [Ünïcödé_函数 :3:31]\n");
}

static void names_with_a_nul_or_escape_are_kept_whole(void **unused)
{
	static const char map[] = "30 1 \xff\x1b[31m\0x\n40 1 ab\n";
	static const char expected[] = "5 30+1 @0 [\xff\x1b[31m\0x]\n"
				       "5 40+1 @14 [ab]\n";
	char *text = read_map(map, sizeof(map) - 1, 3);

	(void)unused;
	assert_memory_equal(text, expected, sizeof(expected));
	free(text);
}

static void lines_that_are_no_entries_are_skipped_and_said(void **unused)
{
	(void)unused;
	check("10 1 good\n"
	      "hello world\n"
	      "\n"
	      "# comment\n"
	      "20 1\n"
	      "20 1 \n"
	      "20\n"
	      "0x 1 f\n"
	      "20 1g f\n"
	      "12345678901234567 1 f\n"
	      "-10 1 f\n"
	      "fffffffffffffff0 11 beyond\n"
	      "30 0 nothing\n"
	      "40 1 good again\n",
	      "5 10+1 @0 [good]\n"
	      "PM001! @10 11\n"
	      "PM001! @33 4\n"
	      "PM001! @38 5\n"
	      "PM001! @44 2\n"
	      "PM001! @47 6\n"
	      "PM001! @54 7\n"
	      "PM001! @62 21\n"
	      "PM001! @84 7\n"
	      "PM006! @92 17\n"
	      "PM002 @119 48\n"
	      "5 40+1 @132 [good again]\n");
}

static void
a_carriage_return_before_the_newline_is_not_in_the_name(void **unused)
{
	(void)unused;
	check("10 1 one\r\n\r\n20 1 t\rwo\r\n",
	      "PM003 @0 0\n5 10+1 @0 [one]\n5 20+1 @12 [t\rwo]\n");
}

static void the_last_line_may_lack_its_newline(void **unused)
{
	(void)unused;
	check("10 1 one\n20 1 tw",
	      "5 10+1 @0 [one]\nPM004 @9 7\n5 20+1 @9 [tw]\n");
	check("10 1 one\n20", "5 10+1 @0 [one]\nPM004 @9 2\nPM001! @9 2\n");
	check("", "");
}

static void zeros_in_place_of_lost_lines_do_not_cost_the_next(void **unused)
{
	static char map[100000 + 16];

	(void)unused;
	memcpy(map + 100000, "10 1 behind\n", 12);
	check_bytes(map, 100012, "5 10+1 @100000 [behind]\n");
}

static void an_overlong_line_is_cut_and_the_next_one_whole(void **unused)
{
	enum { LONG = 200000 };
	char *map = malloc(LONG + 64);
	char *text;

	(void)unused;
	assert_non_null(map);
	memcpy(map, "10 1 ", 5);
	memset(map + 5, 'x', LONG);
	memcpy(map + 5 + LONG, "\n20 1 next\n", 12);
	text = read_map(map, 5 + LONG + 11, 1000);
	assert_memory_equal(text, "PM005! @0 65536\n5 10+1 @0 [xxx", 30);
	assert_int_equal(strspn(text + 27, "x"), 65536 - 5);
	assert_string_equal(text + 27 + 65536 - 5,
			    "]\n5 20+1 @200006 [next]\n");
	free(text);
	free(map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			numbers_come_with_and_without_0x_in_either_case),
		cmocka_unit_test(a_name_is_whatever_stands_behind_one_blank),
		cmocka_unit_test(names_with_a_nul_or_escape_are_kept_whole),
		cmocka_unit_test(
			lines_that_are_no_entries_are_skipped_and_said),
		cmocka_unit_test(
			a_carriage_return_before_the_newline_is_not_in_the_name),
		cmocka_unit_test(the_last_line_may_lack_its_newline),
		cmocka_unit_test(
			zeros_in_place_of_lost_lines_do_not_cost_the_next),
		cmocka_unit_test(
			an_overlong_line_is_cut_and_the_next_one_whole),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

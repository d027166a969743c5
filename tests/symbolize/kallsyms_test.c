/* SPDX-License-Identifier: MIT */
/* The kernel's names: small lists, and this machine's own by a naive model. */
#include "../object/tools.h"
#include "symbolize/internal.h"
#include "symbolize/symbolize.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

static struct kallsyms *load(const char *list)
{
	char folder[64], path[128];

	make_folder(folder);
	snprintf(path, sizeof(path), "%s/kallsyms", folder);
	write_text(path, list);
	struct kallsyms *k = tickmap_kallsyms_load(path);
	remove_folder(folder);
	return k;
}

static void expect(const struct kallsyms *k, uint64_t avma, const char *name,
		   uint64_t start, uint64_t end)
{
	uint64_t got_start = 0, got_size = 0;
	const char *got = tickmap_kallsyms_find(k, avma, &got_start, &got_size);

	if (!name) {
		assert_null(got);
		return;
	}
	assert_non_null(got);
	assert_string_equal(got, name);
	assert_int_equal(got_start, start);
	assert_int_equal(got_start + got_size, end);
}

static void test_functions_reach_to_the_next_symbol_of_any_kind(void **state)
{
	struct kallsyms *k = load("0000000000000000 A fixed_percpu_data\n"
				  "ffffffff81000000 T _stext\n"
				  "ffffffff81000000 T _text\n"
				  "ffffffff81000000 T first\n"
				  "ffffffff81000400 t second\n"
				  "ffffffff81000480 r table\n"
				  "ffffffff81000500 W weak_one\n"
				  "ffffffff81000500 t local_alias\n"
				  "ffffffff81000600 T last\n"
				  "ffffffff81000700 T _etext\n"
				  "ffffffff81800000 D data\n"
				  "ffffffff81900000 T not_in_text\n"
				  "ffffffffc0002000 t other_one\t[other]\n"
				  "ffffffffc0000000 t ext4_a\t[ext4]\n"
				  "ffffffffc0000100 t ext4_b\t[ext4]\n"
				  "not a line\n"
				  "ffffffffc0000200\n");

	(void)state;
	assert_non_null(k);
	expect(k, 0xffffffff80ffffff, NULL, 0, 0);
	expect(k, 0xffffffff81000000, "first", 0xffffffff81000000,
	       0xffffffff81000400);
	expect(k, 0xffffffff810003ff, "first", 0xffffffff81000000,
	       0xffffffff81000400);
	expect(k, 0xffffffff81000400, "second", 0xffffffff81000400,
	       0xffffffff81000480);
	expect(k, 0xffffffff81000480, NULL, 0, 0);
	expect(k, 0xffffffff81000500, "weak_one", 0xffffffff81000500,
	       0xffffffff81000600);
	expect(k, 0xffffffff810006ff, "last", 0xffffffff81000600,
	       0xffffffff81000700);
	expect(k, 0xffffffff81000700, NULL, 0, 0);
	expect(k, 0xffffffff81800000, NULL, 0, 0);
	expect(k, 0xffffffff81900000, NULL, 0, 0);
	expect(k, 0xffffffffc0000000, "ext4_a", 0xffffffffc0000000,
	       0xffffffffc0000100);
	/* The last one of a module: to the end of its page. */
	expect(k, 0xffffffffc0000fff, "ext4_b", 0xffffffffc0000100,
	       0xffffffffc0001000);
	expect(k, 0xffffffffc0001000, NULL, 0, 0);
	expect(k, 0xffffffffc0002fff, "other_one", 0xffffffffc0002000,
	       0xffffffffc0003000);
	expect(k, UINT64_MAX, NULL, 0, 0);
	expect(k, 0, NULL, 0, 0);
	tickmap_kallsyms_free(k);
}

static void test_hidden_lists_and_other_files_are_none(void **state)
{
	(void)state;
	assert_null(load("0000000000000000 T _stext\n"
			 "0000000000000000 T do_syscall_64\n"));
	assert_null(load(""));
	assert_null(load("root:x:0:0:root:/root:/bin/bash\n"));
	assert_null(tickmap_kallsyms_load("/nowhere/kallsyms"));
}

static struct tickmap_symbol ask(struct tickmap_symbolizer *symbolizer,
				 uint64_t avma)
{
	struct tickmap_symbol s = tickmap_symbolize_kernel(symbolizer, avma);

	assert_int_equal(s.svma, avma);
	return s;
}

static void test_names_of_another_boot_come_from_the_recording(void **state)
{
	struct tickmap_strings *strings = tickmap_strings_new();
	struct tickmap_symbolizer *symbolizer = tickmap_symbolizer_new(strings);

	(void)state;
	assert_true(tickmap_symbolizer_know(symbolizer, "[kernel.kallsyms]",
					    0xffffffff99000000, 0x100,
					    "of_another_boot"));
	struct tickmap_symbol s = ask(symbolizer, 0xffffffff990000ff);
	assert_int_equal(s.reason, TICKMAP_SYMBOL_FOUND);
	assert_string_equal(tickmap_string(strings, s.name, NULL),
			    "of_another_boot");
	/* Our own list is not asked: its addresses mean nothing there. */
	s = ask(symbolizer, 0xffffffff99000100);
	assert_int_equal(s.reason, TICKMAP_SYMBOL_KERNEL_HIDDEN);
	assert_string_equal(tickmap_string(strings, s.name, NULL),
			    "[kernel+0xffffffff99000100]");
	tickmap_symbolizer_free(symbolizer);
	tickmap_strings_free(strings);
}

struct line {
	unsigned long long avma;
	char type;
	char name[256];
};

/* This machine's list; NULL where it is hidden. */
static struct line *read_lines(size_t *ret_count)
{
	FILE *file = fopen("/proc/kallsyms", "r");
	size_t count = 0, room = 0;
	struct line *lines = NULL, l;
	char text[1024];
	bool visible = false;

	while (file && fgets(text, sizeof(text), file)) {
		if (strchr(text, '[') || sscanf(text, "%llx %c %255s", &l.avma,
						&l.type, l.name) != 3)
			continue;
		if (count == room) {
			room = 2 * room + 1024;
			lines = realloc(lines, room * sizeof(*lines));
			assert_non_null(lines);
		}
		visible |= l.avma && strchr("tTwW", l.type);
		lines[count++] = l;
	}
	if (file)
		fclose(file);
	if (!visible) {
		free(lines);
		return NULL;
	}
	*ret_count = count;
	return lines;
}

static void test_this_kernels_functions_have_their_names(void **state)
{
	struct tickmap_strings *strings = tickmap_strings_new();
	struct tickmap_symbolizer *symbolizer = tickmap_symbolizer_new(strings);
	unsigned asked = 0, right = 0;
	size_t count;
	struct line *lines = read_lines(&count);
	unsigned long long start = 0, end = 0;

	(void)state;
	for (size_t i = 0; lines && i < count; i++) {
		if (!strcmp(lines[i].name, "_stext"))
			start = lines[i].avma;
		if (!strcmp(lines[i].name, "_etext"))
			end = lines[i].avma;
	}
	for (size_t i = 0; lines && i < count; i += 397) {
		const struct line *l = &lines[i];
		if (!strchr("tTwW", l->type) || l->avma < start ||
		    l->avma >= end || strstr(l->name, "_text_end"))
			continue;
		struct tickmap_symbol s = ask(symbolizer, l->avma);
		const char *raw = tickmap_string(strings, s.raw_name, NULL);
		bool found = false;
		for (size_t k = 0; k < count; k++) {
			found |= lines[k].avma == l->avma &&
				 strcmp(lines[k].name, raw) == 0;
			/* Nothing starts within. */
			assert_false(lines[k].avma > s.start &&
				     lines[k].avma < s.start + s.size);
		}
		asked++;
		right += found && s.start == l->avma;
	}
	print_message("kernel: %u of %u\n", right, asked);
	assert_int_equal(right, asked);
	struct tickmap_symbol s = ask(symbolizer, 0xffff800000000000);
	assert_int_equal(s.reason, lines ? TICKMAP_SYMBOL_NO_FUNCTION
					 : TICKMAP_SYMBOL_KERNEL_HIDDEN);
	/* A recording of another machine without names of its own. */
	tickmap_symbolizer_kernel_is_ours(symbolizer, false);
	s = ask(symbolizer, start);
	assert_int_equal(s.reason, TICKMAP_SYMBOL_KERNEL_HIDDEN);
	free(lines);
	tickmap_symbolizer_free(symbolizer);
	tickmap_strings_free(strings);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_functions_reach_to_the_next_symbol_of_any_kind),
		cmocka_unit_test(test_hidden_lists_and_other_files_are_none),
		cmocka_unit_test(
			test_names_of_another_boot_come_from_the_recording),
		cmocka_unit_test(test_this_kernels_functions_have_their_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

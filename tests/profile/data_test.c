/* SPDX-License-Identifier: MIT */
/* The profile as plain data: frames, the tree, the table of functions. */
#include "profile/profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static uint32_t frame(struct tickmap_profile *p, const char *name,
		      enum tickmap_frame_kind kind, uint32_t line)
{
	struct tickmap_frame f = {
		.name = tickmap_intern_cstr(p->strings, name),
		.dso = tickmap_intern_cstr(p->strings, "lib"),
		.file = line ? tickmap_intern_cstr(p->strings, "a.py") : 0,
		.line = line,
		.kind = (uint8_t)kind,
	};
	return tickmap_profile_frame(p, &f);
}

static uint32_t machinery(struct tickmap_profile *p, const char *name)
{
	struct tickmap_frame f = {
		.name = tickmap_intern_cstr(p->strings, name),
		.dso = tickmap_intern_cstr(p->strings, "python3.11"),
		.kind = TICKMAP_FRAME_NATIVE,
		.interpreter = true,
	};
	return tickmap_profile_frame(p, &f);
}

static void sample(struct tickmap_profile *p, uint32_t node)
{
	struct tickmap_profile_sample *s = tickmap_vec_push(&p->samples);

	assert_non_null(s);
	*s = (struct tickmap_profile_sample) { .node = node };
}

static const struct tickmap_function *
row_of(const struct tickmap_profile *p, const struct tickmap_functions *table,
       const char *name)
{
	for (size_t i = 0; i < table->count; i++) {
		uint32_t f = table->rows[i].frame;
		if (!strcmp(tickmap_string(p->strings, p->frames.items[f].name,
					   NULL),
			    name))
			return &table->rows[i];
	}
	return NULL;
}

static void equal_frames_and_equal_stacks_are_one(void **state)
{
	struct tickmap_profile *p = tickmap_profile_new();

	(void)state;
	assert_non_null(p);
	uint32_t a = frame(p, "a", TICKMAP_FRAME_NATIVE, 0);
	uint32_t b = frame(p, "b", TICKMAP_FRAME_NATIVE, 0);
	assert_int_not_equal(a, b);
	assert_int_equal(a, frame(p, "a", TICKMAP_FRAME_NATIVE, 0));
	assert_int_not_equal(a, frame(p, "a", TICKMAP_FRAME_JIT, 0));

	uint32_t top = tickmap_profile_node(p, 0, a);
	uint32_t leaf = tickmap_profile_node(p, top, b);
	assert_int_equal(top, tickmap_profile_node(p, 0, a));
	assert_int_equal(leaf, tickmap_profile_node(p, top, b));
	assert_int_not_equal(leaf, tickmap_profile_node(p, 0, b));
	assert_true(leaf > top && top > 0);
	tickmap_profile_free(p);
}

static void recursion_counts_once_in_the_total(void **state)
{
	struct tickmap_profile *p = tickmap_profile_new();
	struct tickmap_functions table;

	(void)state;
	uint32_t f = frame(p, "f", TICKMAP_FRAME_NATIVE, 0);
	uint32_t g = frame(p, "g", TICKMAP_FRAME_NATIVE, 0);
	uint32_t node = tickmap_profile_node(p, 0, f);
	sample(p, node);
	node = tickmap_profile_node(p, node, g);
	node = tickmap_profile_node(p, node, f);
	sample(p, node);
	sample(p, node);

	assert_int_equal(tickmap_profile_functions(p, NULL, 0, &table), 0);
	assert_int_equal(table.count, 2);
	assert_int_equal(row_of(p, &table, "f")->self, 3);
	assert_int_equal(row_of(p, &table, "f")->total, 3);
	assert_int_equal(row_of(p, &table, "g")->self, 0);
	assert_int_equal(row_of(p, &table, "g")->total, 2);
	tickmap_functions_free(&table);

	const uint32_t first = 0;
	assert_int_equal(tickmap_profile_functions(p, &first, 1, &table), 0);
	assert_int_equal(table.count, 1);
	assert_int_equal(row_of(p, &table, "f")->total, 1);
	tickmap_functions_free(&table);
	tickmap_profile_free(p);
}

static void
the_innermost_published_function_owns_what_runs_below_it(void **state)
{
	struct tickmap_profile *p = tickmap_profile_new();
	struct tickmap_functions table;

	(void)state;
	uint32_t main_node = tickmap_profile_node(p, 0, machinery(p, "main"));
	uint32_t outer = tickmap_profile_node(
		p, main_node, frame(p, "py::outer", TICKMAP_FRAME_PYTHON, 3));
	uint32_t eval = tickmap_profile_node(p, outer, machinery(p, "eval"));
	uint32_t inner = tickmap_profile_node(
		p, eval, frame(p, "py::inner", TICKMAP_FRAME_PYTHON, 9));
	uint32_t again = tickmap_profile_node(p, inner, machinery(p, "eval"));
	sample(p, main_node);
	sample(p, eval);
	sample(p, again);
	sample(p, again);

	assert_int_equal(tickmap_profile_functions(p, NULL, 0, &table), 0);
	assert_string_equal(
		tickmap_string(p->strings,
			       p->frames.items[table.rows[0].frame].name, NULL),
		"py::inner");
	assert_int_equal(row_of(p, &table, "py::inner")->managed_self, 2);
	assert_int_equal(row_of(p, &table, "py::inner")->self, 0);
	assert_int_equal(row_of(p, &table, "py::outer")->managed_self, 1);
	assert_int_equal(row_of(p, &table, "py::outer")->total, 3);
	assert_int_equal(row_of(p, &table, "eval")->self, 3);
	assert_int_equal(row_of(p, &table, "eval")->managed_self, 0);
	assert_int_equal(row_of(p, &table, "main")->total, 4);
	tickmap_functions_free(&table);

	assert_false(tickmap_frame_is_folded(p, 0));
	assert_false(tickmap_frame_is_folded(p, main_node));
	assert_false(tickmap_frame_is_folded(p, outer));
	assert_true(tickmap_frame_is_folded(p, eval));
	assert_true(tickmap_frame_is_folded(p, again));
	tickmap_profile_free(p);
}

static void only_names_with_several_lines_need_one(void **state)
{
	struct tickmap_profile *p = tickmap_profile_new();

	(void)state;
	uint32_t one = frame(p, "py::f", TICKMAP_FRAME_PYTHON, 10);
	uint32_t other = frame(p, "py::g", TICKMAP_FRAME_PYTHON, 10);
	assert_false(tickmap_profile_needs_line(p, one));
	uint32_t two = frame(p, "py::f", TICKMAP_FRAME_PYTHON, 20);
	assert_true(tickmap_profile_needs_line(p, one));
	assert_true(tickmap_profile_needs_line(p, two));
	assert_false(tickmap_profile_needs_line(p, other));
	assert_false(tickmap_profile_needs_line(
		p, frame(p, "py::f", TICKMAP_FRAME_PYTHON, 0)));
	tickmap_profile_free(p);
}

/* Counts on random trees against counting each sample's frames one by one. */
static void the_table_equals_naive_counting(void **state)
{
	enum { FRAMES = 12, NODES = 400, SAMPLES = 3000 };
	struct tickmap_profile *p = tickmap_profile_new();
	struct tickmap_functions table;
	uint64_t self[FRAMES] = { 0 }, total[FRAMES] = { 0 };
	uint64_t managed[FRAMES] = { 0 };
	uint64_t seed = 20261130;

	(void)state;
	for (uint32_t i = 0; i < FRAMES; i++) {
		char name[16];
		snprintf(name, sizeof(name), "f%u", i);
		assert_int_equal(
			frame(p, name,
			      i % 3 ? TICKMAP_FRAME_NATIVE : TICKMAP_FRAME_JIT,
			      0),
			i);
	}
	for (int i = 0; i < NODES; i++) {
		seed = seed * 6364136223846793005U + 1442695040888963407U;
		uint32_t parent =
			(uint32_t)(seed >> 33) % (uint32_t)p->nodes.count;
		tickmap_profile_node(p, parent,
				     (uint32_t)(seed >> 20) % FRAMES);
	}
	for (int i = 0; i < SAMPLES; i++) {
		seed = seed * 6364136223846793005U + 1442695040888963407U;
		uint32_t node = 1 + (uint32_t)(seed >> 33) %
					    (uint32_t)(p->nodes.count - 1);
		bool seen[FRAMES] = { false }, owned = false;
		sample(p, node);
		self[p->nodes.items[node].frame]++;
		for (uint32_t n = node; n; n = p->nodes.items[n].parent) {
			uint32_t f = p->nodes.items[n].frame;
			total[f] += !seen[f];
			seen[f] = true;
			managed[f] += !owned && f % 3 == 0;
			owned |= f % 3 == 0;
		}
	}
	assert_int_equal(tickmap_profile_functions(p, NULL, 0, &table), 0);
	assert_int_equal(table.count, FRAMES);
	for (size_t i = 0; i < table.count; i++) {
		const struct tickmap_function *row = &table.rows[i];
		assert_int_equal(row->self, self[row->frame]);
		assert_int_equal(row->total, total[row->frame]);
		assert_int_equal(row->managed_self, managed[row->frame]);
		if (i)
			assert_true(row[-1].managed_self >= row->managed_self);
	}
	tickmap_functions_free(&table);
	tickmap_profile_free(p);
}

static void every_reason_has_a_word_and_a_text(void **state)
{
	(void)state;
	for (int i = 0; i < TICKMAP_UNRESOLVED_COUNT; i++) {
		assert_non_null(
			tickmap_unresolved_word((enum tickmap_unresolved)i));
		assert_non_null(
			tickmap_unresolved_text((enum tickmap_unresolved)i));
		assert_null(strchr(
			tickmap_unresolved_word((enum tickmap_unresolved)i),
			' '));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_frames_and_equal_stacks_are_one),
		cmocka_unit_test(recursion_counts_once_in_the_total),
		cmocka_unit_test(
			the_innermost_published_function_owns_what_runs_below_it),
		cmocka_unit_test(only_names_with_several_lines_need_one),
		cmocka_unit_test(the_table_equals_naive_counting),
		cmocka_unit_test(every_reason_has_a_word_and_a_text),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

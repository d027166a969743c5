/* SPDX-License-Identifier: MIT */
/* The merged tree of calls, and the view without the interpreter. */
#include "output/names.h"
#include "output/tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct tickmap_profile *profile;

static uint32_t frame(const char *name, unsigned kind, bool interpreter)
{
	struct tickmap_frame f = {
		.name = tickmap_intern_cstr(profile->strings, name),
		.dso = tickmap_intern_cstr(profile->strings, "x"),
		.kind = (uint8_t)kind,
		.interpreter = interpreter,
	};

	return tickmap_profile_frame(profile, &f);
}

static void sample(const char *letters, const uint32_t *frames)
{
	struct tickmap_profile_sample s = { 0 };

	for (; *letters; letters++)
		s.node = tickmap_profile_node(profile, s.node,
					      frames[*letters - 'a']);
	*tickmap_vec_push(&profile->samples) = s;
}

static int make(void **state)
{
	(void)state;
	profile = tickmap_profile_new();
	return profile ? 0 : -1;
}

static int drop(void **state)
{
	(void)state;
	tickmap_profile_free(profile);
	return 0;
}

static struct tickmap_tree build(const struct tickmap_profile *of, bool fold)
{
	uint32_t *keys = tickmap_names_functions(profile);
	struct tickmap_tree_options options = {
		.keys = keys,
		.fold_recursion = fold,
	};
	struct tickmap_tree tree;

	assert_non_null(keys);
	assert_int_equal(tickmap_tree_build(of, &options, &tree), 0);
	free(keys);
	return tree;
}

static void letters(uint32_t *frames)
{
	for (int i = 0; i < 6; i++) {
		char name[2] = { (char)('a' + i), 0 };

		frames[i] = frame(name, TICKMAP_FRAME_NATIVE, false);
	}
}

static void direct_recursion_is_one_node_that_knows_its_depth(void **state)
{
	uint32_t f[6];

	(void)state;
	letters(f);
	sample("abbbb", f);
	sample("abb", f);
	sample("abbc", f);
	struct tickmap_tree tree = build(profile, true);

	assert_int_equal(tree.nodes.count, 4); /* root, a, b, c */
	assert_int_equal(tree.nodes.items[2].laps, 4);
	assert_int_equal(tree.nodes.items[2].total, 3);
	assert_int_equal(tree.nodes.items[2].self, 2);
	assert_int_equal(tree.nodes.items[3].total, 1);
	tickmap_tree_free(&tree);
	tree = build(profile, false);
	assert_int_equal(tree.nodes.count, 7);
	tickmap_tree_free(&tree);
}

static void mutual_recursion_goes_back_into_its_first_lap(void **state)
{
	uint32_t f[6];

	(void)state;
	letters(f);
	sample("abcbcbcbc", f);
	sample("abcd", f);
	struct tickmap_tree tree = build(profile, true);
	uint64_t self = 0;

	/* a b c (b) d: the second b is there until c closes the cycle. */
	assert_int_equal(tree.nodes.count, 6);
	for (size_t i = 0; i < tree.nodes.count; i++)
		self += tree.nodes.items[i].self;
	assert_int_equal(self, 2);
	assert_int_equal(tree.nodes.items[1].total, 2);
	assert_int_equal(tree.nodes.items[3].laps, 4);
	tickmap_tree_free(&tree);
}

static void calls_that_only_look_alike_are_not_recursion(void **state)
{
	uint32_t f[6];

	(void)state;
	letters(f);
	sample("abac", f); /* a wrapper around two functions */
	struct tickmap_tree tree = build(profile, true);

	assert_int_equal(tree.nodes.count, 5);
	tickmap_tree_free(&tree);
}

static void folding_loses_no_sample_of_any_stack(void **state)
{
	uint32_t f[6], random = 1;

	(void)state;
	letters(f);
	for (int i = 0; i < 2000; i++) {
		char stack[40];
		size_t length = 1 + (size_t)i % (sizeof(stack) - 1);

		for (size_t n = 0; n < length; n++) {
			random = random * 1664525 + 1013904223;
			stack[n] = (char)('a' + (random >> 24) % 3);
		}
		stack[length] = 0;
		sample(stack, f);
	}
	struct tickmap_tree tree = build(profile, true);

	assert_int_equal(tree.nodes.items[0].total, 2000);
	for (uint32_t i = 0; i < tree.nodes.count; i++) {
		uint64_t below = tree.nodes.items[i].self, before = UINT64_MAX;

		for (uint32_t c = tree.nodes.items[i].first; c;
		     c = tree.nodes.items[c].next) {
			assert_true(c > i);
			assert_true(tree.nodes.items[c].total <= before);
			before = tree.nodes.items[c].total;
			below += before;
		}
		assert_int_equal(below, tree.nodes.items[i].total);
	}
	tickmap_tree_free(&tree);
}

static void the_view_hides_the_interpreter_only_around_python(void **state)
{
	struct tickmap_profile view;

	(void)state;
	uint32_t f[] = {
		frame("Py_RunMain", TICKMAP_FRAME_NATIVE, true),
		frame("py::f:/a", TICKMAP_FRAME_PYTHON, false),
		frame("eval", TICKMAP_FRAME_NATIVE, true),
		frame("inflate", TICKMAP_FRAME_NATIVE, false),
	};

	sample("abc", f);
	sample("abcd", f);
	sample("ac", f);
	assert_int_equal(tickmap_folded_view(profile, &view), 0);
	struct tickmap_tree tree = build(&view, false);
	uint64_t self[4] = { 0 }, total[4] = { 0 };

	for (size_t i = 1; i < tree.nodes.count; i++) {
		self[tree.nodes.items[i].key] += tree.nodes.items[i].self;
		total[tree.nodes.items[i].key] += tree.nodes.items[i].total;
	}
	assert_int_equal(tree.nodes.count, 5);
	assert_int_equal(total[0], 1); /* the start-up's own stack */
	assert_int_equal(self[1], 1);
	assert_int_equal(total[1], 2);
	assert_int_equal(self[2], 1);
	assert_int_equal(self[3], 1);
	tickmap_tree_free(&tree);
	tickmap_folded_free(&view);
}

static void a_profile_without_samples_is_a_tree_of_its_root(void **state)
{
	struct tickmap_profile view;

	(void)state;
	assert_int_equal(tickmap_folded_view(profile, &view), 0);
	struct tickmap_tree tree = build(&view, true);

	assert_int_equal(tree.nodes.count, 1);
	assert_int_equal(tree.nodes.items[0].total, 0);
	tickmap_tree_free(&tree);
	tickmap_folded_free(&view);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, make, drop)
	const struct CMUnitTest tests[] = {
		TEST(direct_recursion_is_one_node_that_knows_its_depth),
		TEST(mutual_recursion_goes_back_into_its_first_lap),
		TEST(calls_that_only_look_alike_are_not_recursion),
		TEST(folding_loses_no_sample_of_any_stack),
		TEST(the_view_hides_the_interpreter_only_around_python),
		TEST(a_profile_without_samples_is_a_tree_of_its_root),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

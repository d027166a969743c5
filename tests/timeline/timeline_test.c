/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those first */
#include <cmocka.h>

#include "timeline/timeline.h"

#include <stdio.h>

#define CODE TICKMAP_LAYER_CODE
#define FILE_ TICKMAP_LAYER_FILE
#define ANON TICKMAP_LAYER_ANON
#define NOBODY TICKMAP_NO_OWNER

static uint64_t owner_at(const struct tickmap_timeline *timeline, uint64_t when,
			 uint64_t avma)
{
	return tickmap_timeline_find(timeline, when, avma, 0).owner;
}

static struct tickmap_timeline *new_timeline(void)
{
	struct tickmap_timeline *timeline = tickmap_timeline_new();
	assert_non_null(timeline);
	return timeline;
}

#define load(...) assert_true(tickmap_timeline_load(__VA_ARGS__))
#define move(...) assert_true(tickmap_timeline_move(__VA_ARGS__))
#define seal(t) assert_true(tickmap_timeline_seal(t))

static void each_generation_at_an_address_has_its_own_time(void **unused)
{
	struct tickmap_timeline *t = new_timeline();

	(void)unused;
	load(t, CODE, 30, 0x1000, 0x100, 3);
	load(t, CODE, 10, 0x1000, 0x100, 1);
	load(t, CODE, 20, 0x1000, 0x100, 2);
	seal(t);
	assert_int_equal(owner_at(t, 9, 0x1000), NOBODY);
	assert_int_equal(owner_at(t, 10, 0x1000), 1);
	assert_int_equal(owner_at(t, 19, 0x10ff), 1);
	assert_int_equal(owner_at(t, 20, 0x10ff), 2);
	assert_int_equal(owner_at(t, UINT64_MAX, 0x1000), 3);
	assert_int_equal(owner_at(t, 30, 0x1100), NOBODY);
	tickmap_timeline_free(t);
}

static void large_numbers_and_large_code_are_kept_whole(void **unused)
{
	static const uint64_t numbers[] = { UINT32_MAX - 1, UINT32_MAX,
					    UINT64_C(1) << 32, UINT64_MAX - 1 };
	static const uint64_t sizes[] = { 1, UINT32_MAX, UINT64_C(1) << 32,
					  (UINT64_C(1) << 32) + 1 };
	struct tickmap_timeline *t = new_timeline();

	(void)unused;
	for (unsigned i = 0; i < 4; i++)
		for (unsigned j = 0; j < 4; j++)
			load(t, CODE, 10 + i, (uint64_t)j << 34, sizes[j],
			     numbers[i]);
	seal(t);
	for (unsigned i = 0; i < 4; i++)
		for (uint64_t j = 0; j < 4; j++) {
			uint64_t last = (j << 34) + sizes[j] - 1;
			struct tickmap_owner found =
				tickmap_timeline_find(t, 10 + i, last, 0);
			assert_true(found.owner == numbers[i]);
			assert_true(found.start == j << 34);
			assert_int_equal(found.since, 10 + i);
			assert_int_equal(found.certain, 10 + i);
			assert_true(owner_at(t, 10 + i, last + 1) == NOBODY);
		}
	tickmap_timeline_free(t);
}

static void an_overlapping_load_ends_only_the_overlapped_part(void **unused)
{
	struct tickmap_timeline *t = new_timeline();
	struct tickmap_owner found;

	(void)unused;
	load(t, CODE, 10, 0x1000, 0x100, 1);
	load(t, CODE, 20, 0x1040, 0x20, 2);
	seal(t);
	assert_int_equal(owner_at(t, 20, 0x103f), 1);
	assert_int_equal(owner_at(t, 20, 0x1040), 2);
	assert_int_equal(owner_at(t, 19, 0x1040), 1);
	found = tickmap_timeline_find(t, 20, 0x1060, 0);
	assert_int_equal(found.owner, 1);
	assert_int_equal(found.start, 0x1000);
	assert_int_equal(found.since, 10);
	tickmap_timeline_free(t);
}

static void of_two_loads_at_the_same_time_the_later_added_wins(void **unused)
{
	struct tickmap_timeline *t = new_timeline();

	(void)unused;
	load(t, CODE, 10, 0x1000, 0x10, 1);
	load(t, CODE, 10, 0x1000, 0x10, 2);
	load(t, CODE, 5, 0x1000, 0x10, 3);
	seal(t);
	assert_int_equal(owner_at(t, 10, 0x1000), 2);
	assert_int_equal(owner_at(t, 9, 0x1000), 3);
	tickmap_timeline_free(t);
}

static void
a_file_mapping_ends_code_but_anonymous_memory_does_not(void **unused)
{
	struct tickmap_timeline *t = new_timeline();
	struct tickmap_owner found;

	(void)unused;
	load(t, CODE, 10, 0x1000, 0x1000, 1);
	load(t, ANON, 20, 0x0, 0x10000, 2);
	load(t, FILE_, 30, 0x1800, 0x1000, 3);
	seal(t);
	assert_int_equal(owner_at(t, 25, 0x1900), 1);
	assert_int_equal(owner_at(t, 35, 0x1900), 3);
	assert_int_equal(owner_at(t, 35, 0x1100), 1);
	found = tickmap_timeline_find(t, 35, 0x3000, 0);
	assert_int_equal(found.owner, 2);
	assert_int_equal(found.layer, ANON);
	assert_int_equal(owner_at(t, 19, 0x3000), NOBODY);
	tickmap_timeline_free(t);
}

static void code_that_came_later_owns_its_part_of_a_file_mapping(void **unused)
{
	struct tickmap_timeline *t = new_timeline();

	(void)unused;
	load(t, FILE_, 10, 0x1000, 0x1000, 1);
	load(t, CODE, 20, 0x1100, 0x10, 2);
	move(t, 30, 0x1100, 0x9000, 0x10, NOBODY);
	seal(t);
	assert_int_equal(owner_at(t, 15, 0x1100), 1);
	assert_int_equal(owner_at(t, 25, 0x1100), 2);
	assert_int_equal(owner_at(t, 25, 0x1110), 1);
	/* The file never went away. */
	assert_int_equal(owner_at(t, 35, 0x1100), 1);
	assert_int_equal(owner_at(t, 35, 0x9000), 2);
	tickmap_timeline_free(t);
}

static void a_move_frees_the_old_range_and_keeps_the_owner(void **unused)
{
	struct tickmap_timeline *t = new_timeline();

	(void)unused;
	load(t, CODE, 10, 0x1000, 0x100, 1);
	load(t, CODE, 12, 0x1080, 0x10, 2);
	move(t, 20, 0x1000, 0x1040, 0x100, NOBODY); /* overlaps itself */
	move(t, 30, 0x5000, 0x6000, 0x10, 7);	    /* nothing known there */
	move(t, 40, 0x5000, 0x1040, 0x10, NOBODY);
	seal(t);
	assert_int_equal(owner_at(t, 20, 0x1000), NOBODY);
	assert_int_equal(owner_at(t, 20, 0x1040), 1);
	assert_int_equal(owner_at(t, 20, 0x1085), 1);
	assert_int_equal(owner_at(t, 19, 0x1085), 2);
	assert_int_equal(owner_at(t, 20, 0x113f), 1);
	assert_int_equal(tickmap_timeline_find(t, 20, 0x1040, 0).since, 10);
	assert_int_equal(tickmap_timeline_find(t, 20, 0x1140 - 1, 0).start,
			 0x1040);
	assert_int_equal(owner_at(t, 30, 0x6000), 7);
	assert_int_equal(owner_at(t, 40, 0x1040), NOBODY);
	tickmap_timeline_free(t);
}

static void a_move_does_not_take_what_others_own_of_the_old_range(void **unused)
{
	struct tickmap_timeline *t = new_timeline();

	(void)unused;
	load(t, CODE, 10, 0x1000, 0x100, 1);
	load(t, CODE, 12, 0x1080, 0x100, 2);
	move(t, 20, 0x1000, 0x8000, 0x100, NOBODY);
	seal(t);
	assert_int_equal(owner_at(t, 20, 0x1000), NOBODY);
	assert_int_equal(owner_at(t, 20, 0x1080), 2);
	assert_int_equal(owner_at(t, 20, 0x80ff), 1);
	tickmap_timeline_free(t);
}

static void a_move_from_a_stale_address_moves_nobody_else(void **unused)
{
	struct tickmap_timeline *t = new_timeline();

	(void)unused;
	load(t, CODE, 10, 0x1000, 0x100, 1);
	load(t, CODE, 12, 0x1000, 0x100, 2);
	move(t, 20, 0x1000, 0x8000, 0x100, 1);
	move(t, 30, 0x1000, 0x9000, 0x100, 2);
	seal(t);
	assert_int_equal(owner_at(t, 20, 0x1000), 2);
	assert_int_equal(owner_at(t, 20, 0x8000), 1);
	assert_int_equal(owner_at(t, 30, 0x1000), NOBODY);
	assert_int_equal(owner_at(t, 30, 0x9000), 2);
	tickmap_timeline_free(t);
}

static void an_answer_says_from_when_on_it_is_certain(void **unused)
{
	struct tickmap_timeline *t = new_timeline(), *child = new_timeline();
	struct tickmap_owner owner;
	uint64_t until;

	(void)unused;
	assert_true(tickmap_timeline_load_within(t, 10, 15, 0x1000, 16, 1));
	assert_true(tickmap_timeline_load_within(t, 20, 35, 0x1000, 16, 2));
	assert_true(
		tickmap_timeline_move_within(t, 40, 50, 0x1000, 0x2000, 16, 2));
	assert_true(tickmap_timeline_fork(child, 30, t));
	seal(t);
	seal(child);
	owner = tickmap_timeline_find(t, 30, 0x1008, 0);
	assert_int_equal(owner.owner, 2);
	assert_int_equal(owner.placed, 20);
	assert_int_equal(owner.certain, 35);
	owner = tickmap_timeline_before(t, owner.placed, 0x1008, &until);
	assert_int_equal(owner.owner, 1);
	assert_int_equal(owner.certain, 15);
	assert_int_equal(until, 20);
	owner = tickmap_timeline_before(t, owner.placed, 0x1008, &until);
	assert_int_equal(owner.owner, NOBODY);
	owner = tickmap_timeline_find(t, 60, 0x2000, 0);
	assert_int_equal(owner.owner, 2);
	assert_int_equal(owner.since, 20);
	assert_int_equal(owner.placed, 40);
	assert_int_equal(owner.certain, 50);
	/* The child still has what the parent moved away later. */
	owner = tickmap_timeline_find(child, 60, 0x1008, 0);
	assert_int_equal(owner.owner, 2);
	owner = tickmap_timeline_before(child, owner.placed, 0x1008, &until);
	assert_int_equal(owner.owner, NOBODY);
	tickmap_timeline_free(child);
	tickmap_timeline_free(t);
}

static void a_child_starts_with_its_parents_code(void **unused)
{
	struct tickmap_timeline *parent = new_timeline();
	struct tickmap_timeline *child = new_timeline();
	struct tickmap_timeline *grandchild = new_timeline();

	(void)unused;
	load(parent, CODE, 10, 0x1000, 0x100, 1);
	load(parent, CODE, 30, 0x1000, 0x100, 2); /* after the fork */
	assert_true(tickmap_timeline_fork(child, 20, parent));
	load(child, CODE, 25, 0x1080, 0x10, 3);
	move(child, 26, 0x1000, 0x4000, 0x100, NOBODY);
	assert_true(tickmap_timeline_fork(grandchild, 25, child));
	assert_true(tickmap_timeline_exec(grandchild, 40));
	load(grandchild, FILE_, 41, 0x1000, 0x10, 4);
	seal(parent);
	seal(child);
	seal(grandchild);
	assert_int_equal(owner_at(parent, 35, 0x1000), 2);
	assert_int_equal(owner_at(child, 20, 0x1000), 1);
	assert_int_equal(owner_at(child, 35, 0x1000), NOBODY);
	assert_int_equal(owner_at(child, 35, 0x4000), 1);
	assert_int_equal(owner_at(child, 35, 0x1085), 3);
	assert_int_equal(owner_at(child, 35, 0x1095), NOBODY);
	assert_int_equal(owner_at(grandchild, 35, 0x1000), 1);
	assert_int_equal(owner_at(grandchild, 39, 0x1085), 3);
	assert_int_equal(owner_at(grandchild, 40, 0x1020), NOBODY);
	assert_int_equal(owner_at(grandchild, 41, 0x1005), 4);
	assert_int_equal(tickmap_timeline_elsewhen(grandchild, 40, 0x1020), -1);
	tickmap_timeline_free(grandchild);
	tickmap_timeline_free(child);
	tickmap_timeline_free(parent);
}

static void nobody_is_its_own_ancestor(void **unused)
{
	struct tickmap_timeline *a = new_timeline(), *b = new_timeline();

	(void)unused;
	load(a, CODE, 10, 0x1000, 0x100, 1);
	assert_true(tickmap_timeline_fork(b, 20, a));
	assert_true(tickmap_timeline_fork(a, 5, b));
	assert_true(tickmap_timeline_fork(a, 5, a));
	seal(a);
	seal(b);
	assert_int_equal(owner_at(b, 20, 0x1000), 1);
	assert_int_equal(owner_at(b, 20, 0x2000), NOBODY);
	tickmap_timeline_free(b);
	tickmap_timeline_free(a);
}

static void code_loaded_within_the_slack_is_found_early(void **unused)
{
	struct tickmap_timeline *t = new_timeline();
	struct tickmap_owner found;

	(void)unused;
	load(t, ANON, 0, 0x1000, 0x1000, 9);
	load(t, FILE_, 0, 0x8000, 0x1000, 8);
	load(t, CODE, 100, 0x1000, 0x100, 1);
	load(t, CODE, 104, 0x1000, 0x100, 2);
	load(t, CODE, 100, 0x8000, 0x100, 3);
	seal(t);
	found = tickmap_timeline_find(t, 95, 0x1000, 5);
	assert_int_equal(found.owner, 1);
	assert_true(found.early);
	found = tickmap_timeline_find(t, 94, 0x1000, 5);
	assert_int_equal(found.owner, 9);
	assert_false(found.early);
	assert_int_equal(tickmap_timeline_find(t, 95, 0x8000, 5).owner, 8);
	assert_int_equal(tickmap_timeline_elsewhen(t, 95, 0x1000), 1);
	assert_int_equal(tickmap_timeline_elsewhen(t, 95, 0x3000), 0);
	tickmap_timeline_free(t);
}

static void ranges_reach_up_to_the_top_of_the_address_space(void **unused)
{
	struct tickmap_timeline *t = new_timeline();

	(void)unused;
	load(t, CODE, 10, UINT64_MAX - 0xf, 0x10, 1);
	load(t, CODE, 20, UINT64_MAX - 0x7, UINT64_MAX, 2);
	load(t, CODE, 30, 0, 0, 3);
	seal(t);
	assert_int_equal(owner_at(t, 10, UINT64_MAX), 1);
	assert_int_equal(owner_at(t, 20, UINT64_MAX), 2);
	assert_int_equal(owner_at(t, 20, UINT64_MAX - 8), 1);
	assert_int_equal(owner_at(t, 30, 0), NOBODY);
	tickmap_timeline_free(t);
}

static void more_events_can_follow_a_seal(void **unused)
{
	struct tickmap_timeline *t = new_timeline();

	(void)unused;
	assert_int_equal(owner_at(t, 0, 0), NOBODY);
	seal(t);
	assert_int_equal(owner_at(t, 0, 0), NOBODY);
	load(t, CODE, 10, 0x1000, 0x100, 1);
	seal(t);
	load(t, CODE, 5, 0x1000, 0x100, 2);
	load(t, CODE, 10, 0x1000, 0x10, 3);
	seal(t);
	assert_int_equal(owner_at(t, 9, 0x1000), 2);
	assert_int_equal(owner_at(t, 10, 0x1010), 1);
	assert_int_equal(owner_at(t, 10, 0x1000), 3);
	load(t, CODE, 20, 0x1000, 0x10, 4);
	assert_true(tickmap_timeline_close(t));
	assert_int_equal(owner_at(t, 9, 0x1000), 2);
	assert_int_equal(owner_at(t, 19, 0x1000), 3);
	assert_int_equal(owner_at(t, 20, 0x1000), 4);
	tickmap_timeline_free(t);
	tickmap_timeline_free(NULL);
}

static void a_move_of_everything_again_and_again_stays_cheap(void **unused)
{
	struct tickmap_timeline *t = new_timeline();
	enum { N = 20000 };

	(void)unused;
	/* Quadratic, this would take minutes and run into the time limit. */
	for (uint64_t i = 0; i < N; i++)
		load(t, CODE, i, 0x10000 + i * 16, 16, i);
	for (uint64_t i = 0; i < N; i++) {
		load(t, CODE, N + 2 * i, 0x1000, 1, N + i);
		move(t, N + 2 * i + 1, 0x1000, UINT64_C(1) << 63, 1 << 30,
		     NOBODY);
	}
	seal(t);
	assert_int_equal(owner_at(t, 4 * N, 0x10000 + 16 * 77), 77);
	assert_int_equal(owner_at(t, 4 * N, UINT64_C(1) << 63), 2 * N - 1);
	tickmap_timeline_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			each_generation_at_an_address_has_its_own_time),
		cmocka_unit_test(large_numbers_and_large_code_are_kept_whole),
		cmocka_unit_test(
			an_overlapping_load_ends_only_the_overlapped_part),
		cmocka_unit_test(
			of_two_loads_at_the_same_time_the_later_added_wins),
		cmocka_unit_test(
			a_file_mapping_ends_code_but_anonymous_memory_does_not),
		cmocka_unit_test(
			code_that_came_later_owns_its_part_of_a_file_mapping),
		cmocka_unit_test(
			a_move_frees_the_old_range_and_keeps_the_owner),
		cmocka_unit_test(
			a_move_does_not_take_what_others_own_of_the_old_range),
		cmocka_unit_test(a_move_from_a_stale_address_moves_nobody_else),
		cmocka_unit_test(an_answer_says_from_when_on_it_is_certain),
		cmocka_unit_test(a_child_starts_with_its_parents_code),
		cmocka_unit_test(nobody_is_its_own_ancestor),
		cmocka_unit_test(code_loaded_within_the_slack_is_found_early),
		cmocka_unit_test(
			ranges_reach_up_to_the_top_of_the_address_space),
		cmocka_unit_test(more_events_can_follow_a_seal),
		cmocka_unit_test(
			a_move_of_everything_again_and_again_stays_cheap),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

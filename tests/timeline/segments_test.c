/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those first */
#include <cmocka.h>

#include "timeline/segments.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t state;

static uint64_t dice(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* The model: one cell an address. */
enum { CELLS = 1000 }; /* several runs of segments */

struct cell {
	uint64_t owner; /* 0: nobody */
	uint64_t origin;
};

struct model {
	uint64_t base; /* address of the first cell */
	struct cell cells[CELLS];
	unsigned lost[CELLS]; /* how often each address lost its owner */
	unsigned told[CELLS]; /* the same, as the segments told it */
};

static void told(void *context, const struct tickmap_segment *part)
{
	struct model *model = context;

	for (uint64_t a = part->start; a != part->end; a++) {
		struct cell *cell = &model->cells[a - model->base];
		assert_true(a - model->base < CELLS);
		assert_int_equal(cell->owner, part->owner);
		assert_int_equal(cell->origin, part->origin);
		model->told[a - model->base]++;
	}
}

static void model_set(struct model *model, unsigned at, unsigned size,
		      uint64_t owner)
{
	for (unsigned i = at; i < at + size && i < CELLS; i++) {
		if (model->cells[i].owner)
			model->lost[i]++;
		model->cells[i].owner = owner;
		model->cells[i].origin = owner ? model->base + at : 0;
	}
}

static void compare(const struct model *model,
		    const struct tickmap_segments *segments)
{
	size_t pieces = 0;

	for (unsigned i = 0; i < CELLS; i++) {
		const struct tickmap_segment *found =
			tickmap_segments_find(segments, model->base + i);
		if (!model->cells[i].owner) {
			assert_null(found);
			continue;
		}
		assert_non_null(found);
		assert_int_equal(found->owner, model->cells[i].owner);
		assert_int_equal(found->origin, model->cells[i].origin);
		pieces += found->start == model->base + i;
	}
	assert_int_equal(pieces, tickmap_segments_count(segments));
	assert_memory_equal(model->told, model->lost, sizeof(model->lost));
}

static void run_model(uint64_t base)
{
	struct tickmap_segments *segments = tickmap_segments_new();
	struct model model = { .base = base };
	uint64_t owner = 0;

	for (unsigned step = 0; step < 3000; step++) {
		/* First of all one behind the other, as a loader places them.
		 */
		unsigned at = step < CELLS ? step : (unsigned)(dice() % CELLS);
		unsigned size = (unsigned)(dice() % 3);
		bool clear = step >= CELLS && dice() % 5 == 0;
		if (step >= CELLS && dice() % 200 == 0)
			size = (unsigned)(dice() % CELLS);
		/* Model last: the cut is checked against what was. */
		if (at + size > CELLS && base + CELLS)
			size = CELLS - at;
		if (clear)
			tickmap_segments_clear(segments, base + at, size, told,
					       &model);
		else
			tickmap_segments_set(segments, base + at, size, ++owner,
					     told, &model);
		model_set(&model, at, size, clear ? 0 : owner);
		if (step % 20 == 0)
			compare(&model, segments);
	}
	compare(&model, segments);
	tickmap_segments_free(segments);
}

static void agrees_with_one_cell_an_address(void **unused)
{
	(void)unused;
	state = 0x7469636b6d617021;
	printf("seed %#llx\n", (unsigned long long)state);
	for (unsigned i = 0; i < 10; i++) {
		run_model(0);
		run_model(0x7f0000001000);
		run_model(UINT64_MAX - CELLS + 1); /* up to the top */
	}
}

static void many_small_ranges_then_one_over_all(void **unused)
{
	struct tickmap_segments *segments = tickmap_segments_new();
	struct tickmap_segments *copy;
	enum { N = 100000 };
	struct timespec begin, end;

	(void)unused;
	state = 42;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
	for (unsigned i = 0; i < N; i++) {
		uint64_t at = (i * UINT64_C(7919)) % N;
		assert_true(tickmap_segments_set(segments, at * 64, 32, i, NULL,
						 NULL));
	}
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	print_message("%d scattered ranges set in %.1f ms of CPU\n", N,
		      (double)(end.tv_sec - begin.tv_sec) * 1e3 +
			      (double)(end.tv_nsec - begin.tv_nsec) / 1e6);
	assert_int_equal(tickmap_segments_count(segments), N);
	for (unsigned i = 0; i < N; i++) {
		uint64_t at = (i * UINT64_C(7919)) % N * 64;
		const struct tickmap_segment *found =
			tickmap_segments_find(segments, at + 31);
		assert_non_null(found);
		assert_int_equal(found->owner, i);
		assert_null(tickmap_segments_find(segments, at + 32));
	}

	copy = tickmap_segments_clone(segments);
	assert_true(
		tickmap_segments_set(segments, 1, UINT64_MAX, 5, NULL, NULL));
	assert_int_equal(tickmap_segments_count(segments), 2);
	assert_int_equal(tickmap_segments_find(segments, 0)->owner, 0);
	assert_int_equal(tickmap_segments_find(segments, UINT64_MAX)->end, 0);
	assert_true(
		tickmap_segments_clear(segments, 0, UINT64_MAX, NULL, NULL));
	assert_int_equal(tickmap_segments_count(segments), 1);
	assert_int_equal(tickmap_segments_find(segments, UINT64_MAX)->owner, 5);
	assert_int_equal(tickmap_segments_count(copy), N);
	assert_non_null(tickmap_segments_find(copy, 64));
	tickmap_segments_free(segments);
	tickmap_segments_free(copy);
}

static void a_size_beyond_the_top_ends_at_the_top(void **unused)
{
	struct tickmap_segments *segments = tickmap_segments_new();
	const struct tickmap_segment *found;

	(void)unused;
	assert_true(tickmap_segments_set(segments, UINT64_MAX - 9, UINT64_MAX,
					 1, NULL, NULL));
	found = tickmap_segments_find(segments, UINT64_MAX);
	assert_non_null(found);
	assert_int_equal(found->start, UINT64_MAX - 9);
	assert_int_equal(found->end, 0);
	assert_null(tickmap_segments_find(segments, 0));
	tickmap_segments_free(segments);
}

static void nothing_is_found_in_nothing(void **unused)
{
	struct tickmap_segments *segments = tickmap_segments_new();

	(void)unused;
	assert_null(tickmap_segments_find(segments, 0));
	assert_true(tickmap_segments_clear(segments, 0, 10, NULL, NULL));
	assert_true(tickmap_segments_set(segments, 5, 0, 1, NULL, NULL));
	assert_int_equal(tickmap_segments_count(segments), 0);
	tickmap_segments_free(segments);
	tickmap_segments_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_with_one_cell_an_address),
		cmocka_unit_test(many_small_ranges_then_one_over_all),
		cmocka_unit_test(a_size_beyond_the_top_ends_at_the_top),
		cmocka_unit_test(nothing_is_found_in_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

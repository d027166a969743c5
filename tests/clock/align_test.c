/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those first */
#include <cmocka.h>

#include "tickmap/clock.h"

#include <string.h>

#define MS INT64_C(1000000)

static const struct tickmap_alignment_claim other_clock = { .nanoseconds =
								    true };
static const struct tickmap_alignment_claim one_clock = { .same = true,
							  .nanoseconds = true };
static const struct tickmap_alignment_claim unknown_unit = { .same = false };

static struct tickmap_alignment_result
solve(struct tickmap_alignment *a, const struct tickmap_alignment_claim *claim)
{
	struct tickmap_alignment_result result;

	tickmap_alignment_solve(a, claim);
	tickmap_alignment_result(a, &result);
	return result;
}

static struct tickmap_alignment *aligned(void)
{
	struct tickmap_alignment *a = tickmap_alignment_new();

	assert_non_null(a);
	return a;
}

static void floors_and_ceilings_bound_an_offset(void **state)
{
	struct tickmap_alignment *a = aligned();

	(void)state;
	assert_true(tickmap_alignment_floor(a, 1000 * MS, 985 * MS));
	assert_true(tickmap_alignment_floor(a, 1500 * MS, 1400 * MS));
	assert_true(tickmap_alignment_sample(a, 1100 * MS, 1086 * MS));
	assert_true(tickmap_alignment_sample(a, 1200 * MS, 1300 * MS));
	assert_true(tickmap_alignment_ceiling(a, 2000 * MS, 2500 * MS));
	struct tickmap_alignment_result r = solve(a, &other_clock);
	assert_int_equal(r.method, TICKMAP_CLOCK_OFFSET);
	/* A nanosecond for drift at each end. */
	assert_int_equal(r.low_ns, -15 * MS - 1);
	assert_int_equal(r.high_ns, -14 * MS + 1);
	assert_true(r.offset_ns >= r.low_ns && r.offset_ns <= r.high_ns);
	assert_true(r.error_ns >= (uint64_t)(r.offset_ns - r.low_ns));
	assert_int_equal(r.violations, 0);
	assert_int_equal(tickmap_alignment_earliest(a, 1200 * MS),
			 1185 * MS - 1);
	assert_int_equal(tickmap_alignment_latest(a, 1200 * MS), 1186 * MS + 1);
	tickmap_alignment_free(a);
}

static void drift_widens_the_bounds(void **state)
{
	struct tickmap_alignment_claim claim = other_clock;
	struct tickmap_alignment *a = aligned();

	(void)state;
	claim.span_ns = (uint64_t)(100 * 1000 * MS);
	assert_true(tickmap_alignment_floor(a, 1000, 1000));
	assert_true(tickmap_alignment_ceiling(a, 2000, 2100));
	struct tickmap_alignment_result r = solve(a, &claim);
	assert_int_equal(r.low_ns, -200001);
	assert_int_equal(r.high_ns, 200101);
	tickmap_alignment_free(a);
}

static void a_claim_is_believed_unless_evidence_is_against_it(void **state)
{
	struct tickmap_alignment *a = aligned();

	(void)state;
	/* A marker 6 ms behind the first record, as one runtime has it. */
	assert_true(tickmap_alignment_floor(a, 1000 * MS, 1006 * MS));
	for (int i = 0; i < 100; i++)
		assert_true(tickmap_alignment_sample(
			a, (uint64_t)(1100 + i) * MS,
			(uint64_t)(1100 + i + (i % 4 ? 1 : -5)) * MS));
	struct tickmap_alignment_result r = solve(a, &one_clock);
	assert_int_equal(r.method, TICKMAP_CLOCK_SAME);
	assert_int_equal(r.violations, 25);
	assert_int_equal(tickmap_alignment_earliest(a, 7), 7);
	assert_int_equal(tickmap_alignment_latest(a, 7), 7);
	tickmap_alignment_free(a);

	a = aligned();
	assert_true(tickmap_alignment_floor(a, 1000 * MS, 4600 * MS));
	assert_true(tickmap_alignment_ceiling(a, 1000 * MS, 4601 * MS));
	r = solve(a, &one_clock);
	assert_int_equal(r.method, TICKMAP_CLOCK_OFFSET);
	assert_int_equal(r.low_ns, 3600 * MS - 1);
	tickmap_alignment_free(a);
}

static void few_samples_are_outvoted_and_many_are_not(void **state)
{
	(void)state;
	for (int bad = 0; bad <= 20; bad += 2) {
		struct tickmap_alignment *a = aligned();
		assert_true(tickmap_alignment_floor(a, 1000, 1000));
		for (int i = 0; i < 500; i++)
			assert_true(tickmap_alignment_sample(
				a, 100000, i < bad ? 50000u : 100500u));
		struct tickmap_alignment_result r = solve(a, &other_clock);
		assert_int_equal(r.method, bad <= 6 ? TICKMAP_CLOCK_OFFSET
						    : TICKMAP_CLOCK_NONE);
		if (r.method == TICKMAP_CLOCK_OFFSET)
			assert_int_equal(r.violations, bad);
		tickmap_alignment_free(a);
	}
}

static void without_a_unit_the_order_still_bounds(void **state)
{
	struct tickmap_alignment *a = aligned();

	(void)state;
	assert_true(tickmap_alignment_floor(a, 10, 5000));
	assert_true(tickmap_alignment_sample(a, 20, 6000));
	assert_true(tickmap_alignment_sample(a, 30, 5500));
	assert_true(tickmap_alignment_sample(a, 40, 9000));
	struct tickmap_alignment_result r = solve(a, &unknown_unit);
	assert_int_equal(r.method, TICKMAP_CLOCK_NONE);
	assert_int_equal(tickmap_alignment_earliest(a, 9), 0);
	assert_int_equal(tickmap_alignment_earliest(a, 10), 5000);
	/* What 30 is before, 20 is before, too. */
	assert_int_equal(tickmap_alignment_latest(a, 15), 5500);
	assert_int_equal(tickmap_alignment_latest(a, 30), 5500);
	assert_int_equal(tickmap_alignment_latest(a, 31), 9000);
	assert_int_equal(tickmap_alignment_latest(a, 41), UINT64_MAX);
	tickmap_alignment_free(a);
}

static void wide_bounds_are_no_offset(void **state)
{
	struct tickmap_alignment *a = aligned();

	(void)state;
	assert_true(tickmap_alignment_floor(a, 0, 0));
	assert_true(tickmap_alignment_ceiling(a, 0, 5000 * MS));
	struct tickmap_alignment_result r = solve(a, &other_clock);
	assert_int_equal(r.method, TICKMAP_CLOCK_NONE);
	assert_int_equal(r.offset_ns, 0);
	assert_int_equal(tickmap_alignment_latest(a, 7), 5000 * MS + 8);
	/* Another program of the machine knows more. */
	assert_true(tickmap_alignment_narrow(a, 10 * MS, 11 * MS));
	tickmap_alignment_result(a, &r);
	assert_int_equal(r.method, TICKMAP_CLOCK_OFFSET);
	assert_int_equal(r.low_ns, 10 * MS);
	assert_false(tickmap_alignment_narrow(a, 12 * MS, 13 * MS));
	tickmap_alignment_free(a);
}

static void numbers_at_the_edge_do_not_overflow(void **state)
{
	struct tickmap_alignment *a = aligned();

	(void)state;
	assert_true(tickmap_alignment_floor(a, UINT64_MAX, 0));
	assert_true(tickmap_alignment_ceiling(a, 0, UINT64_MAX));
	struct tickmap_alignment_result r = solve(a, &other_clock);
	assert_int_equal(r.method, TICKMAP_CLOCK_NONE);
	assert_int_equal(r.low_ns, INT64_MIN);
	assert_int_equal(r.high_ns, INT64_MAX);
	assert_int_equal(tickmap_alignment_earliest(a, 5), 0);
	assert_int_equal(tickmap_alignment_latest(a, 5), UINT64_MAX);
	tickmap_alignment_free(a);
}

static void ticks_are_converted_as_the_kernel_says(void **state)
{
	const struct tickmap_clock_conversion plain = { .shift = 10,
							.mult = 427,
							.zero = 1000 };
	const struct tickmap_clock_conversion wraps = {
		.shift = 0, .mult = 1, .cycles = 0x1fff0, .mask = 0xffff
	};
	const struct tickmap_clock_conversion absurd = { .shift = 5000,
							 .mult = UINT64_MAX };

	(void)state;
	assert_int_equal(tickmap_clock_convert(&plain, 2048), 1000 + 2 * 427);
	assert_int_equal(tickmap_clock_convert(&plain, 1024 + 512),
			 1000 + 427 + 427 / 2);
	/* The product alone would not fit. */
	assert_int_equal(tickmap_clock_convert(&plain, UINT64_C(1) << 60),
			 1000 + (UINT64_C(1) << 50) * 427);
	assert_int_equal(tickmap_clock_convert(&wraps, 0x0010), 0x20010);
	tickmap_clock_convert(&absurd, UINT64_MAX);
}

static void clocks_have_names(void **state)
{
	(void)state;
	assert_int_equal(tickmap_clock_of_attr(false, 1), TICKMAP_CLOCK_PERF);
	/* Number 0 with the bit set is a clock. */
	assert_string_equal(tickmap_clock_name(tickmap_clock_of_attr(true, 0)),
			    "realtime");
	assert_string_equal(tickmap_clock_name(tickmap_clock_of_attr(true, 1)),
			    "monotonic");
	assert_string_equal(tickmap_clock_name(tickmap_clock_of_attr(true, 4)),
			    "monotonic_raw");
	assert_string_equal(tickmap_clock_name(tickmap_clock_of_attr(true, 7)),
			    "boottime");
	assert_string_equal(tickmap_clock_name(tickmap_clock_of_attr(true, 11)),
			    "tai");
	assert_string_equal(
		tickmap_clock_name(tickmap_clock_of_attr(true, -77)), "other");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(floors_and_ceilings_bound_an_offset),
		cmocka_unit_test(drift_widens_the_bounds),
		cmocka_unit_test(
			a_claim_is_believed_unless_evidence_is_against_it),
		cmocka_unit_test(few_samples_are_outvoted_and_many_are_not),
		cmocka_unit_test(without_a_unit_the_order_still_bounds),
		cmocka_unit_test(wide_bounds_are_no_offset),
		cmocka_unit_test(numbers_at_the_edge_do_not_overflow),
		cmocka_unit_test(ticks_are_converted_as_the_kernel_says),
		cmocka_unit_test(clocks_have_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Ticks into nanoseconds, against 128-bit arithmetic. */
#include "support.h"

#include "emit/internal.h"

/* What mach_timebase_info has been seen to say, and the extremes. */
static const uint32_t ratios[][2] = {
	{ 1, 1 },
	{ 125, 3 },
	{ 1000000000, 24000000 },
	{ 1000000000, 33333335 },
	{ 3, 125 },
	{ UINT32_MAX, 1 },
	{ 1, UINT32_MAX },
	{ UINT32_MAX, UINT32_MAX - 1 },
};
#define RATIOS (sizeof(ratios) / sizeof(ratios[0]))

__extension__ typedef unsigned __int128 u128;

static bool fits(uint64_t ticks, const uint32_t *ratio, uint64_t *ret_ns)
{
	u128 ns = (u128)ticks * ratio[0] / ratio[1];

	*ret_ns = (uint64_t)ns;
	return ns >> 64 == 0;
}

static void ticks_are_scaled_exactly(void **state)
{
	uint64_t random = 88172645463325252u;
	size_t compared = 0;

	(void)state;
	for (size_t i = 0; i < 200000; i++) {
		uint64_t ticks = random >> i % 64;

		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		for (size_t r = 0; r < RATIOS; r++) {
			uint64_t ns;

			if (!fits(ticks, ratios[r], &ns))
				continue;
			assert_true(
				tickmap_emit_scale_ticks(ticks, ratios[r][0],
							 ratios[r][1]) == ns);
			compared++;
		}
	}
	assert_true(compared > 800000);
}

/* Where a product in 64 bits would overflow: no stamp steps back, and each
 * lies within a tick of the one before. */
static void stamps_never_step_back(void **state)
{
	(void)state;
	for (size_t r = 0; r < RATIOS; r++) {
		uint64_t edge = UINT64_MAX / ratios[r][0];
		uint64_t step = (uint64_t)ratios[r][0] / ratios[r][1] + 1;
		uint64_t last = 0;

		for (uint64_t ticks = edge - 1000;
		     ticks < edge + 1000 && ticks > 1000; ticks++) {
			uint64_t ns;
			uint64_t ours = tickmap_emit_scale_ticks(
				ticks, ratios[r][0], ratios[r][1]);

			if (!fits(ticks, ratios[r], &ns))
				break;
			assert_true(!last ||
				    (ours >= last && ours - last <= step));
			last = ours;
		}
	}
}

/* An hour and two centuries of a 24 MHz counter. */
static void known_times_are_known(void **state)
{
	const uint64_t hour = UINT64_C(24000000) * 3600;
	const uint64_t years = hour * 24 * 365 * 200;

	(void)state;
	assert_true(tickmap_emit_scale_ticks(hour, 125, 3) ==
		    UINT64_C(3600000000000));
	assert_true(tickmap_emit_scale_ticks(hour, 1000000000, 24000000) ==
		    UINT64_C(3600000000000));
	assert_true(tickmap_emit_scale_ticks(years, 125, 3) ==
		    UINT64_C(6307200000000000000));
	assert_true(tickmap_emit_scale_ticks(years, 1000000000, 24000000) ==
		    UINT64_C(6307200000000000000));
	assert_true(tickmap_emit_scale_ticks(1, 125, 3) == 41);
	assert_true(tickmap_emit_scale_ticks(7, 1, 1) == 7);
	assert_true(tickmap_emit_scale_ticks(7, 1, 0) == 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ticks_are_scaled_exactly),
		cmocka_unit_test(stamps_never_step_back),
		cmocka_unit_test(known_times_are_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
#include "tickmap/clock.h"

/* The kernel's numbers of clocks: recordings carry them, whatever the machine
 * that reads. */
enum { REALTIME = 0, MONOTONIC = 1, MONOTONIC_RAW = 4, BOOTTIME = 7, TAI = 11 };

const char *tickmap_clock_name(enum tickmap_clock clock)
{
	switch (clock) {
	case TICKMAP_CLOCK_PERF:
		return "perf";
	case TICKMAP_CLOCK_REALTIME:
		return "realtime";
	case TICKMAP_CLOCK_MONOTONIC:
		return "monotonic";
	case TICKMAP_CLOCK_MONOTONIC_RAW:
		return "monotonic_raw";
	case TICKMAP_CLOCK_BOOTTIME:
		return "boottime";
	case TICKMAP_CLOCK_TAI:
		return "tai";
	case TICKMAP_CLOCK_TICKS:
		return "ticks";
	case TICKMAP_CLOCK_UNKNOWN:
		break;
	}
	return "other";
}

enum tickmap_clock tickmap_clock_of_attr(bool use_clockid, int32_t clockid)
{
	if (!use_clockid)
		return TICKMAP_CLOCK_PERF;
	switch (clockid) {
	case REALTIME:
		return TICKMAP_CLOCK_REALTIME;
	case MONOTONIC:
		return TICKMAP_CLOCK_MONOTONIC;
	case MONOTONIC_RAW:
		return TICKMAP_CLOCK_MONOTONIC_RAW;
	case BOOTTIME:
		return TICKMAP_CLOCK_BOOTTIME;
	case TAI:
		return TICKMAP_CLOCK_TAI;
	default:
		return TICKMAP_CLOCK_UNKNOWN;
	}
}

uint64_t
tickmap_clock_convert(const struct tickmap_clock_conversion *conversion,
		      uint64_t ticks)
{
	/* A file may say anything, shifts beyond the word included. */
	unsigned shift =
		conversion->shift < 63 ? (unsigned)conversion->shift : 63;
	uint64_t below = (UINT64_C(1) << shift) - 1;

	if (conversion->mask)
		ticks = conversion->cycles +
			((ticks - conversion->cycles) & conversion->mask);
	return conversion->zero + (ticks >> shift) * conversion->mult +
	       ((ticks & below) * conversion->mult >> shift);
}

const char *tickmap_clock_method_name(enum tickmap_clock_method method)
{
	switch (method) {
	case TICKMAP_CLOCK_SAME:
		return "same";
	case TICKMAP_CLOCK_OFFSET:
		return "offset";
	case TICKMAP_CLOCK_NONE:
		break;
	}
	return "none";
}

/* SPDX-License-Identifier: MIT */
/*
 * Bytes as evidence, ten a piece. With an even first byte all of it is true for
 * one offset, which must then lie between the bounds; else it is anything, and
 * the answers must only be in order.
 */
#include "tickmap/clock.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PIECE = 10, PROBES = 16 };

static void check(bool right)
{
	if (!right)
		abort();
}

static uint64_t word(const uint8_t *bytes)
{
	uint64_t value;

	memcpy(&value, bytes, sizeof(value));
	return value;
}

static void add_true(struct tickmap_alignment *a, const uint8_t *piece,
		     int64_t offset)
{
	uint64_t stamp = (UINT64_C(1) << 40) + (word(piece) >> 30);
	uint64_t slack = piece[8];

	if (piece[9] % 3 == 0)
		check(tickmap_alignment_floor(
			a, stamp, stamp + (uint64_t)offset - slack));
	else if (piece[9] % 3 == 1)
		check(tickmap_alignment_ceiling(
			a, stamp, stamp + (uint64_t)offset + slack));
	else
		check(tickmap_alignment_sample(
			a, stamp, stamp + (uint64_t)offset + slack));
}

static void add_any(struct tickmap_alignment *a, const uint8_t *piece)
{
	uint64_t stamp = word(piece), time = stamp * (piece[8] | 1u);

	if (piece[9] % 3 == 0)
		check(tickmap_alignment_floor(a, stamp, time));
	else if (piece[9] % 3 == 1)
		check(tickmap_alignment_ceiling(a, stamp, time));
	else
		check(tickmap_alignment_sample(a, stamp, time));
}

static void check_order(const struct tickmap_alignment *a)
{
	uint64_t earliest = 0, latest = 0;

	for (unsigned i = 0; i < PROBES; i++) {
		uint64_t stamp = i * (UINT64_MAX / (PROBES - 1));
		uint64_t e = tickmap_alignment_earliest(a, stamp);
		uint64_t l = tickmap_alignment_latest(a, stamp);
		check(e >= earliest && l >= latest);
		earliest = e;
		latest = l;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tickmap_alignment *a = tickmap_alignment_new();
	struct tickmap_alignment_claim claim = { 0 };
	struct tickmap_alignment_result r;
	int64_t offset;

	check(a != NULL);
	if (size < PIECE) {
		tickmap_alignment_free(a);
		return 0;
	}
	bool true_for_one = !(data[0] & 1);
	claim.nanoseconds = data[0] & 2;
	claim.same = data[0] & 4;
	offset = (int64_t)(word(data + 1) % (UINT64_C(1) << 36)) -
		 (INT64_C(1) << 35);
	for (size_t at = PIECE; at + PIECE <= size; at += PIECE)
		if (true_for_one)
			add_true(a, data + at, offset);
		else
			add_any(a, data + at);
	tickmap_alignment_solve(a, &claim);
	tickmap_alignment_result(a, &r);
	check_order(a);
	if (r.method != TICKMAP_CLOCK_SAME && true_for_one) {
		uint64_t stamp = (UINT64_C(1) << 40) + data[9];
		uint64_t time = stamp + (uint64_t)offset;
		check(r.low_ns <= offset && offset <= r.high_ns);
		check(tickmap_alignment_earliest(a, stamp) <= time);
		check(tickmap_alignment_latest(a, stamp) >= time);
	}
	if (r.method == TICKMAP_CLOCK_OFFSET && true_for_one)
		check((uint64_t)llabs(r.offset_ns - offset) <= r.error_ns);
	tickmap_alignment_free(a);
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * A million functions at addresses that are used again, asked at a time and an
 * address; beside it, in interleaved rounds, a plain binary search over a
 * static sorted array of as many starts, which knows no time. The peer is
 * faster by what it does not know: its wrong answers are counted.
 */
#include "timeline/segments.h"
#include "timeline/timeline.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LOADS = 1000000, FINDS = 200000, ROUNDS = 9, CHECKS = 40 };

struct load {
	uint64_t when, start, size;
	uint32_t order;
};

static uint64_t state = 88172645463325252;

static uint64_t dice(uint64_t sides)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % sides;
}

static double cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int by_start(const void *a, const void *b)
{
	const struct load *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->order > y->order) - (x->order < y->order);
}

/* The last of those with the greatest start at or below the address. */
static size_t peer_find(const uint64_t *starts, uint64_t avma)
{
	size_t low = 0, high = LOADS;

	while (low < high) {
		size_t middle = (low + high) / 2;
		if (starts[middle] <= avma)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static uint64_t peer_owner(const struct load *loads, const uint64_t *starts,
			   uint64_t avma)
{
	size_t found = peer_find(starts, avma);

	return found && avma - loads[found - 1].start < loads[found - 1].size
		       ? loads[found - 1].order
		       : TICKMAP_NO_OWNER;
}

static uint64_t walk(const struct load *loads, uint64_t when, uint64_t avma)
{
	uint64_t owner = TICKMAP_NO_OWNER, latest = 0;

	for (size_t i = 0; i < LOADS; i++)
		if (loads[i].when <= when && loads[i].when >= latest &&
		    avma >= loads[i].start &&
		    avma - loads[i].start < loads[i].size) {
			owner = loads[i].order;
			latest = loads[i].when;
		}
	return owner;
}

struct question {
	uint64_t when, avma;
};

struct shape {
	const char *name;
	unsigned slots, slot_size;
	uint64_t size_from, size_to;
	bool as_samples;
};

/* Anywhere at any time; or as samples come: in the order of time, nearly all in
 * a few functions. */
static void ask(struct question *questions, const struct shape *shape)
{
	for (size_t i = 0; i < FINDS; i++) {
		uint64_t slot = shape->as_samples && dice(16)
					? dice(256) * shape->slots / 256
					: dice(shape->slots);
		questions[i].when =
			shape->as_samples ? i * (LOADS * UINT64_C(1000) / FINDS)
					  : dice(LOADS * UINT64_C(1000));
		questions[i].avma = 0x7f0000000000 + slot * shape->slot_size +
				    dice(shape->slot_size);
	}
}

static struct tickmap_timeline *build(const struct load *loads,
				      double *ret_seal_ns)
{
	struct tickmap_timeline *timeline = tickmap_timeline_new();
	double begin = cpu_ns();

	for (uint32_t i = 0; i < LOADS; i++)
		if (!timeline ||
		    !tickmap_timeline_load(timeline, TICKMAP_LAYER_CODE,
					   loads[i].when, loads[i].start,
					   loads[i].size, i))
			exit(1);
	if (!tickmap_timeline_seal(timeline))
		exit(1);
	*ret_seal_ns = cpu_ns() - begin;
	return timeline;
}

static int by_number(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *numbers)
{
	qsort(numbers, ROUNDS, sizeof(*numbers), by_number);
	return numbers[ROUNDS / 2];
}

/* One round of each, again and again: what disturbs one disturbs the other. */
static void race(const struct shape *shape,
		 const struct tickmap_timeline *timeline,
		 const struct load *loads, const uint64_t *starts,
		 const struct question *questions, double seal_ns)
{
	double find[ROUNDS], peer[ROUNDS], ratio[ROUNDS];
	unsigned long owned = 0, wrong = 0, sum = 0;

	for (unsigned round = 0; round < ROUNDS; round++) {
		double begin = cpu_ns();
		for (size_t i = 0; i < FINDS; i++)
			owned += tickmap_timeline_find(timeline,
						       questions[i].when,
						       questions[i].avma, 0)
					 .owner != TICKMAP_NO_OWNER;
		double middle = cpu_ns();
		for (size_t i = 0; i < FINDS; i++)
			sum += peer_find(starts, questions[i].avma);
		double end = cpu_ns();
		find[round] = (middle - begin) / FINDS;
		peer[round] = (end - middle) / FINDS;
		ratio[round] = find[round] / peer[round];
	}
	for (size_t i = 0; i < FINDS; i++)
		wrong += tickmap_timeline_find(timeline, questions[i].when,
					       questions[i].avma, 0)
				 .owner !=
			 peer_owner(loads, starts, questions[i].avma);
	if (!sum)
		exit(1);
	printf("%-28s load+seal %5.0f ms  find %4.0f ns  peer %4.0f ns  ratio "
	       "%4.2f  owned %4.1f%%  peer: %4.1f%% wrong\n",
	       shape->name, seal_ns / 1e6, median(find), median(peer),
	       median(ratio), (double)owned * 100 / FINDS / ROUNDS,
	       (double)wrong * 100 / FINDS);
}

static void run(const struct shape *shape)
{
	struct load *loads = calloc(LOADS, sizeof(*loads));
	uint64_t *starts = calloc(LOADS, sizeof(*starts));
	struct question *questions = calloc(FINDS, sizeof(*questions));
	double seal_ns;

	if (!loads || !starts || !questions)
		exit(1);
	for (uint32_t i = 0; i < LOADS; i++) {
		loads[i].when = i * UINT64_C(1000);
		loads[i].start =
			0x7f0000000000 + dice(shape->slots) * shape->slot_size;
		loads[i].size = shape->size_from +
				dice(shape->size_to - shape->size_from + 1);
		loads[i].order = i;
	}
	ask(questions, shape);
	struct tickmap_timeline *timeline = build(loads, &seal_ns);
	for (size_t i = 0; i < CHECKS; i++)
		if (tickmap_timeline_find(timeline, questions[i].when,
					  questions[i].avma, 0)
			    .owner !=
		    walk(loads, questions[i].when, questions[i].avma)) {
			printf("%s: wrong answer\n", shape->name);
			exit(1);
		}
	qsort(loads, LOADS, sizeof(*loads), by_start);
	for (size_t i = 0; i < LOADS; i++)
		starts[i] = loads[i].start;
	race(shape, timeline, loads, starts, questions, seal_ns);
	tickmap_timeline_free(timeline);
	free(loads);
	free(starts);
	free(questions);
}

int main(void)
{
	static const struct shape shapes[] = {
		{ "each address once or twice", 1000000, 512, 64, 512, false },
		{ "reused, 2 generations", 500000, 512, 64, 512, false },
		{ "reused, 10 generations", 100000, 512, 64, 512, false },
		{ "as samples come", 100000, 512, 64, 512, true },
		{ "overlapping", 400000, 64, 32, 256, false },
	};

	for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++)
		run(&shapes[i]);
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * 100,000 loads, a million questions; beside it, in the same run, what a
 * reader without time does: one sorted array, the last load of an address wins.
 * The peer is faster by what it does not know: its wrong answers are counted.
 */
#include "timeline/segments.h"
#include "timeline/timeline.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LOADS = 100000, FINDS = 1000000, CHECKS = 300 };

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
static const struct load *peer_find(const struct load *loads, uint64_t avma)
{
	size_t low = 0, high = LOADS;

	while (low < high) {
		size_t middle = (low + high) / 2;
		if (loads[middle].start <= avma)
			low = middle + 1;
		else
			high = middle;
	}
	return low && avma - loads[low - 1].start < loads[low - 1].size
		       ? &loads[low - 1]
		       : NULL;
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

/* Anywhere at any time; or as samples come: in the order of time, nearly all in
 * a few functions. */
static void ask(struct question *questions, unsigned slots, unsigned slot_size,
		bool as_samples)
{
	for (size_t i = 0; i < FINDS; i++) {
		uint64_t slot = as_samples && dice(16) ? dice(256) * slots / 256
						       : dice(slots);
		questions[i].when =
			as_samples ? i * (LOADS * UINT64_C(1000) / FINDS)
				   : dice(LOADS * UINT64_C(1000));
		questions[i].avma =
			0x7f0000000000 + slot * slot_size + dice(slot_size);
	}
}

static void run(const char *name, unsigned slots, unsigned slot_size,
		uint64_t size_from, uint64_t size_to, bool as_samples)
{
	struct tickmap_timeline *timeline = tickmap_timeline_new();
	struct load *loads = calloc(LOADS, sizeof(*loads));
	struct question *questions = calloc(FINDS, sizeof(*questions));
	double begin, sealed, found, peer;
	unsigned long owned = 0, wrong = 0, known = 0;

	if (!timeline || !loads || !questions)
		exit(1);
	for (uint32_t i = 0; i < LOADS; i++) {
		loads[i].when = i * UINT64_C(1000);
		loads[i].start = 0x7f0000000000 + dice(slots) * slot_size;
		loads[i].size = size_from + dice(size_to - size_from + 1);
		loads[i].order = i;
	}
	ask(questions, slots, slot_size, as_samples);

	begin = cpu_ns();
	for (uint32_t i = 0; i < LOADS; i++)
		if (!tickmap_timeline_load(timeline, TICKMAP_LAYER_CODE,
					   loads[i].when, loads[i].start,
					   loads[i].size, i))
			exit(1);
	if (!tickmap_timeline_seal(timeline))
		exit(1);
	sealed = cpu_ns() - begin;

	for (size_t i = 0; i < CHECKS; i++)
		if (tickmap_timeline_find(timeline, questions[i].when,
					  questions[i].avma, 0)
			    .owner !=
		    walk(loads, questions[i].when, questions[i].avma)) {
			printf("%s: wrong answer\n", name);
			exit(1);
		}

	begin = cpu_ns();
	for (size_t i = 0; i < FINDS; i++)
		owned += tickmap_timeline_find(timeline, questions[i].when,
					       questions[i].avma, 0)
				 .owner != TICKMAP_NO_OWNER;
	found = (cpu_ns() - begin) / FINDS;

	qsort(loads, LOADS, sizeof(*loads), by_start);
	begin = cpu_ns();
	for (size_t i = 0; i < FINDS; i++)
		known += peer_find(loads, questions[i].avma) != NULL;
	peer = (cpu_ns() - begin) / FINDS;
	for (size_t i = 0; i < FINDS; i++) {
		const struct load *load = peer_find(loads, questions[i].avma);
		wrong += tickmap_timeline_find(timeline, questions[i].when,
					       questions[i].avma, 0)
				 .owner !=
			 (load ? load->order : TICKMAP_NO_OWNER);
	}
	printf("%-28s load+seal %6.1f ms  find %5.0f ns  peer %5.0f ns  ratio "
	       "%4.1f  owned %4.1f%%  peer: %4.1f%% known, %4.1f%% wrong\n",
	       name, sealed / 1e6, found, peer, found / peer,
	       (double)owned * 100 / FINDS, (double)known * 100 / FINDS,
	       (double)wrong * 100 / FINDS);
	tickmap_timeline_free(timeline);
	free(loads);
	free(questions);
}

int main(void)
{
	run("as samples come", 10000, 512, 64, 512, true);
	run("each address once or twice", 100000, 512, 64, 512, false);
	run("reused, 10 generations", 10000, 512, 64, 512, false);
	run("overlapping", 40000, 64, 32, 1024, false);
	run("100,000 at one address", 1, 4096, 4096, 4096, false);
	return 0;
}

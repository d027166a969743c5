/* SPDX-License-Identifier: MIT */
/*
 * What a frame costs: the same stacks (functions of all shapes, 8 to 60 deep)
 * walked by us out of a copy, and live by other unwinders, in one run. All warm
 * up first, and of several tries of a stack the fastest counts: the machine is
 * busy. Prints one "name value" a line; a ratio is the other's time per
 * frame over ours, so more than 1 means that we are faster. "cold":
 * nothing is cached, every rule comes out of the table.
 *
 *	bench_unwind [ROUNDS]
 */
#include "peer.h"
#include "self.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { STACKS = 40, ROOM = 1 << 20, PEERS_MAX = 8, TRIES = 9 };

struct cost {
	double seconds;
	uint64_t instructions, frames;
};

struct bench {
	size_t rounds;
	struct self_modules modules;
	struct tickmap_unwinder *unwinder;
	struct capture capture;
	int counter; /* of user instructions; -1: not here */
	struct cost warm, cold;
	struct cost peer[PEERS_MAX];
	uint64_t disagreements;
};

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int open_counter(void)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_HARDWARE,
		.config = PERF_COUNT_HW_INSTRUCTIONS,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};

	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

static uint64_t instructions(const struct bench *bench)
{
	uint64_t count = 0;

	if (bench->counter >= 0 &&
	    read(bench->counter, &count, sizeof(count)) != sizeof(count))
		return 0;
	return count;
}

/* One way to walk the captured stack, `rounds` times; returns the frames. */
typedef uint64_t (*walker)(struct bench *bench, size_t rounds, size_t which);

static void measure(struct bench *bench, struct cost *cost, walker walk_once,
		    size_t rounds, size_t which)
{
	struct cost best = { 0 };

	for (unsigned i = 0; i < TRIES; i++) {
		struct cost one = { 0 };
		one.instructions = instructions(bench);
		double start = seconds();
		one.frames = walk_once(bench, rounds, which);
		one.seconds = seconds() - start;
		one.instructions = instructions(bench) - one.instructions;
		if (!i || one.seconds < best.seconds)
			best = one;
	}
	cost->seconds += best.seconds;
	cost->instructions += best.instructions;
	cost->frames += best.frames;
}

static size_t walk(struct bench *bench, struct tickmap_unwinder *unwinder,
		   uint64_t *ips)
{
	enum tickmap_unwind_end why;
	size_t count = tickmap_unwind_walk(unwinder, &bench->modules.space,
					   &bench->capture.input, ips,
					   SELF_FRAMES, &why);

	if (why != TICKMAP_END_COMPLETE)
		bench->disagreements++;
	return count;
}

static uint64_t walk_warm(struct bench *bench, size_t rounds, size_t which)
{
	uint64_t ips[SELF_FRAMES], frames = 0;

	(void)which;
	for (size_t i = 0; i < rounds; i++)
		frames += walk(bench, bench->unwinder, ips);
	return frames;
}

static uint64_t walk_cold(struct bench *bench, size_t rounds, size_t which)
{
	uint64_t ips[SELF_FRAMES], frames = 0;

	(void)which;
	for (size_t i = 0; i < rounds; i++) {
		/* Another key: nothing in the cache is for it. */
		bench->modules.space.key++;
		frames += walk(bench, bench->unwinder, ips);
	}
	return frames;
}

static uint64_t walk_peer(struct bench *bench, size_t rounds, size_t which)
{
	void *ips[SELF_FRAMES];
	uint64_t frames = 0;

	(void)bench;
	for (size_t i = 0; i < rounds; i++)
		frames += peers[which].walk(ips, SELF_FRAMES);
	return frames;
}

static void check(struct bench *bench)
{
	uint64_t ips[SELF_FRAMES];
	size_t count = walk(bench, bench->unwinder, ips);

	if ((int)count != bench->capture.reference_count ||
	    memcmp(&ips[1], &bench->capture.reference[1],
		   (count - 1) * sizeof(ips[0])))
		bench->disagreements++;
}

static void leaf(void *context)
{
	struct bench *bench = context;
	size_t rounds = bench->rounds;

	self_capture(&bench->capture);
	check(bench);
	measure(bench, &bench->cold, walk_cold, rounds / 20 + 1, 0);
	measure(bench, &bench->warm, walk_warm, rounds, 0);
	for (size_t p = 0; peers[p].name && p < PEERS_MAX; p++)
		measure(bench, &bench->peer[p], walk_peer, rounds / 10 + 1, p);
}

static void print_cost(const struct bench *bench, const char *name,
		       const struct cost *cost)
{
	double frames = (double)cost->frames;

	printf("%s_ns_per_frame %.2f\n", name, cost->seconds * 1e9 / frames);
	if (bench->counter >= 0)
		printf("%s_instructions_per_frame %.1f\n", name,
		       (double)cost->instructions / frames);
}

static double per_frame(const struct cost *cost)
{
	return cost->seconds / (double)cost->frames;
}

int main(int argc, char **argv)
{
	static struct bench bench;

	bench.rounds = argc > 1 ? strtoul(argv[1], NULL, 0) : 200;
	bench.unwinder = tickmap_unwinder_new();
	bench.capture.room = ROOM;
	bench.capture.stack = aligned_alloc(64, ROOM);
	if (!bench.unwinder || !bench.capture.stack || !bench.rounds)
		return 2;
	self_modules_load(&bench.modules);
	bench.counter = open_counter();
	for (unsigned i = 0; i < STACKS; i++) {
		struct chain chain = { .seed = i * 7 + 1,
				       .leaf = leaf,
				       .context = &bench };
		chain_run(&chain, 8 + i * 13 % 52);
	}
	struct tickmap_unwind_stats stats =
		tickmap_unwinder_stats(bench.unwinder);
	printf("frames %llu\n", (unsigned long long)stats.frames);
	printf("general_form_share %.4f\n",
	       (double)stats.uncacheable / (double)stats.frames);
	print_cost(&bench, "warm", &bench.warm);
	print_cost(&bench, "cold", &bench.cold);
	for (size_t p = 0; peers[p].name && p < PEERS_MAX; p++) {
		print_cost(&bench, peers[p].name, &bench.peer[p]);
		printf("%s_ratio %.2f\n", peers[p].name,
		       per_frame(&bench.peer[p]) / per_frame(&bench.warm));
	}
	printf("disagreements %llu\n", (unsigned long long)bench.disagreements);
	return bench.disagreements != 0;
}

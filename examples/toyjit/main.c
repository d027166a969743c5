/* SPDX-License-Identifier: MIT */
/*
 * toyjit [--dir DIR] [--frames fp|mixed] [--churn none|reuse|move]
 *        [--rounds N] [--gdb] [--map]
 *
 * Runs chains of compiled functions and now and then, between two rounds,
 * throws one away for another, in memory that was an earlier one's, or moves
 * one. Prints where its dump is; toyjit.h says how its true stack is seen.
 */
#include "toyjit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHAINS 4
#define LENGTH 3
#define SPINS 150000
#define CHURN_EVERY 4

static struct toy toy;
static struct toy_function chains[CHAINS][LENGTH];
static bool only_fp;

/* Where gdb stops. */
__attribute__((noinline, used)) void toy_probe(uint64_t true_stack);
__attribute__((noinline, used)) void toy_probe(uint64_t true_stack)
{
	__asm__ volatile("" : : "r"(true_stack) : "memory");
}

static void check(int status, const char *what)
{
	if (!status)
		return;
	fprintf(stderr, "%s: %s\n", what, tickmap_emit_strerror(status));
	exit(1);
}

static uint8_t next_id(void)
{
	static uint8_t id;

	do {
		id = (uint8_t)(id % TOY_MAX_ID + 1);
	} while (id == TOY_ENTER_ID);
	return id;
}

/* Function `depth` of a chain, the next one being compiled already. */
static void compile(size_t chain, size_t depth)
{
	struct toy_function *function = &chains[chain][depth];
	bool is_last = depth == LENGTH - 1;

	memset(function, 0, sizeof(*function));
	function->id = next_id();
	function->frame = is_last ? TICKMAP_UNWIND_LEAF : TICKMAP_UNWIND_FIXED;
	if (only_fp || (chain + depth) % 2)
		function->frame = TICKMAP_UNWIND_FRAME_POINTER;
	function->is_signed = chain == 1;
	function->spins = SPINS;
	function->callee = is_last ? NULL : &chains[chain][depth + 1];
	/* A leaf calls nobody. */
	if (is_last && function->frame != TICKMAP_UNWIND_LEAF)
		function->probe = toy_probe;
	check(toy_compile(&toy, function), "compile");
}

static void churn(size_t count, const char *how)
{
	size_t chain = count % CHAINS;
	size_t depth = count / CHAINS % LENGTH;

	if (!strcmp(how, "none"))
		return;
	if (!strcmp(how, "move"))
		check(toy_move(&toy, &chains[(chain + 1) % CHAINS][depth]),
		      "move");
	toy_free(&toy, &chains[chain][depth]);
	compile(chain, depth);
}

__attribute__((noinline)) static void run_chains(void)
{
	for (size_t chain = 0; chain < CHAINS; chain++)
		toy_run(&toy, &chains[chain][0]);
	/* Keeps this frame on the stack: no tail call. */
	__asm__ volatile("" ::: "memory");
}

int main(int argc, char **argv)
{
	struct tickmap_emit_options options = TICKMAP_EMIT_OPTIONS_INIT;
	const char *how = "none";
	size_t rounds = 1;
	struct tickmap_emit *emit;

	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";

		if (!strcmp(argv[i], "--gdb")) {
			options.sinks |= TICKMAP_EMIT_GDB;
			continue;
		}
		if (!strcmp(argv[i], "--map")) {
			options.sinks |= TICKMAP_EMIT_PERF_MAP;
			continue;
		}
		if (!strcmp(argv[i], "--dir"))
			options.dir = value;
		else if (!strcmp(argv[i], "--frames"))
			only_fp = !strcmp(value, "fp");
		else if (!strcmp(argv[i], "--churn"))
			how = value;
		else if (!strcmp(argv[i], "--rounds"))
			rounds = strtoul(value, NULL, 10);
		else
			return 2;
		i++;
	}
	check(tickmap_emit_open(&options, &emit), "open");
	puts(tickmap_emit_path(emit, TICKMAP_EMIT_JITDUMP));
	fflush(stdout);
	check(toy_open(&toy, emit), "toy");
	for (size_t chain = 0; chain < CHAINS; chain++) {
		for (size_t depth = LENGTH; depth--;)
			compile(chain, depth);
	}
	for (size_t i = 0; i < rounds; i++) {
		if (i % CHURN_EVERY == CHURN_EVERY - 1)
			churn(i / CHURN_EVERY, how);
		run_chains();
	}
	check(tickmap_emit_close(emit), "close");
	toy_close(&toy);
	return 0;
}

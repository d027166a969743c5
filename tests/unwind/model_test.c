/* SPDX-License-Identifier: MIT */
/*
 * The cached, compact walk against a naive one that asks the table for every
 * frame, on random stacks that are full of real return addresses.
 */
#include "self.h"

#include "unwind/x86_64/general.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 4096, ROUNDS = 12000, FRAMES = 128, PLACES = 3000 };

static struct self_modules modules;
static uint64_t random_state = 20261130;

static uint64_t draw(void)
{
	/* xorshift64 */
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

struct answer {
	uint64_t ips[FRAMES];
	size_t count;
	enum tickmap_unwind_end end;
};

static enum tickmap_unwind_end naive_end(enum tickmap_step step)
{
	return step == TICKMAP_STEP_COMPLETE   ? TICKMAP_END_COMPLETE
	       : step == TICKMAP_STEP_ABOVE    ? TICKMAP_END_STACK_SHORT
	       : step == TICKMAP_STEP_NO_RULE  ? TICKMAP_END_NO_RULE
	       : step == TICKMAP_STEP_BAD_RULE ? TICKMAP_END_BAD_RULE
					       : TICKMAP_END_BAD_STACK;
}

/* As the header describes it, with nothing in between. */
static struct answer naive(const struct tickmap_unwind_input *input,
			   int64_t skew)
{
	struct answer a = { .end = TICKMAP_END_TOO_DEEP };
	struct tickmap_stack stack = { input->stack, input->stack_size,
				       input->stack_at };
	struct tickmap_x86_64_state state = { .known = TICKMAP_X86_64_ALL };
	bool exact = true;

	memcpy(state.reg, input->regs, sizeof(state.reg));
	while (a.count < FRAMES) {
		uint64_t pc = state.reg[TICKMAP_RIP];
		struct tickmap_unwind_module module = { 0 };
		struct tickmap_rule rule;

		a.ips[a.count++] = pc;
		uint64_t at = pc - !exact;
		a.end = TICKMAP_END_NO_CODE;
		if (!modules.space.find(modules.space.context, at, &module))
			return a;
		enum tickmap_cfi_result result =
			module.cfi ? tickmap_cfi_rule(module.cfi, at, &rule)
				   : TICKMAP_CFI_NONE;
		a.end = result == TICKMAP_CFI_BAD ? TICKMAP_END_BAD_RULE
						  : TICKMAP_END_NO_RULE;
		if (result != TICKMAP_CFI_OK)
			return a;
		rule.cfa_offset += skew;
		exact = rule.signal_frame;
		enum tickmap_step step = tickmap_x86_64_general(
			module.cfi, &rule, &stack, &state);
		if (step == TICKMAP_STEP_OK && !state.reg[TICKMAP_RIP])
			step = TICKMAP_STEP_COMPLETE;
		a.end = naive_end(step);
		if (step != TICKMAP_STEP_OK)
			return a;
	}
	a.end = TICKMAP_END_TOO_DEEP;
	return a;
}

static uint64_t new_place(void)
{
	const struct self_module *module =
		&modules.module[draw() % modules.count];

	if (!module->ranges)
		return draw();
	return module->start[0] + draw() % (module->end[0] - module->start[0]);
}

/* Mostly places that come up again and again, as in a real profile. */
static uint64_t some_code(void)
{
	static uint64_t place[PLACES];
	uint64_t *one = &place[draw() % PLACES];

	if (!*one)
		*one = new_place();
	return draw() % 8 ? *one : new_place();
}

static uint64_t some_word(uint64_t stack_at)
{
	switch (draw() % 64) {
	case 0:
		return draw();
	case 1:
		return 0;
	case 2:
	case 3:
	case 4:
	case 5:
	case 6:
		return stack_at + draw() % (WORDS * 9);
	default:
		return some_code();
	}
}

static void make_input(struct tickmap_unwind_input *input, uint64_t *words)
{
	input->stack = (const uint8_t *)words;
	input->stack_size =
		sizeof(uint64_t) * (WORDS - draw() % WORDS * (draw() % 2));
	input->stack_at = UINT64_C(0x7ffe00000000) + (draw() % 256) * 8;
	uint64_t known[24];
	for (unsigned i = 0; i < 24; i++)
		known[i] = some_word(input->stack_at);
	for (unsigned i = 0; i < WORDS; i++)
		words[i] = draw() % 4 ? known[draw() % 24]
				      : some_word(input->stack_at);
	for (unsigned i = 0; i < TICKMAP_REGS; i++)
		input->regs[i] = some_word(input->stack_at);
	input->regs[TICKMAP_RSP] = input->stack_at;
	input->regs[TICKMAP_RIP] = some_code();
	if (draw() % 2)
		input->regs[TICKMAP_RBP] = input->stack_at + draw() % 512 * 8;
}

static bool same(const struct answer *a, const struct answer *b)
{
	return a->end == b->end && a->count == b->count &&
	       !memcmp(a->ips, b->ips, a->count * sizeof(a->ips[0]));
}

static void print_difference(const struct answer *a, const struct answer *b)
{
	for (size_t i = 0; i < a->count || i < b->count; i++)
		print_message("  %#" PRIx64 " %#" PRIx64 "\n", a->ips[i],
			      b->ips[i]);
	print_message("  %s, naive: %s\n", tickmap_unwind_end_text(a->end),
		      tickmap_unwind_end_text(b->end));
}

static size_t count_differences(int64_t skew, size_t ends[TICKMAP_END_COUNT],
				size_t *frames)
{
	static uint64_t words[WORDS];
	struct tickmap_unwinder *unwinder = tickmap_unwinder_new();
	size_t differences = 0;

	assert_non_null(unwinder);
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct tickmap_unwind_input input;
		struct answer cold, warm, want;
		make_input(&input, words);
		want = naive(&input, skew);
		cold.count =
			tickmap_unwind_walk(unwinder, &modules.space, &input,
					    cold.ips, FRAMES, &cold.end);
		warm.count =
			tickmap_unwind_walk(unwinder, &modules.space, &input,
					    warm.ips, FRAMES, &warm.end);
		if (!same(&cold, &want) || !same(&warm, &want)) {
			if (!differences++ && !skew)
				print_difference(&warm, &want);
		}
		ends[want.end]++;
		*frames += want.count;
	}
	struct tickmap_unwind_stats stats = tickmap_unwinder_stats(unwinder);
	assert_true(stats.cache_hits > stats.frames / 2);
	assert_int_equal(stats.cache_hits + stats.cache_misses, stats.frames);
	assert_true(stats.uncacheable < stats.frames / 50);
	tickmap_unwinder_free(unwinder);
	return differences;
}

static void the_cached_walk_equals_the_naive_one(void **state)
{
	(void)state;
	size_t ends[TICKMAP_END_COUNT] = { 0 }, frames = 0;
	size_t differences = count_differences(0, ends, &frames);

	print_message("%d stacks, %zu frames", ROUNDS, frames);
	for (unsigned i = 0; i < TICKMAP_END_COUNT; i++)
		print_message(
			"; %zu %s", ends[i],
			tickmap_unwind_end_text((enum tickmap_unwind_end)i));
	print_message("\n");
	assert_int_equal(differences, 0);
	assert_true(frames > ROUNDS * 2);
}

static void a_frame_address_off_by_one_word_makes_another_walk(void **state)
{
	(void)state;
	size_t ends[TICKMAP_END_COUNT] = { 0 }, frames = 0;

	assert_true(count_differences(8, ends, &frames) > ROUNDS / 2);
}

static void every_end_has_its_phrase(void **state)
{
	(void)state;
	for (unsigned i = 0; i < TICKMAP_END_COUNT; i++) {
		const char *text =
			tickmap_unwind_end_text((enum tickmap_unwind_end)i);
		assert_non_null(text);
		for (unsigned j = 0; j < i; j++)
			assert_string_not_equal(
				text, tickmap_unwind_end_text(
					      (enum tickmap_unwind_end)j));
	}
	assert_non_null(tickmap_unwind_end_text(TICKMAP_END_COUNT));
}

static void perf_registers_come_out_by_dwarf_number(void **state)
{
	(void)state;
	/* perf's order: ax bx cx dx si di bp sp ip flags cs ss ds es fs gs
	 * r8 to r15. */
	uint64_t perf[64], regs[TICKMAP_REGS];
	static const uint8_t want[TICKMAP_REGS] = {
		0, 3, 2, 1, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23, 8,
	};
	uint64_t all = 0xff01ff; /* without flags and segments */

	for (unsigned i = 0; i < 64; i++)
		perf[i] = 1000 + i;
	assert_true(tickmap_unwind_regs_from_perf(2, all, perf, regs));
	for (unsigned i = 0; i < TICKMAP_REGS; i++)
		assert_int_equal(regs[i], 1000 + want[i]);
	assert_true(tickmap_unwind_regs_from_perf(2, 0x180, perf, regs));
	assert_int_equal(regs[TICKMAP_RBX], 0);
	assert_false(tickmap_unwind_regs_from_perf(1, all, perf, regs));
	assert_false(tickmap_unwind_regs_from_perf(0, all, perf, regs));
	assert_false(
		tickmap_unwind_regs_from_perf(2, all & ~0x80ull, perf, regs));
	assert_false(
		tickmap_unwind_regs_from_perf(2, all & ~0x100ull, perf, regs));
}

static int setup(void **state)
{
	(void)state;
	self_modules_load(&modules);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	self_modules_free(&modules);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_cached_walk_equals_the_naive_one),
		cmocka_unit_test(
			a_frame_address_off_by_one_word_makes_another_walk),
		cmocka_unit_test(every_end_has_its_phrase),
		cmocka_unit_test(perf_registers_come_out_by_dwarf_number),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}

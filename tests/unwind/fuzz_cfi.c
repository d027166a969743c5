/* SPDX-License-Identifier: MIT */
/*
 * Input: u16 size of the header, its bytes, then .eh_frame. Whatever they say:
 * a rule holds for the address it was asked for, and a walk ends.
 */
#include "base/bytes.h"
#include "unwind/unwind.h"

#include <stdlib.h>

enum {
	CODE = 0x10000, /* where the seeds' tables put their code */
	CODE_SIZE = 0x10000,
	FRAME_AT = 0x8000,
	HDR_AT = 0x4000,
	WORDS = 128,
	STACK_AT = 0x700000,
	PROBES = 24,
};

static bool find(void *context, uint64_t avma,
		 struct tickmap_unwind_module *ret_module)
{
	ret_module->cfi = context;
	ret_module->frame_pointer = avma & 0x10;
	return avma >= CODE && avma < CODE + CODE_SIZE;
}

static void check_rule(struct tickmap_cfi *cfi, uint64_t pc)
{
	struct tickmap_rule rule;
	uint64_t start, end;
	enum tickmap_cfi_result result = tickmap_cfi_rule(cfi, pc, &rule);
	bool function = tickmap_cfi_function(cfi, pc, &start, &end);

	if (function && (pc < start || pc >= end))
		abort();
	if (result != TICKMAP_CFI_OK)
		return;
	if (!function || pc < rule.start || pc >= rule.end ||
	    rule.function_start != start || rule.function_end != end)
		abort();
	if (!rule.cfa_is_expression && rule.cfa_register >= TICKMAP_REGS)
		abort();
}

static void check_walk(struct tickmap_cfi *cfi, struct tickmap_bytes seed)
{
	static struct tickmap_unwinder *unwinder;
	static uint64_t key;
	struct tickmap_unwind_space space = { ++key, cfi, find };
	struct tickmap_unwind_input input = { .stack_at = STACK_AT };
	uint64_t words[WORDS], ips[2][64], random = tickmap_u32(&seed);
	enum tickmap_unwind_end end[2];
	size_t count[2];

	if (!unwinder)
		unwinder = tickmap_unwinder_new();
	if (!unwinder)
		return;
	for (unsigned i = 0; i < WORDS; i++) {
		random = random * UINT64_C(6364136223846793005) + 1;
		uint64_t high = random >> 33;
		words[i] = high & 1 ? CODE + high % CODE_SIZE
				    : STACK_AT + high % sizeof(words);
	}
	for (unsigned i = 0; i < TICKMAP_REGS; i++)
		input.regs[i] = words[i];
	input.regs[TICKMAP_RSP] = STACK_AT;
	input.regs[TICKMAP_RIP] = CODE + (random >> 40) % CODE_SIZE;
	input.stack = (const uint8_t *)words;
	input.stack_size = sizeof(words);
	for (unsigned i = 0; i < 2; i++)
		count[i] = tickmap_unwind_walk(unwinder, &space, &input, ips[i],
					       64, &end[i]);
	/* The second one is out of the cache. */
	if (count[0] != count[1] || end[0] != end[1] || !count[0] ||
	    memcmp(ips[0], ips[1], count[0] * sizeof(ips[0][0])))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tickmap_bytes b = tickmap_bytes_of(data, size);
	size_t hdr_size = tickmap_u16(&b);

	if (hdr_size > tickmap_bytes_left(&b))
		hdr_size = tickmap_bytes_left(&b);
	const uint8_t *hdr = tickmap_take(&b, hdr_size);
	struct tickmap_cfi cfi = {
		.eh_frame = data + b.pos,
		.eh_frame_size = tickmap_bytes_left(&b),
		.eh_frame_at = FRAME_AT,
		.hdr = hdr_size ? hdr : NULL,
		.hdr_size = hdr_size,
		.hdr_at = HDR_AT,
	};
	tickmap_cfi_init(&cfi);
	for (unsigned i = 0; i < PROBES; i++)
		check_rule(&cfi, CODE + i * (CODE_SIZE / PROBES) +
					 (size ? data[i % size] : 0));
	for (unsigned i = 0; i < 4; i++)
		check_walk(&cfi, tickmap_bytes_of(data + size / 8 * i,
						  size - size / 8 * i));
	tickmap_cfi_done(&cfi);
	return 0;
}

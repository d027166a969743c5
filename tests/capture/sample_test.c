/* SPDX-License-Identifier: MIT */
#include "capture/sample.h"
#include "craft.h"
#include "synth.h"

#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
/* cmocka wants the above first */
#include <cmocka.h>

/* What a sample must decode to, beside what stands in its bytes. */
struct expected {
	uint64_t ip, time_ns, addr, id, stream_id, period;
	uint32_t pid, tid, cpu;
	uint64_t chain[20], chain_count;
	uint64_t abi, regs[64];
	uint8_t stack[64];
	uint64_t stack_size;
};

static const uint64_t random_types =
	PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
	PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_ID |
	PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD |
	PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW |
	PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_REGS_USER |
	PERF_SAMPLE_STACK_USER | PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC;

static void put_read(struct craft *c, uint64_t format, uint64_t *state)
{
	uint64_t count = 1;

	if (format & PERF_FORMAT_GROUP)
		craft_u64(c, count = synth_next(state) % 4);
	else
		craft_u64(c, 1); /* value */
	if (format & PERF_FORMAT_TOTAL_TIME_ENABLED)
		craft_u64(c, 2);
	if (format & PERF_FORMAT_TOTAL_TIME_RUNNING)
		craft_u64(c, 3);
	for (uint64_t i = 0; i < count; i++) {
		if (format & PERF_FORMAT_GROUP)
			craft_u64(c, 4);
		if (format & PERF_FORMAT_ID)
			craft_u64(c, 5);
		if (format & 16) /* PERF_FORMAT_LOST */
			craft_u64(c, 6);
	}
}

static void put_fixed(struct craft *c, uint64_t type, uint64_t *state,
		      struct expected *e)
{
	if (type & PERF_SAMPLE_IDENTIFIER)
		craft_u64(c, e->id = synth_next(state));
	if (type & PERF_SAMPLE_IP)
		craft_u64(c, e->ip = synth_next(state));
	if (type & PERF_SAMPLE_TID) {
		craft_u32(c, e->pid = (uint32_t)synth_next(state));
		craft_u32(c, e->tid = (uint32_t)synth_next(state));
	}
	if (type & PERF_SAMPLE_TIME)
		craft_u64(c, e->time_ns = synth_next(state));
	if (type & PERF_SAMPLE_ADDR)
		craft_u64(c, e->addr = synth_next(state));
	if (type & PERF_SAMPLE_ID) {
		if (!(type & PERF_SAMPLE_IDENTIFIER))
			e->id = synth_next(state);
		craft_u64(c, e->id);
	}
	if (type & PERF_SAMPLE_STREAM_ID)
		craft_u64(c, e->stream_id = synth_next(state));
	if (type & PERF_SAMPLE_CPU) {
		craft_u32(c, e->cpu = (uint32_t)synth_next(state));
		craft_u32(c, 0xffffffff);
	}
	if (type & PERF_SAMPLE_PERIOD)
		craft_u64(c, e->period = synth_next(state));
}

static void put_branches(struct craft *c, uint64_t branch_type, uint64_t *state)
{
	uint64_t count = synth_next(state) % 4;

	craft_u64(c, count);
	if (branch_type & 1 << 17) /* PERF_SAMPLE_BRANCH_HW_INDEX */
		craft_u64(c, 7);
	for (uint64_t i = 0; i < 3 * count; i++)
		craft_u64(c, 8);
	if (branch_type & 1 << 19) /* PERF_SAMPLE_BRANCH_COUNTERS */
		for (uint64_t i = 0; i < count; i++)
			craft_u64(c, 9);
}

static void put_regs(struct craft *c, uint64_t mask, uint64_t *state,
		     struct expected *e)
{
	craft_u64(c, e->abi = synth_next(state) % 3);
	for (unsigned i = 0; e->abi && i < 64; i++)
		if (mask >> i & 1)
			craft_u64(c, e->regs[i] = synth_next(state));
}

static void put_stack(struct craft *c, uint64_t *state, struct expected *e)
{
	uint64_t size = synth_next(state) % 9 * 8;

	craft_u64(c, size);
	for (unsigned i = 0; i < size; i++)
		e->stack[i] = (uint8_t)synth_next(state);
	craft_bytes(c, e->stack, size);
	if (size)
		craft_u64(c, e->stack_size = synth_next(state) % (size + 1));
}

static void put_sample(struct craft *c,
		       const struct tickmap_sample_layout *layout,
		       uint64_t *state, struct expected *e)
{
	uint64_t type = layout->sample_type;

	put_fixed(c, type, state, e);
	if (type & PERF_SAMPLE_READ)
		put_read(c, layout->read_format, state);
	if (type & PERF_SAMPLE_CALLCHAIN) {
		craft_u64(c, e->chain_count = synth_next(state) % 20);
		for (unsigned i = 0; i < e->chain_count; i++)
			craft_u64(c, e->chain[i] = synth_next(state));
	}
	if (type & PERF_SAMPLE_RAW) {
		uint32_t size = 4 + (uint32_t)(synth_next(state) % 5) * 8;
		craft_u32(c, size);
		for (uint32_t i = 0; i < size; i++)
			craft_bytes(c, "r", 1);
	}
	if (type & PERF_SAMPLE_BRANCH_STACK)
		put_branches(c, layout->branch_sample_type, state);
	if (type & PERF_SAMPLE_REGS_USER)
		put_regs(c, layout->regs_user, state, e);
	if (type & PERF_SAMPLE_STACK_USER)
		put_stack(c, state, e);
	/* What stands behind the stack does not disturb. */
	if (type & PERF_SAMPLE_WEIGHT)
		craft_u64(c, 10);
	if (type & PERF_SAMPLE_DATA_SRC)
		craft_u64(c, 11);
}

static void compare(const struct tickmap_sample *s, const struct expected *e,
		    uint64_t mask)
{
	assert_int_equal(s->ip, e->ip);
	assert_int_equal(s->pid, e->pid);
	assert_int_equal(s->tid, e->tid);
	assert_int_equal(s->time_ns, e->time_ns);
	assert_int_equal(s->addr, e->addr);
	assert_int_equal(s->id, e->id);
	assert_int_equal(s->stream_id, e->stream_id);
	assert_int_equal(s->cpu, e->cpu);
	assert_int_equal(s->period, e->period);
	assert_int_equal(s->chain_count, e->chain_count);
	for (unsigned i = 0; i < e->chain_count; i++)
		assert_int_equal(tickmap_sample_chain_at(s, i), e->chain[i]);
	assert_int_equal(s->regs_abi, e->abi);
	assert_int_equal(s->regs_mask, e->abi ? mask : 0);
	assert_memory_equal(s->regs, e->regs, sizeof(e->regs));
	assert_int_equal(s->stack_size, e->stack_size);
	if (e->stack_size)
		assert_memory_equal(s->stack, e->stack, e->stack_size);
}

static struct tickmap_sample_layout random_layout(uint64_t *state)
{
	struct tickmap_sample_layout layout = { 0 };

	layout.sample_type = synth_next(state) & random_types;
	layout.read_format = synth_next(state) & 31;
	layout.branch_sample_type = synth_next(state) & (5 << 17);
	layout.regs_user = synth_next(state) & synth_next(state);
	return layout;
}

static void any_choice_of_fields_decodes_in_both_byte_orders(void **state)
{
	static struct craft c;
	uint64_t seed = 42;
	(void)state;

	for (unsigned round = 0; round < 5000; round++) {
		struct tickmap_sample_layout layout = random_layout(&seed);
		struct expected expected = { 0 };
		struct tickmap_sample sample;
		c.count = 0;
		c.swap = round & 1;
		put_sample(&c, &layout, &seed, &expected);
		struct tickmap_bytes body = tickmap_bytes_of(c.bytes, c.count);
		body.swap = c.swap;
		assert_int_equal(
			tickmap_sample_decode(&layout, &body, &sample, NULL),
			0);
		compare(&sample, &expected, layout.regs_user);
	}
}

static void a_sample_cut_anywhere_is_truncated_and_nothing_else(void **state)
{
	static struct craft c;
	struct tickmap_sample_layout layout = {
		.sample_type = random_types & ~(uint64_t)(PERF_SAMPLE_WEIGHT |
							  PERF_SAMPLE_DATA_SRC),
		.regs_user = 0xff0fff,
	};
	uint64_t seed = 7;
	(void)state;

	for (unsigned round = 0; round < 50; round++) {
		struct expected expected = { 0 };
		c.count = 0;
		put_sample(&c, &layout, &seed, &expected);
		for (size_t cut = 0; cut < c.count; cut++) {
			uint8_t *copy = malloc(cut ? cut : 1);
			struct tickmap_sample sample;
			struct tickmap_error err = { 0 };
			if (!copy)
				fail();
			memcpy(copy, c.bytes, cut);
			struct tickmap_bytes body = tickmap_bytes_of(copy, cut);
			assert_int_equal(tickmap_sample_decode(&layout, &body,
							       &sample, &err),
					 TICKMAP_E_TRUNCATED);
			assert_true(err.offset <= cut);
			free(copy);
		}
	}
}

static void a_count_that_overflows_is_truncated(void **state)
{
	static struct craft c;
	struct tickmap_sample_layout layout = { .sample_type =
							PERF_SAMPLE_CALLCHAIN };
	struct tickmap_sample sample;
	(void)state;

	c.count = 0;
	craft_u64(&c, UINT64_C(0x2000000000000001));
	craft_u64(&c, 1);
	struct tickmap_bytes body = tickmap_bytes_of(c.bytes, c.count);
	assert_int_equal(tickmap_sample_decode(&layout, &body, &sample, NULL),
			 TICKMAP_E_TRUNCATED);
	layout.sample_type = PERF_SAMPLE_STACK_USER;
	c.count = 0;
	craft_u64(&c, UINT64_MAX);
	body = tickmap_bytes_of(c.bytes, c.count);
	assert_int_equal(tickmap_sample_decode(&layout, &body, &sample, NULL),
			 TICKMAP_E_TRUNCATED);
}

static void a_stack_that_claims_more_than_its_size_is_its_size(void **state)
{
	static struct craft c;
	struct tickmap_sample_layout layout = {
		.sample_type = PERF_SAMPLE_STACK_USER
	};
	struct tickmap_sample sample;
	(void)state;

	c.count = 0;
	craft_u64(&c, 8);
	craft_u64(&c, 0x1122334455667788);
	craft_u64(&c, UINT64_MAX);
	struct tickmap_bytes body = tickmap_bytes_of(c.bytes, c.count);
	assert_int_equal(tickmap_sample_decode(&layout, &body, &sample, NULL),
			 0);
	assert_int_equal(sample.stack_size, 8);
}

static void the_trailer_is_read_from_the_records_end(void **state)
{
	static struct craft c;
	struct tickmap_sample_layout layout = {
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID |
			       PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
			       PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU |
			       PERF_SAMPLE_PERIOD,
		.sample_id_all = true,
	};
	struct tickmap_sample_id id;
	(void)state;

	for (int swap = 0; swap < 2; swap++) {
		c.count = 0;
		c.swap = swap;
		craft_record(&c, PERF_RECORD_COMM, 0);
		craft_u64(&c, 99);
		craft_u32(&c, 1);
		craft_u32(&c, 2);
		craft_u64(&c, 3);
		craft_u64(&c, 4);
		craft_u64(&c, 5);
		craft_u32(&c, 6);
		craft_u32(&c, 0);
		assert_int_equal(tickmap_sample_id_decode(&layout, c.bytes,
							  c.count, swap, &id),
				 0);
		assert_int_equal(id.pid, 1);
		assert_int_equal(id.tid, 2);
		assert_int_equal(id.time_ns, 3);
		assert_int_equal(id.id, 4);
		assert_int_equal(id.cpu, 6);
		assert_int_equal(tickmap_sample_id_decode(&layout, c.bytes, 40,
							  swap, &id),
				 TICKMAP_E_TRUNCATED);
		assert_int_equal(id.time_ns, 0);
	}
	layout.sample_id_all = false;
	assert_int_equal(
		tickmap_sample_id_decode(&layout, c.bytes, c.count, true, &id),
		0);
	assert_int_equal(id.time_ns, 0);
}

static void mappings_tell_inode_or_build_id(void **state)
{
	static struct craft c;
	struct tickmap_mmap_record mmap;
	(void)state;

	for (int with_id = 0; with_id < 2; with_id++) {
		c.count = 0;
		craft_u32(&c, 1);
		craft_u32(&c, 2);
		craft_u64(&c, 0x1000);
		craft_u64(&c, 0x2000);
		craft_u64(&c, 0x3000);
		if (with_id) {
			craft_bytes(&c, "\x14\0\0", 4);
			craft_bytes(&c, "12345678901234567890", 20);
		} else {
			craft_u32(&c, 8);
			craft_u32(&c, 1);
			craft_u64(&c, 55);
			craft_u64(&c, 66);
		}
		craft_u32(&c, PROT_READ | PROT_EXEC);
		craft_u32(&c, MAP_SHARED);
		craft_text(&c, "/x", 8);
		struct tickmap_bytes body = tickmap_bytes_of(c.bytes, c.count);
		uint16_t misc = with_id ? PERF_RECORD_MISC_MMAP_BUILD_ID : 0;
		assert_int_equal(tickmap_mmap_decode(&body, PERF_RECORD_MMAP2,
						     misc, &mmap),
				 0);
		assert_int_equal(mmap.avma, 0x1000);
		assert_int_equal(mmap.size, 0x2000);
		assert_int_equal(mmap.file_offset, 0x3000);
		assert_int_equal(mmap.prot, PROT_READ | PROT_EXEC);
		assert_int_equal(mmap.flags, MAP_SHARED);
		assert_string_equal(mmap.path, "/x");
		assert_int_equal(mmap.build_id_size, with_id ? 20 : 0);
		assert_int_equal(mmap.ino, with_id ? 0 : 55);
		body = tickmap_bytes_of(c.bytes, 66);
		assert_int_equal(tickmap_mmap_decode(&body, PERF_RECORD_MMAP2,
						     misc, &mmap),
				 TICKMAP_E_TRUNCATED);
	}
}

static void old_mappings_are_code_unless_misc_says_data(void **state)
{
	static struct craft c;
	struct tickmap_mmap_record mmap;
	(void)state;

	c.count = 0;
	craft_u32(&c, 1);
	craft_u32(&c, 2);
	for (unsigned i = 0; i < 3; i++)
		craft_u64(&c, i);
	craft_text(&c, "[kernel.kallsyms]_text", 24);
	struct tickmap_bytes body = tickmap_bytes_of(c.bytes, c.count);
	assert_int_equal(tickmap_mmap_decode(&body, PERF_RECORD_MMAP, 0, &mmap),
			 0);
	assert_true(mmap.prot & PROT_EXEC);
	assert_string_equal(mmap.path, "[kernel.kallsyms]_text");
	body = tickmap_bytes_of(c.bytes, c.count);
	assert_int_equal(tickmap_mmap_decode(&body, PERF_RECORD_MMAP,
					     PERF_RECORD_MISC_MMAP_DATA, &mmap),
			 0);
	assert_false(mmap.prot & PROT_EXEC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			any_choice_of_fields_decodes_in_both_byte_orders),
		cmocka_unit_test(
			a_sample_cut_anywhere_is_truncated_and_nothing_else),
		cmocka_unit_test(a_count_that_overflows_is_truncated),
		cmocka_unit_test(
			a_stack_that_claims_more_than_its_size_is_its_size),
		cmocka_unit_test(the_trailer_is_read_from_the_records_end),
		cmocka_unit_test(mappings_tell_inode_or_build_id),
		cmocka_unit_test(old_mappings_are_code_unless_misc_says_data),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

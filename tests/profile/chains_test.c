/* SPDX-License-Identifier: MIT */
/* Chains that come in parts, and stacks that come as bytes. */
#include "recording.h"

#include "unwind/unwind.h"

#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define MS UINT64_C(1000000)
#define START (UINT64_C(100) * 1000 * MS)
#define JIT UINT64_C(0x7f0000000000)
#define KERNEL UINT64_C(0xffffffff81000000)
#define DEFERRED ((uint64_t)-640)
#define PID 4194001u

/* "leaf<caller<..." */
static void chain_of(const struct tickmap_profile *p, size_t sample, char *out,
		     size_t size)
{
	size_t used = 0;

	assert_true(sample < p->samples.count);
	out[0] = '\0';
	for (uint32_t n = p->samples.items[sample].node; n && used < size;
	     n = p->nodes.items[n].parent) {
		const struct tickmap_frame *f =
			&p->frames.items[p->nodes.items[n].frame];
		used += (size_t)snprintf(
			out + used, size - used, "%s%s", used ? "<" : "",
			f->kind == TICKMAP_FRAME_KERNEL
				? "kernel"
				: tickmap_string(p->strings, f->name, NULL));
	}
}

static void begin_with_code(struct recording *r)
{
	static struct dump dump;

	recording_open(r, CLOCK_MONOTONIC);
	record_comm(r, 0, PID, PID, "prog", true);
	record_map(r, 0, PID, JIT, 0x100000, "//anon");
	dump_begin(&dump, PID, 0);
	dump_load(&dump, START, PID, JIT, 64, "inner");
	dump_load(&dump, START, PID, JIT + 64, 64, "outer");
	record_note(r, TICKMAP_NOTE_JITDUMP, PID, PID, 0, 0, dump.bytes,
		    dump.size);
}

static void sample(struct recording *r, uint64_t at, uint32_t tid,
		   uint64_t cookie)
{
	const uint64_t chain[] = { (uint64_t)PERF_CONTEXT_KERNEL, KERNEL + 1,
				   KERNEL + 64, DEFERRED, cookie };

	record_chain(r, START + at * MS, PID, tid, chain, 5);
}

static void deferred_user_parts_are_joined_with_their_samples(void **state)
{
	const uint64_t user[] = { (uint64_t)PERF_CONTEXT_USER, JIT + 8,
				  JIT + 64 + 9 };
	static const struct {
		const char *chain;
		uint8_t truncated;
	} expected[] = {
		{ "kernel<kernel<inner<outer", 0 },
		{ "kernel<kernel<inner<outer", 0 }, /* the same cookie */
		{ "kernel<kernel", TICKMAP_TRUNCATED_DEFERRED },
		{ "kernel<kernel<outer", 0 }, /* told in front of its sample */
		{ "kernel<kernel", TICKMAP_TRUNCATED_DEFERRED },
	};
	struct recording r;
	char chain[200];
	(void)state;

	begin_with_code(&r);
	sample(&r, 10, PID, 7);
	sample(&r, 11, PID, 7);
	record_deferred(&r, START + 12 * MS, PID, PID, 7, user, 3);
	sample(&r, 13, PID + 1, 7); /* another thread's cookie */
	record_deferred(&r, START + 15 * MS, PID, PID, 8, user + 2, 1);
	sample(&r, 14, PID, 8);
	sample(&r, 16, PID, 9); /* never told */
	struct tickmap_profile *p = recording_load(&r, NULL);
	assert_int_equal(p->samples.count, 5);
	for (size_t i = 0; i < 5; i++) {
		chain_of(p, i, chain, sizeof(chain));
		assert_string_equal(chain, expected[i].chain);
		assert_int_equal(p->samples.items[i].truncated,
				 expected[i].truncated);
	}
	assert_int_equal(p->truncated, 2);
	tickmap_profile_free(p);
	recording_remove(&r);
}

/*
 * A kernel takes data for frame pointers where code has none, and finds entry
 * points there. A return address lies within its function.
 */
static void an_entry_point_in_a_chain_is_its_own_function(void **state)
{
	static const char map[] = "7f0000000000 b one\n"
				  "7f000000000b b two\n"
				  "7f0000000016 b three\n";
	const uint64_t chain[] = { (uint64_t)PERF_CONTEXT_USER,
				   JIT + 2,
				   JIT + 0xb,
				   JIT + 0x16 + 6,
				   JIT + 0xb + 6,
				   JIT + 0x16 };
	struct recording r;
	char name[32], text[256];

	(void)state;
	recording_open(&r, CLOCK_MONOTONIC);
	record_map(&r, 0, PID, JIT, 0x100000, "//anon");
	snprintf(name, sizeof(name), "perf-%u.map", PID);
	write_file(r.dir, name, map, sizeof(map) - 1);
	record_chain(&r, START, PID, PID, chain,
		     sizeof(chain) / sizeof(*chain));
	struct tickmap_profile *p = recording_load(&r, NULL);
	chain_of(p, 0, text, sizeof(text));
	assert_string_equal(text, "one<two<three<two<three");
	tickmap_profile_free(p);
	recording_remove(&r);
}

static void images_of_functions_that_are_not_here_hide_no_dump(void **state)
{
	struct recording r;
	char chain[200];
	(void)state;

	begin_with_code(&r);
	record_map(&r, START + 1, PID, JIT, 64, "/nowhere/jitted-1-1.so");
	record_sample(&r, START + 10 * MS, PID, JIT + 8);
	struct tickmap_profile *p = recording_load(&r, NULL);
	chain_of(p, 0, chain, sizeof(chain));
	assert_string_equal(chain, "inner");
	tickmap_profile_free(p);
	recording_remove(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_entry_point_in_a_chain_is_its_own_function),
		cmocka_unit_test(
			deferred_user_parts_are_joined_with_their_samples),
		cmocka_unit_test(
			images_of_functions_that_are_not_here_hide_no_dump),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * Programs made up with a truth: code comes and goes at few addresses, samples
 * hit what is there, and the dump's stamps are the true times put through some
 * clock. Whatever the clock, no name may be wrong: what cannot be known is said
 * to be the clock's fault.
 */
#include "recording.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define US INT64_C(1000)
#define MS INT64_C(1000000)
#define SECOND (1000 * MS)
#define START (100 * SECOND)
#define JIT UINT64_C(0x7f0000000000)
#define PID 4194001u

enum { LOADS = 120, SAMPLES = 1000, SLOTS = 8, FIXED = 4, SIZE = 64 };

enum stamps { NANOSECONDS, TICKS, TICKS_TOLD, NONE };

struct world {
	const char *label;
	int clockid; /* of the recording; -1: perf's own */
	enum stamps stamps;
	int64_t offset; /* time = stamp + offset */
	bool marker, exit, reuse;
	/* What must come out. */
	const char *method;
	unsigned named_at_least; /* of 100 samples */
};

static const struct world worlds[] = {
	{ "one clock", CLOCK_MONOTONIC, NANOSECONDS, 0, true, true, true,
	  "same", 100 },
	{ "one clock, nothing but samples", CLOCK_MONOTONIC, NANOSECONDS, 0,
	  false, false, true, "same", 100 },
	{ "perf's own", -1, NANOSECONDS, -14613 * US, true, true, true,
	  "offset", 85 },
	{ "perf's own, ahead", -1, NANOSECONDS, 1830 * MS, true, true, true,
	  "offset", 85 },
	{ "perf's own, no exit seen", -1, NANOSECONDS, -14613 * US, true, false,
	  true, "offset", 85 },
	{ "perf's own, no marker", -1, NANOSECONDS, -14613 * US, false, true,
	  true, "offset", 10 },
	{ "perf's own, nothing reused", -1, NANOSECONDS, -14613 * US, true,
	  true, false, "offset", 100 },
	{ "raw", CLOCK_MONOTONIC_RAW, NANOSECONDS, -304 * MS, true, true, true,
	  "offset", 85 },
	{ "realtime", CLOCK_REALTIME, NANOSECONDS,
	  (INT64_C(1796047994) * SECOND), true, true, true, "offset", 85 },
	{ "a time namespace an hour ahead", CLOCK_MONOTONIC, NANOSECONDS,
	  -3600 * SECOND, true, true, true, "offset", 85 },
	{ "a time namespace behind", CLOCK_MONOTONIC, NANOSECONDS, 50 * SECOND,
	  true, true, true, "offset", 85 },
	{ "ticks", -1, TICKS, 0, true, true, true, "none", 5 },
	{ "ticks, nothing reused", -1, TICKS, 0, true, true, false, "none",
	  100 },
	{ "ticks that the recording explains", -1, TICKS_TOLD, 0, true, true,
	  true, "same", 100 },
	{ "no stamps", CLOCK_MONOTONIC, NONE, 0, true, true, true, "none", 5 },
	{ "no stamps, nothing reused", CLOCK_MONOTONIC, NONE, 0, true, true,
	  false, "none", 100 },
};

struct load {
	int64_t when; /* the truth, on the recording's clock */
	unsigned slot;
};

static uint64_t seed;
static int64_t start; /* so that no stamp is negative */

static unsigned below(unsigned n)
{
	seed = seed * UINT64_C(6364136223846793005) +
	       UINT64_C(1442695040888963407);
	return (unsigned)((seed >> 33) % n);
}

/* Ticks of 2.4 GHz, which began long before; 5/12 ns each. */
enum { MULT = 5, SHIFT = 0 };

static uint64_t stamp_of(const struct world *w, int64_t when)
{
	switch (w->stamps) {
	case TICKS:
		return (uint64_t)when * 12 / 5 + 77;
	case TICKS_TOLD: /* zero + ticks * 5 */
		return ((uint64_t)when - 1000) / 5;
	case NONE:
		return 0;
	case NANOSECONDS:
		break;
	}
	return (uint64_t)(when - w->offset);
}

static void make_loads(const struct world *w, struct load *loads)
{
	int64_t when = start + 5 * MS;

	for (unsigned i = 0; i < LOADS; i++) {
		/* The last slots are used once, and at first. */
		when += MS + below(4000) * US;
		loads[i] = (struct load) {
			.when = when,
			.slot = i < FIXED  ? SLOTS + i
				: w->reuse ? below(SLOTS)
					   : SLOTS + i,
		};
	}
}

static void write_dump(const struct world *w, const struct recording *r,
		       const struct load *loads)
{
	static struct dump dump;
	char name[32];

	dump_begin(&dump, PID, w->stamps == TICKS || w->stamps == TICKS_TOLD);
	for (unsigned i = 0; i < LOADS; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		dump_load(&dump, stamp_of(w, loads[i].when), PID,
			  JIT + loads[i].slot * (uint64_t)SIZE, SIZE, name);
	}
	snprintf(name, sizeof(name), "jit-%u.dump", PID);
	write_file(r->dir, name, dump.bytes, dump.size);
}

static void tell_ticks(struct recording *r)
{
	struct {
		struct perf_event_header header;
		uint64_t shift, mult, zero;
	} record = { { TICKMAP_RECORD_TIME_CONV, 0, sizeof(record) },
		     SHIFT,
		     MULT,
		     1000 };

	assert_int_equal(tickmap_perfdata_write(r->writer, &record,
						sizeof(record), NULL),
			 0);
}

/* Fresh code runs from 24 us after its load on. The names, in `truth`. */
static void write_samples(struct recording *r, const struct load *loads,
			  unsigned *truth)
{
	int64_t when = loads[0].when;

	for (unsigned s = 0; s < SAMPLES; s++) {
		int live[SLOTS + LOADS];
		unsigned count = 0, which[SLOTS + LOADS];
		when += 50 * US + below(600) * US;
		for (unsigned i = 0; i < SLOTS + LOADS; i++)
			live[i] = -1;
		for (unsigned i = 0; i < LOADS; i++)
			if (loads[i].when + 24 * US <= when)
				live[loads[i].slot] = (int)i;
			else if (loads[i].when <= when)
				live[loads[i].slot] = -1;
		for (unsigned i = 0; i < SLOTS + LOADS; i++)
			if (live[i] >= 0)
				which[count++] = i;
		assert_true(count || s == 0);
		if (!count) {
			when = loads[0].when + 24 * US;
			which[count++] = loads[0].slot;
			live[which[0]] = 0;
		}
		unsigned slot = which[below(count)];
		truth[s] = (unsigned)live[slot];
		record_sample(r, (uint64_t)when, PID,
			      JIT + slot * (uint64_t)SIZE + below(SIZE));
	}
}

static void check(const struct world *w, const struct tickmap_profile *p,
		  const unsigned *truth, const int64_t offset)
{
	unsigned named = 0, wrong = 0, clock = 0;

	assert_int_equal(p->samples.count, SAMPLES);
	for (unsigned s = 0; s < SAMPLES; s++) {
		const struct tickmap_frame *f =
			&p->frames
				 .items[p->nodes.items[p->samples.items[s].node]
						.frame];
		char expected[16];
		snprintf(expected, sizeof(expected), "f%u", truth[s]);
		if (f->kind != TICKMAP_FRAME_JIT) {
			assert_int_equal(f->reason, TICKMAP_UNRESOLVED_CLOCK);
			clock++;
		} else {
			named++;
			wrong += strcmp(tickmap_string(p->strings, f->name,
						       NULL),
					expected) != 0;
		}
	}
	print_message("%-36s %s: %4u of %d right, %4u `clock`, %u wrong; "
		      "offset %lld, error %llu\n",
		      w->label, p->clock.method, named - wrong, SAMPLES, clock,
		      wrong, (long long)p->clock.offset_ns,
		      (unsigned long long)p->clock.error_ns);
	assert_int_equal(wrong, 0);
	assert_string_equal(p->clock.method, w->method);
	assert_int_equal(p->unresolved[TICKMAP_UNRESOLVED_CLOCK], clock);
	assert_true(named >= w->named_at_least * (SAMPLES / 100));
	if (!strcmp(p->clock.method, "offset"))
		assert_true((uint64_t)llabs(p->clock.offset_ns - offset) <=
			    p->clock.error_ns);
}

static void run(const struct world *w)
{
	struct load loads[LOADS];
	static unsigned truth[SAMPLES];
	struct recording r;
	char marker[128];

	start = START + (w->offset > START ? w->offset : 0);
	recording_open(&r, w->clockid);
	if (w->stamps == TICKS_TOLD)
		tell_ticks(&r);
	record_comm(&r, (uint64_t)start, PID, PID, "toy", true);
	record_map(&r, (uint64_t)(start + MS), PID, JIT, 0x10000, "//anon");
	make_loads(w, loads);
	snprintf(marker, sizeof(marker), "/gone/jit-%u.dump", PID);
	if (w->marker)
		record_map(&r, (uint64_t)(loads[0].when - 2 * MS), PID,
			   JIT + 0x100000, 0x1000, marker);
	write_samples(&r, loads, truth);
	if (w->exit)
		record_exit(&r, (uint64_t)(start + 2 * SECOND), PID);
	write_dump(w, &r, loads);
	struct tickmap_profile *p = recording_load(&r, NULL);
	check(w, p, truth, w->offset);
	tickmap_profile_free(p);
	recording_remove(&r);
}

static void no_clock_makes_a_name_wrong(void **state)
{
	enum { SEEDS = 5 };

	(void)state;
	for (uint64_t s = 1; s <= SEEDS; s++) {
		seed = s;
		for (size_t i = 0; i < sizeof(worlds) / sizeof(*worlds); i++)
			run(&worlds[i]);
	}
}

/* On a busy machine a recorder's round may take long: what it read was stamped
 * after it began, and that is no other clock. */
static void a_slow_round_of_the_recorder_is_no_other_clock(void **state)
{
	static const struct {
		int64_t stamp, chunk; /* ms */
	} loads[] = { { 1, 0 }, { 45, 2 }, { 46, 4 }, { 95, 50 }, { 97, 52 } };
	static struct dump dump;
	const uint64_t began = UINT64_C(100) * SECOND;
	struct recording r;
	size_t written = 0;

	(void)state;
	recording_open(&r, CLOCK_MONOTONIC);
	record_map(&r, began, PID, JIT, 0x10000, "//anon");
	dump_begin(&dump, PID, 0);
	for (size_t i = 0; i < sizeof(loads) / sizeof(*loads); i++) {
		uint64_t when = began + (uint64_t)(loads[i].stamp * MS);
		dump_load(&dump, when, PID, JIT + i * SIZE, SIZE, "f");
		record_note(&r, TICKMAP_NOTE_JITDUMP, PID, PID,
			    began + (uint64_t)(loads[i].chunk * MS), written,
			    dump.bytes + written, dump.size - written);
		written = dump.size;
		record_sample(&r, when + US, PID, JIT + i * SIZE);
	}
	struct tickmap_profile *p = recording_load(&r, NULL);
	assert_string_equal(p->clock.method, "same");
	assert_int_equal(p->jit_resolved, 5);
	assert_int_equal(p->findings.count, 0);
	tickmap_profile_free(p);
	recording_remove(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_clock_makes_a_name_wrong),
		cmocka_unit_test(
			a_slow_round_of_the_recorder_is_no_other_clock),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

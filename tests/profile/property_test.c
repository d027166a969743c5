/* SPDX-License-Identifier: MIT */
/* Random recordings against a model that scans all loads for each frame. */
#include "recording.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define MS UINT64_C(1000000)
#define START (UINT64_C(100) * 1000 * MS)
#define JIT UINT64_C(0x7f0000000000)
#define PARENT 4194001u
#define CHILD 4194002u
#define FORKED (START + 50 * MS)
#define SLACK MS

enum { LOADS = 300, SAMPLES = 1500, DEPTH = 4, NAMES = 40, SPAN = 1 << 12 };

struct load {
	uint64_t when, avma, size;
	uint32_t pid;
	unsigned name;
};

struct world {
	struct load loads[LOADS];
	uint64_t seed;
	uint64_t self[NAMES], total[NAMES], managed[NAMES];
	uint64_t jit_resolved, early, violations, unresolved;
};

static uint64_t random_below(struct world *w, uint64_t n)
{
	w->seed = w->seed * 6364136223846793005U + 1442695040888963407U;
	return (w->seed >> 33) % n;
}

static bool covers(const struct load *l, uint64_t avma)
{
	return avma - l->avma < l->size;
}

/* What the child sees of a load: its own, and its parent's before the fork. */
static bool is_seen(const struct load *l, uint32_t pid)
{
	return l->pid == pid || (pid == CHILD && l->when <= FORKED);
}

/* Loads are in order of time. NULL: nobody. */
static const struct load *owner(const struct world *w, uint32_t pid,
				uint64_t when, uint64_t avma, bool *ret_early)
{
	const struct load *found = NULL;

	*ret_early = false;
	for (size_t i = 0; i < LOADS; i++) {
		const struct load *l = &w->loads[i];
		if (!is_seen(l, pid) || !covers(l, avma))
			continue;
		if (l->when <= when) {
			found = l;
		} else if (!found && l->when <= when + SLACK) {
			*ret_early = true;
			return l;
		}
	}
	return found;
}

static void make_loads(struct world *w)
{
	uint64_t when = START;

	for (size_t i = 0; i < LOADS; i++) {
		when += 1 + random_below(w, MS);
		w->loads[i] = (struct load) {
			.when = when,
			.avma = JIT + random_below(w, SPAN),
			.size = 1 + random_below(w, 200),
			.pid = when > FORKED && random_below(w, 2) ? CHILD
								   : PARENT,
			.name = (unsigned)random_below(w, NAMES),
		};
	}
}

static void write_dump(struct world *w, struct recording *r, uint32_t pid)
{
	static struct dump dump;
	char name[16];

	dump_begin(&dump, pid, 0);
	for (size_t i = 0; i < LOADS; i++) {
		const struct load *l = &w->loads[i];
		if (l->pid != pid)
			continue;
		snprintf(name, sizeof(name), "f%u", l->name);
		dump_load(&dump, l->when, pid, l->avma, (uint32_t)l->size,
			  name);
	}
	record_note(r, TICKMAP_NOTE_JITDUMP, pid, pid, 0, 0, dump.bytes,
		    dump.size);
}

static void count(struct world *w, uint32_t pid, uint64_t when,
		  const uint64_t *ips)
{
	bool seen[NAMES] = { false }, named = true, managed = false;
	unsigned early = 0;

	for (size_t i = 0; i < DEPTH; i++) {
		bool is_early;
		const struct load *l =
			owner(w, pid, when, ips[i] - (i > 0), &is_early);
		/* A made-up first frame returns to where code begins. */
		bool next_early;
		const struct load *next =
			owner(w, pid, when, ips[i], &next_early);
		if (i == DEPTH - 1 && next && next->avma == ips[i]) {
			l = next;
			is_early = next_early;
		}
		if (!l) {
			named = false;
			w->unresolved++;
			continue;
		}
		early += is_early;
		w->self[l->name] += !i;
		w->total[l->name] += !seen[l->name];
		seen[l->name] = true;
		w->managed[l->name] += !managed;
		managed = true;
	}
	w->jit_resolved += named;
	w->early += early;
	w->violations += early > 0;
}

static void write_samples(struct world *w, struct recording *r)
{
	for (size_t i = 0; i < SAMPLES; i++) {
		uint64_t chain[1 + DEPTH] = { (uint64_t)PERF_CONTEXT_USER };
		uint64_t when = START + random_below(w, 200 * MS);
		uint32_t pid =
			when > FORKED && random_below(w, 2) ? CHILD : PARENT;
		for (size_t d = 1; d <= DEPTH; d++)
			chain[d] = JIT + 1 + random_below(w, SPAN + 100);
		record_chain(r, when, pid, pid, chain, 1 + DEPTH);
		count(w, pid, when, chain + 1);
	}
}

static void compare(const struct world *w, const struct tickmap_profile *p)
{
	struct tickmap_functions table;
	uint64_t unresolved = 0, rows = 0;

	assert_int_equal(p->samples.count, SAMPLES);
	assert_int_equal(p->jit_samples, SAMPLES);
	assert_int_equal(p->jit_resolved, w->jit_resolved);
	assert_int_equal(p->early, w->early);
	assert_int_equal(p->clock.violations, w->violations);
	for (size_t i = 0; i < TICKMAP_UNRESOLVED_COUNT; i++)
		unresolved += p->unresolved[i];
	assert_int_equal(unresolved, w->unresolved);
	assert_int_equal(p->unresolved[TICKMAP_UNRESOLVED_OTHER_TIME] +
				 p->unresolved[TICKMAP_UNRESOLVED_NOT_IN_MAP],
			 unresolved);
	assert_int_equal(tickmap_profile_functions(p, NULL, 0, &table), 0);
	for (size_t i = 0; i < table.count; i++) {
		const struct tickmap_function *row = &table.rows[i];
		const char *name = tickmap_string(
			p->strings, p->frames.items[row->frame].name, NULL);
		if (*name != 'f')
			continue;
		unsigned long f = strtoul(name + 1, NULL, 10);
		assert_int_equal(row->self, w->self[f]);
		assert_int_equal(row->total, w->total[f]);
		assert_int_equal(row->managed_self, w->managed[f]);
		rows++;
	}
	for (size_t f = 0; f < NAMES; f++)
		rows -= w->total[f] > 0;
	assert_int_equal(rows, 0);
	tickmap_functions_free(&table);
}

static void random_recordings_count_as_a_linear_scan_does(void **state)
{
	enum { WORLDS = 12 };

	(void)state;
	for (uint64_t seed = 1; seed <= WORLDS; seed++) {
		static struct world w;
		struct recording r;
		w = (struct world) { .seed = seed };
		recording_open(&r, CLOCK_MONOTONIC);
		record_map(&r, 0, PARENT, JIT, SPAN + 0x1000, "//anon");
		make_loads(&w);
		write_samples(&w, &r);
		write_dump(&w, &r, CHILD);
		record_fork(&r, FORKED, CHILD, PARENT);
		write_dump(&w, &r, PARENT);
		struct tickmap_profile *p = recording_load(&r, NULL);
		print_message("seed %llu: %llu of %d samples named, %llu "
			      "early frames\n",
			      (unsigned long long)seed,
			      (unsigned long long)w.jit_resolved, SAMPLES,
			      (unsigned long long)w.early);
		assert_true(w.jit_resolved > 0 && w.early > 0);
		compare(&w, p);
		tickmap_profile_free(p);
		recording_remove(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_recordings_count_as_a_linear_scan_does),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

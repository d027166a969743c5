/* SPDX-License-Identifier: MIT */
/*
 * Random recordings against a model that walks over all events for each frame:
 * code of a parent and of its child, which later starts another program, in
 * memory over which files, anonymous memory and what looks like a file are
 * mapped.
 */
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
#define EXECED (START + 120 * MS)
#define SLACK MS

enum { LOADS = 360, SAMPLES = 1500, DEPTH = 4, NAMES = 40, SPAN = 1 << 12 };

enum kind { CODE, IN_FILE, ANONYMOUS };

struct load {
	uint64_t when, avma, size;
	uint32_t pid;
	unsigned name;
	enum kind kind;
};

struct world {
	struct load loads[LOADS];
	uint64_t seed;
	uint64_t self[NAMES], total[NAMES], managed[NAMES];
	uint64_t jit_resolved, early, violations, unresolved, in_files;
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

/* What the child sees of an event: its own, and until it starts another program
 * its parent's before the fork. */
static bool is_seen(const struct load *l, uint32_t pid, uint64_t when)
{
	if (pid == CHILD && when >= EXECED && l->when < EXECED)
		return false;
	return l->pid == pid || (pid == CHILD && l->when <= FORKED);
}

/* Events are in order of time. NULL: nobody, or (*ret_file) a file. */
static const struct load *owner(const struct world *w, uint32_t pid,
				uint64_t when, uint64_t avma, bool *ret_early,
				bool *ret_file)
{
	const struct load *code = NULL;

	*ret_early = *ret_file = false;
	for (size_t i = 0; i < LOADS; i++) {
		const struct load *l = &w->loads[i];
		if (!is_seen(l, pid, when) || !covers(l, avma))
			continue;
		if (l->when > when) {
			if (code || *ret_file || l->kind != CODE)
				continue;
			*ret_early = l->when <= when + SLACK;
			return *ret_early ? l : NULL;
		}
		if (l->kind == CODE)
			code = l;
		else if (l->kind == IN_FILE)
			code = NULL;
		*ret_file = l->kind == IN_FILE ||
			    (*ret_file && l->kind != ANONYMOUS);
	}
	*ret_file &= !code;
	return code;
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
			.kind = random_below(w, 8)   ? CODE
				: random_below(w, 3) ? ANONYMOUS
						     : IN_FILE,
		};
	}
}

/* Whatever name the kernel shows, it is no file's code. */
static void write_maps(struct world *w, struct recording *r)
{
	static const char *const names[] = {
		"//anon",
		"",
		"/memfd:doublemapper (deleted)",
		"/dev/zero (deleted)",
		"/SYSV00000000 (deleted)",
		"/anon_hugepage (deleted)",
		"[anon:v8]",
		"[heap]",
	};

	for (size_t i = 0; i < LOADS; i++) {
		const struct load *l = &w->loads[i];
		const char *name = names[random_below(w, 8)];
		if (l->kind != CODE)
			record_map(r, l->when, l->pid, l->avma, l->size,
				   l->kind == IN_FILE ? "/no/such/lib.so"
						      : name);
	}
	record_comm(r, EXECED, CHILD, CHILD, "other", true);
	record_map(r, EXECED, CHILD, JIT, SPAN + 0x1000, "//anon");
}

/* Each program writes a dump of its own. */
static void write_dump(struct world *w, struct recording *r, uint32_t pid,
		       uint64_t from, uint64_t to)
{
	static struct dump dump;
	char name[16];

	dump_begin(&dump, pid, 0);
	for (size_t i = 0; i < LOADS; i++) {
		const struct load *l = &w->loads[i];
		if (l->pid != pid || l->kind != CODE || l->when < from ||
		    l->when >= to)
			continue;
		snprintf(name, sizeof(name), "f%u", l->name);
		dump_load(&dump, l->when, pid, l->avma, (uint32_t)l->size,
			  name);
	}
	record_note(r, TICKMAP_NOTE_JITDUMP, pid, pid + (from != 0), 0, 0,
		    dump.bytes, dump.size);
}

static void count(struct world *w, uint32_t pid, uint64_t when,
		  const uint64_t *ips)
{
	bool seen[NAMES] = { false }, named = true, managed = false;
	unsigned early = 0;

	for (size_t i = 0; i < DEPTH; i++) {
		bool is_early, next_early, in_file, next_in_file;
		const struct load *l = owner(w, pid, when, ips[i] - (i > 0),
					     &is_early, &in_file);
		/* A made-up first frame returns to where code begins. */
		const struct load *next =
			owner(w, pid, when, ips[i], &next_early, &next_in_file);
		if (i == DEPTH - 1 && !in_file && next &&
		    next->avma == ips[i]) {
			l = next;
			is_early = next_early;
		}
		if (!l) {
			named &= in_file;
			w->unresolved++;
			w->in_files += in_file;
			continue;
		}
		early += is_early;
		w->self[l->name] += !i;
		w->total[l->name] += !seen[l->name];
		seen[l->name] = true;
		w->managed[l->name] += !managed;
		managed = true;
	}
	w->jit_resolved += named && managed;
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
	assert_int_equal(p->jit_resolved, w->jit_resolved);
	assert_int_equal(p->early, w->early);
	assert_int_equal(p->clock.violations, w->violations);
	for (size_t i = 0; i < TICKMAP_UNRESOLVED_COUNT; i++)
		unresolved += p->unresolved[i];
	assert_int_equal(unresolved, w->unresolved);
	assert_int_equal(p->unresolved[TICKMAP_UNRESOLVED_OTHER_TIME] +
				 p->unresolved[TICKMAP_UNRESOLVED_NOT_IN_MAP],
			 unresolved - w->in_files);
	assert_int_equal(p->unresolved[TICKMAP_UNRESOLVED_FILE_MISSING],
			 w->in_files);
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
	enum { WORLDS = 20 };

	(void)state;
	for (uint64_t seed = 1; seed <= WORLDS; seed++) {
		static struct world w;
		struct recording r;
		w = (struct world) { .seed = seed };
		recording_open(&r, CLOCK_MONOTONIC);
		record_map(&r, 0, PARENT, JIT, SPAN + 0x1000, "//anon");
		make_loads(&w);
		write_maps(&w, &r);
		write_samples(&w, &r);
		write_dump(&w, &r, CHILD, 0, EXECED);
		write_dump(&w, &r, CHILD, EXECED, UINT64_MAX);
		record_fork(&r, FORKED, CHILD, PARENT);
		write_dump(&w, &r, PARENT, 0, UINT64_MAX);
		struct tickmap_profile *p = recording_load(&r, NULL);
		print_message("seed %llu: %llu of %d samples named, %llu "
			      "early frames, %llu in files\n",
			      (unsigned long long)seed,
			      (unsigned long long)w.jit_resolved, SAMPLES,
			      (unsigned long long)w.early,
			      (unsigned long long)w.in_files);
		assert_true(w.jit_resolved > 0 && w.early > 0 &&
			    w.in_files > 0);
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

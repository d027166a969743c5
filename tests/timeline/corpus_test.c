/* SPDX-License-Identifier: MIT */
/*
 * Real samples: the name of every leaf address at its time, against an
 * independent replay of the same dumps (script.own.tsv in the corpus).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those first */
#include <cmocka.h>

#include "../codemap/corpus.h"
#include "base/strings.h"
#include "base/vec.h"
#include "codemap/codemap.h"
#include "timeline/timeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct code {
	tickmap_str name;
	bool whole; /* its code bytes are in the dump */
};

struct process {
	uint32_t pid;
	struct tickmap_timeline *timeline;
};

struct session {
	struct tickmap_strings *names;
	TICKMAP_VEC(struct code) codes;
	TICKMAP_VEC(struct process) processes;
	bool widened; /* 32-bit addresses with their sign, in this dump */
	/* Results, over all cases. */
	unsigned cases;
	unsigned long rows, hits, laters, nones, equal, cut_only, widened_only;
};

static struct tickmap_timeline *timeline_of(struct session *session,
					    uint32_t pid, bool make)
{
	struct process *process;

	for (size_t i = 0; i < session->processes.count; i++)
		if (session->processes.items[i].pid == pid)
			return session->processes.items[i].timeline;
	if (!make)
		return NULL;
	process = tickmap_vec_push(&session->processes);
	assert_non_null(process);
	process->pid = pid;
	process->timeline = tickmap_timeline_new();
	return process->timeline;
}

static void saw_code(void *context, const struct tickmap_code_event *event)
{
	struct session *session = context;
	struct tickmap_timeline *timeline =
		timeline_of(session, event->pid, true);
	struct code *code;

	if (event->kind == TICKMAP_CODE_CLOSE)
		return;
	code = tickmap_vec_push(&session->codes);
	assert_non_null(code);
	code->name =
		tickmap_intern(session->names, event->name, event->name_length);
	code->whole = event->code != NULL;
	if (event->kind == TICKMAP_CODE_LOAD)
		assert_true(tickmap_timeline_load(
			timeline, TICKMAP_LAYER_CODE, event->when, event->avma,
			event->size, session->codes.count - 1));
	else
		assert_true(tickmap_timeline_move(
			timeline, event->when, event->old_avma, event->avma,
			event->size, TICKMAP_NO_OWNER));
}

static void saw_finding(void *context, const struct tickmap_finding *finding)
{
	struct session *session = context;

	if (!strcmp(finding->id, "JD026"))
		session->widened = true;
}

static void read_dumps(struct session *session, const char *name, char *cell)
{
	struct tickmap_code_handler handler = { .context = session,
						.code = saw_code,
						.finding = saw_finding };

	for (char *part; (part = strsep(&cell, ";"));) {
		char *file = strsep(&part, ":"), path[4096];
		struct tickmap_jitdump *dump = tickmap_jitdump_new(&handler);
		size_t size;
		uint8_t *bytes;
		file += strspn(file, " ");
		snprintf(path, sizeof(path), "%s/%s/%s.xz", corpus_folder(),
			 name, file);
		bytes = corpus_read(path, &size);
		assert_true(tickmap_jitdump_feed(dump, bytes, size));
		tickmap_jitdump_end(dump);
		tickmap_jitdump_free(dump);
		free(bytes);
	}
	for (size_t i = 0; i < session->processes.count; i++)
		assert_true(tickmap_timeline_seal(
			session->processes.items[i].timeline));
}

/* Names in the file have their tabs and the like written out. */
static bool same_name(const char *ours, const char *theirs)
{
	for (; *ours && *theirs; ours++, theirs++)
		if (*ours != *theirs &&
		    ((unsigned char)*ours >= ' ' || *theirs != ' '))
			return false;
	return *ours == *theirs;
}

/* What we find and the replay does not: the name of a last record that is cut,
 * and code above 2 GiB whose address its writer widened with the sign. */
static bool may_know_more(struct session *session, uint64_t avma,
			  struct tickmap_owner found)
{
	if (!session->codes.items[found.owner].whole)
		session->cut_only++;
	else if (session->widened && avma >> 31 == 1)
		session->widened_only++;
	else
		return false;
	return true;
}

/* ns, pid, tid, ip, name, how */
static void check_row(struct session *session, const char *name, char *row)
{
	uint64_t when = strtoull(strsep(&row, "\t"), NULL, 10);
	uint32_t pid = (uint32_t)strtoul(strsep(&row, "\t"), NULL, 10);
	const char *tid = strsep(&row, "\t");
	uint64_t avma = strtoull(strsep(&row, "\t"), NULL, 16);
	const char *theirs = strsep(&row, "\t"), *how = row, *ours;
	struct tickmap_timeline *timeline = timeline_of(session, pid, false);
	struct tickmap_owner found = { .owner = TICKMAP_NO_OWNER };

	(void)tid;
	session->rows++;
	if (timeline)
		found = tickmap_timeline_find(timeline, when, avma, 0);
	if (strcmp(how, "hit")) {
		session->laters += !strcmp(how, "later");
		session->nones += !strcmp(how, "none");
		if (found.owner != TICKMAP_NO_OWNER &&
		    !may_know_more(session, avma, found))
			fail_msg("%s: %llx at %llu: %s, nobody there", name,
				 (unsigned long long)avma,
				 (unsigned long long)when, how);
		if (!strcmp(how, "later") && found.owner == TICKMAP_NO_OWNER)
			assert_int_equal(
				tickmap_timeline_elsewhen(timeline, when, avma),
				1);
		session->equal++;
		return;
	}
	session->hits++;
	if (found.owner == TICKMAP_NO_OWNER)
		fail_msg("%s: %llx at %llu: nobody, expected %s", name,
			 (unsigned long long)avma, (unsigned long long)when,
			 theirs);
	ours = tickmap_string(session->names,
			      session->codes.items[found.owner].name, NULL);
	if (!same_name(ours, theirs))
		fail_msg("%s: %llx at %llu: %s, expected %s", name,
			 (unsigned long long)avma, (unsigned long long)when,
			 ours, theirs);
	session->equal++;
}

static void forget_dumps(struct session *session)
{
	for (size_t i = 0; i < session->processes.count; i++)
		tickmap_timeline_free(session->processes.items[i].timeline);
	tickmap_vec_free(&session->processes);
	tickmap_vec_free(&session->codes);
	tickmap_strings_free(session->names);
}

static void check_case(void *context, const char *name, char *cell)
{
	struct session *session = context;
	char path[4096];
	char *rows, *rest, *row;
	size_t size;

	snprintf(path, sizeof(path), "%s/%s/script.own.tsv.xz", corpus_folder(),
		 name);
	if (!*cell)
		return;
	if (access(path, R_OK)) {
		print_message("%s: left out, no replay to compare with\n",
			      name);
		return;
	}
	session->widened = false;
	session->names = tickmap_strings_new();
	read_dumps(session, name, cell);
	rows = rest = (char *)corpus_read(path, &size);
	while ((row = strsep(&rest, "\n")))
		if (*row && *row != '#')
			check_row(session, name, row);
	free(rows);
	forget_dumps(session);
	session->cases++;
}

static void every_leaf_has_the_name_that_a_replay_gives_it(void **unused)
{
	struct session session = { .cases = 0 };

	(void)unused;
	if (!corpus_folder()) {
		print_message("skipped: TICKMAP_CORPUS names no folder\n");
		skip();
	}
	corpus_each_case("jitdump_records", &session, check_case);
	print_message(
		"%u cases: %lu of %lu samples agree (%lu in code, %lu "
		"before their code, %lu outside; of those %lu in a record "
		"that is cut and %lu above 2 GiB on i386, which the "
		"replay does not know)\n",
		session.cases, session.equal, session.rows, session.hits,
		session.laters, session.nones, session.cut_only,
		session.widened_only);
	assert_true(session.hits > 0);
	assert_int_equal(session.equal, session.rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			every_leaf_has_the_name_that_a_replay_gives_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

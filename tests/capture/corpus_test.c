/* SPDX-License-Identifier: MIT */
/*
 * Real recordings, in the folder that TICKMAP_CORPUS names: each perf.data.xz
 * beside a script.plain.tsv.xz, where another reader has written a sample a
 * line, "seconds pid tid frames...".
 */
#include "capture/perfdata.h"

#include <ftw.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
/* cmocka wants the above first */
#include <cmocka.h>

struct sample {
	uint64_t time_ns;
	uint32_t pid, tid;
};

struct samples {
	struct sample *items;
	size_t count, capacity;
};

static char scratch[256];
static unsigned recordings, all_samples;

static void add(struct samples *samples, struct sample sample)
{
	if (samples->count == samples->capacity) {
		samples->capacity = samples->capacity * 2 + 1024;
		samples->items =
			realloc(samples->items,
				samples->capacity * sizeof(*samples->items));
		if (!samples->items)
			abort();
	}
	samples->items[samples->count++] = sample;
}

static int by_time(const void *a, const void *b)
{
	const struct sample *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

static void sort(struct samples *samples)
{
	qsort(samples->items, samples->count, sizeof(*samples->items), by_time);
}

static void read_ours(struct samples *samples)
{
	struct tickmap_perfdata *data;
	struct tickmap_perfdata_record record;
	struct tickmap_error err = { 0 };
	int status;

	assert_int_equal(tickmap_perfdata_open(scratch, &data, &err), 0);
	assert_true(tickmap_perfdata_is_finished(data));
	while ((status = tickmap_perfdata_next(data, &record, &err)) == 1) {
		struct tickmap_sample sample;
		if (record.type != PERF_RECORD_SAMPLE)
			continue;
		struct tickmap_bytes body =
			tickmap_bytes_of(record.bytes + 8, record.size - 8);
		body.swap = record.swap;
		assert_int_equal(tickmap_sample_decode(&record.attr->layout,
						       &body, &sample, &err),
				 0);
		assert_int_equal(sample.time_ns, record.id.time_ns);
		add(samples,
		    (struct sample) { sample.time_ns, sample.pid, sample.tid });
	}
	assert_int_equal(status, 0);
	tickmap_perfdata_close(data);
}

static void read_theirs(const char *folder, struct samples *samples)
{
	char call[4200], *line = NULL;
	size_t room = 0;

	snprintf(call, sizeof(call), "xz -dc '%s/script.plain.tsv.xz'", folder);
	FILE *in = popen(call, "r");
	assert_non_null(in);
	while (getline(&line, &room, in) > 0) {
		uint64_t seconds, ns;
		struct sample sample;
		if (sscanf(line,
			   "%" SCNu64 ".%9" SCNu64 " %" SCNu32 " %" SCNu32,
			   &seconds, &ns, &sample.pid, &sample.tid) != 4)
			continue; /* the heading */
		sample.time_ns = seconds * 1000000000 + ns;
		add(samples, sample);
	}
	free(line);
	assert_int_equal(pclose(in), 0);
}

static void compare(const char *folder)
{
	struct samples ours = { 0 }, theirs = { 0 };

	read_ours(&ours);
	read_theirs(folder, &theirs);
	sort(&ours);
	sort(&theirs);
	if (ours.count != theirs.count)
		print_error("%s: %zu samples, not %zu\n", folder, ours.count,
			    theirs.count);
	assert_int_equal(ours.count, theirs.count);
	for (size_t i = 0; i < ours.count; i++) {
		assert_int_equal(ours.items[i].time_ns,
				 theirs.items[i].time_ns);
		assert_int_equal(ours.items[i].pid, theirs.items[i].pid);
		assert_int_equal(ours.items[i].tid, theirs.items[i].tid);
	}
	all_samples += (unsigned)ours.count;
	recordings++;
	free(ours.items);
	free(theirs.items);
}

static int visit(const char *path, const struct stat *st, int type,
		 struct FTW *ftw)
{
	char folder[4000], call[4400];
	(void)st;

	if (type != FTW_F || strcmp(path + ftw->base, "perf.data.xz"))
		return 0;
	snprintf(folder, sizeof(folder), "%.*s", ftw->base - 1, path);
	snprintf(call, sizeof(call),
		 "test -e '%s/script.plain.tsv.xz' && xz -dc '%s' >'%s'",
		 folder, path, scratch);
	if (system(call) == 0)
		compare(folder);
	return 0;
}

static void real_recordings_hold_the_samples_that_perf_shows(void **state)
{
	const char *corpus = getenv("TICKMAP_CORPUS");
	const char *dir = getenv("TMPDIR");
	(void)state;

	if (!corpus) {
		print_message("skipped: TICKMAP_CORPUS names no folder\n");
		skip();
	}
	snprintf(scratch, sizeof(scratch), "%s/tickmap-corpus-%d.data",
		 dir ? dir : "/tmp", (int)getpid());
	assert_int_equal(nftw(corpus, visit, 16, FTW_PHYS), 0);
	unlink(scratch);
	print_message("%u samples in %u recordings\n", all_samples, recordings);
	assert_true(recordings > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			real_recordings_hold_the_samples_that_perf_shows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

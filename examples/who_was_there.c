/* SPDX-License-Identifier: MIT */
/*
 * Names an address at a time of a recording, out of a jitdump whose clock is
 * not the recording's: the marker's time says how late its stamps are at least,
 * a sample in its code how late at most.
 *
 *	cc who_was_there.c $(pkg-config --cflags --libs tickmap)
 *	./a.out jit-PID.dump MARKER_NS SAMPLE_NS SAMPLE_ADDRESS NS ADDRESS
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tickmap/clock.h>
#include <tickmap/codemap.h>
#include <tickmap/timeline.h>

struct load {
	uint64_t stamp, avma, size;
	char name[64];
};

struct loads {
	struct load *items;
	size_t count;
};

static void saw_code(void *context, const struct tickmap_code_event *event)
{
	struct loads *loads = (struct loads *)context;
	struct load *more;

	if (event->kind != TICKMAP_CODE_LOAD)
		return;
	more = (struct load *)realloc(loads->items,
				      (loads->count + 1) * sizeof(*more));
	if (!more)
		exit(1);
	loads->items = more;
	more += loads->count++;
	more->stamp = event->when;
	more->avma = event->avma;
	more->size = event->size;
	snprintf(more->name, sizeof(more->name), "%.*s",
		 (int)event->name_length, event->name);
}

static void saw_finding(void *context, const struct tickmap_finding *finding)
{
	(void)context;
	(void)finding;
}

static void read_dump(const char *path, struct loads *loads)
{
	struct tickmap_code_handler handler = { 0 };
	struct tickmap_jitdump *dump;
	FILE *file = fopen(path, "rb");
	char block[4096];
	size_t got;

	handler.context = loads;
	handler.code = saw_code;
	handler.finding = saw_finding;
	dump = tickmap_jitdump_new(&handler);
	if (!file || !dump)
		exit(1);
	while ((got = fread(block, 1, sizeof(block), file)) > 0)
		if (!tickmap_jitdump_feed(dump, block, got))
			exit(1);
	tickmap_jitdump_end(dump);
	tickmap_jitdump_free(dump);
	fclose(file);
}

/* The sample ran code that was loaded before: by the first such load. */
static void add_sample(struct tickmap_alignment *alignment,
		       const struct loads *loads, uint64_t when, uint64_t avma)
{
	size_t i;

	for (i = 0; i < loads->count; i++) {
		const struct load *load = &loads->items[i];
		if (avma - load->avma >= load->size)
			continue;
		if (!tickmap_alignment_sample(alignment, load->stamp, when))
			exit(1);
		return;
	}
}

int main(int argc, char **argv)
{
	struct loads loads = { NULL, 0 };
	struct tickmap_alignment *alignment = tickmap_alignment_new();
	struct tickmap_timeline *timeline = tickmap_timeline_new();
	struct tickmap_alignment_claim claim = { false, true, 0 };
	struct tickmap_alignment_result result;
	struct tickmap_owner owner;
	uint64_t numbers[7];
	size_t i;

	if (argc != 7 || !alignment || !timeline)
		return 2;
	for (i = 2; i < 7; i++)
		numbers[i] = strtoull(argv[i], NULL, 0);
	read_dump(argv[1], &loads);
	if (!loads.count ||
	    !tickmap_alignment_floor(alignment, loads.items[0].stamp,
				     numbers[2]))
		return 1;
	add_sample(alignment, &loads, numbers[3], numbers[4]);
	tickmap_alignment_solve(alignment, &claim);
	tickmap_alignment_result(alignment, &result);
	printf("%s: offset %" PRId64 ", error %" PRIu64 "\n",
	       tickmap_clock_method_name(result.method), result.offset_ns,
	       result.error_ns);
	for (i = 0; i < loads.count; i++) {
		const struct load *load = &loads.items[i];
		if (!tickmap_timeline_load_within(
			    timeline,
			    tickmap_alignment_earliest(alignment, load->stamp),
			    tickmap_alignment_latest(alignment, load->stamp),
			    load->avma, load->size, i))
			return 1;
	}
	if (!tickmap_timeline_seal(timeline))
		return 1;
	owner = tickmap_timeline_find(timeline, numbers[5], numbers[6], 0);
	if (owner.owner == TICKMAP_NO_OWNER)
		puts("nobody");
	else
		printf("%s%s\n", loads.items[owner.owner].name,
		       owner.certain > numbers[5] ? ", perhaps" : "");
	tickmap_timeline_free(timeline);
	tickmap_alignment_free(alignment);
	free(loads.items);
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * The flame graph page: the template of viewer/ with the profile as JSON in it.
 * Stacks go out as they are, a node a pair of numbers; the page merges,
 * filters and draws.
 */
#include "base/json.h"
#include "output/names.h"
#include "output/output.h"
#include "output/page.h" /* made from viewer/ by the build */
#include "unwind/unwind.h"

#include <stdlib.h>
#include <string.h>

struct page {
	const struct tickmap_profile *profile;
	struct tickmap_json json;
	/* By tickmap_str: its place in the page's own table, plus 1. Only what
	 * frames and threads use goes out. */
	uint32_t *places;
	tickmap_str *used;
	size_t used_count;
};

static void key(struct page *p, const char *name)
{
	tickmap_json_key(&p->json, name);
}

static void number(struct page *p, const char *name, uint64_t value)
{
	key(p, name);
	tickmap_json_u64(&p->json, value);
}

static void text(struct page *p, tickmap_str id)
{
	size_t length;
	const char *bytes = tickmap_string(p->profile->strings, id, &length);

	tickmap_json_string(&p->json, bytes, length);
}

static uint32_t place(struct page *p, tickmap_str id)
{
	if (!p->places[id]) {
		p->used[p->used_count++] = id;
		p->places[id] = (uint32_t)p->used_count;
	}
	return p->places[id] - 1;
}

static void reasons(struct page *p)
{
	const struct tickmap_profile *profile = p->profile;

	key(p, "truncatedBy");
	tickmap_json_open(&p->json, '[');
	for (unsigned i = 1; i <= TICKMAP_TRUNCATED_NOT_UNWOUND; i++) {
		if (!profile->truncated_by[i])
			continue;
		tickmap_json_open(&p->json, '[');
		tickmap_json_text(&p->json, tickmap_names_end_text(i));
		tickmap_json_u64(&p->json, profile->truncated_by[i]);
		tickmap_json_close(&p->json, ']');
	}
	tickmap_json_close(&p->json, ']');
	key(p, "unresolved");
	tickmap_json_open(&p->json, '[');
	for (unsigned i = 1; i < TICKMAP_UNRESOLVED_COUNT; i++) {
		if (!profile->unresolved[i])
			continue;
		tickmap_json_open(&p->json, '[');
		tickmap_json_text(&p->json, tickmap_unresolved_text(i));
		tickmap_json_u64(&p->json, profile->unresolved[i]);
		tickmap_json_close(&p->json, ']');
	}
	tickmap_json_close(&p->json, ']');
	key(p, "hints");
	tickmap_json_open(&p->json, '[');
	for (size_t i = 0; i < profile->hints.count; i++)
		text(p, profile->hints.items[i]);
	tickmap_json_close(&p->json, ']');
}

static void facts(struct page *p, const char *title)
{
	const struct tickmap_profile *profile = p->profile;

	key(p, "title");
	if (title)
		tickmap_json_text(&p->json, title);
	else
		text(p, profile->command);
	key(p, "event");
	text(p, profile->event);
	number(p, "frequency", profile->frequency);
	number(p, "samples", profile->samples.count);
	number(p, "lost", profile->lost);
	number(p, "truncated", profile->truncated);
	number(p, "jitSamples", profile->jit_samples);
	number(p, "jitResolved", profile->jit_resolved);
	key(p, "cpuSeconds");
	tickmap_json_double(&p->json, profile->cpu_seconds);
	number(p, "lengthNs",
	       profile->end_ns > profile->start_ns
		       ? profile->end_ns - profile->start_ns
		       : 0);
	key(p, "finished");
	tickmap_json_bool(&p->json, profile->finished);
	reasons(p);
}

static uint64_t name_of(struct page *p, uint32_t frame)
{
	return place(p, p->profile->frames.items[frame].name);
}

static uint64_t dso_of(struct page *p, uint32_t frame)
{
	return place(p, p->profile->frames.items[frame].dso);
}

static uint64_t file_of(struct page *p, uint32_t frame)
{
	return place(p, p->profile->frames.items[frame].file);
}

static uint64_t line_of(struct page *p, uint32_t frame)
{
	return p->profile->frames.items[frame].line;
}

static uint64_t kind_of(struct page *p, uint32_t frame)
{
	return p->profile->frames.items[frame].kind;
}

static uint64_t reason_of(struct page *p, uint32_t frame)
{
	return p->profile->frames.items[frame].reason;
}

static uint64_t interpreter(struct page *p, uint32_t frame)
{
	return p->profile->frames.items[frame].interpreter;
}

static uint64_t lined(struct page *p, uint32_t frame)
{
	return tickmap_profile_needs_line(p->profile, frame);
}

/* Columns, each frame one place: shorter than objects. */
static void column(struct page *p, const char *name,
		   uint64_t (*value)(struct page *p, uint32_t frame))
{
	key(p, name);
	tickmap_json_open(&p->json, '[');
	for (size_t i = 0; i < p->profile->frames.count; i++)
		tickmap_json_u64(&p->json, value(p, (uint32_t)i));
	tickmap_json_close(&p->json, ']');
}

static void frames(struct page *p)
{
	column(p, "frameName", name_of);
	column(p, "frameDso", dso_of);
	column(p, "frameFile", file_of);
	column(p, "frameLine", line_of);
	column(p, "frameKind", kind_of);
	column(p, "frameReason", reason_of);
	column(p, "frameLined", lined);
	column(p, "frameInterpreter", interpreter);
	key(p, "reasonText");
	tickmap_json_open(&p->json, '[');
	for (unsigned i = 0; i < TICKMAP_UNRESOLVED_COUNT; i++)
		tickmap_json_text(&p->json, tickmap_unresolved_text(i));
	tickmap_json_close(&p->json, ']');
}

/* Nodes 1 and up: how far back the parent is, and the frame. */
static void nodes(struct page *p)
{
	const struct tickmap_node *n = p->profile->nodes.items;
	size_t count = p->profile->nodes.count;

	key(p, "nodeUp");
	tickmap_json_open(&p->json, '[');
	for (size_t i = 1; i < count; i++)
		tickmap_json_u64(&p->json, i - n[i].parent);
	tickmap_json_close(&p->json, ']');
	key(p, "nodeFrame");
	tickmap_json_open(&p->json, '[');
	for (size_t i = 1; i < count; i++)
		tickmap_json_u64(&p->json, n[i].frame);
	tickmap_json_close(&p->json, ']');
}

static int compare(const void *a, const void *b, void *context)
{
	const struct tickmap_profile_sample *samples = context;
	const struct tickmap_profile_sample *x = &samples[*(const uint32_t *)a];
	const struct tickmap_profile_sample *y = &samples[*(const uint32_t *)b];

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return (x->node > y->node) - (x->node < y->node);
}

/* Per thread: node (as the distance from the one before), count, node ... */
static void thread(struct page *p, const uint32_t *order, size_t from,
		   size_t to)
{
	const struct tickmap_profile *profile = p->profile;
	const struct tickmap_profile_sample *samples = profile->samples.items;
	const struct tickmap_thread *t =
		&profile->threads.items[samples[order[from]].thread];
	uint32_t before = 0;
	size_t next;

	tickmap_json_open(&p->json, '{');
	number(p, "pid", t->pid);
	number(p, "tid", t->tid);
	number(p, "comm", place(p, t->comm));
	key(p, "samples");
	tickmap_json_open(&p->json, '[');
	for (size_t i = from; i < to; i = next) {
		uint32_t node = samples[order[i]].node;

		for (next = i; next < to; next++)
			if (samples[order[next]].node != node)
				break;
		tickmap_json_u64(&p->json, node - before);
		tickmap_json_u64(&p->json, next - i);
		before = node;
	}
	tickmap_json_close(&p->json, ']');
	tickmap_json_close(&p->json, '}');
}

static bool threads(struct page *p)
{
	const struct tickmap_profile *profile = p->profile;
	size_t count = profile->samples.count, to;
	uint32_t *order = calloc(count + 1, sizeof(*order));

	if (!order)
		return false;
	for (size_t i = 0; i < count; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, count, sizeof(*order), compare, profile->samples.items);
	key(p, "threads");
	tickmap_json_open(&p->json, '[');
	for (size_t from = 0; from < count; from = to) {
		uint32_t index = profile->samples.items[order[from]].thread;

		for (to = from; to < count; to++)
			if (profile->samples.items[order[to]].thread != index)
				break;
		thread(p, order, from, to);
	}
	tickmap_json_close(&p->json, ']');
	free(order);
	return true;
}

static bool data(struct page *p, const struct tickmap_export_options *options)
{
	tickmap_json_open(&p->json, '{');
	facts(p, options->title);
	frames(p);
	nodes(p);
	if (!threads(p))
		return false;
	key(p, "strings");
	tickmap_json_open(&p->json, '[');
	for (size_t i = 0; i < p->used_count; i++)
		text(p, p->used[i]);
	tickmap_json_close(&p->json, ']');
	tickmap_json_close(&p->json, '}');
	return true;
}

int tickmap_export_html(const struct tickmap_profile *profile,
			const struct tickmap_export_options *options, FILE *out)
{
	size_t strings = tickmap_strings_count(profile->strings) + 1;
	struct page p = {
		.profile = profile,
		.json = { .out = out },
		.places = calloc(strings, sizeof(*p.places)),
		.used = calloc(strings, sizeof(*p.used)),
	};
	bool good = p.places && p.used;

	if (good) {
		fwrite(tickmap_page_head, 1, sizeof(tickmap_page_head), out);
		good = data(&p, options);
		fwrite(tickmap_page_tail, 1, sizeof(tickmap_page_tail), out);
	}
	free(p.places);
	free(p.used);
	if (!good)
		return TICKMAP_E_NOMEM;
	return ferror(out) ? TICKMAP_E_OS : TICKMAP_OK;
}

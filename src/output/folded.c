/* SPDX-License-Identifier: MIT */
/* "comm;root;...;leaf COUNT", one stack a line, each once, in order. */
#include "output/names.h"
#include "output/output.h"
#include "output/tree.h"

#include <inttypes.h>
#include <string.h>

/* A line may be much longer than what it was made of: it is written piece by
 * piece and never stands in memory. */
struct line {
	const struct tickmap_strings *strings;
	tickmap_str comm;
	TICKMAP_VEC(tickmap_str) frames;
};

static void put_text(const struct line *line, tickmap_str id, FILE *out)
{
	size_t length;
	const char *text = tickmap_string(line->strings, id, &length);

	fwrite(text, 1, length, out);
}

static void put_line(const struct line *line, uint64_t count, FILE *out)
{
	put_text(line, line->comm, out);
	for (size_t i = 0; i < line->frames.count; i++) {
		fputc(';', out);
		put_text(line, line->frames.items[i], out);
	}
	fprintf(out, " %" PRIu64 "\n", count);
}

/* Depth first; the line grows and shrinks with the path. */
static int print_tree(const struct tickmap_tree *tree, struct line *line,
		      FILE *out)
{
	const struct tickmap_tree_node *nodes = tree->nodes.items;
	uint32_t at = 0;

	for (;;) {
		if (nodes[at].self)
			put_line(line, nodes[at].self, out);
		uint32_t next = nodes[at].first;

		while (!next && at) {
			line->frames.count--;
			next = nodes[at].next;
			at = nodes[at].parent;
		}
		if (!next)
			return TICKMAP_OK;
		tickmap_str *frame = tickmap_vec_push(&line->frames);

		if (!frame)
			return TICKMAP_E_NOMEM;
		*frame = nodes[next].key;
		at = next;
	}
}

struct folded {
	const struct tickmap_profile *profile; /* perhaps a folded view */
	struct tickmap_strings *strings;
	tickmap_str *names; /* by frame */
	tickmap_str *comms; /* by thread */
	uint32_t *samples;  /* indices, by comm */
};

static int compare_samples(const void *a, const void *b, void *context)
{
	const struct folded *f = context;
	const struct tickmap_profile_sample *samples =
		f->profile->samples.items;
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
	tickmap_str x = f->comms[samples[i].thread];
	tickmap_str y = f->comms[samples[j].thread];

	if (x == y)
		return (i > j) - (i < j);
	return strcmp(tickmap_string(f->strings, x, NULL),
		      tickmap_string(f->strings, y, NULL));
}

static bool sort_samples(struct folded *f)
{
	const struct tickmap_profile *profile = f->profile;
	struct tickmap_text text = { 0 };
	size_t length;

	f->comms = calloc(profile->threads.count + 1, sizeof(*f->comms));
	f->samples = calloc(profile->samples.count + 1, sizeof(*f->samples));
	if (!f->comms || !f->samples)
		return false;
	for (size_t i = 0; i < profile->threads.count; i++) {
		const char *comm =
			tickmap_string(profile->strings,
				       profile->threads.items[i].comm, &length);

		text.bytes.count = 0;
		tickmap_text_add_clean(&text, comm, length, true);
		if (!length)
			tickmap_text_add(&text, "[unknown]", 9);
		f->comms[i] = tickmap_intern(f->strings, text.bytes.items,
					     text.bytes.count);
	}
	bool good = !text.failed && !tickmap_strings_failed(f->strings);

	tickmap_vec_free(&text.bytes);
	for (size_t i = 0; i < profile->samples.count; i++)
		f->samples[i] = (uint32_t)i;
	qsort_r(f->samples, profile->samples.count, sizeof(*f->samples),
		compare_samples, f);
	return good;
}

static int print_comm(const struct folded *f, size_t from, size_t to, FILE *out)
{
	struct tickmap_tree_options options = {
		.keys = f->names,
		.samples = f->samples + from,
		.sample_count = to - from,
		.order = f->strings,
	};
	uint32_t thread = f->profile->samples.items[f->samples[from]].thread;
	struct line line = { .strings = f->strings, .comm = f->comms[thread] };
	struct tickmap_tree tree;
	int status = tickmap_tree_build(f->profile, &options, &tree);

	if (status < 0)
		return status;
	status = print_tree(&tree, &line, out);
	tickmap_vec_free(&line.frames);
	tickmap_tree_free(&tree);
	return status;
}

static int print_all(const struct folded *f, FILE *out)
{
	const struct tickmap_profile_sample *samples =
		f->profile->samples.items;
	size_t count = f->profile->samples.count, to;
	int status = TICKMAP_OK;

	for (size_t from = 0; from < count && status >= 0; from = to) {
		tickmap_str comm = f->comms[samples[f->samples[from]].thread];

		for (to = from + 1; to < count; to++)
			if (f->comms[samples[f->samples[to]].thread] != comm)
				break;
		status = print_comm(f, from, to, out);
	}
	if (status >= 0 && ferror(out))
		status = TICKMAP_E_OS;
	return status;
}

int tickmap_export_folded(const struct tickmap_profile *profile,
			  const struct tickmap_export_options *options,
			  FILE *out)
{
	struct tickmap_profile view = { 0 };
	struct folded f = {
		.profile = profile,
		.strings = tickmap_strings_new(),
	};
	int status = TICKMAP_E_NOMEM;

	if (!f.strings)
		return status;
	f.names = tickmap_names_folded(profile, f.strings);
	if (f.names && !options->interpreter_frames &&
	    tickmap_folded_view(profile, &view) >= 0)
		f.profile = &view;
	if (f.names && (options->interpreter_frames || f.profile == &view) &&
	    sort_samples(&f))
		status = print_all(&f, out);
	free(f.names);
	free(f.comms);
	free(f.samples);
	tickmap_strings_free(f.strings);
	tickmap_folded_free(&view);
	return status;
}

/* SPDX-License-Identifier: MIT */
/* "comm;root;...;leaf COUNT", one stack a line, each once, in order. */
#include "output/names.h"
#include "output/output.h"
#include "output/tree.h"

#include <inttypes.h>
#include <string.h>

static void add_frame(struct tickmap_text *line, const char *name)
{
	tickmap_text_add(line, ";", 1);
	tickmap_text_add(line, name, strlen(name));
}

/* Depth first; `line` grows and shrinks with the path, `lengths` remembers by
 * how much. */
static int print_tree(const struct tickmap_tree *tree,
		      const struct tickmap_strings *strings,
		      struct tickmap_text *line, FILE *out)
{
	const struct tickmap_tree_node *nodes = tree->nodes.items;
	TICKMAP_VEC(size_t) lengths = { 0 };
	uint32_t at = 0;

	for (;;) {
		if (nodes[at].self && !line->failed) {
			fwrite(line->bytes.items, 1, line->bytes.count, out);
			fprintf(out, " %" PRIu64 "\n", nodes[at].self);
		}
		uint32_t next = nodes[at].first;

		while (!next && at) {
			line->bytes.count = lengths.items[--lengths.count];
			next = nodes[at].next;
			at = nodes[at].parent;
		}
		size_t *length = next ? tickmap_vec_push(&lengths) : NULL;

		if (!length)
			break;
		*length = line->bytes.count;
		at = next;
		add_frame(line, tickmap_string(strings, nodes[at].key, NULL));
	}
	bool whole = lengths.count == 0 && !line->failed;

	tickmap_vec_free(&lengths);
	return whole ? TICKMAP_OK : TICKMAP_E_NOMEM;
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
	const char *comm = tickmap_string(f->strings, f->comms[thread], NULL);
	struct tickmap_text line = { 0 };
	struct tickmap_tree tree;
	int status = tickmap_tree_build(f->profile, &options, &tree);

	if (status < 0)
		return status;
	tickmap_text_add(&line, comm, strlen(comm));
	status = print_tree(&tree, f->strings, &line, out);
	tickmap_vec_free(&line.bytes);
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

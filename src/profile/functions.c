/* SPDX-License-Identifier: MIT */
/*
 * The table of functions. Counts are made on the tree of call stacks, never on
 * the samples' frames: a profile has far fewer nodes than frames in samples.
 */
#include "profile/internal.h"

#include <string.h>

uint64_t *tickmap_profile_weights(const struct tickmap_profile *profile,
				  const uint32_t *samples, size_t sample_count)
{
	size_t nodes = profile->nodes.count;
	size_t count = samples ? sample_count : profile->samples.count;
	uint64_t *weights = calloc(nodes, sizeof(*weights));

	if (!weights)
		return NULL;
	for (size_t i = 0; i < count; i++)
		weights[profile->samples.items[samples ? samples[i] : i]
				.node]++;
	/* Children have higher numbers than their parents. */
	for (size_t n = nodes; n-- > 1;)
		weights[profile->nodes.items[n].parent] += weights[n];
	return weights;
}

struct work {
	const struct tickmap_profile *profile;
	uint64_t *weights;	       /* by node */
	uint32_t *self;		       /* by node: samples that end there */
	uint32_t *group_of;	       /* by frame: its function */
	bool *published;	       /* by frame: out of a code map */
	struct tickmap_function *rows; /* by function */
	size_t group_count;
	uint32_t *first_child, *next_sibling; /* by node; 0: none */
	uint32_t *managed; /* by node: innermost code map frame's node */
};

static bool same_function(const struct tickmap_frame *a,
			  const struct tickmap_frame *b)
{
	return a->name == b->name && a->dso == b->dso && a->file == b->file &&
	       a->line == b->line && a->inlined == b->inlined;
}

static bool group_frames(struct work *w)
{
	const struct tickmap_frame *frames = w->profile->frames.items;
	struct tickmap_table groups = { 0 };
	bool good = true;

	for (uint32_t i = 0; good && i < w->profile->frames.count; i++) {
		const struct tickmap_frame *f = &frames[i];
		uint64_t key = tickmap_mix((uint64_t)f->name << 32 | f->dso) ^
			       tickmap_mix((uint64_t)f->line << 32 | f->file);
		uint64_t *slot;
		while ((slot = tickmap_table_get(&groups, key)) &&
		       !same_function(&frames[w->rows[*slot].frame], f))
			key++;
		if (!slot) {
			slot = tickmap_table_put(&groups, key);
			good = slot;
			if (!good)
				break;
			*slot = w->group_count++;
			w->rows[*slot].frame = i;
		}
		w->group_of[i] = (uint32_t)*slot;
		w->published[i] = f->kind == TICKMAP_FRAME_PYTHON ||
				  f->kind == TICKMAP_FRAME_JIT;
	}
	tickmap_table_free(&groups);
	return good;
}

static uint32_t group_of_node(const struct work *w, uint32_t node)
{
	return w->group_of[w->profile->nodes.items[node].frame];
}

static void enter(struct work *w, uint32_t node)
{
	const struct tickmap_node *n = &w->profile->nodes.items[node];
	uint32_t group = group_of_node(w, node);
	struct tickmap_function *row = &w->rows[group];
	uint64_t self = w->self[node];

	w->managed[node] =
		w->published[n->frame] ? node : w->managed[n->parent];
	row->self += self;
	/* Recursion counts once. */
	if (!row->open++)
		row->total += w->weights[node];
	if (self && w->managed[node])
		w->rows[group_of_node(w, w->managed[node])].managed_self +=
			self;
}

/* Depth first without a stack: parents are known. */
static void walk(struct work *w)
{
	uint32_t node = w->first_child[0];

	while (node) {
		enter(w, node);
		if (w->first_child[node]) {
			node = w->first_child[node];
			continue;
		}
		while (node) {
			w->rows[group_of_node(w, node)].open--;
			if (w->next_sibling[node]) {
				node = w->next_sibling[node];
				break;
			}
			node = w->profile->nodes.items[node].parent;
		}
	}
}

/* A row with all that decides its place, nearly always without a look at the
 * name: of that it has the eight bytes behind what all names begin with. */
struct sorted_row {
	struct tickmap_function row;
	uint64_t begins;
	const char *name;
};

static int compare_u64(uint64_t more, uint64_t less)
{
	return (more < less) - (more > less);
}

static int compare_rows(const void *a, const void *b)
{
	const struct sorted_row *x = a, *y = b;
	int order = compare_u64(x->row.managed_self, y->row.managed_self);

	if (!order)
		order = compare_u64(x->row.self, y->row.self);
	if (!order)
		order = compare_u64(x->row.total, y->row.total);
	if (!order)
		order = (x->begins > y->begins) - (x->begins < y->begins);
	if (!order)
		order = strcmp(x->name, y->name);
	return order ? order
		     : (x->row.frame > y->row.frame) -
			       (x->row.frame < y->row.frame);
}

static size_t common_length(const struct sorted_row *rows, size_t count)
{
	size_t length = count ? strlen(rows[0].name) : 0;

	for (size_t i = 1; i < count && length; i++)
		for (size_t n = 0; n < length; n++)
			if (rows[i].name[n] != rows[0].name[n])
				length = n;
	return length;
}

/* In strcmp's order. */
static uint64_t eight_bytes(const char *text)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < 8; i++)
		bytes = bytes << 8 | (unsigned char)(*text ? *text++ : 0);
	return bytes;
}

static bool sort_rows(const struct tickmap_profile *profile,
		      struct tickmap_function *rows, size_t count)
{
	struct sorted_row *sorted = malloc((count + 1) * sizeof(*sorted));

	if (!sorted)
		return false;
	for (size_t i = 0; i < count; i++) {
		sorted[i].row = rows[i];
		sorted[i].name = tickmap_string(
			profile->strings,
			profile->frames.items[rows[i].frame].name, NULL);
	}
	size_t common = common_length(sorted, count);
	for (size_t i = 0; i < count; i++)
		sorted[i].begins = eight_bytes(sorted[i].name + common);
	qsort(sorted, count, sizeof(*sorted), compare_rows);
	for (size_t i = 0; i < count; i++)
		rows[i] = sorted[i].row;
	free(sorted);
	return true;
}

static void *zeros(size_t count, size_t size)
{
	return calloc(count ? count : 1, size);
}

static bool count_functions(struct work *w, const uint32_t *samples,
			    size_t sample_count)
{
	const struct tickmap_profile *profile = w->profile;
	size_t nodes = profile->nodes.count, frames = profile->frames.count;

	w->weights = tickmap_profile_weights(profile, samples, sample_count);
	w->self = zeros(nodes, sizeof(*w->self));
	w->group_of = zeros(frames, sizeof(*w->group_of));
	w->published = zeros(frames, sizeof(*w->published));
	w->rows = zeros(frames, sizeof(*w->rows));
	w->first_child = zeros(nodes, sizeof(*w->first_child));
	w->next_sibling = zeros(nodes, sizeof(*w->next_sibling));
	w->managed = zeros(nodes, sizeof(*w->managed));
	if (!w->weights || !w->self || !w->group_of || !w->published ||
	    !w->rows || !w->first_child || !w->next_sibling || !w->managed ||
	    !group_frames(w))
		return false;
	for (size_t n = nodes; n-- > 1;) {
		uint32_t parent = profile->nodes.items[n].parent;
		w->next_sibling[n] = w->first_child[parent];
		w->first_child[parent] = (uint32_t)n;
	}
	for (size_t i = 0;
	     i < (samples ? sample_count : profile->samples.count); i++)
		w->self[profile->samples.items[samples ? samples[i] : i]
				.node]++;
	walk(w);
	return true;
}

int tickmap_profile_functions(const struct tickmap_profile *profile,
			      const uint32_t *samples, size_t sample_count,
			      struct tickmap_functions *ret_functions)
{
	struct work w = { .profile = profile };
	bool good = count_functions(&w, samples, sample_count);

	free(w.weights);
	free(w.self);
	free(w.group_of);
	free(w.published);
	free(w.first_child);
	free(w.next_sibling);
	free(w.managed);
	*ret_functions = (struct tickmap_functions) { 0 };
	if (!good) {
		free(w.rows);
		return TICKMAP_E_NOMEM;
	}
	size_t kept = 0;
	for (size_t i = 0; i < w.group_count; i++) {
		if (w.rows[i].total)
			w.rows[kept++] = w.rows[i];
	}
	if (!sort_rows(profile, w.rows, kept)) {
		free(w.rows);
		return TICKMAP_E_NOMEM;
	}
	ret_functions->rows = w.rows;
	ret_functions->count = kept;
	return TICKMAP_OK;
}

void tickmap_functions_free(struct tickmap_functions *functions)
{
	free(functions->rows);
	*functions = (struct tickmap_functions) { 0 };
}

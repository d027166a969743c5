/* SPDX-License-Identifier: MIT */
#include "output/tree.h"

#include "base/table.h"

#include <string.h>

/* The longest cycle of calls that is seen as recursion: a Python call may have
 * a few of the interpreter's frames between two of its own. */
#define CYCLE_MAX 8

/*
 * Each node is there twice: as it is, for stacks without Python, and behind
 * all of them without the interpreter's frames, where 0 stands for the root.
 */
static void fill_view(const struct tickmap_profile *profile,
		      struct tickmap_profile *view, uint32_t *shown,
		      bool *in_python)
{
	const struct tickmap_frame *frames = profile->frames.items;
	struct tickmap_node *nodes = view->nodes.items;
	uint32_t count = (uint32_t)profile->nodes.count;

	for (uint32_t i = 1; i < count; i++) {
		struct tickmap_node n = profile->nodes.items[i];
		const struct tickmap_frame *frame = &frames[n.frame];

		nodes[i] = n;
		nodes[count + i].frame = n.frame;
		nodes[count + i].parent = shown[n.parent];
		shown[i] = frame->interpreter ? shown[n.parent] : count + i;
		in_python[i] = in_python[n.parent] ||
			       frame->kind == TICKMAP_FRAME_PYTHON;
	}
	for (size_t i = 0; i < profile->samples.count; i++) {
		struct tickmap_profile_sample *s = &view->samples.items[i];

		*s = profile->samples.items[i];
		if (in_python[s->node])
			s->node = shown[s->node];
	}
}

static bool has_interpreter(const struct tickmap_profile *profile)
{
	for (size_t i = 0; i < profile->frames.count; i++)
		if (profile->frames.items[i].interpreter)
			return true;
	return false;
}

int tickmap_folded_view(const struct tickmap_profile *profile,
			struct tickmap_profile *ret_view)
{
	struct tickmap_profile view = *profile;

	if (!has_interpreter(profile)) {
		/* No capacity: not ours to free. */
		view.nodes.capacity = view.samples.capacity = 0;
		*ret_view = view;
		return TICKMAP_OK;
	}
	size_t nodes = profile->nodes.count, samples = profile->samples.count;
	uint32_t *shown = calloc(nodes, sizeof(*shown));
	bool *in_python = calloc(nodes, sizeof(*in_python));
	int status = TICKMAP_E_NOMEM;

	view.nodes.items = NULL;
	if (nodes <= UINT32_MAX / 2)
		view.nodes.items = calloc(2 * nodes, sizeof(*view.nodes.items));
	view.nodes.count = view.nodes.capacity = 2 * nodes;
	view.samples.items = calloc(samples + 1, sizeof(*view.samples.items));
	view.samples.capacity = samples + 1;
	if (shown && in_python && view.nodes.items && view.samples.items) {
		fill_view(profile, &view, shown, in_python);
		*ret_view = view;
		status = TICKMAP_OK;
	} else {
		tickmap_folded_free(&view);
	}
	free(shown);
	free(in_python);
	return status;
}

void tickmap_folded_free(struct tickmap_profile *view)
{
	if (view->nodes.capacity)
		free(view->nodes.items);
	if (view->samples.capacity)
		free(view->samples.items);
	memset(view, 0, sizeof(*view));
}

struct build {
	const struct tickmap_profile *profile;
	const struct tickmap_tree_options *options;
	struct tickmap_tree *tree;
	struct tickmap_table children; /* parent << 32 | key -> node */
	uint32_t *of;		       /* by the profile's node: the tree's */
	uint32_t *laps;		       /* by the profile's node */
	uint64_t *self;		       /* by the profile's node */
	bool *used; /* by the profile's node: a sample is here or below */
};

/*
 * The node where a call of `key` from `node` goes when it closes a cycle of
 * `length` calls that the `length` calls before have made, too; 0 if not.
 * x, y, x + y: the second y is the first one again.
 */
static uint32_t cycle_start(const struct tickmap_tree *tree, uint32_t node,
			    uint32_t key, unsigned length)
{
	const struct tickmap_tree_node *nodes = tree->nodes.items;
	uint32_t back = node;

	for (unsigned i = 1; i < length && back; i++)
		back = nodes[back].parent;
	if (!back || nodes[back].key != key)
		return 0;

	uint32_t start = back;
	for (unsigned i = 1; i < length; i++) {
		back = nodes[back].parent;
		if (!back || nodes[back].key != nodes[node].key)
			return 0;
		node = nodes[node].parent;
	}
	return start;
}

/* Where the profile's node `i` goes if it is recursion; 0 if not. */
static uint32_t recursion(struct build *b, uint32_t i)
{
	const struct tickmap_node *nodes = b->profile->nodes.items;
	uint32_t at = b->of[nodes[i].parent];
	uint32_t key = b->options->keys[nodes[i].frame];

	for (unsigned length = 1; length <= CYCLE_MAX; length++) {
		uint32_t start = cycle_start(b->tree, at, key, length);
		uint32_t before = i;

		if (!start)
			continue;
		for (unsigned n = 0; n < length; n++)
			before = nodes[before].parent;
		b->laps[i] = b->laps[before] + 1;
		return start;
	}
	return 0;
}

static uint32_t child(struct build *b, uint32_t parent, uint32_t key)
{
	uint64_t *slot =
		tickmap_table_put(&b->children, (uint64_t)parent << 32 | key);
	struct tickmap_tree_node *node;

	if (!slot)
		return UINT32_MAX;
	if (*slot)
		return (uint32_t)*slot;
	node = tickmap_vec_push(&b->tree->nodes);
	if (!node)
		return UINT32_MAX;
	*node = (struct tickmap_tree_node) {
		.parent = parent,
		.key = key,
		.laps = 1,
	};
	*slot = b->tree->nodes.count - 1;
	return (uint32_t)*slot;
}

static bool add_nodes(struct build *b)
{
	const struct tickmap_node *nodes = b->profile->nodes.items;

	for (size_t i = 1; i < b->profile->nodes.count; i++) {
		uint32_t at = b->of[nodes[i].parent];
		uint32_t key = b->options->keys[nodes[i].frame];
		uint32_t to = 0;

		if (!b->used[i])
			continue;
		b->laps[i] = 1;
		if (b->options->light && at &&
		    b->options->light[b->tree->nodes.items[at].key]) {
			b->of[i] = at;
			b->tree->nodes.items[at].self += b->self[i];
			continue;
		}
		if (b->options->fold_recursion)
			to = recursion(b, (uint32_t)i);
		if (!to)
			to = child(b, at, key);
		if (to == UINT32_MAX)
			return false;
		struct tickmap_tree_node *node = &b->tree->nodes.items[to];

		b->of[i] = to;
		node->self += b->self[i];
		if (b->laps[i] > node->laps)
			node->laps = b->laps[i];
	}
	return true;
}

static void add_samples(struct build *b)
{
	const struct tickmap_tree_options *o = b->options;
	const struct tickmap_node *nodes = b->profile->nodes.items;
	size_t count = o->samples ? o->sample_count : b->profile->samples.count;

	for (size_t i = 0; i < count; i++) {
		size_t at = o->samples ? o->samples[i] : i;
		uint32_t node = b->profile->samples.items[at].node;

		b->self[node]++;
		b->used[node] = true;
	}
	for (size_t i = b->profile->nodes.count; i-- > 1;)
		b->used[nodes[i].parent] |= b->used[i];
}

struct order {
	const struct tickmap_tree_node *nodes;
	const struct tickmap_strings *strings;
};

static int compare(const void *a, const void *b, void *context)
{
	const struct order *order = context;
	const struct tickmap_tree_node *x = &order->nodes[*(const uint32_t *)a];
	const struct tickmap_tree_node *y = &order->nodes[*(const uint32_t *)b];

	if (x->parent != y->parent)
		return x->parent < y->parent ? -1 : 1;
	if (order->strings)
		return strcmp(tickmap_string(order->strings, x->key, NULL),
			      tickmap_string(order->strings, y->key, NULL));
	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	return (x->key > y->key) - (x->key < y->key);
}

/* Totals, and the lists of children in their order. */
static bool finish(struct build *b)
{
	struct tickmap_tree_node *nodes = b->tree->nodes.items;
	size_t count = b->tree->nodes.count;
	struct order order = { nodes, b->options->order };
	uint32_t *sorted = calloc(count, sizeof(*sorted));

	if (!sorted)
		return false;
	for (size_t i = count; i-- > 0;) {
		nodes[i].total += nodes[i].self;
		if (i)
			nodes[nodes[i].parent].total += nodes[i].total;
		sorted[i] = (uint32_t)i;
	}
	qsort_r(sorted + 1, count - 1, sizeof(*sorted), compare, &order);
	for (size_t i = count; i-- > 1;) {
		uint32_t node = sorted[i];

		nodes[node].next = nodes[nodes[node].parent].first;
		nodes[nodes[node].parent].first = node;
	}
	free(sorted);
	return true;
}

int tickmap_tree_build(const struct tickmap_profile *profile,
		       const struct tickmap_tree_options *options,
		       struct tickmap_tree *ret_tree)
{
	size_t count = profile->nodes.count + 1;
	struct tickmap_tree tree = { 0 };
	struct build b = {
		.profile = profile,
		.options = options,
		.tree = &tree,
		.of = calloc(count, sizeof(*b.of)),
		.laps = calloc(count, sizeof(*b.laps)),
		.self = calloc(count, sizeof(*b.self)),
		.used = calloc(count, sizeof(*b.used)),
	};
	struct tickmap_tree_node *root = tickmap_vec_push(&tree.nodes);
	bool good = b.of && b.laps && b.self && b.used && root;

	if (good) {
		*root = (struct tickmap_tree_node) { .laps = 1 };
		add_samples(&b);
		root->self = b.self[0];
		good = add_nodes(&b) && finish(&b);
	}
	free(b.of);
	free(b.laps);
	free(b.self);
	free(b.used);
	tickmap_table_free(&b.children);
	if (!good) {
		tickmap_tree_free(&tree);
		return TICKMAP_E_NOMEM;
	}
	*ret_tree = tree;
	return TICKMAP_OK;
}

void tickmap_tree_free(struct tickmap_tree *tree)
{
	tickmap_vec_free(&tree->nodes);
}

/* SPDX-License-Identifier: MIT */
/*
 * The call tree, top down, small enough to read: recursion is one line, a run
 * of calls that only pass on is shortened, indentation grows at branches only,
 * and the heaviest lines get the room there is.
 */
#include "output/names.h"
#include "output/report.h"
#include "output/tree.h"

#include <stdlib.h>
#include <string.h>

/* A call passes on if all but 2 % of its samples are in one callee. */
#define PASSES_ON 98
/* Calls that only pass on: so many are shown at both ends of a longer run. */
#define RUN_ENDS 2
#define RUN_MAX 6
/* Lines below 0.5 % say nothing. */
#define LEAST_PER_MILLE 5
/* Left-out callees of 5 % and more get a line. */
#define REST_PER_CENT 5
#define NUMBERS_WIDTH 18
#define NAME_LEAST 24

struct shape {
	bool shown;
	bool skipped;	/* inside a long run */
	bool only;	/* the one callee that is worth a line */
	bool run;	/* ... and its caller passes on to it */
	uint32_t depth; /* of branches */
	uint32_t after; /* so many skipped ones follow */
};

struct work {
	const struct tickmap_part *part;
	const struct tickmap_tree_node *nodes;
	size_t count;
	struct shape *shapes;
	uint32_t *order;
};

static bool worth_a_line(const struct work *w, uint32_t node)
{
	return !w->part->options->limit ||
	       w->nodes[node].total * 1000 >=
		       w->part->sample_count * LEAST_PER_MILLE;
}

static bool worth_a_rest(const struct work *w, uint64_t total)
{
	return total * 100 >= w->part->sample_count * REST_PER_CENT;
}

static bool is_only(const struct work *w, uint32_t parent, uint32_t node)
{
	const struct tickmap_tree_node *p = &w->nodes[parent];
	uint32_t second = w->nodes[node].next;

	return parent && p->first == node &&
	       (!second || !worth_a_line(w, second)) &&
	       !worth_a_rest(w, p->total - p->self - w->nodes[node].total);
}

static void find_runs(struct work *w)
{
	for (uint32_t i = 1; i < w->count; i++) {
		uint32_t parent = w->nodes[i].parent;
		struct shape *shape = &w->shapes[i];

		shape->only = is_only(w, parent, i);
		shape->run = shape->only &&
			     w->nodes[i].total * 100 >=
				     w->nodes[parent].total * PASSES_ON;
		shape->depth =
			w->shapes[parent].depth + (parent && !shape->only);
	}
}

static uint32_t next_in_run(const struct work *w, uint32_t node)
{
	uint32_t next = w->nodes[node].first;

	return next && w->shapes[next].run ? next : 0;
}

static void shorten_runs(struct work *w)
{
	for (uint32_t i = 1; i < w->count; i++) {
		uint32_t length = 0, at = 0;

		if (w->shapes[i].run)
			continue;
		for (uint32_t n = i; n; n = next_in_run(w, n))
			length++;
		if (length <= RUN_MAX)
			continue;
		for (uint32_t n = i; n; n = next_in_run(w, n), at++) {
			w->shapes[n].skipped =
				at >= RUN_ENDS && at < length - RUN_ENDS;
			if (at == RUN_ENDS - 1)
				w->shapes[n].after = length - 2 * RUN_ENDS;
		}
	}
}

static int heavier(const void *a, const void *b, void *context)
{
	const struct work *w = context;
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;

	if (w->nodes[i].total != w->nodes[j].total)
		return w->nodes[i].total > w->nodes[j].total ? -1 : 1;
	return (i > j) - (i < j);
}

/* A caller is at least as heavy as a callee, and its index is less: with a
 * node, all above it are chosen, too. */
static void choose(struct work *w)
{
	const struct tickmap_part *part = w->part;
	unsigned width = part->paint.width;
	size_t limit = part->options->limit, room = limit + limit / 3;
	size_t deepest = width > NUMBERS_WIDTH + NAME_LEAST + 3
				 ? (width - NUMBERS_WIDTH - NAME_LEAST) / 3
				 : 1;

	for (uint32_t i = 1; i < w->count; i++)
		w->order[i - 1] = i;
	qsort_r(w->order, w->count - 1, sizeof(*w->order), heavier, w);
	for (size_t i = 0; i + 1 < w->count; i++) {
		uint32_t node = w->order[i];
		struct shape *shape = &w->shapes[node];

		if (!worth_a_line(w, node))
			break;
		if (limit && !room && !shape->skipped)
			break;
		if (width && shape->depth > deepest)
			continue;
		shape->shown = true;
		room -= limit && !shape->skipped;
	}
}

static void print_numbers(const struct work *w, uint32_t node)
{
	const struct tickmap_tree_node *n = &w->nodes[node];
	size_t all = w->part->sample_count;
	FILE *out = w->part->paint.out;

	fprintf(out, "  %s  ", tickmap_paint_share(n->total, all));
	fprintf(out, "%6s  ", n->self ? tickmap_paint_share(n->self, all) : "");
}

static void print_prefix(const struct work *w, const struct tickmap_text *path)
{
	const struct tickmap_paint *paint = &w->part->paint;

	tickmap_paint_on(paint, TICKMAP_INK_DIM);
	fwrite(path->bytes.items, 1, path->bytes.count, paint->out);
	tickmap_paint_off(paint, TICKMAP_INK_DIM);
}

/* A function is not much without its library or file. */
static void print_where(const struct work *w, uint32_t frame, size_t room)
{
	const struct tickmap_profile *profile = w->part->profile;
	const struct tickmap_frame *f = &profile->frames.items[frame];
	const struct tickmap_paint *paint = &w->part->paint;
	const char *where = tickmap_report_where(profile, frame);
	size_t columns = tickmap_paint_columns(where, strlen(where));

	if ((f->kind > TICKMAP_FRAME_NATIVE && !f->file) || columns + 2 > room)
		return;
	tickmap_paint_on(paint, TICKMAP_INK_DIM);
	fputs("  ", paint->out);
	tickmap_paint_cut(paint, where, strlen(where), columns);
	tickmap_paint_off(paint, TICKMAP_INK_DIM);
}

static void print_line(const struct work *w, uint32_t node,
		       const struct tickmap_text *path)
{
	const struct tickmap_tree_node *n = &w->nodes[node];
	const struct tickmap_paint *paint = &w->part->paint;
	size_t room = SIZE_MAX, laps = 0;
	char recursion[32] = "";

	if (n->laps > 1)
		laps = (size_t)snprintf(recursion, sizeof(recursion),
					"  \xc3\x97%u deep", n->laps);
	laps -= laps > 0; /* the sign has two bytes */
	print_numbers(w, node);
	print_prefix(w, path);
	if (paint->width) {
		size_t used = NUMBERS_WIDTH + laps +
			      tickmap_paint_columns(path->bytes.items,
						    path->bytes.count);

		room = paint->width > used + 8 ? paint->width - used : 8;
	}
	room -= tickmap_report_name(w->part, n->key, room);
	tickmap_paint_text(paint, TICKMAP_INK_BOLD, recursion);
	print_where(w, n->key, room);
	putc('\n', paint->out);
}

static void print_note(const struct work *w, const struct tickmap_text *path,
		       const char *branch, const char *format, size_t count,
		       const char *share)
{
	const struct tickmap_paint *paint = &w->part->paint;

	tickmap_paint_on(paint, TICKMAP_INK_DIM);
	fprintf(paint->out, "  %6s  %6s  ", share, "");
	fwrite(path->bytes.items, 1, path->bytes.count, paint->out);
	fputs(branch, paint->out);
	fprintf(paint->out, format, count);
	putc('\n', paint->out);
	tickmap_paint_off(paint, TICKMAP_INK_DIM);
}

/* What a shown node calls that is not shown. */
static void rest_of(const struct work *w, uint32_t node, uint64_t *ret_total,
		    size_t *ret_count)
{
	*ret_total = *ret_count = 0;
	for (uint32_t c = w->nodes[node].first; c; c = w->nodes[c].next) {
		if (w->shapes[c].shown)
			continue;
		*ret_total += w->nodes[c].total;
		*ret_count += 1;
	}
}

static bool has_rest_line(const struct work *w, uint32_t node)
{
	uint64_t total;
	size_t count;

	rest_of(w, node, &total, &count);
	return worth_a_rest(w, total);
}

static bool is_last(const struct work *w, uint32_t node)
{
	uint32_t next = w->nodes[node].next;

	while (next && !w->shapes[next].shown)
		next = w->nodes[next].next;
	return !next && !has_rest_line(w, w->nodes[node].parent);
}

static uint32_t first_shown(const struct work *w, uint32_t node)
{
	while (node && !w->shapes[node].shown)
		node = w->nodes[node].next;
	return node;
}

/* Prints a node and leaves in `path` what stands before its callees. */
static void enter(const struct work *w, uint32_t node,
		  struct tickmap_text *path)
{
	const struct shape *shape = &w->shapes[node];
	size_t length = path->bytes.count;
	bool branch = w->nodes[node].parent && !shape->only;
	bool last = branch && is_last(w, node);

	if (shape->skipped)
		return;
	/* Another thread's start, say: not called by what stands above. */
	if (!w->nodes[node].parent && first_shown(w, w->nodes[0].first) != node)
		putc('\n', w->part->paint.out);
	if (branch)
		tickmap_text_add(path, last ? "└─ " : "├─ ", strlen("└─ "));
	print_line(w, node, path);
	path->bytes.count = length;
	if (branch)
		tickmap_text_add(path, last ? "   " : "│  ",
				 strlen(last ? "   " : "│  "));
	if (shape->after)
		print_note(w, path, "", "⋮  %zu calls that only pass on",
			   shape->after, "");
}

static void leave(const struct work *w, uint32_t node,
		  const struct tickmap_text *path)
{
	uint64_t total;
	size_t count;

	if (!has_rest_line(w, node))
		return;
	rest_of(w, node, &total, &count);
	if (!node && first_shown(w, w->nodes[0].first))
		putc('\n', w->part->paint.out);
	print_note(w, path, node ? "└─ " : "",
		   count == 1 ? "%zu lighter call" : "%zu lighter calls", count,
		   tickmap_paint_share(total, w->part->sample_count));
}

static bool print_nodes(const struct work *w)
{
	TICKMAP_VEC(size_t) lengths = { 0 };
	struct tickmap_text path = { 0 };
	uint32_t at = 0;

	for (;;) {
		uint32_t next = first_shown(w, w->nodes[at].first);

		while (!next) {
			leave(w, at, &path);
			if (!at)
				break;
			path.bytes.count = lengths.items[--lengths.count];
			next = first_shown(w, w->nodes[at].next);
			at = w->nodes[at].parent;
		}
		size_t *length = next ? tickmap_vec_push(&lengths) : NULL;

		if (!length)
			break;
		*length = path.bytes.count;
		at = next;
		enter(w, at, &path);
	}
	bool whole = lengths.count == 0 && !path.failed;

	tickmap_vec_free(&lengths);
	tickmap_vec_free(&path.bytes);
	return whole;
}

static bool print_tree(struct work *w)
{
	const struct tickmap_paint *paint = &w->part->paint;

	w->shapes = calloc(w->count, sizeof(*w->shapes));
	w->order = calloc(w->count, sizeof(*w->order));
	if (!w->shapes || !w->order)
		return false;
	find_runs(w);
	if (w->part->options->limit)
		shorten_runs(w);
	choose(w);
	tickmap_report_title(paint, "CALL TREE", "the heaviest calls first");
	tickmap_paint_text(paint, TICKMAP_INK_DIM,
			   "   total    self  function\n");
	return print_nodes(w);
}

bool *tickmap_report_light(const struct tickmap_part *part,
			   const struct tickmap_functions *functions)
{
	bool *light = calloc(part->stacks->frames.count + 1, sizeof(*light));

	for (size_t i = 0; light && i < functions->count; i++) {
		const struct tickmap_function *row = &functions->rows[i];
		light[part->functions[row->frame]] =
			row->total * 1000 <
			part->sample_count * LEAST_PER_MILLE;
	}
	return light;
}

int tickmap_report_tree(const struct tickmap_part *part, const bool *light)
{
	struct tickmap_tree_options options = {
		.keys = part->functions,
		.samples = part->samples,
		.sample_count = part->sample_count,
		.light = light,
		.fold_recursion = true,
	};
	struct tickmap_tree tree;
	int status = tickmap_tree_build(part->stacks, &options, &tree);

	if (status < 0)
		return status;
	struct work w = {
		.part = part,
		.nodes = tree.nodes.items,
		.count = tree.nodes.count,
	};

	if (!print_tree(&w))
		status = TICKMAP_E_NOMEM;
	free(w.shapes);
	free(w.order);
	tickmap_tree_free(&tree);
	return status;
}

/* SPDX-License-Identifier: MIT */
/* The table of functions. */
#include "output/report.h"

#include <stdlib.h>
#include <string.h>

/* Columns of "  12.3%". */
#define SHARE_WIDTH 8
#define WHERE_MAX 22
#define WHERE_LEAST 8
#define NAME_LEAST 20

/* What makes a row worth a line: a library function that uses the CPU is not
 * hidden because Python functions come first. */
static uint64_t weight(const struct tickmap_function *row)
{
	return row->managed_self > row->self ? row->managed_self : row->self;
}

static int compare_weights(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x < y) - (x > y);
}

/* The weight that the last row within the limit has; rows of this weight fill
 * what is left, in the table's order. */
static bool threshold(const struct tickmap_functions *functions, size_t limit,
		      uint64_t *ret_weight, size_t *ret_equal)
{
	uint64_t *weights = calloc(functions->count + 1, sizeof(*weights));

	if (!weights)
		return false;
	for (size_t i = 0; i < functions->count; i++)
		weights[i] = weight(&functions->rows[i]);
	qsort(weights, functions->count, sizeof(*weights), compare_weights);
	*ret_weight = weights[limit - 1];
	*ret_equal = 0;
	for (size_t i = 0; i < limit; i++)
		*ret_equal += weights[i] == *ret_weight;
	free(weights);
	return true;
}

/* Drops all rows but those to show; their order stays. */
static bool choose(struct tickmap_functions *functions, size_t limit,
		   uint64_t *ret_rest)
{
	uint64_t least, rest = 0;
	size_t equal, kept = 0;

	if (limit && functions->count > limit) {
		if (!threshold(functions, limit, &least, &equal))
			return false;
		for (size_t i = 0; i < functions->count; i++) {
			struct tickmap_function *row = &functions->rows[i];

			if (weight(row) > least ||
			    (weight(row) == least && equal > 0)) {
				equal -= weight(row) == least;
				functions->rows[kept++] = *row;
			} else {
				rest += row->self;
			}
		}
		functions->count = kept;
	}
	*ret_rest = rest;
	return true;
}

/* What names have to share with where they are. */
static size_t text_width(const struct tickmap_part *part)
{
	size_t shares = 1 + part->managed + part->options->children;
	size_t used = shares * SHARE_WIDTH + 4, width = part->paint.width;

	if (!width)
		return SIZE_MAX;
	return width > used ? width - used : 0;
}

static size_t where_width(const struct tickmap_part *part,
			  const struct tickmap_functions *functions)
{
	size_t width = 0, room = text_width(part), most = WHERE_MAX;

	for (size_t i = 0; i < functions->count; i++) {
		const char *where = tickmap_report_where(
			part->profile, functions->rows[i].frame);
		size_t columns = tickmap_paint_columns(where, strlen(where));

		if (columns > width)
			width = columns;
	}
	if (room < WHERE_MAX + NAME_LEAST)
		most = room > WHERE_LEAST + NAME_LEAST ? room - NAME_LEAST
						       : WHERE_LEAST;
	return width < most ? width : most;
}

static void print_row(const struct tickmap_part *part,
		      const struct tickmap_function *row, size_t name_width,
		      size_t where_columns)
{
	const struct tickmap_paint *paint = &part->paint;
	const char *where = tickmap_report_where(part->profile, row->frame);
	size_t all = part->sample_count;

	if (part->managed)
		fprintf(paint->out, "  %s",
			tickmap_paint_share(row->managed_self, all));
	fprintf(paint->out, "  %s", tickmap_paint_share(row->self, all));
	if (part->options->children)
		fprintf(paint->out, "  %s",
			tickmap_paint_share(row->total, all));
	fputs("  ", paint->out);

	size_t columns = tickmap_report_name(part, row->frame, name_width);

	fprintf(paint->out, "%*s",
		paint->width ? (int)(name_width - columns) + 2 : 2, "");
	tickmap_paint_on(paint, TICKMAP_INK_DIM);
	tickmap_paint_cut(paint, where, strlen(where), where_columns);
	tickmap_paint_off(paint, TICKMAP_INK_DIM);
	putc('\n', paint->out);
}

static void print_head(const struct tickmap_part *part)
{
	const struct tickmap_paint *paint = &part->paint;
	bool children = part->options->children;

	if (part->managed)
		tickmap_report_title(
			paint, "FUNCTIONS",
			children ? "managed: the innermost Python or JIT "
				   "function; self: what is on the CPU; total: "
				   "anywhere in the stack"
				 : "managed: the innermost Python or JIT "
				   "function; self: what is on the CPU");
	else
		tickmap_report_title(paint, "FUNCTIONS",
				     children ? "self: what is on the CPU; "
						"total: anywhere in the stack"
					      : "self: what is on the CPU");
	tickmap_paint_on(paint, TICKMAP_INK_DIM);
	fprintf(paint->out, "%s    self%s  function\n",
		part->managed ? " managed" : "", children ? "   total" : "");
	tickmap_paint_off(paint, TICKMAP_INK_DIM);
}

int tickmap_report_functions(const struct tickmap_part *part,
			     struct tickmap_functions *functions)
{
	const struct tickmap_paint *paint = &part->paint;
	size_t all = functions->count, name_width = SIZE_MAX;
	uint64_t rest;

	if (!choose(functions, part->options->limit, &rest))
		return TICKMAP_E_NOMEM;
	size_t where = where_width(part, functions);

	if (paint->width)
		name_width =
			text_width(part) > where ? text_width(part) - where : 0;
	print_head(part);
	for (size_t i = 0; i < functions->count; i++)
		print_row(part, &functions->rows[i], name_width, where);
	if (functions->count < all) {
		tickmap_paint_on(paint, TICKMAP_INK_DIM);
		fprintf(paint->out,
			"  %s more functions, %s of self; --limit 0 shows "
			"them\n",
			tickmap_paint_count(all - functions->count),
			tickmap_paint_part(rest, part->sample_count));
		tickmap_paint_off(paint, TICKMAP_INK_DIM);
	}
	return TICKMAP_OK;
}

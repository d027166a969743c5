/* SPDX-License-Identifier: MIT */
/*
 * Functions without code. perf 6.1 never ends over a mapping of no bytes that
 * lies within another one, so they get a byte. If it is other code's, they come
 * first of all: the other code then takes it back.
 */
#include "codemap/repair.h"

#include <stdlib.h>

struct range {
	uint64_t begin, last; /* later: the greatest `last` up to here */
};

struct ranges {
	TICKMAP_VEC(struct range) all;
};

static int by_begin(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return (x->begin > y->begin) - (x->begin < y->begin);
}

static bool collect(const struct tickmap_repair *repair, struct ranges *ranges)
{
	for (size_t i = 0; i < repair->items.count; i++) {
		const struct tickmap_repair_item *item =
			&repair->items.items[i];
		struct range *range =
			item->size ? tickmap_vec_push(&ranges->all) : NULL;
		if (item->size && !range)
			return false;
		if (range)
			*range = (struct range) { item->avma,
						  item->avma + item->size - 1 };
	}
	if (ranges->all.count)
		qsort(ranges->all.items, ranges->all.count,
		      sizeof(*ranges->all.items), by_begin);
	for (size_t i = 1; i < ranges->all.count; i++)
		if (ranges->all.items[i].last < ranges->all.items[i - 1].last)
			ranges->all.items[i].last =
				ranges->all.items[i - 1].last;
	return true;
}

static bool is_covered(const struct ranges *ranges, uint64_t avma)
{
	size_t low = 0, high = ranges->all.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (ranges->all.items[middle].begin <= avma)
			low = middle + 1;
		else
			high = middle;
	}
	return low && ranges->all.items[low - 1].last >= avma;
}

bool tickmap_repair_empty(struct tickmap_repair *repair)
{
	struct ranges ranges = { 0 };
	bool any = false, good = true;
	uint64_t first = UINT64_MAX;

	for (size_t i = 0; i < repair->items.count; i++)
		any |= !repair->items.items[i].size;
	for (size_t i = 0; any && i < repair->items.count; i++)
		if (repair->items.items[i].when < first)
			first = repair->items.items[i].when;
	if (any)
		good = collect(repair, &ranges);
	for (size_t i = 0; any && good && i < repair->items.count; i++) {
		struct tickmap_repair_item *item = &repair->items.items[i];
		if (item->size)
			continue;
		repair->counts.empty++;
		item->dropped = item->move;
		item->size = 1;
		if (!is_covered(&ranges, item->avma))
			continue;
		item->when = first;
		item->order = 0;
	}
	tickmap_vec_free(&ranges.all);
	return good;
}

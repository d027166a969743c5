/* SPDX-License-Identifier: MIT */
#include "timeline/history.h"

#include <string.h>

static void drop_index(struct tickmap_history *history)
{
	tickmap_vec_free(&history->bounds);
	free(history->nodes);
	free(history->since);
	free(history->list);
	history->nodes = history->list = NULL;
	history->since = NULL;
	history->leaves = 0;
}

void tickmap_history_free(struct tickmap_history *history)
{
	drop_index(history);
	tickmap_vec_free(&history->spans);
}

bool tickmap_history_add(struct tickmap_history *history,
			 struct tickmap_span span)
{
	struct tickmap_span *place;

	if (span.since >= span.until)
		return true;
	if (history->spans.count >= UINT32_MAX / 4)
		return false;
	place = tickmap_vec_push(&history->spans);
	if (place)
		*place = span;
	return place != NULL;
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

static int compare_since(const void *a, const void *b)
{
	uint64_t x = ((const struct tickmap_span *)a)->since;
	uint64_t y = ((const struct tickmap_span *)b)->since;
	return (x > y) - (x < y);
}

static bool find_bounds(struct tickmap_history *history)
{
	size_t count = 0;

	if (!tickmap_vec_reserve(&history->bounds, 2 * history->spans.count))
		return false;
	for (size_t i = 0; i < history->spans.count; i++) {
		const struct tickmap_span *span = &history->spans.items[i];
		history->bounds.items[count++] = span->first;
		if (span->last != UINT64_MAX)
			history->bounds.items[count++] = span->last + 1;
	}
	qsort(history->bounds.items, count, sizeof(uint64_t), compare_u64);
	for (size_t i = 0; i < count; i++) {
		uint64_t bound = history->bounds.items[i];
		if (!i || bound != history->bounds.items[i - 1])
			history->bounds.items[history->bounds.count++] = bound;
	}
	return true;
}

/* How many bounds lie at or before the address. */
static size_t bounds_up_to(const struct tickmap_history *history, uint64_t avma)
{
	const uint64_t *bounds = history->bounds.items;
	size_t low = 0, high = history->bounds.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (bounds[middle] <= avma)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

typedef void (*visit_node)(struct tickmap_history *history, uint32_t node,
			   uint32_t span);

/* The fewest nodes that together cover the span's addresses. */
static void visit_span(struct tickmap_history *history, uint32_t i,
		       visit_node visit)
{
	const struct tickmap_span *span = &history->spans.items[i];
	size_t low = bounds_up_to(history, span->first) - 1 + history->leaves;
	size_t high = bounds_up_to(history, span->last) + history->leaves;

	for (; low < high; low /= 2, high /= 2) {
		if (low & 1)
			visit(history, (uint32_t)low++, i);
		if (high & 1)
			visit(history, (uint32_t)--high, i);
	}
}

static void count_one(struct tickmap_history *history, uint32_t node,
		      uint32_t span)
{
	(void)span;
	history->nodes[node + 2]++;
}

/* nodes[node + 1] runs from the list's begin to its end. */
static void put_one(struct tickmap_history *history, uint32_t node,
		    uint32_t span)
{
	uint32_t place = history->nodes[node + 1]++;

	history->list[place] = span;
	history->since[place] = history->spans.items[span].since;
}

static bool fill_nodes(struct tickmap_history *history)
{
	uint32_t count = (uint32_t)history->spans.count;
	uint64_t total = 0;

	for (uint32_t i = 0; i < count; i++)
		visit_span(history, i, count_one);
	for (size_t node = 2; node < 2 * (size_t)history->leaves + 2; node++) {
		total += history->nodes[node];
		if (total > UINT32_MAX)
			return false;
		history->nodes[node] = (uint32_t)total;
	}
	history->list = malloc(total * sizeof(*history->list));
	history->since = malloc(total * sizeof(*history->since));
	if (!history->list || !history->since)
		return false;
	for (uint32_t i = 0; i < count; i++)
		visit_span(history, i, put_one);
	return true;
}

bool tickmap_history_build(struct tickmap_history *history)
{
	drop_index(history);
	if (!history->spans.count)
		return true;
	if (!find_bounds(history))
		return false;
	qsort(history->spans.items, history->spans.count,
	      sizeof(history->spans.items[0]), compare_since);
	for (history->leaves = 1; history->leaves < history->bounds.count;)
		history->leaves *= 2;
	history->nodes = calloc(2 * (size_t)history->leaves + 2,
				sizeof(*history->nodes));
	if (!history->nodes || !fill_nodes(history)) {
		drop_index(history);
		return false;
	}
	return true;
}

/* The leaf of an address; 0: no span holds it. */
static uint32_t leaf_of(const struct tickmap_history *history, uint64_t avma)
{
	size_t bound = history->leaves ? bounds_up_to(history, avma) : 0;
	return bound ? (uint32_t)(bound - 1) + history->leaves : 0;
}

/* In a node's list: the place behind the last span since `when` or earlier. */
static uint32_t list_up_to(const struct tickmap_history *history, uint32_t node,
			   uint64_t when)
{
	uint32_t low = history->nodes[node], high = history->nodes[node + 1];

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (history->since[middle] <= when)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool lives(const struct tickmap_span *span, uint64_t when)
{
	return when < span->until || span->until == UINT64_MAX;
}

const struct tickmap_span *
tickmap_history_at(const struct tickmap_history *history, uint64_t avma,
		   uint64_t when)
{
	for (uint32_t node = leaf_of(history, avma); node; node /= 2) {
		uint32_t place = list_up_to(history, node, when);
		const struct tickmap_span *span;
		if (place == history->nodes[node])
			continue;
		span = &history->spans.items[history->list[place - 1]];
		if (lives(span, when))
			return span;
	}
	return NULL;
}

const struct tickmap_span *
tickmap_history_before(const struct tickmap_history *history, uint64_t avma,
		       uint64_t when)
{
	const struct tickmap_span *best = NULL;

	for (uint32_t node = leaf_of(history, avma); node; node /= 2) {
		uint32_t begin = history->nodes[node];
		uint32_t place = list_up_to(history, node, when);
		const struct tickmap_span *span;
		if (place > begin &&
		    lives(&history->spans.items[history->list[place - 1]],
			  when))
			place--;
		if (place == begin)
			continue;
		span = &history->spans.items[history->list[place - 1]];
		if (!best || span->until > best->until)
			best = span;
	}
	return best;
}

const struct tickmap_span *
tickmap_history_after(const struct tickmap_history *history, uint64_t avma,
		      uint64_t when)
{
	const struct tickmap_span *best = NULL;

	for (uint32_t node = leaf_of(history, avma); node; node /= 2) {
		uint32_t place = list_up_to(history, node, when);
		if (place == history->nodes[node + 1])
			continue;
		if (!best || history->since[place] < best->since)
			best = &history->spans.items[history->list[place]];
	}
	return best;
}

uint64_t tickmap_history_reach(const struct tickmap_history *history,
			       uint64_t avma)
{
	size_t bound = bounds_up_to(history, avma);
	return bound < history->bounds.count ? history->bounds.items[bound] - 1
					     : UINT64_MAX;
}

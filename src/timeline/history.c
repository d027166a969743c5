/* SPDX-License-Identifier: MIT */
#include "timeline/history.h"

#include "platform/platform.h"

#include <string.h>

static void drop_index(struct tickmap_history *history)
{
	tickmap_vec_free(&history->bounds);
	free(history->nodes);
	free(history->levels);
	free(history->list);
	for (unsigned level = 1; level < history->height; level++)
		free(history->steps[level]);
	history->nodes = history->levels = NULL;
	history->list = NULL;
	history->leaves = 0;
	history->height = 0;
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

/* Least significant byte first; bytes that are the same everywhere cost
 * nothing, and of addresses most are. False: out of memory. */
static bool sort_u64(uint64_t *values, size_t count)
{
	uint64_t *from = values, *to = malloc(count * sizeof(*to));
	uint64_t *spare = to;
	uint64_t differ = 0;

	if (!to)
		return false;
	for (size_t i = 0; i < count; i++)
		differ |= values[i] ^ values[0];
	for (unsigned shift = 0; shift < 64; shift += 8) {
		size_t places[257] = { 0 };
		if (!(differ >> shift & 0xff))
			continue;
		for (size_t i = 0; i < count; i++)
			places[(from[i] >> shift & 0xff) + 1]++;
		for (unsigned b = 1; b < 256; b++)
			places[b] += places[b - 1];
		for (size_t i = 0; i < count; i++)
			to[places[from[i] >> shift & 0xff]++] = from[i];
		uint64_t *swap = from;
		from = to;
		to = swap;
	}
	if (from != values)
		memcpy(values, from, count * sizeof(*values));
	free(spare);
	return true;
}

/* By number, which is by `since`: the sweep numbers in the order of time. */
static bool sort_spans(struct tickmap_history *history)
{
	size_t count = history->spans.count;
	struct tickmap_span *sorted = malloc(count * sizeof(*sorted));
	uint32_t numbers = 0;
	uint32_t *places;

	for (size_t i = 0; i < count; i++)
		if (history->spans.items[i].number >= numbers)
			numbers = history->spans.items[i].number + 1;
	places = calloc((size_t)numbers + 1, sizeof(*places));
	if (!sorted || !places) {
		free(sorted);
		free(places);
		return false;
	}
	for (size_t i = 0; i < count; i++)
		places[history->spans.items[i].number + 1]++;
	for (uint32_t n = 1; n < numbers; n++)
		places[n] += places[n - 1];
	for (size_t i = 0; i < count; i++) {
		const struct tickmap_span *span = &history->spans.items[i];
		sorted[places[span->number]++] = *span;
	}
	free(places);
	free(history->spans.items);
	history->spans.items = sorted;
	history->spans.capacity = count;
	return true;
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
	if (!sort_u64(history->bounds.items, count))
		return false;
	for (size_t i = 0; i < count; i++) {
		uint64_t bound = history->bounds.items[i];
		if (!i || bound != history->bounds.items[i - 1])
			history->bounds.items[history->bounds.count++] = bound;
	}
	return true;
}

enum { WIDTH = 16 }; /* two lines of the cache */

static bool build_steps(struct tickmap_history *history)
{
	history->steps[0] = history->bounds.items;
	history->step_counts[0] = history->bounds.count;
	history->height = 1;
	while (history->step_counts[history->height - 1] > WIDTH) {
		unsigned level = history->height;
		size_t below = history->step_counts[level - 1];
		size_t count = (below + WIDTH - 1) / WIDTH;
		uint64_t *steps = malloc(count * sizeof(*steps));
		/* 16^8 bounds are more than there can be. */
		if (!steps || level == TICKMAP_HISTORY_HEIGHT - 1) {
			free(steps);
			return false;
		}
		for (size_t i = 0; i < count; i++)
			steps[i] = history->steps[level - 1][i * WIDTH];
		history->steps[level] = steps;
		history->step_counts[level] = count;
		history->height++;
	}
	return true;
}

/* How many bounds lie at or before the address. From the top down: of each
 * node's keys, all at or before it are counted, without a branch. */
static size_t bounds_up_to(const struct tickmap_history *history, uint64_t avma)
{
	size_t at = 0; /* the node at this level */

	for (unsigned level = history->height; level-- > 0;) {
		const uint64_t *keys = history->steps[level] + at * WIDTH;
		size_t left = history->step_counts[level] - at * WIDTH;
		size_t below = 0;
		if (left >= WIDTH)
			for (unsigned i = 0; i < WIDTH; i++)
				below += keys[i] <= avma;
		else
			for (unsigned i = 0; i < left; i++)
				below += keys[i] <= avma;
		if (!level)
			return at * WIDTH + below;
		if (!below)
			return 0;
		at = at * WIDTH + below - 1;
		/* The lists of the bounds that are looked at next. */
		if (level == 1 && history->nodes)
			__builtin_prefetch(
				&history->nodes[history->leaves + at * WIDTH]);
	}
	return 0;
}

/* The leaves of a span's addresses: from low up to, not with, high. */
struct leaves {
	uint32_t low, high;
};

/*
 * The fewest nodes that together cover the leaves. nodes[node + 2] counts; once
 * summed up, nodes[node + 1] runs from the begin of the list to its end.
 */
static void count_nodes(struct tickmap_history *history, struct leaves span,
			bool flat)
{
	for (; flat && span.low < span.high; span.low++)
		history->nodes[span.low + 2]++;
	for (; span.low < span.high; span.low /= 2, span.high /= 2) {
		if (span.low & 1)
			history->nodes[span.low++ + 2]++;
		if (span.high & 1)
			history->nodes[--span.high + 2]++;
	}
}

static void put(struct tickmap_history *history, uint32_t node, uint32_t span)
{
	uint32_t place = history->nodes[node + 1]++;

	history->list[place] = (struct tickmap_piece) {
		.since = history->spans.items[span].since,
		.until = history->spans.items[span].until,
		.number = history->spans.items[span].number,
	};
}

static void put_in_nodes(struct tickmap_history *history, struct leaves span,
			 uint32_t number, bool flat)
{
	for (; flat && span.low < span.high; span.low++)
		put(history, span.low, number);
	for (; span.low < span.high; span.low /= 2, span.high /= 2) {
		if (span.low & 1)
			put(history, span.low++, number);
		if (span.high & 1)
			put(history, --span.high, number);
	}
}

/* From the root down, each node's bit joins those above it. */
static bool find_levels(struct tickmap_history *history)
{
	uint32_t count = 2 * history->leaves;
	uint32_t *levels = calloc(count, sizeof(*levels));

	if (!levels)
		return false;
	for (uint32_t node = 1; node < count; node++)
		levels[node] =
			levels[node / 2] << 1 |
			(history->nodes[node + 1] > history->nodes[node]);
	memmove(levels, levels + history->leaves,
		history->leaves * sizeof(*levels));
	history->levels = levels;
	return true;
}

/* Lists of the leaves alone may be so many times as long as there are spans. */
enum { FLAT = 8 };

static bool find_leaves(struct tickmap_history *history, struct leaves *leaves)
{
	uint64_t covered = 0;

	for (size_t i = 0; i < history->spans.count; i++) {
		const struct tickmap_span *span = &history->spans.items[i];
		leaves[i].low = (uint32_t)bounds_up_to(history, span->first) -
				1 + history->leaves;
		leaves[i].high = (uint32_t)bounds_up_to(history, span->last) +
				 history->leaves;
		covered += leaves[i].high - leaves[i].low;
	}
	return covered <= FLAT * (uint64_t)history->spans.count;
}

static bool fill_nodes(struct tickmap_history *history, struct leaves *leaves)
{
	uint32_t count = (uint32_t)history->spans.count;
	bool flat = find_leaves(history, leaves);
	uint64_t total = 0;

	for (uint32_t i = 0; i < count; i++)
		count_nodes(history, leaves[i], flat);
	for (size_t node = 2; node < 2 * (size_t)history->leaves + 2; node++) {
		total += history->nodes[node];
		if (total > UINT32_MAX)
			return false;
		history->nodes[node] = (uint32_t)total;
	}
	history->list =
		tickmap_platform_large_block(total * sizeof(*history->list));
	if (!history->list)
		return false;
	for (uint32_t i = 0; i < count; i++)
		put_in_nodes(history, leaves[i], i, flat);
	return flat || find_levels(history);
}

static bool build(struct tickmap_history *history)
{
	struct leaves *leaves;
	bool ok;

	if (!sort_spans(history) || !find_bounds(history) ||
	    !build_steps(history))
		return false;
	for (history->leaves = 1; history->leaves < history->bounds.count;)
		history->leaves *= 2;
	size_t room =
		(2 * (size_t)history->leaves + 2) * sizeof(*history->nodes);
	history->nodes = tickmap_platform_large_block(room);
	if (history->nodes)
		memset(history->nodes, 0, room);
	leaves = malloc(history->spans.count * sizeof(*leaves));
	ok = history->nodes && leaves && fill_nodes(history, leaves);
	free(leaves);
	/* Questions go to the lists. */
	tickmap_vec_free(&history->spans);
	return ok;
}

bool tickmap_history_build(struct tickmap_history *history)
{
	drop_index(history);
	if (!history->spans.count || build(history))
		return true;
	drop_index(history);
	return false;
}

/* The nodes with a list from an address up to the root. */
struct path {
	uint32_t leaf;
	uint32_t levels; /* not visited yet */
};

static struct path path_of(const struct tickmap_history *history, uint64_t avma)
{
	size_t bound = history->leaves ? bounds_up_to(history, avma) : 0;
	struct path path = { .levels = 0 };

	if (bound) {
		path.leaf = (uint32_t)(bound - 1) + history->leaves;
		path.levels = history->levels ? history->levels[bound - 1] : 1;
	}
	return path;
}

/* The next node; 0: there is none. */
static uint32_t next_node(struct path *path)
{
	unsigned level;

	if (!path->levels)
		return 0;
	level = (unsigned)__builtin_ctz(path->levels);
	path->levels &= path->levels - 1;
	return path->leaf >> level;
}

/* In a node's list: the place behind the last span since `when` or earlier. */
static uint32_t list_up_to(const struct tickmap_history *history, uint32_t node,
			   uint64_t when)
{
	enum { LINES_MAX = 8, LINE = 64 };
	uint32_t low = history->nodes[node], high = history->nodes[node + 1];
	const char *line = (const char *)&history->list[low];

	/* All that a short list has at once, and not one after the other. */
	for (unsigned i = 0;
	     i < LINES_MAX && line < (const char *)&history->list[high];
	     i++, line += LINE)
		__builtin_prefetch(line);
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (history->list[middle].since <= when)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool lives(const struct tickmap_piece *span, uint64_t when)
{
	return when < span->until || span->until == UINT64_MAX;
}

const struct tickmap_piece *
tickmap_history_at(const struct tickmap_history *history, uint64_t avma,
		   uint64_t when)
{
	struct path path = path_of(history, avma);

	for (uint32_t node; (node = next_node(&path));) {
		uint32_t place = list_up_to(history, node, when);
		const struct tickmap_piece *span;
		if (place == history->nodes[node])
			continue;
		span = &history->list[place - 1];
		if (lives(span, when))
			return span;
	}
	return NULL;
}

const struct tickmap_piece *
tickmap_history_before(const struct tickmap_history *history, uint64_t avma,
		       uint64_t when)
{
	const struct tickmap_piece *best = NULL;
	struct path path = path_of(history, avma);

	for (uint32_t node; (node = next_node(&path));) {
		uint32_t begin = history->nodes[node];
		uint32_t place = list_up_to(history, node, when);
		const struct tickmap_piece *span;
		if (place > begin && lives(&history->list[place - 1], when))
			place--;
		if (place == begin)
			continue;
		span = &history->list[place - 1];
		if (!best || span->until > best->until)
			best = span;
	}
	return best;
}

const struct tickmap_piece *
tickmap_history_after(const struct tickmap_history *history, uint64_t avma,
		      uint64_t when)
{
	const struct tickmap_piece *best = NULL;
	struct path path = path_of(history, avma);

	for (uint32_t node; (node = next_node(&path));) {
		uint32_t place = list_up_to(history, node, when);
		if (place == history->nodes[node + 1])
			continue;
		if (!best || history->list[place].since < best->since)
			best = &history->list[place];
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

/* SPDX-License-Identifier: MIT */
#include "timeline/history.h"

#include "base/sort.h"
#include "platform/platform.h"

#include <string.h>

static void drop_index(struct tickmap_history *history)
{
	free(history->nodes);
	free(history->levels);
	free(history->words);
	for (unsigned level = 0; level < history->height; level++)
		free(history->steps[level]);
	history->nodes = history->levels = history->words = NULL;
	history->leaves = 0;
	history->height = 0;
}

void tickmap_history_free(struct tickmap_history *history)
{
	drop_index(history);
	tickmap_vec_free(&history->spans);
}

/* A time and a number, or none: from then on. Lists are many and are read here
 * and there: three words, not four. */
enum { ENTRY = 3, NO_NUMBER = UINT32_MAX };

bool tickmap_history_add(struct tickmap_history *history,
			 struct tickmap_span span)
{
	struct tickmap_span *place;

	if (span.since >= span.until)
		return true;
	if (history->spans.count >= UINT32_MAX / 4 || span.number == NO_NUMBER)
		return false;
	place = tickmap_vec_push(&history->spans);
	if (place)
		*place = span;
	return place != NULL;
}

/* Each to its place, with no second copy of them all. */
static void permute(struct tickmap_span *spans, uint32_t *places, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		while (places[i] != i) {
			uint32_t place = places[i];
			struct tickmap_span span = spans[place];

			spans[place] = spans[i];
			spans[i] = span;
			places[i] = places[place];
			places[place] = place;
		}
	}
}

/* By number, which is by `since`: the sweep numbers in the order of time. */
static bool sort_spans(struct tickmap_history *history)
{
	size_t count = history->spans.count;
	const struct tickmap_span *spans = history->spans.items;
	uint32_t *places = malloc(count * sizeof(*places));
	uint32_t *begins;
	uint32_t numbers = 0;

	for (size_t i = 0; i < count; i++)
		if (spans[i].number >= numbers)
			numbers = spans[i].number + 1;
	begins = calloc((size_t)numbers + 1, sizeof(*begins));
	if (places && begins) {
		for (size_t i = 0; i < count; i++)
			begins[spans[i].number + 1]++;
		for (uint32_t n = 1; n < numbers; n++)
			begins[n] += begins[n - 1];
		for (size_t i = 0; i < count; i++)
			places[i] = begins[spans[i].number]++;
		permute(history->spans.items, places, count);
	}
	bool good = places && begins;
	free(places);
	free(begins);
	return good;
}

enum { WIDTH = 16 }; /* two lines of the cache */

/* Filled up to whole nodes with keys that come after all others. */
static bool add_level(struct tickmap_history *history, const uint64_t *keys,
		      size_t count, size_t stride)
{
	size_t room = (count + WIDTH - 1) / WIDTH * WIDTH;
	uint64_t *steps;

	/* 16^8 bounds are more than there can be. */
	if (history->height == TICKMAP_HISTORY_HEIGHT)
		return false;
	steps = tickmap_platform_large_block(room * sizeof(*steps));
	if (!steps)
		return false;
	for (size_t i = 0; i < room; i++)
		steps[i] = i < count ? keys[i * stride] : UINT64_MAX;
	history->steps[history->height] = steps;
	history->step_counts[history->height++] = count;
	return true;
}

static bool build_steps(struct tickmap_history *history, const uint64_t *bounds,
			size_t count)
{
	if (!add_level(history, bounds, count, 1))
		return false;
	while (count > WIDTH) {
		const uint64_t *below = history->steps[history->height - 1];
		count = (count + WIDTH - 1) / WIDTH;
		if (!add_level(history, below, count, WIDTH))
			return false;
	}
	return true;
}

static bool find_bounds(struct tickmap_history *history)
{
	size_t count = 0, distinct = 0;
	uint64_t *bounds = malloc(2 * history->spans.count * sizeof(*bounds));
	bool ok;

	if (!bounds)
		return false;
	for (size_t i = 0; i < history->spans.count; i++) {
		const struct tickmap_span *span = &history->spans.items[i];
		bounds[count++] = span->first;
		if (span->last != UINT64_MAX)
			bounds[count++] = span->last + 1;
	}
	ok = tickmap_sort_u64(bounds, count);
	for (size_t i = 0; ok && i < count; i++)
		if (!i || bounds[i] != bounds[distinct - 1])
			bounds[distinct++] = bounds[i];
	ok = ok && build_steps(history, bounds, distinct);
	free(bounds);
	return ok;
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
#pragma GCC unroll 16
		for (unsigned i = 0; i < WIDTH; i++)
			below += keys[i] <= avma;
		/* The last address comes after what fills a node up. */
		below = below < left ? below : left;
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

static uint64_t since_of(const struct tickmap_history *history, uint32_t entry)
{
	uint64_t since;

	memcpy(&since, history->words + ENTRY * (size_t)entry, sizeof(since));
	return since;
}

static uint32_t number_of(const struct tickmap_history *history, uint32_t entry)
{
	return history->words[ENTRY * (size_t)entry + 2];
}

static void set_entry(struct tickmap_history *history, uint32_t entry,
		      uint64_t since, uint32_t number)
{
	uint32_t *words = history->words + ENTRY * (size_t)entry;

	memcpy(words, &since, sizeof(since));
	words[2] = number;
}

/* While lists are made: */
struct lists {
	struct tickmap_history *history;
	/* Of each node, until when its last span held; 0: it has none. */
	uint64_t *untils;
	bool flat; /* the leaves alone have lists */
};

/* Is the node without a span between its last one and this time? */
static bool has_gap(const struct lists *lists, uint32_t node, uint64_t since)
{
	return lists->untils[node] && lists->untils[node] != since;
}

/* nodes[node + 2] counts; once summed up, nodes[node + 1] runs from the begin
 * of the list to its end. */
static void count_entry(const struct lists *lists, uint32_t node,
			const struct tickmap_span *span)
{
	lists->history->nodes[node + 2] +=
		1 + has_gap(lists, node, span->since);
	lists->untils[node] = span->until;
}

static void add_entry(const struct lists *lists, uint32_t node,
		      const struct tickmap_span *span)
{
	uint32_t *place = &lists->history->nodes[node + 1];

	if (has_gap(lists, node, span->since))
		set_entry(lists->history, (*place)++, lists->untils[node],
			  NO_NUMBER);
	set_entry(lists->history, (*place)++, span->since, span->number);
	lists->untils[node] = span->until;
}

/* The fewest nodes that together cover the leaves; or the leaves. */
static void visit(const struct lists *lists, struct leaves leaves,
		  const struct tickmap_span *span,
		  void (*node)(const struct lists *lists, uint32_t node,
			       const struct tickmap_span *span))
{
	for (; lists->flat && leaves.low < leaves.high; leaves.low++)
		node(lists, leaves.low, span);
	for (; leaves.low < leaves.high; leaves.low /= 2, leaves.high /= 2) {
		if (leaves.low & 1)
			node(lists, leaves.low++, span);
		if (leaves.high & 1)
			node(lists, --leaves.high, span);
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

static bool count_entries(const struct lists *lists,
			  const struct leaves *leaves)
{
	struct tickmap_history *history = lists->history;
	uint32_t nodes = 2 * history->leaves;
	uint64_t total = 0;

	for (size_t i = 0; i < history->spans.count; i++)
		visit(lists, leaves[i], &history->spans.items[i], count_entry);
	for (uint32_t node = 0; node < nodes; node++) {
		total += history->nodes[node + 2] +
			 has_gap(lists, node, UINT64_MAX);
		if (total > UINT32_MAX)
			return false;
		history->nodes[node + 2] = (uint32_t)total;
	}
	history->words = tickmap_platform_large_block(total * ENTRY *
						      sizeof(*history->words));
	return history->words != NULL;
}

static void add_entries(const struct lists *lists, const struct leaves *leaves)
{
	struct tickmap_history *history = lists->history;
	uint32_t nodes = 2 * history->leaves;

	memset(lists->untils, 0, nodes * sizeof(*lists->untils));
	for (size_t i = 0; i < history->spans.count; i++)
		visit(lists, leaves[i], &history->spans.items[i], add_entry);
	for (uint32_t node = 0; node < nodes; node++)
		if (has_gap(lists, node, UINT64_MAX))
			set_entry(history, history->nodes[node + 1]++,
				  lists->untils[node], NO_NUMBER);
}

static bool fill_nodes(struct tickmap_history *history, struct leaves *leaves)
{
	uint32_t nodes = 2 * history->leaves;
	struct lists lists = { .history = history };
	bool ok;

	lists.flat = find_leaves(history, leaves);
	lists.untils = calloc(nodes, sizeof(*lists.untils));
	ok = lists.untils && count_entries(&lists, leaves);
	if (ok)
		add_entries(&lists, leaves);
	free(lists.untils);
	return ok && (lists.flat || find_levels(history));
}

static bool build(struct tickmap_history *history)
{
	struct leaves *leaves;
	bool ok;

	if (!sort_spans(history) || !find_bounds(history))
		return false;
	for (history->leaves = 1; history->leaves < history->step_counts[0];)
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

/* In a node's list: the place behind the last entry since `when` or before. */
static uint32_t list_up_to(const struct tickmap_history *history, uint32_t node,
			   uint64_t when)
{
	enum { LINES_MAX = 8, LINE = 64 };
	uint32_t low = history->nodes[node], high = history->nodes[node + 1];
	const char *line = (const char *)(history->words + ENTRY * (size_t)low);
	const char *end = (const char *)(history->words + ENTRY * (size_t)high);

	/* All that a short list has at once, and not one after the other. */
	for (unsigned i = 0; i < LINES_MAX && line < end; i++, line += LINE)
		__builtin_prefetch(line);
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (since_of(history, middle) <= when)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* An entry that has a number as a piece. */
static struct tickmap_piece piece_of(const struct tickmap_history *history,
				     uint32_t node, uint32_t entry)
{
	bool is_last = entry + 1 == history->nodes[node + 1];

	return (struct tickmap_piece) {
		.since = since_of(history, entry),
		.until = is_last ? UINT64_MAX : since_of(history, entry + 1),
		.number = number_of(history, entry),
	};
}

bool tickmap_history_at(const struct tickmap_history *history, uint64_t avma,
			uint64_t when, struct tickmap_piece *ret_piece)
{
	struct path path = path_of(history, avma);

	for (uint32_t node; (node = next_node(&path));) {
		uint32_t place = list_up_to(history, node, when);
		if (place == history->nodes[node] ||
		    number_of(history, place - 1) == NO_NUMBER)
			continue;
		*ret_piece = piece_of(history, node, place - 1);
		return true;
	}
	return false;
}

bool tickmap_history_before(const struct tickmap_history *history,
			    uint64_t avma, uint64_t when,
			    struct tickmap_piece *ret_piece)
{
	struct path path = path_of(history, avma);
	bool found = false;

	for (uint32_t node; (node = next_node(&path));) {
		uint32_t begin = history->nodes[node];
		uint32_t place = list_up_to(history, node, when);
		struct tickmap_piece piece;
		/* What holds now, or the gap, has not ended. */
		if (place < begin + 2)
			continue;
		place -= 2;
		if (number_of(history, place) == NO_NUMBER) {
			if (place == begin)
				continue;
			place--;
		}
		piece = piece_of(history, node, place);
		if (!found || piece.until > ret_piece->until)
			*ret_piece = piece;
		found = true;
	}
	return found;
}

bool tickmap_history_after(const struct tickmap_history *history, uint64_t avma,
			   uint64_t when, struct tickmap_piece *ret_piece)
{
	struct path path = path_of(history, avma);
	bool found = false;

	for (uint32_t node; (node = next_node(&path));) {
		uint32_t place = list_up_to(history, node, when);
		uint32_t end = history->nodes[node + 1];
		struct tickmap_piece piece;
		if (place < end && number_of(history, place) == NO_NUMBER)
			place++;
		if (place == end)
			continue;
		piece = piece_of(history, node, place);
		if (!found || piece.since < ret_piece->since)
			*ret_piece = piece;
		found = true;
	}
	return found;
}

uint64_t tickmap_history_reach(const struct tickmap_history *history,
			       uint64_t avma)
{
	size_t bound = bounds_up_to(history, avma);
	return history->leaves && bound < history->step_counts[0]
		       ? history->steps[0][bound] - 1
		       : UINT64_MAX;
}

/* SPDX-License-Identifier: MIT */
#include "timeline/index.h"

#include "base/sort.h"
#include "platform/platform.h"

#include <string.h>

enum { HEIGHT = 8 };

struct tickmap_index {
	struct tickmap_span *spans; /* while it is built */
	size_t count;
	/* [0]: the bounds, where elementary ranges begin; above, every 16th of
	 * the level below. */
	uint64_t *steps[HEIGHT];
	size_t step_counts[HEIGHT];
	unsigned height;
	uint32_t leaves;  /* of the tree: a power of two */
	uint32_t *nodes;  /* the entry with which a node's list begins */
	uint32_t *levels; /* a leaf's bits: the levels with a list; NULL: only
			     the leaves have */
	uint32_t *words;  /* the entries of all lists */
};

/* A time and a number, or none: from then on. Lists are many and are read here
 * and there: three words, not four. */
enum { ENTRY = 3, NO_NUMBER = TICKMAP_NO_NUMBER };

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
static bool sort_spans(struct tickmap_index *index)
{
	size_t count = index->count;
	const struct tickmap_span *spans = index->spans;
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
		permute(index->spans, places, count);
	}
	bool good = places && begins;
	free(places);
	free(begins);
	return good;
}

enum { WIDTH = 16 }; /* two lines of the cache */

/* Filled up to whole nodes with keys that come after all others. */
static bool add_level(struct tickmap_index *index, const uint64_t *keys,
		      size_t count, size_t stride)
{
	size_t room = (count + WIDTH - 1) / WIDTH * WIDTH;
	uint64_t *steps;

	/* 16^8 bounds are more than there can be. */
	if (index->height == HEIGHT)
		return false;
	steps = tickmap_platform_large_block(room * sizeof(*steps));
	if (!steps)
		return false;
	for (size_t i = 0; i < room; i++)
		steps[i] = i < count ? keys[i * stride] : UINT64_MAX;
	index->steps[index->height] = steps;
	index->step_counts[index->height++] = count;
	return true;
}

static bool build_steps(struct tickmap_index *index, const uint64_t *bounds,
			size_t count)
{
	if (!add_level(index, bounds, count, 1))
		return false;
	while (count > WIDTH) {
		const uint64_t *below = index->steps[index->height - 1];
		count = (count + WIDTH - 1) / WIDTH;
		if (!add_level(index, below, count, WIDTH))
			return false;
	}
	return true;
}

static bool find_bounds(struct tickmap_index *index)
{
	size_t count = 0, distinct = 0;
	uint64_t *bounds = malloc(2 * index->count * sizeof(*bounds));
	bool ok;

	if (!bounds)
		return false;
	for (size_t i = 0; i < index->count; i++) {
		const struct tickmap_span *span = &index->spans[i];
		bounds[count++] = span->first;
		if (span->last != UINT64_MAX)
			bounds[count++] = span->last + 1;
	}
	ok = tickmap_sort_u64(bounds, count);
	for (size_t i = 0; ok && i < count; i++)
		if (!i || bounds[i] != bounds[distinct - 1])
			bounds[distinct++] = bounds[i];
	ok = ok && build_steps(index, bounds, distinct);
	free(bounds);
	return ok;
}

/* How many bounds lie at or before the address. From the top down: in each node
 * without a branch, so that the processor waits for several questions' memory
 * at once. */
static size_t bounds_up_to(const struct tickmap_index *index, uint64_t avma)
{
	size_t at = 0; /* the node at this level */

	for (unsigned level = index->height; level-- > 0;) {
		const uint64_t *keys = index->steps[level] + at * WIDTH;
		size_t left = index->step_counts[level] - at * WIDTH;
		size_t below = 0;
		__builtin_prefetch(keys + WIDTH / 2);
#pragma GCC unroll 4
		for (unsigned half = WIDTH / 2; half; half /= 2)
			below += half * (keys[below + half - 1] <= avma);
		below += keys[below] <= avma;
		/* The last address comes after what fills a node up. */
		below = below < left ? below : left;
		if (!level)
			return at * WIDTH + below;
		if (!below)
			return 0;
		at = at * WIDTH + below - 1;
		/* The lists of the bounds that are looked at next. */
		if (level == 1 && index->nodes)
			__builtin_prefetch(
				&index->nodes[index->leaves + at * WIDTH]);
	}
	return 0;
}

/* The leaves of a span's addresses: from low up to, not with, high. */
struct leaves {
	uint32_t low, high;
};

static uint64_t since_of(const struct tickmap_index *index, uint32_t entry)
{
	uint64_t since;

	memcpy(&since, index->words + ENTRY * (size_t)entry, sizeof(since));
	return since;
}

static uint32_t number_of(const struct tickmap_index *index, uint32_t entry)
{
	return index->words[ENTRY * (size_t)entry + 2];
}

static void set_entry(struct tickmap_index *index, uint32_t entry,
		      uint64_t since, uint32_t number)
{
	uint32_t *words = index->words + ENTRY * (size_t)entry;

	memcpy(words, &since, sizeof(since));
	words[2] = number;
}

/* While lists are made: */
struct lists {
	struct tickmap_index *index;
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
	lists->index->nodes[node + 2] += 1 + has_gap(lists, node, span->since);
	lists->untils[node] = span->until;
}

static void add_entry(const struct lists *lists, uint32_t node,
		      const struct tickmap_span *span)
{
	uint32_t *place = &lists->index->nodes[node + 1];

	if (has_gap(lists, node, span->since))
		set_entry(lists->index, (*place)++, lists->untils[node],
			  NO_NUMBER);
	set_entry(lists->index, (*place)++, span->since, span->number);
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
static bool find_levels(struct tickmap_index *index)
{
	uint32_t count = 2 * index->leaves;
	uint32_t *levels = calloc(count, sizeof(*levels));

	if (!levels)
		return false;
	for (uint32_t node = 1; node < count; node++)
		levels[node] = levels[node / 2] << 1 |
			       (index->nodes[node + 1] > index->nodes[node]);
	memmove(levels, levels + index->leaves,
		index->leaves * sizeof(*levels));
	index->levels = levels;
	return true;
}

/* Lists of the leaves alone may be so many times as long as there are spans. */
enum { FLAT = 8 };

static bool find_leaves(struct tickmap_index *index, struct leaves *leaves)
{
	uint64_t covered = 0;

	for (size_t i = 0; i < index->count; i++) {
		const struct tickmap_span *span = &index->spans[i];
		leaves[i].low = (uint32_t)bounds_up_to(index, span->first) - 1 +
				index->leaves;
		leaves[i].high = (uint32_t)bounds_up_to(index, span->last) +
				 index->leaves;
		covered += leaves[i].high - leaves[i].low;
	}
	return covered <= FLAT * (uint64_t)index->count;
}

static bool count_entries(const struct lists *lists,
			  const struct leaves *leaves)
{
	struct tickmap_index *index = lists->index;
	uint32_t nodes = 2 * index->leaves;
	uint64_t total = 0;

	for (size_t i = 0; i < index->count; i++)
		visit(lists, leaves[i], &index->spans[i], count_entry);
	for (uint32_t node = 0; node < nodes; node++) {
		total += index->nodes[node + 2] +
			 has_gap(lists, node, UINT64_MAX);
		if (total > UINT32_MAX)
			return false;
		index->nodes[node + 2] = (uint32_t)total;
	}
	index->words = tickmap_platform_large_block(total * ENTRY *
						    sizeof(*index->words));
	return index->words != NULL;
}

static void add_entries(const struct lists *lists, const struct leaves *leaves)
{
	struct tickmap_index *index = lists->index;
	uint32_t nodes = 2 * index->leaves;

	memset(lists->untils, 0, nodes * sizeof(*lists->untils));
	for (size_t i = 0; i < index->count; i++)
		visit(lists, leaves[i], &index->spans[i], add_entry);
	for (uint32_t node = 0; node < nodes; node++)
		if (has_gap(lists, node, UINT64_MAX))
			set_entry(index, index->nodes[node + 1]++,
				  lists->untils[node], NO_NUMBER);
}

static bool fill_nodes(struct tickmap_index *index, struct leaves *leaves)
{
	uint32_t nodes = 2 * index->leaves;
	struct lists lists = { .index = index };
	bool ok;

	lists.flat = find_leaves(index, leaves);
	lists.untils = calloc(nodes, sizeof(*lists.untils));
	ok = lists.untils && count_entries(&lists, leaves);
	if (ok)
		add_entries(&lists, leaves);
	free(lists.untils);
	return ok && (lists.flat || find_levels(index));
}

static bool build(struct tickmap_index *index)
{
	struct leaves *leaves;
	bool ok;

	if (!sort_spans(index) || !find_bounds(index))
		return false;
	for (index->leaves = 1; index->leaves < index->step_counts[0];)
		index->leaves *= 2;
	size_t room = (2 * (size_t)index->leaves + 2) * sizeof(*index->nodes);
	index->nodes = tickmap_platform_large_block(room);
	if (index->nodes)
		memset(index->nodes, 0, room);
	leaves = malloc(index->count * sizeof(*leaves));
	ok = index->nodes && leaves && fill_nodes(index, leaves);
	free(leaves);
	index->spans = NULL;
	return ok;
}

struct tickmap_index *tickmap_index_new(struct tickmap_span *spans,
					size_t count)
{
	struct tickmap_index *index = calloc(1, sizeof(*index));

	if (!index)
		return NULL;
	index->spans = spans;
	index->count = count;
	if (build(index))
		return index;
	tickmap_index_free(index);
	return NULL;
}

void tickmap_index_free(struct tickmap_index *index)
{
	if (!index)
		return;
	free(index->nodes);
	free(index->levels);
	free(index->words);
	for (unsigned level = 0; level < index->height; level++)
		free(index->steps[level]);
	free(index);
}

/* The nodes with a list from an address up to the root. */
struct path {
	uint32_t leaf;
	uint32_t levels; /* not visited yet */
};

static struct path path_of(const struct tickmap_index *index, uint64_t avma)
{
	size_t bound = index->leaves ? bounds_up_to(index, avma) : 0;
	struct path path = { .levels = 0 };

	if (bound) {
		path.leaf = (uint32_t)(bound - 1) + index->leaves;
		path.levels = index->levels ? index->levels[bound - 1] : 1;
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
static uint32_t list_up_to(const struct tickmap_index *index, uint32_t node,
			   uint64_t when)
{
	enum { LINES_MAX = 8, LINE = 64 };
	uint32_t low = index->nodes[node];
	uint32_t count = index->nodes[node + 1] - low;
	const char *line = (const char *)(index->words + ENTRY * (size_t)low);
	const char *end = line + ENTRY * sizeof(*index->words) * count;

	/* All that a short list has at once, and not one after the other. */
	for (unsigned i = 0; i < LINES_MAX && line < end; i++, line += LINE)
		__builtin_prefetch(line);
	/* Without a branch on what is compared: nobody could guess it. */
	for (; count > 1; count -= count / 2)
		low += count / 2 *
		       (since_of(index, low + count / 2 - 1) <= when);
	return count ? low + (since_of(index, low) <= when) : low;
}

/* An entry that has a number as a piece. */
static struct tickmap_piece piece_of(const struct tickmap_index *index,
				     uint32_t node, uint32_t entry)
{
	bool is_last = entry + 1 == index->nodes[node + 1];

	return (struct tickmap_piece) {
		.since = since_of(index, entry),
		.until = is_last ? UINT64_MAX : since_of(index, entry + 1),
		.number = number_of(index, entry),
	};
}

bool tickmap_index_at(const struct tickmap_index *index, uint64_t avma,
		      uint64_t when, struct tickmap_piece *ret_piece)
{
	struct path path = path_of(index, avma);

	for (uint32_t node; (node = next_node(&path));) {
		uint32_t place = list_up_to(index, node, when);
		if (place == index->nodes[node] ||
		    number_of(index, place - 1) == NO_NUMBER)
			continue;
		*ret_piece = piece_of(index, node, place - 1);
		return true;
	}
	return false;
}

bool tickmap_index_before(const struct tickmap_index *index, uint64_t avma,
			  uint64_t when, struct tickmap_piece *ret_piece)
{
	struct path path = path_of(index, avma);
	bool found = false;

	for (uint32_t node; (node = next_node(&path));) {
		uint32_t begin = index->nodes[node];
		uint32_t place = list_up_to(index, node, when);
		struct tickmap_piece piece;
		/* What holds now, or the gap, has not ended. */
		if (place < begin + 2)
			continue;
		place -= 2;
		if (number_of(index, place) == NO_NUMBER) {
			if (place == begin)
				continue;
			place--;
		}
		piece = piece_of(index, node, place);
		if (!found || piece.until > ret_piece->until)
			*ret_piece = piece;
		found = true;
	}
	return found;
}

bool tickmap_index_after(const struct tickmap_index *index, uint64_t avma,
			 uint64_t when, struct tickmap_piece *ret_piece)
{
	struct path path = path_of(index, avma);
	bool found = false;

	for (uint32_t node; (node = next_node(&path));) {
		uint32_t place = list_up_to(index, node, when);
		uint32_t end = index->nodes[node + 1];
		struct tickmap_piece piece;
		if (place < end && number_of(index, place) == NO_NUMBER)
			place++;
		if (place == end)
			continue;
		piece = piece_of(index, node, place);
		if (!found || piece.since < ret_piece->since)
			*ret_piece = piece;
		found = true;
	}
	return found;
}

uint64_t tickmap_index_reach(const struct tickmap_index *index, uint64_t avma)
{
	size_t bound = bounds_up_to(index, avma);
	return index->leaves && bound < index->step_counts[0]
		       ? index->steps[0][bound] - 1
		       : UINT64_MAX;
}

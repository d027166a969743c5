/* SPDX-License-Identifier: MIT */
/*
 * Rectangles of addresses × time that do not overlap, each with a number, and
 * which of them holds a point. A search tree with wide nodes finds the
 * elementary range of addresses; it has the rectangles that cover it in the
 * order of time. Where rectangles cover so many ranges that these lists would
 * grow large, they hang in a segment tree over the ranges instead: rectangles
 * of one node cover the same addresses, so their times are disjoint, and one
 * binary search answers for each node above a range that has a list.
 */
#ifndef TICKMAP_TIMELINE_HISTORY_H
#define TICKMAP_TIMELINE_HISTORY_H

#include "base/vec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tickmap_span {
	uint64_t first, last;  /* addresses, both included */
	uint64_t since, until; /* until UINT64_MAX: for ever */
	uint32_t number;       /* does not fall where `since` grows */
};

/* What answers are. */
struct tickmap_piece {
	uint64_t since, until;
	uint32_t number;
};

enum { TICKMAP_HISTORY_HEIGHT = 8 };

/* Zeroed means empty. */
struct tickmap_history {
	TICKMAP_VEC(struct tickmap_span) spans;
	/* [0]: the bounds, where elementary ranges begin; above, every 16th of
	 * the level below. */
	uint64_t *steps[TICKMAP_HISTORY_HEIGHT];
	size_t step_counts[TICKMAP_HISTORY_HEIGHT];
	unsigned height;
	uint32_t leaves;  /* of the tree: a power of two */
	uint32_t *nodes;  /* the entry with which a node's list begins */
	uint32_t *levels; /* a leaf's bits: the levels with a list; NULL: only
			     the leaves have */
	uint32_t *words;  /* the entries of all lists */
};

void tickmap_history_free(struct tickmap_history *history);

/* False: out of memory. A span without time is left out. */
bool tickmap_history_add(struct tickmap_history *history,
			 struct tickmap_span span);

/* After the last add, before the first question; once. */
bool tickmap_history_build(struct tickmap_history *history);

/* The span that holds the point, if there is one. */
bool tickmap_history_at(const struct tickmap_history *history, uint64_t avma,
			uint64_t when, struct tickmap_piece *ret_piece);

/* The last span at this address that ended at or before that time, and the
 * first that began after it, if there is one. */
bool tickmap_history_before(const struct tickmap_history *history,
			    uint64_t avma, uint64_t when,
			    struct tickmap_piece *ret_piece);
bool tickmap_history_after(const struct tickmap_history *history, uint64_t avma,
			   uint64_t when, struct tickmap_piece *ret_piece);

/* The last address for which everything is as it is at `avma`. */
uint64_t tickmap_history_reach(const struct tickmap_history *history,
			       uint64_t avma);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Which of many rectangles holds a point. A search tree with wide nodes finds
 * the elementary range of addresses; it has the rectangles that cover it in the
 * order of time. Where rectangles cover so many ranges that these lists would
 * grow large, they hang in a segment tree over the ranges instead: rectangles
 * of one node cover the same addresses, so their times are disjoint, and one
 * binary search answers for each node above a range that has a list.
 */
#ifndef TICKMAP_TIMELINE_INDEX_H
#define TICKMAP_TIMELINE_INDEX_H

#include "timeline/history.h"

struct tickmap_index;

/* Sorts the spans, at least one, and does not keep them. NULL: no memory. */
struct tickmap_index *tickmap_index_new(struct tickmap_span *spans,
					size_t count);
void tickmap_index_free(struct tickmap_index *index);

/* As those of a history. */
bool tickmap_index_before(const struct tickmap_index *index, uint64_t avma,
			  uint64_t when, struct tickmap_piece *ret_piece);
bool tickmap_index_after(const struct tickmap_index *index, uint64_t avma,
			 uint64_t when, struct tickmap_piece *ret_piece);
uint64_t tickmap_index_reach(const struct tickmap_index *index, uint64_t avma);

#endif

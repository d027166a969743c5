/* SPDX-License-Identifier: MIT */
/*
 * Rectangles of addresses × time that do not overlap, each with a number, and
 * which of them holds a point. A few are looked through one by one: most
 * processes of a recording have no more, and there may be very many of those.
 */
#ifndef TICKMAP_TIMELINE_HISTORY_H
#define TICKMAP_TIMELINE_HISTORY_H

#include "base/vec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TICKMAP_NO_NUMBER UINT32_MAX

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

/* Zeroed means empty. */
struct tickmap_history {
	TICKMAP_VEC(struct tickmap_span) spans; /* none, if they have: */
	struct tickmap_index *index;
};

void tickmap_history_free(struct tickmap_history *history);

/* False: out of memory. A span without time is left out. */
bool tickmap_history_add(struct tickmap_history *history,
			 struct tickmap_span span);

/* After the last add, before the first question; once. */
bool tickmap_history_build(struct tickmap_history *history);

/* The span that holds the point, if there is one. */
bool tickmap_history_few_at(const struct tickmap_history *history,
			    uint64_t avma, uint64_t when,
			    struct tickmap_piece *ret_piece);
/* Of the index, for what is asked most. */
bool tickmap_index_at(const struct tickmap_index *index, uint64_t avma,
		      uint64_t when, struct tickmap_piece *ret_piece);

static inline bool tickmap_history_at(const struct tickmap_history *history,
				      uint64_t avma, uint64_t when,
				      struct tickmap_piece *ret_piece)
{
	return history->index
		       ? tickmap_index_at(history->index, avma, when, ret_piece)
		       : tickmap_history_few_at(history, avma, when, ret_piece);
}

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

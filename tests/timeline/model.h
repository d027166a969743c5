/* SPDX-License-Identifier: MIT */
/*
 * The rule again, the slow and obvious way: one cell an address, all events
 * applied one by one up to the time in question. Shares nothing with src/.
 */
#ifndef TICKMAP_TESTS_TIMELINE_MODEL_H
#define TICKMAP_TESTS_TIMELINE_MODEL_H

#include <stdbool.h>
#include <stdint.h>

enum { CELLS = 40, EVENTS_MAX = 64, TIMES = 26 };

/* Ways to have the rule wrong; a test that cannot see them proves nothing. */
enum mistake {
	NONE,
	ANON_ENDS_CODE,
	FILE_SPARES_CODE,
	OVERLAP_ENDS_ALL,
	MOVE_KEEPS_OLD,
	MOVE_BELIEVES_ADDRESS, /* though its owner is another one */
	CHILD_STARTS_EMPTY,
	TIES_REVERSED,
	EXEC_KEEPS,
	LAST_WINS, /* without regard to time */
	MISTAKES,
};

enum model_kind { M_LOAD, M_MOVE, M_EXEC, M_FORK };

struct model_event {
	enum model_kind kind;
	int layer;
	uint64_t when;
	uint64_t at, size, old; /* addresses relative to the base */
	uint64_t owner;
};

struct model_cell {
	uint64_t owner;	  /* UINT64_MAX: nobody */
	uint64_t placing; /* which event put it here: unique in all timelines */
	uint64_t start, since, placed;
};

struct model_state {
	struct model_cell cells[3][CELLS];
};

struct model_timeline {
	struct model_event events[EVENTS_MAX]; /* as they were added */
	unsigned count;
	unsigned id;
	const struct model_timeline *parent;
};

void model_replay(const struct model_timeline *timeline, uint64_t when,
		  enum mistake mistake, struct model_state *ret_state);

#endif

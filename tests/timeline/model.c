/* SPDX-License-Identifier: MIT */
#include "model.h"

#include <string.h>

enum { CODE, FILE_, ANON };

static void clear_cell(struct model_cell *cell)
{
	memset(cell, 0, sizeof(*cell));
	cell->owner = UINT64_MAX;
}

static void clear_state(struct model_state *state)
{
	for (int l = 0; l < 3; l++)
		for (unsigned i = 0; i < CELLS; i++)
			clear_cell(&state->cells[l][i]);
}

static bool covers(uint64_t at, uint64_t size, uint64_t cell)
{
	return cell >= at && cell - at < size;
}

static void put(struct model_state *state, int layer, uint64_t at,
		uint64_t size, struct model_cell cell, enum mistake mistake)
{
	struct model_cell *cells = state->cells[layer];
	bool gone[CELLS] = { false };

	if (mistake == OVERLAP_ENDS_ALL && layer == CODE)
		for (unsigned i = 0; i < CELLS; i++)
			for (unsigned j = 0; j < CELLS; j++)
				if (covers(at, size, i) &&
				    cells[i].owner != UINT64_MAX &&
				    cells[i].placing == cells[j].placing)
					gone[j] = true;
	for (unsigned i = 0; i < CELLS; i++) {
		if (gone[i])
			clear_cell(&cells[i]);
		if (covers(at, size, i))
			cells[i] = cell;
	}
}

static void clear_range(struct model_state *state, int layer, uint64_t at,
			uint64_t size)
{
	for (unsigned i = 0; i < CELLS; i++)
		if (covers(at, size, i))
			clear_cell(&state->cells[layer][i]);
}

static void apply_move(struct model_state *state,
		       const struct model_event *event, uint64_t placing,
		       enum mistake mistake)
{
	struct model_cell *code = state->cells[CODE];
	struct model_cell moved = { .owner = event->owner,
				    .since = event->when };

	if (event->old < CELLS && code[event->old].owner != UINT64_MAX &&
	    (event->owner == UINT64_MAX || mistake == MOVE_BELIEVES_ADDRESS ||
	     code[event->old].owner == event->owner)) {
		uint64_t old_placing = code[event->old].placing;
		moved.owner = code[event->old].owner;
		moved.since = code[event->old].since;
		for (unsigned i = 0; i < CELLS; i++)
			if (mistake != MOVE_KEEPS_OLD &&
			    covers(event->old, event->size, i) &&
			    code[i].placing == old_placing)
				clear_cell(&code[i]);
	}
	moved.start = event->at;
	moved.placed = event->when;
	moved.placing = placing;
	if (moved.owner == UINT64_MAX)
		clear_range(state, CODE, event->at, event->size);
	else
		put(state, CODE, event->at, event->size, moved, mistake);
}

static void apply_load(struct model_state *state,
		       const struct model_event *event, uint64_t placing,
		       enum mistake mistake)
{
	struct model_cell cell = { .owner = event->owner,
				   .placing = placing,
				   .start = event->at,
				   .since = event->when,
				   .placed = event->when };

	put(state, event->layer, event->at, event->size, cell, mistake);
	if (event->layer == FILE_) {
		if (mistake != FILE_SPARES_CODE)
			clear_range(state, CODE, event->at, event->size);
		clear_range(state, ANON, event->at, event->size);
	}
	if (event->layer == ANON) {
		clear_range(state, FILE_, event->at, event->size);
		if (mistake == ANON_ENDS_CODE)
			clear_range(state, CODE, event->at, event->size);
	}
}

static void apply(const struct model_timeline *timeline, unsigned i,
		  enum mistake mistake, struct model_state *state)
{
	const struct model_event *event = &timeline->events[i];
	uint64_t placing = (uint64_t)timeline->id << 32 | (i + 1);

	switch (event->kind) {
	case M_LOAD:
		apply_load(state, event, placing, mistake);
		break;
	case M_MOVE:
		apply_move(state, event, placing, mistake);
		break;
	case M_EXEC:
		if (mistake != EXEC_KEEPS)
			clear_state(state);
		break;
	case M_FORK:
		if (mistake == CHILD_STARTS_EMPTY)
			clear_state(state);
		else
			model_replay(timeline->parent, event->when, mistake,
				     state);
		break;
	}
}

void model_replay(const struct model_timeline *timeline, uint64_t when,
		  enum mistake mistake, struct model_state *ret_state)
{
	clear_state(ret_state);
	if (mistake == LAST_WINS)
		when = TIMES;
	for (uint64_t now = 0; now <= when; now++)
		for (unsigned k = 0; k < timeline->count; k++) {
			unsigned i = mistake == TIES_REVERSED
					     ? timeline->count - 1 - k
					     : k;
			if (timeline->events[i].when == now)
				apply(timeline, i, mistake, ret_state);
		}
}

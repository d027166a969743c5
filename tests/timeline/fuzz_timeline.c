/* SPDX-License-Identifier: MIT */
/*
 * Bytes as events of a parent and its child, five an event; every answer is
 * compared with the model.
 */
#include "model.h"
#include "timeline/timeline.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct pair {
	struct tickmap_timeline *timelines[2];
	struct model_timeline models[2];
	uint64_t base;
};

static void check(bool right)
{
	if (!right)
		abort();
}

static struct model_event read_event(const uint8_t *bytes, uint64_t owner)
{
	struct model_event event = { .kind = M_LOAD, .owner = owner };

	event.layer = bytes[0] % 3;
	if ((bytes[0] & 0x70) == 0x70)
		event.kind = M_MOVE;
	if ((bytes[0] & 0x7c) == 0x60)
		event.kind = M_EXEC;
	if (event.kind == M_MOVE && bytes[0] & 1)
		event.owner = TICKMAP_NO_OWNER;
	event.when = bytes[1] % TIMES;
	event.at = bytes[2] % CELLS;
	event.size = bytes[3] == 255 ? UINT64_MAX : bytes[3] % CELLS;
	event.old = bytes[4] % CELLS;
	return event;
}

static void add(struct pair *pair, unsigned t, struct model_event event)
{
	struct model_timeline *model = &pair->models[t];
	struct tickmap_timeline *timeline = pair->timelines[t];

	if (model->count == EVENTS_MAX)
		return;
	model->events[model->count++] = event;
	if (event.kind == M_LOAD)
		check(tickmap_timeline_load(
			timeline, (enum tickmap_layer)event.layer, event.when,
			pair->base + event.at, event.size, event.owner));
	else if (event.kind == M_MOVE)
		check(tickmap_timeline_move(
			timeline, event.when, pair->base + event.old,
			pair->base + event.at, event.size, event.owner));
	else if (event.kind == M_EXEC)
		check(tickmap_timeline_exec(timeline, event.when));
	else
		check(tickmap_timeline_fork(timeline, event.when,
					    pair->timelines[0]));
}

static void compare(const struct pair *pair, unsigned t, uint64_t when)
{
	struct model_state state;

	model_replay(&pair->models[t], when, NONE, &state);
	for (unsigned i = 0; i < CELLS; i++) {
		struct tickmap_owner found = tickmap_timeline_find(
			pair->timelines[t], when, pair->base + i, 0);
		const struct model_cell *right = NULL;
		for (int l = 2; l >= 0; l--)
			if (state.cells[l][i].owner != TICKMAP_NO_OWNER)
				right = &state.cells[l][i];
		if (!right) {
			check(found.owner == TICKMAP_NO_OWNER);
			continue;
		}
		check(found.owner == right->owner);
		check(found.start == pair->base + right->start);
		check(found.since == right->since);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pair pair = { .base = 0x1000 };

	if (!size)
		return 0;
	if (data[0] & 1)
		pair.base = UINT64_MAX - CELLS + 1;
	for (unsigned t = 0; t < 2; t++) {
		pair.timelines[t] = tickmap_timeline_new();
		check(pair.timelines[t] != NULL);
		pair.models[t].id = t;
	}
	pair.models[1].parent = &pair.models[0];
	if (data[0] & 2)
		add(&pair, 1,
		    (struct model_event) { .kind = M_FORK,
					   .when = (data[0] >> 2) % TIMES });
	for (size_t at = 1; size - at >= 5; at += 5)
		add(&pair, data[at] >> 7, read_event(data + at, at));
	for (unsigned t = 0; t < 2; t++)
		check(tickmap_timeline_seal(pair.timelines[t]));
	for (unsigned t = 0; t < 2; t++)
		for (uint64_t when = 0; when < TIMES; when += 1 + t)
			compare(&pair, t, when);
	tickmap_timeline_free(pair.timelines[1]);
	tickmap_timeline_free(pair.timelines[0]);
	return 0;
}

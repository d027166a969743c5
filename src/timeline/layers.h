/* SPDX-License-Identifier: MIT */
/*
 * The histories of one process: of each layer what was owned, and what a forked
 * process freed of that which it inherited. Where there is little, all of it is
 * one block, as there may be very many processes.
 */
#ifndef TICKMAP_TIMELINE_LAYERS_H
#define TICKMAP_TIMELINE_LAYERS_H

#include "timeline/history.h"

enum { TICKMAP_LAYERS = 3 };

/* Two for each layer. */
enum tickmap_history_kind {
	TICKMAP_OWNED,
	TICKMAP_HOLES = TICKMAP_LAYERS,
	TICKMAP_HISTORIES = 2 * TICKMAP_LAYERS,
};

/* What is alike in both kinds. */
struct tickmap_layers {
	bool is_few;
	uint8_t ends[TICKMAP_HISTORIES]; /* of a few: where each one's end */
};

struct tickmap_layers_many {
	struct tickmap_layers layers;
	struct tickmap_history histories[TICKMAP_HISTORIES];
};

/* Takes what was added to them, and builds what questions need. NULL: out of
 * memory; they are empty either way. */
struct tickmap_layers *
tickmap_layers_pack(struct tickmap_history histories[TICKMAP_HISTORIES]);
void tickmap_layers_free(struct tickmap_layers *layers);

const struct tickmap_history *tickmap_layers_few(struct tickmap_layers *layers,
						 unsigned which,
						 struct tickmap_history *room);

/* Number `kind + layer` of them. It may lie in `room` or in `layers`, which may
 * be NULL: nothing was ever there. */
static inline const struct tickmap_history *
tickmap_layers_history(struct tickmap_layers *layers, unsigned which,
		       struct tickmap_history *room)
{
	return layers && !layers->is_few
		       ? &((struct tickmap_layers_many *)layers)
				  ->histories[which]
		       : tickmap_layers_few(layers, which, room);
}

#endif

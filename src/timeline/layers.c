/* SPDX-License-Identifier: MIT */
#include "timeline/layers.h"

#include <stdlib.h>
#include <string.h>

enum { FEW = 8 };

struct few {
	struct tickmap_layers layers;
	struct tickmap_span spans[];
};

static struct tickmap_layers *
pack_few(const struct tickmap_history histories[TICKMAP_HISTORIES],
	 size_t count)
{
	struct few *few = malloc(sizeof(*few) + count * sizeof(few->spans[0]));
	uint8_t end = 0;

	if (!few)
		return NULL;
	few->layers.is_few = true;
	for (unsigned i = 0; i < TICKMAP_HISTORIES; i++) {
		size_t spans = histories[i].spans.count;
		if (spans)
			memcpy(few->spans + end, histories[i].spans.items,
			       spans * sizeof(few->spans[0]));
		end = (uint8_t)(end + spans);
		few->layers.ends[i] = end;
	}
	return &few->layers;
}

static struct tickmap_layers *
pack_many(struct tickmap_history histories[TICKMAP_HISTORIES])
{
	struct tickmap_layers_many *many = calloc(1, sizeof(*many));

	if (!many)
		return NULL;
	for (unsigned i = 0; i < TICKMAP_HISTORIES; i++) {
		if (!tickmap_history_build(&histories[i])) {
			tickmap_layers_free(&many->layers);
			return NULL;
		}
		many->histories[i] = histories[i];
		histories[i] = (struct tickmap_history) { .index = NULL };
	}
	return &many->layers;
}

struct tickmap_layers *
tickmap_layers_pack(struct tickmap_history histories[TICKMAP_HISTORIES])
{
	struct tickmap_layers *layers;
	size_t count = 0;

	for (unsigned i = 0; i < TICKMAP_HISTORIES; i++)
		count += histories[i].spans.count;
	layers = count <= FEW ? pack_few(histories, count)
			      : pack_many(histories);
	for (unsigned i = 0; i < TICKMAP_HISTORIES; i++)
		tickmap_history_free(&histories[i]);
	return layers;
}

void tickmap_layers_free(struct tickmap_layers *layers)
{
	struct tickmap_layers_many *many = (struct tickmap_layers_many *)layers;

	if (layers && !layers->is_few)
		for (unsigned i = 0; i < TICKMAP_HISTORIES; i++)
			tickmap_history_free(&many->histories[i]);
	free(layers);
}

const struct tickmap_history *tickmap_layers_few(struct tickmap_layers *layers,
						 unsigned which,
						 struct tickmap_history *room)
{
	static const struct tickmap_history nothing;
	struct few *few = (struct few *)layers;
	unsigned begin;

	if (!layers)
		return &nothing;
	begin = which ? layers->ends[which - 1] : 0;
	room->spans.items = few->spans + begin;
	room->spans.count = layers->ends[which] - begin;
	room->index = NULL;
	return room;
}

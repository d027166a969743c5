/* SPDX-License-Identifier: MIT */
/* Memory that lives as long as its owner: many small pieces, freed at once. */
#ifndef TICKMAP_BASE_ARENA_H
#define TICKMAP_BASE_ARENA_H

#include <stddef.h>

struct tickmap_arena_block;

struct tickmap_arena {
	struct tickmap_arena_block *blocks; /* newest first */
	size_t used;			    /* of the newest */
};

/* `size` bytes aligned for any type, or NULL. A zeroed arena is empty. */
void *tickmap_arena_alloc(struct tickmap_arena *arena, size_t size);

/* A copy of `size` bytes followed by a NUL, or NULL. */
void *tickmap_arena_copy(struct tickmap_arena *arena, const void *bytes,
			 size_t size);

void tickmap_arena_free(struct tickmap_arena *arena);

#endif

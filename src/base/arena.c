/* SPDX-License-Identifier: MIT */
#include "base/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_SIZE = 64 * 1024, ALIGN = 16 };

struct tickmap_arena_block {
	struct tickmap_arena_block *older;
	size_t size;
	_Alignas(ALIGN) unsigned char bytes[];
};

void *tickmap_arena_alloc(struct tickmap_arena *arena, size_t size)
{
	struct tickmap_arena_block *block = arena->blocks;

	if (size > SIZE_MAX - BLOCK_SIZE)
		return NULL;
	size = (size + ALIGN - 1) & ~(size_t)(ALIGN - 1);
	if (!block || size > block->size - arena->used) {
		size_t room = size > BLOCK_SIZE / 4 ? size : BLOCK_SIZE;
		block = malloc(sizeof(*block) + room);
		if (!block)
			return NULL;
		block->size = room;
		block->older = arena->blocks;
		arena->blocks = block;
		arena->used = 0;
	}
	void *at = block->bytes + arena->used;
	arena->used += size;
	return at;
}

void *tickmap_arena_copy(struct tickmap_arena *arena, const void *bytes,
			 size_t size)
{
	unsigned char *copy =
		size < SIZE_MAX ? tickmap_arena_alloc(arena, size + 1) : NULL;
	if (copy) {
		if (size)
			memcpy(copy, bytes, size);
		copy[size] = 0;
	}
	return copy;
}

void tickmap_arena_free(struct tickmap_arena *arena)
{
	while (arena->blocks) {
		struct tickmap_arena_block *older = arena->blocks->older;
		free(arena->blocks);
		arena->blocks = older;
	}
	arena->used = 0;
}

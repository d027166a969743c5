/* SPDX-License-Identifier: MIT */
#include "profile/stacks.h"

#include "base/table.h"

static size_t place_of(const struct tickmap_stacks *stacks, uint32_t parent,
		       uint64_t avma, uint8_t kind, uint32_t hash)
{
	size_t mask = stacks->index_capacity - 1;
	size_t i = hash & mask;

	for (; stacks->index[i]; i = (i + 1) & mask) {
		const struct tickmap_stack *s =
			&stacks->all.items[stacks->index[i]];
		if (s->parent == parent && s->avma == avma && s->kind == kind)
			break;
	}
	return i;
}

static bool grow_index(struct tickmap_stacks *stacks)
{
	uint32_t *old = stacks->index;
	size_t capacity =
		stacks->index_capacity ? stacks->index_capacity * 2 : 1024;
	uint32_t *next = calloc(capacity, sizeof(*next));

	if (!next)
		return false;
	stacks->index = next;
	stacks->index_capacity = capacity;
	for (size_t i = 1; i < stacks->all.count; i++) {
		const struct tickmap_stack *s = &stacks->all.items[i];
		next[place_of(stacks, s->parent, s->avma, s->kind, s->hash)] =
			(uint32_t)i;
	}
	free(old);
	return true;
}

uint32_t tickmap_stacks_hash(uint32_t parent_hash, uint64_t avma,
			     enum tickmap_stack_kind kind)
{
	return (uint32_t)tickmap_mix(
		avma ^ (uint64_t)parent_hash * UINT64_C(0x9e3779b97f4a7c15) ^
		(uint64_t)kind << 60);
}

void tickmap_stacks_fetch(const struct tickmap_stacks *stacks, uint32_t hash)
{
	if (stacks->index)
		__builtin_prefetch(
			&stacks->index[hash & (stacks->index_capacity - 1)]);
}

uint32_t tickmap_stacks_add(struct tickmap_stacks *stacks, uint32_t parent,
			    uint64_t avma, enum tickmap_stack_kind kind)
{
	uint32_t above = stacks->all.count ? stacks->all.items[parent].hash : 0;

	return tickmap_stacks_add_hashed(
		stacks, parent, avma, kind,
		tickmap_stacks_hash(above, avma, kind));
}

uint32_t tickmap_stacks_add_hashed(struct tickmap_stacks *stacks,
				   uint32_t parent, uint64_t avma,
				   enum tickmap_stack_kind kind, uint32_t hash)
{
	if (!stacks->all.count) {
		struct tickmap_stack *root = tickmap_vec_push(&stacks->all);
		if (!root)
			return UINT32_MAX;
		*root = (struct tickmap_stack) { 0 };
	}
	if (stacks->all.count * 3 >= stacks->index_capacity * 2 &&
	    !grow_index(stacks))
		return UINT32_MAX;
	size_t place = place_of(stacks, parent, avma, (uint8_t)kind, hash);
	if (stacks->index[place])
		return stacks->index[place];
	if (stacks->all.count >= UINT32_MAX - 1)
		return UINT32_MAX;
	struct tickmap_stack *stack = tickmap_vec_push(&stacks->all);
	if (!stack)
		return UINT32_MAX;
	*stack = (struct tickmap_stack) { .avma = avma,
					  .parent = parent,
					  .hash = hash,
					  .kind = (uint8_t)kind };
	stacks->index[place] = (uint32_t)(stacks->all.count - 1);
	return stacks->index[place];
}

void tickmap_stacks_free(struct tickmap_stacks *stacks)
{
	tickmap_vec_free(&stacks->all);
	free(stacks->index);
	*stacks = (struct tickmap_stacks) { 0 };
}

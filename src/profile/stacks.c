/* SPDX-License-Identifier: MIT */
#include "profile/stacks.h"

#include "base/table.h"

static size_t place_of(const struct tickmap_stacks *stacks, uint32_t parent,
		       uint64_t avma, uint8_t kind)
{
	size_t mask = stacks->index_capacity - 1;
	uint64_t hash =
		tickmap_mix(avma ^ tickmap_mix((uint64_t)parent << 8 | kind));
	size_t i = (size_t)hash & mask;

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
		next[place_of(stacks, s->parent, s->avma, s->kind)] =
			(uint32_t)i;
	}
	free(old);
	return true;
}

uint32_t tickmap_stacks_add(struct tickmap_stacks *stacks, uint32_t parent,
			    uint64_t avma, enum tickmap_stack_kind kind)
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
	size_t place = place_of(stacks, parent, avma, (uint8_t)kind);
	if (stacks->index[place])
		return stacks->index[place];
	if (stacks->all.count >= UINT32_MAX - 1)
		return UINT32_MAX;
	struct tickmap_stack *stack = tickmap_vec_push(&stacks->all);
	if (!stack)
		return UINT32_MAX;
	*stack = (struct tickmap_stack) { .avma = avma,
					  .parent = parent,
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

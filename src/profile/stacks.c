/* SPDX-License-Identifier: MIT */
/*
 * A stack knows its first child, and most have no other: only the others are
 * in the index. So a chain that nobody had before costs no look-up behind the
 * place where it leaves the known ones.
 */
#include "profile/stacks.h"

#include "base/table.h"

static bool is_like(const struct tickmap_stack *s, uint32_t parent,
		    uint64_t avma, uint8_t kind)
{
	return s->parent == parent && s->avma == avma && s->kind == kind;
}

static uint32_t *place_of(const struct tickmap_stacks *stacks, uint32_t parent,
			  uint64_t avma, uint8_t kind)
{
	uint64_t key = (uint64_t)parent << 2 | kind;
	size_t mask = stacks->index_capacity - 1;
	size_t i =
		(size_t)tickmap_mix(avma ^ key * UINT64_C(0x9e3779b97f4a7c15)) &
		mask;

	while (stacks->index[i] &&
	       !is_like(&stacks->all.items[stacks->index[i]], parent, avma,
			kind))
		i = (i + 1) & mask;
	return &stacks->index[i];
}

static bool grow_index(struct tickmap_stacks *stacks)
{
	size_t capacity =
		stacks->index_capacity ? stacks->index_capacity * 2 : 1024;
	uint32_t *next = calloc(capacity, sizeof(*next));

	if (!next)
		return false;
	free(stacks->index);
	stacks->index = next;
	stacks->index_capacity = capacity;
	for (size_t i = 1; i < stacks->all.count; i++) {
		const struct tickmap_stack *s = &stacks->all.items[i];
		if (stacks->all.items[s->parent].child != i)
			*place_of(stacks, s->parent, s->avma, s->kind) =
				(uint32_t)i;
	}
	return true;
}

static uint32_t push(struct tickmap_stacks *stacks, uint32_t parent,
		     uint64_t avma, uint8_t kind)
{
	struct tickmap_stack *stack = stacks->all.count < UINT32_MAX - 1
					      ? tickmap_vec_push(&stacks->all)
					      : NULL;

	if (!stack)
		return UINT32_MAX;
	*stack = (struct tickmap_stack) { .avma = avma,
					  .parent = parent,
					  .kind = kind };
	return (uint32_t)(stacks->all.count - 1);
}

static uint32_t add_further(struct tickmap_stacks *stacks, uint32_t parent,
			    uint64_t avma, uint8_t kind)
{
	uint32_t *place, added;

	if (stacks->index_count * 3 >= stacks->index_capacity * 2 &&
	    !grow_index(stacks))
		return UINT32_MAX;
	place = place_of(stacks, parent, avma, kind);
	if (*place)
		return *place;
	added = push(stacks, parent, avma, kind);
	if (added == UINT32_MAX)
		return UINT32_MAX;
	stacks->index_count++;
	return *place = added;
}

uint32_t tickmap_stacks_add(struct tickmap_stacks *stacks, uint32_t parent,
			    uint64_t avma, enum tickmap_stack_kind kind)
{
	if (!stacks->all.count &&
	    push(stacks, 0, 0, TICKMAP_STACK_PROCESS) == UINT32_MAX)
		return UINT32_MAX;
	uint32_t child = stacks->all.items[parent].child;
	if (child &&
	    is_like(&stacks->all.items[child], parent, avma, (uint8_t)kind))
		return child;
	if (child)
		return add_further(stacks, parent, avma, (uint8_t)kind);
	child = push(stacks, parent, avma, (uint8_t)kind);
	if (child != UINT32_MAX)
		stacks->all.items[parent].child = child;
	return child;
}

bool tickmap_stacks_is_first(const struct tickmap_stacks *stacks,
			     const struct tickmap_stack *s)
{
	const struct tickmap_stack *above = &stacks->all.items[s->parent];

	if (above->kind != TICKMAP_STACK_PROCESS && !above->avma)
		above = &stacks->all.items[above->parent];
	return above->kind == TICKMAP_STACK_PROCESS;
}

void tickmap_stacks_end(struct tickmap_stacks *stacks)
{
	free(stacks->index);
	stacks->index = NULL;
	stacks->index_count = stacks->index_capacity = 0;
	for (size_t i = 0; i < stacks->all.count; i++)
		stacks->all.items[i].node = 0;
}

void tickmap_stacks_free(struct tickmap_stacks *stacks)
{
	tickmap_vec_free(&stacks->all);
	free(stacks->index);
	*stacks = (struct tickmap_stacks) { 0 };
}

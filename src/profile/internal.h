/* SPDX-License-Identifier: MIT */
/* What a profile keeps besides what its readers see. */
#ifndef TICKMAP_PROFILE_INTERNAL_H
#define TICKMAP_PROFILE_INTERNAL_H

#include "base/table.h"
#include "profile/profile.h"
#include "profile/stacks.h"

struct tickmap_profile_private {
	struct tickmap_profile seen; /* first: the two are one pointer */
	/* Open addressing -> frame + 1: each one; the first of each name in a
	 * file. */
	uint32_t *frame_index, *line_index;
	size_t frame_index_capacity; /* of both */
	/* By frame, if it is such a first one: others have another line. */
	TICKMAP_VEC(uint8_t) lines_differ;
	/* By node: its first child, or 0. */
	TICKMAP_VEC(uint32_t) first_child;
	/* All but first children, which most nodes are: parent and frame, open
	 * addressing -> node; 0: free. */
	uint32_t *node_index;
	size_t node_index_count, node_index_capacity;
	/* By node: is it, or is something above it, a Python frame? */
	TICKMAP_VEC(uint8_t) in_python;
	/* Only where addresses are kept. */
	struct tickmap_stacks stacks;
	TICKMAP_VEC(uint32_t) stack_of_sample;
};

static inline const struct tickmap_profile_private *
tickmap_profile_private(const struct tickmap_profile *profile)
{
	return (const struct tickmap_profile_private *)profile;
}

/* Of the sample that was added last. */
bool tickmap_profile_keep_stack(struct tickmap_profile *profile,
				uint32_t stack);

/* What those numbers count in; they move. */
void tickmap_profile_keep_stacks(struct tickmap_profile *profile,
				 struct tickmap_stacks *stacks);

/* By node: how many samples lie at or below it. calloced; NULL: no memory.
 * `samples` NULL: all. */
uint64_t *tickmap_profile_weights(const struct tickmap_profile *profile,
				  const uint32_t *samples, size_t sample_count);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Call stacks prepared for showing: the interpreter's frames taken out, equal
 * ones merged, children in the order they are shown.
 */
#ifndef TICKMAP_OUTPUT_TREE_H
#define TICKMAP_OUTPUT_TREE_H

#include "base/vec.h"
#include "profile/profile.h"

/*
 * A copy of a profile's stacks in which stacks that hold a Python frame have
 * none of the interpreter's: what ran in them counts for the Python frame above
 * them. It shares the rest with the profile, and the indices of samples stay.
 * Only public fields may be used. Free with tickmap_folded_free. A profile
 * without such stacks is its own view: nothing is copied.
 */
int tickmap_folded_view(const struct tickmap_profile *profile,
			struct tickmap_profile *ret_view);
void tickmap_folded_free(struct tickmap_profile *view);

struct tickmap_tree_node {
	uint32_t parent; /* less than the node's own index; 0 is the root */
	uint32_t key;
	uint32_t first, next; /* child, sibling; 0: none */
	uint32_t laps;	      /* deepest recursion folded into it; 1: none */
	uint64_t self, total; /* samples */
};

struct tickmap_tree {
	TICKMAP_VEC(struct tickmap_tree_node) nodes;
};

struct tickmap_tree_options {
	const uint32_t *keys;	 /* by frame: equal ones merge */
	const uint32_t *samples; /* indices, or NULL: all */
	size_t sample_count;
	/* What repeats the calls just before it (f, f or f, g, f, g) goes into
	 * them. */
	bool fold_recursion;
	/* By key: calls from these are not followed, what is below counts for
	 * them. NULL: all are followed. */
	const bool *light;
	/* Children by the text of their keys (ids in these strings); NULL: the
	 * heaviest first, equal ones by key. */
	const struct tickmap_strings *order;
};

int tickmap_tree_build(const struct tickmap_profile *profile,
		       const struct tickmap_tree_options *options,
		       struct tickmap_tree *ret_tree);
void tickmap_tree_free(struct tickmap_tree *tree);

#endif

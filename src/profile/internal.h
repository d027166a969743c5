/* SPDX-License-Identifier: MIT */
/* What a profile keeps besides what its readers see. */
#ifndef TICKMAP_PROFILE_INTERNAL_H
#define TICKMAP_PROFILE_INTERNAL_H

#include "base/table.h"
#include "profile/profile.h"

struct tickmap_profile_private {
	struct tickmap_profile seen;	  /* first: the two are one pointer */
	struct tickmap_table frame_index; /* hash, probed upwards -> frame */
	struct tickmap_table node_index;  /* parent << 32 | frame -> node */
	/* Hash of name and file, probed upwards -> its first frame << 1 | do
	 * different lines share it. */
	struct tickmap_table line_index;
	/* By node: is it, or is something above it, a Python frame? */
	TICKMAP_VEC(uint8_t) in_python;
};

static inline const struct tickmap_profile_private *
tickmap_profile_private(const struct tickmap_profile *profile)
{
	return (const struct tickmap_profile_private *)profile;
}

/* By node: how many samples lie at or below it. calloced; NULL: no memory.
 * `samples` NULL: all. */
uint64_t *tickmap_profile_weights(const struct tickmap_profile *profile,
				  const uint32_t *samples, size_t sample_count);

#endif

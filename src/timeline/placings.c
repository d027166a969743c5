/* SPDX-License-Identifier: MIT */
#include "timeline/placings.h"

#include "platform/platform.h"

#include <stdlib.h>

/* Of a plain one: itself. Of another one: `start` is its place among those. */
struct plain {
	uint64_t start;
	uint32_t more; /* bytes behind the first */
	uint32_t owner;
};

struct special {
	uint64_t owner, start, last, since, certain;
};

struct specials {
	uint64_t *are; /* a bit for each placing */
	struct special items[];
};

struct tickmap_placings {
	struct specials *specials; /* NULL: all are plain */
	struct plain plain[];
};

static bool is_plain(const struct tickmap_placing *placing)
{
	return placing->owner <= UINT32_MAX &&
	       placing->last - placing->start < UINT32_MAX &&
	       placing->since == placing->placed &&
	       placing->certain == placing->placed;
}

static bool add_specials(struct tickmap_placings *packed,
			 const struct tickmap_placing *placings, size_t count,
			 size_t specials)
{
	size_t at = 0;

	packed->specials = malloc(sizeof(*packed->specials) +
				  specials * sizeof(struct special));
	if (!packed->specials)
		return false;
	packed->specials->are = calloc(count / 64 + 1, sizeof(uint64_t));
	if (!packed->specials->are)
		return false;
	for (size_t i = 0; i < count; i++) {
		const struct tickmap_placing *placing = &placings[i];
		if (is_plain(placing))
			continue;
		packed->specials->are[i / 64] |= UINT64_C(1) << i % 64;
		packed->plain[i].start = at;
		packed->specials->items[at++] =
			(struct special) { .owner = placing->owner,
					   .start = placing->start,
					   .last = placing->last,
					   .since = placing->since,
					   .certain = placing->certain };
	}
	return true;
}

struct tickmap_placings *
tickmap_placings_pack(const struct tickmap_placing *placings, size_t count)
{
	struct tickmap_placings *packed = tickmap_platform_large_block(
		sizeof(*packed) + count * sizeof(packed->plain[0]));
	size_t specials = 0;

	if (!packed)
		return NULL;
	packed->specials = NULL;
	for (size_t i = 0; i < count; i++) {
		const struct tickmap_placing *placing = &placings[i];
		specials += !is_plain(placing);
		packed->plain[i] = (struct plain) {
			.start = placing->start,
			.more = (uint32_t)(placing->last - placing->start),
			.owner = (uint32_t)placing->owner,
		};
	}
	if (!specials || add_specials(packed, placings, count, specials))
		return packed;
	tickmap_placings_free(packed);
	return NULL;
}

void tickmap_placings_free(struct tickmap_placings *placings)
{
	if (!placings)
		return;
	if (placings->specials)
		free(placings->specials->are);
	free(placings->specials);
	free(placings);
}

struct tickmap_placing
tickmap_placings_get(const struct tickmap_placings *placings, uint32_t n,
		     uint64_t placed)
{
	const struct plain *plain = &placings->plain[n];
	const struct special *special;

	if (!placings->specials ||
	    !(placings->specials->are[n / 64] >> n % 64 & 1))
		return (struct tickmap_placing) { .owner = plain->owner,
						  .start = plain->start,
						  .last = plain->start +
							  plain->more,
						  .since = placed,
						  .placed = placed,
						  .certain = placed };
	special = &placings->specials->items[plain->start];
	return (struct tickmap_placing) { .owner = special->owner,
					  .start = special->start,
					  .last = special->last,
					  .since = special->since,
					  .placed = placed,
					  .certain = special->certain };
}

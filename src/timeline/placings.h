/* SPDX-License-Identifier: MIT */
/*
 * What the numbers of a sealed history stand for. Nearly all code is placed
 * once, at a time that is known, and has less than 4 GiB: that takes 16 bytes,
 * so that what a question reads stays in the caches.
 */
#ifndef TICKMAP_TIMELINE_PLACINGS_H
#define TICKMAP_TIMELINE_PLACINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One placing of an owner, or a hole. */
struct tickmap_placing {
	uint64_t owner;
	uint64_t start, last; /* of the whole, before cuts; both included */
	uint64_t since;	      /* when it was loaded */
	uint64_t placed;      /* when it came here: later, if moved */
	uint64_t certain;     /* when it surely had */
	bool is_hole;
};

struct tickmap_placings;

/* Keeps all but is_hole. NULL: out of memory. */
struct tickmap_placings *
tickmap_placings_pack(const struct tickmap_placing *placings, size_t count);
void tickmap_placings_free(struct tickmap_placings *placings);

/* Number `n` of them, which as the caller knows came to its place then. */
struct tickmap_placing
tickmap_placings_get(const struct tickmap_placings *placings, uint32_t n,
		     uint64_t placed);

#endif

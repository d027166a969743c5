/* SPDX-License-Identifier: MIT */
/*
 * What owns which address right now: disjoint half-open ranges, each with a
 * 64-bit owner. Setting a range takes the overlapped parts from their owners
 * and leaves the rest.
 */
#ifndef TICKMAP_TIMELINE_SEGMENTS_H
#define TICKMAP_TIMELINE_SEGMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tickmap_segment {
	uint64_t start, end; /* end 0: up to the top of the address space */
	uint64_t owner;
	uint64_t origin; /* where the owner's own range began: survives cuts */
};

struct tickmap_segments;

struct tickmap_segments *tickmap_segments_new(void);
void tickmap_segments_free(struct tickmap_segments *segments);
struct tickmap_segments *
tickmap_segments_clone(const struct tickmap_segments *segments);

/* Called with every part that loses its owner, even to an equal one. It must
 * not touch the segments. May be NULL. */
typedef void (*tickmap_segment_cut)(void *context,
				    const struct tickmap_segment *part);

/* [start, start + size) now belongs to owner. False: out of memory (nothing
 * changed). Size 0 changes nothing. O(log n) plus the parts cut. */
bool tickmap_segments_set(struct tickmap_segments *segments, uint64_t start,
			  uint64_t size, uint64_t owner,
			  tickmap_segment_cut cut, void *context);
bool tickmap_segments_clear(struct tickmap_segments *segments, uint64_t start,
			    uint64_t size, tickmap_segment_cut cut,
			    void *context);

void tickmap_segments_empty(struct tickmap_segments *segments);

/* The segment that holds the address, or NULL; valid until the next change. */
const struct tickmap_segment *
tickmap_segments_find(const struct tickmap_segments *segments,
		      uint64_t address);

/* The same, or else the next one above the address. */
const struct tickmap_segment *
tickmap_segments_next(const struct tickmap_segments *segments,
		      uint64_t address);

/* Every segment, lowest first. */
void tickmap_segments_each(const struct tickmap_segments *segments,
			   tickmap_segment_cut each, void *context);

size_t tickmap_segments_count(const struct tickmap_segments *segments);

#endif

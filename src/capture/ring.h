/* SPDX-License-Identifier: MIT */
/*
 * One kernel ring buffer, read in place: the kernel moves data_head, we move
 * data_tail. Records are multiples of 8 bytes, and so is the ring, so that a
 * u64 of a record never wraps while a record may.
 */
#ifndef TICKMAP_CAPTURE_RING_H
#define TICKMAP_CAPTURE_RING_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TICKMAP_RING_RECORD_MAX = 65536 };

struct tickmap_ring {
	struct perf_event_mmap_page *meta; /* NULL: not mapped */
	const uint8_t *data;
	uint64_t size; /* of data, a power of two */
	uint64_t head; /* as last looked at */
	uint64_t tail;
};

/* Maps the ring of an event; `size` is a power of two of at least a page.
 * Returns 0 or an errno. */
int tickmap_ring_map(struct tickmap_ring *ring, int fd, size_t size);
void tickmap_ring_unmap(struct tickmap_ring *ring);

/* Looks how far the kernel has written. */
void tickmap_ring_look(struct tickmap_ring *ring);

/* The header of the next record up to the last look; false if there is none. */
bool tickmap_ring_peek(struct tickmap_ring *ring,
		       struct perf_event_header *ret_header);

/* The u64 at `at` behind the start of the next record. */
uint64_t tickmap_ring_u64(const struct tickmap_ring *ring, size_t at);

/* The next record's bytes in one piece, through `bounce` if it wraps. */
const uint8_t *tickmap_ring_record(const struct tickmap_ring *ring, size_t size,
				   uint8_t bounce[TICKMAP_RING_RECORD_MAX]);

/* Gives the next record's room back to the kernel. */
void tickmap_ring_consume(struct tickmap_ring *ring, size_t size);

#endif

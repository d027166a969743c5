/* SPDX-License-Identifier: MIT */
#include "capture/ring.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int tickmap_ring_map(struct tickmap_ring *ring, int fd, size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *map = mmap(NULL, page + size, PROT_READ | PROT_WRITE, MAP_SHARED,
			 fd, 0);

	if (map == MAP_FAILED)
		return errno;
	ring->meta = map;
	ring->data = (const uint8_t *)map + page;
	ring->size = size;
	ring->head = 0;
	ring->tail = 0;
	return 0;
}

void tickmap_ring_unmap(struct tickmap_ring *ring)
{
	if (ring->meta)
		munmap(ring->meta,
		       (size_t)sysconf(_SC_PAGESIZE) + (size_t)ring->size);
	memset(ring, 0, sizeof(*ring));
}

void tickmap_ring_look(struct tickmap_ring *ring)
{
	/* Pairs with the kernel's store of data_head behind the records. */
	ring->head = __atomic_load_n(&ring->meta->data_head, __ATOMIC_ACQUIRE);
}

uint64_t tickmap_ring_u64(const struct tickmap_ring *ring, size_t at)
{
	uint64_t v;

	memcpy(&v, ring->data + ((ring->tail + at) & (ring->size - 1)),
	       sizeof(v));
	return v;
}

bool tickmap_ring_peek(struct tickmap_ring *ring,
		       struct perf_event_header *ret_header)
{
	uint64_t left = ring->head - ring->tail;
	uint64_t first;

	if (!left)
		return false;
	first = tickmap_ring_u64(ring, 0);
	memcpy(ret_header, &first, sizeof(first));
	if (ret_header->size >= sizeof(first) && ret_header->size % 8 == 0 &&
	    ret_header->size <= left)
		return true;
	/* Not written by a kernel that keeps its word: go on behind it. */
	tickmap_ring_consume(ring, (size_t)left);
	return false;
}

const uint8_t *tickmap_ring_record(const struct tickmap_ring *ring, size_t size,
				   uint8_t bounce[TICKMAP_RING_RECORD_MAX])
{
	size_t at = (size_t)(ring->tail & (ring->size - 1));
	size_t straight = (size_t)ring->size - at;

	if (size <= straight)
		return ring->data + at;
	memcpy(bounce, ring->data + at, straight);
	memcpy(bounce + straight, ring->data, size - straight);
	return bounce;
}

void tickmap_ring_consume(struct tickmap_ring *ring, size_t size)
{
	ring->tail += size;
	/* Pairs with the kernel's read of data_tail before it overwrites. */
	__atomic_store_n(&ring->meta->data_tail, ring->tail, __ATOMIC_RELEASE);
}

/* SPDX-License-Identifier: MIT */
/* A hash table from 64-bit keys to 64-bit values. Zeroed means empty. */
#ifndef TICKMAP_BASE_TABLE_H
#define TICKMAP_BASE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tickmap_table_slot {
	uint64_t key;
	uint64_t value;
};

struct tickmap_table {
	struct tickmap_table_slot *slots;
	uint64_t *used;	 /* a bit for each slot */
	size_t capacity; /* a power of two, or 0 */
	size_t count;
};

static inline bool tickmap_table_is_used(const struct tickmap_table *table,
					 size_t slot)
{
	return table->used[slot / 64] >> slot % 64 & 1;
}

/* The value's place, valid until the next put; NULL if the key is absent. */
uint64_t *tickmap_table_get(const struct tickmap_table *table, uint64_t key);

/* The value's place, made (as 0) if absent; NULL when out of memory. */
uint64_t *tickmap_table_put(struct tickmap_table *table, uint64_t key);

void tickmap_table_free(struct tickmap_table *table);

/* A full-avalanche mix of 64 bits, for other hashes. */
uint64_t tickmap_mix(uint64_t x);

/* Hash of some bytes. */
uint64_t tickmap_hash(const void *bytes, size_t size);

#endif

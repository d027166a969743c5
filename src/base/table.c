/* SPDX-License-Identifier: MIT */
#include "base/table.h"

#include <stdlib.h>
#include <string.h>

uint64_t tickmap_mix(uint64_t x)
{
	x ^= x >> 33;
	x *= UINT64_C(0xff51afd7ed558ccd);
	x ^= x >> 33;
	x *= UINT64_C(0xc4ceb9fe1a85ec53);
	x ^= x >> 33;
	return x;
}

uint64_t tickmap_hash(const void *bytes, size_t size)
{
	const unsigned char *at = bytes;
	uint64_t hash = tickmap_mix(size + UINT64_C(0x9e3779b97f4a7c15));

	for (; size >= 8; at += 8, size -= 8) {
		uint64_t word;
		memcpy(&word, at, 8);
		hash = tickmap_mix(hash ^ word);
	}
	if (size) {
		uint64_t word = 0;
		memcpy(&word, at, size);
		hash = tickmap_mix(hash ^ word);
	}
	return hash;
}

static size_t place_of(const struct tickmap_table *table, uint64_t key)
{
	size_t mask = table->capacity - 1;
	size_t i = (size_t)tickmap_mix(key) & mask;

	while (tickmap_table_is_used(table, i) && table->slots[i].key != key)
		i = (i + 1) & mask;
	return i;
}

static void use(struct tickmap_table *table, size_t place,
		struct tickmap_table_slot slot)
{
	table->used[place / 64] |= UINT64_C(1) << place % 64;
	table->slots[place] = slot;
}

uint64_t *tickmap_table_get(const struct tickmap_table *table, uint64_t key)
{
	if (!table->capacity)
		return NULL;
	size_t place = place_of(table, key);
	return tickmap_table_is_used(table, place) ? &table->slots[place].value
						   : NULL;
}

static bool grow(struct tickmap_table *table)
{
	struct tickmap_table next = {
		.capacity = table->capacity ? table->capacity * 2 : 64,
		.count = table->count,
	};

	next.slots = calloc(next.capacity, sizeof(*next.slots));
	next.used = calloc(next.capacity / 64, sizeof(*next.used));
	if (!next.slots || !next.used) {
		tickmap_table_free(&next);
		return false;
	}
	for (size_t i = 0; i < table->capacity; i++) {
		if (tickmap_table_is_used(table, i))
			use(&next, place_of(&next, table->slots[i].key),
			    table->slots[i]);
	}
	tickmap_table_free(table);
	*table = next;
	return true;
}

uint64_t *tickmap_table_put(struct tickmap_table *table, uint64_t key)
{
	uint64_t *value = tickmap_table_get(table, key);

	if (value)
		return value;
	if ((table->count + 1) * 4 > table->capacity * 3 && !grow(table))
		return NULL;
	size_t place = place_of(table, key);
	use(table, place, (struct tickmap_table_slot) { .key = key });
	table->count++;
	return &table->slots[place].value;
}

void tickmap_table_free(struct tickmap_table *table)
{
	free(table->slots);
	free(table->used);
	*table = (struct tickmap_table) { 0 };
}

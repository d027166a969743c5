/* SPDX-License-Identifier: MIT */
#include "base/strings.h"

#include "base/arena.h"
#include "base/table.h"
#include "base/vec.h"

#include <string.h>

struct entry {
	const char *bytes;
	size_t length;
	tickmap_str next; /* another string with the same hash; 0 ends */
};

struct tickmap_strings {
	struct tickmap_arena arena;
	struct tickmap_table by_hash; /* hash -> first id */
	TICKMAP_VEC(struct entry) entries;
	int failed;
};

struct tickmap_strings *tickmap_strings_new(void)
{
	struct tickmap_strings *strings = calloc(1, sizeof(*strings));
	if (!strings)
		return NULL;
	struct entry *empty = tickmap_vec_push(&strings->entries);
	if (!empty) {
		free(strings);
		return NULL;
	}
	*empty = (struct entry) { .bytes = "" };
	return strings;
}

void tickmap_strings_free(struct tickmap_strings *strings)
{
	if (!strings)
		return;
	tickmap_arena_free(&strings->arena);
	tickmap_table_free(&strings->by_hash);
	tickmap_vec_free(&strings->entries);
	free(strings);
}

tickmap_str tickmap_intern(struct tickmap_strings *strings, const char *bytes,
			   size_t length)
{
	if (!length)
		return 0;
	uint64_t *first = tickmap_table_put(&strings->by_hash,
					    tickmap_hash(bytes, length));
	if (!first) {
		strings->failed = 1;
		return 0;
	}
	for (tickmap_str id = (tickmap_str)*first; id;
	     id = strings->entries.items[id].next) {
		const struct entry *e = &strings->entries.items[id];
		if (e->length == length && !memcmp(e->bytes, bytes, length))
			return id;
	}
	const char *copy = tickmap_arena_copy(&strings->arena, bytes, length);
	struct entry *entry = copy && strings->entries.count < UINT32_MAX
				      ? tickmap_vec_push(&strings->entries)
				      : NULL;
	if (!entry) {
		strings->failed = 1;
		return 0;
	}
	*entry = (struct entry) { .bytes = copy,
				  .length = length,
				  .next = (tickmap_str)*first };
	*first = strings->entries.count - 1;
	return (tickmap_str)*first;
}

tickmap_str tickmap_intern_cstr(struct tickmap_strings *strings,
				const char *text)
{
	return tickmap_intern(strings, text, strlen(text));
}

const char *tickmap_string(const struct tickmap_strings *strings,
			   tickmap_str id, size_t *ret_length)
{
	const struct entry *e =
		&strings->entries.items[id < strings->entries.count ? id : 0];
	if (ret_length)
		*ret_length = e->length;
	return e->bytes;
}

size_t tickmap_strings_count(const struct tickmap_strings *strings)
{
	return strings->entries.count;
}

int tickmap_strings_failed(const struct tickmap_strings *strings)
{
	return strings->failed;
}

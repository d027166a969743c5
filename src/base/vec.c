/* SPDX-License-Identifier: MIT */
#include "base/vec.h"

#include <string.h>

/* Many small arrays hold one or two elements. */
enum { FIRST_BYTES = 24 };

bool tickmap_vec_grow(void *items, size_t *capacity, size_t want,
		      size_t element)
{
	size_t next = *capacity + *capacity / 2 + 1;
	size_t bytes;
	void *old, *grown;

	if (!*capacity)
		next = element < FIRST_BYTES ? FIRST_BYTES / element : 1;
	if (next < want)
		next = want;
	if (__builtin_mul_overflow(next, element, &bytes))
		return false;
	/* `items` points at a pointer of some type: copy its representation. */
	memcpy(&old, items, sizeof(old));
	grown = realloc(old, bytes);
	if (!grown)
		return false;
	memcpy(items, &grown, sizeof(grown));
	*capacity = next;
	return true;
}

void tickmap_vec_shrink(void *items, size_t *capacity, size_t count,
			size_t element)
{
	void *old, *fitting;

	if (!count || count == *capacity)
		return;
	memcpy(&old, items, sizeof(old));
	fitting = realloc(old, count * element);
	if (!fitting)
		return;
	memcpy(items, &fitting, sizeof(fitting));
	*capacity = count;
}

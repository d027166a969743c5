/* SPDX-License-Identifier: MIT */
#include "base/vec.h"

#include <string.h>

bool tickmap_vec_grow(void *items, size_t *capacity, size_t want,
		      size_t element)
{
	size_t next = *capacity < 8 ? 8 : *capacity + *capacity / 2;
	size_t bytes;
	void *old, *grown;

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

/* SPDX-License-Identifier: MIT */
#include "base/sort.h"

#include <stdlib.h>
#include <string.h>

/* Least significant byte first; bytes that are the same everywhere cost
 * nothing, and of addresses most are. */
bool tickmap_sort_u64(uint64_t *values, size_t count)
{
	uint64_t *from = values, *to, *spare;
	uint64_t differ = 0;

	if (count < 2)
		return true;
	to = spare = malloc(count * sizeof(*to));
	if (!to)
		return false;
	for (size_t i = 0; i < count; i++)
		differ |= values[i] ^ values[0];
	for (unsigned shift = 0; shift < 64; shift += 8) {
		size_t places[257] = { 0 };
		if (!(differ >> shift & 0xff))
			continue;
		for (size_t i = 0; i < count; i++)
			places[(from[i] >> shift & 0xff) + 1]++;
		for (unsigned b = 1; b < 256; b++)
			places[b] += places[b - 1];
		for (size_t i = 0; i < count; i++)
			to[places[from[i] >> shift & 0xff]++] = from[i];
		uint64_t *swap = from;
		from = to;
		to = swap;
	}
	if (from != values)
		memcpy(values, from, count * sizeof(*values));
	free(spare);
	return true;
}

/* SPDX-License-Identifier: MIT */
#include "unwind/x86_64/call.h"

/* Bytes of FF /2 with this ModRM byte (and SIB behind it); 0: no such call. */
static size_t indirect_length(const uint8_t *at)
{
	unsigned mod = at[1] >> 6, reg = at[1] >> 3 & 7, rm = at[1] & 7;
	size_t length = 2;

	if (at[0] != 0xff || reg != 2)
		return 0;
	if (mod == 3)
		return length;
	if (rm == 4) {
		length++;
		if (mod == 0 && (at[2] & 7) == 5)
			length += 4;
	} else if (mod == 0 && rm == 5) {
		length += 4;
	}
	if (mod == 1)
		length++;
	else if (mod == 2)
		length += 4;
	return length;
}

bool tickmap_x86_64_ends_with_call(const uint8_t *bytes, size_t size)
{
	const uint8_t *end = bytes + size;

	if (size >= 5 && end[-5] == 0xe8)
		return true;
	for (size_t length = 2; length <= 7 && length <= size; length++) {
		const uint8_t *at = end - length;
		uint8_t window[3] = { at[0], at[1], length > 2 ? at[2] : 0 };
		if (indirect_length(window) == length)
			return true; /* a REX prefix before it says nothing */
	}
	return false;
}

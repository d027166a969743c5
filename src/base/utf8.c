/* SPDX-License-Identifier: MIT */
#include "base/utf8.h"

#include <stdint.h>

size_t tickmap_utf8_length(const char *bytes, size_t size)
{
	const unsigned char *b = (const unsigned char *)bytes;
	/* Smallest value that needs this many bytes: rules out overlong forms.
	 */
	static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t n;
	uint32_t value;

	if (!size)
		return 0;
	if (b[0] < 0x80)
		return 1;
	if (b[0] >= 0xc2 && b[0] < 0xe0)
		n = 2;
	else if (b[0] >= 0xe0 && b[0] < 0xf0)
		n = 3;
	else if (b[0] >= 0xf0 && b[0] < 0xf5)
		n = 4;
	else
		return 0;
	if (n > size)
		return 0;
	value = b[0] & (0xffu >> (n + 1));
	for (size_t i = 1; i < n; i++) {
		if ((b[i] & 0xc0) != 0x80)
			return 0;
		value = value << 6 | (b[i] & 0x3f);
	}
	if (value < smallest[n] || value > 0x10ffff ||
	    (value >= 0xd800 && value < 0xe000))
		return 0;
	return n;
}

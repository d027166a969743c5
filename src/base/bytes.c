/* SPDX-License-Identifier: MIT */
#include "base/bytes.h"

enum { LEB_BYTES_MAX = 10 };

uint64_t tickmap_uleb(struct tickmap_bytes *b)
{
	uint64_t value = 0;
	for (unsigned i = 0; i < LEB_BYTES_MAX; i++) {
		uint8_t byte = tickmap_u8(b);
		value |= (uint64_t)(byte & 0x7f) << (7 * i);
		if (!(byte & 0x80))
			break;
	}
	return value;
}

int64_t tickmap_sleb(struct tickmap_bytes *b)
{
	uint64_t value = 0;
	for (unsigned i = 0; i < LEB_BYTES_MAX; i++) {
		uint8_t byte = tickmap_u8(b);
		unsigned shift = 7 * i;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte & 0x80)
			continue;
		shift += 7;
		if ((byte & 0x40) && shift < 64)
			value |= ~UINT64_C(0) << shift;
		break;
	}
	return (int64_t)value;
}

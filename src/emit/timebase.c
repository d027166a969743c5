/* SPDX-License-Identifier: MIT */
/* Ticks into nanoseconds, the same on every platform so that any can test it.
 */
#include "internal.h"

/*
 * ticks * numer needs up to 96 bits: with a numer of 10^9, 64 would overflow
 * after five minutes of a 60 MHz clock. Long division by two halves keeps it
 * exact without a 128-bit type, which not every compiler has; the result wraps
 * only where it does not fit itself.
 */
uint64_t tickmap_emit_scale_ticks(uint64_t ticks, uint32_t numer,
				  uint32_t denom)
{
	uint64_t low;
	uint64_t high;

	if (numer == denom || !denom)
		return ticks;
	low = (ticks & UINT32_MAX) * numer;
	high = (ticks >> 32) * numer + (low >> 32);
	low &= UINT32_MAX;
	return ((high / denom) << 32) + (((high % denom) << 32) | low) / denom;
}

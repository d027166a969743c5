/* SPDX-License-Identifier: MIT */
/* Bytes of a record under construction, in the producer's byte order. */
#include "internal.h"

#include <string.h>

static uint8_t *out_reserve(struct emit_out *out, size_t size)
{
	uint8_t *at = out->base + out->used;

	if (out->full || size > out->size - out->used) {
		out->full = true;
		return NULL;
	}
	out->used += size;
	return at;
}

void tickmap_emit_put(struct emit_out *out, const void *bytes, size_t size)
{
	uint8_t *at = out_reserve(out, size);

	if (at && size)
		memcpy(at, bytes, size);
}

void tickmap_emit_put_zeros(struct emit_out *out, size_t size)
{
	uint8_t *at = out_reserve(out, size);

	if (at)
		memset(at, 0, size);
}

void tickmap_emit_put_u32(struct emit_out *out, uint32_t value)
{
	tickmap_emit_put(out, &value, sizeof(value));
}

void tickmap_emit_put_u64(struct emit_out *out, uint64_t value)
{
	tickmap_emit_put(out, &value, sizeof(value));
}

/*
 * Bytes below 0x20 and 0x7f become '?', one for one; all others stay, so that
 * UTF-8 does. No text at all becomes one '?': a map line must have a name, and
 * a name is what makes a function visible.
 */
void tickmap_emit_put_text(struct emit_out *out, const char *text,
			   size_t length)
{
	uint8_t *at = out_reserve(out, length ? length : 1);

	if (!at)
		return;
	if (!length)
		*at = '?';
	for (size_t i = 0; i < length; i++) {
		uint8_t byte = (uint8_t)text[i];

		at[i] = byte < 0x20 || byte == 0x7f ? '?' : byte;
	}
}

/* SPDX-License-Identifier: MIT */
/*
 * The one way to read bytes that came from outside: a cursor that checks every
 * read, latches the first one that does not fit and returns zeros from then on,
 * so that parsers stay straight-line and ask once, at the end.
 */
#ifndef TICKMAP_BASE_BYTES_H
#define TICKMAP_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct tickmap_bytes {
	const uint8_t *base; /* borrowed */
	size_t size;
	size_t pos;
	size_t failed_at; /* position of the first read that did not fit */
	bool failed;
	bool swap; /* the input's byte order is not ours */
};

static inline struct tickmap_bytes tickmap_bytes_of(const void *base,
						    size_t size)
{
	struct tickmap_bytes b = { .base = base, .size = size };
	return b;
}

static inline size_t tickmap_bytes_left(const struct tickmap_bytes *b)
{
	return b->failed ? 0 : b->size - b->pos;
}

/* The next n bytes, or NULL (and the cursor is failed) if they are not there.
 */
static inline const uint8_t *tickmap_take(struct tickmap_bytes *b, size_t n)
{
	if (b->failed || n > b->size - b->pos) {
		if (!b->failed)
			b->failed_at = b->pos;
		b->failed = true;
		return NULL;
	}
	if (!n) /* also where there is no memory at all */
		return b->base ? b->base + b->pos : (const uint8_t *)"";
	const uint8_t *at = b->base + b->pos;
	b->pos += n;
	return at;
}

static inline void tickmap_seek(struct tickmap_bytes *b, size_t pos)
{
	if (b->failed || pos > b->size) {
		if (!b->failed)
			b->failed_at = b->pos;
		b->failed = true;
		return;
	}
	b->pos = pos;
}

/* A cursor over the next n bytes; failed from the start if they are not there.
 */
static inline struct tickmap_bytes tickmap_sub(struct tickmap_bytes *b,
					       size_t n)
{
	const uint8_t *at = tickmap_take(b, n);
	struct tickmap_bytes sub = {
		.base = at, .size = at ? n : 0, .failed = !at, .swap = b->swap
	};
	return sub;
}

static inline uint8_t tickmap_u8(struct tickmap_bytes *b)
{
	const uint8_t *at = tickmap_take(b, 1);
	return at ? *at : 0;
}

static inline uint16_t tickmap_u16(struct tickmap_bytes *b)
{
	uint16_t v = 0;
	const uint8_t *at = tickmap_take(b, sizeof(v));
	if (at)
		memcpy(&v, at, sizeof(v));
	return b->swap ? __builtin_bswap16(v) : v;
}

static inline uint32_t tickmap_u32(struct tickmap_bytes *b)
{
	uint32_t v = 0;
	const uint8_t *at = tickmap_take(b, sizeof(v));
	if (at)
		memcpy(&v, at, sizeof(v));
	return b->swap ? __builtin_bswap32(v) : v;
}

static inline uint64_t tickmap_u64(struct tickmap_bytes *b)
{
	uint64_t v = 0;
	const uint8_t *at = tickmap_take(b, sizeof(v));
	if (at)
		memcpy(&v, at, sizeof(v));
	return b->swap ? __builtin_bswap64(v) : v;
}

/* A NUL-terminated string inside the input, or NULL. `ret_length` may be NULL.
 */
static inline const char *tickmap_cstr(struct tickmap_bytes *b,
				       size_t *ret_length)
{
	size_t left = tickmap_bytes_left(b);
	const uint8_t *at = left ? b->base + b->pos : NULL;
	const uint8_t *nul = at ? memchr(at, 0, left) : NULL;
	if (!nul) {
		tickmap_take(b, left + 1);
		return NULL;
	}
	size_t length = (size_t)(nul - at);
	b->pos += length + 1;
	if (ret_length)
		*ret_length = length;
	return (const char *)at;
}

/* LEB128. Bits beyond 64 are dropped; at most 10 bytes are read. */
uint64_t tickmap_uleb(struct tickmap_bytes *b);
int64_t tickmap_sleb(struct tickmap_bytes *b);

#endif

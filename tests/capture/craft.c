/* SPDX-License-Identifier: MIT */
#include "craft.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void craft_bytes(struct craft *c, const void *bytes, size_t size)
{
	if (size > sizeof(c->bytes) - c->count)
		abort();
	if (size)
		memcpy(c->bytes + c->count, bytes, size);
	c->count += size;
}

void craft_u16(struct craft *c, uint16_t v)
{
	if (c->swap)
		v = __builtin_bswap16(v);
	craft_bytes(c, &v, sizeof(v));
}

void craft_u32(struct craft *c, uint32_t v)
{
	if (c->swap)
		v = __builtin_bswap32(v);
	craft_bytes(c, &v, sizeof(v));
}

void craft_u64(struct craft *c, uint64_t v)
{
	if (c->swap)
		v = __builtin_bswap64(v);
	craft_bytes(c, &v, sizeof(v));
}

void craft_text(struct craft *c, const char *text, size_t padded)
{
	size_t size = strlen(text) + 1;

	craft_bytes(c, text, size);
	for (; size < padded; size++)
		craft_bytes(c, "", 1);
}

size_t craft_record(struct craft *c, uint32_t type, uint16_t misc)
{
	size_t at = c->count;

	craft_u32(c, type);
	craft_u16(c, misc);
	craft_u16(c, 0);
	return at;
}

void craft_record_end(struct craft *c, size_t record)
{
	size_t end = c->count;

	c->count = record + 6;
	craft_u16(c, (uint16_t)(end - record));
	c->count = end;
}

/* Bit-fields of a big-endian machine begin at the top. */
static uint64_t flags_word(const struct craft *c, uint64_t flags)
{
	bool host_is_big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
	uint64_t reversed = 0;

	if (host_is_big == c->swap)
		return flags;
	for (unsigned i = 0; i < 64; i++)
		if (flags & UINT64_C(1) << i)
			reversed |= UINT64_C(1) << (63 - i);
	return reversed;
}

static void put_attr(struct craft *c, const struct craft_attr *attr)
{
	size_t start = c->count;

	craft_u32(c, attr->type);
	craft_u32(c, attr->size);
	craft_u64(c, attr->config);
	craft_u64(c, 999);
	craft_u64(c, attr->sample_type);
	craft_u64(c, 0);
	craft_u64(c, flags_word(c, attr->flags));
	while (c->count < start + attr->size)
		craft_u32(c, 0);
}

size_t craft_begin(struct craft *c, const struct craft_attr *attrs,
		   size_t count)
{
	size_t entry = attrs[0].size + 16;
	size_t ids_at = 104 + count * entry;
	size_t data_at = ids_at + count * sizeof(attrs->ids);

	craft_u64(c, UINT64_C(0x32454c4946524550));
	craft_u64(c, 104);
	craft_u64(c, entry);
	craft_u64(c, 104);
	craft_u64(c, count * entry);
	craft_u64(c, data_at);
	size_t data_size_at = c->count;
	for (unsigned i = 0; i < 7; i++)
		craft_u64(c, 0);
	for (size_t i = 0; i < count; i++) {
		put_attr(c, &attrs[i]);
		craft_u64(c, ids_at + i * sizeof(attrs->ids));
		craft_u64(c, sizeof(attrs->ids));
	}
	for (size_t i = 0; i < count; i++) {
		craft_u64(c, attrs[i].ids[0]);
		craft_u64(c, attrs[i].ids[1]);
	}
	return data_size_at;
}

void craft_finish(struct craft *c, size_t data_size_at)
{
	size_t end = c->count;
	uint64_t data_at;

	memcpy(&data_at, c->bytes + data_size_at - 8, sizeof(data_at));
	if (c->swap)
		data_at = __builtin_bswap64(data_at);
	c->count = data_size_at;
	craft_u64(c, end - data_at);
	c->count = end;
}

char *craft_save(const struct craft *c, const char *name)
{
	const char *dir = getenv("TMPDIR");
	char *path;

	if (asprintf(&path, "%s/tickmap-%s-%d.data", dir ? dir : "/tmp", name,
		     (int)getpid()) < 0)
		abort();
	FILE *file = fopen(path, "wb");
	if (!file || fwrite(c->bytes, 1, c->count, file) != c->count ||
	    fclose(file))
		abort();
	return path;
}

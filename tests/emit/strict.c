/* SPDX-License-Identifier: MIT */
#include "strict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LINES ((size_t)1 << 17)

uint8_t *strict_slurp(const char *path, size_t *ret_size)
{
	FILE *file = fopen(path, "re");
	size_t room = 1 << 16;
	uint8_t *bytes = malloc(room);

	*ret_size = 0;
	if (!file || !bytes) {
		free(bytes);
		if (file)
			fclose(file);
		return NULL;
	}
	for (;;) {
		size_t n = fread(bytes + *ret_size, 1, room - *ret_size, file);

		*ret_size += n;
		if (!n)
			break;
		if (*ret_size == room) {
			room *= 2;
			bytes = realloc(bytes, room);
			if (!bytes)
				abort();
		}
	}
	fclose(file);
	return bytes;
}

static uint32_t u32(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static uint64_t u64(const uint8_t *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static bool zeros(const uint8_t *at, const uint8_t *end)
{
	for (; at < end; at++) {
		if (*at)
			return false;
	}
	return true;
}

static const char *read_debug(struct strict_dump *dump, size_t *used,
			      struct strict_code *next, const uint8_t *at,
			      const uint8_t *end)
{
	uint64_t count = u64(at + 24);

	if (next->lines)
		return "two debug records for one code";
	if (count > MAX_LINES - *used)
		return "too many lines for this reader";
	next->addr = u64(at + 16);
	next->lines = dump->lines + *used;
	next->line_count = count;
	at += 32;
	for (uint64_t i = 0; i < count; i++) {
		struct strict_line *line = &dump->lines[(*used)++];
		const uint8_t *nul;

		if (end - at < 17)
			return "a line entry exceeds its record";
		line->addr = u64(at);
		line->line = u32(at + 8);
		line->column = u32(at + 12);
		line->file = (const char *)at + 16;
		nul = memchr(at + 16, 0, (size_t)(end - at) - 16);
		if (!nul)
			return "a file name is not terminated";
		at = nul + 1;
	}
	return end - at < 8 && zeros(at, end) ? NULL : "odd debug padding";
}

static const char *read_unwinding(struct strict_code *next, const uint8_t *at,
				  const uint8_t *end)
{
	if (next->unwinding)
		return "two unwinding records for one code";
	next->unwinding_size = u64(at + 16);
	next->eh_frame_hdr_size = u64(at + 24);
	next->mapped_size = u64(at + 32);
	next->unwinding = at + 40;
	if (next->unwinding_size > (uint64_t)(end - at) - 40)
		return "unwinding data exceed their record";
	at += 40 + next->unwinding_size;
	return end - at < 8 && zeros(at, end) ? NULL : "odd unwinding padding";
}

static const char *read_load(struct strict_code *next, const uint8_t *at,
			     uint32_t total)
{
	const uint8_t *end = at + total;
	const uint8_t *nul;

	if (next->lines && next->addr != u64(at + 32))
		return "the debug record is of another address";
	next->ns = u64(at + 8);
	next->pid = u32(at + 16);
	next->tid = u32(at + 20);
	next->addr = u64(at + 32);
	next->size = u64(at + 40);
	next->index = u64(at + 48);
	if (u64(at + 24) != next->addr)
		return "vma differs from the address";
	if (next->size > total - 57)
		return "the code exceeds its record";
	next->name = (const char *)at + 56;
	next->bytes = end - next->size;
	nul = memchr(at + 56, 0, total - 56);
	if (!nul || nul + 1 != next->bytes)
		return "the name does not end where the code begins";
	return NULL;
}

static const char *read_move(struct strict_dump *dump, const uint8_t *at)
{
	struct strict_move *move = &dump->moves[dump->move_count];

	if (dump->move_count == STRICT_MOVES)
		return "too many moves for this reader";
	move->old_addr = u64(at + 32);
	move->new_addr = u64(at + 40);
	move->size = u64(at + 48);
	move->index = u64(at + 56);
	if (u64(at + 24) != move->new_addr)
		return "vma differs from the new address";
	dump->move_count++;
	return NULL;
}

static const char *read_record(struct strict_dump *dump, const uint8_t *at,
			       uint32_t total, size_t *used_lines)
{
	static const uint32_t least[] = { 57, 64, 32, 16, 40 };
	struct strict_code *next = &dump->codes[dump->code_count];
	uint32_t id = u32(at);
	const char *why = NULL;

	if (dump->closed)
		return "a record behind the close record";
	if (id > 4)
		return "unknown record id";
	if (total < least[id])
		return "record too short";
	if (id && total % 8)
		return "record not padded to 8";
	if ((id == 1 || id == 3) && total != least[id])
		return "record too long";
	if ((id == 1 || id == 3) && (next->lines || next->unwinding))
		return "debug or unwinding data without their code";
	switch (id) {
	case 0:
		why = read_load(next, at, total);
		dump->code_count++;
		break;
	case 1:
		why = read_move(dump, at);
		break;
	case 2:
		why = read_debug(dump, used_lines, next, at, at + total);
		break;
	case 3:
		dump->closed = true;
		break;
	default:
		why = read_unwinding(next, at, at + total);
		break;
	}
	return why;
}

static int by_value(const void *a, const void *b)
{
	uint64_t left = u64(a);
	uint64_t right = u64(b);

	return (left > right) - (left < right);
}

static const char *check_indices(const struct strict_dump *dump)
{
	uint64_t *indices = calloc(dump->code_count + 1, sizeof(*indices));
	const char *why = NULL;

	if (!indices)
		abort();
	for (size_t i = 0; i < dump->code_count; i++)
		indices[i] = dump->codes[i].index;
	qsort(indices, dump->code_count, sizeof(*indices), by_value);
	for (size_t i = 1; i < dump->code_count; i++) {
		if (indices[i] == indices[i - 1])
			why = "a code index is used twice";
	}
	free(indices);
	return why;
}

static const char *read_header(struct strict_dump *dump)
{
	const uint8_t *at = dump->bytes;

	if (dump->size < 40)
		return "no header";
	if (u32(at) != 0x4A695444 || u32(at + 4) != 1 || u32(at + 8) != 40)
		return "bad magic, version or size";
	if (u32(at + 16) || u64(at + 32))
		return "reserved fields are not 0";
	dump->machine = u32(at + 12);
	dump->pid = u32(at + 20);
	dump->ns = u64(at + 24);
	return NULL;
}

const char *strict_read_dump(const char *path, bool may_be_cut,
			     struct strict_dump *dump)
{
	const char *why;
	uint64_t ns;
	size_t at = 40;
	size_t used_lines = 0;

	memset(dump, 0, sizeof(*dump));
	dump->bytes = strict_slurp(path, &dump->size);
	if (!dump->bytes)
		return "cannot read the file";
	dump->codes = calloc(dump->size / 57 + 2, sizeof(*dump->codes));
	dump->lines = calloc(MAX_LINES, sizeof(*dump->lines));
	if (!dump->codes || !dump->lines)
		abort();
	why = read_header(dump);
	ns = dump->ns;
	while (!why && at < dump->size) {
		size_t left = dump->size - at;
		uint32_t total = left < 16 ? 0 : u32(dump->bytes + at + 4);

		if (left < 16 || total > left) {
			dump->cut = true;
			return may_be_cut ? check_indices(dump)
					  : "the last record is cut";
		}
		if (u64(dump->bytes + at + 8) < ns)
			return "time runs backwards";
		ns = u64(dump->bytes + at + 8);
		why = read_record(dump, dump->bytes + at, total, &used_lines);
		at += total;
	}
	if (!why && (dump->codes[dump->code_count].lines ||
		     dump->codes[dump->code_count].unwinding)) {
		dump->cut = true;
		if (!may_be_cut)
			why = "debug or unwinding data without their code";
	}
	return why ? why : check_indices(dump);
}

void strict_free_dump(struct strict_dump *dump)
{
	free(dump->bytes);
	free(dump->codes);
	free(dump->lines);
}

/* Lower-case hex without prefix or leading zeros, then a blank. */
static char *read_hex(char *at, uint64_t *ret_value)
{
	char *start = at;

	*ret_value = 0;
	for (; *at && strchr("0123456789abcdef", *at); at++) {
		char digit[2] = { *at, 0 };

		*ret_value = *ret_value << 4 | strtoul(digit, NULL, 16);
	}
	if (at == start || at - start > 16 || *at != ' ' ||
	    (*start == '0' && at - start > 1))
		return NULL;
	return at + 1;
}

const char *strict_read_map(const char *path, bool may_be_cut,
			    struct strict_map *map)
{
	size_t size;
	size_t room;

	memset(map, 0, sizeof(*map));
	map->bytes = (char *)strict_slurp(path, &size);
	if (!map->bytes)
		return "cannot read the file";
	while (may_be_cut && size && map->bytes[size - 1] != '\n')
		size--;
	if (size && map->bytes[size - 1] != '\n')
		return "the last line is cut";
	room = size / 6 + 1;
	map->lines = calloc(room, sizeof(*map->lines));
	if (!map->lines)
		abort();
	for (char *at = map->bytes; at < map->bytes + size;) {
		char *end = memchr(at, '\n', (size_t)(map->bytes + size - at));
		struct strict_map_line *line = &map->lines[map->count];

		if (map->count == room)
			return "a line is too short";
		*end = '\0';
		if (strlen(at) != (size_t)(end - at))
			return "a NUL in a line";
		at = read_hex(at, &line->addr);
		if (at)
			at = read_hex(at, &line->size);
		if (!at || !*at)
			return "a line is not HEX SIZE NAME";
		line->name = at;
		map->count++;
		at = end + 1;
	}
	return NULL;
}

void strict_free_map(struct strict_map *map)
{
	free(map->bytes);
	free(map->lines);
}

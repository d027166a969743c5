/* SPDX-License-Identifier: MIT */
/*
 * The build id: a note of type 3 by "GNU". Notes are
 *
 *	u32 name size | u32 content size | u32 type | name, content, each padded
 */
#include "object/elf_internal.h"

#include <elf.h>
#include <string.h>

/* Notes of a core file may be large; a build id is found near the front. */
enum { NOTES_LIMIT = 64 * 1024 };

static void skip_padding(struct tickmap_bytes *b, size_t align)
{
	size_t over = b->pos & (align - 1);

	if (over)
		tickmap_take(b, align - over);
}

static bool find_in_notes(struct tickmap_elf *elf, uint64_t offset,
			  uint64_t size, uint64_t align)
{
	struct elf_piece piece;
	size_t pad = align == 8 ? 8 : 4;

	if (size > NOTES_LIMIT)
		size = NOTES_LIMIT;
	if (!tickmap_elf_read(elf, offset, size, &piece))
		return false;
	struct tickmap_bytes b = tickmap_elf_cursor(elf, &piece);
	while (tickmap_bytes_left(&b) && !elf->build_id_size) {
		uint32_t name_size = tickmap_u32(&b);
		uint32_t id_size = tickmap_u32(&b);
		uint32_t type = tickmap_u32(&b);
		const uint8_t *name = tickmap_take(&b, name_size);
		skip_padding(&b, pad);
		const uint8_t *id = tickmap_take(&b, id_size);
		if (name && id && id_size && type == NT_GNU_BUILD_ID &&
		    name_size == sizeof("GNU") &&
		    memcmp(name, "GNU", sizeof("GNU")) == 0) {
			size_t kept = sizeof(elf->build_id);
			if (id_size < kept)
				kept = id_size;
			memcpy(elf->build_id, id, kept);
			elf->build_id_size = kept;
		}
		skip_padding(&b, pad);
	}
	tickmap_elf_piece_free(&piece);
	return elf->build_id_size != 0;
}

/*
 * Segments first: they are read anyway, and this is where the kernel looks. In
 * a separate debug file only the sections say where the notes are.
 */
void tickmap_elf_find_build_id(struct tickmap_elf *elf)
{
	for (size_t i = 0; i < elf->segments.count; i++) {
		const struct elf_segment *s = &elf->segments.items[i];
		if (s->type == PT_NOTE &&
		    find_in_notes(elf, s->offset, s->file_size, s->align))
			return;
	}
	tickmap_elf_read_sections(elf);
	for (size_t i = 0; i < elf->sections.count; i++) {
		const struct elf_header_of_section *s = &elf->sections.items[i];
		if (s->type == SHT_NOTE &&
		    find_in_notes(elf, s->offset, s->size, s->align))
			return;
	}
}

size_t tickmap_elf_build_id(const struct tickmap_elf *elf, uint8_t ret_id[20])
{
	memcpy(ret_id, elf->build_id, elf->build_id_size);
	return elf->build_id_size;
}

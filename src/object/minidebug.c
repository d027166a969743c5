/* SPDX-License-Identifier: MIT */
/*
 * .gnu_debugdata: a small ELF file with the symbols that .dynsym lacks, packed
 * by xz ("MiniDebugInfo"). Fedora's and its relatives' programs carry it.
 */
#include "object/elf_internal.h"

#include <lzma.h>
#include <stdlib.h>

enum {
	MEMORY_LIMIT = 64 * 1024 * 1024, /* of the decoder */
	IMAGE_LIMIT = 64 * 1024 * 1024,
	FIRST_ROOM = 64 * 1024,
};

static bool unpack(lzma_stream *stream, uint8_t **ret_image, size_t *ret_size)
{
	uint8_t *image = NULL;
	size_t room = 0;
	lzma_ret rc = LZMA_OK;

	while (rc == LZMA_OK && room < IMAGE_LIMIT) {
		size_t more = room ? 2 * room : FIRST_ROOM;
		uint8_t *grown = realloc(image, more);
		if (!grown)
			break;
		image = grown;
		stream->next_out = image + room;
		stream->avail_out = more - room;
		room = more;
		rc = lzma_code(stream, LZMA_FINISH);
	}
	if (rc != LZMA_STREAM_END) {
		free(image);
		return false;
	}
	*ret_image = image;
	*ret_size = room - stream->avail_out;
	return true;
}

bool tickmap_minidebug(struct tickmap_elf *elf, uint8_t **ret_image,
		       size_t *ret_size)
{
	const struct elf_header_of_section *section =
		tickmap_elf_find_section(elf, ".gnu_debugdata");
	lzma_stream stream = LZMA_STREAM_INIT;
	struct elf_piece packed;
	bool ok = false;

	if (!section || !tickmap_elf_read_section(elf, section, &packed))
		return false;
	if (lzma_stream_decoder(&stream, MEMORY_LIMIT, 0) == LZMA_OK) {
		stream.next_in = packed.bytes;
		stream.avail_in = packed.size;
		ok = unpack(&stream, ret_image, ret_size);
		lzma_end(&stream);
	}
	tickmap_elf_piece_free(&packed);
	return ok;
}

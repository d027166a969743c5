/* SPDX-License-Identifier: MIT */
/*
 * Where a stripped file's symbols went. A candidate counts only if it proves
 * to be of the same build: by its build id where the file has one, and by the
 * checksum that .gnu_debuglink carries where the file names it. Wrong names are
 * worse than none.
 */
#include "object/elf_internal.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEBUG_ROOT "/usr/lib/debug"

enum { CHUNK = 64 * 1024 };

static bool has_symbols(struct tickmap_elf *elf)
{
	tickmap_elf_read_sections(elf);
	for (size_t i = 0; i < elf->sections.count; i++)
		if (elf->sections.items[i].type == SHT_SYMTAB &&
		    elf->sections.items[i].size)
			return true;
	return false;
}

static bool same_build(const struct tickmap_elf *a, const struct tickmap_elf *b)
{
	return a->build_id_size == b->build_id_size &&
	       memcmp(a->build_id, b->build_id, a->build_id_size) == 0;
}

/* The CRC of ISO 3309 (polynomial 0x04c11db7, reflected), as gzip has it. */
static bool checksum(const struct tickmap_elf *elf, uint32_t *ret_crc)
{
	uint32_t table[256], crc = UINT32_MAX;

	for (uint32_t i = 0; i < 256; i++) {
		table[i] = i;
		for (int bit = 0; bit < 8; bit++)
			table[i] = table[i] >> 1 ^
				   (table[i] & 1 ? 0xedb88320U : 0);
	}
	for (uint64_t at = 0; at < elf->size; at += CHUNK) {
		uint64_t left = elf->size - at;
		struct elf_piece piece;
		if (!tickmap_elf_read(elf, at, left < CHUNK ? left : CHUNK,
				      &piece))
			return false;
		for (size_t i = 0; i < piece.size; i++)
			crc = crc >> 8 ^ table[(crc ^ piece.bytes[i]) & 0xff];
		tickmap_elf_piece_free(&piece);
	}
	*ret_crc = ~crc;
	return true;
}

/* The file at sysroot/folder/name if it is elf's; `crc` NULL: not asked. */
static struct tickmap_elf *try_file(const struct tickmap_elf *elf,
				    const char *sysroot, const char *folder,
				    const char *name, const uint32_t *crc)
{
	struct tickmap_elf *debug;
	uint32_t found;
	char *path;

	if (asprintf(&path, "%s%s/%s", sysroot, folder, name) < 0)
		return NULL;
	int rc = tickmap_elf_open(path, &debug, NULL);
	free(path);
	if (rc < 0)
		return NULL;
	if (debug->machine == elf->machine && same_build(elf, debug) &&
	    has_symbols(debug) &&
	    (!crc || (checksum(debug, &found) && found == *crc)))
		return debug;
	tickmap_elf_close(debug);
	return NULL;
}

static struct tickmap_elf *by_build_id(const struct tickmap_elf *elf,
				       const char *sysroot)
{
	char name[2 * sizeof(elf->build_id) + sizeof("/.debug")];
	size_t at = 0;

	if (elf->build_id_size < 2)
		return NULL;
	for (size_t i = 0; i < elf->build_id_size; i++)
		at += (size_t)sprintf(name + at, i == 1 ? "/%02x" : "%02x",
				      elf->build_id[i]);
	strcpy(name + at, ".debug");
	return try_file(elf, sysroot, DEBUG_ROOT "/.build-id", name, NULL);
}

/* .gnu_debuglink: a file name with its NUL, padded to 4, and a checksum. */
static struct tickmap_elf *by_link(struct tickmap_elf *elf, const char *path,
				   const char *sysroot)
{
	struct tickmap_elf_section s =
		tickmap_elf_section(elf, ".gnu_debuglink");
	struct tickmap_bytes b = tickmap_bytes_of(s.bytes, s.size);
	struct tickmap_elf *debug = NULL;
	const char *slash = strrchr(path, '/');
	int length = slash ? (int)(slash - path) : 0;
	size_t name_length = 0;

	b.swap = elf->swap;
	const char *name = tickmap_cstr(&b, &name_length);
	tickmap_take(&b, -(name_length + 1) & 3);
	uint32_t crc = tickmap_u32(&b);
	if (b.failed || !slash || !*name || strchr(name, '/'))
		return NULL;

	static const char *const folders[][2] = {
		{ "", "" },
		{ "", "/.debug" },
		{ DEBUG_ROOT, "" },
	};
	for (size_t i = 0; i < 3 && !debug; i++) {
		char *folder;
		if (asprintf(&folder, "%s%.*s%s", folders[i][0], length, path,
			     folders[i][1]) < 0)
			break;
		debug = try_file(elf, sysroot, folder, name, &crc);
		free(folder);
	}
	return debug;
}

struct tickmap_elf *tickmap_debug_file_find(struct tickmap_elf *elf,
					    const char *path,
					    const char *sysroot)
{
	struct tickmap_elf *debug = by_build_id(elf, sysroot);

	/* A build id speaks for itself, whosever folder it lies in. */
	if (!debug && *sysroot)
		debug = by_build_id(elf, "");
	if (!debug)
		debug = by_link(elf, path, sysroot);
	return debug;
}

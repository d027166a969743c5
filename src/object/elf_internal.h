/* SPDX-License-Identifier: MIT */
/* What the files of this folder share about an open ELF file. */
#ifndef TICKMAP_OBJECT_ELF_INTERNAL_H
#define TICKMAP_OBJECT_ELF_INTERNAL_H

#include "base/vec.h"
#include "object/elf.h"

struct elf_segment {
	uint32_t type, flags;
	uint64_t offset, svma;
	uint64_t file_size, mem_size;
	uint64_t align;
};

struct elf_header_of_section {
	uint32_t name; /* offset in the section names */
	uint32_t type;
	uint64_t flags, svma;
	uint64_t offset, size;
	uint32_t link, info;
	uint64_t align;
	uint64_t entry_size;
};

/* Some bytes of the file: borrowed from an image, or owned. */
struct elf_piece {
	const uint8_t *bytes;
	size_t size;
	uint8_t *owned;
};

struct tickmap_elf {
	int fd;		      /* ours; -1 for an image */
	const uint8_t *image; /* borrowed; NULL for a file */
	uint64_t size;
	bool is_64, swap;
	uint16_t machine;
	struct {
		uint64_t at;
		uint32_t count, names;
		uint16_t entry_size;
	} section_table;
	TICKMAP_VEC(struct elf_segment) segments;
	bool sections_read;
	TICKMAP_VEC(struct elf_header_of_section) sections;
	struct elf_piece section_names;
	uint8_t build_id[20];
	size_t build_id_size;
	TICKMAP_VEC(struct elf_loaded {
		uint64_t offset;
		struct elf_piece piece;
	})
	loaded; /* what tickmap_elf_section lent */
};

/* Bytes [offset, offset + size) of the file, all of them or false. */
bool tickmap_elf_read(const struct tickmap_elf *elf, uint64_t offset,
		      uint64_t size, struct elf_piece *ret_piece);
void tickmap_elf_piece_free(struct elf_piece *piece);

/* A cursor over them in the file's byte order. */
struct tickmap_bytes tickmap_elf_cursor(const struct tickmap_elf *elf,
					const struct elf_piece *piece);

/* An address or size field: 32 or 64 bits wide, as the file is. */
uint64_t tickmap_elf_word(const struct tickmap_elf *elf,
			  struct tickmap_bytes *b);

/*
 * A string of a string table with its length, or NULL and 0. Symbols may share
 * a string, and a hostile file may let a million share one of a megabyte: what
 * is looked at is taken from the budget, which a true table never spends.
 */
const char *tickmap_elf_text(const struct tickmap_elf *elf,
			     const struct elf_piece *table, uint64_t at,
			     uint64_t *budget, size_t *ret_length);
uint64_t tickmap_elf_text_budget(const struct elf_piece *symbols,
				 const struct elf_piece *table);

/* Reads the section table at the first call. An absent or broken table is one
 * without sections. */
void tickmap_elf_read_sections(struct tickmap_elf *elf);

/* "" for a name that is not there. Borrowed from elf. */
const char *
tickmap_elf_section_name(const struct tickmap_elf *elf,
			 const struct elf_header_of_section *section);
const struct elf_header_of_section *
tickmap_elf_find_section(struct tickmap_elf *elf, const char *name);

/* A section's content, which the caller frees; false: absent, compressed, or
 * not in the file. */
bool tickmap_elf_read_section(const struct tickmap_elf *elf,
			      const struct elf_header_of_section *section,
			      struct elf_piece *ret_piece);

/* Fills build_id; called once, when the file is opened. */
void tickmap_elf_find_build_id(struct tickmap_elf *elf);

/* ---- debugfile.c ---- */

/* The separate debug file with a .symtab, opened; NULL if there is none. */
struct tickmap_elf *tickmap_debug_file_find(struct tickmap_elf *elf,
					    const char *path,
					    const char *sysroot);

/* ---- minidebug.c ---- */

/* The ELF image packed in .gnu_debugdata, malloced; false: none. */
bool tickmap_minidebug(struct tickmap_elf *elf, uint8_t **ret_image,
		       size_t *ret_size);

/* ---- plt.c ---- */

/* Calls `emit` for each entry of a procedure linkage table whose target is
 * known. `name` is a string of .dynstr, or NULL and `target` the address of an
 * indirect function. False when out of memory. */
typedef bool (*tickmap_plt_emit)(void *context, uint64_t svma, uint64_t size,
				 const char *name, uint64_t target);
bool tickmap_plt_entries(struct tickmap_elf *elf, tickmap_plt_emit emit,
			 void *context);

#endif

/* SPDX-License-Identifier: MIT */
/* What the files of this folder share. */
#ifndef TICKMAP_SYMBOLIZE_INTERNAL_H
#define TICKMAP_SYMBOLIZE_INTERNAL_H

#include "base/table.h"
#include "base/vec.h"
#include "object/dwarf.h"
#include "object/elf.h"
#include "symbolize/symbolize.h"
#include "unwind/cfi.h"

#include <string.h>

static inline bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), n = strlen(end);

	return length >= n && strcmp(text + length - n, end) == 0;
}

/* ---- known.c: names that a recording carries ---- */

struct known_symbol {
	uint64_t svma, size;
	tickmap_str name;
};

struct known_segment {
	uint64_t offset, size, svma;
};

struct known_file {
	tickmap_str path;
	bool sorted;
	TICKMAP_VEC(struct known_symbol) symbols;
	TICKMAP_VEC(struct known_segment) segments;
};

const struct known_symbol *tickmap_known_find(struct known_file *file,
					      uint64_t svma);
uint64_t tickmap_known_svma_of_offset(const struct known_file *file,
				      uint64_t offset);

/* ---- kallsyms.c ---- */

struct kallsyms;

/* Reads a list in the format of /proc/kallsyms. NULL: unreadable, or all
 * addresses are hidden, or no memory. */
struct kallsyms *tickmap_kallsyms_load(const char *path);
void tickmap_kallsyms_free(struct kallsyms *kallsyms);

/* The function that holds avma, or NULL. Borrowed. */
const char *tickmap_kallsyms_find(const struct kallsyms *kallsyms,
				  uint64_t avma, uint64_t *ret_start,
				  uint64_t *ret_size);

/* ---- vdso.c ---- */

/* This process's own vdso; false if it has none. */
bool tickmap_vdso_image(const void **ret_image, size_t *ret_size);

/* ---- package.c ---- */

/* The Debian package that put `path` here; false where none is known. */
bool tickmap_package_of_file(const char *path, char *out, size_t size);

/* ---- symbolize.c ---- */

struct dso {
	tickmap_str path, name;
	tickmap_str identity; /* path and inode */
	uint64_t inode;	      /* 0: unknown */
	uint8_t build_id[20];
	size_t build_id_size;
	bool opened;
	enum tickmap_symbol_reason reason; /* why it cannot answer, or FOUND */
	struct tickmap_elf *elf;
	struct tickmap_symbols *symbols;
	struct tickmap_table names; /* symbol's svma -> raw and readable name */
	bool cfi_ready, cfi_absent;
	struct tickmap_cfi cfi;
	bool hinted;
	char *hint;
	bool dwarf_opened;
	bool split; /* functions in .dwo files were asked for */
	struct tickmap_dwarf *dwarf;
	struct tickmap_table functions; /* DWARF's key -> number + 1 */
	TICKMAP_VEC(struct tickmap_source_frame) function_names;
};

struct tickmap_symbolizer {
	struct tickmap_strings *strings; /* borrowed */
	bool brief;
	TICKMAP_VEC(struct dso) dsos;
	struct tickmap_table
		dso_by_key; /* interned path and id -> number + 1 */
	TICKMAP_VEC(struct known_file) known;
	struct tickmap_table known_by_path; /* path -> number + 1 */
	struct {
		bool said, ours; /* /proc/kallsyms is of the recording's boot */
		bool loaded;
		struct kallsyms *list;
	} kernel;
};

/* Opens the file at the first call; see its reason then. */
void tickmap_dso_open(struct tickmap_symbolizer *symbolizer, struct dso *dso);

/* The names that a recording gave for this path, or NULL. */
struct known_file *
tickmap_known_file(const struct tickmap_symbolizer *symbolizer,
		   tickmap_str path);

/* Interns the readable form. */
tickmap_str tickmap_readable_name(struct tickmap_symbolizer *symbolizer,
				  const char *raw);

#endif

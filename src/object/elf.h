/* SPDX-License-Identifier: MIT */
/*
 * An ELF file: where its bytes go in memory, its build id, its unwind sections,
 * its symbols. Addresses are svma, as the file states them.
 */
#ifndef TICKMAP_OBJECT_ELF_H
#define TICKMAP_OBJECT_ELF_H

#include "base/bytes.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tickmap_elf;

/*
 * Opens a file, or an image in memory (borrowed; the vdso). Only 64-bit x86-64
 * and aarch64 files have unwind sections for us; others open all the same.
 * Bytes of live files are read, not mapped: a file that shrinks must not kill
 * us.
 */
int tickmap_elf_open(const char *path, struct tickmap_elf **ret_elf,
		     struct tickmap_error *err);
/* `fd` stays the caller's, who may close it at once. */
int tickmap_elf_open_fd(int fd, struct tickmap_elf **ret_elf,
			struct tickmap_error *err);
int tickmap_elf_open_memory(const void *image, size_t size,
			    struct tickmap_elf **ret_elf,
			    struct tickmap_error *err);
void tickmap_elf_close(struct tickmap_elf *elf);

/* Gives the descriptor back; sections that were asked for stay, others are
 * absent from now on. For callers that keep many files. */
void tickmap_elf_release_file(struct tickmap_elf *elf);

uint16_t tickmap_elf_machine(const struct tickmap_elf *elf);
bool tickmap_elf_is_64(const struct tickmap_elf *elf);

/* Bytes of the build id (at most 20 are kept), 0 if it has none. */
size_t tickmap_elf_build_id(const struct tickmap_elf *elf, uint8_t ret_id[20]);

/*
 * svma of a byte of the file that a PT_LOAD maps; false if none does. To learn
 * the bias of a mapping ask for the byte under a code address, not for the
 * mapping's first one: a page may begin in one segment and end in the next.
 */
bool tickmap_elf_svma_of_offset(const struct tickmap_elf *elf,
				uint64_t file_offset, uint64_t *ret_svma);

/* Bytes of the file, all of them or false. */
bool tickmap_elf_bytes(const struct tickmap_elf *elf, uint64_t file_offset,
		       void *out, size_t size);

/* A section's content. Borrowed from elf; size 0: absent or compressed. */
struct tickmap_elf_section {
	const uint8_t *bytes;
	size_t size;
	uint64_t svma;
};
/* .eh_frame and .eh_frame_hdr: by section name, or by PT_GNU_EH_FRAME where the
 * section table is stripped. */
struct tickmap_elf_section tickmap_elf_section(struct tickmap_elf *elf,
					       const char *name);

/* ---- Symbols ---- */

struct tickmap_elf_symbol {
	uint64_t svma;
	uint64_t size;
	const char *name; /* raw (mangled); borrowed from the table; "NAME@plt"
			     for PLT entries */
};

struct tickmap_symbols;

/*
 * All functions of the file, from .symtab, else from its separate debug file
 * (build-id path, .gnu_debuglink beside it, in .debug/ and in /usr/lib/debug;
 * only of the same build), else from .gnu_debugdata (where liblzma was there
 * when we were built), joined with .dynsym, and PLT entries by their
 * relocations. Of several names for one function the one that people write is
 * taken: exported, few underscores, of the current version, not weak.
 *
 * Symbols without a size (hand-written assembly) reach up to the next symbol of
 * any kind or the end of the section if .symtab is there; else their size stays
 * 0, they hold their first byte, and the unwind table may say how far they go.
 *
 * `path` is the file's path as the process sees it, for the debug search, with
 * `sysroot` ("" or "/proc/PID/root") in front when files are opened. NULL: no
 * other file is looked for.
 */
int tickmap_symbols_load(struct tickmap_elf *elf, const char *path,
			 const char *sysroot,
			 struct tickmap_symbols **ret_symbols,
			 struct tickmap_error *err);
void tickmap_symbols_free(struct tickmap_symbols *symbols);

/* The function that holds svma, or NULL: never a neighbour. O(log n). */
const struct tickmap_elf_symbol *
tickmap_symbols_find(const struct tickmap_symbols *symbols, uint64_t svma);

/* No .symtab anywhere: inner functions have no names. */
bool tickmap_symbols_stripped(const struct tickmap_symbols *symbols);
size_t tickmap_symbols_count(const struct tickmap_symbols *symbols);
const struct tickmap_elf_symbol *
tickmap_symbols_at(const struct tickmap_symbols *symbols, size_t index);

#endif

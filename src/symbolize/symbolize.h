/* SPDX-License-Identifier: MIT */
/*
 * Address in a file or in the kernel -> function name. Opens each file once,
 * at its first question, and remembers.
 */
#ifndef TICKMAP_SYMBOLIZE_SYMBOLIZE_H
#define TICKMAP_SYMBOLIZE_SYMBOLIZE_H

#include "base/strings.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tickmap_symbolizer;

/* `strings` is borrowed and outlives the symbolizer; names go there. */
struct tickmap_symbolizer *
tickmap_symbolizer_new(struct tickmap_strings *strings);
void tickmap_symbolizer_free(struct tickmap_symbolizer *symbolizer);

/* Why an address has no name: a result, not a failure. */
enum tickmap_symbol_reason {
	TICKMAP_SYMBOL_FOUND,
	TICKMAP_SYMBOL_FILE_MISSING, /* gone, or unreadable */
	TICKMAP_SYMBOL_OTHER_BUILD,  /* its build id is not the recorded one */
	TICKMAP_SYMBOL_STRIPPED,     /* no .symtab, no debug file */
	TICKMAP_SYMBOL_NO_FUNCTION,  /* symbols are there, none holds it */
	TICKMAP_SYMBOL_NOT_ELF,
	TICKMAP_SYMBOL_KERNEL_HIDDEN, /* kptr_restrict, or another boot */
};

struct tickmap_symbol {
	enum tickmap_symbol_reason reason;
	/* Demangled name, or "[LIB+0xOFF]" (OFF: svma of the function's start
	 * where .eh_frame tells it, else of the address), or "[kernel+0x...]".
	 */
	tickmap_str name;
	tickmap_str raw_name; /* as the symbol table has it; 0 if none */
	uint64_t svma;	      /* of the address asked for */
	uint64_t start, size; /* of the function, svma; 0 if unknown */
};

/* From now on all unnamed places of a file are called "[LIB]": for recordings
 * with so many that their names would fill the memory. */
void tickmap_symbolizer_brief(struct tickmap_symbolizer *symbolizer,
			      bool brief);

/*
 * A file as mapped: path as the process saw it, and the build id it had (size
 * 0: unknown). Same arguments, same id. "[vdso]" is ours.
 */
uint32_t tickmap_symbolizer_dso(struct tickmap_symbolizer *symbolizer,
				const char *path, const uint8_t *build_id,
				size_t build_id_size);
/*
 * The same where the inode of the mapped file is known: two files may follow
 * each other at one path. Without a build id only a file with that inode is
 * believed; names and segments that a recording carries for this very file
 * (given under tickmap_symbolizer_identity's string) come before the disk.
 */
uint32_t tickmap_symbolizer_file(struct tickmap_symbolizer *symbolizer,
				 const char *path, uint64_t inode,
				 const uint8_t *build_id, size_t build_id_size);

/* The mapped file itself, open: read instead of what lies at its path. Call it
 * before the first question; `fd` stays the caller's and may be closed then.
 * Separate debug files are still looked for by path and build. */
void tickmap_symbolizer_opened(struct tickmap_symbolizer *symbolizer,
			       uint32_t dso, int fd);

/* How tickmap_symbolizer_know and _know_segment name a file with an inode:
 * the path itself for inode 0. Writes at most `size` bytes. */
const char *tickmap_symbolizer_identity(const char *path, uint64_t inode,
					char *out, size_t size);

/* "/usr/lib/libz.so.1" -> what a person should read: "libz.so.1". */
tickmap_str tickmap_symbolizer_dso_name(struct tickmap_symbolizer *symbolizer,
					uint32_t dso);
const char *tickmap_symbolizer_dso_path(struct tickmap_symbolizer *symbolizer,
					uint32_t dso);

struct tickmap_symbol
tickmap_symbolize_file(struct tickmap_symbolizer *symbolizer, uint32_t dso,
		       uint64_t file_offset);

/*
 * The unwind table of a mapped file, and where the byte lies in it; NULL if the
 * file is not here or has none. Borrowed until the symbolizer is freed.
 */
struct tickmap_cfi;
struct tickmap_cfi *
tickmap_symbolizer_cfi(struct tickmap_symbolizer *symbolizer, uint32_t dso,
		       uint64_t file_offset, uint64_t *ret_svma);

/* Bytes of that file, all of them or false. */
bool tickmap_symbolizer_read(struct tickmap_symbolizer *symbolizer,
			     uint32_t dso, uint64_t file_offset, void *out,
			     size_t size);

struct tickmap_symbol
tickmap_symbolize_kernel(struct tickmap_symbolizer *symbolizer, uint64_t avma);

/* ---- Inlined functions, for those who pay for reading DWARF ---- */

/* A function as the source has it, at an address. */
struct tickmap_source_frame {
	tickmap_str name, raw_name; /* as in struct tickmap_symbol */
	tickmap_str file;	    /* where it is declared; 0: unknown */
	uint32_t line;		    /* 0: unknown */
	bool inlined;		    /* into the frame before it */
	/* Where in it: the line of the instruction, or of the call of the next
	 * frame. Only if asked for. */
	tickmap_str at_file;
	uint32_t at_line;
};

enum { TICKMAP_SOURCE_FRAMES = 257 };

/*
 * The functions at svma of a file, outermost first. The first is the function
 * that the symbol names, with name 0 where DWARF does not know it; the others
 * are inlined into it. Returns their number, 0 without DWARF. Lines are looked
 * up only for `places`: they cost a table a unit. For a return address ask for
 * the byte before it.
 */
size_t tickmap_symbolize_inlined(struct tickmap_symbolizer *symbolizer,
				 uint32_t dso, uint64_t svma, bool places,
				 struct tickmap_source_frame *ret_frames,
				 size_t room);

/* Was a function asked for whose inlined ones are in a .dwo file? These are not
 * read; the hint says so. */
bool tickmap_symbolizer_is_split(const struct tickmap_symbolizer *symbolizer,
				 uint32_t dso);

/*
 * A name that a recording carries: used where the file (or the kernel's list)
 * cannot answer itself. `path` "[kernel.kallsyms]": svma is the address. Once
 * one kernel name is given, /proc/kallsyms is not asked any more unless
 * `same_boot` was said.
 */
bool tickmap_symbolizer_know(struct tickmap_symbolizer *symbolizer,
			     const char *path, uint64_t svma, uint64_t size,
			     const char *raw_name);

/*
 * Where the file's bytes [file_offset, file_offset + size) lie, for a file that
 * is gone: known symbols are found by svma. Without it svma is taken to be the
 * file offset, which is true of most libraries and of few programs.
 */
bool tickmap_symbolizer_know_segment(struct tickmap_symbolizer *symbolizer,
				     const char *path, uint64_t file_offset,
				     uint64_t size, uint64_t svma);

/* Where /proc/kallsyms may be trusted: the recording is of this very boot. */
void tickmap_symbolizer_kernel_is_ours(struct tickmap_symbolizer *symbolizer,
				       bool ours);

/* One hint a DSO for a person, e.g. which debug package to install; NULL when
 * there is nothing to say, or nothing was asked of the DSO. Borrowed until the
 * symbolizer is freed. */
const char *tickmap_symbolizer_hint(struct tickmap_symbolizer *symbolizer,
				    uint32_t dso);

/* C++ and Rust names readable, everything else unchanged. malloced; NULL: out
 * of memory. */
char *tickmap_demangle(const char *raw_name);

#endif

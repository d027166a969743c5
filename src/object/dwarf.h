/* SPDX-License-Identifier: MIT */
/*
 * What DWARF (versions 2 to 5) says about an address: the function that holds
 * it, the functions that were inlined there, and lines. Nothing is read before
 * it is asked for: of a file of a gigabyte only the units that hold the asked
 * addresses.
 *
 * Own reading: libdw unpacks all sections when it opens a file, and looks for
 * scopes by walking the unit's tree at every question.
 */
#ifndef TICKMAP_OBJECT_DWARF_H
#define TICKMAP_OBJECT_DWARF_H

#include "object/elf.h"

struct tickmap_dwarf;

enum tickmap_dwarf_reason {
	TICKMAP_DWARF_FOUND,
	TICKMAP_DWARF_ABSENT,  /* neither the file nor its debug file has any */
	TICKMAP_DWARF_SPLIT,   /* this unit's functions are in a .dwo file */
	TICKMAP_DWARF_NO_UNIT, /* no unit holds the address */
	TICKMAP_DWARF_BROKEN,  /* the unit contradicts itself */
};

/*
 * Of `elf` (borrowed while the result is used), else of its separate debug file
 * as tickmap_symbols_load finds it; with the file that dwz made for what
 * several debug files share. NULL: there is none, or no memory. `path` may be
 * NULL: no other file is looked for.
 */
struct tickmap_dwarf *tickmap_dwarf_open(struct tickmap_elf *elf,
					 const char *path, const char *sysroot);
void tickmap_dwarf_close(struct tickmap_dwarf *dwarf);

/* Bytes of files and of indices that are held in memory. */
size_t tickmap_dwarf_memory(const struct tickmap_dwarf *dwarf);

enum { TICKMAP_DWARF_SCOPES = 256 }; /* deeper chains are broken */

struct tickmap_dwarf_scope {
	/* Equal in all places where the function was inlined, and in its own;
	 * never 0. */
	uint64_t function;
	/* Where this was inlined into the next one; 0: not known. Ask
	 * tickmap_dwarf_call_file for the file. */
	uint32_t call_line;
	uint32_t call_file;
	uint32_t unit;
	bool inlined; /* false for the last one, a function of its own */
};

/*
 * The functions at svma, innermost first, each inlined into its successor.
 * `reason` says why there are none, or none but the function itself.
 */
size_t tickmap_dwarf_scopes(struct tickmap_dwarf *dwarf, uint64_t svma,
			    struct tickmap_dwarf_scope *ret_scopes, size_t room,
			    enum tickmap_dwarf_reason *ret_reason);

/* Texts are borrowed until the file is closed; NULL: not known. */
struct tickmap_dwarf_function {
	const char *name;	  /* as written in the source */
	const char *linkage_name; /* mangled */
	const char *file;	  /* where it is declared */
	uint32_t line;
};
bool tickmap_dwarf_function(struct tickmap_dwarf *dwarf, uint64_t function,
			    struct tickmap_dwarf_function *ret_function);

const char *tickmap_dwarf_call_file(struct tickmap_dwarf *dwarf,
				    const struct tickmap_dwarf_scope *scope);

/* The source line that the instruction at svma was made from. */
bool tickmap_dwarf_line(struct tickmap_dwarf *dwarf, uint64_t svma,
			const char **ret_file, uint32_t *ret_line);

#endif

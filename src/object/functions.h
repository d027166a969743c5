/* SPDX-License-Identifier: MIT */
/*
 * From candidates, as symbol tables have them — aliases, labels, sizes that are
 * absent or wrong — to functions: one name for each start and extent.
 */
#ifndef TICKMAP_OBJECT_FUNCTIONS_H
#define TICKMAP_OBJECT_FUNCTIONS_H

#include "base/arena.h"
#include "object/elf_internal.h"

struct candidate {
	uint64_t svma, size;
	const char *name; /* borrowed; NULL: no function, but where one starts
			     the one before ends */
	uint32_t name_length;
	/* Which of the names of one function is best: the lower class, then
	 * fewer underscores in front, then the lower rank. */
	uint8_t class, rank;
};

enum {
	CLASS_EXPORTED,
	CLASS_LOCAL,
	CLASS_LABEL, /* of assembly, without a type */
	CLASS_LOCAL_LABEL,
};
enum { RANK_WEAK = 1, RANK_OLD_VERSION = 2 };

struct code_range {
	uint64_t start, end;
};

struct functions {
	/* Where code is, in order, disjoint: sections, else segments. */
	TICKMAP_VEC(struct code_range) code;
	TICKMAP_VEC(struct candidate) candidates;
	size_t sorted; /* how many of them, at the front */
};

struct tickmap_symbols {
	struct tickmap_elf_symbol *items; /* by address */
	size_t count;
	/*
	 * Where functions lie in others, the innermost one from `start` on
	 * (to its end); NULL where none do, and items say it themselves.
	 */
	struct symbol_piece {
		uint64_t start;
		uint32_t index;
	} * pieces;
	size_t piece_count;
	char *names;
	bool stripped;
};

/* Learns where elf has code. False, here and below: out of memory. */
bool tickmap_elf_functions_code(struct functions *functions,
				struct tickmap_elf *elf);

/* One more candidate; dropped where it is not in code. */
bool tickmap_elf_functions_add(struct functions *functions,
			       const struct candidate *candidate);

void tickmap_elf_functions_sort(struct functions *functions);

/* The best-named candidate at svma among those sorted last, or NULL. Valid
 * until the next one is added. */
const struct candidate *
tickmap_elf_functions_named(const struct functions *functions, uint64_t svma);

/* Fills `symbols`, whose `stripped` is already set. */
bool tickmap_elf_functions_choose(struct functions *functions,
				  struct tickmap_symbols *symbols);

void tickmap_elf_functions_free(struct functions *functions);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Between the files that read DWARF:
 *
 *	dwarf_file.c    which files hold it; bytes of sections
 *	dwarf_unit.c    compilation units: where they are, what each covers
 *	dwarf_die.c     abbreviations, entries and their attributes
 *	dwarf_ranges.c  lists of address ranges
 *	dwarf_scopes.c  index of a unit: address -> scope
 *	dwarf_line.c    names of source files, lines of instructions
 *
 * Section numbers are of the DWARF 5 standard. "Budgets" bound what a hostile
 * file can make us repeat; a true file never spends them.
 */
#ifndef TICKMAP_OBJECT_DWARF_INTERNAL_H
#define TICKMAP_OBJECT_DWARF_INTERNAL_H

#include "base/arena.h"
#include "base/table.h"
#include "object/dwarf.h"
#include "object/elf_internal.h"

/* ---- Numbers of the standard, section 7 ---- */

enum {
	DW_TAG_compile_unit = 0x11,
	DW_TAG_inlined_subroutine = 0x1d,
	DW_TAG_subprogram = 0x2e,
	DW_TAG_partial_unit = 0x3c,
	DW_TAG_skeleton_unit = 0x4a,
};

enum {
	DW_AT_name = 0x03,
	DW_AT_stmt_list = 0x10,
	DW_AT_low_pc = 0x11,
	DW_AT_high_pc = 0x12,
	DW_AT_comp_dir = 0x1b,
	DW_AT_abstract_origin = 0x31,
	DW_AT_decl_file = 0x3a,
	DW_AT_decl_line = 0x3b,
	DW_AT_specification = 0x47,
	DW_AT_ranges = 0x55,
	DW_AT_call_file = 0x58,
	DW_AT_call_line = 0x59,
	DW_AT_linkage_name = 0x6e,
	DW_AT_str_offsets_base = 0x72,
	DW_AT_addr_base = 0x73,
	DW_AT_rnglists_base = 0x74,
	DW_AT_dwo_name = 0x76,
	DW_AT_MIPS_linkage_name = 0x2007,
	DW_AT_GNU_dwo_name = 0x2130,
};

enum {
	DW_FORM_addr = 0x01,
	DW_FORM_block2 = 0x03,
	DW_FORM_block4 = 0x04,
	DW_FORM_data2 = 0x05,
	DW_FORM_data4 = 0x06,
	DW_FORM_data8 = 0x07,
	DW_FORM_string = 0x08,
	DW_FORM_block = 0x09,
	DW_FORM_block1 = 0x0a,
	DW_FORM_data1 = 0x0b,
	DW_FORM_flag = 0x0c,
	DW_FORM_sdata = 0x0d,
	DW_FORM_strp = 0x0e,
	DW_FORM_udata = 0x0f,
	DW_FORM_ref_addr = 0x10,
	DW_FORM_ref1 = 0x11,
	DW_FORM_ref2 = 0x12,
	DW_FORM_ref4 = 0x13,
	DW_FORM_ref8 = 0x14,
	DW_FORM_ref_udata = 0x15,
	DW_FORM_indirect = 0x16,
	DW_FORM_sec_offset = 0x17,
	DW_FORM_exprloc = 0x18,
	DW_FORM_flag_present = 0x19,
	DW_FORM_strx = 0x1a,
	DW_FORM_addrx = 0x1b,
	DW_FORM_ref_sup4 = 0x1c,
	DW_FORM_strp_sup = 0x1d,
	DW_FORM_data16 = 0x1e,
	DW_FORM_line_strp = 0x1f,
	DW_FORM_ref_sig8 = 0x20,
	DW_FORM_implicit_const = 0x21,
	DW_FORM_loclistx = 0x22,
	DW_FORM_rnglistx = 0x23,
	DW_FORM_ref_sup8 = 0x24,
	DW_FORM_strx1 = 0x25,
	DW_FORM_strx2 = 0x26,
	DW_FORM_strx3 = 0x27,
	DW_FORM_strx4 = 0x28,
	DW_FORM_addrx1 = 0x29,
	DW_FORM_addrx2 = 0x2a,
	DW_FORM_addrx3 = 0x2b,
	DW_FORM_addrx4 = 0x2c,
	DW_FORM_GNU_addr_index = 0x1f01,
	DW_FORM_GNU_str_index = 0x1f02,
	DW_FORM_GNU_ref_alt = 0x1f20,
	DW_FORM_GNU_strp_alt = 0x1f21,
};

enum { DW_UT_type = 2, DW_UT_skeleton = 4, DW_UT_split_compile = 5 };

/* ---- dwarf_file.c ---- */

enum dwarf_section {
	DWARF_INFO,
	DWARF_ABBREV,
	DWARF_STR,
	DWARF_LINE,
	DWARF_LINE_STR,
	DWARF_STR_OFFSETS,
	DWARF_ADDR,
	DWARF_RANGES,
	DWARF_RNGLISTS,
	DWARF_ARANGES,
	DWARF_SECTIONS
};

struct dwarf_data {
	bool looked;
	uint64_t at, size;	 /* in the file; size 0: absent */
	struct elf_piece whole;	 /* unpacked; else a window is read */
	struct elf_piece window; /* the bytes from window_at on */
	uint64_t window_at;
};

/* `want` bytes at `offset`, or what there is of them: at least as many as are
 * left in the section. Borrowed until the next call for this section. */
struct tickmap_bytes dwarf_at(struct tickmap_dwarf *dwarf,
			      enum dwarf_section section, uint64_t offset,
			      uint64_t want);
uint64_t dwarf_size(struct tickmap_dwarf *dwarf, enum dwarf_section section);

/* The same bytes for good: all of them, or false. */
bool dwarf_keep(struct tickmap_dwarf *dwarf, enum dwarf_section section,
		uint64_t offset, uint64_t size, struct elf_piece *ret_piece);

/* A string of a string section, copied for as long as the file is open. */
const char *dwarf_text(struct tickmap_dwarf *dwarf, enum dwarf_section section,
		       uint64_t offset);

/* ---- dwarf_unit.c ---- */

struct dwarf_span {
	uint64_t low, high; /* [low, high) */
	uint32_t index;
};

/* Finds the last span that begins at or before svma. Spans are disjoint. */
const struct dwarf_span *dwarf_span_at(const struct dwarf_span *spans,
				       size_t count, uint64_t svma);
/* Makes them disjoint and sorted: of those that hold an address the one with
 * the greatest index wins. False: no memory. */
bool dwarf_spans_flatten(struct dwarf_span **spans, size_t *count);

struct dwarf_index;
struct dwarf_lines;

struct dwarf_unit {
	uint64_t offset, size; /* in .debug_info, with the header */
	uint64_t abbrev_at;
	uint8_t version, type, address_size, offset_size;
	uint8_t header_size;
	bool head_read, loaded, broken;
	bool in_aranges;
	bool split; /* its functions are in a .dwo file */
	bool has_lines;
	uint16_t tag;
	struct elf_piece bytes;
	const struct dwarf_abbrevs *abbrevs;
	uint64_t str_offsets_base, addr_base, rnglists_base;
	uint64_t low_pc, lines_at;
	const char *comp_dir;
	struct dwarf_index *index;
};

bool dwarf_units_find(struct tickmap_dwarf *dwarf);
/* The unit with its bytes and bases; NULL: broken, or no such unit. */
struct dwarf_unit *dwarf_unit_load(struct tickmap_dwarf *dwarf, uint32_t unit);
/* The unit that holds this byte of .debug_info; UINT32_MAX: none. */
uint32_t dwarf_unit_holding(struct tickmap_dwarf *dwarf, uint64_t offset);
/* The unit whose code holds svma; UINT32_MAX: none. */
uint32_t dwarf_unit_of_code(struct tickmap_dwarf *dwarf, uint64_t svma);

/* ---- dwarf_die.c ---- */

struct dwarf_spec {
	uint16_t name, form;
	int64_t constant; /* DW_FORM_implicit_const */
};

struct dwarf_abbrev {
	uint64_t code;
	uint16_t tag;
	bool children;
	/* No form's size depends on the entry's bytes: it takes `bytes`, and
	 * these numbers of addresses, offsets and references. */
	bool fixed;
	uint32_t first, count; /* specs */
	uint32_t bytes, addresses, offsets, references;
};

struct dwarf_abbrevs {
	uint64_t at;
	bool dense; /* code n is at n - 1 */
	TICKMAP_VEC(struct dwarf_abbrev) items;
	TICKMAP_VEC(struct dwarf_spec) specs;
};

/* Read once for each place; NULL: broken. */
const struct dwarf_abbrevs *dwarf_abbrevs_at(struct tickmap_dwarf *dwarf,
					     uint64_t at);
const struct dwarf_abbrev *dwarf_abbrev(const struct dwarf_abbrevs *abbrevs,
					uint64_t code);
void dwarf_abbrevs_free(struct dwarf_abbrevs *abbrevs);

enum dwarf_class {
	DWARF_NONE,
	DWARF_CONSTANT,	     /* value */
	DWARF_ADDRESS,	     /* value; an index was looked up */
	DWARF_OFFSET,	     /* value, into the section of the attribute */
	DWARF_INDEX,	     /* value: DW_FORM_rnglistx, loclistx */
	DWARF_REFERENCE,     /* value: byte of .debug_info */
	DWARF_REFERENCE_ALT, /* the same of the shared file */
	DWARF_STRING,	     /* value: offset in the unit */
	DWARF_STRING_OFFSET, /* value, in `section` */
	DWARF_STRING_INDEX,
	DWARF_STRING_ALT,
};

struct dwarf_value {
	uint16_t name; /* DW_AT_...: set by who asks */
	uint8_t kind;  /* enum dwarf_class */
	uint8_t section;
	uint64_t value;
};

/* The entry at the cursor: its abbreviation, the cursor behind its code. NULL:
 * the end of a list of children, or broken (then the cursor has failed). */
const struct dwarf_abbrev *dwarf_entry(const struct dwarf_unit *unit,
				       struct tickmap_bytes *b);
/* Moves behind the attributes and fills in those asked for by name. */
void dwarf_attributes(struct tickmap_dwarf *dwarf,
		      const struct dwarf_unit *unit,
		      const struct dwarf_abbrev *abbrev,
		      struct tickmap_bytes *b, struct dwarf_value *values,
		      size_t count);
void dwarf_skip(struct tickmap_dwarf *dwarf, const struct dwarf_unit *unit,
		const struct dwarf_abbrev *abbrev, struct tickmap_bytes *b);
/* A cursor over the unit at this byte of .debug_info. */
struct tickmap_bytes dwarf_cursor(const struct tickmap_dwarf *dwarf,
				  const struct dwarf_unit *unit,
				  uint64_t offset);
/* One form's value; for the tables of the line program, too. */
void dwarf_form(struct tickmap_dwarf *dwarf, const struct dwarf_unit *unit,
		uint16_t form, int64_t constant, struct tickmap_bytes *b,
		struct dwarf_value *ret_value);
const char *dwarf_string(struct tickmap_dwarf *dwarf,
			 const struct dwarf_unit *unit,
			 const struct dwarf_value *value);
uint64_t dwarf_uint(struct tickmap_bytes *b, unsigned size);

/* ---- dwarf_ranges.c ---- */

typedef bool (*dwarf_range_emit)(void *context, uint64_t low, uint64_t high);
/* The ranges of an entry by its three attributes; false: `emit` said so. What
 * a linker has thrown away is left out. */
bool dwarf_ranges(struct tickmap_dwarf *dwarf, const struct dwarf_unit *unit,
		  const struct dwarf_value *low, const struct dwarf_value *high,
		  const struct dwarf_value *list, dwarf_range_emit emit,
		  void *context);

/* ---- dwarf_scopes.c ---- */

void dwarf_index_free(struct dwarf_index *index);
size_t dwarf_index_memory(const struct dwarf_index *index);

/* ---- dwarf_line.c ---- */

/* The file of that number in the unit's table; NULL: unknown. */
const char *dwarf_file_name(struct tickmap_dwarf *dwarf,
			    const struct dwarf_unit *unit, uint64_t number);
void dwarf_lines_free(struct dwarf_lines *lines);
size_t dwarf_lines_memory(const struct dwarf_lines *lines);

/* ---- The whole ---- */

struct tickmap_dwarf {
	struct tickmap_elf *elf;
	bool owns_elf;
	struct dwarf_data data[DWARF_SECTIONS];
	struct tickmap_dwarf *alt; /* what dwz shares; ours */
	struct tickmap_arena texts;
	size_t texts_size;
	struct tickmap_table text_at; /* section and offset -> text */

	bool units_found;
	TICKMAP_VEC(struct dwarf_unit) units; /* by offset */
	struct dwarf_span *code;	      /* -> unit */
	size_t code_count;

	TICKMAP_VEC(struct dwarf_abbrevs *) abbrevs;
	struct tickmap_table abbrevs_by_at; /* -> number + 1 */
	TICKMAP_VEC(struct dwarf_lines *) lines;
	struct tickmap_table lines_by_at; /* -> number + 1 */
	uint64_t abbrev_budget, range_budget, line_budget, text_budget;
};

#endif

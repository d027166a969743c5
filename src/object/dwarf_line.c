/* SPDX-License-Identifier: MIT */
/*
 * .debug_line: the names of a unit's source files, and the program that makes
 * the table from addresses to lines. Names are all that a chain needs; the
 * program runs when a line is asked for.
 */
#include "object/dwarf_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	DW_LNS_copy = 1,
	DW_LNS_advance_pc,
	DW_LNS_advance_line,
	DW_LNS_set_file,
	DW_LNS_set_column,
	DW_LNS_negate_stmt,
	DW_LNS_set_basic_block,
	DW_LNS_const_add_pc,
	DW_LNS_fixed_advance_pc,
};
enum { DW_LNE_end_sequence = 1, DW_LNE_set_address, DW_LNE_define_file };
enum { DW_LNCT_path = 1, DW_LNCT_directory_index };

struct file {
	const char *name;
	uint64_t dir;
	const char *path; /* once asked for */
};

struct row {
	uint64_t svma;
	uint32_t file, line;
};

struct dwarf_lines {
	uint64_t at;
	struct elf_piece bytes;
	size_t program; /* where it begins in these */
	uint8_t version, offset_size, address_size;
	uint8_t min_length, line_range, opcode_base;
	int8_t line_base;
	uint8_t lengths[256]; /* operands of standard opcodes */
	const char *comp_dir;
	TICKMAP_VEC(const char *) dirs;
	TICKMAP_VEC(struct file) files;
	bool ran;
	TICKMAP_VEC(struct row) rows;
	TICKMAP_VEC(struct dwarf_span) sequences; /* -> first row */
	TICKMAP_VEC(uint32_t) row_ends;		  /* by sequence */
};

void dwarf_lines_free(struct dwarf_lines *lines)
{
	if (!lines)
		return;
	tickmap_elf_piece_free(&lines->bytes);
	tickmap_vec_free(&lines->dirs);
	tickmap_vec_free(&lines->files);
	tickmap_vec_free(&lines->rows);
	tickmap_vec_free(&lines->sequences);
	tickmap_vec_free(&lines->row_ends);
	free(lines);
}

size_t dwarf_lines_memory(const struct dwarf_lines *lines)
{
	return sizeof(*lines) + (lines->bytes.owned ? lines->bytes.size : 0) +
	       lines->dirs.capacity * sizeof(char *) +
	       lines->files.capacity * sizeof(struct file) +
	       lines->rows.capacity * sizeof(struct row) +
	       lines->sequences.capacity * sizeof(struct dwarf_span);
}

/* ---- The header ---- */

static bool add_dir(struct dwarf_lines *lines, const char *name)
{
	const char **dir = tickmap_vec_push(&lines->dirs);

	if (dir)
		*dir = name;
	return dir;
}

static bool add_file(struct dwarf_lines *lines, const char *name, uint64_t dir)
{
	struct file *file = tickmap_vec_push(&lines->files);

	if (file)
		*file = (struct file) { name, dir, NULL };
	return file;
}

/* Up to version 4: strings with an empty one behind them. Directory 0 is the
 * unit's, file 0 is none. */
static bool read_old_tables(struct dwarf_lines *lines, struct tickmap_bytes *b)
{
	const char *name;

	if (!add_dir(lines, lines->comp_dir) || !add_file(lines, NULL, 0))
		return false;
	while ((name = tickmap_cstr(b, NULL)) && *name)
		if (!add_dir(lines, name))
			return false;
	while ((name = tickmap_cstr(b, NULL)) && *name) {
		uint64_t dir = tickmap_uleb(b);
		tickmap_uleb(b); /* time */
		tickmap_uleb(b); /* length */
		if (!b->failed && !add_file(lines, name, dir))
			return false;
	}
	return !b->failed;
}

struct entry_format {
	uint64_t what, form;
};

static const char *name_of(struct tickmap_dwarf *dwarf,
			   const struct dwarf_unit *unit,
			   const struct tickmap_bytes *b,
			   const struct dwarf_value *value)
{
	if (value->kind == DWARF_STRING)
		return (const char *)b->base + value->value;
	return dwarf_string(dwarf, unit, value);
}

/* From version 5 on: each table says of what its entries consist. */
static bool read_new_table(struct tickmap_dwarf *dwarf,
			   const struct dwarf_unit *unit,
			   struct dwarf_lines *lines, bool files,
			   struct tickmap_bytes *b)
{
	struct entry_format formats[256];
	uint8_t format_count = tickmap_u8(b);

	for (unsigned i = 0; i < format_count; i++) {
		formats[i].what = tickmap_uleb(b);
		formats[i].form = tickmap_uleb(b);
	}
	uint64_t count = tickmap_uleb(b);
	for (uint64_t n = 0; n < count && !b->failed; n++) {
		const char *name = NULL;
		uint64_t dir = 0;
		size_t before = b->pos;
		for (unsigned i = 0; i < format_count && !b->failed; i++) {
			struct dwarf_value value;
			uint64_t form = formats[i].form;
			dwarf_form(dwarf, unit,
				   form <= UINT16_MAX ? (uint16_t)form : 0, 0,
				   b, &value);
			if (b->failed)
				break;
			if (formats[i].what == DW_LNCT_path)
				name = name_of(dwarf, unit, b, &value);
			else if (formats[i].what == DW_LNCT_directory_index)
				dir = value.value;
		}
		/* Entries of no bytes could be without end. */
		if (b->failed || b->pos == before)
			return false;
		if (files ? !add_file(lines, name, dir) : !add_dir(lines, name))
			return false;
	}
	return !b->failed;
}

static bool read_header(struct tickmap_dwarf *dwarf,
			const struct dwarf_unit *unit,
			struct dwarf_lines *lines)
{
	struct tickmap_bytes b =
		tickmap_bytes_of(lines->bytes.bytes, lines->bytes.size);
	struct dwarf_unit forms = *unit;

	b.swap = dwarf->elf->swap;
	tickmap_take(&b, lines->offset_size == 8 ? 12 : 4);
	uint16_t version = tickmap_u16(&b);
	lines->address_size = unit->address_size;
	if (version < 2 || version > 5)
		return false;
	if (version >= 5) {
		lines->address_size = tickmap_u8(&b);
		tickmap_u8(&b); /* segment selectors */
	}
	uint64_t length = dwarf_uint(&b, lines->offset_size);
	if (length > tickmap_bytes_left(&b))
		return false;
	lines->program = b.pos + (size_t)length;
	lines->version = (uint8_t)version;
	lines->min_length = tickmap_u8(&b);
	if (version >= 4)
		tickmap_u8(&b); /* operations an instruction: 1 here */
	tickmap_u8(&b);		/* is_stmt */
	lines->line_base = (int8_t)tickmap_u8(&b);
	lines->line_range = tickmap_u8(&b);
	lines->opcode_base = tickmap_u8(&b);
	for (unsigned i = 1; i < lines->opcode_base; i++)
		lines->lengths[i] = tickmap_u8(&b);
	lines->comp_dir = unit->comp_dir;
	forms.offset_size = lines->offset_size;
	forms.address_size = lines->address_size;
	/* Tables that end early have names all the same. */
	if (version < 5)
		read_old_tables(lines, &b);
	else if (read_new_table(dwarf, &forms, lines, false, &b))
		read_new_table(dwarf, &forms, lines, true, &b);
	return true;
}

static bool load(struct tickmap_dwarf *dwarf, const struct dwarf_unit *unit,
		 struct dwarf_lines *lines)
{
	uint64_t size = dwarf_size(dwarf, DWARF_LINE);
	struct tickmap_bytes b = dwarf_at(dwarf, DWARF_LINE, lines->at, 12);
	uint64_t length = tickmap_u32(&b);

	lines->offset_size = 4;
	if (length == UINT32_MAX) {
		lines->offset_size = 8;
		length = tickmap_u64(&b);
	}
	uint64_t whole = length + b.pos;
	if (b.failed || whole < length || whole > size - lines->at ||
	    whole > dwarf->line_budget)
		return false;
	dwarf->line_budget -= whole;
	return dwarf_keep(dwarf, DWARF_LINE, lines->at, whole, &lines->bytes) &&
	       read_header(dwarf, unit, lines);
}

static struct dwarf_lines *lines_of(struct tickmap_dwarf *dwarf,
				    const struct dwarf_unit *unit)
{
	uint64_t *slot;

	if (!unit->has_lines)
		return NULL;
	slot = tickmap_table_put(&dwarf->lines_by_at, unit->lines_at);
	if (!slot)
		return NULL;
	if (*slot)
		return *slot == UINT64_MAX ? NULL
					   : dwarf->lines.items[*slot - 1];
	*slot = UINT64_MAX;
	struct dwarf_lines *lines = calloc(1, sizeof(*lines));
	if (!lines)
		return NULL;
	lines->at = unit->lines_at;
	struct dwarf_lines **kept = load(dwarf, unit, lines)
					    ? tickmap_vec_push(&dwarf->lines)
					    : NULL;
	if (!kept) {
		dwarf_lines_free(lines);
		return NULL;
	}
	*kept = lines;
	*slot = dwarf->lines.count;
	return lines;
}

/* ---- Names ---- */

/* Parts up to an absolute one, from the right; copied for good. */
static const char *join(struct tickmap_dwarf *dwarf, const char *root,
			const char *dir, const char *name)
{
	const char *parts[] = { root, dir, name };
	size_t first = 2, length = 0;
	char *path, *at;

	while (first && *parts[first] != '/' && parts[first - 1] &&
	       *parts[first - 1])
		first--;
	for (size_t i = first; i < 3; i++)
		length += strlen(parts[i]) + 1;
	if (length > dwarf->text_budget)
		return NULL;
	dwarf->text_budget -= length;
	path = at = tickmap_arena_alloc(&dwarf->texts, length);
	if (!path)
		return NULL;
	dwarf->texts_size += length;
	for (size_t i = first; i < 3; i++) {
		at = stpcpy(at, parts[i]);
		*at++ = i < 2 ? '/' : '\0';
	}
	return path;
}

static const char *path_of(struct tickmap_dwarf *dwarf,
			   struct dwarf_lines *lines, uint64_t number)
{
	struct file *file = number < lines->files.count
				    ? &lines->files.items[number]
				    : NULL;

	if (!file || !file->name)
		return NULL;
	if (file->path)
		return file->path;
	const char *dir = file->dir < lines->dirs.count
				  ? lines->dirs.items[file->dir]
				  : NULL;
	file->path =
		join(dwarf, dir == lines->comp_dir ? NULL : lines->comp_dir,
		     dir, file->name);
	return file->path;
}

const char *dwarf_file_name(struct tickmap_dwarf *dwarf,
			    const struct dwarf_unit *unit, uint64_t number)
{
	struct dwarf_lines *lines = lines_of(dwarf, unit);

	return lines ? path_of(dwarf, lines, number) : NULL;
}

/* ---- The program ---- */

struct machine {
	struct dwarf_lines *lines;
	struct tickmap_bytes b;
	uint64_t svma, file, line;
	size_t first; /* row of this sequence */
	bool no_memory;
};

static void reset(struct machine *m)
{
	m->svma = 0;
	m->file = m->line = 1;
	m->first = m->lines->rows.count;
}

static void copy(struct machine *m)
{
	struct row *row = tickmap_vec_push(&m->lines->rows);

	if (row)
		*row = (struct row) { m->svma, (uint32_t)m->file,
				      (uint32_t)m->line };
	else
		m->no_memory = true;
}

static void end_sequence(struct machine *m)
{
	struct dwarf_lines *lines = m->lines;
	const struct row *rows = lines->rows.items;

	/* Thrown away by the linker, or of no bytes. */
	if (lines->rows.count == m->first || !rows[m->first].svma ||
	    rows[m->first].svma >= m->svma) {
		lines->rows.count = m->first;
		reset(m);
		return;
	}
	struct dwarf_span *s = tickmap_vec_push(&lines->sequences);
	uint32_t *end = s ? tickmap_vec_push(&lines->row_ends) : NULL;
	if (!end || lines->rows.count > UINT32_MAX) {
		m->no_memory = true;
		return;
	}
	*s = (struct dwarf_span) { rows[m->first].svma, m->svma,
				   (uint32_t)m->first };
	*end = (uint32_t)lines->rows.count;
	reset(m);
}

static void extended(struct machine *m)
{
	uint64_t length = tickmap_uleb(&m->b);
	struct tickmap_bytes b = tickmap_sub(
		&m->b, length < SIZE_MAX ? (size_t)length : SIZE_MAX);
	const char *name;
	uint64_t dir;

	switch (tickmap_u8(&b)) {
	case DW_LNE_end_sequence:
		if (!b.failed)
			end_sequence(m);
		break;
	case DW_LNE_set_address:
		m->svma = dwarf_uint(&b, (unsigned)tickmap_bytes_left(&b));
		break;
	case DW_LNE_define_file:
		name = tickmap_cstr(&b, NULL);
		dir = tickmap_uleb(&b);
		if (!b.failed && !add_file(m->lines, name, dir))
			m->no_memory = true;
		break;
	}
}

static void standard(struct machine *m, uint8_t opcode)
{
	const struct dwarf_lines *l = m->lines;

	switch (opcode) {
	case DW_LNS_copy:
		copy(m);
		break;
	case DW_LNS_advance_pc:
		m->svma += l->min_length * tickmap_uleb(&m->b);
		break;
	case DW_LNS_advance_line:
		m->line += (uint64_t)tickmap_sleb(&m->b);
		break;
	case DW_LNS_set_file:
		m->file = tickmap_uleb(&m->b);
		break;
	case DW_LNS_const_add_pc:
		if (l->line_range)
			m->svma += (uint64_t)l->min_length *
				   ((255u - l->opcode_base) / l->line_range);
		break;
	case DW_LNS_fixed_advance_pc:
		m->svma += tickmap_u16(&m->b);
		break;
	default:
		for (unsigned i = 0; i < l->lengths[opcode]; i++)
			tickmap_uleb(&m->b);
	}
}

static void special(struct machine *m, uint8_t opcode)
{
	const struct dwarf_lines *l = m->lines;
	unsigned by = opcode - l->opcode_base;

	if (!l->line_range) {
		m->b.failed = true;
		return;
	}
	m->svma += (uint64_t)l->min_length * (by / l->line_range);
	m->line +=
		(uint64_t)(int64_t)(l->line_base + (int)(by % l->line_range));
	copy(m);
}

static bool run(struct dwarf_lines *lines, bool swap)
{
	struct machine m = {
		.lines = lines,
		.b = tickmap_bytes_of(lines->bytes.bytes, lines->bytes.size),
	};

	m.b.swap = swap;
	tickmap_seek(&m.b, lines->program);
	reset(&m);
	while (tickmap_bytes_left(&m.b) && !m.no_memory) {
		uint8_t opcode = tickmap_u8(&m.b);
		if (opcode >= lines->opcode_base)
			special(&m, opcode);
		else if (!opcode)
			extended(&m);
		else
			standard(&m, opcode);
	}
	return !m.no_memory && dwarf_spans_flatten(&lines->sequences.items,
						   &lines->sequences.count);
}

/* Rows of one sequence end where another's begin. */
static size_t end_of_rows(const struct dwarf_lines *lines, uint32_t first)
{
	size_t low = 0, high = lines->row_ends.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (lines->row_ends.items[middle] <= first)
			low = middle + 1;
		else
			high = middle;
	}
	return low < lines->row_ends.count ? lines->row_ends.items[low] : first;
}

static const struct row *row_at(const struct dwarf_lines *lines, uint64_t svma)
{
	const struct dwarf_span *s = dwarf_span_at(
		lines->sequences.items, lines->sequences.count, svma);
	size_t first = s ? s->index : 0, low = first;
	size_t high = s ? end_of_rows(lines, s->index) : 0;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (lines->rows.items[middle].svma <= svma)
			low = middle + 1;
		else
			high = middle;
	}
	return low > first ? &lines->rows.items[low - 1] : NULL;
}

bool tickmap_dwarf_line(struct tickmap_dwarf *dwarf, uint64_t svma,
			const char **ret_file, uint32_t *ret_line)
{
	uint32_t number = dwarf_unit_of_code(dwarf, svma);
	struct dwarf_unit *unit =
		number == UINT32_MAX ? NULL : dwarf_unit_load(dwarf, number);
	struct dwarf_lines *lines = unit ? lines_of(dwarf, unit) : NULL;

	if (!lines)
		return false;
	if (!lines->ran) {
		lines->ran = true;
		if (!run(lines, dwarf->elf->swap)) {
			lines->sequences.count = 0;
			return false;
		}
	}
	const struct row *row = row_at(lines, svma);
	if (!row)
		return false;
	*ret_file = path_of(dwarf, lines, row->file);
	*ret_line = row->line;
	return true;
}

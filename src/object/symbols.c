/* SPDX-License-Identifier: MIT */
/*
 * Gathers the functions of a file: entries of its symbol tables and of its
 * procedure linkage tables, all in one list of candidates, from which
 * functions.c chooses.
 */
#include "object/functions.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What stands while one file is loaded. */
struct load {
	struct functions functions;
	struct tickmap_elf *debug; /* ours */
	uint8_t *unpacked;	   /* what it lies in, if not in a file */
	/* Names point into these. */
	struct elf_piece names[2];
	size_t names_count;
	struct tickmap_arena made; /* names that no table has */
	/*
	 * Entries may share one string, and a hostile file may let a million
	 * share one of a megabyte: bytes of names that may still be looked at.
	 */
	uint64_t budget;
};

struct entry {
	uint32_t name;
	uint8_t info;
	uint16_t section;
	uint64_t value, size;
};

/* A symbol table under way. */
struct table {
	struct tickmap_elf *elf;
	const struct elf_piece *names;
	uint32_t type; /* SHT_SYMTAB or SHT_DYNSYM */
};

enum { VERSION_HIDDEN = 0x8000 }; /* VERSYM_HIDDEN of the gABI's symbols */

static size_t entry_size(const struct tickmap_elf *elf)
{
	return elf->is_64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
}

static struct entry read_entry(const struct tickmap_elf *elf,
			       struct tickmap_bytes *b)
{
	struct entry e = { .name = tickmap_u32(b) };

	if (!elf->is_64) {
		e.value = tickmap_u32(b);
		e.size = tickmap_u32(b);
	}
	e.info = tickmap_u8(b);
	tickmap_u8(b); /* visibility */
	e.section = tickmap_u16(b);
	if (elf->is_64) {
		e.value = tickmap_u64(b);
		e.size = tickmap_u64(b);
	}
	return e;
}

/* "memcpy@@GLIBC_2.14" is memcpy; with one "@" it is for old programs only. */
static void cut_version(struct candidate *c)
{
	const char *at = memchr(c->name + 1, '@', c->name_length - 1);
	size_t length = c->name_length;

	if (!at)
		return;
	c->name_length = (uint32_t)(at - c->name);
	if (length - c->name_length > 1 && at[1] != '@')
		c->rank |= RANK_OLD_VERSION;
}

/*
 * Labels of assembly have no type: taken from .symtab alone, and not those that
 * tell code from data ("$x", "$d.1" of the Arm ELF specifications) or that an
 * assembler should have dropped (".L1").
 */
static bool is_function(const struct entry *e, const char *name,
			bool from_symtab)
{
	switch (e->info & 0xf) {
	case STT_FUNC:
	case STT_GNU_IFUNC:
		return true;
	case STT_NOTYPE:
		return from_symtab && e->section != SHN_ABS && *name != '$' &&
		       strncmp(name, ".L", 2) != 0;
	default:
		return false;
	}
}

static void grade(struct candidate *c, uint8_t info)
{
	uint8_t bind = info >> 4;

	c->class = bind == STB_LOCAL ? CLASS_LOCAL : CLASS_EXPORTED;
	if ((info & 0xf) == STT_NOTYPE)
		c->class += CLASS_LABEL;
	if (bind == STB_WEAK)
		c->rank |= RANK_WEAK;
}

static bool add_entry(struct load *load, const struct table *table,
		      const struct entry *e, uint16_t version)
{
	uint8_t type = e->info & 0xf;
	size_t length = 0;

	if (e->section == SHN_UNDEF || type == STT_FILE || type == STT_TLS)
		return true;
	const char *name = tickmap_elf_text(table->elf, table->names, e->name,
					    &load->budget, &length);
	struct candidate c = { .svma = e->value, .size = e->size };
	if (length && is_function(e, name, table->type == SHT_SYMTAB)) {
		c.name = name;
		c.name_length = (uint32_t)length;
		grade(&c, e->info);
		cut_version(&c);
		if (version & VERSION_HIDDEN)
			c.rank |= RANK_OLD_VERSION;
	}
	/* The rest still ends a function that has no size. */
	return tickmap_elf_functions_add(&load->functions, &c);
}

static const struct elf_header_of_section *
section_of_type(struct tickmap_elf *elf, uint32_t type)
{
	tickmap_elf_read_sections(elf);
	for (size_t i = 0; i < elf->sections.count; i++)
		if (elf->sections.items[i].type == type)
			return &elf->sections.items[i];
	return NULL;
}

static bool read_entries(struct load *load, const struct table *table,
			 const struct elf_piece *piece)
{
	struct tickmap_bytes b = tickmap_elf_cursor(table->elf, piece);
	struct elf_piece versions = { 0 };
	const struct elf_header_of_section *section =
		table->type == SHT_DYNSYM
			? section_of_type(table->elf, SHT_GNU_versym)
			: NULL;
	bool ok = true;

	if (section)
		tickmap_elf_read_section(table->elf, section, &versions);
	struct tickmap_bytes v = tickmap_elf_cursor(table->elf, &versions);
	while (ok && tickmap_bytes_left(&b) >= entry_size(table->elf)) {
		struct entry e = read_entry(table->elf, &b);
		ok = add_entry(load, table, &e, tickmap_u16(&v));
	}
	tickmap_elf_piece_free(&versions);
	return ok;
}

/* False: out of memory. `ret_found`: there is such a table. */
static bool read_table(struct load *load, struct tickmap_elf *elf,
		       uint32_t type, bool *ret_found)
{
	const struct elf_header_of_section *section =
		section_of_type(elf, type);
	struct elf_piece *names = &load->names[load->names_count];
	struct table table = { elf, names, type };
	struct elf_piece piece;
	bool ok = true;

	*ret_found = section && section->size >= entry_size(elf) &&
		     section->link < elf->sections.count &&
		     tickmap_elf_read_section(elf, section, &piece);
	if (!*ret_found)
		return true;
	section = &elf->sections.items[section->link];
	if (tickmap_elf_read_section(elf, section, names)) {
		load->names_count++;
		load->budget += tickmap_elf_text_budget(&piece, names);
		ok = read_entries(load, &table, &piece);
	}
	tickmap_elf_piece_free(&piece);
	return ok;
}

/* ---- Procedure linkage tables ---- */

static bool add_plt_entry(void *context, uint64_t svma, uint64_t size,
			  const char *name, uint64_t target)
{
	struct load *load = context;
	const struct candidate *known;
	char unknown[32];
	char *text;
	size_t length;

	/* An indirect function's slot knows only its resolver's address. */
	if (name) {
		length = strlen(name);
	} else if ((known = tickmap_elf_functions_named(&load->functions,
							target))) {
		name = known->name;
		length = known->name_length;
	} else {
		length = (size_t)snprintf(unknown, sizeof(unknown),
					  "*ABS*+0x%llx",
					  (unsigned long long)target);
		name = unknown;
	}
	if (length > load->budget)
		return true;
	load->budget -= length;
	text = tickmap_arena_alloc(&load->made, length + sizeof("@plt"));
	if (!text)
		return false;
	memcpy(text, name, length);
	memcpy(text + length, "@plt", sizeof("@plt"));
	struct candidate c = { .svma = svma,
			       .size = size,
			       .name = text,
			       .name_length =
				       (uint32_t)(length + strlen("@plt")),
			       .class = CLASS_LOCAL };
	return tickmap_elf_functions_add(&load->functions, &c);
}

/* ---- The whole ---- */

/* The .symtab that the file itself lacks. */
static void open_debug(struct load *load, struct tickmap_elf *elf,
		       const char *path, const char *sysroot)
{
	size_t size;

	if (path)
		load->debug = tickmap_debug_file_find(elf, path,
						      sysroot ? sysroot : "");
	if (!load->debug && tickmap_minidebug(elf, &load->unpacked, &size))
		tickmap_elf_open_memory(load->unpacked, size, &load->debug,
					NULL);
}

static bool gather(struct load *load, struct tickmap_elf *elf, const char *path,
		   const char *sysroot, bool *ret_stripped)
{
	bool found, ignored;

	if (!tickmap_elf_functions_code(&load->functions, elf) ||
	    !read_table(load, elf, SHT_SYMTAB, &found))
		return false;
	if (!found)
		open_debug(load, elf, path, sysroot);
	if (load->debug && !read_table(load, load->debug, SHT_SYMTAB, &found))
		return false;
	*ret_stripped = !found;
	if (!read_table(load, elf, SHT_DYNSYM, &ignored))
		return false;
	tickmap_elf_functions_sort(&load->functions);
	return tickmap_plt_entries(elf, add_plt_entry, load);
}

int tickmap_symbols_load(struct tickmap_elf *elf, const char *path,
			 const char *sysroot,
			 struct tickmap_symbols **ret_symbols,
			 struct tickmap_error *err)
{
	struct load load = { 0 };
	struct tickmap_symbols *symbols = calloc(1, sizeof(*symbols));
	bool ok = symbols &&
		  gather(&load, elf, path, sysroot, &symbols->stripped) &&
		  tickmap_elf_functions_choose(&load.functions, symbols);

	tickmap_elf_functions_free(&load.functions);
	for (size_t i = 0; i < load.names_count; i++)
		tickmap_elf_piece_free(&load.names[i]);
	tickmap_arena_free(&load.made);
	tickmap_elf_close(load.debug);
	free(load.unpacked);
	if (!ok) {
		tickmap_symbols_free(symbols);
		return tickmap_fail(err, TICKMAP_E_NOMEM, 0, "no memory");
	}
	*ret_symbols = symbols;
	return TICKMAP_OK;
}

void tickmap_symbols_free(struct tickmap_symbols *symbols)
{
	if (!symbols)
		return;
	free(symbols->items);
	free(symbols->pieces);
	free(symbols->names);
	free(symbols);
}

/* The last piece that starts at or before svma decides; a symbol that ends
 * before it leaves a gap. */
const struct tickmap_elf_symbol *
tickmap_symbols_find(const struct tickmap_symbols *symbols, uint64_t svma)
{
	size_t low = 0;
	size_t high = symbols->pieces ? symbols->piece_count : symbols->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		uint64_t start = symbols->pieces ? symbols->pieces[middle].start
						 : symbols->items[middle].svma;
		if (start <= svma)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return NULL;
	const struct tickmap_elf_symbol *s =
		&symbols->items[symbols->pieces ? symbols->pieces[low - 1].index
						: low - 1];
	/* Size 0: where it ends is unknown, its first byte is its own. */
	uint64_t into = svma - s->svma;
	return into < s->size || !into ? s : NULL;
}

bool tickmap_symbols_stripped(const struct tickmap_symbols *symbols)
{
	return symbols->stripped;
}

size_t tickmap_symbols_count(const struct tickmap_symbols *symbols)
{
	return symbols->count;
}

const struct tickmap_elf_symbol *
tickmap_symbols_at(const struct tickmap_symbols *symbols, size_t index)
{
	return index < symbols->count ? &symbols->items[index] : NULL;
}

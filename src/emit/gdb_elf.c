/* SPDX-License-Identifier: MIT */
/*
 * An ELF file that describes one function to a debugger: no bytes of its code,
 * which lies in memory already, but a symbol, the unwinding bytes at the
 * addresses where perf's image has them, and DWARF 2 lines.
 */
#include "internal.h"

#include <string.h>

enum section {
	NONE,
	TEXT,
	EH_FRAME,
	SYMTAB,
	STRTAB,
	SHSTRTAB,
	SECTIONS_WITHOUT_LINES,
	DEBUG_ABBREV = SECTIONS_WITHOUT_LINES,
	DEBUG_INFO,
	DEBUG_LINE,
	SECTIONS,
};

/* gdb looks for more debug information where there are sections of it, even
 * empty ones: for each function, in five files that do not exist. */
static uint16_t count_sections(const struct emit_code *code)
{
	return code->code.line_count ? SECTIONS : SECTIONS_WITHOUT_LINES;
}

static const char section_names[] = "\0.text\0.eh_frame\0.symtab\0.strtab\0"
				    ".shstrtab\0.debug_abbrev\0.debug_info\0"
				    ".debug_line";

#define SHT_PROGBITS 1
#define SHT_SYMTAB 2
#define SHT_STRTAB 3
#define SHT_NOBITS 8
#define SHF_ALLOC 2
#define SHF_EXECINSTR 4

#define EHDR_SIZE 64
#define SHDR_SIZE 64
#define SYM_SIZE 24
#define ET_REL 1

struct elf {
	struct emit_out *out;
	const struct emit_code *code;
	size_t offset[SECTIONS];
	size_t size[SECTIONS];
};

static void put_u8(struct emit_out *out, uint8_t value)
{
	tickmap_emit_put(out, &value, 1);
}

static void put_u16(struct emit_out *out, uint16_t value)
{
	tickmap_emit_put(out, &value, 2);
}

static void put_addr(struct emit_out *out, uint64_t value)
{
	tickmap_emit_put_u64(out, value);
}

static void put_uleb(struct emit_out *out, uint64_t value)
{
	while (value > 0x7f) {
		put_u8(out, (uint8_t)(value | 0x80));
		value >>= 7;
	}
	put_u8(out, (uint8_t)value);
}

static void put_sleb(struct emit_out *out, int64_t value)
{
	while (value < -64 || value > 63) {
		put_u8(out, (uint8_t)((value & 0x7f) | 0x80));
		/* An arithmetic shift, spelt out. */
		value = value < 0 ? -((-value + 127) / 128) : value / 128;
	}
	put_u8(out, (uint8_t)(value & 0x7f));
}

static void put_string(struct emit_out *out, const char *text)
{
	tickmap_emit_put_text(out, text, text ? strlen(text) : 0);
	put_u8(out, 0);
}

static void begin_section(struct elf *elf, enum section section)
{
	struct emit_out *out = elf->out;

	tickmap_emit_put_zeros(out, -out->used & 7);
	elf->offset[section] = out->used;
}

static void end_section(struct elf *elf, enum section section)
{
	elf->size[section] = elf->out->used - elf->offset[section];
}

static void put_header(struct emit_out *out, uint32_t machine,
		       uint16_t sections)
{
	const uint16_t probe = 1;
	uint8_t is_little = *(const uint8_t *)&probe;
	uint8_t ident[16] = { 0x7f, 'E', 'L', 'F', 2, 0, 1 };

	ident[5] = is_little ? 1 : 2;
	tickmap_emit_put(out, ident, sizeof(ident));
	put_u16(out, ET_REL);
	put_u16(out, (uint16_t)machine);
	tickmap_emit_put_u32(out, 1);
	tickmap_emit_put_u64(out, 0); /* entry */
	tickmap_emit_put_u64(out, 0); /* program headers */
	tickmap_emit_put_u64(out, 0); /* section headers; see set_headers */
	tickmap_emit_put_u32(out, 0);
	put_u16(out, EHDR_SIZE);
	put_u16(out, 0);
	put_u16(out, 0);
	put_u16(out, SHDR_SIZE);
	put_u16(out, sections);
	put_u16(out, SHSTRTAB);
}

static void put_symbols(struct elf *elf)
{
	const struct tickmap_code *code = &elf->code->code;
	struct emit_out *out = elf->out;

	begin_section(elf, SYMTAB);
	tickmap_emit_put_zeros(out, SYM_SIZE);
	tickmap_emit_put_u32(out, 1);
	put_u8(out, 1 << 4 | 2); /* global function */
	put_u8(out, 0);
	put_u16(out, TEXT);
	tickmap_emit_put_u64(out, 0);
	tickmap_emit_put_u64(out, code->code_size);
	end_section(elf, SYMTAB);

	begin_section(elf, STRTAB);
	put_u8(out, 0);
	tickmap_emit_put_text(out, code->name, code->name_length);
	put_u8(out, 0);
	end_section(elf, STRTAB);

	begin_section(elf, SHSTRTAB);
	tickmap_emit_put(out, section_names, sizeof(section_names));
	end_section(elf, SHSTRTAB);
}

static void put_frame(struct elf *elf)
{
	const struct emit_cfi *cfi = &elf->code->cfi;
	struct emit_out *out = elf->out;

	begin_section(elf, EH_FRAME);
	if (cfi->size) {
		tickmap_emit_put(out, cfi->bytes, cfi->size);
		if (!out->full)
			tickmap_emit_fit_cfi(out->base + elf->offset[EH_FRAME],
					     cfi, elf->code->code.code_size,
					     elf->code->index);
		tickmap_emit_put_u32(out, 0);
	}
	end_section(elf, EH_FRAME);
}

/* One unit with one subprogram: name, file, addresses. */
static void put_info(struct elf *elf)
{
	static const uint8_t abbrev[] = {
		1,    0x11, 1,	  /* DW_TAG_compile_unit, has children */
		0x03, 0x08,	  /* name: string */
		0x10, 0x06,	  /* stmt_list: data4 */
		0x11, 0x01,	  /* low_pc: addr */
		0x12, 0x01, 0, 0, /* high_pc: addr */
		2,    0x2e, 0,	  /* DW_TAG_subprogram, no children */
		0x03, 0x08,	  /* name */
		0x11, 0x01,	  /* low_pc */
		0x12, 0x01,	  /* high_pc */
		0x3f, 0x0c, 0, 0, /* external: flag */
		0,
	};
	const struct tickmap_code *code = &elf->code->code;
	struct emit_out *out = elf->out;
	const char *file = code->file;
	uint32_t length;
	size_t start;

	begin_section(elf, DEBUG_ABBREV);
	tickmap_emit_put(out, abbrev, sizeof(abbrev));
	end_section(elf, DEBUG_ABBREV);

	begin_section(elf, DEBUG_INFO);
	start = out->used;
	tickmap_emit_put_u32(out, 0);
	put_u16(out, 2);
	tickmap_emit_put_u32(out, 0);
	put_u8(out, 8);
	put_uleb(out, 1);
	put_string(out, file ? file : code->lines[0].file);
	tickmap_emit_put_u32(out, 0);
	put_addr(out, code->addr);
	put_addr(out, code->addr + code->code_size);
	put_uleb(out, 2);
	tickmap_emit_put_text(out, code->name, code->name_length);
	put_u8(out, 0);
	put_addr(out, code->addr);
	put_addr(out, code->addr + code->code_size);
	put_u8(out, 1);
	put_u8(out, 0);
	length = (uint32_t)(out->used - start - 4);
	if (!out->full)
		memcpy(out->base + start, &length, sizeof(length));
	end_section(elf, DEBUG_INFO);
}

static const char *file_of(const struct tickmap_code *code, size_t i)
{
	const char *file = code->lines[i].file;

	return file ? file : code->file ? code->file : "?";
}

/* Is the file of line i another one than that of the line before? */
static bool is_new_file(const struct tickmap_code *code, size_t i)
{
	return !i || (file_of(code, i) != file_of(code, i - 1) &&
		      strcmp(file_of(code, i), file_of(code, i - 1)));
}

static void put_files(struct emit_out *out, const struct tickmap_code *code)
{
	for (size_t i = 0; i < code->line_count && !out->full; i++) {
		if (!is_new_file(code, i))
			continue;
		put_string(out, file_of(code, i));
		put_uleb(out, 0); /* folder, time, size: unknown */
		put_uleb(out, 0);
		put_uleb(out, 0);
	}
	put_u8(out, 0);
}

static void put_line_program(struct emit_out *out,
			     const struct tickmap_code *code)
{
	uint64_t offset = 0;
	uint64_t file = 1;
	uint32_t line = 1;

	put_u8(out, 0); /* extended: set_address */
	put_uleb(out, 9);
	put_u8(out, 2);
	put_addr(out, code->addr);
	for (size_t i = 0; i < code->line_count && !out->full; i++) {
		const struct tickmap_line *entry = &code->lines[i];

		if (i && is_new_file(code, i)) {
			put_u8(out, 4); /* set_file */
			put_uleb(out, ++file);
		}
		put_u8(out, 2); /* advance_pc */
		put_uleb(out, entry->offset - offset);
		put_u8(out, 3); /* advance_line */
		put_sleb(out, (int64_t)entry->line - line);
		put_u8(out, 5); /* set_column */
		put_uleb(out, entry->column);
		put_u8(out, 1); /* copy */
		offset = entry->offset;
		line = entry->line;
	}
	put_u8(out, 2);
	put_uleb(out, code->code_size - offset);
	put_u8(out, 0); /* extended: end_sequence */
	put_uleb(out, 1);
	put_u8(out, 1);
}

static void put_lines(struct elf *elf)
{
	/* min inst, default is_stmt, line base, range, opcode base, lengths */
	static const uint8_t
		fixed[] = { 1, 1, 0, 1, 10, 0, 1, 1,
			    1, 1, 0, 0, 0,  1, 0 /* no folders */ };
	struct emit_out *out = elf->out;
	uint32_t length;
	size_t start;
	size_t header;

	begin_section(elf, DEBUG_LINE);
	start = out->used;
	tickmap_emit_put_u32(out, 0);
	put_u16(out, 2);
	tickmap_emit_put_u32(out, 0);
	header = out->used;
	tickmap_emit_put(out, fixed, sizeof(fixed));
	put_files(out, &elf->code->code);
	length = (uint32_t)(out->used - header);
	if (!out->full)
		memcpy(out->base + header - 4, &length, sizeof(length));
	put_line_program(out, &elf->code->code);
	length = (uint32_t)(out->used - start - 4);
	if (!out->full)
		memcpy(out->base + start, &length, sizeof(length));
	end_section(elf, DEBUG_LINE);
}

static uint32_t name_offset(enum section section)
{
	const char *at = section_names;

	for (int i = 0; i < (int)section; i++)
		at += strlen(at) + 1;
	return (uint32_t)(at - section_names);
}

static void put_section(struct elf *elf, enum section section, uint32_t type,
			uint64_t flags, uint64_t addr)
{
	struct emit_out *out = elf->out;
	bool is_symtab = type == SHT_SYMTAB;

	tickmap_emit_put_u32(out, name_offset(section));
	tickmap_emit_put_u32(out, type);
	tickmap_emit_put_u64(out, flags);
	tickmap_emit_put_u64(out, addr);
	tickmap_emit_put_u64(out, elf->offset[section]);
	tickmap_emit_put_u64(out, elf->size[section]);
	tickmap_emit_put_u32(out, is_symtab ? STRTAB : 0);
	tickmap_emit_put_u32(out, is_symtab ? 1 : 0); /* first global */
	tickmap_emit_put_u64(out, is_symtab ? 8 : 1);
	tickmap_emit_put_u64(out, is_symtab ? SYM_SIZE : 0);
}

static void put_sections(struct elf *elf)
{
	const struct tickmap_code *code = &elf->code->code;
	uint64_t frame_addr =
		code->addr + ((code->code_size + 7) & ~UINT64_C(7));
	struct emit_out *out = elf->out;
	uint64_t at;

	tickmap_emit_put_zeros(out, -out->used & 7);
	at = out->used;
	if (!out->full)
		memcpy(out->base + 40, &at, sizeof(at)); /* e_shoff */
	elf->size[TEXT] = (size_t)code->code_size;
	tickmap_emit_put_zeros(out, SHDR_SIZE);
	put_section(elf, TEXT, SHT_NOBITS, SHF_ALLOC | SHF_EXECINSTR,
		    code->addr);
	put_section(elf, EH_FRAME, SHT_PROGBITS, SHF_ALLOC, frame_addr);
	put_section(elf, SYMTAB, SHT_SYMTAB, 0, 0);
	put_section(elf, STRTAB, SHT_STRTAB, 0, 0);
	put_section(elf, SHSTRTAB, SHT_STRTAB, 0, 0);
	if (!code->line_count)
		return;
	put_section(elf, DEBUG_ABBREV, SHT_PROGBITS, 0, 0);
	put_section(elf, DEBUG_INFO, SHT_PROGBITS, 0, 0);
	put_section(elf, DEBUG_LINE, SHT_PROGBITS, 0, 0);
}

void tickmap_emit_gdb_elf(struct emit_out *out, const struct emit_code *code,
			  uint32_t elf_machine)
{
	struct elf elf = { .out = out, .code = code };

	put_header(out, elf_machine, count_sections(code));
	put_symbols(&elf);
	put_frame(&elf);
	if (code->code.line_count) {
		put_info(&elf);
		put_lines(&elf);
	}
	put_sections(&elf);
}

/* SPDX-License-Identifier: MIT */
/*
 * Procedure linkage tables have no symbols of their own. Each entry jumps
 * through a slot of the global offset table, and the relocation of that slot
 * names the function; an entry of a lazily bound IBT table pushes the
 * relocation's number instead. The code is read, not guessed from its place:
 * linkers order and size these tables differently.
 */
#include "object/elf_internal.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

struct slot {
	uint64_t at; /* svma of the slot in the global offset table */
	uint32_t symbol;
	uint64_t target; /* of an indirect function */
};

struct plt {
	struct tickmap_elf *elf;
	TICKMAP_VEC(struct slot) slots;	   /* by address */
	TICKMAP_VEC(struct slot) numbered; /* as .rela.plt has them */
	struct elf_piece symbols, names;
	uint64_t budget;
	tickmap_plt_emit emit;
	void *context;
};

static int by_address(const void *a, const void *b)
{
	const struct slot *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return x->symbol < y->symbol ? -1 : x->symbol > y->symbol;
}

static bool fills_a_slot(uint16_t machine, uint32_t type)
{
	if (machine == EM_X86_64)
		return type == R_X86_64_JUMP_SLOT ||
		       type == R_X86_64_GLOB_DAT || type == R_X86_64_IRELATIVE;
	return type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT ||
	       type == R_AARCH64_IRELATIVE;
}

/* Those beside .rela.plt fill slots of .plt.got alone, and may be millions. */
static bool read_relocations(struct plt *plt,
			     const struct elf_header_of_section *section,
			     bool others)
{
	bool numbered = strcmp(tickmap_elf_section_name(plt->elf, section),
			       ".rela.plt") == 0;
	struct elf_piece piece;
	bool ok = true;

	if ((!numbered && !others) ||
	    !tickmap_elf_read_section(plt->elf, section, &piece))
		return true;
	struct tickmap_bytes b = tickmap_elf_cursor(plt->elf, &piece);
	while (ok && tickmap_bytes_left(&b) >= sizeof(Elf64_Rela)) {
		struct slot slot = { .at = tickmap_u64(&b) };
		uint64_t info = tickmap_u64(&b);
		slot.target = tickmap_u64(&b);
		slot.symbol = (uint32_t)ELF64_R_SYM(info);
		if (numbered) {
			struct slot *new = tickmap_vec_push(&plt->numbered);
			ok = new != NULL;
			if (new)
				*new = slot;
		}
		if (ok && fills_a_slot(plt->elf->machine,
				       (uint32_t)ELF64_R_TYPE(info))) {
			struct slot *new = tickmap_vec_push(&plt->slots);
			ok = new != NULL;
			if (new)
				*new = slot;
		}
	}
	tickmap_elf_piece_free(&piece);
	return ok;
}

static const char *dynamic_name(struct plt *plt, uint32_t symbol)
{
	struct tickmap_bytes b = tickmap_elf_cursor(plt->elf, &plt->symbols);
	size_t length;

	tickmap_seek(&b, (size_t)symbol * sizeof(Elf64_Sym));
	uint32_t name = tickmap_u32(&b);
	if (b.failed)
		return NULL;
	const char *text = tickmap_elf_text(plt->elf, &plt->names, name,
					    &plt->budget, &length);
	return length ? text : NULL;
}

static bool found(struct plt *plt, uint64_t svma, uint64_t size,
		  const struct slot *slot)
{
	const char *name = NULL;

	if (slot->symbol) {
		name = dynamic_name(plt, slot->symbol);
		if (!name)
			return true;
	}
	return plt->emit(plt->context, svma, size, name, slot->target);
}

static bool found_slot(struct plt *plt, uint64_t svma, uint64_t size,
		       uint64_t at)
{
	struct slot key = { .at = at };
	size_t low = 0, high = plt->slots.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (by_address(&plt->slots.items[middle], &key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == plt->slots.count || plt->slots.items[low].at != at)
		return true; /* the table's first entry, for the loader */
	return found(plt, svma, size, &plt->slots.items[low]);
}

/* [endbr64] [bnd] jmp *slot(%rip), or [endbr64] push number */
static bool x86_64_entry(struct plt *plt, struct tickmap_bytes b, uint64_t svma,
			 uint64_t size)
{
	static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	enum { BND = 0xf2, PUSH = 0x68, JMP = 0xff, JMP_RIP = 0x25 };

	if (b.size >= sizeof(endbr64) && !memcmp(b.base, endbr64, 4))
		tickmap_take(&b, sizeof(endbr64));
	uint8_t op = tickmap_u8(&b);
	if (op == BND)
		op = tickmap_u8(&b);
	if (op == PUSH) {
		uint32_t number = tickmap_u32(&b);
		if (b.failed || number >= plt->numbered.count)
			return true;
		return found(plt, svma, size, &plt->numbered.items[number]);
	}
	if (op != JMP || tickmap_u8(&b) != JMP_RIP)
		return true;
	int32_t displacement = (int32_t)tickmap_u32(&b);
	if (b.failed)
		return true;
	uint64_t at = svma + b.pos + (uint64_t)(int64_t)displacement;
	return found_slot(plt, svma, size, at);
}

static bool x86_64_table(struct plt *plt, struct tickmap_bytes b,
			 const struct elf_header_of_section *section)
{
	uint64_t step = section->entry_size == 8 ? 8 : 16;

	for (uint64_t at = 0; tickmap_bytes_left(&b) >= step; at += step)
		if (!x86_64_entry(plt, tickmap_sub(&b, (size_t)step),
				  section->svma + at, step))
			return false;
	return true;
}

/* [bti c]; adrp x16, page; ldr x17, [x16, offset]; add x16, ...; br x17 */
static bool aarch64_table(struct plt *plt, struct tickmap_bytes b,
			  const struct elf_header_of_section *section)
{
	const uint32_t BTI_C = 0xd503245f, NOP = 0xd503201f;
	uint32_t before = 0;

	b.swap = __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__; /* code always is */
	while (tickmap_bytes_left(&b) >= 16) {
		uint64_t start = section->svma + b.pos;
		uint32_t adrp = tickmap_u32(&b);
		struct tickmap_bytes rest = b;
		uint32_t ldr = tickmap_u32(&rest);
		bool bti = before == BTI_C;
		before = adrp;
		if ((adrp & 0x9f00001f) != 0x90000010 ||
		    (ldr & 0xffc003ff) != 0xf9400211)
			continue;
		/* 21 bits of pages: the high 19 and the low 2 apart */
		uint32_t pages = (adrp >> 5 & 0x7ffff) << 2 | (adrp >> 29 & 3);
		int64_t page = (int32_t)(pages << 11) >> 11;
		uint64_t at = (start & ~UINT64_C(0xfff)) +
			      (uint64_t)(page * 4096) + (ldr >> 10 & 0xfff) * 8;
		tickmap_take(&b, 12);
		uint64_t size = bti ? 20 : 16;
		rest = b;
		if (bti && tickmap_u32(&rest) == NOP)
			size += 4;
		if (!found_slot(plt, bti ? start - 4 : start, size, at))
			return false;
	}
	return true;
}

static bool is_plt(const char *name)
{
	return strcmp(name, ".plt") == 0 || strcmp(name, ".plt.sec") == 0 ||
	       strcmp(name, ".plt.got") == 0 || strcmp(name, ".iplt") == 0;
}

static bool has_tables(const struct tickmap_elf *elf, bool *ret_others)
{
	bool any = false;

	*ret_others = false;
	for (size_t i = 0; i < elf->sections.count; i++) {
		const char *name =
			tickmap_elf_section_name(elf, &elf->sections.items[i]);
		any |= is_plt(name);
		*ret_others |= strcmp(name, ".plt.got") == 0;
	}
	return any;
}

static bool read_tables(struct plt *plt)
{
	struct tickmap_elf *elf = plt->elf;
	struct elf_piece piece;
	bool ok = true;

	for (size_t i = 0; i < elf->sections.count && ok; i++) {
		const struct elf_header_of_section *s = &elf->sections.items[i];
		if (!is_plt(tickmap_elf_section_name(elf, s)) ||
		    !tickmap_elf_read_section(elf, s, &piece))
			continue;
		struct tickmap_bytes b = tickmap_elf_cursor(elf, &piece);
		ok = elf->machine == EM_X86_64 ? x86_64_table(plt, b, s)
					       : aarch64_table(plt, b, s);
		tickmap_elf_piece_free(&piece);
	}
	return ok;
}

static bool read_inputs(struct plt *plt)
{
	struct tickmap_elf *elf = plt->elf;

	bool others;
	if (!has_tables(elf, &others))
		return true;
	for (size_t i = 0; i < elf->sections.count; i++) {
		const struct elf_header_of_section *s = &elf->sections.items[i];
		if (s->type == SHT_RELA && (s->flags & SHF_ALLOC) &&
		    !read_relocations(plt, s, others))
			return false;
		if (s->type != SHT_DYNSYM || plt->symbols.bytes ||
		    s->link >= elf->sections.count)
			continue;
		tickmap_elf_read_section(elf, s, &plt->symbols);
		tickmap_elf_read_section(elf, &elf->sections.items[s->link],
					 &plt->names);
	}
	plt->budget = tickmap_elf_text_budget(&plt->symbols, &plt->names);
	if (plt->slots.count)
		qsort(plt->slots.items, plt->slots.count, sizeof(struct slot),
		      by_address);
	return true;
}

bool tickmap_plt_entries(struct tickmap_elf *elf, tickmap_plt_emit emit,
			 void *context)
{
	struct plt plt = { .elf = elf, .emit = emit, .context = context };

	if (!elf->is_64 ||
	    (elf->machine != EM_X86_64 && elf->machine != EM_AARCH64))
		return true;
	tickmap_elf_read_sections(elf);
	bool ok = read_inputs(&plt) && read_tables(&plt);
	tickmap_vec_free(&plt.slots);
	tickmap_vec_free(&plt.numbered);
	tickmap_elf_piece_free(&plt.symbols);
	tickmap_elf_piece_free(&plt.names);
	return ok;
}

/* SPDX-License-Identifier: MIT */
/*
 * Entries of .debug_info. An entry begins with a code; the abbreviation of that
 * code says its tag and in which forms its attributes follow.
 */
#include "object/dwarf_internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- Abbreviations ---- */

void dwarf_abbrevs_free(struct dwarf_abbrevs *abbrevs)
{
	if (!abbrevs)
		return;
	tickmap_vec_free(&abbrevs->items);
	tickmap_vec_free(&abbrevs->specs);
	free(abbrevs);
}

/* Adds what a form takes; false where only the entry tells. */
static bool add_size(struct dwarf_abbrev *a, uint16_t form)
{
	switch (form) {
	case DW_FORM_flag_present:
	case DW_FORM_implicit_const:
		return true;
	case DW_FORM_data1:
	case DW_FORM_flag:
	case DW_FORM_ref1:
	case DW_FORM_strx1:
	case DW_FORM_addrx1:
		a->bytes += 1;
		return true;
	case DW_FORM_data2:
	case DW_FORM_ref2:
	case DW_FORM_strx2:
	case DW_FORM_addrx2:
		a->bytes += 2;
		return true;
	case DW_FORM_strx3:
	case DW_FORM_addrx3:
		a->bytes += 3;
		return true;
	case DW_FORM_data4:
	case DW_FORM_ref4:
	case DW_FORM_strx4:
	case DW_FORM_addrx4:
	case DW_FORM_ref_sup4:
		a->bytes += 4;
		return true;
	case DW_FORM_data8:
	case DW_FORM_ref8:
	case DW_FORM_ref_sig8:
	case DW_FORM_ref_sup8:
		a->bytes += 8;
		return true;
	case DW_FORM_data16:
		a->bytes += 16;
		return true;
	case DW_FORM_addr:
		a->addresses++;
		return true;
	case DW_FORM_strp:
	case DW_FORM_sec_offset:
	case DW_FORM_line_strp:
	case DW_FORM_strp_sup:
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_GNU_strp_alt:
		a->offsets++;
		return true;
	case DW_FORM_ref_addr:
		a->references++;
		return true;
	default:
		return false;
	}
}

static bool read_specs(struct dwarf_abbrevs *abbrevs, struct dwarf_abbrev *a,
		       struct tickmap_bytes *b)
{
	a->first = (uint32_t)abbrevs->specs.count;
	a->fixed = true;
	for (;;) {
		uint64_t name = tickmap_uleb(b), form = tickmap_uleb(b);
		int64_t constant =
			form == DW_FORM_implicit_const ? tickmap_sleb(b) : 0;
		if (b->failed)
			return false;
		if (!name && !form)
			break;
		struct dwarf_spec *spec = tickmap_vec_push(&abbrevs->specs);
		if (!spec)
			return false;
		/* What does not fit is no number of the standard. */
		*spec = (struct dwarf_spec) {
			.name = name <= UINT16_MAX ? (uint16_t)name : 0,
			.form = form <= UINT16_MAX ? (uint16_t)form : 0,
			.constant = constant,
		};
		a->fixed &= add_size(a, spec->form);
	}
	a->count = (uint32_t)abbrevs->specs.count - a->first;
	return true;
}

/* False: the bytes end too early, or no memory. */
static bool read_abbrevs(struct dwarf_abbrevs *abbrevs, struct tickmap_bytes *b)
{
	abbrevs->dense = true;
	abbrevs->items.count = abbrevs->specs.count = 0;
	for (;;) {
		struct dwarf_abbrev a = { .code = tickmap_uleb(b) };
		if (!a.code)
			return !b->failed;
		uint64_t tag = tickmap_uleb(b);
		a.tag = tag <= UINT16_MAX ? (uint16_t)tag : 0;
		a.children = tickmap_u8(b);
		if (!read_specs(abbrevs, &a, b))
			return false;
		struct dwarf_abbrev *new = tickmap_vec_push(&abbrevs->items);
		if (!new)
			return false;
		*new = a;
		abbrevs->dense &= a.code == abbrevs->items.count;
	}
}

static int by_code(const void *a, const void *b)
{
	const struct dwarf_abbrev *x = a, *y = b;

	return (x->code > y->code) - (x->code < y->code);
}

const struct dwarf_abbrevs *dwarf_abbrevs_at(struct tickmap_dwarf *dwarf,
					     uint64_t at)
{
	enum { FIRST = 4096 };
	uint64_t *slot = tickmap_table_put(&dwarf->abbrevs_by_at, at);
	uint64_t size = dwarf_size(dwarf, DWARF_ABBREV);
	bool good = false;

	if (!slot)
		return NULL;
	if (*slot)
		return *slot == UINT64_MAX ? NULL
					   : dwarf->abbrevs.items[*slot - 1];
	*slot = UINT64_MAX;
	struct dwarf_abbrevs *abbrevs = calloc(1, sizeof(*abbrevs));
	/* Where the table ends is known behind it. */
	for (uint64_t want = FIRST; abbrevs && !good && at < size; want *= 4) {
		struct tickmap_bytes b =
			dwarf_at(dwarf, DWARF_ABBREV, at, want);
		good = read_abbrevs(abbrevs, &b);
		uint64_t used = good ? b.pos : b.size;
		if (used > dwarf->abbrev_budget) {
			good = false;
			break;
		}
		dwarf->abbrev_budget -= used;
		if (want >= size - at)
			break;
	}
	struct dwarf_abbrevs **kept =
		good ? tickmap_vec_push(&dwarf->abbrevs) : NULL;
	if (!kept) {
		dwarf_abbrevs_free(abbrevs);
		return NULL;
	}
	if (!abbrevs->dense)
		qsort(abbrevs->items.items, abbrevs->items.count,
		      sizeof(*abbrevs->items.items), by_code);
	*kept = abbrevs;
	*slot = dwarf->abbrevs.count;
	return abbrevs;
}

const struct dwarf_abbrev *dwarf_abbrev(const struct dwarf_abbrevs *abbrevs,
					uint64_t code)
{
	const struct dwarf_abbrev wanted = { .code = code };

	if (!abbrevs->items.count)
		return NULL;
	if (abbrevs->dense)
		return code && code <= abbrevs->items.count
			       ? &abbrevs->items.items[code - 1]
			       : NULL;
	return bsearch(&wanted, abbrevs->items.items, abbrevs->items.count,
		       sizeof(wanted), by_code);
}

/* ---- Forms ---- */

uint64_t dwarf_uint(struct tickmap_bytes *b, unsigned size)
{
	const uint8_t *at;

	switch (size) {
	case 1:
		return tickmap_u8(b);
	case 2:
		return tickmap_u16(b);
	case 4:
		return tickmap_u32(b);
	case 8:
		return tickmap_u64(b);
	case 3:
		at = tickmap_take(b, 3);
		if (!at)
			return 0;
		bool big =
			b->swap == (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
		return big ? (uint64_t)at[0] << 16 | (uint64_t)at[1] << 8 |
				       at[2]
			   : (uint64_t)at[2] << 16 | (uint64_t)at[1] << 8 |
				       at[0];
	default:
		b->failed = true;
		return 0;
	}
}

static struct dwarf_value value_of(enum dwarf_class kind, uint64_t value)
{
	return (struct dwarf_value) { .kind = (uint8_t)kind, .value = value };
}

static struct dwarf_value string_in(enum dwarf_section section, uint64_t value)
{
	return (struct dwarf_value) { .kind = DWARF_STRING_OFFSET,
				      .section = (uint8_t)section,
				      .value = value };
}

/* The address of that number in the unit's part of .debug_addr. */
static struct dwarf_value indexed_address(struct tickmap_dwarf *dwarf,
					  const struct dwarf_unit *unit,
					  uint64_t index)
{
	unsigned size = unit->address_size;

	if (index > dwarf_size(dwarf, DWARF_ADDR))
		return value_of(DWARF_NONE, 0);
	struct tickmap_bytes b = dwarf_at(dwarf, DWARF_ADDR,
					  unit->addr_base + index * size, size);
	uint64_t address = dwarf_uint(&b, size);
	return value_of(b.failed ? DWARF_NONE : DWARF_ADDRESS, address);
}

static struct dwarf_value block(struct tickmap_bytes *b, uint64_t size)
{
	if (size > SIZE_MAX)
		size = SIZE_MAX;
	tickmap_take(b, (size_t)size);
	return value_of(DWARF_NONE, 0);
}

static struct dwarf_value reference(const struct dwarf_unit *unit,
				    uint64_t offset)
{
	return offset < unit->size
		       ? value_of(DWARF_REFERENCE, unit->offset + offset)
		       : value_of(DWARF_NONE, 0);
}

static struct dwarf_value inline_string(const struct dwarf_unit *unit,
					struct tickmap_bytes *b)
{
	size_t at = b->pos;

	(void)unit;
	tickmap_cstr(b, NULL);
	return value_of(DWARF_STRING, at);
}

void dwarf_form(struct tickmap_dwarf *dwarf, const struct dwarf_unit *unit,
		uint16_t form, int64_t constant, struct tickmap_bytes *b,
		struct dwarf_value *ret)
{
	unsigned word = unit->offset_size;

	switch (form) {
	case DW_FORM_addr:
		*ret = value_of(DWARF_ADDRESS,
				dwarf_uint(b, unit->address_size));
		return;
	case DW_FORM_addrx:
	case DW_FORM_GNU_addr_index:
		*ret = indexed_address(dwarf, unit, tickmap_uleb(b));
		return;
	case DW_FORM_addrx1:
	case DW_FORM_addrx2:
	case DW_FORM_addrx3:
	case DW_FORM_addrx4:
		*ret = indexed_address(
			dwarf, unit, dwarf_uint(b, form - DW_FORM_addrx1 + 1u));
		return;
	case DW_FORM_data1:
	case DW_FORM_flag:
		*ret = value_of(DWARF_CONSTANT, tickmap_u8(b));
		return;
	case DW_FORM_data2:
		*ret = value_of(DWARF_CONSTANT, tickmap_u16(b));
		return;
	case DW_FORM_data4:
		*ret = value_of(DWARF_CONSTANT, tickmap_u32(b));
		return;
	case DW_FORM_data8:
		*ret = value_of(DWARF_CONSTANT, tickmap_u64(b));
		return;
	case DW_FORM_udata:
		*ret = value_of(DWARF_CONSTANT, tickmap_uleb(b));
		return;
	case DW_FORM_sdata:
		*ret = value_of(DWARF_CONSTANT, (uint64_t)tickmap_sleb(b));
		return;
	case DW_FORM_implicit_const:
		*ret = value_of(DWARF_CONSTANT, (uint64_t)constant);
		return;
	case DW_FORM_flag_present:
		*ret = value_of(DWARF_CONSTANT, 1);
		return;
	case DW_FORM_sec_offset:
		*ret = value_of(DWARF_OFFSET, dwarf_uint(b, word));
		return;
	case DW_FORM_rnglistx:
	case DW_FORM_loclistx:
		*ret = value_of(DWARF_INDEX, tickmap_uleb(b));
		return;
	case DW_FORM_string:
		*ret = inline_string(unit, b);
		return;
	case DW_FORM_strp:
		*ret = string_in(DWARF_STR, dwarf_uint(b, word));
		return;
	case DW_FORM_line_strp:
		*ret = string_in(DWARF_LINE_STR, dwarf_uint(b, word));
		return;
	case DW_FORM_strp_sup:
	case DW_FORM_GNU_strp_alt:
		*ret = value_of(DWARF_STRING_ALT, dwarf_uint(b, word));
		return;
	case DW_FORM_strx:
	case DW_FORM_GNU_str_index:
		*ret = value_of(DWARF_STRING_INDEX, tickmap_uleb(b));
		return;
	case DW_FORM_strx1:
	case DW_FORM_strx2:
	case DW_FORM_strx3:
	case DW_FORM_strx4:
		*ret = value_of(DWARF_STRING_INDEX,
				dwarf_uint(b, form - DW_FORM_strx1 + 1u));
		return;
	case DW_FORM_ref1:
		*ret = reference(unit, tickmap_u8(b));
		return;
	case DW_FORM_ref2:
		*ret = reference(unit, tickmap_u16(b));
		return;
	case DW_FORM_ref4:
		*ret = reference(unit, tickmap_u32(b));
		return;
	case DW_FORM_ref8:
		*ret = reference(unit, tickmap_u64(b));
		return;
	case DW_FORM_ref_udata:
		*ret = reference(unit, tickmap_uleb(b));
		return;
	case DW_FORM_ref_addr:
		*ret = value_of(DWARF_REFERENCE,
				dwarf_uint(b, unit->version == 2
						      ? unit->address_size
						      : word));
		return;
	case DW_FORM_GNU_ref_alt:
		*ret = value_of(DWARF_REFERENCE_ALT, dwarf_uint(b, word));
		return;
	case DW_FORM_ref_sup4:
		*ret = value_of(DWARF_REFERENCE_ALT, tickmap_u32(b));
		return;
	case DW_FORM_ref_sup8:
		*ret = value_of(DWARF_REFERENCE_ALT, tickmap_u64(b));
		return;
	case DW_FORM_ref_sig8:
		*ret = block(b, 8);
		return;
	case DW_FORM_data16:
		*ret = block(b, 16);
		return;
	case DW_FORM_block1:
		*ret = block(b, tickmap_u8(b));
		return;
	case DW_FORM_block2:
		*ret = block(b, tickmap_u16(b));
		return;
	case DW_FORM_block4:
		*ret = block(b, tickmap_u32(b));
		return;
	case DW_FORM_block:
	case DW_FORM_exprloc:
		*ret = block(b, tickmap_uleb(b));
		return;
	default:
		/* How long it is is not known: the unit ends here. */
		b->failed = true;
		*ret = value_of(DWARF_NONE, 0);
	}
}

/* The form stands in front of the value; once is enough for any use of it. */
static void read_form(struct tickmap_dwarf *dwarf,
		      const struct dwarf_unit *unit,
		      const struct dwarf_spec *spec, struct tickmap_bytes *b,
		      struct dwarf_value *ret)
{
	uint64_t form = spec->form;
	int64_t constant = spec->constant;

	if (form == DW_FORM_indirect) {
		form = tickmap_uleb(b);
		if (form == DW_FORM_implicit_const)
			constant = tickmap_sleb(b);
	}
	dwarf_form(dwarf, unit, form <= UINT16_MAX ? (uint16_t)form : 0,
		   constant, b, ret);
}

/* ---- Entries ---- */

struct tickmap_bytes dwarf_cursor(const struct tickmap_dwarf *dwarf,
				  const struct dwarf_unit *unit,
				  uint64_t offset)
{
	struct tickmap_bytes b =
		tickmap_bytes_of(unit->bytes.bytes, unit->bytes.size);

	b.swap = dwarf->elf->swap;
	tickmap_seek(&b, (size_t)(offset - unit->offset));
	return b;
}

const struct dwarf_abbrev *dwarf_entry(const struct dwarf_unit *unit,
				       struct tickmap_bytes *b)
{
	uint64_t code = tickmap_uleb(b);
	const struct dwarf_abbrev *abbrev =
		code && !b->failed ? dwarf_abbrev(unit->abbrevs, code) : NULL;

	if (code && !abbrev)
		b->failed = true;
	return abbrev;
}

/* NULL where none of the table's entries has attributes. */
static const struct dwarf_spec *specs_of(const struct dwarf_unit *unit,
					 const struct dwarf_abbrev *abbrev)
{
	return abbrev->count ? &unit->abbrevs->specs.items[abbrev->first]
			     : NULL;
}

void dwarf_skip(struct tickmap_dwarf *dwarf, const struct dwarf_unit *unit,
		const struct dwarf_abbrev *abbrev, struct tickmap_bytes *b)
{
	const struct dwarf_spec *specs = specs_of(unit, abbrev);
	struct dwarf_value ignored;

	if (abbrev->fixed) {
		unsigned reference = unit->version == 2 ? unit->address_size
							: unit->offset_size;
		tickmap_take(
			b,
			(size_t)abbrev->bytes +
				(size_t)abbrev->addresses * unit->address_size +
				(size_t)abbrev->offsets * unit->offset_size +
				(size_t)abbrev->references * reference);
		return;
	}
	for (uint32_t i = 0; i < abbrev->count && !b->failed; i++) {
		struct dwarf_spec spec = specs[i];
		/* An address need not be looked up. */
		if (spec.form == DW_FORM_addrx ||
		    spec.form == DW_FORM_GNU_addr_index)
			spec.form = DW_FORM_udata;
		else if (spec.form >= DW_FORM_addrx1 &&
			 spec.form <= DW_FORM_addrx4)
			spec.form = (uint16_t)(spec.form - DW_FORM_addrx1 +
					       DW_FORM_strx1);
		read_form(dwarf, unit, &spec, b, &ignored);
	}
}

void dwarf_attributes(struct tickmap_dwarf *dwarf,
		      const struct dwarf_unit *unit,
		      const struct dwarf_abbrev *abbrev,
		      struct tickmap_bytes *b, struct dwarf_value *values,
		      size_t count)
{
	const struct dwarf_spec *specs = specs_of(unit, abbrev);

	for (size_t i = 0; i < count; i++)
		values[i].kind = DWARF_NONE;
	for (uint32_t i = 0; i < abbrev->count && !b->failed; i++) {
		struct dwarf_value value;
		read_form(dwarf, unit, &specs[i], b, &value);
		for (size_t n = 0; n < count; n++) {
			if (values[n].name != specs[i].name)
				continue;
			value.name = specs[i].name;
			values[n] = value;
			break;
		}
	}
	if (b->failed)
		for (size_t i = 0; i < count; i++)
			values[i].kind = DWARF_NONE;
}

const char *dwarf_string(struct tickmap_dwarf *dwarf,
			 const struct dwarf_unit *unit,
			 const struct dwarf_value *value)
{
	struct tickmap_bytes b;
	uint64_t at;

	switch (value->kind) {
	case DWARF_STRING:
		/* Units lie behind each other: no other key is like it. */
		return dwarf_text(dwarf, DWARF_INFO,
				  unit->offset + value->value);
	case DWARF_STRING_OFFSET:
		return dwarf_text(dwarf, value->section, value->value);
	case DWARF_STRING_INDEX:
		if (value->value > dwarf_size(dwarf, DWARF_STR_OFFSETS))
			return NULL;
		at = unit->str_offsets_base + value->value * unit->offset_size;
		b = dwarf_at(dwarf, DWARF_STR_OFFSETS, at, unit->offset_size);
		at = dwarf_uint(&b, unit->offset_size);
		return b.failed ? NULL : dwarf_text(dwarf, DWARF_STR, at);
	case DWARF_STRING_ALT:
		return dwarf->alt
			       ? dwarf_text(dwarf->alt, DWARF_STR, value->value)
			       : NULL;
	default:
		return NULL;
	}
}

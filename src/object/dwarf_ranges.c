/* SPDX-License-Identifier: MIT */
/*
 * The addresses that an entry covers: one range, or a list in .debug_ranges (up
 * to version 4) or .debug_rnglists (from version 5 on).
 */
#include "object/dwarf_internal.h"

enum {
	DW_RLE_end_of_list,
	DW_RLE_base_addressx,
	DW_RLE_startx_endx,
	DW_RLE_startx_length,
	DW_RLE_offset_pair,
	DW_RLE_base_address,
	DW_RLE_start_end,
	DW_RLE_start_length,
};

struct list {
	struct tickmap_dwarf *dwarf;
	const struct dwarf_unit *unit;
	uint64_t base;
	dwarf_range_emit emit;
	void *context;
};

/* What a linker has thrown away begins at 0, or at the end of all addresses. */
static bool emit(const struct list *list, uint64_t low, uint64_t high)
{
	uint64_t all = list->unit->address_size == 8 ? UINT64_MAX : UINT32_MAX;

	if (!low || low >= high || low >= all - 1)
		return true;
	return list->emit(list->context, low, high);
}

static bool spend(struct tickmap_dwarf *dwarf)
{
	if (!dwarf->range_budget)
		return false;
	dwarf->range_budget--;
	return true;
}

static bool old_list(struct list *list, uint64_t at)
{
	unsigned size = list->unit->address_size;
	uint64_t base_mark = size == 8 ? UINT64_MAX : UINT32_MAX;

	for (; spend(list->dwarf); at += 2 * size) {
		struct tickmap_bytes b =
			dwarf_at(list->dwarf, DWARF_RANGES, at, 2 * size);
		uint64_t low = dwarf_uint(&b, size);
		uint64_t high = dwarf_uint(&b, size);
		if (b.failed || (!low && !high))
			break;
		if (low == base_mark)
			list->base = high;
		else if (!emit(list, list->base + low, list->base + high))
			return false;
	}
	return true;
}

static uint64_t indexed(const struct list *list, struct tickmap_bytes *b)
{
	struct dwarf_value value;

	dwarf_form(list->dwarf, list->unit, DW_FORM_addrx, 0, b, &value);
	return value.kind == DWARF_ADDRESS ? value.value : 0;
}

/* True while the list goes on. */
static bool new_entry(struct list *list, struct tickmap_bytes *b,
		      uint64_t *ret_low, uint64_t *ret_high)
{
	unsigned size = list->unit->address_size;

	*ret_low = *ret_high = 0;
	switch (tickmap_u8(b)) {
	case DW_RLE_base_addressx:
		list->base = indexed(list, b);
		return !b->failed;
	case DW_RLE_startx_endx:
		*ret_low = indexed(list, b);
		*ret_high = indexed(list, b);
		return !b->failed;
	case DW_RLE_startx_length:
		*ret_low = indexed(list, b);
		*ret_high = *ret_low + tickmap_uleb(b);
		return !b->failed;
	case DW_RLE_offset_pair:
		*ret_low = list->base + tickmap_uleb(b);
		*ret_high = list->base + tickmap_uleb(b);
		return !b->failed;
	case DW_RLE_base_address:
		list->base = dwarf_uint(b, size);
		return !b->failed;
	case DW_RLE_start_end:
		*ret_low = dwarf_uint(b, size);
		*ret_high = dwarf_uint(b, size);
		return !b->failed;
	case DW_RLE_start_length:
		*ret_low = dwarf_uint(b, size);
		*ret_high = *ret_low + tickmap_uleb(b);
		return !b->failed;
	default:
		return false;
	}
}

static bool new_list(struct list *list, uint64_t at)
{
	enum { ENTRY_MAX = 1 + 10 + 10 };

	while (spend(list->dwarf)) {
		struct tickmap_bytes b =
			dwarf_at(list->dwarf, DWARF_RNGLISTS, at, ENTRY_MAX);
		uint64_t low, high;
		if (!new_entry(list, &b, &low, &high))
			break;
		if (!emit(list, low, high))
			return false;
		at += b.pos;
	}
	return true;
}

/* The list of that number: an offset in the unit's table of lists. */
static bool list_at(struct tickmap_dwarf *dwarf, const struct dwarf_unit *unit,
		    uint64_t index, uint64_t *ret_at)
{
	unsigned size = unit->offset_size;

	if (index > dwarf_size(dwarf, DWARF_RNGLISTS))
		return false;
	struct tickmap_bytes b =
		dwarf_at(dwarf, DWARF_RNGLISTS,
			 unit->rnglists_base + index * size, size);
	*ret_at = unit->rnglists_base + dwarf_uint(&b, size);
	return !b.failed;
}

bool dwarf_ranges(struct tickmap_dwarf *dwarf, const struct dwarf_unit *unit,
		  const struct dwarf_value *low, const struct dwarf_value *high,
		  const struct dwarf_value *ranges, dwarf_range_emit out,
		  void *context)
{
	struct list list = { dwarf, unit, unit->low_pc, out, context };
	uint64_t at = ranges->value;

	if (ranges->kind == DWARF_NONE) {
		if (low->kind != DWARF_ADDRESS)
			return true;
		if (high->kind == DWARF_ADDRESS)
			return emit(&list, low->value, high->value);
		/* From version 4 on a constant is a length. */
		return high->kind != DWARF_CONSTANT ||
		       high->value > UINT64_MAX - low->value ||
		       emit(&list, low->value, low->value + high->value);
	}
	if (ranges->kind == DWARF_INDEX)
		return !list_at(dwarf, unit, at, &at) || new_list(&list, at);
	if (unit->version >= 5)
		return new_list(&list, at);
	return old_list(&list, at);
}

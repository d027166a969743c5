/* SPDX-License-Identifier: MIT */
/*
 * Units of .debug_info, and which of them an address belongs to: by
 * .debug_aranges where it lists the unit, else by the unit's first entry.
 */
#include "object/dwarf_internal.h"

#include <stdlib.h>

/* ---- Headers ---- */

static uint64_t read_length(struct tickmap_bytes *b, uint8_t *ret_offset_size)
{
	uint64_t length = tickmap_u32(b);

	*ret_offset_size = 4;
	if (length == UINT32_MAX) {
		*ret_offset_size = 8;
		length = tickmap_u64(b);
	}
	return length;
}

/* False: no unit begins there. */
static bool read_header(struct tickmap_dwarf *dwarf, uint64_t offset,
			struct dwarf_unit *u)
{
	enum { HEADER_MAX = 12 + 2 + 1 + 1 + 8 + 8 + 8 };
	uint64_t left = dwarf_size(dwarf, DWARF_INFO) - offset;
	struct tickmap_bytes b =
		dwarf_at(dwarf, DWARF_INFO, offset, HEADER_MAX);

	*u = (struct dwarf_unit) { .offset = offset };
	uint64_t length = read_length(&b, &u->offset_size);
	uint64_t body = b.pos;
	if (b.failed || length > left - body || !length)
		return false;
	u->size = body + length;
	u->version = (uint8_t)tickmap_u16(&b);
	if (u->version >= 5) {
		u->type = tickmap_u8(&b);
		u->address_size = tickmap_u8(&b);
		u->abbrev_at = dwarf_uint(&b, u->offset_size);
		if (u->type == DW_UT_skeleton || u->type == DW_UT_split_compile)
			tickmap_u64(&b); /* id of the .dwo file */
	} else {
		u->abbrev_at = dwarf_uint(&b, u->offset_size);
		u->address_size = tickmap_u8(&b);
	}
	u->header_size = (uint8_t)b.pos;
	u->broken = b.failed || u->version < 2 || u->version > 5 ||
		    (u->address_size != 4 && u->address_size != 8) ||
		    b.pos > u->size || u->type == DW_UT_type;
	return true;
}

static bool find_units(struct tickmap_dwarf *dwarf)
{
	uint64_t size = dwarf_size(dwarf, DWARF_INFO), at = 0;

	while (at < size) {
		struct dwarf_unit unit;
		if (!read_header(dwarf, at, &unit))
			break;
		struct dwarf_unit *new = tickmap_vec_push(&dwarf->units);
		if (!new)
			return false;
		*new = unit;
		at += unit.size;
	}
	return true;
}

uint32_t dwarf_unit_holding(struct tickmap_dwarf *dwarf, uint64_t offset)
{
	size_t low = 0, high;

	if (!dwarf_units_find(dwarf))
		return UINT32_MAX;
	for (high = dwarf->units.count; low < high;) {
		size_t middle = low + (high - low) / 2;
		if (dwarf->units.items[middle].offset <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return UINT32_MAX;
	const struct dwarf_unit *u = &dwarf->units.items[low - 1];
	return offset - u->offset < u->size ? (uint32_t)(low - 1) : UINT32_MAX;
}

/* ---- The first entry ---- */

struct head {
	struct dwarf_value low, high, ranges;
};

enum { BASE_STRINGS, BASE_ADDRESSES, BASE_RNGLISTS, BASES };

static void take_bases(struct dwarf_unit *u, const struct dwarf_value *v)
{
	if (v[BASE_STRINGS].kind)
		u->str_offsets_base = v[BASE_STRINGS].value;
	if (v[BASE_ADDRESSES].kind)
		u->addr_base = v[BASE_ADDRESSES].value;
	if (v[BASE_RNGLISTS].kind)
		u->rnglists_base = v[BASE_RNGLISTS].value;
}

enum {
	HEAD_LOW,
	HEAD_HIGH,
	HEAD_RANGES,
	HEAD_LINES,
	HEAD_DIR,
	HEAD_DWO,
	HEAD_GNU_DWO,
	HEADS
};

/* Reads it out of `b`, a cursor over the unit's begin. */
static bool read_first(struct tickmap_dwarf *dwarf, struct dwarf_unit *u,
		       struct tickmap_bytes b, struct dwarf_value *v)
{
	struct dwarf_value bases[BASES] = {
		[BASE_STRINGS] = { .name = DW_AT_str_offsets_base },
		[BASE_ADDRESSES] = { .name = DW_AT_addr_base },
		[BASE_RNGLISTS] = { .name = DW_AT_rnglists_base },
	};

	tickmap_seek(&b, u->header_size);
	const struct dwarf_abbrev *abbrev = dwarf_entry(u, &b);
	if (!abbrev)
		return false;
	u->tag = abbrev->tag;
	/* Indices may stand in front of the bases that they count from. */
	struct tickmap_bytes again = b;
	dwarf_attributes(dwarf, u, abbrev, &b, bases, BASES);
	if (b.failed)
		return false;
	take_bases(u, bases);
	dwarf_attributes(dwarf, u, abbrev, &again, v, HEADS);
	return !again.failed;
}

static bool read_head(struct tickmap_dwarf *dwarf, struct dwarf_unit *u,
		      struct head *ret_head)
{
	struct dwarf_value v[HEADS] = {
		[HEAD_LOW] = { .name = DW_AT_low_pc },
		[HEAD_HIGH] = { .name = DW_AT_high_pc },
		[HEAD_RANGES] = { .name = DW_AT_ranges },
		[HEAD_LINES] = { .name = DW_AT_stmt_list },
		[HEAD_DIR] = { .name = DW_AT_comp_dir },
		[HEAD_DWO] = { .name = DW_AT_dwo_name },
		[HEAD_GNU_DWO] = { .name = DW_AT_GNU_dwo_name },
	};
	bool good = false;

	if (u->broken)
		return false;
	if (!u->abbrevs)
		u->abbrevs = dwarf_abbrevs_at(dwarf, u->abbrev_at);
	for (uint64_t want = 1024; u->abbrevs && !good; want *= 16) {
		bool all = want >= u->size;
		uint64_t size = all ? u->size : want;
		struct tickmap_bytes b =
			dwarf_at(dwarf, DWARF_INFO, u->offset, size);
		if (b.size > size)
			b.size = (size_t)size;
		good = read_first(dwarf, u, b, v);
		if (all)
			break;
	}
	u->head_read = true;
	u->broken = !good;
	if (!good)
		return false;
	u->low_pc = v[HEAD_LOW].kind == DWARF_ADDRESS ? v[HEAD_LOW].value : 0;
	u->has_lines = v[HEAD_LINES].kind;
	u->lines_at = v[HEAD_LINES].value;
	u->split = v[HEAD_DWO].kind || v[HEAD_GNU_DWO].kind;
	u->comp_dir = dwarf_string(dwarf, u, &v[HEAD_DIR]);
	*ret_head = (struct head) { v[HEAD_LOW], v[HEAD_HIGH], v[HEAD_RANGES] };
	return true;
}

struct dwarf_unit *dwarf_unit_load(struct tickmap_dwarf *dwarf, uint32_t unit)
{
	struct dwarf_unit *u;
	struct head head;

	if (unit >= dwarf->units.count)
		return NULL;
	u = &dwarf->units.items[unit];
	if (u->loaded || u->broken)
		return u->broken ? NULL : u;
	if ((!u->head_read && !read_head(dwarf, u, &head)) ||
	    !dwarf_keep(dwarf, DWARF_INFO, u->offset, u->size, &u->bytes)) {
		u->broken = true;
		return NULL;
	}
	u->loaded = true;
	return u;
}

/* ---- Spans ---- */

static int by_low(const void *a, const void *b)
{
	const struct dwarf_span *x = a, *y = b;

	if (x->low != y->low)
		return x->low < y->low ? -1 : 1;
	return (x->index > y->index) - (x->index < y->index);
}

/* A heap of the spans that are open, the greatest index on top. */
struct heap {
	const struct dwarf_span **items;
	size_t count;
};

static void heap_push(struct heap *heap, const struct dwarf_span *span)
{
	size_t i = heap->count++;

	while (i && heap->items[(i - 1) / 2]->index < span->index) {
		heap->items[i] = heap->items[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	heap->items[i] = span;
}

static void heap_pop(struct heap *heap)
{
	const struct dwarf_span *last = heap->items[--heap->count];
	size_t i = 0, child;

	for (; (child = 2 * i + 1) < heap->count; i = child) {
		if (child + 1 < heap->count &&
		    heap->items[child + 1]->index > heap->items[child]->index)
			child++;
		if (heap->items[child]->index <= last->index)
			break;
		heap->items[i] = heap->items[child];
	}
	if (heap->count)
		heap->items[i] = last;
}

static void add_piece(struct dwarf_span *out, size_t *count,
		      struct dwarf_span piece)
{
	struct dwarf_span *last = *count ? &out[*count - 1] : NULL;

	if (last && last->index == piece.index && last->high == piece.low)
		last->high = piece.high;
	else
		out[(*count)++] = piece;
}

/* Each step ends at the begin or at the end of a span: at most two a span. */
static size_t sweep(const struct dwarf_span *in, size_t n, struct heap *heap,
		    struct dwarf_span *out)
{
	size_t count = 0, i = 0;
	uint64_t at = 0;

	while (i < n || heap->count) {
		if (!heap->count && at < in[i].low)
			at = in[i].low;
		for (; i < n && in[i].low <= at; i++)
			heap_push(heap, &in[i]);
		while (heap->count && heap->items[0]->high <= at)
			heap_pop(heap);
		if (!heap->count)
			continue;
		const struct dwarf_span *top = heap->items[0];
		uint64_t end =
			i < n && in[i].low < top->high ? in[i].low : top->high;
		add_piece(out, &count,
			  (struct dwarf_span) { at, end, top->index });
		at = end;
	}
	return count;
}

bool dwarf_spans_flatten(struct dwarf_span **spans, size_t *count)
{
	size_t n = *count;
	struct dwarf_span *out = calloc(2 * n + 1, sizeof(*out));
	struct heap heap = { calloc(n + 1, sizeof(*heap.items)), 0 };

	if (!out || !heap.items) {
		free(out);
		free(heap.items);
		return false;
	}
	if (n)
		qsort(*spans, n, sizeof(**spans), by_low);
	*count = sweep(*spans, n, &heap, out);
	free(heap.items);
	free(*spans);
	*spans = out;
	struct dwarf_span *exact = realloc(out, (*count + 1) * sizeof(*out));
	if (exact)
		*spans = exact;
	return true;
}

const struct dwarf_span *dwarf_span_at(const struct dwarf_span *spans,
				       size_t count, uint64_t svma)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (spans[middle].low <= svma)
			low = middle + 1;
		else
			high = middle;
	}
	return low && svma < spans[low - 1].high ? &spans[low - 1] : NULL;
}

/* ---- Which unit's code ---- */

struct spans {
	TICKMAP_VEC(struct dwarf_span) all;
	uint32_t unit;
};

static bool add_span(void *context, uint64_t low, uint64_t high)
{
	struct spans *spans = context;
	struct dwarf_span *span = tickmap_vec_push(&spans->all);

	if (span)
		*span = (struct dwarf_span) { low, high, spans->unit };
	return span;
}

/* One set of .debug_aranges; `b` begins at its first byte and holds no more. */
static bool read_set(struct tickmap_dwarf *dwarf, struct tickmap_bytes b,
		     struct spans *spans)
{
	uint8_t offset_size;

	read_length(&b, &offset_size);
	uint16_t version = tickmap_u16(&b);
	uint64_t info = dwarf_uint(&b, offset_size);
	uint8_t size = tickmap_u8(&b), segment = tickmap_u8(&b);
	uint32_t unit = dwarf_unit_holding(dwarf, info);

	if (b.failed || version != 2 || segment || (size != 4 && size != 8) ||
	    unit == UINT32_MAX || dwarf->units.items[unit].offset != info)
		return true;
	tickmap_seek(&b, (b.pos + 2u * size - 1) / (2u * size) * (2u * size));
	spans->unit = unit;
	while (tickmap_bytes_left(&b) >= 2u * size) {
		uint64_t low = dwarf_uint(&b, size);
		uint64_t length = dwarf_uint(&b, size);
		if (!low && !length)
			break;
		dwarf->units.items[unit].in_aranges = true;
		/* The linker leaves 0 where it threw the code away. */
		if (low && length && length <= UINT64_MAX - low &&
		    !add_span(spans, low, low + length))
			return false;
	}
	return true;
}

static bool read_aranges(struct tickmap_dwarf *dwarf, struct spans *spans)
{
	uint64_t size = dwarf_size(dwarf, DWARF_ARANGES), at = 0;

	while (at < size) {
		uint8_t offset_size;
		struct tickmap_bytes b = dwarf_at(dwarf, DWARF_ARANGES, at, 12);
		uint64_t length = read_length(&b, &offset_size);
		uint64_t whole = length + b.pos;
		if (b.failed || whole < length || whole > size - at || !length)
			break;
		b = dwarf_at(dwarf, DWARF_ARANGES, at, whole);
		b = tickmap_sub(&b, (size_t)whole);
		if (!read_set(dwarf, b, spans))
			return false;
		at += whole;
	}
	return true;
}

static bool read_heads(struct tickmap_dwarf *dwarf, struct spans *spans)
{
	for (uint32_t i = 0; i < dwarf->units.count; i++) {
		struct dwarf_unit *u = &dwarf->units.items[i];
		struct head head;
		if (u->in_aranges || u->head_read ||
		    !read_head(dwarf, u, &head) ||
		    u->tag == DW_TAG_partial_unit)
			continue;
		spans->unit = i;
		if (!dwarf_ranges(dwarf, u, &head.low, &head.high, &head.ranges,
				  add_span, spans))
			return false;
	}
	return true;
}

bool dwarf_units_find(struct tickmap_dwarf *dwarf)
{
	if (dwarf->units_found)
		return true;
	dwarf->units_found = true;
	return find_units(dwarf);
}

static bool find_code(struct tickmap_dwarf *dwarf)
{
	struct spans spans = { 0 };
	bool good = dwarf_units_find(dwarf) && read_aranges(dwarf, &spans) &&
		    read_heads(dwarf, &spans) &&
		    dwarf_spans_flatten(&spans.all.items, &spans.all.count);

	if (good) {
		dwarf->code = spans.all.items;
		dwarf->code_count = spans.all.count;
	} else {
		tickmap_vec_free(&spans.all);
	}
	return good;
}

uint32_t dwarf_unit_of_code(struct tickmap_dwarf *dwarf, uint64_t svma)
{
	if (!dwarf->code && !find_code(dwarf))
		return UINT32_MAX;
	const struct dwarf_span *span =
		dwarf_span_at(dwarf->code, dwarf->code_count, svma);
	return span ? span->index : UINT32_MAX;
}

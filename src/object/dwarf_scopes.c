/* SPDX-License-Identifier: MIT */
/*
 * Address -> scope. The first question about a unit walks all its entries once
 * and makes a sorted list of disjoint pieces, each with the innermost function
 * or inlined function there; questions are binary searches.
 */
#include "object/dwarf_internal.h"

#include <stdlib.h>

#define NO_SCOPE UINT32_MAX
#define ALT_BIT (UINT64_C(1) << 63)

/* A function, or an inlined copy of one, with code. */
struct scope {
	uint32_t entry;	 /* byte of the unit */
	uint32_t parent; /* what it was inlined into; NO_SCOPE: nothing */
	bool inlined;
};

struct dwarf_index {
	TICKMAP_VEC(struct scope) scopes; /* parents before children */
	struct dwarf_span *pieces;
	size_t piece_count;
};

void dwarf_index_free(struct dwarf_index *index)
{
	if (!index)
		return;
	tickmap_vec_free(&index->scopes);
	free(index->pieces);
	free(index);
}

size_t dwarf_index_memory(const struct dwarf_index *index)
{
	return index ? sizeof(*index) +
			       index->scopes.capacity * sizeof(struct scope) +
			       index->piece_count * sizeof(struct dwarf_span)
		     : 0;
}

/* ---- Making it ---- */

struct build {
	struct tickmap_dwarf *dwarf;
	const struct dwarf_unit *unit;
	struct dwarf_index *index;
	TICKMAP_VEC(struct dwarf_span) spans;
	TICKMAP_VEC(uint32_t) path; /* the scope around each open entry */
	bool no_memory;
};

static bool add_span(void *context, uint64_t low, uint64_t high)
{
	struct build *build = context;
	struct dwarf_span *span = tickmap_vec_push(&build->spans);

	if (span)
		*span = (struct dwarf_span) {
			low, high, (uint32_t)build->index->scopes.count
		};
	else
		build->no_memory = true;
	return span;
}

/* The scope that the entry opens, or `around` if it has no code of its own. */
static uint32_t enter(struct build *build, const struct dwarf_abbrev *abbrev,
		      size_t at, uint32_t around, struct tickmap_bytes *b)
{
	struct dwarf_value v[] = {
		{ .name = DW_AT_low_pc },
		{ .name = DW_AT_high_pc },
		{ .name = DW_AT_ranges },
	};
	size_t before = build->spans.count;
	bool inlined = abbrev->tag == DW_TAG_inlined_subroutine;

	if (!inlined && abbrev->tag != DW_TAG_subprogram) {
		dwarf_skip(build->dwarf, build->unit, abbrev, b);
		return around;
	}
	dwarf_attributes(build->dwarf, build->unit, abbrev, b, v, 3);
	if (!dwarf_ranges(build->dwarf, build->unit, &v[0], &v[1], &v[2],
			  add_span, build) ||
	    build->spans.count == before)
		return inlined ? around : NO_SCOPE;
	struct scope *scope = tickmap_vec_push(&build->index->scopes);
	if (!scope) {
		build->no_memory = true;
		return around;
	}
	*scope = (struct scope) { (uint32_t)at, inlined ? around : NO_SCOPE,
				  inlined };
	return (uint32_t)(build->index->scopes.count - 1);
}

/* What comes before a broken entry is good. */
static void walk(struct build *build)
{
	const struct dwarf_unit *u = build->unit;
	struct tickmap_bytes b =
		dwarf_cursor(build->dwarf, u, u->offset + u->header_size);

	while (tickmap_bytes_left(&b) && !build->no_memory) {
		size_t at = b.pos, depth = build->path.count;
		const struct dwarf_abbrev *abbrev = dwarf_entry(u, &b);
		if (b.failed || (!abbrev && !depth))
			break;
		if (!abbrev) {
			build->path.count--;
			continue;
		}
		uint32_t around =
			depth ? build->path.items[depth - 1] : NO_SCOPE;
		uint32_t scope = enter(build, abbrev, at, around, &b);
		if (abbrev->children) {
			uint32_t *step = tickmap_vec_push(&build->path);
			build->no_memory |= !step;
			if (step)
				*step = scope;
		} else if (!depth) {
			break;
		}
	}
}

static struct dwarf_index *index_of(struct tickmap_dwarf *dwarf,
				    struct dwarf_unit *unit)
{
	struct build build = { .dwarf = dwarf, .unit = unit };

	if (unit->index)
		return unit->index;
	build.index = calloc(1, sizeof(*build.index));
	if (!build.index || unit->size > UINT32_MAX) {
		dwarf_index_free(build.index);
		unit->broken = true;
		return NULL;
	}
	walk(&build);
	bool good = !build.no_memory &&
		    dwarf_spans_flatten(&build.spans.items, &build.spans.count);
	if (good) {
		build.index->pieces = build.spans.items;
		build.index->piece_count = build.spans.count;
		unit->index = build.index;
	} else {
		tickmap_vec_free(&build.spans);
		dwarf_index_free(build.index);
		unit->broken = true;
	}
	tickmap_vec_free(&build.path);
	return unit->index;
}

/* ---- Asking it ---- */

static uint64_t function_key(const struct dwarf_value *origin, uint64_t entry)
{
	if (origin->kind == DWARF_REFERENCE)
		return (origin->value & ~ALT_BIT) + 1;
	if (origin->kind == DWARF_REFERENCE_ALT)
		return ((origin->value & ~ALT_BIT) + 1) | ALT_BIT;
	return entry + 1;
}

static struct tickmap_dwarf_scope describe(struct tickmap_dwarf *dwarf,
					   const struct dwarf_unit *unit,
					   const struct scope *scope)
{
	struct dwarf_value v[] = {
		{ .name = DW_AT_abstract_origin },
		{ .name = DW_AT_call_file },
		{ .name = DW_AT_call_line },
	};
	uint64_t entry = unit->offset + scope->entry;
	struct tickmap_bytes b = dwarf_cursor(dwarf, unit, entry);
	const struct dwarf_abbrev *abbrev = dwarf_entry(unit, &b);
	struct tickmap_dwarf_scope out = {
		.unit = (uint32_t)(unit - dwarf->units.items),
		.inlined = scope->inlined,
	};

	if (abbrev)
		dwarf_attributes(dwarf, unit, abbrev, &b, v, 3);
	out.function = function_key(&v[0], entry);
	if (v[1].kind == DWARF_CONSTANT && v[1].value < UINT32_MAX)
		out.call_file = (uint32_t)v[1].value;
	if (v[2].kind == DWARF_CONSTANT && v[2].value <= UINT32_MAX)
		out.call_line = (uint32_t)v[2].value;
	return out;
}

size_t tickmap_dwarf_scopes(struct tickmap_dwarf *dwarf, uint64_t svma,
			    struct tickmap_dwarf_scope *ret_scopes, size_t room,
			    enum tickmap_dwarf_reason *ret_reason)
{
	uint32_t number = dwarf_unit_of_code(dwarf, svma);
	size_t count = 0;

	*ret_reason = TICKMAP_DWARF_NO_UNIT;
	if (number == UINT32_MAX)
		return 0;
	struct dwarf_unit *unit = dwarf_unit_load(dwarf, number);
	struct dwarf_index *index = unit ? index_of(dwarf, unit) : NULL;
	*ret_reason = TICKMAP_DWARF_BROKEN;
	if (!index)
		return 0;
	const struct dwarf_span *piece =
		dwarf_span_at(index->pieces, index->piece_count, svma);
	uint32_t scope = piece ? piece->index : NO_SCOPE;
	*ret_reason = unit->split ? TICKMAP_DWARF_SPLIT : TICKMAP_DWARF_FOUND;
	while (scope != NO_SCOPE) {
		if (count == room) {
			*ret_reason = TICKMAP_DWARF_BROKEN;
			return 0;
		}
		const struct scope *s = &index->scopes.items[scope];
		ret_scopes[count++] = describe(dwarf, unit, s);
		scope = s->parent;
	}
	return count;
}

/* ---- Functions ---- */

enum {
	FN_NAME,
	FN_LINKAGE,
	FN_MIPS_LINKAGE,
	FN_FILE,
	FN_LINE,
	FN_ORIGIN,
	FN_SPECIFICATION,
	FN_COUNT
};

/* What the entry itself says and the ones before it did not. */
static void take_facts(struct tickmap_dwarf *dwarf,
		       const struct dwarf_unit *unit,
		       const struct dwarf_value *v,
		       struct tickmap_dwarf_function *f)
{
	if (!f->name)
		f->name = dwarf_string(dwarf, unit, &v[FN_NAME]);
	if (!f->linkage_name)
		f->linkage_name = dwarf_string(dwarf, unit, &v[FN_LINKAGE]);
	if (!f->linkage_name)
		f->linkage_name =
			dwarf_string(dwarf, unit, &v[FN_MIPS_LINKAGE]);
	if (!f->file && v[FN_FILE].kind == DWARF_CONSTANT)
		f->file = dwarf_file_name(dwarf, unit, v[FN_FILE].value);
	if (!f->line && v[FN_LINE].kind == DWARF_CONSTANT &&
	    v[FN_LINE].value <= UINT32_MAX)
		f->line = (uint32_t)v[FN_LINE].value;
}

/* Reads the entry at *offset and moves on to what it refers to. */
static bool follow(struct tickmap_dwarf **dwarf, uint64_t *offset,
		   struct tickmap_dwarf_function *f)
{
	struct dwarf_value v[FN_COUNT] = {
		[FN_NAME] = { .name = DW_AT_name },
		[FN_LINKAGE] = { .name = DW_AT_linkage_name },
		[FN_MIPS_LINKAGE] = { .name = DW_AT_MIPS_linkage_name },
		[FN_FILE] = { .name = DW_AT_decl_file },
		[FN_LINE] = { .name = DW_AT_decl_line },
		[FN_ORIGIN] = { .name = DW_AT_abstract_origin },
		[FN_SPECIFICATION] = { .name = DW_AT_specification },
	};
	const struct dwarf_unit *unit =
		*dwarf ? dwarf_unit_load(*dwarf,
					 dwarf_unit_holding(*dwarf, *offset))
		       : NULL;

	if (!unit)
		return false;
	struct tickmap_bytes b = dwarf_cursor(*dwarf, unit, *offset);
	const struct dwarf_abbrev *abbrev = dwarf_entry(unit, &b);
	if (!abbrev)
		return false;
	dwarf_attributes(*dwarf, unit, abbrev, &b, v, FN_COUNT);
	take_facts(*dwarf, unit, v, f);
	const struct dwarf_value *next =
		v[FN_ORIGIN].kind ? &v[FN_ORIGIN] : &v[FN_SPECIFICATION];
	if (next->kind == DWARF_REFERENCE_ALT)
		*dwarf = (*dwarf)->alt;
	else if (next->kind != DWARF_REFERENCE)
		return false;
	*offset = next->value;
	return true;
}

bool tickmap_dwarf_function(struct tickmap_dwarf *dwarf, uint64_t function,
			    struct tickmap_dwarf_function *ret_function)
{
	/* Origins may form a circle; true ones are three or four long. */
	enum { HOPS = 16 };
	struct tickmap_dwarf_function f = { 0 };
	uint64_t offset = (function & ~ALT_BIT) - 1;
	struct tickmap_dwarf *from = function & ALT_BIT ? dwarf->alt : dwarf;

	for (int i = 0; i < HOPS && follow(&from, &offset, &f); i++)
		;
	*ret_function = f;
	return f.name || f.linkage_name;
}

const char *tickmap_dwarf_call_file(struct tickmap_dwarf *dwarf,
				    const struct tickmap_dwarf_scope *scope)
{
	const struct dwarf_unit *unit = dwarf_unit_load(dwarf, scope->unit);

	return unit && scope->call_line
		       ? dwarf_file_name(dwarf, unit, scope->call_file)
		       : NULL;
}

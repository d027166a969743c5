/* SPDX-License-Identifier: MIT */
#include "object/functions.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

/* ---- Where code is ---- */

static int by_start(const void *a, const void *b)
{
	const struct code_range *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->end < y->end ? -1 : x->end > y->end;
}

static bool add_code(struct functions *functions, uint64_t start, uint64_t size)
{
	struct code_range *range;

	if (!size)
		return true;
	range = tickmap_vec_push(&functions->code);
	if (!range)
		return false;
	range->start = start;
	range->end = size > UINT64_MAX - start ? UINT64_MAX : start + size;
	return true;
}

bool tickmap_elf_functions_code(struct functions *functions,
				struct tickmap_elf *elf)
{
	const uint64_t code = SHF_ALLOC | SHF_EXECINSTR;

	tickmap_elf_read_sections(elf);
	for (size_t i = 0; i < elf->sections.count; i++) {
		const struct elf_header_of_section *s = &elf->sections.items[i];
		if ((s->flags & code) == code &&
		    !add_code(functions, s->svma, s->size))
			return false;
	}
	for (size_t i = 0; i < elf->segments.count && !elf->sections.count;
	     i++) {
		const struct elf_segment *s = &elf->segments.items[i];
		if (s->type == PT_LOAD && (s->flags & PF_X) &&
		    !add_code(functions, s->svma, s->mem_size))
			return false;
	}
	if (!functions->code.count)
		return true;

	struct code_range *ranges = functions->code.items;
	size_t kept = 0;
	qsort(ranges, functions->code.count, sizeof(*ranges), by_start);
	for (size_t i = 1; i < functions->code.count; i++) {
		if (ranges[i].start >= ranges[kept].end)
			ranges[++kept] = ranges[i];
		else if (ranges[i].end > ranges[kept].end)
			ranges[kept].end = ranges[i].end;
	}
	functions->code.count = kept + 1;
	return true;
}

static const struct code_range *code_at(const struct functions *functions,
					uint64_t svma)
{
	size_t low = 0, high = functions->code.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (functions->code.items[middle].end <= svma)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == functions->code.count)
		return NULL;
	const struct code_range *range = &functions->code.items[low];
	return svma >= range->start ? range : NULL;
}

/* ---- Candidates ---- */

bool tickmap_elf_functions_add(struct functions *functions,
			       const struct candidate *candidate)
{
	const struct code_range *range = code_at(functions, candidate->svma);
	struct candidate *new;

	if (!range)
		return true;
	new = tickmap_vec_push(&functions->candidates);
	if (!new)
		return false;
	*new = *candidate;
	if (new->size > range->end - new->svma)
		new->size = range->end - new->svma;
	return true;
}

static size_t underscores(const struct candidate *c)
{
	size_t n = 0;

	while (n < c->name_length && c->name[n] == '_')
		n++;
	return n;
}

/*
 * Which of two names for one function: "write" rather than "__write", "memcmp"
 * rather than its weak alias "bcmp", "free" rather than "cfree" of old. Never a
 * matter of their order in the file.
 */
static int by_name(const struct candidate *a, const struct candidate *b)
{
	if (!a->name || !b->name)
		return !a->name - !b->name;
	if (a->class != b->class)
		return a->class - b->class;

	size_t x = underscores(a), y = underscores(b);
	if (x != y)
		return x < y ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank - b->rank;
	if (a->name_length != b->name_length)
		return a->name_length < b->name_length ? -1 : 1;
	return memcmp(a->name, b->name, a->name_length);
}

/* By start; the outer of two functions first, those without a size last. */
static int by_place(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->svma != y->svma)
		return x->svma < y->svma ? -1 : 1;
	if (x->size != y->size)
		return x->size > y->size ? -1 : 1;
	return by_name(x, y);
}

void tickmap_elf_functions_sort(struct functions *functions)
{
	if (functions->candidates.count)
		qsort(functions->candidates.items, functions->candidates.count,
		      sizeof(struct candidate), by_place);
	functions->sorted = functions->candidates.count;
}

const struct candidate *
tickmap_elf_functions_named(const struct functions *functions, uint64_t svma)
{
	const struct candidate *items = functions->candidates.items;
	size_t low = 0, high = functions->sorted;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (items[middle].svma < svma)
			low = middle + 1;
		else
			high = middle;
	}
	return low < functions->sorted && items[low].svma == svma &&
			       items[low].name
		       ? &items[low]
		       : NULL;
}

void tickmap_elf_functions_free(struct functions *functions)
{
	tickmap_vec_free(&functions->code);
	tickmap_vec_free(&functions->candidates);
}

/* ---- The choice ---- */

/*
 * A candidate without a size, the only ones at its address. Inside a function
 * that has one it is a label of that function. Else it reaches to the next
 * symbol of any kind or the end of its section: but where local symbols were
 * stripped, the next one may belong to a function far away, and the size stays
 * unknown.
 */
static bool sizeless(const struct functions *functions, struct candidate *c,
		     uint64_t next, uint64_t covered, bool stripped)
{
	if (c->svma < covered)
		return false;
	if (stripped)
		return c->class < CLASS_LABEL;

	uint64_t end = code_at(functions, c->svma)->end;
	c->size = (next < end ? next : end) - c->svma;
	return true;
}

/* Keeps, in place, one candidate for each start and size. */
static void keep_functions(struct functions *functions, bool stripped)
{
	struct candidate *items = functions->candidates.items;
	size_t count = functions->candidates.count, kept = 0;
	uint64_t covered = 0; /* where all functions so far have ended */

	for (size_t i = 0, after; i < count; i = after) {
		uint64_t svma = items[i].svma;
		bool any = false;
		for (after = i; after < count && items[after].svma == svma;
		     after++) {
			struct candidate c = items[after];
			bool repeated = any && c.size == items[kept - 1].size;
			if (!c.name || !c.size || repeated)
				continue;
			items[kept++] = c;
			any = true;
		}
		/* Those without a size are last, the best name first. */
		size_t last = after;
		while (last > i && items[last - 1].svma == svma &&
		       !items[last - 1].size)
			last--;
		uint64_t next = after < count ? items[after].svma : UINT64_MAX;
		if (!any && last < after && items[last].name) {
			struct candidate c = items[last];
			if (sizeless(functions, &c, next, covered, stripped))
				items[kept++] = c;
		}
		if (kept && items[kept - 1].svma == svma)
			for (size_t k = kept; k-- && items[k].svma == svma;)
				if (svma + items[k].size > covered)
					covered = svma + items[k].size;
	}
	functions->candidates.count = kept;
}

static bool copy_names(const struct functions *functions,
		       struct tickmap_symbols *symbols)
{
	const struct candidate *items = functions->candidates.items;
	size_t count = functions->candidates.count, total = 0;

	for (size_t i = 0; i < count; i++)
		total += (size_t)items[i].name_length + 1;
	symbols->names = malloc(total + 1);
	symbols->items = malloc((count + 1) * sizeof(*symbols->items));
	if (!symbols->names || !symbols->items)
		return false;

	char *at = symbols->names;
	for (size_t i = 0; i < count; i++) {
		symbols->items[i] = (struct tickmap_elf_symbol) {
			.svma = items[i].svma,
			.size = items[i].size,
			.name = at,
		};
		memcpy(at, items[i].name, items[i].name_length);
		at += items[i].name_length;
		*at++ = '\0';
	}
	symbols->count = count;
	return true;
}

static bool nested(const struct tickmap_symbols *symbols)
{
	uint64_t covered = 0;

	for (size_t i = 0; i < symbols->count; i++) {
		const struct tickmap_elf_symbol *s = &symbols->items[i];
		if (s->svma < covered)
			return true;
		if (s->svma + s->size > covered)
			covered = s->svma + s->size;
	}
	return false;
}

struct sweep {
	const struct tickmap_symbols *symbols;
	TICKMAP_VEC(uint32_t) open; /* not yet ended, the innermost last */
	TICKMAP_VEC(struct symbol_piece) pieces;
};

static bool piece(struct sweep *sweep, uint64_t start, uint32_t index)
{
	struct symbol_piece *new = tickmap_vec_push(&sweep->pieces);

	if (new)
		*new = (struct symbol_piece) { start, index };
	return new != NULL;
}

/* Ends what ends up to svma; what lay around it goes on. */
static bool close_until(struct sweep *sweep, uint64_t svma)
{
	uint64_t ended = 0;
	bool any = false;

	while (sweep->open.count) {
		uint32_t index = sweep->open.items[sweep->open.count - 1];
		const struct tickmap_elf_symbol *s =
			&sweep->symbols->items[index];
		uint64_t end = s->svma + s->size;
		if (any && end > ended && !piece(sweep, ended, index))
			return false;
		if (end > svma)
			return true;
		sweep->open.count--;
		if (end > ended)
			ended = end;
		any = true;
	}
	return true;
}

static bool cut_pieces(struct tickmap_symbols *symbols)
{
	struct sweep sweep = { .symbols = symbols };
	bool ok = true;

	if (!nested(symbols))
		return true;
	for (uint32_t i = 0; i < symbols->count && ok; i++) {
		uint64_t start = symbols->items[i].svma;
		ok = close_until(&sweep, start) && piece(&sweep, start, i);
		uint32_t *open = ok ? tickmap_vec_push(&sweep.open) : NULL;
		if (open)
			*open = i;
		ok = open != NULL;
	}
	ok = ok && close_until(&sweep, UINT64_MAX);
	tickmap_vec_free(&sweep.open);
	symbols->pieces = sweep.pieces.items;
	symbols->piece_count = sweep.pieces.count;
	return ok;
}

bool tickmap_elf_functions_choose(struct functions *functions,
				  struct tickmap_symbols *symbols)
{
	tickmap_elf_functions_sort(functions);
	keep_functions(functions, symbols->stripped);
	return copy_names(functions, symbols) && cut_pieces(symbols);
}

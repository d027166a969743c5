/* SPDX-License-Identifier: MIT */
/*
 * The kernel's symbols, one a line in no order that we rely on:
 *
 *	ffffffff81000000 T _text
 *	ffffffffc0400000 t ext4_foo	[ext4]
 *
 * There are no sizes. A function reaches to the next symbol of its module, of
 * any kind; the last one of a module, whose end nothing tells, to the end of
 *its page. To readers without the right all addresses are zero.
 */
#include "symbolize/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

enum { PAGE = 4096, LINE_LIMIT = 4096, SYMBOLS_LIMIT = 1 << 24 };

struct kernel_symbol {
	uint64_t avma, size;
	uint32_t name;	 /* offset in `names` */
	uint16_t module; /* 0: the kernel itself */
	uint8_t rank;	 /* lower is the better name; NOT_TEXT: only an end */
};

enum { NOT_TEXT = UINT8_MAX };

struct kallsyms {
	TICKMAP_VEC(struct kernel_symbol) symbols;
	TICKMAP_VEC(char) names;
	TICKMAP_VEC(uint32_t) modules; /* their names */
	/* The kernel's own code: text, and what it needs to boot. */
	struct {
		uint64_t start, end;
	} text, boot;
};

static const char *name_of(const struct kallsyms *k, uint32_t at)
{
	return k->names.items + at;
}

static bool keep_name(struct kallsyms *k, const char *name, uint32_t *ret_at)
{
	size_t size = strlen(name) + 1;

	if (k->names.count + size > UINT32_MAX ||
	    !tickmap_vec_reserve(&k->names, k->names.count + size))
		return false;
	*ret_at = (uint32_t)k->names.count;
	memcpy(k->names.items + k->names.count, name, size);
	k->names.count += size;
	return true;
}

/* Symbols of one module stand together: the newest is asked first. */
static bool module_of(struct kallsyms *k, const char *name,
		      uint16_t *ret_module)
{
	size_t i = k->modules.count;

	while (i && strcmp(name_of(k, k->modules.items[i - 1]), name) != 0)
		i--;
	if (!i) {
		uint32_t *at;
		if (k->modules.count == UINT16_MAX ||
		    !(at = tickmap_vec_push(&k->modules)))
			return false;
		if (!keep_name(k, name, at))
			return false;
		i = k->modules.count;
	}
	*ret_module = (uint16_t)i;
	return true;
}

static void learn_bound(struct kallsyms *k, const char *name, uint64_t avma)
{
	if (strcmp(name, "_stext") == 0)
		k->text.start = avma;
	else if (strcmp(name, "_etext") == 0)
		k->text.end = avma;
	else if (strcmp(name, "_sinittext") == 0)
		k->boot.start = avma;
	else if (strcmp(name, "_einittext") == 0)
		k->boot.end = avma;
}

/* Marks of the linker script that stand where a function starts. */
static bool is_start_mark(const char *name)
{
	return strcmp(name, "_text") == 0 || strcmp(name, "_stext") == 0 ||
	       strcmp(name, "_sinittext") == 0 ||
	       (strncmp(name, "__", 2) == 0 && ends_with(name, "_text_start"));
}

/* Marks of the linker script that end code, and of the Arm ELF specifications
 * that tell it from data. */
static bool is_end_mark(const char *name)
{
	return strcmp(name, "_etext") == 0 || strcmp(name, "_einittext") == 0 ||
	       (strncmp(name, "__", 2) == 0 && ends_with(name, "_text_end")) ||
	       *name == '$' || strncmp(name, ".L", 2) == 0;
}

static uint8_t rank_of(char type, const char *name)
{
	if (is_end_mark(name))
		return NOT_TEXT;
	switch (type) {
	case 'T':
		return is_start_mark(name) ? 3 : 0;
	case 'W':
	case 'w':
		return 1;
	case 't':
		return is_start_mark(name) ? 3 : 2;
	default:
		return NOT_TEXT;
	}
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

/* False: out of memory. A line of another shape is passed over. */
static bool read_symbol(struct kallsyms *k, char *line)
{
	struct kernel_symbol symbol = { 0 };
	char *end = line;

	/* A hundred thousand lines: strtoull would be half of the work. */
	for (int digit; (digit = hex_digit(*end)) >= 0; end++)
		symbol.avma = symbol.avma << 4 | (uint64_t)digit;
	if (end == line || end[0] != ' ' || !end[1] || end[2] != ' ')
		return true;
	char type = end[1];
	char *name = end + 3;
	char *module = strchr(name, '\t');
	name[strcspn(name, "\t\n")] = '\0';
	if (!symbol.avma || !*name)
		return true;
	if (!module)
		learn_bound(k, name, symbol.avma);
	else if (!module_of(k, module + 1, &symbol.module))
		return false;
	symbol.rank = rank_of(type, name);
	if (symbol.rank != NOT_TEXT && !keep_name(k, name, &symbol.name))
		return false;

	struct kernel_symbol *new = k->symbols.count < SYMBOLS_LIMIT
					    ? tickmap_vec_push(&k->symbols)
					    : NULL;
	if (new)
		*new = symbol;
	return new != NULL;
}

/* ---- From lines to functions ---- */

static int by_place(const void *a, const void *b, void *context)
{
	const struct kernel_symbol *x = a, *y = b;
	const struct kallsyms *k = context;

	if (x->avma != y->avma)
		return x->avma < y->avma ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank - y->rank;
	if (x->rank == NOT_TEXT)
		return 0;
	const char *n = name_of(k, x->name), *m = name_of(k, y->name);
	size_t nu = strspn(n, "_"), mu = strspn(m, "_");
	return nu != mu ? (nu < mu ? -1 : 1) : strcmp(n, m);
}

/*
 * The kernel lists its own symbols by address, aliases and modules aside:
 * insertion then is linear. Gives up where the order is another.
 */
static bool insertion_sort(struct kallsyms *k)
{
	struct kernel_symbol *items = k->symbols.items;
	size_t budget = 4 * k->symbols.count;

	for (size_t i = 1; i < k->symbols.count; i++) {
		struct kernel_symbol moving = items[i];
		size_t at = i;
		while (at && by_place(&moving, &items[at - 1], k) < 0) {
			if (!budget--) {
				items[at] = moving;
				return false;
			}
			items[at] = items[at - 1];
			at--;
		}
		items[at] = moving;
	}
	return true;
}

static bool is_code(const struct kallsyms *k, const struct kernel_symbol *s)
{
	if (s->rank == NOT_TEXT)
		return false;
	if (s->module || !k->text.end)
		return true;
	return (s->avma >= k->text.start && s->avma < k->text.end) ||
	       (s->avma >= k->boot.start && s->avma < k->boot.end);
}

static void choose(struct kallsyms *k)
{
	struct kernel_symbol *items = k->symbols.items;
	size_t kept = 0, count = k->symbols.count;

	for (size_t i = 0, after; i < count; i = after) {
		struct kernel_symbol s = items[i];
		after = i + 1;
		while (after < count && items[after].avma == s.avma)
			after++;
		if (!is_code(k, &s))
			continue;
		if (after < count && items[after].module == s.module)
			s.size = items[after].avma - s.avma;
		else
			s.size = PAGE - s.avma % PAGE;
		if (after < count && s.size > items[after].avma - s.avma)
			s.size = items[after].avma - s.avma;
		items[kept++] = s;
	}
	k->symbols.count = kept;
}

struct kallsyms *tickmap_kallsyms_load(const char *path)
{
	FILE *file = fopen(path, "re");
	struct kallsyms *k = file ? calloc(1, sizeof(*k)) : NULL;
	char line[LINE_LIMIT];
	bool ok = k != NULL;

	while (ok && fgets(line, sizeof(line), file))
		ok = read_symbol(k, line);
	if (file)
		fclose(file);
	if (ok && k->symbols.count) {
		if (!insertion_sort(k))
			qsort_r(k->symbols.items, k->symbols.count,
				sizeof(struct kernel_symbol), by_place, k);
		choose(k);
	}
	if (ok && k->symbols.count)
		return k;
	tickmap_kallsyms_free(k);
	return NULL;
}

void tickmap_kallsyms_free(struct kallsyms *kallsyms)
{
	if (!kallsyms)
		return;
	tickmap_vec_free(&kallsyms->symbols);
	tickmap_vec_free(&kallsyms->names);
	tickmap_vec_free(&kallsyms->modules);
	free(kallsyms);
}

const char *tickmap_kallsyms_find(const struct kallsyms *kallsyms,
				  uint64_t avma, uint64_t *ret_start,
				  uint64_t *ret_size)
{
	size_t low = 0, high = kallsyms->symbols.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (kallsyms->symbols.items[middle].avma <= avma)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return NULL;
	const struct kernel_symbol *s = &kallsyms->symbols.items[low - 1];
	if (avma - s->avma >= s->size)
		return NULL;
	*ret_start = s->avma;
	*ret_size = s->size;
	return name_of(kallsyms, s->name);
}

/* SPDX-License-Identifier: MIT */
#include "symbolize/internal.h"

#include <stdlib.h>

static int by_place(const void *a, const void *b)
{
	const struct known_symbol *x = a, *y = b;

	if (x->svma != y->svma)
		return x->svma < y->svma ? -1 : 1;
	if (x->size != y->size)
		return x->size > y->size ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name;
}

/* Recordings name what was sampled, so that functions seldom lie in others:
 * looking back a little finds the outer one. */
enum { LOOK_BACK = 16 };

const struct known_symbol *tickmap_known_find(struct known_file *file,
					      uint64_t svma)
{
	size_t low = 0, high = file ? file->symbols.count : 0;

	if (high && !file->sorted) {
		qsort(file->symbols.items, high, sizeof(struct known_symbol),
		      by_place);
		file->sorted = true;
	}
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (file->symbols.items[middle].svma <= svma)
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t i = 0; i < LOOK_BACK && low; i++) {
		const struct known_symbol *s = &file->symbols.items[--low];
		uint64_t into = svma - s->svma;
		if (into < s->size || !into)
			return s;
	}
	return NULL;
}

uint64_t tickmap_known_svma_of_offset(const struct known_file *file,
				      uint64_t offset)
{
	for (size_t i = 0; file && i < file->segments.count; i++) {
		const struct known_segment *s = &file->segments.items[i];
		if (offset >= s->offset && offset - s->offset < s->size)
			return s->svma + (offset - s->offset);
	}
	return offset;
}

struct known_file *
tickmap_known_file(const struct tickmap_symbolizer *symbolizer,
		   tickmap_str path)
{
	uint64_t *number = tickmap_table_get(&symbolizer->known_by_path, path);

	return number ? &symbolizer->known.items[*number - 1] : NULL;
}

static struct known_file *make_file(struct tickmap_symbolizer *symbolizer,
				    const char *path)
{
	tickmap_str id = tickmap_intern_cstr(symbolizer->strings, path);
	struct known_file *file = tickmap_known_file(symbolizer, id);
	uint64_t *number;

	if (file)
		return file;
	file = tickmap_vec_push(&symbolizer->known);
	if (!file)
		return NULL;
	*file = (struct known_file) { .path = id };
	number = tickmap_table_put(&symbolizer->known_by_path, id);
	if (!number) {
		symbolizer->known.count--;
		return NULL;
	}
	*number = symbolizer->known.count;
	return file;
}

bool tickmap_symbolizer_know(struct tickmap_symbolizer *symbolizer,
			     const char *path, uint64_t svma, uint64_t size,
			     const char *raw_name)
{
	struct known_file *file = make_file(symbolizer, path);
	struct known_symbol *symbol =
		file ? tickmap_vec_push(&file->symbols) : NULL;

	if (!symbol)
		return false;
	symbol->svma = svma;
	symbol->size = size;
	symbol->name = tickmap_intern_cstr(symbolizer->strings, raw_name);
	file->sorted = false;
	return !tickmap_strings_failed(symbolizer->strings);
}

bool tickmap_symbolizer_know_segment(struct tickmap_symbolizer *symbolizer,
				     const char *path, uint64_t file_offset,
				     uint64_t size, uint64_t svma)
{
	struct known_file *file = make_file(symbolizer, path);
	struct known_segment *segment =
		file ? tickmap_vec_push(&file->segments) : NULL;

	if (!segment)
		return false;
	*segment = (struct known_segment) { file_offset, size, svma };
	return true;
}

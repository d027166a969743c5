/* SPDX-License-Identifier: MIT */
/*
 * inline_chains FILE: addresses (svma, hex, one a line) from stdin; to stdout
 * one line for each, its frames innermost first and tabs between them:
 *
 *	RAW_NAME|FILE|LINE|DECLARED_FILE|DECLARED_LINE
 *
 * The last frame has the symbol's name, and behind it a sixth field with the
 * name that DWARF gives. "?" stands for what is not known.
 */
#include "object/elf.h"
#include "symbolize/symbolize.h"

#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const char *text(const struct tickmap_strings *strings, tickmap_str id)
{
	return id ? tickmap_string(strings, id, NULL) : "?";
}

/* The naive way back: the offset that maps to svma. */
static uint64_t offset_of(FILE *file, uint64_t svma)
{
	Elf64_Ehdr e;
	Elf64_Phdr p;

	rewind(file);
	if (fread(&e, sizeof(e), 1, file) != 1)
		exit(2);
	for (unsigned i = 0; i < e.e_phnum; i++) {
		if (fseek(file, (long)(e.e_phoff + i * sizeof(p)), SEEK_SET) ||
		    fread(&p, sizeof(p), 1, file) != 1)
			exit(2);
		if (p.p_type == PT_LOAD && svma >= p.p_vaddr &&
		    svma - p.p_vaddr < p.p_filesz)
			return svma - p.p_vaddr + p.p_offset;
	}
	return UINT64_MAX;
}

static void print(const struct tickmap_strings *s,
		  const struct tickmap_symbol *symbol,
		  const struct tickmap_source_frame *frames, size_t count)
{
	for (size_t i = count; i-- > 0;) {
		const struct tickmap_source_frame *f = &frames[i];
		tickmap_str name = i ? f->raw_name : symbol->raw_name;
		printf("%s|%s|%" PRIu32 "|%s|%" PRIu32, text(s, name),
		       text(s, f->at_file), f->at_line, text(s, f->file),
		       f->line);
		if (!i)
			printf("|%s", text(s, f->raw_name));
		putchar(i ? '\t' : '\n');
	}
	if (!count)
		printf("%s|?|0|?|0|?\n", text(s, symbol->raw_name));
}

int main(int argc, char **argv)
{
	struct tickmap_strings *strings = tickmap_strings_new();
	struct tickmap_symbolizer *symbolizer = tickmap_symbolizer_new(strings);
	static struct tickmap_source_frame frames[TICKMAP_SOURCE_FRAMES];
	FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
	uint64_t svma;

	if (!file || !symbolizer)
		return 2;
	uint32_t dso = tickmap_symbolizer_dso(symbolizer, argv[1], NULL, 0);
	while (scanf("%" SCNx64, &svma) == 1) {
		struct tickmap_symbol symbol = tickmap_symbolize_file(
			symbolizer, dso, offset_of(file, svma));
		size_t count = tickmap_symbolize_inlined(symbolizer, dso, svma,
							 true, frames,
							 TICKMAP_SOURCE_FRAMES);
		print(strings, &symbol, frames, count);
	}
	tickmap_symbolizer_free(symbolizer);
	tickmap_strings_free(strings);
	fclose(file);
	return 0;
}

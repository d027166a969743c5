/* SPDX-License-Identifier: MIT */
/* Any bytes as an ELF image: every question that the module answers. */
#include "object/elf.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask_sections(struct tickmap_elf *elf, uint8_t *ret_sum)
{
	static const char *const names[] = { ".eh_frame", ".eh_frame_hdr",
					     ".text", ".gnu_debuglink", "" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		struct tickmap_elf_section s =
			tickmap_elf_section(elf, names[i]);
		/* Every byte lent can be read. */
		for (size_t k = 0; k < s.size; k++)
			*ret_sum = (uint8_t)(*ret_sum + s.bytes[k]);
	}
}

static void check(int ok)
{
	if (!ok)
		abort();
}

static void ask_symbols(struct tickmap_elf *elf)
{
	struct tickmap_symbols *symbols;
	uint64_t before = 0;

	/* No path: a hostile file must not make us look at others here. */
	if (tickmap_symbols_load(elf, NULL, "", &symbols, NULL) < 0)
		return;
	for (size_t i = 0; i < tickmap_symbols_count(symbols); i++) {
		const struct tickmap_elf_symbol *s =
			tickmap_symbols_at(symbols, i);
		check(s->svma >= before && strlen(s->name) > 0);
		before = s->svma;
		const struct tickmap_elf_symbol *got =
			tickmap_symbols_find(symbols, s->svma);
		/* Its own or one within, which starts at the same place. */
		check(got && got->svma == s->svma && got->size <= s->size);
		got = tickmap_symbols_find(symbols, s->svma + s->size);
		check(!got || got->svma + got->size > s->svma + s->size ||
		      (!got->size && got->svma == s->svma + s->size));
		if (s->size) {
			got = tickmap_symbols_find(symbols,
						   s->svma + s->size - 1);
			check(got && got->svma >= s->svma);
		}
	}
	tickmap_symbols_free(symbols);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tickmap_elf *elf;
	uint8_t id[20], sum = 0;
	uint64_t svma;

	if (tickmap_elf_open_memory(data, size, &elf, NULL) < 0)
		return 0;
	for (size_t i = 0, n = tickmap_elf_build_id(elf, id); i < n; i++)
		sum = (uint8_t)(sum + id[i]);
	for (uint64_t offset = 0; offset < size; offset += 64)
		tickmap_elf_svma_of_offset(elf, offset, &svma);
	ask_sections(elf, &sum);
	ask_symbols(elf);
	tickmap_elf_close(elf);
	return sum == 0 ? 0 : 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as an ELF file with DWARF: whatever is asked, an answer comes, and
 * memory stays within what the file's size allows.
 */
#include "object/dwarf.h"
#include "object/elf.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask(struct tickmap_dwarf *dwarf, uint64_t svma)
{
	struct tickmap_dwarf_scope scopes[TICKMAP_DWARF_SCOPES];
	struct tickmap_dwarf_function function;
	enum tickmap_dwarf_reason reason;
	const char *file;
	uint32_t line;
	size_t count = tickmap_dwarf_scopes(dwarf, svma, scopes,
					    TICKMAP_DWARF_SCOPES, &reason);

	for (size_t i = 0; i < count; i++) {
		tickmap_dwarf_function(dwarf, scopes[i].function, &function);
		tickmap_dwarf_call_file(dwarf, &scopes[i]);
	}
	tickmap_dwarf_line(dwarf, svma, &file, &line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Sections may be compressed: 1032 is zlib's most. */
	const size_t most = (size_t)1 << 20;
	struct tickmap_elf *elf;
	struct tickmap_dwarf *dwarf;

	if (size > most || tickmap_elf_open_memory(data, size, &elf, NULL) < 0)
		return 0;
	dwarf = tickmap_dwarf_open(elf, NULL, "");
	if (dwarf) {
		for (uint64_t svma = 0x1000; svma < 0x1400; svma += 5)
			ask(dwarf, svma);
		ask(dwarf, 0);
		ask(dwarf, UINT64_MAX);
		/* An index takes some 100 bytes an entry, lines 16 a byte. */
		if (tickmap_dwarf_memory(dwarf) > 128 * size + (64 << 20))
			abort();
	}
	tickmap_dwarf_close(dwarf);
	tickmap_elf_close(elf);
	return 0;
}

/* SPDX-License-Identifier: MIT */
#include "tables.h"

#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint8_t *copy_section(Elf_Scn *section, size_t *ret_size)
{
	Elf_Data *data = elf_getdata(section, NULL);
	uint8_t *copy;

	if (!data || !data->d_buf || !data->d_size)
		return NULL;
	copy = malloc(data->d_size);
	if (copy)
		memcpy(copy, data->d_buf, data->d_size);
	*ret_size = data->d_size;
	return copy;
}

static void load_sections(struct file_tables *tables, Elf *elf, bool with_hdr)
{
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return;
	for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
		GElf_Shdr shdr;
		const char *name;
		if (!gelf_getshdr(section, &shdr) ||
		    !(name = elf_strptr(elf, names, shdr.sh_name)))
			continue;
		if (!strcmp(name, ".eh_frame")) {
			tables->eh_frame = copy_section(
				section, &tables->cfi.eh_frame_size);
			tables->cfi.eh_frame_at = shdr.sh_addr;
		} else if (with_hdr && !strcmp(name, ".eh_frame_hdr")) {
			tables->hdr =
				copy_section(section, &tables->cfi.hdr_size);
			tables->cfi.hdr_at = shdr.sh_addr;
		}
	}
}

bool file_tables_load(struct file_tables *tables, const char *path,
		      bool with_hdr)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf *elf;

	*tables = (struct file_tables) { 0 };
	if (fd < 0)
		return false;
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (elf)
		load_sections(tables, elf, with_hdr);
	elf_end(elf);
	close(fd);
	tables->cfi.eh_frame = tables->eh_frame;
	tables->cfi.hdr = tables->hdr;
	tickmap_cfi_init(&tables->cfi);
	return tables->eh_frame != NULL;
}

void file_tables_free(struct file_tables *tables)
{
	tickmap_cfi_done(&tables->cfi);
	free(tables->eh_frame);
	free(tables->hdr);
}

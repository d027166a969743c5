/* SPDX-License-Identifier: MIT */
/* Built where liblzma is absent: .gnu_debugdata stays closed. */
#include "object/elf_internal.h"

bool tickmap_minidebug(struct tickmap_elf *elf, uint8_t **ret_image,
		       size_t *ret_size)
{
	(void)elf;
	(void)ret_image;
	(void)ret_size;
	return false;
}

/* SPDX-License-Identifier: MIT */
#include "capture/procmaps.h"

#include <stdlib.h>
#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int see(void *context, const struct tickmap_mmap_record *mmap)
{
	unsigned *count = context;

	if (!*mmap->path || !(mmap->prot & PROT_EXEC) || !mmap->size ||
	    mmap->avma + mmap->size - 1 < mmap->avma)
		abort();
	return ++*count == 1000;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned count = 0;

	tickmap_procmaps_parse((const char *)data, size, 1, see, &count);
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * The files that sampled processes map executable, each opened once, when the
 * first stack walks through it. Shared by all processes that map the same file.
 */
#ifndef TICKMAP_RECORD_MODULES_H
#define TICKMAP_RECORD_MODULES_H

#include "capture/sample.h"
#include "object/elf.h"
#include "unwind/cfi.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct tickmap_module {
	char *path;
	uint64_t device, inode;
	struct tickmap_elf *elf; /* NULL: not opened yet, or no ELF file */
	/* The mapped file itself, whatever lies at its path by now or in which
	 * mount namespace the path is; -1: not kept, descriptors may be few. */
	int fd;
	bool tried;
	bool python; /* the file of a Python interpreter */
	struct tickmap_cfi cfi;
	bool has_cfi;
	uint8_t build_id[20];
	size_t build_id_size;
};

struct tickmap_modules;

struct tickmap_modules *tickmap_modules_new(void);
void tickmap_modules_free(struct tickmap_modules *modules);

/* The index of the file that an MMAP2 names; UINT32_MAX: out of memory. */
uint32_t tickmap_modules_of(struct tickmap_modules *modules,
			    const struct tickmap_mmap_record *mmap);

/*
 * The module, opened if it can be: through the process's own root first, so
 * that containers work, then by its plain path; the inode must be the mapped
 * one. "[vdso]" is this process's own.
 */
struct tickmap_module *tickmap_modules_open(struct tickmap_modules *modules,
					    uint32_t index, pid_t pid);

/* Bytes of the file as it lies on the disk; false if they cannot be had. */
bool tickmap_modules_read(struct tickmap_modules *modules, uint32_t index,
			  uint64_t file_offset, void *out, size_t size);

/* Without opening it. */
struct tickmap_module *tickmap_modules_at(struct tickmap_modules *modules,
					  uint32_t index);
uint32_t tickmap_modules_count(const struct tickmap_modules *modules);

#endif

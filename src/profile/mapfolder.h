/* SPDX-License-Identifier: MIT */
/* The code maps that lie in a folder: dumps by their magic, maps by name. */
#ifndef TICKMAP_PROFILE_MAPFOLDER_H
#define TICKMAP_PROFILE_MAPFOLDER_H

#include "base/vec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tickmap_map_file {
	char *path; /* owned */
	uint64_t device, inode;
	bool perf_map;
	uint32_t pid;	/* of a dump's header, or in a map's name */
	uint64_t stamp; /* of a dump's first record; 0: none */
	bool arch_clock;
	bool used;
	bool strict; /* the folder is everybody's: see mapfiles.c */
};

/* Zeroed means empty. */
struct tickmap_map_folder {
	TICKMAP_VEC(struct tickmap_map_file) files;
	size_t seen; /* entries of folders */
};

/* Adds what lies in `dir` and `depth` levels below it. Folders that cannot be
 * read, and what is beyond some ten thousands of entries, is left out. False:
 * out of memory. */
bool tickmap_map_folder_scan(struct tickmap_map_folder *folder, const char *dir,
			     unsigned depth, bool strict);
void tickmap_map_folder_free(struct tickmap_map_folder *folder);

/* Is it a jitdump? Fills in pid, stamp and arch_clock; leaves the descriptor at
 * the file's begin. */
bool tickmap_map_file_peek(int fd, struct tickmap_map_file *ret_file);

/* "perf-PID.map"; 0: it is not. */
uint32_t tickmap_perf_map_pid(const char *name);

#endif

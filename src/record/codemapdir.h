/* SPDX-License-Identifier: MIT */
/*
 * The private folder that a program's code maps go to while it is recorded.
 */
#ifndef TICKMAP_RECORD_CODEMAPDIR_H
#define TICKMAP_RECORD_CODEMAPDIR_H

#include "base/error.h"

struct tickmap_code_map_dir {
	char path[256];	 /* "": none */
	char notes[300]; /* file that the loader in the child writes to */
	int lock;	 /* held as long as a recorder needs the folder */
};

/* Below $TMPDIR or /tmp. Removes what recorders that were killed left there. */
int tickmap_code_map_dir_make(struct tickmap_code_map_dir *dir,
			      struct tickmap_error *err);
/* Removes it with everything in it. */
void tickmap_code_map_dir_remove(struct tickmap_code_map_dir *dir);
/* Leaves it to its user; no later recorder removes it. */
void tickmap_code_map_dir_leave(struct tickmap_code_map_dir *dir);

#endif

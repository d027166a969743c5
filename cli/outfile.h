/* SPDX-License-Identifier: MIT */
/* A file that appears whole or not at all. */
#ifndef TICKMAP_CLI_OUTFILE_H
#define TICKMAP_CLI_OUTFILE_H

#include "base/error.h"

#include <limits.h>
#include <stdio.h>

struct tickmap_outfile {
	FILE *stream;
	char path[PATH_MAX];
	char temporary[PATH_MAX]; /* "": written in place */
};

/*
 * "-" is standard output. What is no ordinary file (a pipe, a terminal,
 * /dev/null) is written in place, a link is followed, anything else is written
 * beside `path` and takes its name at commit.
 */
int tickmap_outfile_open(struct tickmap_outfile *file, const char *path,
			 struct tickmap_error *err);
int tickmap_outfile_commit(struct tickmap_outfile *file,
			   struct tickmap_error *err);
/* Instead of commit: leaves nothing behind. */
void tickmap_outfile_drop(struct tickmap_outfile *file);

#endif

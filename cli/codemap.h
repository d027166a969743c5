/* SPDX-License-Identifier: MIT */
/* A code map file as `dump`, `lint` and `repair` take it: what it is is told
 * from its first bytes, never from its name. */
#ifndef TICKMAP_CLI_CODEMAP_H
#define TICKMAP_CLI_CODEMAP_H

#include "codemap/codemap.h"

#include <stdbool.h>
#include <stdint.h>

enum tickmap_file_kind {
	TICKMAP_FILE_JITDUMP,
	TICKMAP_FILE_PERFMAP,
	TICKMAP_FILE_RECORDING, /* perf.data, tickmap.data */
	TICKMAP_FILE_OTHER,	/* something binary */
};

struct tickmap_file {
	const char *path;
	int fd; /* -1: not open */
	enum tickmap_file_kind kind;
	uint64_t size; /* 0: not known, a pipe */
	uint8_t head[8];
	unsigned head_size, head_done;
};

/* "-" is standard input. Returns an exit code; anything but
 * TICKMAP_EXIT_DONE has been said. */
int tickmap_file_open(struct tickmap_file *file, const char *path);

/* Says that this is no code map, and what to type instead. Returns the exit
 * code for it. */
int tickmap_file_refuse(const struct tickmap_file *file, const char *command);

/* The next bytes: their number, 0 at the end, -1 (said) if reading failed. */
long tickmap_file_read(struct tickmap_file *file, void *bytes, size_t size);

/* Text, but no perf map. Returns the exit code for it. */
int tickmap_file_no_entry(const struct tickmap_file *file);

/* Feeds all of it to the reader that fits, which is ended with the file.
 * `ret_dump` may be NULL; else it gets the reader of a jitdump before the first
 * byte is fed (NULL: a perf map), to be freed in any case.
 * Returns an exit code; a failure has been said. */
int tickmap_file_feed(struct tickmap_file *file,
		      const struct tickmap_code_handler *handler,
		      struct tickmap_jitdump **ret_dump);

/* The rest of it in memory, to be freed. */
int tickmap_file_slurp(struct tickmap_file *file, uint8_t **ret_bytes,
		       size_t *ret_size);

void tickmap_file_close(struct tickmap_file *file);

#endif

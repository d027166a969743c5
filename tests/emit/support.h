/* SPDX-License-Identifier: MIT */
/* A scratch folder and shorthands for the emit tests. */
#ifndef TESTS_EMIT_SUPPORT_H
#define TESTS_EMIT_SUPPORT_H

#include "strict.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <tickmap/emit.h>

#include <cmocka.h> /* needs those above */

/* cmocka setup and teardown: *state is the folder's path. */
int make_scratch(void **state);
int remove_scratch(void **state);

/* Open with these sinks and flags in `dir`; the status. */
int open_emit(const char *dir, uint32_t sinks, uint32_t flags,
	      struct tickmap_emit **ret_emit);
/* A small code with a name; nothing else set. */
struct tickmap_code small_code(const char *name);

void read_dump(const char *path, struct strict_dump *ret_dump);
void read_map(const char *path, struct strict_map *ret_map);

/* dir/name in one of a few static buffers. */
const char *in_dir(const char *dir, const char *name);
/* dir/jit-PID.dump and dir/perf-PID.map of this process. */
const char *dump_in(const char *dir);
const char *map_in(const char *dir);

void write_text(const char *path, const char *text);
bool holds_text(const char *path, const char *text);

/*
 * Run it in a forked child, with the outcome as the child's exit code: 0 good,
 * SKIPPED not possible here, else the line of the failed CHECK.
 */
#define SKIPPED 77
int run_in_child(int (*work)(const char *dir), const char *dir);
void assert_child(int (*work)(const char *dir), const char *dir,
		  const char *skip_reason);

/* In children, where cmocka's assertions would return to the parent's. The
 * line shifted into the exit code's range is printed as well. */
#define CHECK(condition)                                                       \
	do {                                                                   \
		if (!(condition))                                              \
			return check_failed(__FILE__, __LINE__, #condition);   \
	} while (0)
int check_failed(const char *file, int line, const char *condition);

#endif

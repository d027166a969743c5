/* SPDX-License-Identifier: MIT */
/* What the commands share: exit codes, how errors are said, the commands. */
#ifndef TICKMAP_CLI_CLI_H
#define TICKMAP_CLI_CLI_H

#include "base/error.h"

#include <stdint.h>

enum tickmap_exit {
	TICKMAP_EXIT_DONE = 0,
	TICKMAP_EXIT_FINDINGS = 1, /* or nothing to show */
	TICKMAP_EXIT_USAGE = 2,
	TICKMAP_EXIT_INPUT = 3,
	TICKMAP_EXIT_ENVIRONMENT = 4, /* permission, kernel, disk */
};

/* The recording that commands read when none is named. */
#define TICKMAP_DEFAULT_FILE "tickmap.data"

/* Each gets its own name as argv[0] and returns the exit code. */
int tickmap_cmd_record(int argc, char **argv);
int tickmap_cmd_report(int argc, char **argv);
int tickmap_cmd_export(int argc, char **argv);
int tickmap_cmd_dump(int argc, char **argv);
int tickmap_cmd_lint(int argc, char **argv);
int tickmap_cmd_repair(int argc, char **argv);

/*
 * Say "tickmap: FILE: offset 0x...: reason" on stderr, and on a second line
 * what to type next where that is known (`next` may be NULL). Returns the exit
 * code that fits the error.
 */
int tickmap_cli_error(const struct tickmap_error *err, const char *next);

/* "tickmap: TEXT" on stderr. */
void tickmap_cli_say(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

/* A line "reading NAME: 34 %" on stderr while the work lasts, only if stderr is
 * a terminal; `context` is a struct tickmap_cli_progress. */
struct tickmap_cli_progress {
	const char *name; /* NULL: silent */
	unsigned shown;	  /* percent */
};
void tickmap_cli_progress(void *context, uint64_t done, uint64_t all);
/* Take the line away again. */
void tickmap_cli_progress_end(struct tickmap_cli_progress *progress);

#endif

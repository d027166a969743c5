/* SPDX-License-Identifier: MIT */
/*
 * Options of a command. One table drives parsing, --help, and (by a test) the
 * man page. Typical use:
 *
 *	struct tickmap_args args = { &command, argc, argv };
 *	for (int id; (id = tickmap_args_next(&args)) != TICKMAP_ARGS_END;)
 *		switch (id) {
 *		case OPT_LIMIT: ... args.value ...; break;
 *		default: return tickmap_args_exit(id);
 *		}
 *	... args.operands[0 .. args.operand_count) ...
 */
#ifndef TICKMAP_CLI_ARGS_H
#define TICKMAP_CLI_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tickmap_option {
	int id;		   /* > 0, one per option of the command */
	const char *name;  /* long name, without dashes */
	char letter;	   /* short form, or 0 */
	const char *value; /* what the value is called in --help; NULL: none */
	const char *help;  /* one sentence; lines are wrapped */
	bool repeats;
};

struct tickmap_command {
	const char *name;
	const char *operands; /* "[FILE]" */
	const char *summary;  /* one sentence */
	const char *notes;    /* paragraphs below the options, or NULL */
	const struct tickmap_option *options; /* --help is implied */
	size_t option_count;
	/* Options end at the first operand: what follows belongs to CMD. */
	bool operands_end_options;
};

struct tickmap_args {
	const struct tickmap_command *command;
	int argc;
	char **argv;
	/* Results. */
	const char *value; /* of the option just returned, or NULL */
	char **operands;   /* once TICKMAP_ARGS_END was returned */
	int operand_count;
	/* Private. */
	bool started;
};

enum {
	TICKMAP_ARGS_END = 0,
	TICKMAP_ARGS_HELP = -1,	 /* --help was given, and is printed */
	TICKMAP_ARGS_ERROR = -2, /* a usage error, and it is said */
};

/* The next option's id, or one of the above. */
int tickmap_args_next(struct tickmap_args *args);

/* The exit code for TICKMAP_ARGS_HELP and TICKMAP_ARGS_ERROR. */
int tickmap_args_exit(int id);

/* Say "tickmap COMMAND: TEXT" and how to get help; returns
 * TICKMAP_EXIT_USAGE. */
int tickmap_args_usage(const struct tickmap_args *args, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* A whole decimal number in [min, max]; anything else is false. */
bool tickmap_args_number(const char *text, uint64_t min, uint64_t max,
			 uint64_t *ret_number);

/* The nearest of some names for a mistyped one, or NULL if none is near.
 * `names` ends with NULL. */
const char *tickmap_args_nearest(const char *typed, const char *const *names);

#endif

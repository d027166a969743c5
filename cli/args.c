/* SPDX-License-Identifier: MIT */
#include "args.h"

#include "cli.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* More options than any command has; a table beyond it is a bug. */
#define OPTIONS_MAX 48
#define HELP_WIDTH 78
#define HELP_COLUMN 26
/* getopt_long's value for --help, out of the way of letters and ids. */
#define HELP_VALUE 0x10000
#define ID_BASE 0x20000

/* Words of `text` from `column` on, wrapped and indented to `indent`. A line
 * that begins with a blank is part of a table and stays as it is. */
static void print_wrapped(FILE *out, const char *text, int column, int indent)
{
	bool first = true;

	while (*text) {
		if (first && *text == ' ') {
			int length = (int)strcspn(text, "\n");

			fprintf(out, "%.*s", length, text);
			text += length;
			continue;
		}
		if (*text == '\n') {
			fprintf(out, "\n%*s", indent, "");
			column = indent;
			first = true;
			text++;
			continue;
		}
		int length = (int)strcspn(text, " \n");

		if (!first && column + 1 + length > HELP_WIDTH) {
			fprintf(out, "\n%*s", indent, "");
			column = indent;
			first = true;
		}
		column +=
			fprintf(out, "%s%.*s", first ? "" : " ", length, text);
		first = false;
		text += length;
		text += strspn(text, " ");
	}
	putc('\n', out);
}

static void print_synopsis(FILE *out, const struct tickmap_command *command)
{
	int indent =
		(int)strlen("usage: tickmap  ") + (int)strlen(command->name);
	int column = fprintf(out, "usage: tickmap %s", command->name);

	for (size_t i = 0; i <= command->option_count; i++) {
		const struct tickmap_option *o = &command->options[i];
		bool last = i == command->option_count;
		char word[128];

		if (last)
			snprintf(word, sizeof(word), "%s", command->operands);
		else if (o->letter)
			snprintf(word, sizeof(word), "[-%c%s%s]%s", o->letter,
				 o->value ? " " : "", o->value ? o->value : "",
				 o->repeats ? "..." : "");
		else
			snprintf(word, sizeof(word), "[--%s%s%s]%s", o->name,
				 o->value ? " " : "", o->value ? o->value : "",
				 o->repeats ? "..." : "");
		if (column + 1 + (int)strlen(word) > HELP_WIDTH) {
			fprintf(out, "\n%*s", indent - 1, "");
			column = indent - 1;
		}
		column += fprintf(out, " %s", word);
	}
	putc('\n', out);
}

static void print_option(FILE *out, const struct tickmap_option *o)
{
	char letter[4] = "   ";

	if (o->letter)
		snprintf(letter, sizeof(letter), "-%c,", o->letter);
	int column = fprintf(out, "  %s --%s%s%s", letter, o->name,
			     o->value ? " " : "", o->value ? o->value : "");
	if (column >= HELP_COLUMN) {
		putc('\n', out);
		column = 0;
	}
	fprintf(out, "%*s", HELP_COLUMN - column, "");
	print_wrapped(out, o->help, HELP_COLUMN, HELP_COLUMN);
}

static void print_help(FILE *out, const struct tickmap_command *command)
{
	static const struct tickmap_option help = {
		.name = "help",
		.letter = 'h',
		.help = "show this",
	};

	print_synopsis(out, command);
	putc('\n', out);
	print_wrapped(out, command->summary, 0, 0);
	fputs("\noptions:\n", out);
	for (size_t i = 0; i < command->option_count; i++)
		print_option(out, &command->options[i]);
	print_option(out, &help);
	if (command->notes) {
		putc('\n', out);
		print_wrapped(out, command->notes, 0, 0);
	}
}

static size_t min3(size_t a, size_t b, size_t c)
{
	size_t ab = a < b ? a : b;

	return ab < c ? ab : c;
}

/* Edits (insert, drop, change, swap neighbours) between two short words. */
static size_t distance(const char *a, const char *b)
{
	enum { WORD_MAX = 40 };
	size_t rows[3][WORD_MAX + 1];
	size_t la = strlen(a), lb = strlen(b);

	if (la > WORD_MAX || lb > WORD_MAX)
		return WORD_MAX;
	for (size_t j = 0; j <= lb; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= la; i++) {
		size_t *row = rows[i % 3];
		const size_t *above = rows[(i - 1) % 3];

		row[0] = i;
		for (size_t j = 1; j <= lb; j++) {
			size_t change = a[i - 1] != b[j - 1];

			row[j] = min3(above[j] + 1, row[j - 1] + 1,
				      above[j - 1] + change);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
			    a[i - 2] == b[j - 1]) {
				size_t swap = rows[(i - 2) % 3][j - 2] + 1;

				if (swap < row[j])
					row[j] = swap;
			}
		}
	}
	return rows[la % 3][lb];
}

const char *tickmap_args_nearest(const char *typed, const char *const *names)
{
	const char *best = NULL;
	size_t best_distance = strlen(typed) / 3 + 2;

	for (; *names; names++) {
		size_t d = distance(typed, *names);

		/* A word left out of a longer one is near, too. */
		if (strlen(typed) >= 3 && strstr(*names, typed) && d > 1)
			d = 1;
		if (d < best_distance) {
			best_distance = d;
			best = *names;
		}
	}
	return best;
}

int tickmap_args_usage(const struct tickmap_args *args, const char *format, ...)
{
	va_list ap;

	fprintf(stderr, "tickmap %s: ", args->command->name);
	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fprintf(stderr, "\ntry: tickmap %s --help\n", args->command->name);
	return TICKMAP_EXIT_USAGE;
}

/* getopt_long refused what stands before optind: a long option that is
 * unknown, ambiguous or has a value too many, or an unknown letter. */
static int refuse(struct tickmap_args *args, int letter)
{
	const struct tickmap_command *command = args->command;
	const char *word = args->argv[optind - 1];
	const char *names[OPTIONS_MAX + 2];
	char typed[64];
	size_t count = 0, candidates = 0;

	if (letter && letter < HELP_VALUE &&
	    !(word[0] == '-' && word[1] == '-')) {
		tickmap_args_usage(args, "unknown option -%c", letter);
		return TICKMAP_ARGS_ERROR;
	}
	if (letter) {
		tickmap_args_usage(args, "%.*s takes no value",
				   (int)strcspn(word, "="), word);
		return TICKMAP_ARGS_ERROR;
	}
	if (strncmp(word, "--", 2) == 0)
		word += 2;
	snprintf(typed, sizeof(typed), "%.*s", (int)strcspn(word, "="), word);
	for (size_t i = 0; i < command->option_count; i++) {
		const char *name = command->options[i].name;

		names[count++] = name;
		candidates += strncmp(name, typed, strlen(typed)) == 0;
	}
	names[count++] = "help";
	names[count] = NULL;

	const char *near = tickmap_args_nearest(typed, names);

	if (candidates > 1)
		tickmap_args_usage(args, "--%s could be more than one option",
				   typed);
	else if (near)
		tickmap_args_usage(args,
				   "unknown option --%s; did you mean --%s?",
				   typed, near);
	else
		tickmap_args_usage(args, "unknown option --%s", typed);
	return TICKMAP_ARGS_ERROR;
}

static int value_missing(struct tickmap_args *args, int option)
{
	const struct tickmap_command *command = args->command;

	for (size_t i = 0; i < command->option_count; i++) {
		const struct tickmap_option *o = &command->options[i];

		if (option == o->letter || option == ID_BASE + o->id) {
			tickmap_args_usage(args, "--%s needs a value: %s",
					   o->name, o->value);
			break;
		}
	}
	return TICKMAP_ARGS_ERROR;
}

int tickmap_args_next(struct tickmap_args *args)
{
	const struct tickmap_command *command = args->command;
	struct option table[OPTIONS_MAX + 2] = { 0 };
	char letters[2 * OPTIONS_MAX + 8];
	size_t count = command->option_count, at = 0;

	if (count > OPTIONS_MAX)
		abort();
	if (!args->started) {
		args->started = true;
		optind = 0; /* glibc: forget what was parsed before */
		opterr = 0;
	}
	if (command->operands_end_options)
		letters[at++] = '+';
	letters[at++] = ':';
	letters[at++] = 'h';
	for (size_t i = 0; i < count; i++) {
		const struct tickmap_option *o = &command->options[i];

		table[i].name = o->name;
		table[i].has_arg = o->value ? required_argument : no_argument;
		table[i].val = ID_BASE + o->id;
		if (o->letter)
			letters[at++] = o->letter;
		if (o->letter && o->value)
			letters[at++] = ':';
	}
	letters[at] = 0;
	table[count].name = "help";
	table[count].val = HELP_VALUE;

	int got = getopt_long(args->argc, args->argv, letters, table, NULL);

	args->value = optarg;
	if (got == -1) {
		args->operands = args->argv + optind;
		args->operand_count = args->argc - optind;
		return TICKMAP_ARGS_END;
	}
	if (got == HELP_VALUE || got == 'h') {
		print_help(stdout, command);
		return TICKMAP_ARGS_HELP;
	}
	if (got == ':')
		return value_missing(args, optopt);
	if (got == '?')
		return refuse(args, optopt);
	if (got > ID_BASE)
		return got - ID_BASE;
	for (size_t i = 0; i < count; i++)
		if (command->options[i].letter == got)
			return command->options[i].id;
	return refuse(args, got);
}

int tickmap_args_exit(int id)
{
	return id == TICKMAP_ARGS_HELP ? TICKMAP_EXIT_DONE : TICKMAP_EXIT_USAGE;
}

bool tickmap_args_number(const char *text, uint64_t min, uint64_t max,
			 uint64_t *ret_number)
{
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	unsigned long long n = strtoull(text, &end, 10);
	if (errno || *end || n < min || n > max)
		return false;
	*ret_number = n;
	return true;
}

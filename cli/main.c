/* SPDX-License-Identifier: MIT */
/* The command: finds the sub-command and runs it. */
#include "args.h"
#include "cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *line;
};

static const struct command commands[] = {
	{ "record", tickmap_cmd_record,
	  "run a command and sample where its CPU time goes" },
	{ "report", tickmap_cmd_report,
	  "show the functions and the call tree of a recording" },
	{ "export", tickmap_cmd_export,
	  "write a recording in a form that other tools open" },
	{ "dump", tickmap_cmd_dump, "print every record of a code map" },
	{ "lint", tickmap_cmd_lint,
	  "say what is odd or wrong in code maps, and why it matters" },
	{ "repair", tickmap_cmd_repair,
	  "write a correct code map from a damaged one" },
};

#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

static const struct command *find(const char *name)
{
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	return NULL;
}

static void print_commands(FILE *out)
{
	fputs("usage: tickmap COMMAND [options]\n"
	      "\n"
	      "A sampling profiler for programs with code that is made while\n"
	      "they run: native, Python and JIT frames in one stack.\n"
	      "\n",
	      out);
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		fprintf(out, "  %-8s %s\n", commands[i].name, commands[i].line);
	fputs("\n"
	      "  tickmap help COMMAND    options of a command\n"
	      "  tickmap --version       which tickmap this is\n",
	      out);
}

static int unknown(const char *name)
{
	const char *names[COMMAND_COUNT + 2];
	size_t count = 0;

	for (; count < COMMAND_COUNT; count++)
		names[count] = commands[count].name;
	names[count++] = "help";
	names[count] = NULL;

	const char *near = tickmap_args_nearest(name, names);

	if (near)
		tickmap_cli_say("unknown command '%s'; did you mean %s?", name,
				near);
	else
		tickmap_cli_say("unknown command '%s'", name);
	fputs("try: tickmap help\n", stderr);
	return TICKMAP_EXIT_USAGE;
}

static int help(int argc, char **argv)
{
	if (argc < 2) {
		print_commands(stdout);
		return TICKMAP_EXIT_DONE;
	}
	const struct command *command = find(argv[1]);
	char flag[] = "--help";
	char *arguments[] = { argv[1], flag, NULL };

	return command ? command->run(2, arguments) : unknown(argv[1]);
}

/* What was promised to stdout has to arrive there: a full disk is an error. */
static int flushed(int code)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return code;
	if (code == TICKMAP_EXIT_DONE || code == TICKMAP_EXIT_FINDINGS) {
		tickmap_cli_say("cannot write to standard output: %s",
				strerror(errno));
		return TICKMAP_EXIT_ENVIRONMENT;
	}
	return code;
}

static int run(int argc, char **argv)
{
	if (argc < 2) {
		print_commands(stderr);
		return TICKMAP_EXIT_USAGE;
	}
	const char *word = argv[1];

	if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0) {
		puts("tickmap " TICKMAP_VERSION);
		return TICKMAP_EXIT_DONE;
	}
	if (strcmp(word, "help") == 0 || strcmp(word, "--help") == 0 ||
	    strcmp(word, "-h") == 0)
		return help(argc - 1, argv + 1);

	const struct command *command = find(word);

	return command ? command->run(argc - 1, argv + 1) : unknown(word);
}

int main(int argc, char **argv)
{
	return flushed(run(argc, argv));
}

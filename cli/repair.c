/* SPDX-License-Identifier: MIT */
/* tickmap repair: a code map that strict readers accept, from a damaged one. */
#include "args.h"
#include "cli.h"
#include "codemap.h"
#include "outfile.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { OPT_OUTPUT = 1 };

static const struct tickmap_option options[] = {
	{ OPT_OUTPUT, "output", 'o', "OUT",
	  "the file to write; - is standard output", false },
};

static const struct tickmap_command command = {
	.name = "repair",
	.operands = "FILE",
	.summary = "Writes a correct jitdump or perf map from a damaged one.",
	.notes = "Of a jitdump all that can be recovered is kept: damage is "
		 "read past, the header and names are made right, records "
		 "come in the order of their times, and each function has an "
		 "index of its own; perf inject and others accept the result. "
		 "A perf map becomes START SIZE NAME and nothing else. OUT "
		 "appears when it is whole; FILE is never changed, and cannot "
		 "be OUT.",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
};

#if defined(__x86_64__)
enum { MACHINE = 62 };
#elif defined(__aarch64__)
enum { MACHINE = 183 };
#elif defined(__riscv)
enum { MACHINE = 243 };
#else
enum { MACHINE = 0 };
#endif

static bool put(void *context, const void *bytes, size_t size)
{
	return fwrite(bytes, 1, size, context) == size;
}

static void say_counts(const struct tickmap_file *file,
		       const struct tickmap_repair_counts *c)
{
	const struct {
		uint64_t count;
		const char *what;
	} facts[] = {
		{ c->functions, "functions" },
		{ c->moves, "moves" },
		{ c->entries, "entries" },
		{ c->sorted, "records put in the order of time" },
		{ c->renumbered, "functions got another index" },
		{ c->repeated, "repeated records left out" },
		{ c->empty, "functions without code got a byte" },
		{ c->filled, "missing bytes of code are zeros" },
		{ c->unknown, "records of unknown type left out" },
		{ c->skipped_bytes, "bytes that are no record left out" },
	};
	const char *comma = "";

	fprintf(stderr, "tickmap: %s: ", file->path);
	for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
		if (!facts[i].count)
			continue;
		fprintf(stderr, "%s%" PRIu64 " %s", comma, facts[i].count,
			facts[i].what);
		comma = ", ";
	}
	fprintf(stderr, "%s\n", *comma ? "" : "nothing in it");
}

static int write_out(const struct tickmap_file *file, const uint8_t *bytes,
		     size_t size, const char *path)
{
	struct tickmap_repair_counts counts;
	struct tickmap_error err = { 0 };
	struct tickmap_outfile out;
	enum tickmap_repair_status status;

	if (tickmap_outfile_open(&out, path, &err) < 0)
		goto failed;
	status = file->kind == TICKMAP_FILE_JITDUMP
			 ? tickmap_jitdump_repair(bytes, size, MACHINE, put,
						  out.stream, &counts)
			 : tickmap_perfmap_repair(bytes, size, put, out.stream,
						  &counts);
	if (status == TICKMAP_REPAIR_DONE ||
	    status == TICKMAP_REPAIR_NOT_WRITTEN) {
		/* A stream that failed says so here. */
		if (tickmap_outfile_commit(&out, &err) < 0)
			goto failed;
		say_counts(file, &counts);
		return TICKMAP_EXIT_DONE;
	}
	tickmap_outfile_drop(&out);
	tickmap_fail(&err,
		     status == TICKMAP_REPAIR_NO_MEMORY ? TICKMAP_E_NOMEM
							: TICKMAP_E_FORMAT,
		     0,
		     status == TICKMAP_REPAIR_NO_MEMORY
			     ? "out of memory"
			     : "nothing in it can be read");
	tickmap_error_source(&err, file->path);
	return tickmap_cli_error(&err, NULL);
failed:
	tickmap_cli_error(&err, NULL);
	return TICKMAP_EXIT_ENVIRONMENT;
}

static bool is_same(const char *a, const char *b)
{
	struct stat x, y;

	return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev &&
	       x.st_ino == y.st_ino && S_ISREG(x.st_mode);
}

static int repair_file(const char *path, const char *output)
{
	struct tickmap_file file;
	uint8_t *bytes;
	size_t size;
	int code = tickmap_file_open(&file, path);

	if (code != TICKMAP_EXIT_DONE)
		return code;
	if (file.kind != TICKMAP_FILE_JITDUMP &&
	    file.kind != TICKMAP_FILE_PERFMAP)
		code = tickmap_file_refuse(&file, "repair");
	else
		code = tickmap_file_slurp(&file, &bytes, &size);
	if (code == TICKMAP_EXIT_DONE) {
		code = write_out(&file, bytes, size, output);
		free(bytes);
	}
	tickmap_file_close(&file);
	return code;
}

int tickmap_cmd_repair(int argc, char **argv)
{
	struct tickmap_args args = { &command, argc, argv };
	const char *output = NULL;

	for (int id; (id = tickmap_args_next(&args)) != TICKMAP_ARGS_END;) {
		if (id != OPT_OUTPUT)
			return tickmap_args_exit(id);
		output = args.value;
	}
	if (args.operand_count != 1)
		return tickmap_args_usage(
			&args,
			args.operand_count
				? "one FILE at a time, please: '%s'"
				: "which FILE? a jitdump or perf map%s",
			args.operand_count ? args.operands[1] : "");
	if (!output)
		return tickmap_args_usage(&args, "-o is missing: -o OUT");
	if (strcmp(output, "-") && is_same(args.operands[0], output))
		return tickmap_args_usage(
			&args, "OUT is FILE itself; write to another one");
	return repair_file(args.operands[0], output);
}

/* SPDX-License-Identifier: MIT */
/* tickmap export: a recording in the forms that other tools open. */
#include "args.h"
#include "cli.h"
#include "input.h"
#include "outfile.h"
#include "output/output.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	OPT_FORMAT = INPUT_OWN,
	OPT_OUTPUT,
	OPT_NO_INTERPRETER,
	OPT_TITLE,
};

struct format {
	const char *name;
	int (*write)(const struct tickmap_profile *profile,
		     const struct tickmap_export_options *options, FILE *out);
	bool to_terminal; /* sensible to read there */
	bool addresses;	  /* shows every frame's */
};

static const struct format formats[] = {
	{ "folded", tickmap_export_folded, true },
	{ "html", tickmap_export_html, false },
	{ "perf-script", tickmap_export_perf_script, true, true },
};

#define FORMAT_COUNT (sizeof(formats) / sizeof(formats[0]))
#define FORMAT_NAMES "folded, html or perf-script"

static const struct tickmap_option options[] = {
	{ OPT_FORMAT, "format", 'f', "FORMAT", FORMAT_NAMES, false },
	{ OPT_OUTPUT, "output", 'o', "OUT",
	  "the file to write; - is standard output", false },
	{ OPT_NO_INTERPRETER, "no-interpreter-frames", 0, NULL,
	  "leave out the interpreter's own functions below a Python function",
	  false },
	{ OPT_TITLE, "title", 0, "TEXT", "the page's title (html)", false },
	TICKMAP_INPUT_OPTIONS,
};

static const struct tickmap_command command = {
	.name = "export",
	.operands = "[FILE]",
	.summary = "Writes a recording in a form that other tools open.",
	.notes = "  folded       one stack a line, for flamegraph.pl, inferno, "
		 "speedscope\n"
		 "  html         a flame graph page: one file, no network "
		 "needed\n"
		 "  perf-script  the text of `perf script`, for the Firefox "
		 "Profiler and others\n\n"
		 "FILE is a recording of `tickmap record` or any perf.data; "
		 "tickmap.data if none is named. OUT appears when it is whole. "
		 "Exits with 1 if there is nothing to write.",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
};

static const struct format *find(const char *name)
{
	for (size_t i = 0; i < FORMAT_COUNT; i++)
		if (strcmp(formats[i].name, name) == 0)
			return &formats[i];
	return NULL;
}

static int unknown_format(const struct tickmap_args *args, const char *name)
{
	const char *names[FORMAT_COUNT + 1];

	for (size_t i = 0; i < FORMAT_COUNT; i++)
		names[i] = formats[i].name;
	names[FORMAT_COUNT] = NULL;

	const char *near = tickmap_args_nearest(name, names);

	if (near)
		return tickmap_args_usage(
			args, "unknown format '%s'; did you mean %s?", name,
			near);
	return tickmap_args_usage(args, "unknown format '%s': " FORMAT_NAMES,
				  name);
}

static int write_out(const struct tickmap_profile *profile,
		     const struct format *format,
		     const struct tickmap_export_options *how, const char *path)
{
	struct tickmap_error err = { 0 };
	struct tickmap_outfile file;

	if (tickmap_outfile_open(&file, path, &err) < 0)
		goto failed;
	if (format->write(profile, how, file.stream) == TICKMAP_E_NOMEM) {
		tickmap_outfile_drop(&file);
		tickmap_cli_say("out of memory");
		return TICKMAP_EXIT_ENVIRONMENT;
	}
	/* A stream that failed says so here. */
	if (tickmap_outfile_commit(&file, &err) < 0)
		goto failed;
	return TICKMAP_EXIT_DONE;
failed:
	tickmap_cli_error(&err, NULL);
	return TICKMAP_EXIT_ENVIRONMENT;
}

static int export(const struct tickmap_input *input,
		  const struct format *format,
		  const struct tickmap_export_options *how, const char *path)
{
	struct tickmap_profile *profile = NULL;
	int code = tickmap_input_load(input, &profile);

	if (code != TICKMAP_EXIT_DONE)
		return code;
	if (profile->samples.count)
		code = write_out(profile, format, how, path);
	else
		code = tickmap_input_empty(input, profile);
	tickmap_profile_free(profile);
	return code;
}

int tickmap_cmd_export(int argc, char **argv)
{
	struct tickmap_args args = { &command, argc, argv };
	struct tickmap_input input = { 0 };
	struct tickmap_export_options how = { .interpreter_frames = true };
	const struct format *format = NULL;
	const char *path = NULL;
	int code = TICKMAP_EXIT_DONE;

	for (int id; (id = tickmap_args_next(&args)) != TICKMAP_ARGS_END;) {
		switch (id) {
		case OPT_FORMAT:
			format = find(args.value);
			if (!format) {
				code = unknown_format(&args, args.value);
				goto out;
			}
			break;
		case OPT_OUTPUT:
			path = args.value;
			break;
		case OPT_NO_INTERPRETER:
			how.interpreter_frames = false;
			break;
		case OPT_TITLE:
			how.title = args.value;
			break;
		default:
			if (!tickmap_input_option(&input, &args, id, &code))
				goto out;
		}
	}
	code = tickmap_input_operands(&input, &args);
	if (code != TICKMAP_EXIT_DONE)
		goto out;
	input.addresses = format && format->addresses;
	if (!format)
		code = tickmap_args_usage(&args,
					  "--format is missing: " FORMAT_NAMES);
	else if (!path && !format->to_terminal)
		code = tickmap_args_usage(&args, "-o is missing: -o OUT.%s",
					  format->name);
	else
		code = export(&input, format, &how, path ? path : "-");
out:
	tickmap_input_free(&input);
	return code;
}

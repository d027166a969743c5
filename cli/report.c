/* SPDX-License-Identifier: MIT */
/* tickmap report: functions and call tree as text, or all facts as JSON. */
#include "args.h"
#include "cli.h"
#include "input.h"
#include "output/output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define DEFAULT_LIMIT 30
#define DEFAULT_WIDTH 80

enum {
	OPT_JSON = INPUT_OWN,
	OPT_NO_CHILDREN,
	OPT_BY,
	OPT_BY_PROCESS,
	OPT_BY_THREAD,
	OPT_LIMIT,
	OPT_INTERPRETER,
};

static const struct tickmap_option options[] = {
	{ OPT_JSON, "json", 0, NULL, "all facts as one JSON object", false },
	{ OPT_NO_CHILDREN, "no-children", 0, NULL,
	  "no totals and no call tree: only what functions do themselves",
	  false },
	{ OPT_BY, "by", 0, "process|thread", "one report for each of them",
	  false },
	{ OPT_BY_PROCESS, "by-process", 'P', NULL, "the same as --by process",
	  false },
	{ OPT_BY_THREAD, "by-thread", 'T', NULL, "the same as --by thread",
	  false },
	{ OPT_LIMIT, "limit", 'n', "N",
	  "rows a table at most (default 30; 0: all)", false },
	{ OPT_INTERPRETER, "interpreter-frames", 0, NULL,
	  "show the interpreter's own functions, too", false },
	TICKMAP_INPUT_OPTIONS,
};

static const struct tickmap_command command = {
	.name = "report",
	.operands = "[FILE]",
	.summary = "Shows how good a recording is, the functions that used "
		   "the CPU, and how they were called.",
	.notes = "FILE is a recording of `tickmap record` or any perf.data; "
		 "tickmap.data if none is named. Percentages are of samples, "
		 "and samples are of CPU time. Exits with 1 if there is "
		 "nothing to show.",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
};

static bool wants_colour(void)
{
	const char *no = getenv("NO_COLOR");
	const char *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && !(no && *no) &&
	       !(term && strcmp(term, "dumb") == 0);
}

/* Columns to fit in: the terminal's. What is piped somewhere is not cut, unless
 * COLUMNS says otherwise: a program wants names as they were published. */
static unsigned width(void)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;
	uint64_t n;

	if (columns && tickmap_args_number(columns, 40, 10000, &n))
		return (unsigned)n;
	if (isatty(STDOUT_FILENO) &&
	    ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40)
		return size.ws_col;
	return isatty(STDOUT_FILENO) ? DEFAULT_WIDTH : 0;
}

static bool by(struct tickmap_report_options *report, const char *word)
{
	report->by_process = strcmp(word, "process") == 0;
	report->by_thread = strcmp(word, "thread") == 0;
	return report->by_process || report->by_thread;
}

static int report(const struct tickmap_input *input,
		  const struct tickmap_report_options *how, bool json)
{
	struct tickmap_profile *profile = NULL;
	int code = tickmap_input_load(input, &profile);
	int status = TICKMAP_OK;

	if (code != TICKMAP_EXIT_DONE)
		return code;
	if (json)
		status = tickmap_report_json(profile, how, stdout);
	else if (profile->samples.count)
		status = tickmap_report_text(profile, how, stdout);
	if (status < 0 && status != TICKMAP_E_OS) {
		tickmap_cli_say("out of memory");
		code = TICKMAP_EXIT_ENVIRONMENT;
	} else if (!profile->samples.count) {
		code = tickmap_input_empty(input, profile);
	}
	tickmap_profile_free(profile);
	return code;
}

int tickmap_cmd_report(int argc, char **argv)
{
	struct tickmap_args args = { &command, argc, argv };
	struct tickmap_input input = { 0 };
	struct tickmap_report_options how = {
		.children = true,
		.limit = DEFAULT_LIMIT,
	};
	bool json = false;
	int code = TICKMAP_EXIT_DONE;
	uint64_t n;

	for (int id; (id = tickmap_args_next(&args)) != TICKMAP_ARGS_END;) {
		switch (id) {
		case OPT_JSON:
			json = true;
			break;
		case OPT_NO_CHILDREN:
			how.children = false;
			break;
		case OPT_BY:
			if (!by(&how, args.value)) {
				code = tickmap_args_usage(
					&args,
					"--by: process or thread, not '%s'",
					args.value);
				goto out;
			}
			break;
		case OPT_BY_PROCESS:
			by(&how, "process");
			break;
		case OPT_BY_THREAD:
			by(&how, "thread");
			break;
		case OPT_LIMIT:
			if (!tickmap_args_number(args.value, 0, UINT32_MAX,
						 &n)) {
				code = tickmap_args_usage(
					&args, "--limit: '%s' is no number",
					args.value);
				goto out;
			}
			how.limit = (size_t)n;
			break;
		case OPT_INTERPRETER:
			how.interpreter_frames = true;
			break;
		default:
			if (!tickmap_input_option(&input, &args, id, &code))
				goto out;
		}
	}
	how.colour = wants_colour();
	how.width = width();
	code = tickmap_input_operands(&input, &args);
	if (code == TICKMAP_EXIT_DONE)
		code = report(&input, &how, json);
out:
	tickmap_input_free(&input);
	return code;
}

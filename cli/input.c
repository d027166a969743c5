/* SPDX-License-Identifier: MIT */
#include "input.h"

#include "capture/perfdata.h"
#include "cli.h"
#include "platform/platform.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)

/* Digits with at most nine of them behind a point, as ns: floating point would
 * lose some of a clock that has run for days. */
static bool parse_seconds(const char *text, size_t length, uint64_t *ret_ns)
{
	uint64_t whole = 0, part = 0, unit = SECOND;
	size_t i = 0;

	if (length == 0)
		return false;
	for (; i < length && text[i] != '.'; i++) {
		if (text[i] < '0' || text[i] > '9' || whole > SECOND)
			return false;
		whole = whole * 10 + (uint64_t)(text[i] - '0');
	}
	for (i += i < length; i < length; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		unit /= 10;
		part += unit * (uint64_t)(text[i] - '0');
	}
	*ret_ns = whole * SECOND + part;
	return length > 1 || text[0] != '.';
}

static bool parse_moment(const char *text, size_t length,
			 struct tickmap_moment *moment)
{
	if (length == 0) {
		moment->kind = MOMENT_OPEN;
		return true;
	}
	if (text[0] == '+') {
		moment->kind = MOMENT_SINCE;
		return parse_seconds(text + 1, length - 1, &moment->ns);
	}
	if (text[length - 1] == '%') {
		moment->kind = MOMENT_SHARE;
		if (!parse_seconds(text, length - 1, &moment->ns))
			return false;
		moment->ns /= 100;
		return moment->ns <= SECOND;
	}
	moment->kind = MOMENT_CLOCK;
	return parse_seconds(text, length, &moment->ns);
}

/* "1.5,2", "1.5,", ",2", "+0.1,+0.2", "10%,20%" or "10%-20%". */
static bool parse_time(const char *text, struct tickmap_input *input)
{
	const char *split = strchr(text, ',');

	if (!split) {
		split = strstr(text, "%-");
		split = split ? split + 1 : NULL;
	}
	if (!split || !split[strcspn(split, ",-")])
		return false;
	return parse_moment(text, (size_t)(split - text), &input->from) &&
	       parse_moment(split + 1, strlen(split + 1), &input->to);
}

/* "12" or "12,34", added to what is there. */
static bool parse_ids(const char *text, uint32_t **items, size_t *count,
		      size_t *capacity)
{
	for (;;) {
		size_t length = strcspn(text, ",");
		char word[16];
		uint64_t id;

		if (length >= sizeof(word))
			return false;
		snprintf(word, sizeof(word), "%.*s", (int)length, text);
		if (!tickmap_args_number(word, 0, INT32_MAX, &id) ||
		    !tickmap_vec_grow(items, capacity, *count + 1,
				      sizeof(**items)))
			return false;
		(*items)[(*count)++] = (uint32_t)id;
		if (!text[length])
			return true;
		text += length + 1;
	}
}

bool tickmap_input_option(struct tickmap_input *input,
			  const struct tickmap_args *args, int id,
			  int *ret_exit)
{
	bool good = true;
	const char **dir;

	switch (id) {
	case INPUT_PID:
		good = parse_ids(args->value, &input->pids.items,
				 &input->pids.count, &input->pids.capacity);
		break;
	case INPUT_TID:
		good = parse_ids(args->value, &input->tids.items,
				 &input->tids.count, &input->tids.capacity);
		break;
	case INPUT_TIME:
		if (parse_time(args->value, input))
			return true;
		*ret_exit = tickmap_args_usage(
			args,
			"--time: '%s' is no range; write 12.5,13 or +0.5,+1 "
			"or 10%%-20%%",
			args->value);
		return false;
	case INPUT_CODE_MAPS:
		dir = tickmap_vec_push(&input->code_map_dirs);
		if (dir)
			*dir = args->value;
		if (access(args->value, R_OK | X_OK) != 0) {
			*ret_exit = tickmap_args_usage(
				args, "--code-maps: cannot read folder '%s'",
				args->value);
			return false;
		}
		break;
	case INPUT_INLINE:
		input->inlined = true;
		break;
	default:
		*ret_exit = tickmap_args_exit(id);
		return false;
	}
	if (!good)
		*ret_exit = tickmap_args_usage(args, "--%s: '%s' is no number",
					       id == INPUT_PID ? "pid" : "tid",
					       args->value);
	return good;
}

int tickmap_input_operands(struct tickmap_input *input,
			   const struct tickmap_args *args)
{
	if (args->operand_count > 1)
		return tickmap_args_usage(args,
					  "one FILE at a time, please: '%s'",
					  args->operands[1]);
	input->file =
		args->operand_count ? args->operands[0] : TICKMAP_DEFAULT_FILE;
	return TICKMAP_EXIT_DONE;
}

/* From the recording's own start and end to its clock. */
static uint64_t resolve(const struct tickmap_moment *moment,
			const struct tickmap_profile *whole)
{
	uint64_t length = whole->end_ns - whole->start_ns;

	switch (moment->kind) {
	case MOMENT_SINCE:
		return whole->start_ns + moment->ns;
	case MOMENT_SHARE:
		return whole->start_ns +
		       (uint64_t)((double)length * (double)moment->ns /
				  (double)SECOND);
	case MOMENT_CLOCK:
		return moment->ns;
	case MOMENT_OPEN:
		break;
	}
	return 0;
}

static bool is_relative(const struct tickmap_moment *moment)
{
	return moment->kind == MOMENT_SINCE || moment->kind == MOMENT_SHARE;
}

static int load_once(const struct tickmap_input *input,
		     const struct tickmap_profile_options *options,
		     struct tickmap_profile **ret_profile)
{
	struct tickmap_error err = { 0 };
	struct tickmap_cli_progress progress = { .name = input->file };
	struct tickmap_profile_options with = *options;

	tickmap_platform_give_memory_back();
	with.progress = tickmap_cli_progress;
	with.progress_context = &progress;
	int status =
		tickmap_profile_load(input->file, &with, ret_profile, &err);
	tickmap_cli_progress_end(&progress);
	if (status >= 0)
		return TICKMAP_EXIT_DONE;
	err.status = (enum tickmap_status)status;
	if (!err.source[0])
		tickmap_error_source(&err, input->file);
	return tickmap_cli_error(&err,
				 strcmp(input->file, "-") != 0 &&
						 access(input->file, F_OK) != 0
					 ? "record first: tickmap record -- CMD"
					 : NULL);
}

/* What comes through a pipe comes once, and may have to be read twice. */
static int keep_stdin(void)
{
	struct tickmap_error err = { 0 };
	struct stat st;
	int kept;

	if (isatty(STDIN_FILENO)) {
		tickmap_cli_say("-: standard input is a terminal; write perf "
				"record -o - -- CMD | tickmap report -");
		return TICKMAP_EXIT_USAGE;
	}
	if (!fstat(STDIN_FILENO, &st) && S_ISREG(st.st_mode))
		return TICKMAP_EXIT_DONE;
	int status = tickmap_perfdata_spool(STDIN_FILENO, &kept, &err);
	if (status < 0) {
		tickmap_error_source(&err, "-");
		return tickmap_cli_error(&err, NULL);
	}
	dup2(kept, STDIN_FILENO);
	close(kept);
	return TICKMAP_EXIT_DONE;
}

int tickmap_input_load(const struct tickmap_input *input,
		       struct tickmap_profile **ret_profile)
{
	struct tickmap_profile_options options = {
		.pids = input->pids.items,
		.pid_count = input->pids.count,
		.tids = input->tids.items,
		.tid_count = input->tids.count,
		.code_map_dirs = input->code_map_dirs.items,
		.code_map_dir_count = input->code_map_dirs.count,
		.inlined = input->inlined,
		.addresses = input->addresses,
	};
	struct tickmap_profile none = { 0 };
	struct tickmap_profile *whole = NULL;

	if (!strcmp(input->file, "-")) {
		int code = keep_stdin();

		if (code != TICKMAP_EXIT_DONE)
			return code;
	}
	/* Where the recording starts is known once it has been read. */
	if (is_relative(&input->from) || is_relative(&input->to)) {
		int code = load_once(input, &options, &whole);

		if (code != TICKMAP_EXIT_DONE)
			return code;
	}
	options.from_ns = resolve(&input->from, whole ? whole : &none);
	options.to_ns = resolve(&input->to, whole ? whole : &none);
	/* The end is not part of a range, but the whole has its last sample. */
	if (input->to.kind == MOMENT_SHARE && input->to.ns == SECOND)
		options.to_ns = 0;
	tickmap_profile_free(whole);
	if (input->to.kind != MOMENT_OPEN && options.to_ns &&
	    options.to_ns <= options.from_ns) {
		tickmap_cli_say("--time: the range ends before it starts");
		return TICKMAP_EXIT_USAGE;
	}
	return load_once(input, &options, ret_profile);
}

int tickmap_input_empty(const struct tickmap_input *input,
			const struct tickmap_profile *profile)
{
	const char *file = input->file;

	if (profile->filtered) {
		tickmap_cli_say("%s: nothing to show: --pid, --tid and --time "
				"leave out all %" PRIu64 " samples",
				file, profile->filtered);
		fprintf(stderr,
			"see who was sampled: tickmap report --by "
			"thread %s\n",
			file);
	} else if (profile->other_events) {
		tickmap_cli_say("%s: nothing to show: all %" PRIu64
				" samples are of events that measure no time",
				file, profile->other_events);
		fputs("record CPU time: tickmap record -- CMD\n", stderr);
	} else if (profile->lost) {
		tickmap_cli_say("%s: nothing to show: the kernel dropped all "
				"%" PRIu64 " samples",
				file, profile->lost);
		fputs("sample more slowly: tickmap record -F 99 -- CMD\n",
		      stderr);
	} else {
		tickmap_cli_say(
			"%s: nothing to show: no samples, so the "
			"program used next to no CPU time%s",
			file,
			profile->finished ? "" : " or the recorder was killed");
		fputs("sample faster: tickmap record -F 5000 -- CMD\n", stderr);
	}
	return TICKMAP_EXIT_FINDINGS;
}

void tickmap_input_free(struct tickmap_input *input)
{
	tickmap_vec_free(&input->pids);
	tickmap_vec_free(&input->tids);
	tickmap_vec_free(&input->code_map_dirs);
}

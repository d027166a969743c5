/* SPDX-License-Identifier: MIT */
/* tickmap lint: what is odd or wrong in code maps, and why it matters. */
#include "lint.h"

#include "args.h"
#include "base/json.h"
#include "cli.h"
#include "codemap.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { OPT_JSON = 1 };

static const struct tickmap_option options[] = {
	{ OPT_JSON, "json", 0, NULL, "one JSON object a line", false },
};

static const struct tickmap_command command = {
	.name = "lint",
	.operands = "FILE...",
	.summary = "Says what is odd or wrong in code maps, and why it "
		   "matters.",
	.notes = "FILE is a jitdump, a perf map, or a recording whose code "
		 "maps are wanted; what it is is told from its content. A line "
		 "is FILE:OFFSET: SEVERITY ID what: number, and below it why. "
		 "The ids are documented one by one in docs/findings.md. Exits "
		 "with 1 if there is any error, with 0 if there are but "
		 "warnings and infos.",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
};

static const char *const severities[] = { "info", "warning", "error" };

static void key_text(struct tickmap_json *out, const char *key,
		     const char *text)
{
	tickmap_json_key(out, key);
	tickmap_json_text(out, text);
}

static void key_u64(struct tickmap_json *out, const char *key, uint64_t value)
{
	tickmap_json_key(out, key);
	tickmap_json_u64(out, value);
}

static void json_finding(const struct tickmap_lint *lint,
			 const struct tickmap_finding *finding)
{
	struct tickmap_json out = { .out = stdout };

	tickmap_json_open(&out, '{');
	key_text(&out, "file", lint->path);
	key_text(&out, "id", finding->id);
	key_text(&out, "severity", severities[finding->kind->severity]);
	key_u64(&out, "offset", finding->offset);
	key_u64(&out, "value", finding->value);
	key_text(&out, "value_is", finding->kind->value);
	key_text(&out, "what", finding->what);
	key_text(&out, "why", finding->kind->why);
	tickmap_json_close(&out, '}');
	putchar('\n');
}

static void saw_finding(void *context, const struct tickmap_finding *finding)
{
	struct tickmap_lint *lint = context;

	lint->by_severity[finding->kind->severity]++;
	lint->errors += finding->error;
	if (lint->json) {
		json_finding(lint, finding);
		return;
	}
	printf("%s:0x%" PRIx64 ": %s %s %s: %" PRIu64 "\n    %s\n", lint->path,
	       finding->offset, severities[finding->kind->severity],
	       finding->id, finding->what, finding->value, finding->kind->why);
}

static void saw_code(void *context, const struct tickmap_code_event *event)
{
	struct tickmap_lint *lint = context;

	lint->entries += event->kind == TICKMAP_CODE_LOAD;
}

struct tickmap_code_handler tickmap_lint_handler(struct tickmap_lint *lint)
{
	struct tickmap_code_handler handler = { .context = lint,
						.code = saw_code,
						.finding = saw_finding };

	lint->entries = 0;
	memset(lint->by_severity, 0, sizeof(lint->by_severity));
	return handler;
}

static void json_sum(const struct tickmap_lint *lint, bool map,
		     struct tickmap_jitdump_counts counts)
{
	struct tickmap_json out = { .out = stdout };

	tickmap_json_open(&out, '{');
	key_text(&out, "file", lint->path);
	key_text(&out, "format", map ? "perf map" : "jitdump");
	key_u64(&out, "functions", lint->entries);
	key_u64(&out, "errors", lint->by_severity[TICKMAP_ERROR]);
	key_u64(&out, "warnings", lint->by_severity[TICKMAP_WARNING]);
	key_u64(&out, "infos", lint->by_severity[TICKMAP_INFO]);
	if (!map) {
		key_u64(&out, "records", counts.records);
		key_u64(&out, "skipped_bytes", counts.skipped_bytes);
		key_u64(&out, "damages", counts.damages);
		key_u64(&out, "recovered", counts.recovered);
	}
	tickmap_json_close(&out, '}');
	putchar('\n');
}

void tickmap_lint_sum(struct tickmap_lint *lint,
		      const struct tickmap_jitdump *dump)
{
	struct tickmap_jitdump_counts counts = { 0 };

	if (dump)
		counts = tickmap_jitdump_counts(dump);
	if (lint->json) {
		json_sum(lint, !dump, counts);
		return;
	}
	printf("%s: %s, %" PRIu64 " functions, %" PRIu64 " errors, %" PRIu64
	       " warnings, %" PRIu64 " infos\n",
	       lint->path, dump ? "jitdump" : "perf map", lint->entries,
	       lint->by_severity[TICKMAP_ERROR],
	       lint->by_severity[TICKMAP_WARNING],
	       lint->by_severity[TICKMAP_INFO]);
	if (counts.damages || counts.skipped_bytes)
		printf("%s: %" PRIu64 " bytes skipped, %" PRIu64
		       " functions recovered behind %" PRIu64
		       " damaged places\n",
		       lint->path, counts.skipped_bytes, counts.recovered,
		       counts.damages);
}

static int lint_map(struct tickmap_lint *lint, struct tickmap_file *file)
{
	struct tickmap_code_handler handler = tickmap_lint_handler(lint);
	struct tickmap_jitdump *dump = NULL;
	int code = tickmap_file_feed(file, &handler, &dump);

	if (code == TICKMAP_EXIT_DONE)
		tickmap_lint_sum(lint, dump);
	tickmap_jitdump_free(dump);
	return code;
}

static int lint_file(struct tickmap_lint *lint, const char *path)
{
	struct tickmap_file file;
	int code = tickmap_file_open(&file, path);

	if (code != TICKMAP_EXIT_DONE)
		return code;
	lint->path = file.path;
	if (file.kind == TICKMAP_FILE_RECORDING)
		code = tickmap_lint_recording(lint, path);
	else if (file.kind == TICKMAP_FILE_OTHER)
		code = tickmap_file_refuse(&file, "lint");
	else
		code = lint_map(lint, &file);
	tickmap_file_close(&file);
	return code;
}

int tickmap_cmd_lint(int argc, char **argv)
{
	struct tickmap_args args = { &command, argc, argv };
	struct tickmap_lint lint = { .json = false };
	int worst = TICKMAP_EXIT_DONE;

	for (int id; (id = tickmap_args_next(&args)) != TICKMAP_ARGS_END;) {
		if (id != OPT_JSON)
			return tickmap_args_exit(id);
		lint.json = true;
	}
	if (!args.operand_count)
		return tickmap_args_usage(&args,
					  "which FILE? a jitdump, a perf map "
					  "or a recording");
	/* One that cannot be read does not keep us from the others. */
	for (int i = 0; i < args.operand_count; i++) {
		int code = lint_file(&lint, args.operands[i]);
		if (code > worst)
			worst = code;
	}
	return worst == TICKMAP_EXIT_DONE && lint.errors ? TICKMAP_EXIT_FINDINGS
							 : worst;
}

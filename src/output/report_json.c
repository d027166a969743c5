/* SPDX-License-Identifier: MIT */
/* All facts of a profile as one JSON object. Counts are samples. */
#include "base/json.h"
#include "output/names.h"
#include "output/output.h"

#include <stdlib.h>

static void string(struct tickmap_json *j, const char *key,
		   const struct tickmap_profile *profile, tickmap_str id)
{
	size_t length;
	const char *bytes = tickmap_string(profile->strings, id, &length);

	tickmap_json_key(j, key);
	tickmap_json_string(j, bytes, length);
}

static void string_or_null(struct tickmap_json *j, const char *key,
			   const struct tickmap_profile *profile,
			   tickmap_str id)
{
	if (id) {
		string(j, key, profile, id);
		return;
	}
	tickmap_json_key(j, key);
	tickmap_json_null(j);
}

static void number(struct tickmap_json *j, const char *key, uint64_t value)
{
	tickmap_json_key(j, key);
	tickmap_json_u64(j, value);
}

static void truth(struct tickmap_json *j, const char *key, bool value)
{
	tickmap_json_key(j, key);
	tickmap_json_bool(j, value);
}

static void words(struct tickmap_json *j, const char *key,
		  const struct tickmap_profile *profile, const tickmap_str *ids,
		  size_t count)
{
	tickmap_json_key(j, key);
	tickmap_json_open(j, '[');
	for (size_t i = 0; i < count; i++) {
		size_t length;
		const char *bytes =
			tickmap_string(profile->strings, ids[i], &length);

		tickmap_json_string(j, bytes, length);
	}
	tickmap_json_close(j, ']');
}

static void measured(struct tickmap_json *j,
		     const struct tickmap_profile *profile)
{
	string(j, "command", profile, profile->command);
	string(j, "event", profile, profile->event);
	number(j, "frequency", profile->frequency);
	tickmap_json_key(j, "cpu_seconds");
	tickmap_json_double(j, profile->cpu_seconds);
	number(j, "start_ns", profile->start_ns);
	number(j, "end_ns", profile->end_ns);
	truth(j, "kernel_seen", profile->kernel_seen);
	truth(j, "finished", profile->finished);
}

static void clock(struct tickmap_json *j, const struct tickmap_profile *profile)
{
	tickmap_json_key(j, "clock");
	tickmap_json_open(j, '{');
	tickmap_json_key(j, "domain");
	tickmap_json_text(j, profile->clock.domain);
	tickmap_json_key(j, "method");
	tickmap_json_text(j, profile->clock.method);
	tickmap_json_key(j, "code_maps");
	tickmap_json_text(j, profile->clock.code_maps);
	tickmap_json_key(j, "offset_ns");
	tickmap_json_i64(j, profile->clock.offset_ns);
	number(j, "error_ns", profile->clock.error_ns);
	number(j, "violations", profile->clock.violations);
	tickmap_json_close(j, '}');
}

static void quality(struct tickmap_json *j,
		    const struct tickmap_profile *profile)
{
	number(j, "samples", profile->samples.count);
	number(j, "filtered", profile->filtered);
	number(j, "other_events", profile->other_events);
	number(j, "lost", profile->lost);
	number(j, "truncated", profile->truncated);
	tickmap_json_key(j, "truncated_by");
	tickmap_json_open(j, '{');
	for (unsigned i = 1; i < 16; i++)
		if (profile->truncated_by[i])
			number(j, tickmap_names_end_word(i),
			       profile->truncated_by[i]);
	tickmap_json_close(j, '}');
	number(j, "jit_samples", profile->jit_samples);
	number(j, "jit_resolved", profile->jit_resolved);
	tickmap_json_key(j, "unresolved");
	tickmap_json_open(j, '{');
	for (unsigned i = 1; i < TICKMAP_UNRESOLVED_COUNT; i++)
		if (profile->unresolved[i])
			number(j, tickmap_unresolved_word(i),
			       profile->unresolved[i]);
	tickmap_json_close(j, '}');
	number(j, "early", profile->early);
	number(j, "code_loads", profile->code_loads);
	number(j, "dumped_lines", profile->dumped_lines);
	number(j, "findings_count", profile->findings_count);
	words(j, "findings", profile, profile->findings.items,
	      profile->findings.count);
	words(j, "hints", profile, profile->hints.items, profile->hints.count);
	clock(j, profile);
}

static int threads(struct tickmap_json *j,
		   const struct tickmap_profile *profile)
{
	size_t count = profile->threads.count;
	uint64_t *samples = calloc(count + 1, sizeof(*samples));

	if (!samples)
		return TICKMAP_E_NOMEM;
	for (size_t i = 0; i < profile->samples.count; i++)
		samples[profile->samples.items[i].thread]++;
	tickmap_json_key(j, "threads");
	tickmap_json_open(j, '[');
	for (size_t i = 0; i < count; i++) {
		const struct tickmap_thread *t = &profile->threads.items[i];

		if (!samples[i])
			continue;
		tickmap_json_open(j, '{');
		number(j, "pid", t->pid);
		number(j, "tid", t->tid);
		string(j, "comm", profile, t->comm);
		number(j, "samples", samples[i]);
		tickmap_json_close(j, '}');
	}
	tickmap_json_close(j, ']');
	free(samples);
	return TICKMAP_OK;
}

static void function(struct tickmap_json *j,
		     const struct tickmap_profile *profile,
		     const struct tickmap_function *row)
{
	static const char *const kinds[] = {
		[TICKMAP_FRAME_PYTHON] = "python",
		[TICKMAP_FRAME_JIT] = "jit",
		[TICKMAP_FRAME_NATIVE] = "native",
		[TICKMAP_FRAME_KERNEL] = "kernel",
		[TICKMAP_FRAME_UNRESOLVED] = "unresolved",
	};
	const struct tickmap_frame *f = &profile->frames.items[row->frame];

	tickmap_json_open(j, '{');
	string(j, "name", profile, f->name);
	string(j, "dso", profile, f->dso);
	string_or_null(j, "file", profile, f->file);
	tickmap_json_key(j, "line");
	if (f->line)
		tickmap_json_u64(j, f->line);
	else
		tickmap_json_null(j);
	number(j, "self", row->self);
	number(j, "total", row->total);
	number(j, "managed_self", row->managed_self);
	tickmap_json_key(j, "kind");
	tickmap_json_text(j, kinds[f->kind]);
	truth(j, "interpreter", f->interpreter);
	if (f->inlined)
		truth(j, "inlined", true);
	if (f->reason) {
		tickmap_json_key(j, "reason");
		tickmap_json_text(j, tickmap_unresolved_word(f->reason));
	}
	tickmap_json_close(j, '}');
}

int tickmap_report_json(const struct tickmap_profile *profile,
			const struct tickmap_report_options *options, FILE *out)
{
	struct tickmap_json j = { .out = out };
	struct tickmap_functions functions;
	int status = tickmap_profile_functions(profile, NULL, 0, &functions);

	(void)options; /* facts are not cut to fit */
	if (status < 0)
		return status;
	tickmap_json_open(&j, '{');
	quality(&j, profile);
	measured(&j, profile);
	status = threads(&j, profile);
	tickmap_json_key(&j, "functions");
	tickmap_json_open(&j, '[');
	for (size_t i = 0; i < functions.count; i++)
		function(&j, profile, &functions.rows[i]);
	tickmap_json_close(&j, ']');
	tickmap_json_close(&j, '}');
	putc('\n', out);
	tickmap_functions_free(&functions);
	if (status >= 0 && ferror(out))
		status = TICKMAP_E_OS;
	return status;
}

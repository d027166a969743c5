/* SPDX-License-Identifier: MIT */
/*
 * Builds a profile from a description on stdin and writes it in a form of
 * src/output: `make_profile FORM [OPTION...]`. Tests describe what they like,
 * and count it themselves, in another language. One thing a line, its parts
 * between tabs:
 *
 *	F  KIND INTERPRETER LINE REASON DSO FILE NAME     a frame
 *	T  PID TID COMM                                   a thread
 *	S  THREAD COUNT TRUNCATED FRAME,FRAME,...         samples, root first
 *	V  KEY VALUE                                      a fact
 *
 * "\xHH" in names stands for a byte.
 */
#include "output/output.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PARTS 10

static struct tickmap_profile *profile;
static uint64_t next_time_ns = UINT64_C(5000000000);

static void die(const char *what)
{
	fprintf(stderr, "make_profile: %s\n", what);
	exit(1);
}

static uint64_t number(const char *text)
{
	return strtoull(text, NULL, 0);
}

/* Undoes "\xHH". */
static tickmap_str string(char *text)
{
	char *to = text, *from = text;

	for (; *from; to++) {
		if (from[0] == '\\' && from[1] == 'x') {
			char hex[3] = { from[2], from[3], 0 };

			*to = (char)strtoul(hex, NULL, 16);
			from += 4;
		} else {
			*to = *from++;
		}
	}
	return tickmap_intern(profile->strings, text, (size_t)(to - text));
}

static void add_frame(char **part)
{
	struct tickmap_frame frame = {
		.kind = (uint8_t)number(part[1]),
		.interpreter = number(part[2]) != 0,
		.line = (uint32_t)number(part[3]),
		.reason = (uint8_t)number(part[4]),
		.dso = string(part[5]),
		.file = string(part[6]),
		.name = string(part[7]),
	};

	frame.code_map = frame.kind == TICKMAP_FRAME_PYTHON ||
			 frame.kind == TICKMAP_FRAME_JIT ||
			 (frame.reason >= TICKMAP_UNRESOLVED_NO_CODE_MAP &&
			  frame.reason <= TICKMAP_UNRESOLVED_OTHER_TIME);
	if (tickmap_profile_frame(profile, &frame) != profile->frames.count - 1)
		die("a frame that is there already");
}

static void add_thread(char **part)
{
	struct tickmap_thread *thread = tickmap_vec_push(&profile->threads);

	thread->pid = (uint32_t)number(part[1]);
	thread->tid = (uint32_t)number(part[2]);
	thread->comm = string(part[3]);
}

static void count_sample(const struct tickmap_profile_sample *sample)
{
	profile->truncated += sample->truncated != 0;
	profile->truncated_by[sample->truncated]++;
	profile->jit_samples += sample->jit;
	profile->jit_resolved += sample->jit_resolved;
	for (uint32_t n = sample->node; n; n = profile->nodes.items[n].parent) {
		uint32_t frame = profile->nodes.items[n].frame;
		unsigned reason = profile->frames.items[frame].reason;

		profile->unresolved[reason] += reason != 0;
	}
}

static void add_samples(char **part)
{
	struct tickmap_profile_sample sample = {
		.thread = (uint32_t)number(part[1]),
		.truncated = (uint8_t)number(part[3]),
		.avma = 0x401000,
		.jit_resolved = true,
	};

	for (char *word = strtok(part[4], ","); word;
	     word = strtok(NULL, ",")) {
		uint32_t frame = (uint32_t)number(word);
		const struct tickmap_frame *f = &profile->frames.items[frame];

		sample.node = tickmap_profile_node(profile, sample.node, frame);
		sample.jit |= f->code_map;
		sample.jit_resolved &= !f->code_map || !f->reason;
	}
	sample.jit_resolved &= sample.jit;
	for (uint64_t n = number(part[2]); n > 0; n--) {
		sample.time_ns = next_time_ns;
		next_time_ns += 1001000;
		*tickmap_vec_push(&profile->samples) = sample;
		count_sample(&sample);
	}
}

static void add_fact(char **part)
{
	const char *key = part[1];

	if (strcmp(key, "event") == 0)
		profile->event = string(part[2]);
	else if (strcmp(key, "command") == 0)
		profile->command = string(part[2]);
	else if (strcmp(key, "hint") == 0)
		*tickmap_vec_push(&profile->hints) = string(part[2]);
	else if (strcmp(key, "frequency") == 0)
		profile->frequency = number(part[2]);
	else if (strcmp(key, "lost") == 0)
		profile->lost = number(part[2]);
	else if (strcmp(key, "code_loads") == 0)
		profile->code_loads = number(part[2]);
	else if (strcmp(key, "cpu_seconds") == 0)
		profile->cpu_seconds = strtod(part[2], NULL);
	else if (strcmp(key, "end_ns") == 0)
		profile->end_ns = number(part[2]);
	else if (strcmp(key, "unfinished") == 0)
		profile->finished = false;
	else
		die("an unknown fact");
}

static void read_line(char *text)
{
	char *part[PARTS] = { NULL };
	char *rest = text;

	for (size_t i = 0; i < PARTS && rest; i++)
		part[i] = strsep(&rest, "\t");
	for (size_t i = 0; i < PARTS; i++)
		if (!part[i])
			part[i] = text + strlen(text);
	switch (text[0]) {
	case 'F':
		add_frame(part);
		break;
	case 'T':
		add_thread(part);
		break;
	case 'S':
		add_samples(part);
		break;
	case 'V':
		add_fact(part);
		break;
	default:
		die("a line that is nothing");
	}
}

static void read_all(void)
{
	char *text = NULL;
	size_t size = 0;
	ssize_t length;

	while ((length = getline(&text, &size, stdin)) > 0) {
		text[strcspn(text, "\n")] = 0;
		read_line(text);
	}
	free(text);
}

static int write_report(const char *form, int argc, char **argv)
{
	struct tickmap_report_options o = {
		.children = true,
		.limit = 30,
		.width = 80,
	};

	for (int i = 0; i < argc; i++) {
		if (strcmp(argv[i], "colour") == 0)
			o.colour = true;
		else if (strcmp(argv[i], "interpreter") == 0)
			o.interpreter_frames = true;
		else if (strcmp(argv[i], "no-children") == 0)
			o.children = false;
		else if (strcmp(argv[i], "by-process") == 0)
			o.by_process = true;
		else if (strcmp(argv[i], "by-thread") == 0)
			o.by_thread = true;
		else if (strncmp(argv[i], "limit=", 6) == 0)
			o.limit = number(argv[i] + 6);
		else if (strncmp(argv[i], "width=", 6) == 0)
			o.width = (unsigned)number(argv[i] + 6);
		else
			die("an unknown option");
	}
	return strcmp(form, "json") == 0
		       ? tickmap_report_json(profile, &o, stdout)
		       : tickmap_report_text(profile, &o, stdout);
}

static int write_export(const char *form, int argc, char **argv)
{
	struct tickmap_export_options o = { .interpreter_frames = true };

	for (int i = 0; i < argc; i++)
		if (strcmp(argv[i], "no-interpreter") == 0)
			o.interpreter_frames = false;
	if (strcmp(form, "folded") == 0)
		return tickmap_export_folded(profile, &o, stdout);
	if (strcmp(form, "html") == 0)
		return tickmap_export_html(profile, &o, stdout);
	return tickmap_export_perf_script(profile, &o, stdout);
}

int main(int argc, char **argv)
{
	profile = tickmap_profile_new();
	if (!profile || argc < 2)
		die("which form?");
	profile->clock.domain = "monotonic";
	profile->clock.method = "same";
	read_all();
	profile->start_ns = UINT64_C(5000000000);
	if (!profile->end_ns)
		profile->end_ns = next_time_ns;

	const char *form = argv[1];
	bool report = strcmp(form, "text") == 0 || strcmp(form, "json") == 0;
	int status = report ? write_report(form, argc - 2, argv + 2)
			    : write_export(form, argc - 2, argv + 2);

	tickmap_profile_free(profile);
	return status < 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * The text of `perf script -F comm,pid,tid,cpu,time,event,ip,sym,dso`: what
 * stackcollapse-perf, speedscope and the Firefox Profiler read. Addresses are
 * true if the profile keeps them; else callers have 0. An inlined function has
 * that of the frame it is part of, and says so in the place of its file.
 */
#include "output/names.h"
#include "output/output.h"

#include <inttypes.h>
#include <string.h>

enum { TEXT_MAX = 1 << 16 };

struct script {
	const struct tickmap_profile *profile;
	bool interpreter_frames;
	struct tickmap_text text; /* of a sample, or its end */
	TICKMAP_VEC(uint64_t) avmas;
	size_t avma_count;
	FILE *out;
};

static void add_string(struct tickmap_text *text,
		       const struct tickmap_profile *profile, tickmap_str id,
		       const char *otherwise)
{
	size_t length;
	const char *bytes = tickmap_string(profile->strings, id, &length);

	if (length)
		tickmap_text_add_clean(text, bytes, length, false);
	else
		tickmap_text_add(text, otherwise, strlen(otherwise));
}

/* Readers take a dso for what stands in the last brackets of a line, up to the
 * first blank. */
static void add_dso(struct tickmap_text *text,
		    const struct tickmap_profile *profile,
		    const struct tickmap_frame *frame)
{
	size_t start = text->bytes.count;

	add_string(text, profile,
		   frame->dso_path ? frame->dso_path : frame->dso, "[unknown]");
	for (size_t i = start; i < text->bytes.count; i++)
		if (strchr(" ()", text->bytes.items[i]))
			text->bytes.items[i] = '_';
}

static void flush(struct script *s)
{
	fwrite(s->text.bytes.items, 1, s->text.bytes.count, s->out);
	s->text.bytes.count = 0;
}

static void add_frame(struct script *s, uint32_t node, uint64_t avma)
{
	uint32_t frame = s->profile->nodes.items[node].frame;
	char address[32];
	int n = snprintf(address, sizeof(address), "\t%16" PRIx64 " ", avma);

	tickmap_text_add(&s->text, address, (size_t)n);
	tickmap_text_add_name(&s->text, s->profile, frame, 0);
	if (s->profile->frames.items[frame].inlined) {
		tickmap_text_add(&s->text, " (inlined)\n", 11);
		return;
	}
	tickmap_text_add(&s->text, " (", 2);
	add_dso(&s->text, s->profile, &s->profile->frames.items[frame]);
	tickmap_text_add(&s->text, ")\n", 2);
	/* A sample's names together may be thousands of times its size. */
	if (s->text.bytes.count > TEXT_MAX)
		flush(s);
}

static bool has_python(const struct tickmap_profile *profile, uint32_t node)
{
	const struct tickmap_node *nodes = profile->nodes.items;

	while (node && profile->frames.items[nodes[node].frame].kind !=
			       TICKMAP_FRAME_PYTHON)
		node = nodes[node].parent;
	return node;
}

/* The addresses of a sample, in s->avmas. */
static bool find_addresses(struct script *s, size_t sample)
{
	size_t count = tickmap_profile_addresses(
		s->profile, sample, s->avmas.items, s->avmas.capacity);

	s->avma_count = count;
	if (count <= s->avmas.capacity)
		return true;
	if (!tickmap_vec_reserve(&s->avmas, count))
		return false;
	tickmap_profile_addresses(s->profile, sample, s->avmas.items, count);
	return true;
}

static void add_sample(struct script *s, size_t index)
{
	const struct tickmap_profile *profile = s->profile;
	const struct tickmap_profile_sample *sample =
		&profile->samples.items[index];
	const struct tickmap_thread *thread =
		&profile->threads.items[sample->thread];
	char head[128];
	int n = snprintf(head, sizeof(head),
			 " %" PRIu32 "/%" PRIu32 " [%03" PRIu32 "] %" PRIu64
			 ".%06" PRIu64 ": ",
			 thread->pid, thread->tid, sample->cpu,
			 sample->time_ns / 1000000000,
			 sample->time_ns / 1000 % 1000000);
	uint64_t avma = sample->avma;
	size_t at = 0;
	bool python = has_python(profile, sample->node);

	add_string(&s->text, profile, thread->comm, "[unknown]");
	tickmap_text_add(&s->text, head, (size_t)n);
	add_string(&s->text, profile, profile->event, "samples");
	tickmap_text_add(&s->text, ":\n", 2);
	for (uint32_t node = sample->node; node;
	     node = profile->nodes.items[node].parent) {
		const struct tickmap_frame *frame =
			&profile->frames
				 .items[profile->nodes.items[node].frame];

		if (at < s->avma_count)
			avma = s->avmas.items[at];
		if (s->interpreter_frames || !python || !frame->interpreter)
			add_frame(s, node, avma);
		if (frame->inlined)
			continue;
		avma = 0;
		at++;
	}
	tickmap_text_add(&s->text, "\n", 1);
}

int tickmap_export_perf_script(const struct tickmap_profile *profile,
			       const struct tickmap_export_options *options,
			       FILE *out)
{
	struct script s = {
		.profile = profile,
		.interpreter_frames = options->interpreter_frames,
		.out = out,
	};

	for (size_t i = 0; i < profile->samples.count && !s.text.failed; i++) {
		if (find_addresses(&s, i))
			add_sample(&s, i);
		else
			s.text.failed = true;
		flush(&s);
	}
	tickmap_vec_free(&s.text.bytes);
	tickmap_vec_free(&s.avmas);
	if (s.text.failed)
		return TICKMAP_E_NOMEM;
	return ferror(out) ? TICKMAP_E_OS : TICKMAP_OK;
}

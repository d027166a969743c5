/* SPDX-License-Identifier: MIT */
/* include/tickmap/recording.h: profiles and records for other programs. */
#include "tickmap/recording.h"

#include "capture/perfdata.h"
#include "profile/profile.h"
#include "unwind/unwind.h"

#include <string.h>

struct tickmap_recording {
	char *path;
	TICKMAP_VEC(char *) dirs;
	struct tickmap_perfdata *data;
	struct tickmap_profile *profile; /* when samples are asked for */
	size_t sample;
	TICKMAP_VEC(struct tickmap_recording_frame) frames;
};

static int say(const struct tickmap_error *err, const char *path, char *message,
	       size_t message_size)
{
	struct tickmap_error named = *err;

	if (!named.source[0])
		tickmap_error_source(&named, path);
	if (message && message_size)
		tickmap_error_text(&named, message, message_size);
	return err->status;
}

static bool keep_options(struct tickmap_recording *r, const char *path,
			 const struct tickmap_recording_options *options)
{
	r->path = strdup(path);
	if (!r->path)
		return false;
	if (!options || options->size < sizeof(*options))
		return true;
	for (size_t i = 0; i < options->code_map_dir_count; i++) {
		char **dir = tickmap_vec_push(&r->dirs);
		if (!dir)
			return false;
		*dir = strdup(options->code_map_dirs[i]);
		if (!*dir)
			return false;
	}
	return true;
}

int tickmap_recording_open(const char *path,
			   const struct tickmap_recording_options *options,
			   struct tickmap_recording **ret_recording,
			   char *message, size_t message_size)
{
	struct tickmap_recording *r = calloc(1, sizeof(*r));
	struct tickmap_error err = { 0 };

	if (!r || !keep_options(r, path, options))
		tickmap_fail(&err, TICKMAP_E_NOMEM, 0, "out of memory");
	else
		tickmap_perfdata_open(path, &r->data, &err);
	if (err.status) {
		tickmap_recording_close(r);
		return say(&err, path, message, message_size);
	}
	*ret_recording = r;
	return 0;
}

void tickmap_recording_close(struct tickmap_recording *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->dirs.count; i++)
		free(r->dirs.items[i]);
	tickmap_vec_free(&r->dirs);
	tickmap_vec_free(&r->frames);
	tickmap_profile_free(r->profile);
	tickmap_perfdata_close(r->data);
	free(r->path);
	free(r);
}

/* Standard input was kept when it was opened, and is not read twice. */
static int load(struct tickmap_recording *r)
{
	struct tickmap_profile_options options = {
		.code_map_dirs = (const char *const *)r->dirs.items,
		.code_map_dir_count = r->dirs.count,
		.data = r->data,
	};

	if (r->profile)
		return 0;
	return tickmap_profile_load(r->path, &options, &r->profile, NULL);
}

static const char *text(const struct tickmap_recording *r, tickmap_str id)
{
	return tickmap_string(r->profile->strings, id, NULL);
}

static enum tickmap_recording_frame_kind kind_of(const struct tickmap_frame *f)
{
	switch (f->kind) {
	case TICKMAP_FRAME_PYTHON:
		return TICKMAP_RECORDING_PYTHON;
	case TICKMAP_FRAME_JIT:
		return TICKMAP_RECORDING_JIT;
	case TICKMAP_FRAME_KERNEL:
		return f->reason ? TICKMAP_RECORDING_UNNAMED
				 : TICKMAP_RECORDING_KERNEL;
	case TICKMAP_FRAME_NATIVE:
		return TICKMAP_RECORDING_NATIVE;
	default:
		return TICKMAP_RECORDING_UNNAMED;
	}
}

static bool fill_frames(struct tickmap_recording *r, uint32_t node)
{
	const struct tickmap_profile *p = r->profile;

	r->frames.count = 0;
	for (; node; node = p->nodes.items[node].parent) {
		const struct tickmap_frame *f =
			&p->frames.items[p->nodes.items[node].frame];
		struct tickmap_recording_frame *out =
			tickmap_vec_push(&r->frames);
		if (!out)
			return false;
		*out = (struct tickmap_recording_frame) {
			.kind = kind_of(f),
			.name = text(r, f->name),
			.dso = text(r, f->dso_path ? f->dso_path : f->dso),
			.file = f->file ? text(r, f->file) : NULL,
			.line = f->line,
			.reason = f->reason ? tickmap_unresolved_word(
						      (enum tickmap_unresolved)
							      f->reason)
					    : NULL,
		};
	}
	return true;
}

int tickmap_recording_next_sample(struct tickmap_recording *r,
				  struct tickmap_recording_sample *ret_sample)
{
	int status = load(r);

	if (status < 0)
		return status;
	if (r->sample == r->profile->samples.count)
		return 0;
	const struct tickmap_profile_sample *s =
		&r->profile->samples.items[r->sample];
	const struct tickmap_thread *t = &r->profile->threads.items[s->thread];
	if (!fill_frames(r, s->node))
		return TICKMAP_E_NOMEM;
	r->sample++;
	*ret_sample = (struct tickmap_recording_sample) {
		.time_ns = s->time_ns,
		.pid = t->pid,
		.tid = t->tid,
		.cpu = s->cpu,
		.comm = text(r, t->comm),
		.avma = s->avma,
		.frames = r->frames.items,
		.frame_count = r->frames.count,
		.truncated =
			s->truncated
				? tickmap_unwind_end_text(
					  (enum tickmap_unwind_end)s->truncated)
				: NULL,
	};
	return 1;
}

int tickmap_recording_next_event(struct tickmap_recording *r,
				 struct tickmap_recording_event *ret_event,
				 char *message, size_t message_size)
{
	struct tickmap_perfdata_record record;
	struct tickmap_error err = { 0 };
	int status = tickmap_perfdata_next(r->data, &record, &err);

	if (status < 0)
		return say(&err, r->path, message, message_size);
	if (!status)
		return 0;
	*ret_event = (struct tickmap_recording_event) {
		.type = record.type,
		.misc = record.misc,
		.time_ns = record.id.time_ns,
		.pid = record.id.pid,
		.tid = record.id.tid,
		.cpu = record.id.cpu,
		.event = record.attr->name,
		.counts_time = record.attr->counts_time,
		.swapped = record.swap,
		.bytes = record.bytes,
		.size = record.size,
		.file = record.file,
		.offset = record.offset,
	};
	return 1;
}

int tickmap_recording_quality(struct tickmap_recording *r,
			      struct tickmap_recording_quality *ret_quality)
{
	int status = load(r);

	if (status < 0)
		return status;
	const struct tickmap_profile *p = r->profile;
	*ret_quality = (struct tickmap_recording_quality) {
		.samples = p->samples.count,
		.lost = p->lost,
		.truncated = p->truncated,
		.other_events = p->other_events,
		.jit_samples = p->jit_samples,
		.jit_resolved = p->jit_resolved,
		.clock_domain = p->clock.domain,
		.clock_method = p->clock.method,
		.finished = p->finished,
	};
	return 0;
}

const char *tickmap_recording_finding(struct tickmap_recording *r, size_t index)
{
	if (load(r) < 0 || index >= r->profile->findings.count)
		return NULL;
	return text(r, r->profile->findings.items[index]);
}

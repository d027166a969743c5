/* SPDX-License-Identifier: MIT */
/* The text report: how good the data is, then functions and call tree, for all
 * samples or for each process or thread. */
#include "output/names.h"
#include "output/report.h"
#include "output/tree.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void tickmap_report_title(const struct tickmap_paint *paint, const char *title,
			  const char *text)
{
	putc('\n', paint->out);
	tickmap_paint_text(paint, TICKMAP_INK_BOLD, title);
	fputs("  ", paint->out);
	tickmap_paint_on(paint, TICKMAP_INK_DIM);
	tickmap_paint_wrapped(paint, text, strlen(title) + 2,
			      strlen(title) + 2);
	tickmap_paint_off(paint, TICKMAP_INK_DIM);
	fputs("\n\n", paint->out);
}

/* Where the path begins in "py::NAME:PATH"; 0 if there is none. */
static size_t python_path(const struct tickmap_profile *profile, uint32_t frame)
{
	const struct tickmap_frame *f = &profile->frames.items[frame];
	const char *name = tickmap_string(profile->strings, f->name, NULL);
	const char *colon = strrchr(name, ':');

	if (f->kind != TICKMAP_FRAME_PYTHON || !colon || colon - name < 5 ||
	    colon[-1] == ':' || !colon[1])
		return 0;
	return (size_t)(colon + 1 - name);
}

size_t tickmap_report_name(const struct tickmap_part *part, uint32_t frame,
			   size_t columns)
{
	const struct tickmap_profile *profile = part->profile;
	const struct tickmap_frame *f = &profile->frames.items[frame];
	struct tickmap_text text = { 0 };
	enum tickmap_ink ink = tickmap_paint_kind(f->kind);
	/* Where there is room the name stands as it was published. */
	size_t path = part->paint.width ? python_path(profile, frame) : 0;
	char line[16];

	if (path)
		tickmap_text_add_clean(
			&text, tickmap_string(profile->strings, f->name, NULL),
			path - 1, false);
	else
		tickmap_text_add_name(&text, profile, frame, 0);
	if (path && tickmap_profile_needs_line(profile, frame)) {
		snprintf(line, sizeof(line), ":%" PRIu32, f->line);
		tickmap_text_add(&text, line, strlen(line));
	}
	if (f->inlined)
		tickmap_text_add(&text, " (inlined)", 10);
	tickmap_paint_on(&part->paint, ink);
	size_t written = tickmap_paint_cut(&part->paint, text.bytes.items,
					   text.bytes.count, columns);
	tickmap_paint_off(&part->paint, ink);
	tickmap_vec_free(&text.bytes);
	return written;
}

const char *tickmap_report_where(const struct tickmap_profile *profile,
				 uint32_t frame)
{
	const struct tickmap_frame *f = &profile->frames.items[frame];
	size_t path = python_path(profile, frame);
	const char *where = tickmap_string(profile->strings,
					   path	     ? f->name
					   : f->file ? f->file
						     : f->dso,
					   NULL) +
			    path;
	const char *end = where + strlen(where);

	/* "package/module.py": a name alone is too often __init__.py. */
	for (int slashes = 0; (path || f->file) && end > where; end--) {
		slashes += end[-1] == '/';
		if (slashes == 2)
			return end;
	}
	return where;
}

static int print_part(const struct tickmap_part *part)
{
	bool some = part->options->children && part->options->limit;
	struct tickmap_functions functions;
	bool *light = NULL;
	int status = tickmap_profile_functions(part->stacks, part->samples,
					       part->sample_count, &functions);

	if (status < 0)
		return status;
	if (some)
		light = tickmap_report_light(part, &functions);
	status = some && !light ? TICKMAP_E_NOMEM
				: tickmap_report_functions(part, &functions);
	tickmap_functions_free(&functions);
	if (status >= 0 && part->options->children)
		status = tickmap_report_tree(part, light);
	free(light);
	return status;
}

/* Samples of one process or thread are a run of `order`. */
struct group {
	size_t from, count;
};

struct groups {
	const struct tickmap_profile *profile;
	bool by_thread;
	uint32_t *order;      /* samples, by process or thread */
	struct group *groups; /* the largest first */
	size_t group_count;
};

static const struct tickmap_thread *thread_of(const struct groups *g,
					      uint32_t sample)
{
	const struct tickmap_profile *profile = g->profile;

	return &profile->threads.items[profile->samples.items[sample].thread];
}

static uint64_t group_key(const struct groups *g, uint32_t sample)
{
	const struct tickmap_thread *t = thread_of(g, sample);

	return (uint64_t)t->pid << 32 | (g->by_thread ? t->tid : 0);
}

static int compare_samples(const void *a, const void *b, void *context)
{
	const struct groups *g = context;
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
	uint64_t x = group_key(g, i), y = group_key(g, j);

	if (x != y)
		return x < y ? -1 : 1;
	return (i > j) - (i < j);
}

static int compare_groups(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	return (x->from > y->from) - (x->from < y->from);
}

static bool make_groups(struct groups *g)
{
	size_t count = g->profile->samples.count;

	g->order = calloc(count + 1, sizeof(*g->order));
	g->groups = calloc(count + 1, sizeof(*g->groups));
	if (!g->order || !g->groups)
		return false;
	for (size_t i = 0; i < count; i++)
		g->order[i] = (uint32_t)i;
	qsort_r(g->order, count, sizeof(*g->order), compare_samples, g);
	for (size_t i = 0; i < count; i++) {
		if (!i ||
		    group_key(g, g->order[i]) != group_key(g, g->order[i - 1]))
			g->groups[g->group_count++].from = i;
		g->groups[g->group_count - 1].count++;
	}
	qsort(g->groups, g->group_count, sizeof(*g->groups), compare_groups);
	return true;
}

/* A process is called what its first thread is, where that was sampled, and a
 * thread what it is called at its end. */
static const struct tickmap_thread *namesake(const struct tickmap_part *part,
					     const struct groups *g)
{
	const struct tickmap_thread *t =
		thread_of(g, part->samples[part->sample_count - 1]);

	for (size_t i = part->sample_count; !g->by_thread && i-- > 0;) {
		const struct tickmap_thread *other =
			thread_of(g, part->samples[i]);

		if (other->tid == other->pid)
			return other;
	}
	return t;
}

static void print_heading(const struct tickmap_part *part,
			  const struct groups *g)
{
	const struct tickmap_thread *t = namesake(part, g);
	FILE *out = part->paint.out;
	const char *comm =
		tickmap_string(part->profile->strings, t->comm, NULL);

	putc('\n', out);
	tickmap_paint_on(&part->paint, TICKMAP_INK_BOLD);
	if (g->by_thread)
		fprintf(out, "thread %" PRIu32 " of process %" PRIu32, t->tid,
			t->pid);
	else
		fprintf(out, "process %" PRIu32, t->pid);
	fputs("  ", out);
	tickmap_paint_wrapped(&part->paint, comm, 0, 0);
	tickmap_paint_off(&part->paint, TICKMAP_INK_BOLD);
	fprintf(out, "  %s, %s of all\n",
		tickmap_paint_counted(part->sample_count, "sample"),
		tickmap_paint_part(part->sample_count,
				   part->profile->samples.count));
}

static int print_groups(const struct tickmap_part *whole)
{
	const struct tickmap_report_options *options = whole->options;
	struct groups g = {
		.profile = whole->profile,
		.by_thread = options->by_thread,
	};
	int status = make_groups(&g) ? TICKMAP_OK : TICKMAP_E_NOMEM;
	size_t shown = g.group_count;

	if (options->limit && shown > options->limit)
		shown = options->limit;
	for (size_t i = 0; status >= 0 && i < shown; i++) {
		struct tickmap_part part = *whole;

		part.samples = g.order + g.groups[i].from;
		part.sample_count = g.groups[i].count;
		print_heading(&part, &g);
		status = print_part(&part);
	}
	if (status >= 0 && shown < g.group_count)
		fprintf(whole->paint.out,
			"\n%zu of %zu %s shown; --limit 0 shows all\n", shown,
			g.group_count, g.by_thread ? "threads" : "processes");
	free(g.order);
	free(g.groups);
	return status;
}

static bool has_code_maps(const struct tickmap_profile *profile)
{
	for (size_t i = 0; i < profile->frames.count; i++) {
		unsigned kind = profile->frames.items[i].kind;

		if (kind == TICKMAP_FRAME_PYTHON || kind == TICKMAP_FRAME_JIT)
			return true;
	}
	return false;
}

int tickmap_report_text(const struct tickmap_profile *profile,
			const struct tickmap_report_options *options, FILE *out)
{
	struct tickmap_profile view = { 0 };
	struct tickmap_part part = {
		.profile = profile,
		.stacks = options->interpreter_frames ? profile : &view,
		.options = options,
		.paint = { out, options->colour, options->width },
		.sample_count = profile->samples.count,
		.managed = has_code_maps(profile),
	};
	uint32_t *functions = tickmap_names_functions(profile);
	int status = functions ? TICKMAP_OK : TICKMAP_E_NOMEM;

	part.functions = functions;
	if (status >= 0 && !options->interpreter_frames)
		status = tickmap_folded_view(profile, &view);
	if (status >= 0) {
		tickmap_report_quality(&part.paint, profile);
		status = options->by_process || options->by_thread
				 ? print_groups(&part)
				 : print_part(&part);
	}
	tickmap_folded_free(&view);
	free(functions);
	if (status >= 0 && ferror(out))
		status = TICKMAP_E_OS;
	return status;
}

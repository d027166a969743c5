/* SPDX-License-Identifier: MIT */
/* The report's first block: may what follows be believed, and if not, what is
 * there to do? */
#include "output/names.h"
#include "output/report.h"
#include "unwind/unwind.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#define LABEL_WIDTH 14
#define HINTS_MAX 4

struct lines {
	const struct tickmap_paint *paint;
	const struct tickmap_profile *profile;
};

/* "  label         text"; text is wrapped below itself. */
static void line(const struct lines *l, const char *label, enum tickmap_ink ink,
		 const char *format, ...) __attribute__((format(printf, 4, 5)));

static void line(const struct lines *l, const char *label, enum tickmap_ink ink,
		 const char *format, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	tickmap_paint_on(l->paint, TICKMAP_INK_DIM);
	fprintf(l->paint->out, "  %-*s", LABEL_WIDTH, label);
	tickmap_paint_off(l->paint, TICKMAP_INK_DIM);
	tickmap_paint_on(l->paint, ink);
	tickmap_paint_wrapped(l->paint, text, LABEL_WIDTH + 2, LABEL_WIDTH + 2);
	tickmap_paint_off(l->paint, ink);
	putc('\n', l->paint->out);
}

static void samples(const struct lines *l)
{
	const struct tickmap_profile *p = l->profile;
	const char *event = tickmap_string(p->strings, p->event, NULL);
	char rate[48] = "", left_out[64] = "";

	if (p->frequency)
		snprintf(rate, sizeof(rate), " at %" PRIu64 " Hz",
			 p->frequency);
	if (p->filtered)
		snprintf(left_out, sizeof(left_out), "; %s left out",
			 tickmap_paint_count(p->filtered));
	line(l, "samples", TICKMAP_INK_BOLD, "%s%s%s%s%s%s",
	     tickmap_paint_count(p->samples.count), *event ? " of " : "", event,
	     rate, p->kernel_seen ? ", user and kernel" : ", user code only",
	     left_out);
	if (p->other_events)
		line(l, "", TICKMAP_INK_PLAIN,
		     "%s of events that measure no time left out",
		     tickmap_paint_counted(p->other_events, "sample"));
}

static void cpu_time(const struct lines *l)
{
	const struct tickmap_profile *p = l->profile;
	double wall = p->end_ns > p->start_ns
			      ? (double)(p->end_ns - p->start_ns) / 1e9
			      : 0;

	line(l, "CPU time", TICKMAP_INK_PLAIN,
	     "on CPU %.2f of %.2f s; waiting is not sampled", p->cpu_seconds,
	     wall);
}

static void lost(const struct lines *l)
{
	const struct tickmap_profile *p = l->profile;

	if (!p->lost)
		line(l, "lost", TICKMAP_INK_PLAIN, "none");
	else
		line(l, "lost", TICKMAP_INK_WARN,
		     "%s (%s): the machine was too busy; sample more slowly "
		     "(-F)",
		     tickmap_paint_count(p->lost),
		     tickmap_paint_part(p->lost, p->lost + p->samples.count));
	if (!p->finished)
		line(l, "unfinished", TICKMAP_INK_WARN,
		     "the recorder was killed: the end is missing");
}

/* What to do about stacks that end too early; NULL: nothing is known. */
static const char *remedy(unsigned end)
{
	switch (end) {
	case TICKMAP_END_STACK_SHORT:
		return "deeper than what is copied of it (64 KiB at most), "
		       "on a stack of its own, or not yet in memory";
	case TICKMAP_END_NO_RULE:
		return "build that code with frame pointers, or install its "
		       "debug symbols";
	case TICKMAP_END_NO_CODE:
		return "generated code has to publish how to unwind it";
	default:
		return NULL;
	}
}

static void truncated(const struct lines *l)
{
	const struct tickmap_profile *p = l->profile;

	if (!p->truncated) {
		line(l, "truncated", TICKMAP_INK_PLAIN, "none");
		return;
	}
	line(l, "truncated", TICKMAP_INK_WARN, "%s (%s) without %s start",
	     tickmap_paint_counted(p->truncated, "stack"),
	     tickmap_paint_part(p->truncated, p->samples.count),
	     p->truncated == 1 ? "its" : "their");
	for (unsigned i = 1; i <= TICKMAP_TRUNCATED_NOT_UNWOUND; i++) {
		const char *what = remedy(i);

		if (p->truncated_by[i])
			line(l, "", TICKMAP_INK_PLAIN, "%s %s%s%s",
			     tickmap_paint_count(p->truncated_by[i]),
			     tickmap_names_end_text(i), what ? ": " : "",
			     what ? what : "");
	}
}

static void jit(const struct lines *l)
{
	const struct tickmap_profile *p = l->profile;

	if (!p->jit_samples) {
		line(l, "JIT", TICKMAP_INK_PLAIN,
		     "no sample in generated code");
		return;
	}
	bool good = p->jit_resolved >= p->jit_samples - p->jit_samples / 100;

	line(l, "JIT", good ? TICKMAP_INK_GOOD : TICKMAP_INK_WARN,
	     "%s of %s resolved (%s); %s published",
	     tickmap_paint_count(p->jit_resolved),
	     tickmap_paint_counted(p->jit_samples, "sample"),
	     tickmap_paint_part(p->jit_resolved, p->jit_samples),
	     tickmap_paint_counted(p->code_loads, "function"));
	if (p->dumped_lines)
		line(l, "", TICKMAP_INK_PLAIN,
		     "%s of perf maps left out: a jitdump, which has times, "
		     "names these addresses",
		     tickmap_paint_counted(p->dumped_lines, "line"));
}

static const char *duration(double ns, char *out, size_t size)
{
	double size_of = fabs(ns);

	if (size_of < 1e3)
		snprintf(out, size, "%.0f ns", ns);
	else if (size_of < 1e6)
		snprintf(out, size, "%.1f us", ns / 1e3);
	else if (size_of < 1e9)
		snprintf(out, size, "%.1f ms", ns / 1e6);
	else
		snprintf(out, size, "%.3f s", ns / 1e9);
	return out;
}

static void clock(const struct lines *l)
{
	const struct tickmap_profile *p = l->profile;
	const char *method = p->clock.method;
	char offset[32], error[32];

	if (strcmp(method, "none") == 0 && *p->clock.code_maps)
		line(l, "clock", TICKMAP_INK_WARN,
		     "%s; code maps use another one (%s), of which only the "
		     "order is known; type `perf record -k 1`",
		     p->clock.domain, p->clock.code_maps);
	else if (strcmp(method, "none") == 0)
		line(l, "clock", TICKMAP_INK_PLAIN, "%s; %s", p->clock.domain,
		     p->code_loads ? "code maps without times"
				   : "no code maps to align");
	else if (strcmp(method, "same") == 0)
		line(l, "clock", TICKMAP_INK_PLAIN, "%s%s", p->clock.domain,
		     p->code_loads ? ", and code maps use it, too"
				   : "; no code maps to align");
	else
		line(l, "clock", TICKMAP_INK_PLAIN,
		     "%s; code maps (%s) moved by %s (error %s, by %s)",
		     p->clock.domain, p->clock.code_maps,
		     duration((double)p->clock.offset_ns, offset,
			      sizeof(offset)),
		     duration((double)p->clock.error_ns, error, sizeof(error)),
		     method);
	if (p->clock.violations)
		line(l, "", TICKMAP_INK_WARN,
		     "%s samples contradict this alignment",
		     tickmap_paint_count(p->clock.violations));
	if (p->early)
		line(l, "", TICKMAP_INK_PLAIN,
		     "%s ran just before the code was published",
		     tickmap_paint_counted(p->early, "frame"));
}

static void unresolved(const struct lines *l)
{
	const struct tickmap_profile *p = l->profile;
	uint64_t all = 0;

	for (unsigned i = 1; i < TICKMAP_UNRESOLVED_COUNT; i++)
		all += p->unresolved[i];
	if (!all) {
		line(l, "unresolved", TICKMAP_INK_PLAIN, "none");
		return;
	}
	line(l, "unresolved", TICKMAP_INK_PLAIN,
	     "%s without a name:", tickmap_paint_counted(all, "frame"));
	for (unsigned i = 1; i < TICKMAP_UNRESOLVED_COUNT; i++)
		if (p->unresolved[i])
			line(l, "", TICKMAP_INK_PLAIN, "%s %s (%s)",
			     tickmap_paint_count(p->unresolved[i]),
			     tickmap_unresolved_text(i),
			     tickmap_unresolved_word(i));
}

static void advice(const struct lines *l)
{
	const struct tickmap_profile *p = l->profile;

	for (size_t i = 0; i < p->findings.count; i++)
		line(l, i ? "" : "code maps", TICKMAP_INK_WARN, "%s",
		     tickmap_string(p->strings, p->findings.items[i], NULL));
	for (size_t i = 0; i < p->hints.count && i < HINTS_MAX; i++)
		line(l, i ? "" : "hint", TICKMAP_INK_BOLD, "%s",
		     tickmap_string(p->strings, p->hints.items[i], NULL));
	if (p->hints.count > HINTS_MAX)
		line(l, "", TICKMAP_INK_PLAIN, "%zu more hints in --json",
		     p->hints.count - HINTS_MAX);
}

void tickmap_report_quality(const struct tickmap_paint *paint,
			    const struct tickmap_profile *profile)
{
	struct lines l = { paint, profile };
	size_t length;
	const char *command =
		tickmap_string(profile->strings, profile->command, &length);

	if (length) {
		size_t width = paint->width ? paint->width : SIZE_MAX;

		tickmap_paint_on(paint, TICKMAP_INK_BOLD);
		if (tickmap_paint_columns(command, length) > width)
			tickmap_paint_wrapped(paint, command, 0, 4);
		else
			tickmap_paint_wrapped(paint, command, 0, 0);
		tickmap_paint_off(paint, TICKMAP_INK_BOLD);
		fputs("\n\n", paint->out);
	}
	samples(&l);
	cpu_time(&l);
	lost(&l);
	truncated(&l);
	jit(&l);
	clock(&l);
	unresolved(&l);
	advice(&l);
}

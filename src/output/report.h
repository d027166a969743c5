/* SPDX-License-Identifier: MIT */
/* The parts of the text report. */
#ifndef TICKMAP_OUTPUT_REPORT_H
#define TICKMAP_OUTPUT_REPORT_H

#include "output/output.h"
#include "output/paint.h"

/* What is reported at a time: all samples, or those of one process or
 * thread. */
struct tickmap_part {
	const struct tickmap_profile *profile; /* for names */
	const struct tickmap_profile *stacks;  /* perhaps a folded view */
	const struct tickmap_report_options *options;
	struct tickmap_paint paint;
	const uint32_t *samples;   /* indices, or NULL: all */
	size_t sample_count;	   /* also if all */
	const uint32_t *functions; /* by frame: one that stands for all */
	bool managed;		   /* code maps exist */
};

void tickmap_report_quality(const struct tickmap_paint *paint,
			    const struct tickmap_profile *profile);
/* Of the table of functions only what was printed remains. */
int tickmap_report_functions(const struct tickmap_part *part,
			     struct tickmap_functions *functions);
/*
 * By function (calloced; NULL: no memory): is it in so few samples that no call
 * of it is worth a line? Its callees then are not, either.
 */
bool *tickmap_report_light(const struct tickmap_part *part,
			   const struct tickmap_functions *functions);
/* `light` NULL: all calls are. */
int tickmap_report_tree(const struct tickmap_part *part, const bool *light);

/* "FUNCTIONS  what the columns mean ..." */
void tickmap_report_title(const struct tickmap_paint *paint, const char *title,
			  const char *text);
/* A name in its kind's ink, cut to `columns`; returns the columns. Of
 * "py::NAME:PATH" only the part before the path, which is where it is. */
size_t tickmap_report_name(const struct tickmap_part *part, uint32_t frame,
			   size_t columns);
/* Where a function is, shortly: its library, or the end of its source file's
 * path. */
const char *tickmap_report_where(const struct tickmap_profile *profile,
				 uint32_t frame);

#endif

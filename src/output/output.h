/* SPDX-License-Identifier: MIT */
/*
 * A profile in the forms that people and other tools read. Writers return 0 or
 * a negative status; a failed stream is TICKMAP_E_OS.
 */
#ifndef TICKMAP_OUTPUT_OUTPUT_H
#define TICKMAP_OUTPUT_OUTPUT_H

#include "base/error.h"
#include "profile/profile.h"

#include <stdbool.h>
#include <stdio.h>

struct tickmap_report_options {
	bool children;		 /* show total and the call tree (default on) */
	bool interpreter_frames; /* show what is folded otherwise */
	bool by_process, by_thread;
	size_t limit; /* rows a table; 0: all */
	bool colour;
	unsigned width; /* columns of the terminal; 0: unlimited */
};

int tickmap_report_text(const struct tickmap_profile *profile,
			const struct tickmap_report_options *options,
			FILE *out);
int tickmap_report_json(const struct tickmap_profile *profile,
			const struct tickmap_report_options *options,
			FILE *out);

struct tickmap_export_options {
	bool interpreter_frames; /* default on for folded */
	const char *title;
};

int tickmap_export_folded(const struct tickmap_profile *profile,
			  const struct tickmap_export_options *options,
			  FILE *out);
int tickmap_export_html(const struct tickmap_profile *profile,
			const struct tickmap_export_options *options,
			FILE *out);
int tickmap_export_perf_script(const struct tickmap_profile *profile,
			       const struct tickmap_export_options *options,
			       FILE *out);

/* The name as a text format shows it: `;` becomes `:`, control bytes `?`,
 * ":LINE" where needed, "_[k]" for kernel frames if `kernel_suffix`. */
void tickmap_output_frame_name(const struct tickmap_profile *profile,
			       uint32_t frame, bool kernel_suffix, FILE *out);

#endif

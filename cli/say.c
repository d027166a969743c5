/* SPDX-License-Identifier: MIT */
/* Talk to the person at the terminal. All of it goes to stderr. */
#include "cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

void tickmap_cli_say(const char *format, ...)
{
	va_list ap;

	fflush(stdout);
	fputs("tickmap: ", stderr);
	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	putc('\n', stderr);
}

int tickmap_cli_error(const struct tickmap_error *err, const char *next)
{
	char text[512];

	tickmap_cli_say("%s", tickmap_error_text(err, text, sizeof(text)));
	if (next)
		fprintf(stderr, "%s\n", next);
	switch (err->status) {
	case TICKMAP_E_NOMEM:
		return TICKMAP_EXIT_ENVIRONMENT;
	case TICKMAP_E_OS:
		return err->os_errno == ENOENT || err->os_errno == EISDIR ||
				       err->os_errno == ENOTDIR
			       ? TICKMAP_EXIT_INPUT
			       : TICKMAP_EXIT_ENVIRONMENT;
	default:
		return TICKMAP_EXIT_INPUT;
	}
}

void tickmap_cli_progress(void *context, uint64_t done, uint64_t all)
{
	struct tickmap_cli_progress *progress = context;
	unsigned percent = 0;

	if (all)
		percent = (unsigned)((double)done * 100.0 / (double)all);
	if (!progress->name || percent == progress->shown ||
	    !isatty(STDERR_FILENO))
		return;
	progress->shown = percent;
	fprintf(stderr, "\rreading %s: %u %%\033[K", progress->name, percent);
	fflush(stderr);
}

void tickmap_cli_progress_end(struct tickmap_cli_progress *progress)
{
	if (progress->shown)
		fputs("\r\033[K", stderr);
	progress->shown = 0;
}

/* SPDX-License-Identifier: MIT */
#include "farewell.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "functions.h"
#include "publish.h"

static pid_t asker; /* 0: nobody */
static struct stat target;

void tickmap_farewell_wanted(void)
{
	asker = fstat(STDERR_FILENO, &target) == 0 ? getpid() : 0;
}

/* A program may have closed its stderr and opened a file in its place. */
static int is_still_stderr(void)
{
	struct stat now;

	return fstat(STDERR_FILENO, &now) == 0 && now.st_dev == target.st_dev &&
	       now.st_ino == target.st_ino;
}

void tickmap_farewell(void)
{
	char folder[PATH_MAX];
	int error;

	if (asker == 0 || asker != getpid())
		return;
	asker = 0;
	tickmap_publish_lock();
	int status = tickmap_publish_status(&error);
	tickmap_publish_unlock();
	if (status == TICKMAP_EMIT_OK || !is_still_stderr())
		return;
	tickmap_publish_folder(folder, sizeof(folder));
	const char *reason = status == TICKMAP_EMIT_E_OS && error != 0
				     ? strerror(error)
				     : tickmap_emit_strerror(status);
	dprintf(STDERR_FILENO,
		"tickmap: %s: %s: only %zu functions were published\n", folder,
		reason, tickmap_function_count());
}

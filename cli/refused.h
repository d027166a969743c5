/* SPDX-License-Identifier: MIT */
/* Why the kernel refuses to sample, said so that one knows what to type. */
#ifndef TICKMAP_CLI_REFUSED_H
#define TICKMAP_CLI_REFUSED_H

#include "base/error.h"

#include <sys/types.h>

/* Says it and returns the exit code. pid: of a running process, else 0. */
int tickmap_refused(const struct tickmap_error *err, pid_t pid);

#endif

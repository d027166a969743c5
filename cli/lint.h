/* SPDX-License-Identifier: MIT */
/* What `lint` prints with, for the parts that find the code maps. */
#ifndef TICKMAP_CLI_LINT_H
#define TICKMAP_CLI_LINT_H

#include "codemap/codemap.h"

#include <stdbool.h>
#include <stdint.h>

struct tickmap_lint {
	bool json;
	const char *path; /* of the code map at hand, as it is printed */
	bool map;	  /* it is a perf map */
	uint64_t entries; /* functions in it */
	uint64_t by_severity[3];
	uint64_t errors_before; /* of the files before this one */
	uint64_t errors;	/* of all */
};

/* Takes findings; its context is a struct tickmap_lint. */
struct tickmap_code_handler tickmap_lint_handler(struct tickmap_lint *lint);

/* `dump` NULL: a perf map. One line of what was seen in the file. */
void tickmap_lint_sum(struct tickmap_lint *lint,
		      const struct tickmap_jitdump *dump);

/* The code maps that a recording carries, and those it names. Returns an exit
 * code; a failure has been said. */
int tickmap_lint_recording(struct tickmap_lint *lint, const char *path);

#endif

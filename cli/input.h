/* SPDX-License-Identifier: MIT */
/* The recording a command reads, and which of its samples: the part that
 * `report` and `export` have in common. */
#ifndef TICKMAP_CLI_INPUT_H
#define TICKMAP_CLI_INPUT_H

#include "args.h"
#include "base/vec.h"
#include "profile/profile.h"

/* Ids of the shared options; a command's own begin at INPUT_OWN. */
enum {
	INPUT_PID = 1,
	INPUT_TID,
	INPUT_TIME,
	INPUT_CODE_MAPS,
	INPUT_INLINE,
	INPUT_OWN,
};

/* clang-format off */
#define TICKMAP_INPUT_OPTIONS \
	{ INPUT_PID, "pid", 0, "PID", \
	  "only samples of this process (or of these: 12,34)", true }, \
	{ INPUT_TID, "tid", 0, "TID", \
	  "only samples of this thread (or of these)", true }, \
	{ INPUT_TIME, "time", 0, "FROM,TO", \
	  "only samples from FROM until TO: seconds of the recording's clock, " \
	  "+SECONDS after its start, or PERCENT% of its length", false }, \
	{ INPUT_CODE_MAPS, "code-maps", 0, "DIR", \
	  "where jitdumps and perf maps lie, if neither in the recording nor " \
	  "beside it", true }, \
	{ INPUT_INLINE, "inline", 0, NULL, \
	  "show functions that compilers inlined, too: reads DWARF", false }
/* clang-format on */

struct tickmap_moment {
	enum {
		MOMENT_OPEN,
		MOMENT_CLOCK, /* ns of the recording's clock */
		MOMENT_SINCE, /* ns after its start */
		MOMENT_SHARE, /* ns of each second of its length: 10 % is 1e8 */
	} kind;
	uint64_t ns;
};

struct tickmap_input {
	const char *file; /* as named, or the default */
	TICKMAP_VEC(uint32_t) pids;
	TICKMAP_VEC(uint32_t) tids;
	TICKMAP_VEC(const char *) code_map_dirs;
	struct tickmap_moment from, to;
	bool inlined;
	bool addresses; /* keep those of all frames */
};

/* Takes an option if it is a shared one. A bad value is said, and false comes
 * back; so it does for options that are not shared, without a word. */
bool tickmap_input_option(struct tickmap_input *input,
			  const struct tickmap_args *args, int id,
			  int *ret_exit);

/* Takes the operands: one FILE or none. Returns an exit code. */
int tickmap_input_operands(struct tickmap_input *input,
			   const struct tickmap_args *args);

/*
 * Reads the recording. Returns an exit code; everything but
 * TICKMAP_EXIT_DONE has been said. A profile without samples is not an error
 * here.
 */
int tickmap_input_load(const struct tickmap_input *input,
		       struct tickmap_profile **ret_profile);

/* Says why there is nothing to show. Returns TICKMAP_EXIT_FINDINGS. */
int tickmap_input_empty(const struct tickmap_input *input,
			const struct tickmap_profile *profile);

void tickmap_input_free(struct tickmap_input *input);

#endif

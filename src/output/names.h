/* SPDX-License-Identifier: MIT */
/* What frames are called in text, and which frames are one function. */
#ifndef TICKMAP_OUTPUT_NAMES_H
#define TICKMAP_OUTPUT_NAMES_H

#include "base/vec.h"
#include "profile/profile.h"

struct tickmap_text {
	TICKMAP_VEC(char) bytes;
	bool failed; /* out of memory */
};

void tickmap_text_add(struct tickmap_text *text, const char *bytes,
		      size_t length);
/* The bytes with `;` as `:` if `folded`, control bytes always as `?`. */
void tickmap_text_add_clean(struct tickmap_text *text, const char *bytes,
			    size_t length, bool folded);

enum {
	TICKMAP_NAME_KERNEL_SUFFIX = 1, /* "_[k]" */
	TICKMAP_NAME_FOLDED = 2,	/* no `;` */
};
/* As tickmap_output_frame_name, behind what is in `text`. */
void tickmap_text_add_name(struct tickmap_text *text,
			   const struct tickmap_profile *profile,
			   uint32_t frame, unsigned flags);

/* By frame: the id, in `strings`, of its folded name. calloced, or NULL. */
tickmap_str *tickmap_names_folded(const struct tickmap_profile *profile,
				  struct tickmap_strings *strings);

/* By frame: the first frame that shares its name, dso, file and line. calloced,
 * or NULL. */
uint32_t *tickmap_names_functions(const struct tickmap_profile *profile);

/* A stable word for JSON: "stack-short". */
const char *tickmap_names_end_word(unsigned end);

/* The same for a person. */
const char *tickmap_names_end_text(unsigned end);

#endif

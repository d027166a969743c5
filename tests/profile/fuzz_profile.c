/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a recording: the whole way to the table of functions.
 *
 * Seeds: all.data holds every kind of record and note, written record by record
 * as in recording.h; the others are inputs that once failed.
 */
#include "profile/profile.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What the outputs rely on. */
static void check(const struct tickmap_profile *p)
{
	struct tickmap_functions functions;

	for (size_t n = 1; n < p->nodes.count; n++)
		if (p->nodes.items[n].parent >= n ||
		    p->nodes.items[n].frame >= p->frames.count)
			abort();
	for (size_t i = 0; i < p->samples.count; i++) {
		const struct tickmap_profile_sample *s = &p->samples.items[i];
		if (!s->node || s->node >= p->nodes.count ||
		    s->thread >= p->threads.count ||
		    (i && s[-1].time_ns > s->time_ns))
			abort();
	}
	for (size_t i = 0; i < p->frames.count; i++)
		if (!p->frames.items[i].name)
			abort();
	if (p->jit_resolved > p->jit_samples ||
	    p->jit_samples > p->samples.count ||
	    tickmap_profile_functions(p, NULL, 0, &functions))
		abort();
	uint64_t self = 0;
	for (size_t i = 0; i < functions.count; i++)
		self += functions.rows[i].self;
	if (self != p->samples.count)
		abort();
	tickmap_functions_free(&functions);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tickmap_profile *profile = NULL;
	char path[64];
	int fd = memfd_create("recording", MFD_CLOEXEC);

	if (fd < 0)
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if ((!size || write(fd, data, size) == (ssize_t)size) &&
	    !tickmap_profile_load(path, NULL, &profile, NULL)) {
		check(profile);
		tickmap_profile_free(profile);
	}
	close(fd);
	return 0;
}

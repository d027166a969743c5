/* SPDX-License-Identifier: MIT */
/* The feature sections that describe a recording, for the writer. */
#ifndef TICKMAP_CAPTURE_PERFDATA_FEATURES_H
#define TICKMAP_CAPTURE_PERFDATA_FEATURES_H

#include "base/vec.h"
#include "capture/perfdata.h"
#include "capture/perfdata_format.h"

struct tickmap_perfdata_features_input {
	const struct perf_event_attr *attr;
	const char *event_name;
	const struct tickmap_perfdata_facts *facts; /* may be NULL */
	uint64_t wall_ns, clock_ns;		    /* read together */
	uint32_t zstd_level;			    /* 0: not compressed */
	uint32_t zstd_ratio;
	uint32_t decompressed_max; /* of one COMPRESSED record */
};

struct tickmap_perfdata_features {
	uint64_t bits[PERFDATA_FEATURE_WORDS];
	TICKMAP_VEC(uint8_t) bytes; /* table and sections */
};

/* Lays the table and the sections out as they stand at `offset` of the file.
 * Free bytes with tickmap_vec_free, also on failure. */
int tickmap_perfdata_features_make(
	const struct tickmap_perfdata_features_input *input, uint64_t offset,
	struct tickmap_perfdata_features *ret_features);

#endif

/* SPDX-License-Identifier: MIT */
/* What the reader's files share: the file as such, its attrs and features. */
#ifndef TICKMAP_CAPTURE_PERFDATA_INTERNAL_H
#define TICKMAP_CAPTURE_PERFDATA_INTERNAL_H

#include "base/table.h"
#include "base/vec.h"
#include "capture/perfdata.h"
#include "capture/perfdata_format.h"

#include <zstd.h>

enum { PERFDATA_TEXT_FEATURES = 16 }; /* all texts have lower numbers */

struct perfdata_section {
	uint64_t offset, size;
};

struct perfdata_build_id {
	char *path;
	uint8_t id[20];
	size_t size;
};

struct tickmap_perfdata {
	int fd;
	char *path;
	bool swap;
	bool finished;	/* the header says where the data end... */
	bool cut_short; /* ...but the file ends before */
	uint64_t file_size;
	uint64_t attr_entry_size;
	struct perfdata_section attrs_section, data;
	uint64_t feature_bits[PERFDATA_FEATURE_WORDS];

	TICKMAP_VEC(struct tickmap_perfdata_attr) attrs;
	struct tickmap_table attr_of_id; /* index + 1; empty for one attr */
	/* Where a sample has its id, from its start; others from their end.
	 * 0: nowhere. */
	size_t id_at, id_from_end;

	char *texts[PERFDATA_TEXT_FEATURES];
	TICKMAP_VEC(struct perfdata_build_id) build_ids;
	struct tickmap_table build_id_of_path; /* hash of path: index + 1 */

	/* Reading: records from the file through a window... */
	uint64_t at;
	uint64_t window_at;
	size_t window_used;
	uint8_t *window;
	/* ...and from the COMPRESSED record that was read last. */
	ZSTD_DCtx *zstd;
	ZSTD_inBuffer packed;
	uint64_t packed_offset;
	bool packed_more; /* zstd holds bytes for which there was no room */
	uint8_t *packed_bytes, *unpacked;
	size_t unpacked_start, unpacked_end;
	int stopped; /* status of a failed _next, for good */
	struct tickmap_error failure;
};

/* Up to `size` bytes at `offset`; fewer only at the file's end. Borrowed until
 * the next call. Negative on failure. */
int tickmap_perfdata_view(struct tickmap_perfdata *d, uint64_t offset,
			  size_t size, const uint8_t **ret_bytes,
			  size_t *ret_size, struct tickmap_error *err);
enum { PERFDATA_VIEW_MAX = 65536 };

int tickmap_perfdata_read_attrs(struct tickmap_perfdata *d,
				struct tickmap_error *err);

/* Features that cannot be read are as if they were not there. */
void tickmap_perfdata_read_features(struct tickmap_perfdata *d);

#endif

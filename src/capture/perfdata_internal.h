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

/* A file of records: perf.data itself, or one of the data.N in a directory. */
struct perfdata_stream {
	int fd;
	char *path;
	uint64_t file_size;
	struct perfdata_section data;
	bool open_ended; /* the writer did not come to say where they end */
	bool cut_short;	 /* it did, but the file ends before */
};

struct tickmap_perfdata {
	char *path; /* as given */
	bool swap;
	bool pipe;     /* no header: attrs and features are records */
	bool finished; /* the header says where the data end */
	uint64_t attr_entry_size;
	struct perfdata_section attrs_section;
	uint64_t feature_bits[PERFDATA_FEATURE_WORDS];
	TICKMAP_VEC(struct perfdata_stream) streams; /* the first: header */

	TICKMAP_VEC(struct tickmap_perfdata_attr) attrs;
	struct tickmap_table attr_of_id; /* index + 1; empty for one attr */
	size_t id_count;
	/* Where a sample has its id, from its start; others from their end.
	 * 0: nowhere. */
	size_t id_at, id_from_end;

	char *texts[PERFDATA_TEXT_FEATURES];
	struct tickmap_perfdata_clock clock;
	bool has_clock;
	TICKMAP_VEC(struct perfdata_build_id) build_ids;
	struct tickmap_table build_id_of_path; /* hash of path: index + 1 */

	/* Reading: records from a file through a window... */
	struct perfdata_stream *stream;
	uint64_t at;
	bool lost_sync; /* what is at `at` may be no record's start */
	/* Where the last record begins whose size may be wrong; 0: none. */
	uint64_t doubtful;
	uint64_t read_again; /* bytes of such records */
	uint64_t counted;    /* up to here bytes were records, or skipped */
	uint64_t window_at;
	size_t window_used;
	uint8_t *window;
	/* ...and from the COMPRESSED record that was read last. */
	ZSTD_DCtx *zstd;
	ZSTD_inBuffer packed;
	uint64_t packed_offset;
	bool packed_more;   /* zstd holds bytes for which there was no room */
	bool packed_broken; /* until another zstd frame begins */
	bool unpacked_lost_sync;
	uint8_t *packed_bytes, *unpacked;
	size_t unpacked_start, unpacked_end;
	bool done;
	/* The first of what could not be read, told behind all the rest. */
	struct tickmap_error failure;
	uint64_t skipped;
};

/* Up to `size` bytes at `offset`; fewer only at the file's end. Borrowed until
 * the next call. Negative on failure. */
int tickmap_perfdata_view(struct tickmap_perfdata *d, uint64_t offset,
			  size_t size, const uint8_t **ret_bytes,
			  size_t *ret_size, struct tickmap_error *err);
enum { PERFDATA_VIEW_MAX = 65536, PERFDATA_RECORD_HEADER = 8 };

/* Of the file `stream`, from its beginning. */
void tickmap_perfdata_enter(struct tickmap_perfdata *d, size_t stream);

/* Reading goes on: the first failure is kept, with the file it is of. */
void tickmap_perfdata_note(struct tickmap_perfdata *d,
			   enum tickmap_status status, uint64_t offset,
			   const char *what);

int tickmap_perfdata_read_attrs(struct tickmap_perfdata *d,
				struct tickmap_error *err);
/* An attr and its ids, `size` bytes of it the attr's. */
int tickmap_perfdata_add_attr(struct tickmap_perfdata *d,
			      struct tickmap_bytes *b, size_t size,
			      struct tickmap_error *err);
/* All attrs are known. */
void tickmap_perfdata_attrs_end(struct tickmap_perfdata *d);
void tickmap_perfdata_name_attr(struct tickmap_perfdata_attr *attr,
				const char *name);

/* A file in pipe mode: looks through it for what a header would tell. */
int tickmap_perfdata_read_pipe(struct tickmap_perfdata *d,
			       struct tickmap_error *err);

struct perf_event_header
tickmap_perfdata_header(const struct tickmap_perfdata *d, const uint8_t *bytes);
/*
 * 1: a record of the file, at d->at; 0: the end of this file; negative: no
 * memory or a failing disk. COMPRESSED ones come out as they are. Damage is
 * noted and stepped over.
 */
int tickmap_perfdata_next_in_file(struct tickmap_perfdata *d,
				  const uint8_t **ret_bytes,
				  struct perf_event_header *ret_header,
				  struct tickmap_error *err);
/* Moves on behind the record and the bytes that follow some. */
void tickmap_perfdata_step_over(struct tickmap_perfdata *d,
				const struct perf_event_header *header,
				const uint8_t *bytes);

/* No record begins so. */
bool tickmap_perfdata_is_damage(const struct perf_event_header *header);
/* Where in these bytes records begin again; `size`: nowhere. `whole`: nothing
 * follows them. */
size_t tickmap_perfdata_resync(const struct tickmap_perfdata *d,
			       const uint8_t *bytes, size_t size, bool whole);

/* Keeps the payload of the COMPRESSED record at d->at, to be unfolded. */
int tickmap_perfdata_begin_unpacking(struct tickmap_perfdata *d,
				     const struct perf_event_header *header,
				     const uint8_t *bytes,
				     struct tickmap_error *err);
/* 1: *ret_bytes is a whole record; 0: the compressed record has no more. */
int tickmap_perfdata_next_unpacked(struct tickmap_perfdata *d,
				   const uint8_t **ret_bytes,
				   struct perf_event_header *ret_header);
/* Another file, another zstd stream. */
void tickmap_perfdata_end_unpacking(struct tickmap_perfdata *d);

/* One feature's content. */
void tickmap_perfdata_read_feature(struct tickmap_perfdata *d, unsigned bit,
				   struct tickmap_bytes *b);
/* The body of a BUILD_ID record. */
void tickmap_perfdata_read_build_id(struct tickmap_perfdata *d, uint16_t misc,
				    struct tickmap_bytes *body);

/* Features that cannot be read are as if they were not there. */
void tickmap_perfdata_read_features(struct tickmap_perfdata *d);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * One zstd frame for the whole file, flushed at every round and so often in
 * between that what lies between two flushes fits one COMPRESSED record, even
 * if it cannot be compressed: perf takes a record that unfolds to nothing,
 * being half a block or the frame's end, for damage. For the same reason the
 * frame is never ended.
 */
#include "capture/perfdata.h"
#include "capture/perfdata_features.h"
#include "capture/perfdata_format.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zstd.h>

enum {
	RECORD_MAX = 65528,
	FLUSH_AFTER = 60000,	/* bytes, of which zstd makes at most... */
	COMPRESSED_MAX = 65000, /* a COMPRESSED record's payload */
	DECOMPRESSED_MAX = 128 * 1024, /* perf's buffer for a record */
	OUT_SIZE = 128 * 1024,
	/* 256 KiB of history: stacks repeat soon, and more would cost the
	 * recorder and every reader more memory than it saves. */
	WINDOW_LOG = 18,
	LEVEL_MAX = 9, /* above, zstd alone takes tens of megabytes */
	ATTR_SIZE = PERF_ATTR_SIZE_VER7, /* perf before 6.13 refuses more */
	DATA_OFFSET = PERFDATA_HEADER_SIZE + ATTR_SIZE + PERFDATA_SECTION_SIZE,
};

_Static_assert(ZSTD_COMPRESSBOUND(FLUSH_AFTER) + 32 < COMPRESSED_MAX,
	       "a flush must fit one record");

struct tickmap_perfdata_writer {
	int fd;
	struct tickmap_error failure; /* the first; what follows repeats it */
	struct perf_event_attr attr;
	char *path, *event_name;
	int level;
	ZSTD_CCtx *zstd;
	uint64_t raw_bytes; /* of all records, uncompressed */
	uint64_t wall_ns, clock_ns;
	uint64_t written; /* bytes that the kernel has */
	size_t unflushed; /* bytes put into zstd since its last flush */
	size_t payload_used;
	size_t out_used;
	uint8_t payload[COMPRESSED_MAX];
	uint8_t out[OUT_SIZE];
};

static int latch(struct tickmap_perfdata_writer *w, int status)
{
	w->failure.status = status;
	tickmap_error_source(&w->failure, w->path);
	return status;
}

static int report(const struct tickmap_perfdata_writer *w,
		  struct tickmap_error *err)
{
	if (err && w->failure.status)
		*err = w->failure;
	return w->failure.status;
}

static int write_all(struct tickmap_perfdata_writer *w, const void *bytes,
		     size_t size, uint64_t at)
{
	const uint8_t *from = bytes;

	while (size) {
		ssize_t n = pwrite(w->fd, from, size, (off_t)at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return latch(w, tickmap_fail_os(&w->failure,
							n ? errno : ENOSPC,
							"cannot write"));
		from += n;
		at += (uint64_t)n;
		size -= (size_t)n;
	}
	return TICKMAP_OK;
}

static int hand_to_kernel(struct tickmap_perfdata_writer *w)
{
	int status = write_all(w, w->out, w->out_used, w->written);

	if (!status)
		w->written += w->out_used;
	w->out_used = 0;
	return status;
}

static int put(struct tickmap_perfdata_writer *w, const void *bytes,
	       size_t size)
{
	if (size > sizeof(w->out) - w->out_used && hand_to_kernel(w))
		return w->failure.status;
	memcpy(w->out + w->out_used, bytes, size);
	w->out_used += size;
	return TICKMAP_OK;
}

/* The compressed bytes so far become a record. */
static int put_payload(struct tickmap_perfdata_writer *w)
{
	struct perf_event_header header = {
		.type = PERFDATA_RECORD_COMPRESSED,
		.size = (uint16_t)(sizeof(header) + w->payload_used),
	};

	if (!w->payload_used)
		return TICKMAP_OK;
	if (put(w, &header, sizeof(header)) ||
	    put(w, w->payload, w->payload_used))
		return w->failure.status;
	w->payload_used = 0;
	return TICKMAP_OK;
}

static int compress(struct tickmap_perfdata_writer *w, const void *bytes,
		    size_t size, ZSTD_EndDirective directive)
{
	ZSTD_inBuffer in = { bytes, size, 0 };
	size_t left;

	do {
		ZSTD_outBuffer out = { w->payload, sizeof(w->payload),
				       w->payload_used };
		left = ZSTD_compressStream2(w->zstd, &out, &in, directive);
		if (ZSTD_isError(left) || out.pos == out.size)
			return latch(w,
				     tickmap_fail(&w->failure, TICKMAP_E_NOMEM,
						  0, "cannot compress"));
		w->payload_used = out.pos;
	} while (directive == ZSTD_e_continue ? in.pos < in.size : left);
	return TICKMAP_OK;
}

static int flush(struct tickmap_perfdata_writer *w)
{
	if (!w->unflushed)
		return TICKMAP_OK;
	w->unflushed = 0;
	if (compress(w, NULL, 0, ZSTD_e_flush))
		return w->failure.status;
	return put_payload(w);
}

static int append(struct tickmap_perfdata_writer *w, const uint8_t *bytes,
		  size_t size)
{
	w->raw_bytes += size;
	if (!w->zstd)
		return put(w, bytes, size);
	while (size && !w->failure.status) {
		size_t piece = FLUSH_AFTER - w->unflushed;
		if (piece > size)
			piece = size;
		if (compress(w, bytes, piece, ZSTD_e_continue))
			break;
		bytes += piece;
		size -= piece;
		w->unflushed += piece;
		if (w->unflushed == FLUSH_AFTER)
			flush(w);
	}
	return w->failure.status;
}

/* ---- Notes ---- */

static uint8_t *le32(uint8_t *out, uint32_t v)
{
	for (unsigned i = 0; i < 4; i++)
		*out++ = (uint8_t)(v >> 8 * i);
	return out;
}

static uint8_t *le64(uint8_t *out, uint64_t v)
{
	return le32(le32(out, (uint32_t)v), (uint32_t)(v >> 32));
}

static int append_note(struct tickmap_perfdata_writer *w,
		       const struct tickmap_note *note, const uint8_t *bytes,
		       size_t size)
{
	/*
	 * struct perf_record_header_event_type was 80 bytes: newer perfs say
	 * that a shorter record of this type is skipped.
	 */
	enum { EVENT_TYPE_BYTES = 80 };
	uint8_t record[RECORD_MAX];
	size_t padded = (size + 7) & ~(size_t)7;
	const size_t least = EVENT_TYPE_BYTES -
			     sizeof(struct perf_event_header) -
			     PERFDATA_NOTE_FIXED;

	if (padded < least)
		padded = least;
	struct perf_event_header header = {
		.type = TICKMAP_RECORD_NOTE,
		.size = (uint16_t)(sizeof(header) + PERFDATA_NOTE_FIXED +
				   padded),
	};
	uint8_t *at = record + sizeof(header);

	memcpy(record, &header, sizeof(header));
	at = le32(at, TICKMAP_NOTE_MAGIC);
	at = le32(at, (uint32_t)note->kind);
	at = le32(at, note->pid);
	at = le32(at, note->file_id);
	at = le64(at, note->time_ns);
	at = le64(at, note->value);
	at = le32(at, (uint32_t)size);
	at = le32(at, 0);
	if (size)
		memcpy(at, bytes, size);
	memset(at + size, 0, padded - size);
	return append(w, record, header.size);
}

int tickmap_perfdata_write_note(struct tickmap_perfdata_writer *w,
				const struct tickmap_note *note,
				struct tickmap_error *err)
{
	bool chunks = note->kind == TICKMAP_NOTE_JITDUMP ||
		      note->kind == TICKMAP_NOTE_PERF_MAP;
	size_t at = 0;

	if (note->size > TICKMAP_NOTE_BYTES_MAX && !chunks)
		return tickmap_fail(err, TICKMAP_E_LIMIT, 0,
				    "note is larger than a record");
	while (!w->failure.status) {
		size_t size = note->size - at;
		if (size > TICKMAP_NOTE_BYTES_MAX)
			size = TICKMAP_NOTE_BYTES_MAX;
		append_note(w, note, note->bytes ? note->bytes + at : NULL,
			    size);
		at += size;
		if (at == note->size)
			break;
	}
	return report(w, err);
}

/* ---- Records ---- */

int tickmap_perfdata_write(struct tickmap_perfdata_writer *w,
			   const void *record, size_t size,
			   struct tickmap_error *err)
{
	if (size < sizeof(struct perf_event_header) || size > RECORD_MAX ||
	    size % 8)
		return tickmap_fail(err, TICKMAP_E_LIMIT, 0,
				    "record size does not fit perf.data");
	if (!w->failure.status)
		append(w, record, size);
	return report(w, err);
}

int tickmap_perfdata_round(struct tickmap_perfdata_writer *w,
			   struct tickmap_error *err)
{
	const struct perf_event_header round = {
		.type = PERFDATA_RECORD_FINISHED_ROUND,
		.size = sizeof(round),
	};

	if (!w->failure.status && !flush(w) && !put(w, &round, sizeof(round)))
		hand_to_kernel(w);
	return report(w, err);
}

uint64_t tickmap_perfdata_bytes(const struct tickmap_perfdata_writer *w)
{
	return w->written + w->out_used + w->payload_used;
}

/* ---- Beginning and end ---- */

/* data_size 0 says "unfinished"; features NULL: none. */
static void fill_header(uint64_t header[PERFDATA_HEADER_SIZE / 8],
			uint64_t data_size, const uint64_t *features)
{
	memset(header, 0, PERFDATA_HEADER_SIZE);
	header[0] = PERFDATA_MAGIC;
	header[1] = PERFDATA_HEADER_SIZE;
	header[2] = ATTR_SIZE + PERFDATA_SECTION_SIZE;
	header[3] = PERFDATA_HEADER_SIZE; /* attrs */
	header[4] = ATTR_SIZE + PERFDATA_SECTION_SIZE;
	header[5] = DATA_OFFSET;
	header[6] = data_size;
	if (features)
		memcpy(header + 9, features, PERFDATA_FEATURE_BITS / 8);
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now = { 0 };

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int begin_file(struct tickmap_perfdata_writer *w)
{
	uint64_t header[PERFDATA_HEADER_SIZE / 8];
	const uint64_t ids[2] = { 0 }; /* one event needs none */

	fill_header(header, 0, NULL);
	if (put(w, header, sizeof(header)) || put(w, &w->attr, ATTR_SIZE) ||
	    put(w, ids, sizeof(ids)))
		return w->failure.status;
	w->clock_ns = clock_ns(w->attr.use_clockid ? w->attr.clockid
						   : CLOCK_MONOTONIC);
	w->wall_ns = clock_ns(CLOCK_REALTIME);
	return hand_to_kernel(w);
}

static int begin_zstd(struct tickmap_perfdata_writer *w)
{
	if (!w->level)
		return TICKMAP_OK;
	w->zstd = ZSTD_createCCtx();
	if (!w->zstd ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(
		    w->zstd, ZSTD_c_compressionLevel, w->level)) ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(w->zstd, ZSTD_c_windowLog,
						WINDOW_LOG)))
		return tickmap_fail(&w->failure, TICKMAP_E_NOMEM, 0,
				    "cannot prepare compression");
	return TICKMAP_OK;
}

static void discard(struct tickmap_perfdata_writer *w)
{
	if (w->fd >= 0)
		close(w->fd);
	ZSTD_freeCCtx(w->zstd);
	free(w->path);
	free(w->event_name);
	free(w);
}

/* Known fields only, in the size that every perf reads. */
static void take_attr(struct perf_event_attr *attr,
		      const struct perf_event_attr *from)
{
	size_t size =
		from->size && from->size < ATTR_SIZE ? from->size : ATTR_SIZE;

	memset(attr, 0, sizeof(*attr));
	memcpy(attr, from, size);
	attr->size = ATTR_SIZE;
}

int tickmap_perfdata_create(const char *path,
			    const struct tickmap_perfdata_event *event,
			    int zstd_level,
			    struct tickmap_perfdata_writer **ret_writer,
			    struct tickmap_error *err)
{
	struct tickmap_perfdata_writer *w = calloc(1, sizeof(*w));

	if (!w)
		return tickmap_fail(err, TICKMAP_E_NOMEM, 0, "out of memory");
	w->path = strdup(path);
	w->event_name = strdup(event->name);
	w->fd = -1;
	w->level = zstd_level < 0	    ? 0
		   : zstd_level > LEVEL_MAX ? LEVEL_MAX
					    : zstd_level;
	take_attr(&w->attr, event->attr);
	int status = begin_zstd(w);
	if (!status && (!w->path || !w->event_name))
		status = tickmap_fail(&w->failure, TICKMAP_E_NOMEM, 0,
				      "out of memory");
	if (!status) {
		w->fd = open(path,
			     O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW |
				     O_CLOEXEC,
			     0600);
		status = w->fd < 0 ? tickmap_fail_os(&w->failure, errno,
						     "cannot create")
				   : begin_file(w);
	}
	if (status) {
		tickmap_error_source(&w->failure, path);
		report(w, err);
		discard(w);
		return status;
	}
	*ret_writer = w;
	return TICKMAP_OK;
}

static int finish_file(struct tickmap_perfdata_writer *w,
		       const struct tickmap_perfdata_facts *facts)
{
	struct tickmap_perfdata_features features = { 0 };
	uint64_t header[PERFDATA_HEADER_SIZE / 8];
	int status = flush(w);

	if (status || hand_to_kernel(w))
		return w->failure.status;

	uint64_t data_size = w->written - DATA_OFFSET;
	struct tickmap_perfdata_features_input input = {
		.attr = &w->attr,
		.event_name = w->event_name,
		.facts = facts,
		.wall_ns = w->wall_ns,
		.clock_ns = w->clock_ns,
		.zstd_level = (uint32_t)w->level,
		.zstd_ratio =
			(uint32_t)(data_size ? w->raw_bytes / data_size : 0),
		.decompressed_max = DECOMPRESSED_MAX,
	};
	status = tickmap_perfdata_features_make(&input, w->written, &features);
	if (status)
		latch(w, tickmap_fail(&w->failure, TICKMAP_E_NOMEM, 0,
				      "out of memory"));
	/* The header last: until then the file is a readable unfinished one. */
	fill_header(header, data_size, features.bits);
	if (!status)
		status = write_all(w, features.bytes.items,
				   features.bytes.count, w->written);
	if (!status)
		status = write_all(w, header, sizeof(header), 0);
	tickmap_vec_free(&features.bytes);
	return status;
}

int tickmap_perfdata_finish(struct tickmap_perfdata_writer *w,
			    const struct tickmap_perfdata_facts *facts,
			    struct tickmap_error *err)
{
	int status = w->failure.status;

	if (!status)
		status = finish_file(w, facts);
	if (close(w->fd) && !status)
		status = latch(
			w, tickmap_fail_os(&w->failure, errno, "cannot close"));
	w->fd = -1;
	report(w, err);
	discard(w);
	return status;
}

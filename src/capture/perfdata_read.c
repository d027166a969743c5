/* SPDX-License-Identifier: MIT */
/*
 * Records in the order of the file. Two sources, one of which holds a record at
 * a time: the file itself, seen through a window that moves on, and what a
 * COMPRESSED record unfolds to, which is unfolded by and by, so that neither a
 * large file nor a small one that claims to be large takes memory.
 */
#include "capture/perfdata_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	HEADER_SIZE_V1 = 72, /* without features */
	RECORD_HEADER = 8,
	WINDOW_SIZE = 256 * 1024,
	PACKED_MAX = 65536,
	UNPACKED_SIZE = 256 * 1024,
};

/* ---- The file ---- */

int tickmap_perfdata_view(struct tickmap_perfdata *d, uint64_t offset,
			  size_t size, const uint8_t **ret_bytes,
			  size_t *ret_size, struct tickmap_error *err)
{
	uint64_t skip = offset - d->window_at;

	if (offset < d->window_at || skip > d->window_used ||
	    size > d->window_used - skip) {
		d->window_at = offset;
		d->window_used = 0;
		skip = 0;
		while (d->window_used < WINDOW_SIZE) {
			ssize_t n = pread(d->fd, d->window + d->window_used,
					  WINDOW_SIZE - d->window_used,
					  (off_t)(offset + d->window_used));
			if (n < 0 && errno == EINTR)
				continue;
			if (n < 0)
				return tickmap_fail_os(err, errno,
						       "cannot read");
			if (n == 0)
				break;
			d->window_used += (size_t)n;
		}
	}
	*ret_bytes = d->window + skip;
	*ret_size = d->window_used - (size_t)skip;
	if (*ret_size > size)
		*ret_size = size;
	return TICKMAP_OK;
}

static int read_header(struct tickmap_perfdata *d, struct tickmap_error *err)
{
	const uint8_t *bytes;
	size_t size;
	int status = tickmap_perfdata_view(d, 0, PERFDATA_HEADER_SIZE, &bytes,
					   &size, err);

	if (status)
		return status;
	struct tickmap_bytes b = tickmap_bytes_of(bytes, size);
	/* The magic is a text; the number that it makes tells the order. */
	uint64_t magic = tickmap_u64(&b);
	if (magic != PERFDATA_MAGIC &&
	    magic != __builtin_bswap64(PERFDATA_MAGIC))
		return tickmap_fail(err, TICKMAP_E_FORMAT, 0,
				    b.failed ? "file is too short for perf.data"
				    : !memcmp(bytes, "PERFFILE", 8)
					    ? "perf.data of version 1"
					    : "not a perf.data file");
	b.swap = magic != PERFDATA_MAGIC;
	d->swap = b.swap;
	uint64_t header_size = tickmap_u64(&b);
	if (!b.failed && header_size == PERFDATA_PIPE_HEADER_SIZE)
		return tickmap_fail(err, TICKMAP_E_UNSUPPORTED, 0,
				    "perf.data in pipe mode cannot be read; "
				    "record it with -o FILE");
	d->attr_entry_size = tickmap_u64(&b);
	d->attrs_section.offset = tickmap_u64(&b);
	d->attrs_section.size = tickmap_u64(&b);
	d->data.offset = tickmap_u64(&b);
	d->data.size = tickmap_u64(&b);
	tickmap_take(&b, PERFDATA_SECTION_SIZE); /* event types, unused */
	if (b.failed || header_size < HEADER_SIZE_V1)
		return tickmap_fail(err, TICKMAP_E_TRUNCATED, size,
				    "file ends inside its header");
	for (unsigned i = 0; i < PERFDATA_FEATURE_WORDS; i++)
		d->feature_bits[i] = header_size >= PERFDATA_HEADER_SIZE
					     ? tickmap_u64(&b)
					     : 0;
	return TICKMAP_OK;
}

static int check_data(struct tickmap_perfdata *d, struct tickmap_error *err)
{
	if (d->attrs_section.offset > d->file_size)
		return tickmap_fail(err, TICKMAP_E_TRUNCATED,
				    d->attrs_section.offset,
				    "file ends before its events");
	if (d->data.offset > d->file_size)
		return tickmap_fail(err, TICKMAP_E_TRUNCATED, d->data.offset,
				    "file ends before its data");
	uint64_t there = d->file_size - d->data.offset;
	d->finished = d->data.size != 0;
	d->cut_short = d->data.size > there;
	if (!d->finished || d->cut_short)
		d->data.size = there;
	d->at = d->data.offset;
	return TICKMAP_OK;
}

static int open_file(struct tickmap_perfdata *d, struct tickmap_error *err)
{
	struct stat st;

	/* A FIFO is refused below, not waited for. */
	d->fd = open(d->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (d->fd < 0)
		return tickmap_fail_os(err, errno, "cannot open");
	if (fstat(d->fd, &st))
		return tickmap_fail_os(err, errno, "cannot stat");
	if (S_ISDIR(st.st_mode))
		return tickmap_fail(err, TICKMAP_E_UNSUPPORTED, 0,
				    "perf.data directories (perf record "
				    "--threads) cannot be read");
	if (!S_ISREG(st.st_mode))
		return tickmap_fail(err, TICKMAP_E_UNSUPPORTED, 0,
				    "perf.data must be a regular file");
	d->file_size = (uint64_t)st.st_size;
	return TICKMAP_OK;
}

int tickmap_perfdata_open(const char *path, struct tickmap_perfdata **ret_data,
			  struct tickmap_error *err)
{
	struct tickmap_perfdata *d = calloc(1, sizeof(*d));
	int status = TICKMAP_OK;

	if (d) {
		d->fd = -1;
		d->path = strdup(path);
		d->window = malloc(WINDOW_SIZE);
	}
	if (!d || !d->path || !d->window)
		status = tickmap_fail(err, TICKMAP_E_NOMEM, 0, "out of memory");
	if (!status)
		status = open_file(d, err);
	if (!status)
		status = read_header(d, err);
	if (!status)
		status = check_data(d, err);
	if (!status)
		status = tickmap_perfdata_read_attrs(d, err);
	if (status) {
		tickmap_error_source(err, path);
		tickmap_perfdata_close(d);
		return status;
	}
	tickmap_perfdata_read_features(d);
	*ret_data = d;
	return TICKMAP_OK;
}

void tickmap_perfdata_close(struct tickmap_perfdata *d)
{
	if (!d)
		return;
	if (d->fd >= 0)
		close(d->fd);
	for (unsigned i = 0; i < PERFDATA_TEXT_FEATURES; i++)
		free(d->texts[i]);
	for (size_t i = 0; i < d->build_ids.count; i++)
		free(d->build_ids.items[i].path);
	tickmap_vec_free(&d->build_ids);
	tickmap_table_free(&d->build_id_of_path);
	tickmap_table_free(&d->attr_of_id);
	tickmap_vec_free(&d->attrs);
	ZSTD_freeDCtx(d->zstd);
	free(d->packed_bytes);
	free(d->unpacked);
	free(d->window);
	free(d->path);
	free(d);
}

size_t tickmap_perfdata_attr_count(const struct tickmap_perfdata *d)
{
	return d->attrs.count;
}

const struct tickmap_perfdata_attr *
tickmap_perfdata_attr_at(const struct tickmap_perfdata *d, size_t index)
{
	return &d->attrs.items[index];
}

bool tickmap_perfdata_is_finished(const struct tickmap_perfdata *d)
{
	return d->finished && !d->cut_short;
}

/* ---- What is in a COMPRESSED record ---- */

static int prepare_unpacking(struct tickmap_perfdata *d,
			     struct tickmap_error *err)
{
	if (d->zstd)
		return TICKMAP_OK;
	d->zstd = ZSTD_createDCtx();
	d->packed_bytes = malloc(PACKED_MAX);
	d->unpacked = malloc(UNPACKED_SIZE);
	if (!d->zstd || !d->packed_bytes || !d->unpacked)
		return tickmap_fail(err, TICKMAP_E_NOMEM, 0, "out of memory");
	return TICKMAP_OK;
}

/* Keeps the payload of the record, to be unfolded from now on. */
static int begin_unpacking(struct tickmap_perfdata *d, uint32_t type,
			   struct tickmap_bytes *body,
			   struct tickmap_error *err)
{
	int status = prepare_unpacking(d, err);
	size_t size = tickmap_bytes_left(body);

	if (status)
		return status;
	if (type == PERFDATA_RECORD_COMPRESSED2) {
		uint64_t exact = tickmap_u64(body);
		if (exact > tickmap_bytes_left(body))
			return tickmap_fail(err, TICKMAP_E_FORMAT, d->at,
					    "compressed size exceeds the "
					    "record");
		size = (size_t)exact;
	}
	const uint8_t *bytes = tickmap_take(body, size);
	if (bytes && size)
		memcpy(d->packed_bytes, bytes, size);
	d->packed.src = d->packed_bytes;
	d->packed.size = size;
	d->packed.pos = 0;
	d->packed_offset = d->at;
	return TICKMAP_OK;
}

static int unpack_some(struct tickmap_perfdata *d, struct tickmap_error *err)
{
	size_t kept = d->unpacked_end - d->unpacked_start;

	memmove(d->unpacked, d->unpacked + d->unpacked_start, kept);
	d->unpacked_start = 0;
	ZSTD_outBuffer out = { d->unpacked, UNPACKED_SIZE, kept };
	size_t before = d->packed.pos;
	size_t result = ZSTD_decompressStream(d->zstd, &out, &d->packed);
	d->unpacked_end = out.pos;
	if (ZSTD_isError(result))
		return tickmap_fail(err, TICKMAP_E_FORMAT, d->packed_offset,
				    "compressed data are damaged");
	d->packed_more = out.pos == out.size;
	if (out.pos == kept && d->packed.pos == before &&
	    d->packed.pos < d->packed.size)
		return tickmap_fail(err, TICKMAP_E_FORMAT, d->packed_offset,
				    "compressed data make no progress");
	return TICKMAP_OK;
}

static struct perf_event_header header_of(const struct tickmap_perfdata *d,
					  const uint8_t *bytes)
{
	struct tickmap_bytes b = tickmap_bytes_of(bytes, RECORD_HEADER);
	struct perf_event_header header;

	b.swap = d->swap;
	header.type = tickmap_u32(&b);
	header.misc = tickmap_u16(&b);
	header.size = tickmap_u16(&b);
	return header;
}

/* 1: *ret_bytes is a whole record; 0: the compressed record has no more. */
static int next_unpacked(struct tickmap_perfdata *d, const uint8_t **ret_bytes,
			 struct perf_event_header *ret_header,
			 struct tickmap_error *err)
{
	for (;;) {
		size_t left = d->unpacked_end - d->unpacked_start;
		if (left >= RECORD_HEADER) {
			const uint8_t *at = d->unpacked + d->unpacked_start;
			*ret_header = header_of(d, at);
			if (ret_header->size < RECORD_HEADER)
				return tickmap_fail(err, TICKMAP_E_FORMAT,
						    d->packed_offset,
						    "record is smaller than "
						    "its header");
			if (ret_header->size <= left) {
				*ret_bytes = at;
				d->unpacked_start += ret_header->size;
				return 1;
			}
		}
		if (d->packed.pos == d->packed.size && !d->packed_more)
			return 0;
		int status = unpack_some(d, err);
		if (status)
			return status;
	}
}

/* ---- Records of the file ---- */

/* The data end here, or inside a record that begins here. */
static int end_of_data(const struct tickmap_perfdata *d,
		       struct tickmap_error *err)
{
	uint64_t end = d->data.offset + d->data.size;

	if (!d->finished)
		return 0; /* what was being written when the writer died */
	if (d->cut_short)
		return tickmap_fail(err, TICKMAP_E_TRUNCATED, end,
				    "file ends before its data do");
	if (d->at < end || d->unpacked_end > d->unpacked_start)
		return tickmap_fail(err, TICKMAP_E_TRUNCATED, d->at,
				    "data end inside a record");
	return 0;
}

/* Some records are followed by bytes that their own size does not count. */
static uint64_t size_behind(uint32_t type, struct tickmap_bytes body)
{
	if (type == PERFDATA_RECORD_AUXTRACE)
		return tickmap_u64(&body);
	if (type == PERFDATA_RECORD_TRACING_DATA)
		return ((uint64_t)tickmap_u32(&body) + 7) & ~UINT64_C(7);
	return 0;
}

/* 1: a record of the file; 0: the end. COMPRESSED ones come out as they are. */
static int next_in_file(struct tickmap_perfdata *d, const uint8_t **ret_bytes,
			struct perf_event_header *ret_header,
			struct tickmap_error *err)
{
	uint64_t left = d->data.offset + d->data.size - d->at;
	size_t want =
		left < PERFDATA_VIEW_MAX ? (size_t)left : PERFDATA_VIEW_MAX;
	size_t size;
	int status;

	if (left < RECORD_HEADER)
		return end_of_data(d, err);
	status = tickmap_perfdata_view(d, d->at, RECORD_HEADER, ret_bytes,
				       &size, err);
	if (status)
		return status;
	if (size < RECORD_HEADER)
		return end_of_data(d, err); /* the file shrank */
	*ret_header = header_of(d, *ret_bytes);
	if (ret_header->size < RECORD_HEADER)
		return tickmap_fail(err, TICKMAP_E_FORMAT, d->at,
				    "record is smaller than its header");
	if (ret_header->size > want)
		return end_of_data(d, err);
	status = tickmap_perfdata_view(d, d->at, ret_header->size, ret_bytes,
				       &size, err);
	if (status)
		return status;
	if (size < ret_header->size)
		return end_of_data(d, err);
	return 1;
}

/* Moves on behind the record and what follows it. */
static void step_over(struct tickmap_perfdata *d,
		      const struct perf_event_header *header,
		      struct tickmap_bytes body)
{
	uint64_t left;

	d->at += header->size;
	left = d->data.offset + d->data.size - d->at;
	uint64_t behind = size_behind(header->type, body);
	d->at += behind < left ? behind : left;
}

/* ---- Which event, when, whose ---- */

static const struct tickmap_perfdata_attr *
attr_of(const struct tickmap_perfdata *d, uint32_t type, const uint8_t *bytes,
	size_t size)
{
	size_t at = d->id_at;

	if (!d->id_at || type >= PERFDATA_RECORD_USER_FIRST)
		return d->attrs.items;
	if (type != PERF_RECORD_SAMPLE)
		at = size >= d->id_from_end ? size - d->id_from_end : size;
	if (at < RECORD_HEADER || at > size)
		return d->attrs.items;
	struct tickmap_bytes b = tickmap_bytes_of(bytes + at, size - at);
	b.swap = d->swap;
	/* 0, in records that perf made itself, is nobody's id. */
	const uint64_t *index =
		tickmap_table_get(&d->attr_of_id, tickmap_u64(&b));
	return &d->attrs.items[index && *index ? *index - 1 : 0];
}

static void fill_sample_id(const struct tickmap_sample_layout *layout,
			   struct tickmap_bytes *body,
			   struct tickmap_sample_id *id)
{
	uint64_t type = layout->sample_type;

	if (type & PERF_SAMPLE_IDENTIFIER)
		id->id = tickmap_u64(body);
	if (type & PERF_SAMPLE_IP)
		tickmap_u64(body);
	if (type & PERF_SAMPLE_TID) {
		id->pid = tickmap_u32(body);
		id->tid = tickmap_u32(body);
	}
	if (type & PERF_SAMPLE_TIME)
		id->time_ns = tickmap_u64(body);
	if (type & PERF_SAMPLE_ADDR)
		tickmap_u64(body);
	if (type & PERF_SAMPLE_ID)
		id->id = tickmap_u64(body);
	if (type & PERF_SAMPLE_STREAM_ID)
		tickmap_u64(body);
	if (type & PERF_SAMPLE_CPU)
		id->cpu = tickmap_u32(body);
}

static void fill_record(const struct tickmap_perfdata *d,
			const struct perf_event_header *header,
			const uint8_t *bytes, uint64_t offset,
			struct tickmap_perfdata_record *record)
{
	memset(record, 0, sizeof(*record));
	record->type = header->type;
	record->misc = header->misc;
	record->offset = offset;
	record->bytes = bytes;
	record->size = header->size;
	record->swap = d->swap;
	record->attr = attr_of(d, header->type, bytes, header->size);
	if (header->type == PERF_RECORD_SAMPLE) {
		struct tickmap_bytes body = tickmap_bytes_of(
			bytes + RECORD_HEADER, header->size - RECORD_HEADER);
		body.swap = d->swap;
		fill_sample_id(&record->attr->layout, &body, &record->id);
	} else if (header->type < PERFDATA_RECORD_USER_FIRST) {
		tickmap_sample_id_decode(&record->attr->layout, bytes,
					 header->size, d->swap, &record->id);
	}
}

static int next_record(struct tickmap_perfdata *d,
		       struct tickmap_perfdata_record *ret_record,
		       struct tickmap_error *err)
{
	struct perf_event_header header;
	const uint8_t *bytes;
	int status;

	for (;;) {
		status = next_unpacked(d, &bytes, &header, err);
		if (status == 1)
			fill_record(d, &header, bytes, d->packed_offset,
				    ret_record);
		if (status)
			return status;
		status = next_in_file(d, &bytes, &header, err);
		if (status <= 0)
			return status;
		struct tickmap_bytes body = tickmap_bytes_of(
			bytes + RECORD_HEADER, header.size - RECORD_HEADER);
		body.swap = d->swap;
		bool packed = header.type == PERFDATA_RECORD_COMPRESSED ||
			      header.type == PERFDATA_RECORD_COMPRESSED2;
		if (packed) {
			status = begin_unpacking(d, header.type, &body, err);
			if (status)
				return status;
		} else {
			fill_record(d, &header, bytes, d->at, ret_record);
		}
		step_over(d, &header, body);
		if (!packed)
			return 1;
	}
}

int tickmap_perfdata_next(struct tickmap_perfdata *d,
			  struct tickmap_perfdata_record *ret_record,
			  struct tickmap_error *err)
{
	if (!d->stopped) {
		int status = next_record(d, ret_record, &d->failure);
		if (status == 1)
			return 1;
		d->stopped = status ? status : 1;
		tickmap_error_source(&d->failure, d->path);
	}
	if (d->stopped > 0)
		return 0;
	if (err)
		*err = d->failure;
	return d->stopped;
}

int tickmap_note_decode(const struct tickmap_perfdata_record *record,
			struct tickmap_note *ret_note)
{
	struct tickmap_note note;

	if (record->type != TICKMAP_RECORD_NOTE || record->size < RECORD_HEADER)
		return TICKMAP_E_NOT_FOUND;
	struct tickmap_bytes b = tickmap_bytes_of(record->bytes + RECORD_HEADER,
						  record->size - RECORD_HEADER);
	b.swap = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
	if (tickmap_u32(&b) != TICKMAP_NOTE_MAGIC)
		return TICKMAP_E_NOT_FOUND;
	note.kind = (enum tickmap_note_kind)tickmap_u32(&b);
	note.pid = tickmap_u32(&b);
	note.file_id = tickmap_u32(&b);
	note.time_ns = tickmap_u64(&b);
	note.value = tickmap_u64(&b);
	note.size = tickmap_u32(&b);
	tickmap_u32(&b);
	note.bytes = tickmap_take(&b, note.size);
	if (b.failed)
		return TICKMAP_E_TRUNCATED;
	*ret_note = note;
	return TICKMAP_OK;
}

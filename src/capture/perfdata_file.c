/* SPDX-License-Identifier: MIT */
/* The records of one file, as they lie there, and where they begin again behind
 * damage. */
#include "capture/perfdata_internal.h"

#include <string.h>

enum {
	RECORD_HEADER = PERFDATA_RECORD_HEADER,
	/* Records in a row that make bytes trusted again. */
	TRUSTED = 4,
	/* Bytes that are looked at again, by those that were read. */
	AGAIN_MAX = 4,
	TYPE_MAX = 65535, /* simpleperf's own begin at 32768 */
	KNOWN_KERNEL_MAX = 40,
	KNOWN_USER_MAX = 100,
};

struct perf_event_header
tickmap_perfdata_header(const struct tickmap_perfdata *d, const uint8_t *bytes)
{
	struct tickmap_bytes b = tickmap_bytes_of(bytes, RECORD_HEADER);
	struct perf_event_header header;

	b.swap = d->swap;
	header.type = tickmap_u32(&b);
	header.misc = tickmap_u16(&b);
	header.size = tickmap_u16(&b);
	return header;
}

void tickmap_perfdata_note(struct tickmap_perfdata *d,
			   enum tickmap_status status, uint64_t offset,
			   const char *what)
{
	if (d->failure.status)
		return;
	tickmap_fail(&d->failure, status, offset, what);
	tickmap_error_source(&d->failure, d->stream->path);
}

bool tickmap_perfdata_is_damage(const struct perf_event_header *header)
{
	bool kernel = header->type < PERFDATA_RECORD_USER_FIRST;

	return header->size < RECORD_HEADER || header->type > TYPE_MAX ||
	       (kernel && (!header->type || header->size % 8));
}

/* Stricter than the above: bytes at any place must not pass for records. */
static bool looks_like_record(const struct perf_event_header *header)
{
	uint32_t type = header->type;

	return !tickmap_perfdata_is_damage(header) &&
	       (type <= KNOWN_KERNEL_MAX ||
		(type >= PERFDATA_RECORD_USER_FIRST &&
		 type <= KNOWN_USER_MAX)) &&
	       (type == PERFDATA_RECORD_COMPRESSED || header->size % 8 == 0);
}

static bool begins_here(const struct tickmap_perfdata *d, const uint8_t *bytes,
			size_t size, bool whole)
{
	unsigned trusted = 0;

	for (size_t at = 0; trusted < TRUSTED; trusted++) {
		if (size - at < RECORD_HEADER)
			return trusted && (size == at || !whole);
		struct perf_event_header header =
			tickmap_perfdata_header(d, bytes + at);
		if (!looks_like_record(&header))
			return false;
		if (header.size > size - at)
			return trusted && !whole;
		at += header.size;
	}
	return true;
}

size_t tickmap_perfdata_resync(const struct tickmap_perfdata *d,
			       const uint8_t *bytes, size_t size, bool whole)
{
	for (size_t at = 0; at + RECORD_HEADER <= size; at++)
		if (begins_here(d, bytes + at, size - at, whole))
			return at;
	return size;
}

/* The data end here, or inside a record that begins here. */
static int end_of_data(struct tickmap_perfdata *d)
{
	const struct perfdata_stream *s = d->stream;
	uint64_t end = s->data.offset + s->data.size;

	if (s->open_ended)
		return 0; /* what was being written when the writer died */
	if (s->cut_short)
		tickmap_perfdata_note(d, TICKMAP_E_TRUNCATED, end,
				      "file ends before its data do");
	else if (d->at < end || d->unpacked_end > d->unpacked_start)
		tickmap_perfdata_note(d, TICKMAP_E_TRUNCATED, d->at,
				      "data end inside a record");
	return 0;
}

static void skip(struct tickmap_perfdata *d, uint64_t size)
{
	d->at += size;
	if (d->at <= d->counted)
		return;
	d->skipped += d->at - d->counted;
	d->counted = d->at;
}

/* 1: at the next record, 0: there is none. */
static int find_record(struct tickmap_perfdata *d, struct tickmap_error *err)
{
	uint64_t end = d->stream->data.offset + d->stream->data.size;

	for (;;) {
		uint64_t left = end - d->at;
		size_t want = left < PERFDATA_VIEW_MAX * 2
				      ? (size_t)left
				      : PERFDATA_VIEW_MAX * 2;
		const uint8_t *bytes;
		size_t size;
		int status = tickmap_perfdata_view(d, d->at, want, &bytes,
						   &size, err);
		if (status)
			return status;
		size_t at =
			tickmap_perfdata_resync(d, bytes, size, want == left);
		skip(d, at);
		if (at < size) {
			d->lost_sync = false;
			return 1;
		}
		if (want == left || size < want)
			return 0;
		/* A header may straddle the end of what was looked at. */
		d->at -= RECORD_HEADER - 1;
	}
}

/* What `look` says of a record that is larger than what is left. */
enum { BEYOND = 2 };

static int look(struct tickmap_perfdata *d, const uint8_t **ret_bytes,
		struct perf_event_header *ret_header, bool *ret_damage,
		struct tickmap_error *err)
{
	const struct perfdata_stream *s = d->stream;
	uint64_t left = s->data.offset + s->data.size - d->at;
	size_t size, want = left < PERFDATA_VIEW_MAX ? (size_t)left
						     : PERFDATA_VIEW_MAX;
	int status;

	*ret_damage = false;
	if (left < RECORD_HEADER)
		return end_of_data(d);
	status = tickmap_perfdata_view(d, d->at, RECORD_HEADER, ret_bytes,
				       &size, err);
	if (status)
		return status;
	if (size < RECORD_HEADER)
		return end_of_data(d); /* the file shrank */
	*ret_header = tickmap_perfdata_header(d, *ret_bytes);
	*ret_damage = tickmap_perfdata_is_damage(ret_header);
	if (*ret_damage)
		return 0;
	if (ret_header->size > want)
		return BEYOND;
	status = tickmap_perfdata_view(d, d->at, ret_header->size, ret_bytes,
				       &size, err);
	if (status)
		return status;
	return size < ret_header->size ? end_of_data(d) : 1;
}

/* Nothing begins here. The record before may have said a wrong size and hide
 * others; each byte is looked at again a few times at most. */
static void lose_sync(struct tickmap_perfdata *d)
{
	uint64_t here = d->at, begin = d->stream->data.offset;
	uint64_t again = here - d->doubtful;

	d->lost_sync = true;
	d->counted = here;
	if (!d->doubtful || d->read_again + again > AGAIN_MAX * (here - begin))
		return;
	d->read_again += again;
	d->at = d->doubtful + RECORD_HEADER;
	d->doubtful = 0;
}

/* The last record goes beyond the data: they were cut there, unless others
 * begin inside it. */
static int look_inside(struct tickmap_perfdata *d, struct tickmap_error *err)
{
	uint64_t at = d->at, skipped = d->skipped;
	int status;

	d->counted = at;
	skip(d, RECORD_HEADER);
	status = find_record(d, err);
	if (status > 0)
		tickmap_perfdata_note(d, TICKMAP_E_FORMAT, at,
				      "record is larger than the data");
	if (status)
		return status;
	d->at = at;
	d->skipped = skipped;
	return end_of_data(d);
}

int tickmap_perfdata_next_in_file(struct tickmap_perfdata *d,
				  const uint8_t **ret_bytes,
				  struct perf_event_header *ret_header,
				  struct tickmap_error *err)
{
	for (;;) {
		bool damage;
		int status = d->lost_sync ? find_record(d, err) : 1;
		if (status <= 0)
			return status;
		status = look(d, ret_bytes, ret_header, &damage, err);
		if (status == BEYOND) {
			status = look_inside(d, err);
			if (status <= 0)
				return status;
			continue;
		}
		if (!damage)
			return status;
		tickmap_perfdata_note(d, TICKMAP_E_FORMAT, d->at,
				      ret_header->size < RECORD_HEADER
					      ? "record is smaller than its "
						"header"
					      : "no record begins here");
		lose_sync(d);
	}
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

void tickmap_perfdata_step_over(struct tickmap_perfdata *d,
				const struct perf_event_header *header,
				const uint8_t *bytes)
{
	struct tickmap_bytes body = tickmap_bytes_of(
		bytes + RECORD_HEADER, header->size - RECORD_HEADER);
	uint64_t end = d->stream->data.offset + d->stream->data.size;

	body.swap = d->swap;
	uint64_t behind = size_behind(header->type, body);
	bool packed = header->type == PERFDATA_RECORD_COMPRESSED ||
		      header->type == PERFDATA_RECORD_COMPRESSED2;
	d->doubtful = behind || packed ? 0 : d->at;
	d->at += header->size;
	d->at += behind < end - d->at ? behind : end - d->at;
}

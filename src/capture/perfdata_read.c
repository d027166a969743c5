/* SPDX-License-Identifier: MIT */
/*
 * Records in the order of the files. Two sources, one of which holds a record
 * at a time: the file itself, and what a COMPRESSED record unfolds to.
 */
#include "capture/perfdata_internal.h"

#include <string.h>

enum { RECORD_HEADER = PERFDATA_RECORD_HEADER };

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
	record->file = d->stream->path;
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

/* 1: a record; 0: the end of the last file. */
static int next_record(struct tickmap_perfdata *d,
		       struct tickmap_perfdata_record *ret_record,
		       struct tickmap_error *err)
{
	struct perf_event_header header;
	const uint8_t *bytes;

	for (;;) {
		if (tickmap_perfdata_next_unpacked(d, &bytes, &header)) {
			fill_record(d, &header, bytes, d->packed_offset,
				    ret_record);
			return 1;
		}
		int status =
			tickmap_perfdata_next_in_file(d, &bytes, &header, err);
		if (status < 0)
			return status;
		if (!status) {
			size_t next =
				(size_t)(d->stream - d->streams.items) + 1;
			if (next == d->streams.count)
				return 0;
			tickmap_perfdata_enter(d, next);
			continue;
		}
		bool packed = header.type == PERFDATA_RECORD_COMPRESSED ||
			      header.type == PERFDATA_RECORD_COMPRESSED2;
		if (packed)
			status = tickmap_perfdata_begin_unpacking(d, &header,
								  bytes, err);
		else
			fill_record(d, &header, bytes, d->at, ret_record);
		if (status < 0)
			return status;
		tickmap_perfdata_step_over(d, &header, bytes);
		if (!packed)
			return 1;
	}
}

int tickmap_perfdata_next(struct tickmap_perfdata *d,
			  struct tickmap_perfdata_record *ret_record,
			  struct tickmap_error *err)
{
	if (!d->done) {
		struct tickmap_error failure = { 0 };
		int status = next_record(d, ret_record, &failure);
		if (status == 1)
			return 1;
		d->done = true;
		if (status < 0) {
			tickmap_error_source(&failure, d->stream->path);
			d->failure = failure;
		}
	}
	if (!d->failure.status)
		return 0;
	if (err)
		*err = d->failure;
	return d->failure.status;
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

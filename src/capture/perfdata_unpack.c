/* SPDX-License-Identifier: MIT */
/*
 * What is in COMPRESSED records: one zstd stream a file, unfolded by and by, so
 * that a small file that claims to be large takes no memory.
 */
#include "capture/perfdata_internal.h"

#include <stdlib.h>
#include <string.h>

enum {
	RECORD_HEADER = PERFDATA_RECORD_HEADER,
	PACKED_MAX = 65536,
	UNPACKED_SIZE = 256 * 1024,
};

static int prepare(struct tickmap_perfdata *d, struct tickmap_error *err)
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

void tickmap_perfdata_end_unpacking(struct tickmap_perfdata *d)
{
	if (d->zstd)
		ZSTD_DCtx_reset(d->zstd, ZSTD_reset_session_only);
	d->packed = (ZSTD_inBuffer) { 0 };
	d->packed_more = d->packed_broken = d->unpacked_lost_sync = false;
	d->unpacked_start = d->unpacked_end = 0;
}

static void broken(struct tickmap_perfdata *d, const char *what)
{
	tickmap_perfdata_note(d, TICKMAP_E_FORMAT, d->packed_offset, what);
	tickmap_perfdata_end_unpacking(d);
	d->packed_broken = d->unpacked_lost_sync = true;
}

static bool begins_a_frame(const uint8_t *bytes, size_t size)
{
	static const uint8_t magic[4] = { 0x28, 0xb5, 0x2f, 0xfd };

	return size >= sizeof(magic) && !memcmp(bytes, magic, sizeof(magic));
}

int tickmap_perfdata_begin_unpacking(struct tickmap_perfdata *d,
				     const struct perf_event_header *header,
				     const uint8_t *bytes,
				     struct tickmap_error *err)
{
	struct tickmap_bytes body = tickmap_bytes_of(
		bytes + RECORD_HEADER, header->size - RECORD_HEADER);
	size_t size = tickmap_bytes_left(&body);
	int status = prepare(d, err);

	if (status)
		return status;
	d->packed_offset = d->at;
	if (header->type == PERFDATA_RECORD_COMPRESSED2) {
		body.swap = d->swap;
		uint64_t exact = tickmap_u64(&body);
		if (exact > tickmap_bytes_left(&body)) {
			broken(d, "compressed size exceeds the record");
			d->skipped += header->size;
			return TICKMAP_OK;
		}
		size = (size_t)exact;
	}
	const uint8_t *packed = tickmap_take(&body, size);
	if (d->packed_broken && !begins_a_frame(packed, size)) {
		d->skipped += header->size;
		return TICKMAP_OK;
	}
	d->packed_broken = false;
	if (size)
		memcpy(d->packed_bytes, packed, size);
	d->packed.src = d->packed_bytes;
	d->packed.size = size;
	d->packed.pos = 0;
	return TICKMAP_OK;
}

/* False: nothing more comes out of it. */
static bool unpack_some(struct tickmap_perfdata *d)
{
	size_t kept = d->unpacked_end - d->unpacked_start;

	memmove(d->unpacked, d->unpacked + d->unpacked_start, kept);
	d->unpacked_start = 0;
	ZSTD_outBuffer out = { d->unpacked, UNPACKED_SIZE, kept };
	size_t before = d->packed.pos;
	size_t result = ZSTD_decompressStream(d->zstd, &out, &d->packed);
	d->unpacked_end = out.pos;
	if (ZSTD_isError(result)) {
		d->skipped += d->packed.size - before;
		broken(d, "compressed data are damaged");
		return false;
	}
	d->packed_more = out.pos == out.size;
	if (out.pos == kept && d->packed.pos == before &&
	    d->packed.pos < d->packed.size) {
		broken(d, "compressed data make no progress");
		return false;
	}
	return true;
}

static void find_record(struct tickmap_perfdata *d)
{
	size_t at = tickmap_perfdata_resync(d, d->unpacked + d->unpacked_start,
					    d->unpacked_end - d->unpacked_start,
					    false);

	d->unpacked_start += at;
	if (d->unpacked_start == d->unpacked_end)
		d->unpacked_start = d->unpacked_end = 0;
	else
		d->unpacked_lost_sync = false;
}

int tickmap_perfdata_next_unpacked(struct tickmap_perfdata *d,
				   const uint8_t **ret_bytes,
				   struct perf_event_header *ret_header)
{
	for (;;) {
		if (d->unpacked_lost_sync)
			find_record(d);
		size_t left = d->unpacked_end - d->unpacked_start;
		if (left >= RECORD_HEADER) {
			const uint8_t *at = d->unpacked + d->unpacked_start;
			*ret_header = tickmap_perfdata_header(d, at);
			if (tickmap_perfdata_is_damage(ret_header)) {
				tickmap_perfdata_note(
					d, TICKMAP_E_FORMAT, d->packed_offset,
					"compressed data hold no records");
				d->unpacked_lost_sync = true;
				d->unpacked_start++;
				continue;
			}
			if (ret_header->size <= left) {
				*ret_bytes = at;
				d->unpacked_start += ret_header->size;
				return 1;
			}
		}
		if (d->packed.pos == d->packed.size && !d->packed_more)
			return 0;
		if (!unpack_some(d))
			return 0;
	}
}

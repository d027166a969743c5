/* SPDX-License-Identifier: MIT */
/*
 * perf.data as perf writes it to a pipe: what a file has in its header and
 * behind its data comes as records, in front of those that need it or, like
 * build ids, at any place. All of them are collected before the first is read.
 */
#include "capture/perfdata_internal.h"

enum { ATTR_SIZE_VER0 = 64 };

static int read_attr(struct tickmap_perfdata *d, struct tickmap_bytes *body,
		     struct tickmap_error *err)
{
	struct tickmap_bytes peek = *body;

	tickmap_u32(&peek);
	size_t size = tickmap_u32(&peek);
	if (!size)
		size = ATTR_SIZE_VER0;
	if (size < ATTR_SIZE_VER0 || size > tickmap_bytes_left(body)) {
		tickmap_perfdata_note(d, TICKMAP_E_FORMAT, d->at,
				      "size of an event's attr is impossible");
		return TICKMAP_OK;
	}
	return tickmap_perfdata_add_attr(d, body, size, err);
}

/* type, id of the event, then what depends on the type. */
static void read_update(struct tickmap_perfdata *d, struct tickmap_bytes *body)
{
	uint64_t type = tickmap_u64(body);
	const uint64_t *index =
		tickmap_table_get(&d->attr_of_id, tickmap_u64(body));
	const char *name = type == PERFDATA_EVENT_UPDATE_NAME
				   ? tickmap_cstr(body, NULL)
				   : NULL;

	if (name && index && *index)
		tickmap_perfdata_name_attr(&d->attrs.items[*index - 1], name);
}

static int look_at(struct tickmap_perfdata *d,
		   const struct perf_event_header *header, const uint8_t *bytes,
		   struct tickmap_error *err)
{
	struct tickmap_bytes body =
		tickmap_bytes_of(bytes + PERFDATA_RECORD_HEADER,
				 header->size - PERFDATA_RECORD_HEADER);
	uint64_t bit;

	body.swap = d->swap;
	switch (header->type) {
	case PERFDATA_RECORD_HEADER_ATTR:
		return read_attr(d, &body, err);
	case PERFDATA_RECORD_EVENT_UPDATE:
		read_update(d, &body);
		break;
	case PERFDATA_RECORD_HEADER_FEATURE:
		bit = tickmap_u64(&body);
		if (!body.failed && bit < PERFDATA_FEATURE_BITS)
			tickmap_perfdata_read_feature(d, (unsigned)bit, &body);
		break;
	case PERFDATA_RECORD_BUILD_ID:
		tickmap_perfdata_read_build_id(d, header->misc, &body);
		break;
	default:
		break;
	}
	return TICKMAP_OK;
}

int tickmap_perfdata_read_pipe(struct tickmap_perfdata *d,
			       struct tickmap_error *err)
{
	struct perf_event_header header;
	const uint8_t *bytes;
	int status;

	tickmap_perfdata_enter(d, 0);
	while ((status = tickmap_perfdata_next_in_file(d, &bytes, &header,
						       err)) > 0) {
		status = look_at(d, &header, bytes, err);
		if (status)
			return status;
		tickmap_perfdata_step_over(d, &header, bytes);
	}
	if (status)
		return status;
	if (!d->attrs.count)
		return tickmap_fail(err, TICKMAP_E_FORMAT,
				    PERFDATA_PIPE_HEADER_SIZE,
				    "file names no event");
	tickmap_perfdata_attrs_end(d);
	return TICKMAP_OK;
}

/* SPDX-License-Identifier: MIT */
/* The feature sections of a perf.data file: what is known of the recording. */
#include "capture/perfdata_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FEATURE_SIZE_MAX = 64 << 20 };

/* A section in malloced memory, NULL if it is not in the file. */
static uint8_t *read_section(struct tickmap_perfdata *d,
			     struct perfdata_section section)
{
	uint64_t file_size = d->stream->file_size;

	if (section.offset > file_size ||
	    section.size > file_size - section.offset ||
	    section.size > FEATURE_SIZE_MAX || !section.size)
		return NULL;
	uint8_t *bytes = malloc((size_t)section.size);
	size_t done = 0;
	while (bytes && done < section.size) {
		ssize_t n = pread(d->stream->fd, bytes + done,
				  (size_t)section.size - done,
				  (off_t)(section.offset + done));
		if (n <= 0) {
			free(bytes);
			return NULL;
		}
		done += (size_t)n;
	}
	return bytes;
}

/* A counted, padded string; NULL if it is not there. */
static const char *take_string(struct tickmap_bytes *b)
{
	size_t size = tickmap_u32(b);
	struct tickmap_bytes text = tickmap_sub(b, size);

	return tickmap_cstr(&text, NULL);
}

static void read_text(struct tickmap_perfdata *d, unsigned bit,
		      struct tickmap_bytes *b)
{
	const char *text = take_string(b);

	if (text && !d->texts[bit])
		d->texts[bit] = strdup(text);
}

/* The words with a blank between them. */
static void read_command(struct tickmap_perfdata *d, struct tickmap_bytes *b)
{
	uint32_t count = tickmap_u32(b);
	char *line = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&line, &size);

	if (!out)
		return;
	for (uint32_t i = 0; i < count && !b->failed; i++) {
		const char *word = take_string(b);
		if (!word)
			break;
		fprintf(out, "%s%s", i ? " " : "", word);
	}
	if (fclose(out)) {
		free(line);
		return;
	}
	free(d->texts[PERFDATA_FEATURE_CMDLINE]);
	d->texts[PERFDATA_FEATURE_CMDLINE] = line;
}

/* nr, attr size, then per event: attr, number of ids, name, ids. */
static void read_event_names(struct tickmap_perfdata *d,
			     struct tickmap_bytes *b)
{
	uint32_t count = tickmap_u32(b);
	uint32_t attr_size = tickmap_u32(b);

	for (uint32_t i = 0; i < count && i < d->attrs.count; i++) {
		struct tickmap_perfdata_attr *attr = &d->attrs.items[i];
		tickmap_take(b, attr_size);
		uint32_t ids = tickmap_u32(b);
		const char *name = take_string(b);
		if (!name)
			return;
		tickmap_perfdata_name_attr(attr, name);
		if (ids > tickmap_bytes_left(b) / 8)
			return;
		tickmap_take(b, (size_t)ids * 8);
	}
}

static void add_build_id(struct tickmap_perfdata *d, const char *path,
			 const uint8_t *id, size_t size)
{
	uint64_t *slot = tickmap_table_put(&d->build_id_of_path,
					   tickmap_hash(path, strlen(path)));
	if (!slot)
		return;
	if (*slot) {
		/* Two builds at one path: which one was mapped where nobody
		 * says. */
		struct perfdata_build_id *old = &d->build_ids.items[*slot - 1];
		if (memcmp(old->id, id, sizeof(old->id)) != 0)
			old->size = 0;
		return;
	}
	struct perfdata_build_id *entry = tickmap_vec_push(&d->build_ids);
	if (!entry)
		return;
	entry->path = strdup(path);
	memcpy(entry->id, id, sizeof(entry->id));
	entry->size = size;
	*slot = d->build_ids.count;
}

void tickmap_perfdata_read_build_id(struct tickmap_perfdata *d, uint16_t misc,
				    struct tickmap_bytes *body)
{
	tickmap_u32(body); /* pid */
	const uint8_t *id = tickmap_take(body, 20);
	size_t id_size = tickmap_u8(body);
	tickmap_take(body, 3);
	const char *path = tickmap_cstr(body, NULL);

	if (body->failed)
		return;
	if (!(misc & PERFDATA_MISC_BUILD_ID_SIZE) || id_size > 20)
		id_size = 20;
	if (id_size)
		add_build_id(d, path, id, id_size);
}

static void read_build_ids(struct tickmap_perfdata *d, struct tickmap_bytes *b)
{
	while (tickmap_bytes_left(b) >= 8) {
		tickmap_u32(b); /* type */
		uint16_t misc = tickmap_u16(b);
		uint16_t size = tickmap_u16(b);
		if (size < 8)
			return;
		struct tickmap_bytes body = tickmap_sub(b, size - 8u);
		tickmap_perfdata_read_build_id(d, misc, &body);
	}
}

/* version, clock id, its two readings */
static void read_clock(struct tickmap_perfdata *d, struct tickmap_bytes *b)
{
	struct tickmap_perfdata_clock clock;

	tickmap_u32(b);
	clock.clockid = (int32_t)tickmap_u32(b);
	clock.wall_ns = tickmap_u64(b);
	clock.clock_ns = tickmap_u64(b);
	if (b->failed)
		return;
	d->clock = clock;
	d->has_clock = true;
}

void tickmap_perfdata_read_feature(struct tickmap_perfdata *d, unsigned bit,
				   struct tickmap_bytes *b)
{
	switch (bit) {
	case PERFDATA_FEATURE_HOSTNAME:
	case PERFDATA_FEATURE_OSRELEASE:
	case PERFDATA_FEATURE_VERSION:
	case PERFDATA_FEATURE_ARCH:
	case PERFDATA_FEATURE_CPUDESC:
	case PERFDATA_FEATURE_CPUID:
		read_text(d, bit, b);
		break;
	case PERFDATA_FEATURE_CMDLINE:
		read_command(d, b);
		break;
	case PERFDATA_FEATURE_EVENT_DESC:
		read_event_names(d, b);
		break;
	case PERFDATA_FEATURE_BUILD_ID:
		read_build_ids(d, b);
		break;
	case PERFDATA_FEATURE_CLOCK_DATA:
		read_clock(d, b);
		break;
	default:
		break;
	}
}

static bool is_wanted(unsigned bit)
{
	return (bit < PERFDATA_TEXT_FEATURES &&
		bit != PERFDATA_FEATURE_NRCPUS) ||
	       bit == PERFDATA_FEATURE_CLOCK_DATA;
}

void tickmap_perfdata_read_features(struct tickmap_perfdata *d)
{
	const struct perfdata_stream *s = d->stream;
	uint64_t at = s->data.offset + s->data.size;

	if (s->open_ended || s->cut_short)
		return;
	for (unsigned bit = 0; bit <= PERFDATA_FEATURE_CLOCK_DATA; bit++) {
		if (!(d->feature_bits[bit / 64] >> bit % 64 & 1))
			continue;
		struct perfdata_section place = { at, PERFDATA_SECTION_SIZE };
		at += PERFDATA_SECTION_SIZE;
		uint8_t *entry = is_wanted(bit) ? read_section(d, place) : NULL;
		if (!entry)
			continue;
		struct tickmap_bytes b =
			tickmap_bytes_of(entry, PERFDATA_SECTION_SIZE);
		b.swap = d->swap;
		struct perfdata_section section;
		section.offset = tickmap_u64(&b);
		section.size = tickmap_u64(&b);
		free(entry);
		uint8_t *bytes = read_section(d, section);
		if (!bytes)
			continue;
		b = tickmap_bytes_of(bytes, (size_t)section.size);
		b.swap = d->swap;
		tickmap_perfdata_read_feature(d, bit, &b);
		free(bytes);
	}
}

const char *tickmap_perfdata_feature_text(const struct tickmap_perfdata *d,
					  unsigned feature)
{
	return feature < PERFDATA_TEXT_FEATURES ? d->texts[feature] : NULL;
}

size_t tickmap_perfdata_build_id_of(const struct tickmap_perfdata *d,
				    const char *path, uint8_t ret_id[20])
{
	const uint64_t *slot = tickmap_table_get(
		&d->build_id_of_path, tickmap_hash(path, strlen(path)));

	if (!slot || !*slot)
		return 0;
	const struct perfdata_build_id *entry = &d->build_ids.items[*slot - 1];
	if (!entry->path || strcmp(entry->path, path))
		return 0;
	memcpy(ret_id, entry->id, sizeof(entry->id));
	return entry->size;
}

/* SPDX-License-Identifier: MIT */
/* Any bytes as a jitdump, whole and in small pieces: the same comes out. */
#include "base/table.h"
#include "codemap/codemap.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void mix_number(uint64_t *sum, uint64_t value)
{
	*sum = tickmap_mix(*sum ^ value);
}

static void mix_bytes(uint64_t *sum, const void *bytes, size_t size)
{
	if (bytes)
		mix_number(sum, tickmap_hash(bytes, size));
	mix_number(sum, size);
}

static void saw_code(void *context, const struct tickmap_code_event *event)
{
	mix_number(context, event->kind);
	mix_number(context, event->when);
	mix_number(context, event->avma);
	mix_number(context, event->offset);
	mix_number(context, event->line);
	mix_bytes(context, event->name, event->name_length);
	mix_bytes(context, event->file, event->file_length);
	mix_bytes(context, event->eh_frame, event->eh_frame_size);
	if (event->code)
		mix_bytes(context, event->code, event->size);
}

static void saw_finding(void *context, const struct tickmap_finding *finding)
{
	mix_number(context, (uint64_t)finding->id[4]);
	mix_number(context, finding->offset);
	mix_number(context, finding->value);
}

static uint64_t read_all(const uint8_t *data, size_t size, size_t chunk)
{
	uint64_t sum = 0;
	struct tickmap_code_handler handler = { .context = &sum,
						.code = saw_code,
						.finding = saw_finding };
	struct tickmap_jitdump *dump = tickmap_jitdump_new(&handler);

	if (!dump)
		abort();
	for (size_t at = 0; at < size; at += chunk)
		if (!tickmap_jitdump_feed(dump, data + at,
					  size - at < chunk ? size - at
							    : chunk))
			break;
	tickmap_jitdump_end(dump);
	tickmap_jitdump_free(dump);
	return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t whole = read_all(data, size, size ? size : 1);

	if (read_all(data, size, 13) != whole)
		abort();
	return 0;
}

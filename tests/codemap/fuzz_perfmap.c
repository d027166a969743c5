/* SPDX-License-Identifier: MIT */
/* Any bytes as a perf map, whole and in small pieces: the same comes out. */
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
	/* What a consumer may rely on. */
	if (!event->size || !event->name_length ||
	    event->size - 1 > UINT64_MAX - event->avma)
		abort();
	mix_number(context, event->avma);
	mix_number(context, event->size);
	mix_number(context, event->offset);
	mix_bytes(context, event->name, event->name_length);
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
	struct tickmap_perfmap *map = tickmap_perfmap_new(&handler);

	if (!map)
		abort();
	for (size_t at = 0; at < size; at += chunk)
		if (!tickmap_perfmap_feed(map, data + at,
					  size - at < chunk ? size - at : chunk,
					  1))
			break;
	tickmap_perfmap_end(map, 1);
	tickmap_perfmap_free(map);
	return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t whole = read_all(data, size, size ? size : 1);

	if (read_all(data, size, 13) != whole)
		abort();
	return 0;
}

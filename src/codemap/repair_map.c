/* SPDX-License-Identifier: MIT */
/*
 * A perf map in its plainest form. perf takes the first of two entries with one
 * start, others the last: only the last stays.
 */
#include "base/table.h"
#include "codemap/codemap.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct cleaning {
	tickmap_repair_sink sink;
	void *context;
	struct tickmap_table last; /* start -> offset of its last entry + 1 */
	struct tickmap_repair_counts counts;
	bool no_memory, refused, writing;
};

static void remember(struct cleaning *c, const struct tickmap_code_event *event)
{
	uint64_t *place = tickmap_table_put(&c->last, event->avma);

	if (place)
		*place = event->offset + 1;
	else
		c->no_memory = true;
}

static void put(struct cleaning *c, const void *bytes, size_t size)
{
	if (size && !c->refused)
		c->refused = !c->sink(c->context, bytes, size);
}

/* A NUL would end the line for some readers. */
static void put_name(struct cleaning *c, const char *name, size_t length)
{
	const char *nul;

	for (; (nul = memchr(name, 0, length)); name = nul + 1) {
		put(c, name, (size_t)(nul - name));
		put(c, "?", 1);
		length -= (size_t)(nul - name) + 1;
	}
	put(c, name, length);
}

static void write_entry(struct cleaning *c,
			const struct tickmap_code_event *event)
{
	const uint64_t *last = tickmap_table_get(&c->last, event->avma);
	char numbers[40];
	int length;

	if (last && *last != event->offset + 1) {
		c->counts.repeated++;
		return;
	}
	length = snprintf(numbers, sizeof(numbers), "%" PRIx64 " %" PRIx64 " ",
			  event->avma, event->size);
	put(c, numbers, (size_t)length);
	put_name(c, event->name, event->name_length);
	put(c, "\n", 1);
	c->counts.entries++;
}

static void saw_code(void *context, const struct tickmap_code_event *event)
{
	struct cleaning *c = context;

	if (c->writing)
		write_entry(c, event);
	else
		remember(c, event);
}

static void saw_finding(void *context, const struct tickmap_finding *finding)
{
	struct cleaning *c = context;

	if (c->writing && !strcmp(finding->id, "PM001"))
		c->counts.skipped_bytes += finding->value;
}

static void read_once(struct cleaning *c, const void *bytes, size_t size)
{
	struct tickmap_code_handler handler = { .context = c,
						.code = saw_code,
						.finding = saw_finding };
	struct tickmap_perfmap *map = tickmap_perfmap_new(&handler);

	if (!map || !tickmap_perfmap_feed(map, bytes, size, 0))
		c->no_memory = true;
	if (map)
		tickmap_perfmap_end(map, 0);
	tickmap_perfmap_free(map);
}

enum tickmap_repair_status
tickmap_perfmap_repair(const void *bytes, size_t size, tickmap_repair_sink sink,
		       void *context, struct tickmap_repair_counts *ret_counts)
{
	struct cleaning c = { .sink = sink, .context = context };

	read_once(&c, bytes, size);
	c.writing = true;
	if (!c.no_memory)
		read_once(&c, bytes, size);
	tickmap_table_free(&c.last);
	if (ret_counts)
		*ret_counts = c.counts;
	if (c.no_memory)
		return TICKMAP_REPAIR_NO_MEMORY;
	if (c.refused)
		return TICKMAP_REPAIR_NOT_WRITTEN;
	return size && !c.counts.entries ? TICKMAP_REPAIR_NOT_A_MAP
					 : TICKMAP_REPAIR_DONE;
}

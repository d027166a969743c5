/* SPDX-License-Identifier: MIT */
#include "codemap/repair.h"

#include "base/table.h"
#include "codemap/jitdump_emit.h"

#include <stdlib.h>

/* Missing code is made up to this and some times the size of the input. */
enum { FILL_MAX = 1 << 20, FILL_TIMES = 8 };

/* A header that old is not of the records' clock: an hour, in ns. */
#define HEADER_TIME_NEAR UINT64_C(3600000000000)

/* Repeated file names are written out if that makes a record at most so many
 * times larger: not every reader knows the short form. */
enum { EXPAND_MAX = 4 };

/* ---- Taking apart ---- */

/* The bytes where they stay: in the input, or copied. */
static const uint8_t *keep(struct tickmap_repair *repair, const void *bytes,
			   size_t size)
{
	const uint8_t *at = bytes;
	uint8_t *copy;

	if (!size)
		return (const uint8_t *)"";
	if ((uintptr_t)at >= (uintptr_t)repair->input &&
	    (uintptr_t)at - (uintptr_t)repair->input < repair->input_size)
		return at;
	copy = tickmap_arena_alloc(&repair->arena, size);
	if (!copy) {
		repair->no_memory = true;
		return (const uint8_t *)"";
	}
	memcpy(copy, at, size);
	return copy;
}

static bool is_same_file(const struct tickmap_code_line *a,
			 const struct tickmap_code_line *b)
{
	return a->file_length == b->file_length && a->file_length &&
	       !memcmp(a->file, b->file, a->file_length);
}

/* Entries as they are written; `out` NULL: only counts their bytes. */
static size_t put_lines(struct tickmap_code_lines lines, bool expand,
			uint8_t *out, uint32_t *ret_count)
{
	struct tickmap_code_line line, last = { .file_length = 0 };
	size_t size = 0;

	for (*ret_count = 0; tickmap_code_lines_next(&lines, &line);
	     last = line, ++*ret_count) {
		bool again = !expand && is_same_file(&line, &last);
		const char *name = again ? "\xff" : line.file;
		size_t length = again ? 1 : line.file_length;
		if (out) {
			memcpy(out + size, &line.avma, 8);
			memcpy(out + size + 8, &line.line, 4);
			memcpy(out + size + 12, &line.column, 4);
			if (length)
				memcpy(out + size + 16, name, length);
			out[size + 16 + length] = 0;
		}
		size += 17 + length;
	}
	return size;
}

static void take_lines(struct tickmap_repair *repair,
		       const struct tickmap_code_event *event,
		       struct tickmap_repair_item *item)
{
	const struct tickmap_code_lines *lines = &event->lines;
	size_t there = (size_t)(lines->end - lines->at);
	bool expand = true;
	size_t size = put_lines(*lines, true, NULL, &item->line_count);
	uint8_t *copy;

	if (size > EXPAND_MAX * there || size > UINT32_MAX - 64) {
		expand = false;
		size = put_lines(*lines, false, NULL, &item->line_count);
	}
	if (!size || size > UINT32_MAX - 64) {
		item->line_count = 0;
		return;
	}
	copy = tickmap_arena_alloc(&repair->arena, size);
	if (!copy) {
		repair->no_memory = true;
		return;
	}
	put_lines(*lines, expand, copy, &item->line_count);
	item->lines = copy;
	item->lines_size = (uint32_t)size;
}

static void take_code(struct tickmap_repair *repair,
		      const struct tickmap_code_event *event,
		      struct tickmap_repair_item *item)
{
	uint64_t most = UINT32_MAX - 64 - item->name_length;
	const uint8_t *code = event->code ? event->code : event->code_begin;
	size_t there = event->code ? (size_t)event->size : event->code_there;

	item->size = event->size > most ? most : event->size;
	if (there > item->size)
		there = (size_t)item->size;
	item->code = keep(repair, code, there);
	item->code_there = there;
}

static void saw_code(void *context, const struct tickmap_code_event *event)
{
	struct tickmap_repair *repair = context;
	struct tickmap_repair_item *item;

	if (event->kind == TICKMAP_CODE_CLOSE || repair->no_memory)
		return;
	item = tickmap_vec_push(&repair->items);
	if (!item) {
		repair->no_memory = true;
		return;
	}
	*item = (struct tickmap_repair_item) {
		.when = event->when,
		.order = repair->items.count,
		.avma = event->avma,
		.size = event->size,
		.old_avma = event->old_avma,
		.index = event->code_index,
		.pid = event->pid,
		.tid = event->tid,
		.move = event->kind == TICKMAP_CODE_MOVE,
	};
	if (item->move)
		return;
	item->name_length = event->name_length;
	item->name = keep(repair, event->name, event->name_length);
	take_code(repair, event, item);
	/* Lines of a range that could not be kept are of no use. */
	if (event->lines.count && item->size == event->size)
		take_lines(repair, event, item);
	if ((event->eh_frame || event->eh_frame_hdr) &&
	    !tickmap_repair_unwinding(repair, event, item))
		repair->no_memory = true;
}

static void saw_finding(void *context, const struct tickmap_finding *finding)
{
	struct tickmap_repair *repair = context;

	if (!strcmp(finding->id, "JD013"))
		repair->counts.unknown++;
}

/* ---- What stays ---- */

static int by_time(const void *a, const void *b)
{
	const struct tickmap_repair_item *x = a, *y = b;

	if (x->when != y->when)
		return x->when < y->when ? -1 : 1;
	return (x->order > y->order) - (x->order < y->order);
}

static void sort(struct tickmap_repair *repair)
{
	const struct tickmap_repair_item *items = repair->items.items;
	size_t latest = 0;

	for (size_t i = 1; i < repair->items.count; i++) {
		if (by_time(&items[i], &items[latest]) < 0)
			repair->counts.sorted++;
		else
			latest = i;
	}
	if (repair->counts.sorted)
		qsort(repair->items.items, repair->items.count,
		      sizeof(*repair->items.items), by_time);
}

static uint64_t identity(const struct tickmap_repair_item *item)
{
	uint64_t hash = tickmap_hash(item->name, item->name_length);

	hash = tickmap_mix(hash ^ tickmap_hash(item->code, item->code_there));
	hash = tickmap_mix(hash ^ tickmap_hash(item->lines, item->lines_size));
	hash = tickmap_mix(hash ^
			   tickmap_hash(item->unwinding, item->unwinding_size));
	hash = tickmap_mix(hash ^ item->when);
	hash = tickmap_mix(hash ^ item->avma);
	hash = tickmap_mix(hash ^ item->size);
	hash = tickmap_mix(hash ^ item->index);
	return tickmap_mix(hash ^ ((uint64_t)item->pid << 32 | item->tid));
}

/* The same record once more says nothing new. */
static bool drop_repeated(struct tickmap_repair *repair)
{
	struct tickmap_table seen = { 0 };
	bool good = true;

	for (size_t i = 0; good && i < repair->items.count; i++) {
		struct tickmap_repair_item *item = &repair->items.items[i];
		uint64_t *place;
		if (item->move || item->dropped)
			continue;
		place = tickmap_table_put(&seen, identity(item));
		good = place;
		if (place && *place) {
			item->dropped = true;
			repair->counts.repeated++;
		} else if (place) {
			*place = 1;
		}
	}
	tickmap_table_free(&seen);
	return good;
}

struct numbering {
	struct tickmap_table taken; /* index -> 1: in the dump, 2: written */
	struct tickmap_table place; /* pid, index, address -> new index */
	struct tickmap_table last;  /* pid, index -> new index */
	uint64_t next;
};

static uint64_t key(uint32_t pid, uint64_t index, uint64_t avma)
{
	return tickmap_mix(tickmap_mix(index ^ tickmap_mix(pid)) ^ avma);
}

static bool put(struct tickmap_table *table, uint64_t at, uint64_t value)
{
	uint64_t *place = tickmap_table_put(table, at);

	if (place)
		*place = value;
	return place;
}

static bool number_load(struct tickmap_repair *repair, struct numbering *n,
			struct tickmap_repair_item *item)
{
	uint64_t index = item->index;
	uint64_t *taken = tickmap_table_put(&n->taken, index);

	if (!taken)
		return false;
	if (*taken == 2) {
		while (tickmap_table_get(&n->taken, n->next))
			n->next++;
		item->index = n->next;
		repair->counts.renumbered++;
		if (!put(&n->taken, item->index, 2))
			return false;
	} else {
		*taken = 2;
	}
	return put(&n->place, key(item->pid, index, item->avma), item->index) &&
	       put(&n->last, key(item->pid, index, 0), item->index);
}

/* A MOVE is of the function that was there, if one was, or of the last one
 * that had its index. */
static bool number_move(struct numbering *n, struct tickmap_repair_item *item)
{
	uint64_t index = item->index;
	uint64_t *at = tickmap_table_get(&n->place,
					 key(item->pid, index, item->old_avma));

	if (!at)
		at = tickmap_table_get(&n->last, key(item->pid, index, 0));
	if (!at)
		return true;
	item->index = *at;
	return put(&n->place, key(item->pid, index, item->avma), item->index);
}

/* perf names files by pid and index: each function needs its own. */
static bool number(struct tickmap_repair *repair)
{
	struct numbering n = { .next = 0 };
	bool good = true;

	for (size_t i = 0; good && i < repair->items.count; i++) {
		const struct tickmap_repair_item *item =
			&repair->items.items[i];
		if (!item->move && !item->dropped)
			good = put(&n.taken, item->index, 1);
	}
	for (size_t i = 0; good && i < repair->items.count; i++) {
		struct tickmap_repair_item *item = &repair->items.items[i];
		if (item->dropped)
			continue;
		if (item->move)
			good = number_move(&n, item);
		else
			good = number_load(repair, &n, item);
	}
	tickmap_table_free(&n.taken);
	tickmap_table_free(&n.place);
	tickmap_table_free(&n.last);
	return good;
}

static void mend_header(struct tickmap_repair *repair, uint32_t elf_machine)
{
	struct tickmap_jitdump_header *header = &repair->header;

	header->version = 1;
	header->flags &= 1;
	if (!header->elf_machine)
		header->elf_machine = elf_machine;
	for (size_t i = 0; i < repair->items.count; i++) {
		uint64_t first = repair->items.items[i].when;
		if (repair->items.items[i].dropped)
			continue;
		if (header->timestamp > first ||
		    first - header->timestamp > HEADER_TIME_NEAR)
			header->timestamp = first;
		break;
	}
}

static void read_all(struct tickmap_repair *repair,
		     struct tickmap_jitdump *dump)
{
	if (!tickmap_jitdump_feed(dump, repair->input, repair->input_size) &&
	    tickmap_jitdump_header(dump))
		repair->no_memory = true;
	tickmap_jitdump_end(dump);
	repair->bias = tickmap_jitdump_line_bias(dump);
	repair->counts.skipped_bytes =
		tickmap_jitdump_counts(dump).skipped_bytes;
}

static uint64_t missing_of(const struct tickmap_repair_item *item)
{
	return item->move ? 0 : item->size - item->code_there;
}

/*
 * Code that is not there is zeros, in reason. Where there would be too many,
 * each function gets as many as any other: all keep their names, at their
 * beginnings at least.
 */
static void fill(struct tickmap_repair *repair, uint64_t left)
{
	struct tickmap_repair_item *items = repair->items.items;
	uint64_t wanted = 0, lacking = 0, share = UINT64_MAX;

	for (size_t i = 0; i < repair->items.count; i++) {
		wanted += missing_of(&items[i]);
		lacking += missing_of(&items[i]) != 0;
	}
	if (wanted > left)
		share = left / lacking;
	for (size_t i = 0; i < repair->items.count; i++) {
		uint64_t missing = missing_of(&items[i]);
		if (missing > share) {
			items[i].size -= missing - share;
			/* Lines of a range that could not be kept are of no
			 * use. */
			items[i].lines_size = items[i].line_count = 0;
			missing = share;
		}
		repair->counts.filled += missing;
	}
}

static enum tickmap_repair_status mend(struct tickmap_repair *repair,
				       struct tickmap_jitdump *dump,
				       uint32_t elf_machine,
				       tickmap_repair_sink sink, void *context)
{
	repair->dump = dump;
	tickmap_jitdump_assume(dump, elf_machine);
	read_all(repair, dump);
	if (repair->no_memory)
		return TICKMAP_REPAIR_NO_MEMORY;
	if (!tickmap_jitdump_header(dump))
		return TICKMAP_REPAIR_NOT_A_MAP;
	repair->header = *tickmap_jitdump_header(dump);
	fill(repair, FILL_MAX + FILL_TIMES * (uint64_t)repair->input_size);
	if (!tickmap_repair_empty(repair))
		return TICKMAP_REPAIR_NO_MEMORY;
	sort(repair);
	if (!drop_repeated(repair) || !number(repair))
		return TICKMAP_REPAIR_NO_MEMORY;
	mend_header(repair, elf_machine);
	if (tickmap_repair_write(repair, sink, context))
		return TICKMAP_REPAIR_DONE;
	return repair->no_memory ? TICKMAP_REPAIR_NO_MEMORY
				 : TICKMAP_REPAIR_NOT_WRITTEN;
}

enum tickmap_repair_status
tickmap_jitdump_repair(const void *bytes, size_t size, uint32_t elf_machine,
		       tickmap_repair_sink sink, void *context,
		       struct tickmap_repair_counts *ret_counts)
{
	struct tickmap_repair repair = {
		.input = bytes,
		.input_size = size,
	};
	struct tickmap_code_handler handler = { .context = &repair,
						.code = saw_code,
						.finding = saw_finding };
	struct tickmap_jitdump *dump = tickmap_jitdump_new(&handler);
	enum tickmap_repair_status status = TICKMAP_REPAIR_NO_MEMORY;

	if (dump)
		status = mend(&repair, dump, elf_machine, sink, context);
	if (ret_counts)
		*ret_counts = repair.counts;
	tickmap_jitdump_free(dump);
	tickmap_vec_free(&repair.items);
	tickmap_arena_free(&repair.arena);
	return status;
}

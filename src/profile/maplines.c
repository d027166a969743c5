/* SPDX-License-Identifier: MIT */
/*
 * Lines of perf maps. A map may have ten million, of which the samples ask
 * about a few thousand: the others are not kept, nor are those that later ones
 * of the same time hide wherever somebody asks.
 */
#include "base/sort.h"
#include "profile/load.h"

/*
 * All user addresses of the samples, in order. Recorded stacks that are still
 * to be walked will ask about others: then nothing is left out.
 */
static bool find_asked(struct tickmap_loader *loader)
{
	const struct tickmap_stacks *stacks = &loader->stacks;
	uint64_t *asked;
	size_t count = 0;

	if (loader->asked.items)
		return true;
	/* A caller may ask about two. */
	if (!tickmap_vec_reserve(&loader->asked, 2 * stacks->all.count + 1))
		return false;
	asked = loader->asked.items;
	for (size_t i = 1; i < stacks->all.count; i++) {
		const struct tickmap_stack *s = &stacks->all.items[i];
		if (s->kind != TICKMAP_STACK_USER &&
		    s->kind != TICKMAP_STACK_CALLER)
			continue;
		asked[count++] = s->avma;
		if (tickmap_samples_may_be_entry(loader, s))
			asked[count++] = s->avma + 1;
	}
	if (!tickmap_sort_u64(asked, count))
		return false;
	for (size_t i = 0; i < count; i++)
		if (!i || asked[i] != asked[i - 1])
			asked[loader->asked.count++] = asked[i];
	return true;
}

/* The first asked address that is not below. */
static size_t first_asked(const struct tickmap_loader *loader, uint64_t avma)
{
	size_t low = 0, high = loader->asked.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (loader->asked.items[middle] < avma)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool is_asked(const struct tickmap_loader *loader, uint64_t avma,
		     uint64_t size)
{
	size_t first = first_asked(loader, avma);

	return first < loader->asked.count &&
	       loader->asked.items[first] - avma < size;
}

static bool may_choose(const struct tickmap_loader *loader)
{
	return !loader->dwarf_stacks || !loader->unwindable;
}

bool tickmap_maplines_begin(struct tickmap_loader *loader,
			    struct tickmap_source *source)
{
	/* Lines that a dump makes superfluous are counted. */
	for (size_t i = 0; i < loader->sources.count; i++)
		if (!loader->sources.items[i].perf_map)
			return true;
	source->asked_only = may_choose(loader);
	return !source->asked_only || find_asked(loader);
}

bool tickmap_maplines_add(struct tickmap_loader *loader,
			  struct tickmap_source *source,
			  const struct tickmap_code_event *event)
{
	size_t chunks = source->chunks.count;

	source->any_line = true;
	if (source->asked_only && !is_asked(loader, event->avma, event->size))
		return true;
	if (!chunks ||
	    source->chunks.items[chunks - 1].when != source->chunk_ns) {
		struct tickmap_map_chunk *chunk =
			tickmap_vec_push(&source->chunks);
		if (!chunk)
			return false;
		*chunk = (struct tickmap_map_chunk) {
			.when = source->chunk_ns,
			.first_line = source->lines.count,
		};
	}
	struct tickmap_map_line *line = tickmap_vec_push(&source->lines);
	if (line)
		*line = (struct tickmap_map_line) {
			.avma = event->avma,
			.size = (uint32_t)event->size,
			.name = tickmap_intern(loader->profile->strings,
					       event->name, event->name_length),
		};
	return line;
}

/* The first one from `at` on that no line has yet; each leads to the next. */
static uint32_t next_free(uint32_t *next, uint32_t at)
{
	uint32_t end = at;

	while (next[end] != end)
		end = next[end];
	while (next[at] != end) {
		uint32_t behind = next[at];
		next[at] = end;
		at = behind;
	}
	return end;
}

bool tickmap_maplines_choose(struct tickmap_loader *loader,
			     struct tickmap_map_line *lines, size_t count)
{
	uint32_t *next;

	if (!may_choose(loader) || !count)
		return true;
	if (!find_asked(loader))
		return false;
	next = malloc((loader->asked.count + 1) * sizeof(*next));
	if (!next)
		return false;
	for (uint32_t i = 0; i <= loader->asked.count; i++)
		next[i] = i;
	for (size_t i = count; i-- > 0;) {
		struct tickmap_map_line *line = &lines[i];
		uint32_t at = next_free(
			next, (uint32_t)first_asked(loader, line->avma));
		bool won = false;
		while (line->size && at < loader->asked.count &&
		       loader->asked.items[at] - line->avma < line->size) {
			won = true;
			next[at] = at + 1;
			at = next_free(next, at + 1);
		}
		if (!won)
			line->size = 0;
	}
	free(next);
	return true;
}

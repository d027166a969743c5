/* SPDX-License-Identifier: MIT */
#include "timeline/segments.h"

#include "base/vec.h"

#include <string.h>

/*
 * Sorted runs of at most RUN segments behind one sorted list of where each run
 * begins: two binary searches find an address, and a change moves at most one
 * run. A tree's pointers would cost a cache miss at every level instead.
 */
enum { RUN = 128 };

struct run {
	unsigned count; /* never 0 */
	struct tickmap_segment items[RUN];
};

struct entry {
	uint64_t start; /* of the run's first segment */
	struct run *run;
};

struct tickmap_segments {
	TICKMAP_VEC(struct entry) runs;
	size_t count;
};

/* The last address rather than the end, which is 0 at the top. */
static uint64_t last_of(const struct tickmap_segment *segment)
{
	return segment->end - 1;
}

struct tickmap_segments *tickmap_segments_new(void)
{
	return calloc(1, sizeof(struct tickmap_segments));
}

void tickmap_segments_empty(struct tickmap_segments *segments)
{
	for (size_t i = 0; i < segments->runs.count; i++)
		free(segments->runs.items[i].run);
	tickmap_vec_free(&segments->runs);
	segments->count = 0;
}

void tickmap_segments_free(struct tickmap_segments *segments)
{
	if (!segments)
		return;
	tickmap_segments_empty(segments);
	free(segments);
}

struct tickmap_segments *
tickmap_segments_clone(const struct tickmap_segments *segments)
{
	struct tickmap_segments *copy = tickmap_segments_new();

	if (!copy || !tickmap_vec_reserve(&copy->runs, segments->runs.count))
		goto fail;
	for (size_t i = 0; i < segments->runs.count; i++) {
		const struct entry *from = &segments->runs.items[i];
		struct run *run = malloc(sizeof(*run));
		if (!run)
			goto fail;
		run->count = from->run->count;
		memcpy(run->items, from->run->items,
		       run->count * sizeof(run->items[0]));
		copy->runs.items[copy->runs.count++] =
			(struct entry) { .start = from->start, .run = run };
	}
	copy->count = segments->count;
	return copy;
fail:
	tickmap_segments_free(copy);
	return NULL;
}

/* How many runs begin at or before the address. */
static size_t runs_up_to(const struct tickmap_segments *segments,
			 uint64_t address)
{
	const struct entry *items = segments->runs.items;
	size_t low = 0, high = segments->runs.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (items[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static unsigned items_up_to(const struct run *run, uint64_t address)
{
	unsigned low = 0, high = run->count;

	while (low < high) {
		unsigned middle = (low + high) / 2;
		if (run->items[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct tickmap_segment *
tickmap_segments_find(const struct tickmap_segments *segments, uint64_t address)
{
	size_t r = runs_up_to(segments, address);
	if (!r)
		return NULL;
	const struct run *run = segments->runs.items[r - 1].run;
	const struct tickmap_segment *found =
		&run->items[items_up_to(run, address) - 1];
	return last_of(found) >= address ? found : NULL;
}

const struct tickmap_segment *
tickmap_segments_next(const struct tickmap_segments *segments, uint64_t address)
{
	const struct tickmap_segment *found =
		tickmap_segments_find(segments, address);
	size_t r = runs_up_to(segments, address);
	if (found)
		return found;
	if (r) {
		const struct run *run = segments->runs.items[r - 1].run;
		unsigned i = items_up_to(run, address);
		if (i < run->count)
			return &run->items[i];
	}
	return r < segments->runs.count ? &segments->runs.items[r].run->items[0]
					: NULL;
}

void tickmap_segments_each(const struct tickmap_segments *segments,
			   tickmap_segment_cut each, void *context)
{
	for (size_t r = 0; r < segments->runs.count; r++) {
		const struct run *run = segments->runs.items[r].run;
		for (unsigned i = 0; i < run->count; i++)
			each(context, &run->items[i]);
	}
}

size_t tickmap_segments_count(const struct tickmap_segments *segments)
{
	return segments->count;
}

/* Splits run r if it could not take two more segments: in the middle, or where
 * the next one comes behind all of it, so that those in order leave full runs.
 */
static bool make_room(struct tickmap_segments *segments, size_t r,
		      uint64_t start)
{
	struct entry *items;
	struct run *run, *upper;

	if (segments->runs.count &&
	    segments->runs.items[r].run->count + 2 <= RUN)
		return true;
	if (!tickmap_vec_reserve(&segments->runs, segments->runs.count + 1))
		return false;
	upper = malloc(sizeof(*upper));
	if (!upper)
		return false;
	items = segments->runs.items;
	if (!segments->runs.count) {
		upper->count = 0;
		items[segments->runs.count++] = (struct entry) { .run = upper };
		return true;
	}
	run = items[r].run;
	upper->count = start > run->items[run->count - 1].start ? 1 : RUN / 2;
	run->count -= upper->count;
	memcpy(upper->items, run->items + run->count,
	       upper->count * sizeof(run->items[0]));
	memmove(items + r + 2, items + r + 1,
		(segments->runs.count - r - 1) * sizeof(*items));
	items[r + 1] =
		(struct entry) { .start = upper->items[0].start, .run = upper };
	segments->runs.count++;
	return true;
}

/* What a change leaves of the segments that it overlaps. */
struct rest {
	struct tickmap_segment left, right;
	bool has_left, has_right;
};

/* Takes [start, last] from `segment`; what remains goes to `rest`. */
static void take(const struct tickmap_segment *segment, uint64_t start,
		 uint64_t last, struct rest *rest, tickmap_segment_cut cut,
		 void *context)
{
	struct tickmap_segment part = *segment;

	if (part.start < start) {
		rest->left = part;
		rest->left.end = start;
		rest->has_left = true;
		part.start = start;
	}
	if (last_of(&part) > last) {
		rest->right = part;
		rest->right.start = last + 1;
		rest->has_right = true;
		part.end = last + 1;
	}
	if (cut)
		cut(context, &part);
}

/* Takes the overlapped segments of one run from position i on; how many. */
static unsigned take_run(const struct run *run, unsigned i, uint64_t start,
			 uint64_t last, struct rest *rest,
			 tickmap_segment_cut cut, void *context)
{
	unsigned first = i;

	for (; i < run->count && run->items[i].start <= last; i++)
		take(&run->items[i], start, last, rest, cut, context);
	return i - first;
}

/* Puts `count` new segments in place of `gone` old ones. */
static void splice(struct run *run, unsigned at, unsigned gone,
		   const struct tickmap_segment *items, unsigned count)
{
	memmove(run->items + at + count, run->items + at + gone,
		(run->count - at - gone) * sizeof(*items));
	if (count)
		memcpy(run->items + at, items, count * sizeof(*items));
	run->count = run->count - gone + count;
}

/* Takes what lies in the runs behind r; drops those that become empty. */
static void take_behind(struct tickmap_segments *segments, size_t r,
			uint64_t start, uint64_t last, struct rest *rest,
			tickmap_segment_cut cut, void *context)
{
	struct entry *items = segments->runs.items;
	size_t end = r + 1;

	for (; end < segments->runs.count && items[end].start <= last; end++) {
		struct run *run = items[end].run;
		unsigned gone =
			take_run(run, 0, start, last, rest, cut, context);
		segments->count -= gone;
		if (gone < run->count) {
			splice(run, 0, gone, NULL, 0);
			items[end].start = run->items[0].start;
			break;
		}
		free(run);
	}
	memmove(items + r + 1, items + end,
		(segments->runs.count - end) * sizeof(*items));
	segments->runs.count -= end - r - 1;
}

static bool change(struct tickmap_segments *segments, uint64_t start,
		   uint64_t size, const uint64_t *owner,
		   tickmap_segment_cut cut, void *context)
{
	uint64_t last =
		size - 1 > UINT64_MAX - start ? UINT64_MAX : start + size - 1;
	struct rest rest = { .has_left = false };
	struct tickmap_segment put[3];
	unsigned at, gone, count = 0;
	struct run *run;
	size_t r;

	if (!size || (!owner && !segments->count))
		return true;
	r = runs_up_to(segments, start);
	r -= r > 0;
	if (!make_room(segments, r, start))
		return false;
	/* Did the split send us to the upper half? */
	if (r + 1 < segments->runs.count &&
	    segments->runs.items[r + 1].start <= start)
		r++;
	run = segments->runs.items[r].run;
	at = items_up_to(run, start);
	if (at && last_of(&run->items[at - 1]) >= start)
		at--;

	gone = take_run(run, at, start, last, &rest, cut, context);
	if (at + gone == run->count)
		take_behind(segments, r, start, last, &rest, cut, context);
	if (rest.has_left)
		put[count++] = rest.left;
	if (owner)
		put[count++] = (struct tickmap_segment) { .start = start,
							  .end = last + 1,
							  .owner = *owner,
							  .origin = start };
	if (rest.has_right)
		put[count++] = rest.right;
	splice(run, at, gone, put, count);
	segments->count += count;
	segments->count -= gone;
	if (run->count) {
		segments->runs.items[r].start = run->items[0].start;
		return true;
	}
	free(run);
	segments->runs.count--;
	memmove(segments->runs.items + r, segments->runs.items + r + 1,
		(segments->runs.count - r) * sizeof(struct entry));
	return true;
}

bool tickmap_segments_set(struct tickmap_segments *segments, uint64_t start,
			  uint64_t size, uint64_t owner,
			  tickmap_segment_cut cut, void *context)
{
	return change(segments, start, size, &owner, cut, context);
}

bool tickmap_segments_clear(struct tickmap_segments *segments, uint64_t start,
			    uint64_t size, tickmap_segment_cut cut,
			    void *context)
{
	return change(segments, start, size, NULL, cut, context);
}

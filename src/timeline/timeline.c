/* SPDX-License-Identifier: MIT */
/*
 * Sealing sweeps the events in the order of time over one set of segments a
 * layer; each part that loses its owner becomes a finished rectangle of the
 * layer's history. Questions only go to the histories.
 *
 * A forked child does not copy its parent's state: what it has not touched
 * itself is asked from the parent at the time of the fork. So that it can tell
 * "never touched" from "freed", a forked timeline keeps what was freed as
 * holes.
 */
#include "timeline/timeline.h"

#include "platform/platform.h"
#include "timeline/layers.h"
#include "timeline/placings.h"
#include "timeline/segments.h"

#include <string.h>

enum kind { LOAD, MOVE, EXEC, FORK };

struct event {
	uint64_t when, latest;
	uint64_t avma, size, old_avma, owner;
	uint32_t order;
	enum kind kind;
	enum tickmap_layer layer;
};

struct events {
	uint32_t count, capacity;
	struct event items[];
};

/* Of a forked process. */
struct descent {
	struct tickmap_timeline *parent; /* borrowed */
	uint64_t fork_when;
	uint64_t exec_when; /* first exec after the fork */
	bool has_exec;
	/* Whom to ask for what was inherited, and about when: the nearest
	 * ancestor that has something to say. Known once sealed. */
	const struct tickmap_timeline *heir_of;
	uint64_t heir_when;
};

/* A recording may have very many of them, with next to nothing in each. */
struct tickmap_timeline {
	struct events *events;
	struct descent *descent;
	struct tickmap_layers *layers;
	struct tickmap_placings *placings; /* of all layers */
	bool is_parent;
};

/* Of nobody. */
static const struct tickmap_placing nobody = { .owner = TICKMAP_NO_OWNER };

struct tickmap_timeline *tickmap_timeline_new(void)
{
	return calloc(1, sizeof(struct tickmap_timeline));
}

static void drop_index(struct tickmap_timeline *timeline)
{
	tickmap_layers_free(timeline->layers);
	timeline->layers = NULL;
	tickmap_placings_free(timeline->placings);
	timeline->placings = NULL;
}

void tickmap_timeline_free(struct tickmap_timeline *timeline)
{
	if (!timeline)
		return;
	drop_index(timeline);
	free(timeline->events);
	free(timeline->descent);
	free(timeline);
}

static uint32_t event_count(const struct tickmap_timeline *timeline)
{
	return timeline->events ? timeline->events->count : 0;
}

static bool grow_events(struct tickmap_timeline *timeline)
{
	size_t count = event_count(timeline);
	size_t capacity = count + count / 2 + 1;
	struct events *events;

	if (capacity > UINT32_MAX)
		return false;
	events = realloc(timeline->events,
			 sizeof(*events) + capacity * sizeof(struct event));
	if (!events)
		return false;
	events->count = (uint32_t)count;
	events->capacity = (uint32_t)capacity;
	timeline->events = events;
	return true;
}

static bool add_event(struct tickmap_timeline *timeline, struct event event)
{
	if ((!timeline->events ||
	     timeline->events->count == timeline->events->capacity) &&
	    !grow_events(timeline))
		return false;
	event.order = timeline->events->count;
	timeline->events->items[timeline->events->count++] = event;
	return true;
}

bool tickmap_timeline_load(struct tickmap_timeline *timeline,
			   enum tickmap_layer layer, uint64_t when,
			   uint64_t avma, uint64_t size, uint64_t owner)
{
	return add_event(timeline, (struct event) { .kind = LOAD,
						    .layer = layer,
						    .when = when,
						    .latest = when,
						    .avma = avma,
						    .size = size,
						    .owner = owner });
}

bool tickmap_timeline_load_within(struct tickmap_timeline *timeline,
				  uint64_t when, uint64_t latest, uint64_t avma,
				  uint64_t size, uint64_t owner)
{
	return add_event(timeline, (struct event) { .kind = LOAD,
						    .layer = TICKMAP_LAYER_CODE,
						    .when = when,
						    .latest = latest,
						    .avma = avma,
						    .size = size,
						    .owner = owner });
}

bool tickmap_timeline_move(struct tickmap_timeline *timeline, uint64_t when,
			   uint64_t old_avma, uint64_t avma, uint64_t size,
			   uint64_t owner)
{
	return tickmap_timeline_move_within(timeline, when, when, old_avma,
					    avma, size, owner);
}

bool tickmap_timeline_move_within(struct tickmap_timeline *timeline,
				  uint64_t when, uint64_t latest,
				  uint64_t old_avma, uint64_t avma,
				  uint64_t size, uint64_t owner)
{
	return add_event(timeline, (struct event) { .kind = MOVE,
						    .when = when,
						    .latest = latest,
						    .old_avma = old_avma,
						    .avma = avma,
						    .size = size,
						    .owner = owner });
}

bool tickmap_timeline_exec(struct tickmap_timeline *timeline, uint64_t when)
{
	return add_event(timeline,
			 (struct event) { .kind = EXEC, .when = when });
}

static struct tickmap_timeline *
parent_of(const struct tickmap_timeline *timeline)
{
	return timeline->descent ? timeline->descent->parent : NULL;
}

bool tickmap_timeline_fork(struct tickmap_timeline *timeline, uint64_t when,
			   struct tickmap_timeline *parent)
{
	/* Process ids are used again: nobody is its own ancestor. */
	if (timeline->is_parent)
		for (struct tickmap_timeline *t = parent; t; t = parent_of(t))
			if (t == timeline)
				return true;
	if (timeline == parent || timeline->descent)
		return true;
	timeline->descent = calloc(1, sizeof(*timeline->descent));
	if (!timeline->descent ||
	    !add_event(timeline, (struct event) { .kind = FORK, .when = when }))
		return false;
	parent->is_parent = true;
	timeline->descent->parent = parent;
	timeline->descent->fork_when = when;
	return true;
}

/* --- who owns: in this timeline and its ancestors --- */

static struct tickmap_placing
placing_of(const struct tickmap_timeline *timeline, struct tickmap_piece piece)
{
	return tickmap_placings_get(timeline->placings, piece.number,
				    piece.since);
}

static void lower(uint64_t *reach, uint64_t other)
{
	if (other < *reach)
		*reach = other;
}

/*
 * The owner in the layer, if there is one. `reach`: lowered to the last address
 * for which the answer holds; may be NULL.
 */
static bool look_up(const struct tickmap_timeline *timeline,
		    enum tickmap_layer l, uint64_t when, uint64_t avma,
		    uint64_t *reach, struct tickmap_placing *ret_placing)
{
	for (;;) {
		const struct descent *descent = timeline->descent;
		struct tickmap_history owned_room, holes_room;
		const struct tickmap_history *owned = tickmap_layers_history(
			timeline->layers, TICKMAP_OWNED + l, &owned_room);
		const struct tickmap_history *holes;
		struct tickmap_piece piece;
		bool found = tickmap_history_at(owned, avma, when, &piece);
		if (found)
			*ret_placing = placing_of(timeline, piece);
		if (found && !reach)
			return true;
		holes = tickmap_layers_history(timeline->layers,
					       TICKMAP_HOLES + l, &holes_room);
		if (reach) {
			lower(reach, tickmap_history_reach(owned, avma));
			lower(reach, tickmap_history_reach(holes, avma));
		}
		if (found)
			return true;
		if (!descent || !descent->heir_of ||
		    when < descent->fork_when ||
		    (descent->has_exec && when >= descent->exec_when) ||
		    tickmap_history_at(holes, avma, when, &piece))
			return false;
		when = descent->heir_when;
		timeline = descent->heir_of;
	}
}

/* --- sealing --- */

struct sealing {
	struct tickmap_timeline *timeline;
	TICKMAP_VEC(struct tickmap_placing) placings;
	struct tickmap_history histories[TICKMAP_HISTORIES];
	struct tickmap_segments *now[TICKMAP_LAYERS]; /* owner: a placing */
	bool for_good; /* no event is needed twice */
	bool inherits; /* from the parent, at this time */
	bool failed;
};

/* How a part of a layer ends. */
struct cut {
	struct sealing *sealing;
	enum tickmap_layer layer;
	uint64_t until;
};

static void finish(void *context, const struct tickmap_segment *part)
{
	const struct cut *cut = context;
	const struct tickmap_placing *placing =
		&cut->sealing->placings.items[part->owner];
	struct tickmap_span span = { .first = part->start,
				     .last = part->end - 1,
				     .since = placing->placed,
				     .until = cut->until,
				     .number = (uint32_t)part->owner };
	unsigned kind = placing->is_hole ? TICKMAP_HOLES : TICKMAP_OWNED;

	if (!tickmap_history_add(&cut->sealing->histories[kind + cut->layer],
				 span))
		cut->sealing->failed = true;
}

static void take(struct sealing *s, enum tickmap_layer l, uint64_t when,
		 uint64_t size, struct tickmap_placing placing)
{
	struct cut cut = { .sealing = s, .layer = l, .until = when };
	struct tickmap_placing *place = tickmap_vec_push(&s->placings);

	if (!place) {
		s->failed = true;
		return;
	}
	placing.last = size - 1 > UINT64_MAX - placing.start
			       ? UINT64_MAX
			       : placing.start + size - 1;
	placing.placed = when;
	*place = placing;
	if (!tickmap_segments_set(s->now[l], placing.start, size,
				  s->placings.count - 1, finish, &cut))
		s->failed = true;
}

static void release(struct sealing *s, enum tickmap_layer l, uint64_t when,
		    uint64_t avma, uint64_t size)
{
	struct cut cut = { .sealing = s, .layer = l, .until = when };

	if (s->inherits)
		take(s, l, when, size,
		     (struct tickmap_placing) { .start = avma,
						.is_hole = true });
	else if (!tickmap_segments_clear(s->now[l], avma, size, finish, &cut))
		s->failed = true;
}

/* Ends everything; `until` UINT64_MAX: nothing ends it. */
static void finish_all(struct sealing *s, uint64_t until)
{
	for (int i = 0; i < TICKMAP_LAYERS; i++) {
		struct cut cut = { .sealing = s,
				   .layer = (enum tickmap_layer)i,
				   .until = until };
		tickmap_segments_each(s->now[i], finish, &cut);
		tickmap_segments_empty(s->now[i]);
	}
}

static void apply_load(struct sealing *s, const struct event *event)
{
	if (!event->size)
		return;
	take(s, event->layer, event->when, event->size,
	     (struct tickmap_placing) { .owner = event->owner,
					.start = event->avma,
					.since = event->when,
					.certain = event->latest });
	/* Anonymous memory takes the place of a file, but not of code: code
	 * lives in it. A file takes the place of both. */
	if (event->layer == TICKMAP_LAYER_CODE)
		return;
	if (event->layer == TICKMAP_LAYER_ANON) {
		release(s, TICKMAP_LAYER_FILE, event->when, event->avma,
			event->size);
		return;
	}
	release(s, TICKMAP_LAYER_CODE, event->when, event->avma, event->size);
	release(s, TICKMAP_LAYER_ANON, event->when, event->avma, event->size);
}

/* The code at the address while sealing, as look_up says it afterwards. */
static bool code_now(const struct sealing *s, uint64_t avma, uint64_t *reach,
		     struct tickmap_placing *ret_placing)
{
	const struct descent *descent = s->timeline->descent;
	const struct tickmap_segment *segment =
		tickmap_segments_next(s->now[TICKMAP_LAYER_CODE], avma);

	if (segment && segment->start <= avma) {
		*ret_placing = s->placings.items[segment->owner];
		if (segment->end - 1 < *reach)
			*reach = segment->end - 1;
		return !ret_placing->is_hole;
	}
	if (segment && segment->start - 1 < *reach)
		*reach = segment->start - 1;
	return s->inherits &&
	       look_up(descent->parent, TICKMAP_LAYER_CODE, descent->fork_when,
		       avma, reach, ret_placing);
}

/*
 * Frees what `moved` still owns of [first, last]. All such addresses lie in its
 * own range, so that however large a range a damaged record names, the work
 * stays that of the parts cut before.
 */
static void release_old(struct sealing *s, uint64_t when,
			const struct tickmap_placing *moved, uint64_t first,
			uint64_t last)
{
	if (last > moved->last)
		last = moved->last;
	for (;;) {
		uint64_t reach = last;
		struct tickmap_placing there;
		if (code_now(s, first, &reach, &there) &&
		    there.start == moved->start &&
		    there.owner == moved->owner &&
		    there.placed == moved->placed)
			release(s, TICKMAP_LAYER_CODE, when, first,
				reach - first + 1);
		if (reach >= last)
			return;
		first = reach + 1;
	}
}

static void apply_move(struct sealing *s, const struct event *event)
{
	uint64_t reach = UINT64_MAX, last = event->old_avma + event->size - 1;
	struct tickmap_placing moved;

	if (!event->size)
		return;
	if (!code_now(s, event->old_avma, &reach, &moved) ||
	    (event->owner != TICKMAP_NO_OWNER && moved.owner != event->owner)) {
		if (event->owner == TICKMAP_NO_OWNER)
			release(s, TICKMAP_LAYER_CODE, event->when, event->avma,
				event->size);
		else
			take(s, TICKMAP_LAYER_CODE, event->when, event->size,
			     (struct tickmap_placing) {
				     .owner = event->owner,
				     .start = event->avma,
				     .since = event->when,
				     .certain = event->latest });
		return;
	}
	release_old(s, event->when, &moved, event->old_avma,
		    last < event->old_avma ? UINT64_MAX : last);
	moved.start = event->avma;
	moved.certain = event->latest;
	take(s, TICKMAP_LAYER_CODE, event->when, event->size, moved);
}

static void apply(struct sealing *s, const struct event *event)
{
	switch (event->kind) {
	case LOAD:
		apply_load(s, event);
		break;
	case MOVE:
		apply_move(s, event);
		break;
	case EXEC:
		finish_all(s, event->when);
		if (s->inherits) {
			s->timeline->descent->has_exec = true;
			s->timeline->descent->exec_when = event->when;
		}
		s->inherits = false;
		break;
	case FORK:
		finish_all(s, event->when);
		s->inherits = true;
		break;
	}
}

static int compare_events(const void *a, const void *b)
{
	const struct event *x = a, *y = b;

	if (x->when != y->when)
		return x->when < y->when ? -1 : 1;
	return (x->order > y->order) - (x->order < y->order);
}

static void sort_events(struct tickmap_timeline *timeline)
{
	uint32_t count = event_count(timeline), sorted = 1;

	while (sorted < count &&
	       compare_events(&timeline->events->items[sorted - 1],
			      &timeline->events->items[sorted]) <= 0)
		sorted++;
	if (sorted < count)
		qsort(timeline->events->items, count, sizeof(struct event),
		      compare_events);
}

enum { MANY = 1 << 14 };

static bool sweep(struct sealing *s)
{
	struct tickmap_timeline *timeline = s->timeline;

	for (int i = 0; i < TICKMAP_LAYERS; i++)
		if (!(s->now[i] = tickmap_segments_new()))
			return false;
	for (uint32_t i = 0; i < event_count(timeline) && !s->failed; i++) {
		struct event *event = &timeline->events->items[i];
		apply(s, event);
		if (s->for_good && i % MANY == MANY - 1)
			tickmap_platform_forget(event + 1 - MANY,
						MANY * sizeof(*event));
	}
	finish_all(s, UINT64_MAX);
	return !s->failed;
}

static bool is_silent(const struct tickmap_timeline *timeline)
{
	return !timeline->layers &&
	       !(timeline->descent && timeline->descent->has_exec);
}

/* A parent that only inherited itself has nothing to add, and a long line of
 * them would be a long way for each question. It was sealed before. */
static void find_heritage(struct descent *descent)
{
	const struct tickmap_timeline *parent = descent->parent;
	const struct descent *above = parent->descent;

	descent->has_exec = false;
	descent->heir_of = parent;
	descent->heir_when = descent->fork_when;
	if (!is_silent(parent))
		return;
	descent->heir_of = above && above->fork_when <= descent->fork_when
				   ? above->heir_of
				   : NULL;
	descent->heir_when = above ? above->heir_when : 0;
}

static bool apply_all(struct sealing *s)
{
	struct tickmap_timeline *timeline = s->timeline;
	bool good;

	drop_index(timeline);
	if (timeline->descent)
		find_heritage(timeline->descent);
	sort_events(timeline);
	good = sweep(s);
	for (int i = 0; i < TICKMAP_LAYERS; i++)
		tickmap_segments_free(s->now[i]);
	return good;
}

static bool build_all(struct sealing *s)
{
	struct tickmap_timeline *timeline = s->timeline;

	if (!s->placings.count)
		return true;
	timeline->placings =
		tickmap_placings_pack(s->placings.items, s->placings.count);
	tickmap_vec_free(&s->placings);
	timeline->layers = tickmap_layers_pack(s->histories);
	return timeline->placings && timeline->layers;
}

static bool seal(struct tickmap_timeline *timeline, bool for_good)
{
	struct sealing s = { .timeline = timeline, .for_good = for_good };
	bool good = apply_all(&s);

	/* Before as much memory is needed for what the questions go to. */
	if (for_good) {
		free(timeline->events);
		timeline->events = NULL;
	}
	good = good && build_all(&s);
	tickmap_vec_free(&s.placings);
	for (unsigned i = 0; i < TICKMAP_HISTORIES; i++)
		tickmap_history_free(&s.histories[i]);
	return good;
}

bool tickmap_timeline_seal(struct tickmap_timeline *timeline)
{
	return seal(timeline, false);
}

bool tickmap_timeline_close(struct tickmap_timeline *timeline)
{
	return seal(timeline, true);
}

/* --- questions --- */

static const struct tickmap_history *
code_of(const struct tickmap_timeline *timeline, struct tickmap_history *room)
{
	return tickmap_layers_history(timeline->layers,
				      TICKMAP_OWNED + TICKMAP_LAYER_CODE, room);
}

static struct tickmap_owner owner_of(const struct tickmap_placing *placing,
				     enum tickmap_layer layer)
{
	return (struct tickmap_owner) { .owner = placing->owner,
					.layer = layer,
					.start = placing->start,
					.since = placing->since,
					.placed = placing->placed,
					.certain = placing->certain };
}

struct tickmap_owner
tickmap_timeline_find(const struct tickmap_timeline *timeline, uint64_t when,
		      uint64_t avma, uint64_t slack_ns)
{
	static const enum tickmap_layer order[] = { TICKMAP_LAYER_CODE,
						    TICKMAP_LAYER_FILE };
	struct tickmap_placing found;
	struct tickmap_piece next;
	struct tickmap_history room;

	for (int i = 0; i < 2; i++)
		if (look_up(timeline, order[i], when, avma, NULL, &found))
			return owner_of(&found, order[i]);
	if (slack_ns &&
	    tickmap_history_after(code_of(timeline, &room), avma, when,
				  &next) &&
	    next.since - when <= slack_ns) {
		found = placing_of(timeline, next);
		struct tickmap_owner owner =
			owner_of(&found, TICKMAP_LAYER_CODE);
		owner.early = true;
		return owner;
	}
	if (!look_up(timeline, TICKMAP_LAYER_ANON, when, avma, NULL, &found))
		found = nobody;
	return owner_of(&found, TICKMAP_LAYER_ANON);
}

/* The code that last ended here, and when, as far as that is known: an
 * inherited owner lived at least until the fork. False: there was none. */
static bool ended_before(const struct tickmap_timeline *timeline, uint64_t when,
			 uint64_t avma, uint64_t *ret_when,
			 struct tickmap_placing *ret_placing)
{
	const struct tickmap_timeline *t = timeline;
	const struct descent *descent = t->descent;
	struct tickmap_history room;
	struct tickmap_piece piece;
	bool found =
		tickmap_history_before(code_of(t, &room), avma, when, &piece);

	if (found)
		when = piece.until;
	while (!found && descent && descent->heir_of &&
	       when >= descent->fork_when) {
		when = descent->heir_when;
		t = descent->heir_of;
		descent = t->descent;
		const struct tickmap_history *code = code_of(t, &room);
		found = tickmap_history_at(code, avma, when, &piece);
		if (found)
			break;
		found = tickmap_history_before(code, avma, when, &piece);
		if (found)
			when = piece.until;
	}
	*ret_when = when;
	*ret_placing = found ? placing_of(t, piece) : nobody;
	return found;
}

struct tickmap_owner
tickmap_timeline_before(const struct tickmap_timeline *timeline, uint64_t when,
			uint64_t avma, uint64_t *ret_until)
{
	struct tickmap_placing placing;

	ended_before(timeline, when, avma, ret_until, &placing);
	return owner_of(&placing, TICKMAP_LAYER_CODE);
}

int tickmap_timeline_elsewhen(const struct tickmap_timeline *timeline,
			      uint64_t when, uint64_t avma)
{
	struct tickmap_piece after;
	struct tickmap_history room;
	bool comes = tickmap_history_after(code_of(timeline, &room), avma, when,
					   &after);
	struct tickmap_placing before;
	uint64_t ended;

	if (!ended_before(timeline, when, avma, &ended, &before))
		return comes ? 1 : 0;
	return comes && after.since - when < when - ended ? 1 : -1;
}

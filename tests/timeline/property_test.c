/* SPDX-License-Identifier: MIT */
/*
 * Random event streams, asked at every time and address, against the model.
 * TICKMAP_SEED=N repeats a run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those first */
#include <cmocka.h>

#include "model.h"
#include "timeline/timeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FAMILY = 4, STREAMS = 2000 };

static uint64_t seed = 20261130;
static uint64_t state;

static uint64_t dice(uint64_t sides)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % sides;
}

static void seed_stream(uint64_t number)
{
	state = (seed + number) * UINT64_C(0x9e3779b97f4a7c15) + 1;
	for (int i = 0; i < 8; i++)
		dice(2);
}

struct family {
	uint64_t base;
	struct tickmap_timeline *timelines[FAMILY];
	struct model_timeline models[FAMILY];
	struct model_state states[FAMILY][TIMES];
};

static uint64_t random_size(void)
{
	if (dice(20) == 0)
		return UINT64_MAX - dice(2);
	return dice(12);
}

/* Callers' numbers are not all small. */
static uint64_t named(uint64_t n)
{
	return n & 3 ? n : n << 32 | n;
}

static struct model_event random_event(uint64_t n)
{
	static const int layers[] = { 0, 0, 0, 0, 1, 1, 2, 2 };
	struct model_event event = { .owner = named(n) };
	uint64_t kind = dice(16);

	event.kind = kind == 0 ? M_EXEC : kind < 4 ? M_MOVE : M_LOAD;
	event.layer = layers[dice(8)];
	event.when = dice(TIMES);
	event.at = dice(CELLS);
	event.old = dice(CELLS);
	event.size = random_size();
	/* Some moves know whose code it is, rightly or not. */
	if (event.kind == M_MOVE)
		event.owner = dice(2) ? TICKMAP_NO_OWNER : named(dice(n + 1));
	if (event.kind == M_EXEC && dice(2))
		event.kind = M_LOAD;
	return event;
}

static void add(struct family *family, unsigned t, struct model_event event)
{
	struct model_timeline *model = &family->models[t];
	struct tickmap_timeline *timeline = family->timelines[t];
	uint64_t base = family->base;
	bool ok = false;

	switch (event.kind) {
	case M_LOAD:
		ok = tickmap_timeline_load(
			timeline, (enum tickmap_layer)event.layer, event.when,
			base + event.at, event.size, event.owner);
		break;
	case M_MOVE:
		ok = tickmap_timeline_move(timeline, event.when,
					   base + event.old, base + event.at,
					   event.size, event.owner);
		break;
	case M_EXEC:
		ok = tickmap_timeline_exec(timeline, event.when);
		break;
	case M_FORK:
		ok = tickmap_timeline_fork(
			timeline, event.when,
			family->timelines[model->parent - family->models]);
		break;
	}
	assert_true(ok);
	model->events[model->count++] = event;
}

static void make_family(struct family *family)
{
	static const uint64_t bases[] = { 0, 0x7f0000001000,
					  UINT64_MAX - CELLS + 1 };
	uint64_t n = 0;

	memset(family, 0, sizeof(*family));
	family->base = bases[dice(3)];
	for (unsigned t = 0; t < FAMILY; t++) {
		unsigned count = 1 + (unsigned)dice(30);
		unsigned fork_at = (unsigned)dice(count);
		family->timelines[t] = tickmap_timeline_new();
		family->models[t].id = t;
		for (unsigned i = 0; i < count; i++) {
			if (t && i == fork_at && dice(4)) {
				family->models[t].parent =
					&family->models[dice(t)];
				add(family, t,
				    (struct model_event) {
					    .kind = M_FORK,
					    .when = dice(TIMES) });
			}
			add(family, t, random_event(n++));
		}
		assert_true(tickmap_timeline_seal(family->timelines[t]));
	}
}

static void free_family(struct family *family)
{
	for (unsigned t = 0; t < FAMILY; t++)
		tickmap_timeline_free(family->timelines[t]);
}

/* Code that came to the cell by this timeline's own event at this time. */
static bool comes(const struct family *family, unsigned t, uint64_t when,
		  unsigned i)
{
	const struct model_cell *cell = &family->states[t][when].cells[0][i];

	return cell->owner != TICKMAP_NO_OWNER && cell->placed == when &&
	       cell->placing >> 32 == t;
}

static struct tickmap_owner expect(const struct family *family, unsigned t,
				   uint64_t when, unsigned i, uint64_t slack)
{
	struct tickmap_owner owner = { .owner = TICKMAP_NO_OWNER,
				       .layer = TICKMAP_LAYER_ANON };
	const struct model_cell *found = NULL;

	for (int l = 0; l < 3 && !found; l++) {
		const struct model_cell *cell =
			&family->states[t][when].cells[l][i];
		for (uint64_t next = when + 1;
		     l == 2 && !found && next < TIMES && next - when <= slack;
		     next++) {
			if (!comes(family, t, next, i))
				continue;
			found = &family->states[t][next].cells[0][i];
			owner.layer = TICKMAP_LAYER_CODE;
			owner.early = true;
		}
		if (found || cell->owner == TICKMAP_NO_OWNER)
			continue;
		found = cell;
		owner.layer = (enum tickmap_layer)l;
	}
	if (found) {
		owner.owner = found->owner;
		owner.start = found->start + family->base;
		owner.since = found->since;
	}
	return owner;
}

static bool same(struct tickmap_owner a, struct tickmap_owner b)
{
	return a.owner == b.owner && a.layer == b.layer && a.start == b.start &&
	       a.since == b.since && a.early == b.early;
}

static bool code_before(const struct model_timeline *model, uint64_t when,
			unsigned i)
{
	struct model_state at;

	for (uint64_t now = 0; now <= when; now++) {
		model_replay(model, now, NONE, &at);
		if (at.cells[0][i].owner != TICKMAP_NO_OWNER)
			return true;
	}
	for (unsigned k = 0; k < model->count; k++)
		if (model->events[k].kind == M_FORK &&
		    model->events[k].when <= when &&
		    code_before(model->parent, model->events[k].when, i))
			return true;
	return false;
}

static bool elsewhen_is_right(const struct family *family, unsigned t,
			      uint64_t when, unsigned i)
{
	int answer = tickmap_timeline_elsewhen(family->timelines[t], when,
					       family->base + i);
	bool before = code_before(&family->models[t], when, i);
	bool after = false;

	for (uint64_t next = when + 1; next < TIMES; next++)
		after = after || comes(family, t, next, i);
	if (before && after)
		return answer != 0;
	return answer == (before ? -1 : after ? 1 : 0);
}

/* How many of all answers differ from the model with this mistake in it. */
static unsigned long differences(enum mistake mistake, uint64_t stream,
				 unsigned long *asked)
{
	struct family *family = malloc(sizeof(*family));
	unsigned long differ = 0;

	assert_non_null(family);
	seed_stream(stream);
	make_family(family);
	for (unsigned t = 0; t < FAMILY; t++)
		for (uint64_t when = 0; when < TIMES; when++)
			model_replay(&family->models[t], when, mistake,
				     &family->states[t][when]);
	for (unsigned t = 0; t < FAMILY; t++)
		for (uint64_t when = 0; when < TIMES; when++)
			for (unsigned i = 0; i < CELLS; i++) {
				uint64_t slack = i % 2 ? dice(8) : 0;
				struct tickmap_owner found =
					tickmap_timeline_find(
						family->timelines[t], when,
						family->base + i, slack);
				struct tickmap_owner right =
					expect(family, t, when, i, slack);
				++*asked;
				differ += !same(found, right);
				if (mistake == NONE && stream % 16 == 0 &&
				    dice(16) == 0 &&
				    family->states[t][when].cells[0][i].owner ==
					    TICKMAP_NO_OWNER)
					differ += !elsewhen_is_right(family, t,
								     when, i);
			}
	free_family(family);
	free(family);
	return differ;
}

static void agrees_with_the_model_at_every_time_and_address(void **unused)
{
	unsigned long asked = 0;

	(void)unused;
	print_message("seed %llu, %d families of %d timelines\n",
		      (unsigned long long)seed, STREAMS, FAMILY);
	for (uint64_t stream = 0; stream < STREAMS; stream++) {
		unsigned long differ = differences(NONE, stream, &asked);
		if (differ)
			fail_msg("stream %llu: %lu answers differ",
				 (unsigned long long)stream, differ);
	}
	print_message("%lu answers agree\n", asked);
}

static void sees_every_mistake_in_the_rule(void **unused)
{
	(void)unused;
	for (enum mistake mistake = NONE + 1; mistake < MISTAKES; mistake++) {
		unsigned long asked = 0, differ = 0;
		for (uint64_t stream = 0; stream < 40; stream++)
			differ += differences(mistake, stream, &asked);
		print_message("mistake %d: %lu of %lu answers differ\n",
			      (int)mistake, differ, asked);
		assert_int_not_equal(differ, 0);
	}
}

/* --- one large stream, each question answered by a walk over all of it --- */

enum { BIG = 20000, QUESTIONS = 4000, BIG_SPACE = 4096, BIG_TIME = 5000 };

static bool big_covers(const struct model_event *event, uint64_t avma)
{
	return avma >= event->at && avma - event->at < event->size;
}

static uint64_t big_expect(const struct model_event *events, uint64_t when,
			   uint64_t avma)
{
	const struct model_event *best[3] = { NULL };

	for (unsigned i = 0; i < BIG; i++) {
		const struct model_event *event = &events[i];
		if (event->when > when || !big_covers(event, avma))
			continue;
		/* Ties: the later one added is the later one met. */
		if (!best[event->layer] ||
		    event->when >= best[event->layer]->when)
			best[event->layer] = event;
	}
	for (int below = 1; below < 3; below++) {
		const struct model_event *file = best[1], *other;
		other = best[below == 1 ? 0 : 2];
		if (!file || !other)
			continue;
		bool file_later = file->when != other->when
					  ? file->when > other->when
					  : file > other;
		if (file_later)
			best[below == 1 ? 0 : 2] = NULL;
		else if (below == 2)
			best[1] = NULL;
	}
	for (int l = 0; l < 3; l++)
		if (best[l])
			return best[l]->owner;
	return TICKMAP_NO_OWNER;
}

static void agrees_with_a_walk_over_twenty_thousand_events(void **unused)
{
	static const int layers[] = { 0, 0, 0, 0, 0, 0, 1, 2 };
	struct tickmap_timeline *timeline = tickmap_timeline_new();
	struct model_event *events = calloc(BIG, sizeof(*events));
	unsigned owned = 0;

	(void)unused;
	assert_non_null(events);
	seed_stream(STREAMS + 1);
	for (unsigned i = 0; i < BIG; i++) {
		events[i] = (struct model_event) { .layer = layers[dice(8)],
						   .when = dice(BIG_TIME),
						   .at = dice(BIG_SPACE),
						   .size = 1 + dice(24),
						   .owner = i };
		assert_true(tickmap_timeline_load(
			timeline, (enum tickmap_layer)events[i].layer,
			events[i].when, events[i].at, events[i].size, i));
	}
	assert_true(tickmap_timeline_seal(timeline));
	for (unsigned i = 0; i < QUESTIONS; i++) {
		uint64_t when = dice(BIG_TIME), avma = dice(BIG_SPACE + 50);
		uint64_t right = big_expect(events, when, avma);
		assert_int_equal(
			tickmap_timeline_find(timeline, when, avma, 0).owner,
			right);
		owned += right != TICKMAP_NO_OWNER;
	}
	print_message("%u of %d questions have an owner\n", owned, QUESTIONS);
	assert_true(owned > QUESTIONS / 2);
	tickmap_timeline_free(timeline);
	free(events);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			agrees_with_the_model_at_every_time_and_address),
		cmocka_unit_test(sees_every_mistake_in_the_rule),
		cmocka_unit_test(
			agrees_with_a_walk_over_twenty_thousand_events),
	};
	const char *given = getenv("TICKMAP_SEED");
	if (given)
		seed = strtoull(given, NULL, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
#include "timeline/history.h"

#include "timeline/index.h"

enum { FEW = 8 };

void tickmap_history_free(struct tickmap_history *history)
{
	tickmap_index_free(history->index);
	history->index = NULL;
	tickmap_vec_free(&history->spans);
}

bool tickmap_history_add(struct tickmap_history *history,
			 struct tickmap_span span)
{
	struct tickmap_span *place;

	if (span.since >= span.until)
		return true;
	if (history->spans.count >= UINT32_MAX / 4 ||
	    span.number == TICKMAP_NO_NUMBER)
		return false;
	place = tickmap_vec_push(&history->spans);
	if (place)
		*place = span;
	return place != NULL;
}

bool tickmap_history_build(struct tickmap_history *history)
{
	if (history->spans.count <= FEW) {
		tickmap_vec_fit(&history->spans);
		return true;
	}
	history->index =
		tickmap_index_new(history->spans.items, history->spans.count);
	/* Questions go to the index. */
	tickmap_vec_free(&history->spans);
	return history->index;
}

static bool covers(const struct tickmap_span *span, uint64_t avma)
{
	return span->first <= avma && avma <= span->last;
}

static bool has_ended(const struct tickmap_span *span, uint64_t when)
{
	return span->until <= when && span->until != UINT64_MAX;
}

static bool take(const struct tickmap_span *found,
		 struct tickmap_piece *ret_piece)
{
	if (found)
		*ret_piece = (struct tickmap_piece) { .since = found->since,
						      .until = found->until,
						      .number = found->number };
	return found;
}

bool tickmap_history_few_at(const struct tickmap_history *history,
			    uint64_t avma, uint64_t when,
			    struct tickmap_piece *ret_piece)
{
	for (size_t i = 0; i < history->spans.count; i++) {
		const struct tickmap_span *span = &history->spans.items[i];
		if (covers(span, avma) && span->since <= when &&
		    !has_ended(span, when))
			return take(span, ret_piece);
	}
	return false;
}

bool tickmap_history_before(const struct tickmap_history *history,
			    uint64_t avma, uint64_t when,
			    struct tickmap_piece *ret_piece)
{
	const struct tickmap_span *found = NULL;

	if (history->index)
		return tickmap_index_before(history->index, avma, when,
					    ret_piece);
	for (size_t i = 0; i < history->spans.count; i++) {
		const struct tickmap_span *span = &history->spans.items[i];
		if (covers(span, avma) && has_ended(span, when) &&
		    (!found || span->until > found->until))
			found = span;
	}
	return take(found, ret_piece);
}

bool tickmap_history_after(const struct tickmap_history *history, uint64_t avma,
			   uint64_t when, struct tickmap_piece *ret_piece)
{
	const struct tickmap_span *found = NULL;

	if (history->index)
		return tickmap_index_after(history->index, avma, when,
					   ret_piece);
	for (size_t i = 0; i < history->spans.count; i++) {
		const struct tickmap_span *span = &history->spans.items[i];
		if (covers(span, avma) && span->since > when &&
		    (!found || span->since < found->since))
			found = span;
	}
	return take(found, ret_piece);
}

uint64_t tickmap_history_reach(const struct tickmap_history *history,
			       uint64_t avma)
{
	uint64_t reach = UINT64_MAX;

	if (history->index)
		return tickmap_index_reach(history->index, avma);
	for (size_t i = 0; i < history->spans.count; i++) {
		const struct tickmap_span *span = &history->spans.items[i];
		if (span->first > avma && span->first - 1 < reach)
			reach = span->first - 1;
		if (span->last >= avma && span->last < reach)
			reach = span->last;
	}
	return reach;
}

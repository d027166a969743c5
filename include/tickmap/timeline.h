/* SPDX-License-Identifier: MIT */
/*
 * Who owned an address at a time, for one process: the one rule.
 *
 * Event E owns address A at time T when E covers A, E was loaded at or before T
 * and no later event up to T took A away. An overlapping load or a file mapping
 * ends only the overlapped part; a move moves it; an anonymous mapping over it
 * does not end it. A forked child starts with its parent's state at the fork.
 *
 * Owners are numbers of the caller (an index into its own tables). Events may
 * come in any order; ties keep the order in which they were added.
 *
 * Where clocks leave open when code was loaded, it is loaded at the first time
 * that is possible, and each answer says from when on it is certain: ask
 * tickmap_timeline_before for the other candidates.
 *
 * A timeline is its caller's; its parents must outlive it. Adding is for one
 * thread at a time; a sealed one may be asked by many.
 */
#ifndef TICKMAP_TIMELINE_H
#define TICKMAP_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TICKMAP_NO_OWNER UINT64_MAX

/*
 * Layers. A file mapping ends code and anonymous memory that it overlaps; code
 * that came later, on top of a file mapping, wins over it. Anonymous memory
 * ends a file mapping, never code, and answers only when nothing else does.
 */
enum tickmap_layer {
	TICKMAP_LAYER_CODE,
	TICKMAP_LAYER_FILE,
	TICKMAP_LAYER_ANON,
};

struct tickmap_timeline;

struct tickmap_timeline *tickmap_timeline_new(void);
void tickmap_timeline_free(struct tickmap_timeline *timeline);

/* Each returns false when out of memory. Times: ns of one clock. */
bool tickmap_timeline_load(struct tickmap_timeline *timeline,
			   enum tickmap_layer layer, uint64_t when,
			   uint64_t avma, uint64_t size, uint64_t owner);
/* Code that was loaded at some time from `when` to `latest`. */
bool tickmap_timeline_load_within(struct tickmap_timeline *timeline,
				  uint64_t when, uint64_t latest, uint64_t avma,
				  uint64_t size, uint64_t owner);
/*
 * The code of `size` bytes at old_avma now is at avma (its owner the same);
 * what it still owned of the old range is free then. `owner`: whose code that
 * is, if it is known. If another one's is at old_avma, or nothing, that address
 * is stale: then `owner` (or none) owns the new range, and nothing else
 * changes.
 */
bool tickmap_timeline_move(struct tickmap_timeline *timeline, uint64_t when,
			   uint64_t old_avma, uint64_t avma, uint64_t size,
			   uint64_t owner);
bool tickmap_timeline_move_within(struct tickmap_timeline *timeline,
				  uint64_t when, uint64_t latest,
				  uint64_t old_avma, uint64_t avma,
				  uint64_t size, uint64_t owner);
/* exec: everything before it is gone. */
bool tickmap_timeline_exec(struct tickmap_timeline *timeline, uint64_t when);
/* This timeline's state at `when` begins as that of `parent` at that time.
 * The parent outlives the child. At most once. */
bool tickmap_timeline_fork(struct tickmap_timeline *timeline, uint64_t when,
			   struct tickmap_timeline *parent);

/*
 * Ends the adding: builds the index, O(n log n). Parents first; calling it
 * again after more events builds it anew.
 */
bool tickmap_timeline_seal(struct tickmap_timeline *timeline);
/*
 * Seals it for good: nothing may be added any more, and the memory that this
 * would want is given back.
 */
bool tickmap_timeline_close(struct tickmap_timeline *timeline);

struct tickmap_owner {
	uint64_t owner; /* TICKMAP_NO_OWNER: nobody */
	enum tickmap_layer layer;
	uint64_t start; /* where the owner's range began before cuts */
	uint64_t since; /* when it was loaded */
	/* When it came to this address (later than `since` if it was moved),
	 * and from when on it is certain that it had. */
	uint64_t placed, certain;
	bool early; /* found only thanks to the slack */
};

/*
 * Owner of `avma` at `when`. If nobody (or only an anonymous mapping) does, the
 * first code that covers it within the next slack_ns does, `early` set.
 * O(log n) in the number of events.
 */
struct tickmap_owner
tickmap_timeline_find(const struct tickmap_timeline *timeline, uint64_t when,
		      uint64_t avma, uint64_t slack_ns);

/*
 * The code that last ended to own `avma` at or before `when`, and when it did:
 * asked with an owner's `placed`, the one before it. An inherited owner ends no
 * earlier than at the fork. O(log n).
 */
struct tickmap_owner
tickmap_timeline_before(const struct tickmap_timeline *timeline, uint64_t when,
			uint64_t avma, uint64_t *ret_until);

/* Would some code own this address at another time? For reasons: <0 only
 * before `when`, >0 only after, 0 never; both: the nearer one. */
int tickmap_timeline_elsewhen(const struct tickmap_timeline *timeline,
			      uint64_t when, uint64_t avma);

#ifdef __cplusplus
}
#endif

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Evidence is pairs of a stamp and a time. Where both advance in ns, each pair
 * bounds the one offset: floors from below, ceilings from above, and the bounds
 * meet around the truth. Where the unit of the stamps is unknown, their order
 * still holds: a stamp lies behind the floors of all smaller stamps and before
 * the ceilings of all larger ones.
 *
 * The place for fits of a rate: solve() and the two questions at the end.
 */
#include "tickmap/clock.h"

#include "base/vec.h"

#include <string.h>

__extension__ typedef __int128 wide;

/*
 * A claim to use one clock is believed unless the evidence speaks against it
 * by more than this: a runtime may stamp its first functions before it maps
 * the marker of its dump (JavaScriptCore: 6 ms).
 */
#define CLAIM_SLACK_NS ((wide)20000000)
/* A sample may fall just before its code was published. */
#define SAMPLE_SLACK_NS ((wide)1000000)
/* Wider bounds prove an order, but no offset worth saying. */
#define PROOF_NS ((wide)200000000)
/* Where samples say the upper bound, the truth lies close below: a function
 * first runs some ten microseconds after it is stamped. */
#define NEAR_NS ((wide)50000)
/* Two clocks of one machine, both in ns, drift apart by no more. */
#define DRIFT_PPM 2
/* One of so many samples may contradict. */
#define OUTVOTED 100

struct bound {
	uint64_t stamp, time;
	bool sample;
};

struct tickmap_alignment {
	TICKMAP_VEC(struct bound) floors, ceilings;
	struct tickmap_alignment_result result;
	bool nanoseconds;
	bool by_sample; /* the upper bound comes from a sample */
};

struct tickmap_alignment *tickmap_alignment_new(void)
{
	return calloc(1, sizeof(struct tickmap_alignment));
}

void tickmap_alignment_free(struct tickmap_alignment *a)
{
	if (!a)
		return;
	tickmap_vec_free(&a->floors);
	tickmap_vec_free(&a->ceilings);
	free(a);
}

bool tickmap_alignment_floor(struct tickmap_alignment *a, uint64_t stamp,
			     uint64_t time_ns)
{
	struct bound *bound = tickmap_vec_push(&a->floors);

	if (bound)
		*bound = (struct bound) { .stamp = stamp, .time = time_ns };
	return bound;
}

static bool add_ceiling(struct tickmap_alignment *a, struct bound ceiling)
{
	struct bound *bound = tickmap_vec_push(&a->ceilings);

	if (bound)
		*bound = ceiling;
	return bound;
}

bool tickmap_alignment_ceiling(struct tickmap_alignment *a, uint64_t stamp,
			       uint64_t time_ns)
{
	return add_ceiling(a,
			   (struct bound) { .stamp = stamp, .time = time_ns });
}

bool tickmap_alignment_sample(struct tickmap_alignment *a, uint64_t stamp,
			      uint64_t time_ns)
{
	return add_ceiling(a, (struct bound) { .stamp = stamp,
					       .time = time_ns,
					       .sample = true });
}

static wide offset_of(const struct bound *bound)
{
	return (wide)bound->time - (wide)bound->stamp;
}

static int64_t to_i64(wide value)
{
	return value > INT64_MAX   ? INT64_MAX
	       : value < INT64_MIN ? INT64_MIN
				   : (int64_t)value;
}

/* What the evidence says of one offset. */
struct bounds {
	wide low, high;	  /* of what is sure */
	wide sample_high; /* the lowest that a sample says, from low on */
	uint64_t samples; /* all of them */
	uint64_t below;	  /* samples that say less than low */
	bool has_low, has_high, has_sample;
};

static struct bounds bounds_of(const struct tickmap_alignment *a)
{
	struct bounds b = { 0 };

	for (size_t i = 0; i < a->floors.count; i++) {
		wide offset = offset_of(&a->floors.items[i]);
		if (!b.has_low || offset > b.low)
			b.low = offset;
		b.has_low = true;
	}
	for (size_t i = 0; i < a->ceilings.count; i++) {
		wide offset = offset_of(&a->ceilings.items[i]);
		if (a->ceilings.items[i].sample) {
			b.samples++;
			if (b.has_low && offset < b.low) {
				b.below++;
				continue;
			}
			if (!b.has_sample || offset < b.sample_high)
				b.sample_high = offset;
			b.has_sample = true;
		} else {
			if (!b.has_high || offset < b.high)
				b.high = offset;
			b.has_high = true;
		}
	}
	return b;
}

/* Samples that would fall before their code, were stamps times. */
static uint64_t violations_of_claim(const struct tickmap_alignment *a)
{
	uint64_t count = 0;

	for (size_t i = 0; i < a->ceilings.count; i++)
		count += a->ceilings.items[i].sample &&
			 offset_of(&a->ceilings.items[i]) < -SAMPLE_SLACK_NS;
	return count;
}

/* Only a claim that is plainly wrong is given up: half of the samples, or what
 * cannot be otherwise, speaks against it. */
static bool claim_holds(const struct bounds *b, uint64_t violations)
{
	if (b->has_low && b->low > CLAIM_SLACK_NS)
		return false;
	if (b->has_high && b->high < -CLAIM_SLACK_NS)
		return false;
	return violations < 10 || violations <= b->samples / 2;
}

static bool contradicts(const struct bounds *b)
{
	return (b->has_low && b->has_high && b->low > b->high) ||
	       b->below > b->samples / OUTVOTED + (b->samples >= 20);
}

static void conclude(struct tickmap_alignment *a, wide low, wide high)
{
	struct tickmap_alignment_result *r = &a->result;
	wide width = high - low,
	     near = width / 2 < NEAR_NS ? width / 2 : NEAR_NS;

	r->low_ns = to_i64(low);
	r->high_ns = to_i64(high);
	if (r->low_ns == INT64_MIN || r->high_ns == INT64_MAX ||
	    width > PROOF_NS)
		return;
	/* The nearer end: a sample's, else that of the program's start. */
	wide offset = a->by_sample ? high - near : low + near;
	wide below = offset - low, above = high - offset;
	r->method = TICKMAP_CLOCK_OFFSET;
	r->offset_ns = to_i64(offset);
	r->error_ns = (uint64_t)(below > above ? below : above);
}

static int by_stamp(const void *x, const void *y)
{
	const struct bound *a = x, *b = y;

	return (a->stamp > b->stamp) - (a->stamp < b->stamp);
}

/* Times may not fall where stamps grow: floors get the largest time so far,
 * ceilings the smallest that follows. */
static void straighten(struct tickmap_alignment *a)
{
	struct bound *f = a->floors.items, *c = a->ceilings.items;

	if (a->floors.count)
		qsort(f, a->floors.count, sizeof(*f), by_stamp);
	for (size_t i = 1; i < a->floors.count; i++)
		if (f[i].time < f[i - 1].time)
			f[i].time = f[i - 1].time;
	/* A sample before all floors is wrong or says nothing. */
	size_t kept = 0;
	for (size_t i = 0; i < a->ceilings.count; i++)
		if (!c[i].sample || !a->floors.count || c[i].time >= f[0].time)
			c[kept++] = c[i];
	a->result.violations += a->ceilings.count - kept;
	a->ceilings.count = kept;
	if (kept)
		qsort(c, kept, sizeof(*c), by_stamp);
	for (size_t i = kept; i-- > 1;)
		if (c[i - 1].time > c[i].time)
			c[i - 1].time = c[i].time;
}

void tickmap_alignment_solve(struct tickmap_alignment *a,
			     const struct tickmap_alignment_claim *claim)
{
	struct bounds b = bounds_of(a);
	uint64_t violations = violations_of_claim(a);
	wide drift = (wide)claim->span_ns * DRIFT_PPM / 1000000 + 1;

	a->nanoseconds = claim->nanoseconds;
	a->result = (struct tickmap_alignment_result) {
		.low_ns = INT64_MIN,
		.high_ns = INT64_MAX,
		.evidence = a->floors.count + a->ceilings.count,
	};
	if (claim->same && claim_holds(&b, violations)) {
		a->result.method = TICKMAP_CLOCK_SAME;
		a->result.low_ns = a->result.high_ns = 0;
		a->result.violations = violations;
		return;
	}
	if (!claim->nanoseconds || contradicts(&b)) {
		a->nanoseconds = false;
		straighten(a);
		return;
	}
	a->result.violations = b.below;
	a->by_sample = b.has_sample && (!b.has_high || b.sample_high < b.high);
	wide high = a->by_sample ? b.sample_high : b.high;
	conclude(a, b.has_low ? b.low - drift : INT64_MIN,
		 a->by_sample || b.has_high ? high + drift : INT64_MAX);
}

void tickmap_alignment_result(const struct tickmap_alignment *a,
			      struct tickmap_alignment_result *ret_result)
{
	*ret_result = a->result;
}

bool tickmap_alignment_narrow(struct tickmap_alignment *a, int64_t low_ns,
			      int64_t high_ns)
{
	struct tickmap_alignment_result *r = &a->result;

	if (!a->nanoseconds || r->method == TICKMAP_CLOCK_SAME)
		return false;
	if (low_ns < r->low_ns)
		low_ns = r->low_ns;
	if (high_ns > r->high_ns)
		high_ns = r->high_ns;
	if (low_ns > high_ns)
		return false;
	/* Somebody's sample is as good. */
	a->by_sample |= high_ns < r->high_ns;
	conclude(a, low_ns, high_ns);
	return true;
}

static uint64_t shifted(uint64_t stamp, int64_t offset)
{
	if (offset < 0)
		return stamp > -(uint64_t)offset ? stamp + (uint64_t)offset : 0;
	return stamp > UINT64_MAX - (uint64_t)offset ? UINT64_MAX
						     : stamp + (uint64_t)offset;
}

/* How many of the bounds have a smaller stamp, or (`with`) the same. */
static size_t bounds_below(const struct bound *bounds, size_t count,
			   uint64_t stamp, bool with)
{
	size_t low = 0;

	while (low < count) {
		size_t middle = low + (count - low) / 2;
		if (bounds[middle].stamp < stamp ||
		    (with && bounds[middle].stamp == stamp))
			low = middle + 1;
		else
			count = middle;
	}
	return low;
}

uint64_t tickmap_alignment_earliest(const struct tickmap_alignment *a,
				    uint64_t stamp)
{
	const struct tickmap_alignment_result *r = &a->result;

	if (r->method == TICKMAP_CLOCK_SAME)
		return stamp;
	if (a->nanoseconds)
		return r->low_ns == INT64_MIN ? 0 : shifted(stamp, r->low_ns);
	size_t floors =
		bounds_below(a->floors.items, a->floors.count, stamp, true);
	return floors ? a->floors.items[floors - 1].time : 0;
}

uint64_t tickmap_alignment_latest(const struct tickmap_alignment *a,
				  uint64_t stamp)
{
	const struct tickmap_alignment_result *r = &a->result;

	if (r->method == TICKMAP_CLOCK_SAME)
		return stamp;
	if (a->nanoseconds)
		return r->high_ns == INT64_MAX ? UINT64_MAX
					       : shifted(stamp, r->high_ns);
	size_t ceiling = bounds_below(a->ceilings.items, a->ceilings.count,
				      stamp, false);
	return ceiling < a->ceilings.count ? a->ceilings.items[ceiling].time
					   : UINT64_MAX;
}

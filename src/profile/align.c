/* SPDX-License-Identifier: MIT */
/*
 * The stamps of each jitdump -> times of the recording. Evidence for one:
 *
 *	floor    its marker was mapped before its first record was stamped; its
 *	         program started before that
 *	ceiling  its last record was stamped before its program ended; what a
 *	         recorder had read at a time was stamped before
 *	sample   one in memory of no file, at an address that one dump alone
 *	         published: the first load that covers it was stamped before
 *
 * Whatever that leaves open stays open: see tickmap_frames_user.
 */
#include "profile/load.h"
#include "timeline/segments.h"

#include <stdio.h>

#define SECOND_NS UINT64_C(1000000000)
/* In ns since 1970 everything is above, in ns since a boot nothing is. */
#define WALL_NS (UINT64_C(1000000000) * SECOND_NS)

struct aligning {
	struct tickmap_loader *loader;
	/* Each source's records, by stamp, one source behind the other. */
	uint32_t *records;
	size_t *begins; /* one more than there are sources */
};

static struct tickmap_source *source_at(const struct aligning *a, size_t source)
{
	return &a->loader->sources.items[source];
}

static struct tickmap_code_record *record_at(const struct aligning *a, size_t i)
{
	return &a->loader->code_records.items[a->records[i]];
}

static size_t count_of(const struct aligning *a, size_t source)
{
	return a->begins[source + 1] - a->begins[source];
}

/* Records of a child that kept the dump open tell nothing of this process. */
static bool is_own(const struct tickmap_source *source,
		   const struct tickmap_code_record *record)
{
	return !record->pid || record->pid == source->header_pid ||
	       record->pid == source->pid;
}

bool tickmap_align_read_conversion(struct tickmap_loader *loader,
				   struct tickmap_bytes body)
{
	struct tickmap_clock_conversion c = { .shift = tickmap_u64(&body),
					      .mult = tickmap_u64(&body),
					      .zero = tickmap_u64(&body) };

	if (body.failed)
		return true;
	if (tickmap_bytes_left(&body) >= 18) {
		uint64_t cycles = tickmap_u64(&body);
		uint64_t mask = tickmap_u64(&body);
		tickmap_u8(&body); /* cap_user_time_zero */
		if (tickmap_u8(&body)) {
			c.cycles = cycles;
			c.mask = mask;
		}
	}
	loader->ticks = c;
	return true;
}

/* ---- Which process, which program ---- */

static uint64_t belonged_at(const struct tickmap_loader *loader,
			    const struct tickmap_source *source)
{
	/* The file was seen without these bytes before its process began; a
	 * stamp of the same clock tells more. */
	if (source->embedded && loader->clock == TICKMAP_CLOCK_MONOTONIC &&
	    !source->arch_clock && source->last_ns > source->known_ns &&
	    source->last_ns < loader->last_ns + SECOND_NS)
		return source->last_ns;
	return source->known_ns;
}

static bool find_process(struct tickmap_loader *loader,
			 struct tickmap_source *source)
{
	uint64_t known = belonged_at(loader, source);

	source->process = tickmap_profile_process_at(
		loader, source->pid, known ? known : UINT64_MAX);
	if (source->process == TICKMAP_NONE)
		return false;
	const struct tickmap_process *p =
		&loader->processes.items[source->process];
	const struct tickmap_image *image = tickmap_profile_image_at(
		p, known ? known : tickmap_profile_process_code_ns(p));
	source->image_ns = image->since_ns;
	source->code_ns =
		image->code_ns != UINT64_MAX && image->code_ns > image->since_ns
			? image->code_ns
			: image->since_ns;
	return true;
}

/* When the program that wrote the source ended; 0: not seen. */
static uint64_t end_of(const struct tickmap_loader *loader,
		       const struct tickmap_source *source)
{
	const struct tickmap_process *p =
		&loader->processes.items[source->process];
	const struct tickmap_image *next =
		tickmap_profile_image_after(p, source->image_ns);

	return next ? next->since_ns : p->exit_ns;
}

/* When the marker of each dump was mapped first, if that was seen. */
static void find_markers(struct tickmap_loader *loader)
{
	for (size_t i = loader->side.count; i-- > 0;) {
		const struct tickmap_side *e = &loader->side.items[i];
		if (e->kind != TICKMAP_SIDE_MAP ||
		    !loader->maps.items[e->map].marker)
			continue;
		tickmap_str path = loader->maps.items[e->map].path;
		for (size_t s = 0; s < loader->sources.count; s++) {
			struct tickmap_source *source =
				&loader->sources.items[s];
			if (!source->perf_map && source->pid == e->pid &&
			    path == (source->embedded ? source->path
						      : source->marker) &&
			    (e->time_ns >= source->image_ns || !e->time_ns))
				source->marker_ns = e->time_ns;
		}
	}
}

/* ---- Stamps ---- */

/* The source whose stamps are looked at; qsort has no context. */
static _Thread_local const struct tickmap_code_record *sorted_records;

static int by_stamp(const void *x, const void *y)
{
	uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
	uint64_t s = sorted_records[a].when, t = sorted_records[b].when;

	if (s != t)
		return s < t ? -1 : 1;
	return (a > b) - (a < b);
}

/* A record without a stamp comes when its neighbour in the file does; if none
 * has one, as the file has them. */
static void fill_stamps(const struct aligning *a, size_t s)
{
	struct tickmap_source *source = source_at(a, s);
	uint64_t before = source->first_ns;

	source->timeless |= !source->last_ns;
	for (size_t i = a->begins[s]; i < a->begins[s + 1]; i++) {
		struct tickmap_code_record *r = record_at(a, i);
		if (source->timeless)
			r->when = i - a->begins[s] + 1;
		else if (!r->when)
			r->when = before;
		else
			before = r->when;
	}
}

static void convert_ticks(const struct aligning *a, size_t s)
{
	const struct tickmap_clock_conversion *ticks = &a->loader->ticks;
	struct tickmap_source *source = source_at(a, s);

	for (size_t i = a->begins[s]; i < a->begins[s + 1]; i++) {
		struct tickmap_code_record *r = record_at(a, i);
		r->when = tickmap_clock_convert(ticks, r->when);
	}
	source->header_stamp =
		tickmap_clock_convert(ticks, source->header_stamp);
}

static bool sort_records(struct aligning *a)
{
	const struct tickmap_loader *loader = a->loader;
	size_t sources = loader->sources.count;
	size_t count = loader->code_records.count;

	a->records = malloc((count + 1) * sizeof(*a->records));
	a->begins = calloc(sources + 2, sizeof(*a->begins));
	if (!a->records || !a->begins)
		return false;
	/* begins[s + 2] counts; summed up, begins[s + 1] runs from a source's
	 * begin to its end. */
	for (size_t i = 0; i < count; i++)
		a->begins[loader->code_records.items[i].source + 2]++;
	for (size_t s = 2; s < sources + 2; s++)
		a->begins[s] += a->begins[s - 1];
	for (size_t i = 0; i < count; i++)
		a->records[a->begins[loader->code_records.items[i].source +
				     1]++] = (uint32_t)i;
	sorted_records = loader->code_records.items;
	for (size_t s = 0; s < sources; s++) {
		struct tickmap_source *source = source_at(a, s);
		if (source->perf_map || !count_of(a, s))
			continue;
		fill_stamps(a, s);
		if (source->arch_clock && loader->ticks.mult &&
		    !source->timeless)
			convert_ticks(a, s);
		qsort(a->records + a->begins[s], count_of(a, s),
		      sizeof(*a->records), by_stamp);
	}
	return true;
}

/* ---- Evidence ---- */

/* The stamp before which the marker was mapped. Some runtimes stamp their first
 * records before they open the file, and its header after. */
static uint64_t stamp_of_marker(const struct tickmap_source *source,
				uint64_t first)
{
	uint64_t header = source->header_stamp;

	return header > first && header - first < SECOND_NS ? header : first;
}

static bool add_life(const struct aligning *a, size_t s)
{
	const struct tickmap_loader *loader = a->loader;
	const struct tickmap_source *source = source_at(a, s);
	uint64_t end = end_of(loader, source), first = 0, last = 0;
	bool any = false;

	for (size_t i = a->begins[s]; i < a->begins[s + 1]; i++) {
		const struct tickmap_code_record *r = record_at(a, i);
		if (!is_own(source, r))
			continue;
		if (!any)
			first = r->when;
		any = true;
		last = r->when;
	}
	if (!any)
		return true;
	return (!source->marker_ns ||
		tickmap_alignment_floor(source->alignment,
					stamp_of_marker(source, first),
					source->marker_ns)) &&
	       (!source->image_ns ||
		tickmap_alignment_floor(source->alignment, first,
					source->image_ns)) &&
	       (!end ||
		tickmap_alignment_ceiling(source->alignment, last, end));
}

/*
 * A chunk bears the time at which the round before its own began. That round
 * may still have been reading then, and under load for long: what it read was
 * stamped before the round after it began.
 */
static bool add_chunks(const struct aligning *a, size_t s)
{
	struct tickmap_loader *loader = a->loader;
	const struct tickmap_source *source = source_at(a, s);
	const struct tickmap_code_record *older = NULL, *last = NULL;

	if (!source->embedded)
		return true;
	for (size_t i = 0; i < loader->code_records.count; i++) {
		const struct tickmap_code_record *r =
			&loader->code_records.items[i];
		if (r->source != s)
			continue;
		if (last && r->chunk_ns > last->chunk_ns) {
			if (older && !tickmap_alignment_ceiling(
					     source->alignment, older->when,
					     r->chunk_ns))
				return false;
			older = last;
		}
		last = r;
	}
	return true;
}

/* Which record of a source first covered each address. */
static struct tickmap_segments *first_records(const struct aligning *a,
					      size_t s)
{
	struct tickmap_segments *segments = tickmap_segments_new();

	for (size_t i = a->begins[s + 1]; segments && i-- > a->begins[s];) {
		const struct tickmap_code_record *r = record_at(a, i);
		if (!is_own(source_at(a, s), r) ||
		    tickmap_segments_set(segments, r->avma, r->size,
					 a->records[i], NULL, NULL))
			continue;
		tickmap_segments_free(segments);
		return NULL;
	}
	return segments;
}

struct covering {
	struct tickmap_segments **of_source; /* NULL: not asked */
	uint32_t *source_of_process;	     /* TICKMAP_NONE: none or several */
	uint8_t *several;
};

static bool add_sample(const struct aligning *a, const struct covering *c,
		       const struct tickmap_raw_sample *raw)
{
	struct tickmap_loader *loader = a->loader;
	uint32_t process =
		tickmap_profile_process_known(loader, raw->pid, raw->time_ns);

	if (process == TICKMAP_NONE ||
	    c->source_of_process[process] == TICKMAP_NONE)
		return true;
	uint32_t s = c->source_of_process[process];
	const struct tickmap_source *source = source_at(a, s);
	const struct tickmap_segment *segment =
		tickmap_segments_find(c->of_source[s], raw->avma);
	if (!segment || raw->time_ns < source->image_ns)
		return true;
	struct tickmap_owner owner =
		tickmap_timeline_find(loader->processes.items[process].timeline,
				      raw->time_ns, raw->avma, 0);
	/* In a file's mapping code may lie that is older than its load. */
	if (owner.owner != TICKMAP_NO_OWNER &&
	    owner.layer != TICKMAP_LAYER_ANON)
		return true;
	return tickmap_alignment_sample(
		source->alignment,
		loader->code_records.items[segment->owner].when, raw->time_ns);
}

static bool is_aligned(const struct aligning *a, size_t s)
{
	return source_at(a, s)->alignment != NULL;
}

static bool find_covering(const struct aligning *a, struct covering *c)
{
	struct tickmap_loader *loader = a->loader;
	size_t processes = loader->processes.count;

	c->of_source = calloc(loader->sources.count + 1, sizeof(void *));
	c->source_of_process = malloc((processes + 1) * sizeof(uint32_t));
	c->several = calloc(processes + 1, 1);
	if (!c->of_source || !c->source_of_process || !c->several)
		return false;
	for (size_t i = 0; i < processes; i++)
		c->source_of_process[i] = TICKMAP_NONE;
	for (size_t s = 0; s < loader->sources.count; s++) {
		if (!is_aligned(a, s))
			continue;
		uint32_t p = source_at(a, s)->process;
		c->several[p] |= c->source_of_process[p] != TICKMAP_NONE;
		c->source_of_process[p] = (uint32_t)s;
		c->of_source[s] = first_records(a, s);
		if (!c->of_source[s])
			return false;
	}
	/* Of two dumps at one address none is sure. */
	for (size_t i = 0; i < processes; i++)
		if (c->several[i])
			c->source_of_process[i] = TICKMAP_NONE;
	return true;
}

static bool add_samples(const struct aligning *a)
{
	struct tickmap_loader *loader = a->loader;
	struct covering c = { 0 };
	bool good = find_covering(a, &c);

	for (size_t i = 0; good && i < loader->raw.count; i++)
		good = add_sample(a, &c, &loader->raw.items[i]);
	for (size_t s = 0; c.of_source && s < loader->sources.count; s++)
		tickmap_segments_free(c.of_source[s]);
	free(c.of_source);
	free(c.source_of_process);
	free(c.several);
	return good;
}

/* ---- Solving ---- */

/* Which clock the source claims to use. */
static enum tickmap_clock clock_of(const struct tickmap_loader *loader,
				   const struct tickmap_source *source)
{
	if (source->timeless)
		return TICKMAP_CLOCK_UNKNOWN;
	if (source->arch_clock)
		return loader->ticks.mult ? TICKMAP_CLOCK_PERF
					  : TICKMAP_CLOCK_TICKS;
	return source->first_ns >= WALL_NS ? TICKMAP_CLOCK_REALTIME
					   : TICKMAP_CLOCK_MONOTONIC;
}

static void solve(const struct aligning *a, size_t s)
{
	const struct tickmap_loader *loader = a->loader;
	const struct tickmap_source *source = source_at(a, s);
	enum tickmap_clock clock = clock_of(loader, source);
	struct tickmap_alignment_claim claim = {
		.same = clock == loader->clock && !loader->timeless &&
			clock != TICKMAP_CLOCK_UNKNOWN,
		.nanoseconds = clock != TICKMAP_CLOCK_TICKS &&
			       clock != TICKMAP_CLOCK_UNKNOWN &&
			       !loader->timeless,
		.span_ns = record_at(a, a->begins[s + 1] - 1)->when -
			   record_at(a, a->begins[s])->when,
	};

	tickmap_alignment_solve(source->alignment, &claim);
}

/* Programs of one machine use one clock, unless that cannot be. */
static void pool(const struct aligning *a)
{
	int64_t low = INT64_MIN, high = INT64_MAX;
	struct tickmap_alignment_result r;

	for (size_t s = 0; s < a->loader->sources.count; s++) {
		if (!is_aligned(a, s))
			continue;
		tickmap_alignment_result(source_at(a, s)->alignment, &r);
		if (r.method == TICKMAP_CLOCK_SAME)
			continue;
		low = r.low_ns > low ? r.low_ns : low;
		high = r.high_ns < high ? r.high_ns : high;
	}
	if (low > high || (low == INT64_MIN && high == INT64_MAX))
		return;
	for (size_t s = 0; s < a->loader->sources.count; s++)
		if (is_aligned(a, s))
			tickmap_alignment_narrow(source_at(a, s)->alignment,
						 low, high);
}

/*
 * A runtime publishes code inside files that it has mapped, its own executable
 * for one. Where it is open which came first, it is the mapping; but not one
 * that came when the program had had memory for generated code.
 */
static uint64_t behind_its_file(const struct aligning *a,
				const struct tickmap_source *source,
				const struct tickmap_code_record *r)
{
	const struct tickmap_process *p =
		&a->loader->processes.items[source->process];
	uint64_t until = r->latest;

	if (r->earliest >= until)
		return r->earliest;
	if (source->code_ns > source->image_ns && until > source->code_ns)
		until = source->code_ns;
	struct tickmap_owner owner =
		tickmap_timeline_find(p->timeline, until, r->avma, 0);
	return owner.owner != TICKMAP_NO_OWNER &&
			       owner.layer == TICKMAP_LAYER_FILE &&
			       owner.placed > r->earliest
		       ? owner.placed
		       : r->earliest;
}

static void place_records(const struct aligning *a, size_t s)
{
	const struct tickmap_source *source = source_at(a, s);
	struct tickmap_alignment_result result;
	uint64_t before = 0;

	tickmap_alignment_result(source->alignment, &result);
	/* Where only the order is known, it is kept: one ns apart. */
	bool order = result.method == TICKMAP_CLOCK_NONE &&
		     result.low_ns == INT64_MIN;
	for (size_t i = a->begins[s]; i < a->begins[s + 1]; i++) {
		struct tickmap_code_record *r = record_at(a, i);
		uint64_t stamp = r->when;
		r->earliest =
			tickmap_alignment_earliest(source->alignment, stamp);
		r->latest = tickmap_alignment_latest(source->alignment, stamp);
		if (!is_own(source, r) && !order)
			continue;
		if (r->earliest < source->image_ns)
			r->earliest = source->image_ns;
		if (order && r->earliest <= before)
			r->earliest = before + 1;
		before = r->earliest;
		r->earliest = behind_its_file(a, source, r);
		if (r->latest < r->earliest)
			r->latest = r->earliest;
	}
}

/* ---- What is said ---- */

static const struct {
	const char *id, *what;
} sayings[] = {
	{ "CK001",
	  "times are ticks of the CPU's counter and the recording does not say "
	  "how to convert them: only their order is used; unset "
	  "JITDUMP_USE_ARCH_TIMESTAMP and type `perf record -k 1`" },
	{ "CK002",
	  "times contradict the recording: only their order is used; type "
	  "`perf record -k 1`" },
	{ "CK003",
	  "times are of another clock, and nothing proves by how much it "
	  "differs: only their order is used; type `perf record -k 1`" },
	{ "CK004", "no record has a time: only their order is used" },
	{ "CK005",
	  "samples have no time: of code that shared an address nobody knows "
	  "which one ran; record without --no-timestamp" },
	{ "CK006",
	  "times are not of the clock that both claim to use: moved by what "
	  "marker, exit and samples prove" },
};

static const char *saying_of(const struct tickmap_loader *loader,
			     const struct tickmap_source *source,
			     const struct tickmap_alignment_result *r)
{
	if (loader->timeless)
		return "CK005";
	if (source->timeless)
		return "CK004";
	if (r->method == TICKMAP_CLOCK_SAME)
		return NULL;
	if (clock_of(loader, source) == TICKMAP_CLOCK_TICKS)
		return "CK001";
	if (r->method == TICKMAP_CLOCK_OFFSET)
		return clock_of(loader, source) == loader->clock ? "CK006"
								 : NULL;
	return r->low_ns == INT64_MIN && r->high_ns == INT64_MAX && r->evidence
		       ? "CK002"
		       : "CK003";
}

static bool say(struct tickmap_loader *loader,
		const struct tickmap_source *source,
		const struct tickmap_alignment_result *r)
{
	const char *id = saying_of(loader, source, r);
	bool good = true;

	for (size_t i = 0; id && i < sizeof(sayings) / sizeof(*sayings); i++)
		if (sayings[i].id[4] == id[4])
			good = tickmap_codemaps_finding(
				loader, id, sayings[i].what, source->path, 0);
	return good;
}

/* The worst of them stands for all. */
static bool conclude(const struct aligning *a)
{
	static const int rank[] = { [TICKMAP_CLOCK_NONE] = 2,
				    [TICKMAP_CLOCK_OFFSET] = 1,
				    [TICKMAP_CLOCK_SAME] = 0 };
	struct tickmap_loader *loader = a->loader;
	struct tickmap_profile *profile = loader->profile;
	int worst = -1;

	for (size_t s = 0; s < loader->sources.count; s++) {
		const struct tickmap_source *source = source_at(a, s);
		struct tickmap_alignment_result r;
		if (!is_aligned(a, s))
			continue;
		tickmap_alignment_result(source->alignment, &r);
		if (r.method == TICKMAP_CLOCK_OFFSET)
			profile->clock.violations += r.violations;
		if (rank[r.method] > worst) {
			worst = rank[r.method];
			profile->clock.method =
				tickmap_clock_method_name(r.method);
			profile->clock.offset_ns = r.offset_ns;
			profile->clock.error_ns = r.error_ns;
			profile->clock.code_maps =
				tickmap_clock_name(clock_of(loader, source));
		}
		if (!say(loader, source, &r))
			return false;
	}
	return true;
}

static bool align(struct aligning *a)
{
	struct tickmap_loader *loader = a->loader;
	bool any = false;

	for (size_t s = 0; s < loader->sources.count; s++)
		if (!find_process(loader, source_at(a, s)))
			return false;
	find_markers(loader);
	if (!sort_records(a))
		return false;
	for (size_t s = 0; s < loader->sources.count; s++) {
		struct tickmap_source *source = source_at(a, s);
		if (source->perf_map || !count_of(a, s))
			continue;
		any = true;
		source->alignment = tickmap_alignment_new();
		if (!source->alignment ||
		    (!loader->timeless &&
		     (!add_life(a, s) || !add_chunks(a, s))))
			return false;
	}
	if (!any)
		return true;
	if (!loader->timeless &&
	    (!tickmap_profile_processes_seal(loader, false) || !add_samples(a)))
		return false;
	for (size_t s = 0; s < loader->sources.count; s++)
		if (is_aligned(a, s))
			solve(a, s);
	pool(a);
	for (size_t s = 0; s < loader->sources.count; s++)
		if (is_aligned(a, s))
			place_records(a, s);
	return conclude(a);
}

bool tickmap_codemaps_align(struct tickmap_loader *loader)
{
	struct aligning a = { .loader = loader };
	bool good = align(&a);

	for (size_t s = 0; s < loader->sources.count; s++) {
		tickmap_alignment_free(source_at(&a, s)->alignment);
		source_at(&a, s)->alignment = NULL;
	}
	free(a.records);
	free(a.begins);
	return good;
}

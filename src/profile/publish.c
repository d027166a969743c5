/* SPDX-License-Identifier: MIT */
/*
 * Code events into the timelines of their processes.
 *
 * Whose: a dump belongs to the process that mapped it as a marker (or whose
 * notes carry it). Its records belong to that process too if they repeat the
 * pid of the dump's header, which may be of an inner pid namespace; records
 * with another pid come from a child that kept its parent's dump open.
 *
 * When: as stamped. A stamp of 0, of the CPU's counter, or of another clock
 * that lies wholly behind the recording says nothing; such code counts as
 * published when its program first had memory for generated code: behind the
 * files that it was made of (V8 publishes code inside its executable), before
 * those it mapped later. The last one at an address wins.
 *
 * Where a process wrote both kinds of map, its jitdump wins, because a perf map
 * has no times: a line of the map counts only if no load of the dump covers its
 * start.
 */
#include "profile/load.h"

struct range {
	uint32_t process;
	uint64_t start, last;
	uint64_t reach; /* largest `last` of this process's up to here */
};

struct publishing {
	struct tickmap_loader *loader;
	TICKMAP_VEC(struct range) dumped;
};

static int by_start(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	return (x->start > y->start) - (x->start < y->start);
}

static void sort_dumped(struct publishing *p)
{
	struct range *r = p->dumped.items;

	if (!p->dumped.count)
		return;
	qsort(r, p->dumped.count, sizeof(*r), by_start);
	for (size_t i = 0; i < p->dumped.count; i++) {
		r[i].reach = r[i].last;
		if (i && r[i - 1].process == r[i].process &&
		    r[i - 1].reach > r[i].reach)
			r[i].reach = r[i - 1].reach;
	}
}

static bool is_dumped(const struct publishing *p, uint32_t process,
		      uint64_t avma)
{
	size_t low = 0, high = p->dumped.count;

	/* The last range that starts at or below the address. */
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct range *r = &p->dumped.items[middle];
		if (r->process < process ||
		    (r->process == process && r->start <= avma))
			low = middle + 1;
		else
			high = middle;
	}
	return low && p->dumped.items[low - 1].process == process &&
	       p->dumped.items[low - 1].reach >= avma;
}

static bool add_dumped(struct publishing *p, uint32_t process,
		       const struct tickmap_code_record *record)
{
	struct range *r = tickmap_vec_push(&p->dumped);

	if (!r)
		return false;
	uint64_t last = record->avma + (record->size - 1);
	*r = (struct range) {
		.process = process,
		.start = record->avma,
		.last = last < record->avma ? UINT64_MAX : last,
	};
	return true;
}

static bool clock_is_same(const struct tickmap_loader *loader)
{
	return loader->profile->clock.method[0] == 's';
}

/* Stamps that all lie so far behind the recording are of another clock. */
#define BEHIND_NS UINT64_C(1000000000)

static bool stamps_say_nothing(const struct tickmap_loader *loader,
			       const struct tickmap_source *source)
{
	return loader->timeless || source->arch_clock ||
	       (source->first_ns > BEHIND_NS &&
		source->first_ns - BEHIND_NS > loader->last_ns);
}

/* A time at which the source belonged to its process; 0: none is known. */
static uint64_t belonged_at(const struct tickmap_loader *loader,
			    const struct tickmap_source *source)
{
	/* The file was seen without these bytes before its process began; a
	 * stamp of the same clock tells more. */
	if (source->embedded && !source->perf_map && clock_is_same(loader) &&
	    !stamps_say_nothing(loader, source) &&
	    source->last_ns > source->known_ns)
		return source->last_ns;
	return source->known_ns;
}

static const struct tickmap_image *
image_at(const struct tickmap_process *process, uint64_t time_ns)
{
	const struct tickmap_image *image = &process->images.items[0];

	for (size_t i = 1; i < process->images.count; i++)
		if (process->images.items[i].since_ns <= time_ns)
			image = &process->images.items[i];
	return image;
}

static uint64_t published_at(const struct tickmap_loader *loader,
			     const struct tickmap_source *source,
			     const struct tickmap_code_record *record,
			     const struct tickmap_image *image)
{
	uint64_t when = record->when;

	if (source->perf_map || !when)
		when = record->chunk_ns;
	if (!when || stamps_say_nothing(loader, source))
		when = image->anonymous_code ? image->code_ns : 0;
	return when > image->since_ns ? when : image->since_ns;
}

static bool publish(struct tickmap_loader *loader, uint32_t index,
		    const struct tickmap_code_record *record, uint64_t when)
{
	struct tickmap_process *p = &loader->processes.items[index];
	uint64_t owner =
		record->code == TICKMAP_NONE ? TICKMAP_NO_OWNER : record->code;

	p->published = true;
	if (!tickmap_profile_process_changed(
		    p, when > TICKMAP_SLACK_NS ? when - TICKMAP_SLACK_NS : 0) ||
	    !tickmap_profile_process_changed(p, when))
		return false;
	if (record->kind == TICKMAP_CODE_MOVE)
		return tickmap_timeline_move(p->timeline, when,
					     record->old_avma, record->avma,
					     record->size, owner);
	return tickmap_timeline_load(p->timeline, TICKMAP_LAYER_CODE, when,
				     record->avma, record->size, owner);
}

static bool publish_record(struct publishing *p,
			   const struct tickmap_code_record *record)
{
	struct tickmap_loader *loader = p->loader;
	const struct tickmap_source *source =
		&loader->sources.items[record->source];
	uint64_t known = belonged_at(loader, source);
	uint32_t index = tickmap_profile_process_at(loader, source->pid,
						    known ? known : UINT64_MAX);

	if (index == TICKMAP_NONE)
		return false;
	if (!known)
		known = tickmap_profile_process_code_ns(
			&loader->processes.items[index]);
	if (!source->perf_map && record->pid &&
	    record->pid != source->header_pid && record->pid != source->pid) {
		known = record->when;
		index = tickmap_profile_process_known(loader, record->pid,
						      known);
		if (index == TICKMAP_NONE)
			return tickmap_codemaps_finding(
				loader, "CM001",
				"code of a process that the recording does "
				"not know",
				source->path, 0);
	}
	if (source->perf_map && is_dumped(p, index, record->avma))
		return true;
	if (!source->perf_map && !add_dumped(p, index, record))
		return false;
	const struct tickmap_image *image =
		image_at(&loader->processes.items[index], known);
	return publish(loader, index, record,
		       published_at(loader, source, record, image));
}

static bool publish_all(struct publishing *p, bool perf_maps)
{
	struct tickmap_loader *loader = p->loader;

	for (size_t i = 0; i < loader->code_records.count; i++) {
		const struct tickmap_code_record *record =
			&loader->code_records.items[i];
		if (loader->sources.items[record->source].perf_map ==
			    perf_maps &&
		    !publish_record(p, record))
			return false;
	}
	return true;
}

/* Clocks that need alignment: say so once a kind. */
static bool note_clocks(struct tickmap_loader *loader)
{
	bool good = true;

	for (size_t i = 0; good && i < loader->sources.count; i++) {
		const struct tickmap_source *s = &loader->sources.items[i];
		if (s->perf_map || !s->last_ns)
			continue;
		if (s->arch_clock) {
			loader->profile->clock.method = "none";
			good = tickmap_codemaps_finding(
				loader, "CK001",
				"the code map's times are ticks of the CPU's "
				"counter: they were ignored",
				s->path, 0);
		} else if (stamps_say_nothing(loader, s)) {
			good = tickmap_codemaps_finding(
				loader, "CK002",
				"the code map's times all lie behind the "
				"recording: they were ignored",
				s->path, 0);
		} else if (!clock_is_same(loader)) {
			good = tickmap_codemaps_finding(
				loader, "CK003",
				"samples and code map were stamped by "
				"different clocks, not aligned",
				s->path, 0);
		}
	}
	return good;
}

bool tickmap_codemaps_publish(struct tickmap_loader *loader)
{
	struct publishing p = { .loader = loader };
	bool good;

	tickmap_codemaps_end(loader);
	good = !loader->no_memory && publish_all(&p, false);
	sort_dumped(&p);
	good = good && publish_all(&p, true) && note_clocks(loader);
	tickmap_vec_free(&p.dumped);
	for (size_t i = 0; good && i < loader->processes.count; i++) {
		struct tickmap_process *process = &loader->processes.items[i];
		if (process->parent != TICKMAP_NONE &&
		    loader->processes.items[process->parent].published)
			process->published = true;
	}
	return good;
}

/* SPDX-License-Identifier: MIT */
/*
 * Code events into the timelines of their processes.
 *
 * Whose: a dump belongs to the process that mapped it as a marker (or whose
 * notes carry it). Its records belong to that process too if they repeat the
 * pid of the dump's header, which may be of an inner pid namespace; records
 * with another pid come from a child that kept its parent's dump open.
 *
 * When: as align.c says, between two times. Lines of a perf map count from the
 * time on at which the file was seen to grow by them; of a map that was read
 * afterwards, from when its program first had memory for generated code: behind
 * the files that it was made of, before those it mapped later. The last one at
 * an address wins.
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

/*
 * A MOVE names its code by a number, too, and its old address may be stale. A
 * number that different code shares says nothing.
 */
static bool find_moved(struct tickmap_loader *loader, uint32_t source)
{
	struct tickmap_table codes = { 0 }; /* index -> code + 1 */
	bool good = true;

	for (size_t i = 0; good && i < loader->code_records.count; i++) {
		struct tickmap_code_record *r = &loader->code_records.items[i];
		if (r->source != source)
			continue;
		uint64_t *slot = tickmap_table_put(&codes, r->index);
		good = slot;
		if (slot && r->kind == TICKMAP_CODE_LOAD)
			*slot = *slot ? UINT64_MAX : (uint64_t)r->code + 1;
		else if (slot && *slot && *slot != UINT64_MAX)
			r->code = (uint32_t)(*slot - 1);
	}
	tickmap_table_free(&codes);
	return good;
}

static bool publish(struct tickmap_loader *loader, uint32_t index,
		    const struct tickmap_code_record *record)
{
	struct tickmap_process *p = &loader->processes.items[index];
	uint64_t when = record->earliest, latest = record->latest;
	uint64_t owner =
		record->code == TICKMAP_NONE ? TICKMAP_NO_OWNER : record->code;

	p->published = true;
	if (!tickmap_profile_process_timeline(loader, p) ||
	    !tickmap_profile_process_changed(
		    p, when > TICKMAP_SLACK_NS ? when - TICKMAP_SLACK_NS : 0) ||
	    !tickmap_profile_process_changed(p, when) ||
	    (latest > when && !tickmap_profile_process_changed(p, latest)))
		return false;
	if (record->kind == TICKMAP_CODE_MOVE)
		return tickmap_timeline_move_within(
			p->timeline, when, latest, record->old_avma,
			record->avma, record->size, owner);
	return tickmap_timeline_load_within(p->timeline, when, latest,
					    record->avma, record->size, owner);
}

static bool publish_line(struct publishing *p,
			 const struct tickmap_source *source,
			 struct tickmap_code_record *record)
{
	if (is_dumped(p, source->process, record->avma)) {
		p->loader->profile->dumped_lines++;
		return true;
	}
	record->earliest = record->chunk_ns > source->image_ns
				   ? record->chunk_ns
				   : source->image_ns;
	if (!record->chunk_ns)
		record->earliest = source->code_ns;
	record->latest = record->earliest;
	return publish(p->loader, source->process, record);
}

static bool publish_record(struct publishing *p,
			   struct tickmap_code_record *record)
{
	struct tickmap_loader *loader = p->loader;
	const struct tickmap_source *source =
		&loader->sources.items[record->source];
	uint32_t index = source->process;

	if (source->perf_map)
		return publish_line(p, source, record);
	if (record->pid && record->pid != source->header_pid &&
	    record->pid != source->pid) {
		index = tickmap_profile_process_known(loader, record->pid,
						      record->earliest);
		if (index == TICKMAP_NONE)
			return tickmap_profile_pid_mentioned(loader,
							     record->pid) ||
			       tickmap_codemaps_finding(
				       loader, "CM001",
				       "code of a process that the recording "
				       "does "
				       "not know",
				       source->path, 0);
	}
	return add_dumped(p, index, record) && publish(loader, index, record);
}

static bool publish_all(struct publishing *p, bool perf_maps)
{
	struct tickmap_loader *loader = p->loader;

	for (size_t i = 0; i < loader->code_records.count; i++) {
		struct tickmap_code_record *record =
			&loader->code_records.items[i];
		if (loader->sources.items[record->source].perf_map ==
			    perf_maps &&
		    !publish_record(p, record))
			return false;
	}
	return true;
}

bool tickmap_codemaps_publish(struct tickmap_loader *loader)
{
	struct publishing p = { .loader = loader };
	bool good;

	tickmap_codemaps_end(loader);
	good = !loader->no_memory;
	for (uint32_t s = 0; good && s < loader->sources.count; s++)
		if (loader->sources.items[s].moves)
			good = find_moved(loader, s);
	good = good && tickmap_codemaps_align(loader) && publish_all(&p, false);
	sort_dumped(&p);
	good = good && publish_all(&p, true);
	tickmap_vec_free(&p.dumped);
	for (size_t i = 0; good && i < loader->processes.count; i++) {
		struct tickmap_process *process = &loader->processes.items[i];
		if (process->parent != TICKMAP_NONE &&
		    loader->processes.items[process->parent].published)
			process->published = true;
	}
	return good;
}

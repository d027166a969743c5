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

/* ---- Perf maps ---- */

static uint64_t time_of_chunk(const struct tickmap_source *source,
			      const struct tickmap_map_chunk *chunk)
{
	if (!chunk->when)
		return source->code_ns;
	return chunk->when > source->image_ns ? chunk->when : source->image_ns;
}

static bool publish_line(struct tickmap_loader *loader,
			 const struct tickmap_source *source, uint64_t when,
			 const struct tickmap_map_line *line)
{
	struct tickmap_code *code = loader->codes.count < TICKMAP_NONE - 1
					    ? tickmap_vec_push(&loader->codes)
					    : NULL;
	struct tickmap_code_record record = {
		.kind = TICKMAP_CODE_LOAD,
		.earliest = when,
		.latest = when,
		.avma = line->avma,
		.size = line->size,
		.code = (uint32_t)(loader->codes.count - 1),
	};

	if (!code)
		return false;
	*code = (struct tickmap_code) {
		.name = line->name,
		.frame = TICKMAP_NONE,
		.image = TICKMAP_NONE,
	};
	return publish(loader, source->process, &record);
}

/* Lines [first, end) that all count from `when` on. */
static bool publish_lines(struct publishing *p, struct tickmap_source *source,
			  uint64_t when, size_t first, size_t end)
{
	struct tickmap_map_line *lines = source->lines.items;

	for (size_t i = first; i < end; i++) {
		if (!is_dumped(p, source->process, lines[i].avma))
			continue;
		p->loader->profile->dumped_lines++;
		lines[i].size = 0;
	}
	if (!tickmap_maplines_choose(p->loader, lines + first, end - first))
		return false;
	for (size_t i = first; i < end; i++)
		if (lines[i].size &&
		    !publish_line(p->loader, source, when, &lines[i]))
			return false;
	return true;
}

static bool publish_map(struct publishing *p, struct tickmap_source *source)
{
	const struct tickmap_map_chunk *chunks = source->chunks.items;
	size_t count = source->chunks.count;
	size_t first = 0;

	if (source->any_line)
		p->loader->processes.items[source->process].published = true;
	for (size_t c = 0; c < count; c++) {
		uint64_t when = time_of_chunk(source, &chunks[c]);
		bool last = c + 1 == count;
		size_t end =
			last ? source->lines.count : chunks[c + 1].first_line;
		if (!last && time_of_chunk(source, &chunks[c + 1]) == when)
			continue;
		if (!publish_lines(p, source, when, first, end))
			return false;
		first = end;
	}
	tickmap_vec_free(&source->lines);
	tickmap_vec_free(&source->chunks);
	return true;
}

static bool publish_maps(struct publishing *p)
{
	struct tickmap_loader *loader = p->loader;

	for (size_t i = 0; i < loader->sources.count; i++)
		if (!publish_map(p, &loader->sources.items[i]))
			return false;
	tickmap_vec_free(&loader->asked);
	return true;
}

/* ---- Jitdumps ---- */

static bool publish_record(struct publishing *p,
			   struct tickmap_code_record *record)
{
	struct tickmap_loader *loader = p->loader;
	const struct tickmap_source *source =
		&loader->sources.items[record->source];
	uint32_t index = source->process;

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

static bool publish_dumps(struct publishing *p)
{
	struct tickmap_loader *loader = p->loader;

	for (size_t i = 0; i < loader->code_records.count; i++)
		if (!publish_record(p, &loader->code_records.items[i]))
			return false;
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
	good = good && tickmap_codemaps_align(loader) && publish_dumps(&p);
	sort_dumped(&p);
	good = good && publish_maps(&p);
	tickmap_vec_free(&p.dumped);
	for (size_t i = 0; good && i < loader->processes.count; i++) {
		struct tickmap_process *process = &loader->processes.items[i];
		if (process->parent != TICKMAP_NONE &&
		    loader->processes.items[process->parent].published)
			process->published = true;
	}
	return good;
}

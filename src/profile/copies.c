/* SPDX-License-Identifier: MIT */
/* Two dumps of one process may be one and its copy, repaired or older: what an
 * earlier one said is not said again. */
#include "profile/load.h"

static uint64_t identity(uint64_t when, uint64_t avma, uint64_t size,
			 uint64_t other, uint8_t kind)
{
	uint64_t hash = tickmap_mix(when);

	hash = tickmap_mix(hash ^ avma);
	hash = tickmap_mix(hash ^ size);
	return tickmap_mix(hash ^ other ^ (uint64_t)kind << 56);
}

static bool is_other_dump(const struct tickmap_loader *loader,
			  const struct tickmap_source *a,
			  const struct tickmap_source *b)
{
	return a != b && !a->perf_map && a->pid == b->pid &&
	       tickmap_profile_process_known(loader, a->pid, a->known_ns) ==
		       tickmap_profile_process_known(loader, b->pid,
						     b->known_ns);
}

bool tickmap_copies_begin(struct tickmap_loader *loader,
			  struct tickmap_source *source)
{
	const struct tickmap_source *sources = loader->sources.items;
	uint32_t last = TICKMAP_NONE;
	size_t others = 0;
	bool other = false;

	for (size_t i = 0; i < loader->sources.count; i++)
		others += is_other_dump(loader, &sources[i], source);
	for (size_t i = 0; others && i < loader->code_records.count; i++) {
		const struct tickmap_code_record *r =
			&loader->code_records.items[i];
		bool move = r->kind == TICKMAP_CODE_MOVE;
		if (r->source != last) {
			last = r->source;
			other = is_other_dump(loader, &sources[last], source);
		}
		if (!other)
			continue;
		uint64_t *place = tickmap_table_put(
			&source->said,
			identity(r->when, r->avma, r->size,
				 move ? r->old_avma
				      : loader->codes.items[r->code].name,
				 r->kind));
		if (!place)
			return false;
		*place = 1;
	}
	return true;
}

bool tickmap_copies_said(struct tickmap_loader *loader,
			 const struct tickmap_source *source,
			 const struct tickmap_code_event *event)
{
	bool move = event->kind == TICKMAP_CODE_MOVE;

	return source->said.count &&
	       tickmap_table_get(
		       &source->said,
		       identity(event->when, event->avma, event->size,
				move ? event->old_avma
				     : tickmap_intern(loader->profile->strings,
						      event->name,
						      event->name_length),
				(uint8_t)event->kind));
}

/* SPDX-License-Identifier: MIT */
/*
 * Inlined functions of native frames. An address has one frame, and a chain of
 * those that were inlined there, which is looked up once.
 */
#include "profile/internal.h"
#include "profile/load.h"

uint32_t tickmap_inlined_outer(const struct tickmap_loader *loader,
			       uint32_t node, uint32_t chain)
{
	if (!chain)
		return node;
	for (uint32_t n = loader->chains.items[chain - 1].count; n; n--)
		node = loader->profile->nodes.items[node].parent;
	return node;
}

uint32_t tickmap_inlined_nodes(struct tickmap_loader *loader, uint32_t node,
			       uint32_t chain)
{
	if (!chain || node == TICKMAP_NONE)
		return node;
	const struct tickmap_chain *c = &loader->chains.items[chain - 1];
	for (uint32_t i = 0; i < c->count && node != TICKMAP_NONE; i++)
		node = tickmap_profile_node(
			loader->profile, node,
			loader->chain_frames.items[c->first + i]);
	return node;
}

static bool add_frame(struct tickmap_loader *loader,
		      const struct tickmap_frame *outer,
		      const struct tickmap_source_frame *f)
{
	struct tickmap_frame frame = *outer;
	uint32_t *slot = tickmap_vec_push(&loader->chain_frames);

	frame.name = f->name ? f->name
			     : tickmap_intern_cstr(loader->profile->strings,
						   "[inlined]");
	frame.file = f->file;
	frame.line = f->line;
	frame.kind = TICKMAP_FRAME_NATIVE;
	frame.reason = TICKMAP_RESOLVED;
	frame.inlined = true;
	if (slot)
		*slot = tickmap_profile_frame(loader->profile, &frame);
	return slot && *slot != TICKMAP_NONE;
}

bool tickmap_inlined_find(struct tickmap_loader *loader, uint32_t dso,
			  uint64_t svma, struct tickmap_frame *frame,
			  uint32_t *ret_chain)
{
	struct tickmap_source_frame found[TICKMAP_SOURCE_FRAMES];
	size_t count =
		tickmap_symbolize_inlined(loader->symbolizer, dso, svma, false,
					  found, TICKMAP_SOURCE_FRAMES);

	*ret_chain = 0;
	if (!count)
		return true;
	/* A file without symbols may have its functions' names here. */
	if (frame->reason != TICKMAP_RESOLVED && found[0].name) {
		frame->name = found[0].name;
		frame->kind = TICKMAP_FRAME_NATIVE;
		frame->reason = TICKMAP_RESOLVED;
	}
	frame->file = found[0].file;
	frame->line = found[0].line;
	if (count == 1)
		return true;
	struct tickmap_chain *chain = tickmap_vec_push(&loader->chains);
	if (!chain || loader->chain_frames.count > UINT32_MAX - count)
		return false;
	*chain = (struct tickmap_chain) {
		.first = (uint32_t)loader->chain_frames.count,
		.count = (uint32_t)count - 1,
	};
	for (size_t i = 1; i < count; i++)
		if (!add_frame(loader, frame, &found[i]))
			return false;
	*ret_chain = (uint32_t)loader->chains.count;
	return true;
}

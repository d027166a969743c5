/* SPDX-License-Identifier: MIT */
#include "profile/profile.h"

#include "profile/internal.h"

static struct tickmap_profile_private *mine(struct tickmap_profile *profile)
{
	return (struct tickmap_profile_private *)profile;
}

struct tickmap_profile *tickmap_profile_new(void)
{
	struct tickmap_profile_private *own = calloc(1, sizeof(*own));

	if (!own)
		return NULL;
	struct tickmap_profile *profile = &own->seen;
	profile->strings = tickmap_strings_new();
	struct tickmap_node *root = tickmap_vec_push(&profile->nodes);
	uint8_t *in_python = tickmap_vec_push(&own->in_python);
	uint32_t *child = tickmap_vec_push(&own->first_child);
	if (!profile->strings || !root || !in_python || !child) {
		tickmap_profile_free(profile);
		return NULL;
	}
	*root = (struct tickmap_node) { 0 };
	*in_python = 0;
	*child = 0;
	profile->clock.domain = "unknown";
	profile->clock.method = "none";
	profile->clock.code_maps = "";
	profile->finished = true;
	return profile;
}

void tickmap_profile_free(struct tickmap_profile *profile)
{
	if (!profile)
		return;
	struct tickmap_profile_private *own = mine(profile);

	free(own->frame_index);
	free(own->line_index);
	tickmap_vec_free(&own->lines_differ);
	free(own->node_index);
	tickmap_vec_free(&own->first_child);
	tickmap_vec_free(&own->in_python);
	tickmap_stacks_free(&own->stacks);
	tickmap_vec_free(&own->stack_of_sample);
	tickmap_vec_free(&profile->frames);
	tickmap_vec_free(&profile->nodes);
	tickmap_vec_free(&profile->threads);
	tickmap_vec_free(&profile->samples);
	tickmap_vec_free(&profile->findings);
	tickmap_vec_free(&profile->hints);
	tickmap_strings_free(profile->strings);
	free(own);
}

static bool same_frame(const struct tickmap_frame *a,
		       const struct tickmap_frame *b)
{
	return a->name == b->name && a->dso == b->dso &&
	       a->dso_path == b->dso_path && a->file == b->file &&
	       a->line == b->line && a->kind == b->kind &&
	       a->reason == b->reason && a->interpreter == b->interpreter &&
	       a->code_map == b->code_map && a->inlined == b->inlined;
}

static uint64_t pair(uint32_t high, uint32_t low)
{
	return (uint64_t)high << 32 | low;
}

static uint64_t frame_hash(const struct tickmap_frame *f)
{
	uint64_t hash = tickmap_mix(pair(f->name, f->dso));

	hash = tickmap_mix(hash ^ pair(f->file, f->line));
	return tickmap_mix(hash ^
			   pair(f->dso_path, (uint32_t)f->kind << 24 |
						     (uint32_t)f->reason << 16 |
						     f->inlined));
}

static uint32_t *place_of_frame(const struct tickmap_profile_private *own,
				const struct tickmap_frame *f)
{
	size_t mask = own->frame_index_capacity - 1;
	size_t i = (size_t)frame_hash(f) & mask;

	while (own->frame_index[i] &&
	       !same_frame(&own->seen.frames.items[own->frame_index[i] - 1], f))
		i = (i + 1) & mask;
	return &own->frame_index[i];
}

/* Where the first frame of that name, file and dso is. */
static uint32_t *place_of_name(const struct tickmap_profile_private *own,
			       const struct tickmap_frame *f)
{
	size_t mask = own->frame_index_capacity - 1;
	size_t i = (size_t)tickmap_mix(pair(f->name, f->file) ^
				       tickmap_mix(f->dso)) &
		   mask;

	for (; own->line_index[i]; i = (i + 1) & mask) {
		const struct tickmap_frame *first =
			&own->seen.frames.items[own->line_index[i] - 1];
		if (first->name == f->name && first->file == f->file &&
		    first->dso == f->dso)
			break;
	}
	return &own->line_index[i];
}

/* Two functions of one name and file must be told apart by their lines. */
static void note_frame(struct tickmap_profile_private *own, uint32_t index)
{
	const struct tickmap_frame *frames = own->seen.frames.items;
	uint32_t *name = place_of_name(own, &frames[index]);

	*place_of_frame(own, &frames[index]) = index + 1;
	if (!*name)
		*name = index + 1;
	else if (frames[*name - 1].line != frames[index].line)
		own->lines_differ.items[*name - 1] = 1;
}

static bool grow_frame_index(struct tickmap_profile_private *own)
{
	size_t capacity =
		own->frame_index_capacity ? own->frame_index_capacity * 2 : 256;
	uint32_t *frames = calloc(capacity, sizeof(*frames));
	uint32_t *lines = calloc(capacity, sizeof(*lines));

	if (!frames || !lines) {
		free(frames);
		free(lines);
		return false;
	}
	free(own->frame_index);
	free(own->line_index);
	own->frame_index = frames;
	own->line_index = lines;
	own->frame_index_capacity = capacity;
	for (uint32_t i = 0; i < own->seen.frames.count; i++)
		note_frame(own, i);
	return true;
}

uint32_t tickmap_profile_frame(struct tickmap_profile *profile,
			       const struct tickmap_frame *frame)
{
	struct tickmap_profile_private *own = mine(profile);
	size_t count = profile->frames.count;

	if (count * 3 >= own->frame_index_capacity * 2 &&
	    !grow_frame_index(own))
		return UINT32_MAX;
	uint32_t known = *place_of_frame(own, frame);
	if (known)
		return known - 1;
	if (count >= UINT32_MAX - 1 ||
	    !tickmap_vec_reserve(&profile->frames, count + 1) ||
	    !tickmap_vec_reserve(&own->lines_differ, count + 1))
		return UINT32_MAX;
	profile->frames.items[count] = *frame;
	profile->frames.count = count + 1;
	own->lines_differ.items[count] = 0;
	own->lines_differ.count = count + 1;
	note_frame(own, (uint32_t)count);
	return (uint32_t)count;
}

static uint32_t *place_of_node(const struct tickmap_profile_private *own,
			       uint32_t parent, uint32_t frame)
{
	size_t mask = own->node_index_capacity - 1;
	size_t i = (size_t)tickmap_mix(pair(parent, frame)) & mask;

	for (; own->node_index[i]; i = (i + 1) & mask) {
		const struct tickmap_node *n =
			&own->seen.nodes.items[own->node_index[i]];
		if (n->parent == parent && n->frame == frame)
			break;
	}
	return &own->node_index[i];
}

static bool grow_node_index(struct tickmap_profile_private *own)
{
	size_t capacity =
		own->node_index_capacity ? own->node_index_capacity * 2 : 1024;
	uint32_t *next = calloc(capacity, sizeof(*next));

	if (!next)
		return false;
	free(own->node_index);
	own->node_index = next;
	own->node_index_capacity = capacity;
	for (size_t i = 1; i < own->seen.nodes.count; i++) {
		const struct tickmap_node *n = &own->seen.nodes.items[i];
		if (own->first_child.items[n->parent] != i)
			*place_of_node(own, n->parent, n->frame) = (uint32_t)i;
	}
	return true;
}

static uint32_t push_node(struct tickmap_profile_private *own, uint32_t parent,
			  uint32_t frame)
{
	struct tickmap_profile *profile = &own->seen;
	size_t count = profile->nodes.count;

	if (count >= UINT32_MAX - 1 ||
	    !tickmap_vec_reserve(&profile->nodes, count + 1) ||
	    !tickmap_vec_reserve(&own->in_python, count + 1) ||
	    !tickmap_vec_reserve(&own->first_child, count + 1))
		return UINT32_MAX;
	profile->nodes.items[count] =
		(struct tickmap_node) { .parent = parent, .frame = frame };
	profile->nodes.count = count + 1;
	own->first_child.items[count] = 0;
	own->first_child.count = count + 1;
	own->in_python.items[count] =
		own->in_python.items[parent] ||
		profile->frames.items[frame].kind == TICKMAP_FRAME_PYTHON;
	own->in_python.count = count + 1;
	return (uint32_t)count;
}

static uint32_t further_node(struct tickmap_profile_private *own,
			     uint32_t parent, uint32_t frame)
{
	uint32_t *place, added;

	if (own->node_index_count * 3 >= own->node_index_capacity * 2 &&
	    !grow_node_index(own))
		return UINT32_MAX;
	place = place_of_node(own, parent, frame);
	if (*place)
		return *place;
	added = push_node(own, parent, frame);
	if (added == UINT32_MAX)
		return UINT32_MAX;
	own->node_index_count++;
	return *place = added;
}

uint32_t tickmap_profile_node(struct tickmap_profile *profile, uint32_t parent,
			      uint32_t frame)
{
	struct tickmap_profile_private *own = mine(profile);
	uint32_t child = own->first_child.items[parent];

	if (child && profile->nodes.items[child].frame == frame)
		return child;
	if (child)
		return further_node(own, parent, frame);
	child = push_node(own, parent, frame);
	if (child != UINT32_MAX)
		own->first_child.items[parent] = child;
	return child;
}

void tickmap_profile_keep_stacks(struct tickmap_profile *profile,
				 struct tickmap_stacks *stacks)
{
	free(stacks->index);
	stacks->index = NULL;
	mine(profile)->stacks = *stacks;
	*stacks = (struct tickmap_stacks) { 0 };
}

bool tickmap_profile_keep_stack(struct tickmap_profile *profile, uint32_t stack)
{
	uint32_t *slot = tickmap_vec_push(&mine(profile)->stack_of_sample);

	if (slot)
		*slot = stack;
	return slot;
}

size_t tickmap_profile_addresses(const struct tickmap_profile *profile,
				 size_t sample, uint64_t *ret_avmas,
				 size_t room)
{
	const struct tickmap_profile_private *own =
		tickmap_profile_private(profile);
	const struct tickmap_stack *all = own->stacks.all.items;
	uint8_t below = TICKMAP_STACK_PROCESS;
	size_t count = 0;

	if (sample >= own->stack_of_sample.count)
		return 0;
	for (uint32_t s = own->stack_of_sample.items[sample];
	     all[s].kind != TICKMAP_STACK_PROCESS; s = all[s].parent) {
		/* Callers are kept as the byte before: see chains.c. */
		bool caller = all[s].kind == TICKMAP_STACK_CALLER ||
			      (all[s].kind == TICKMAP_STACK_KERNEL &&
			       below == TICKMAP_STACK_KERNEL && all[s].avma);
		if (count < room)
			ret_avmas[count] = all[s].avma + caller;
		below = all[s].kind;
		count++;
	}
	return count;
}

bool tickmap_profile_needs_line(const struct tickmap_profile *profile,
				uint32_t frame)
{
	const struct tickmap_profile_private *own =
		tickmap_profile_private(profile);
	const struct tickmap_frame *f = &profile->frames.items[frame];

	if (!f->line || !own->frame_index_capacity)
		return false;
	uint32_t first = *place_of_name(own, f);
	return first && own->lines_differ.items[first - 1];
}

bool tickmap_frame_is_folded(const struct tickmap_profile *profile,
			     uint32_t node)
{
	if (!node)
		return false;
	const struct tickmap_node *n = &profile->nodes.items[node];

	return profile->frames.items[n->frame].interpreter &&
	       tickmap_profile_private(profile)->in_python.items[n->parent];
}

static const struct {
	const char *word, *text;
} reasons[TICKMAP_UNRESOLVED_COUNT] = {
	[TICKMAP_RESOLVED] = { "resolved", "named" },
	[TICKMAP_UNRESOLVED_STRIPPED] = { "stripped",
					  "the file has no symbols" },
	[TICKMAP_UNRESOLVED_FILE_MISSING] = { "file-missing",
					      "the mapped file is not here" },
	[TICKMAP_UNRESOLVED_OTHER_BUILD] = { "other-build",
					     "the file here is another build "
					     "than the one that ran" },
	[TICKMAP_UNRESOLVED_NO_FUNCTION] = { "no-function",
					     "no symbol of the file holds the "
					     "address" },
	[TICKMAP_UNRESOLVED_KERNEL] = { "kernel",
					"the kernel's symbols are hidden or "
					"of another boot" },
	[TICKMAP_UNRESOLVED_NO_CODE_MAP] = { "no-code-map",
					     "generated code of a process that "
					     "published no code map" },
	[TICKMAP_UNRESOLVED_NOT_IN_MAP] = { "not-in-code-map",
					    "generated code that the process "
					    "did not publish" },
	[TICKMAP_UNRESOLVED_OTHER_TIME] = { "other-time",
					    "published, but not for that "
					    "time" },
	[TICKMAP_UNRESOLVED_UNMAPPED] = { "unmapped",
					  "no mapping is known there" },
	[TICKMAP_UNRESOLVED_CLOCK] = { "clock",
				       "in code of which the clocks do not say "
				       "when it was loaded" },
};

const char *tickmap_unresolved_word(enum tickmap_unresolved reason)
{
	return (unsigned)reason < TICKMAP_UNRESOLVED_COUNT
		       ? reasons[reason].word
		       : "unknown";
}

const char *tickmap_unresolved_text(enum tickmap_unresolved reason)
{
	return (unsigned)reason < TICKMAP_UNRESOLVED_COUNT
		       ? reasons[reason].text
		       : "unknown";
}

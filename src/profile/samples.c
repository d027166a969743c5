/* SPDX-License-Identifier: MIT */
/*
 * Samples in time order, each into a call stack of frames.
 *
 * Within an epoch of a process (a time in which none of its addresses changes
 * its owner) equal raw stacks are equal call stacks. Each raw stack therefore
 * remembers its node and the epoch it was found in, and a sample asks the
 * timeline only about the part that its predecessors have not asked.
 */
#include "platform/platform.h"
#include "profile/internal.h"
#include "profile/load.h"

#include <string.h>

/* What an address was in an epoch, which is of one process. */
struct known_address {
	uint64_t avma;
	uint32_t epoch; /* 0: nothing is known */
	uint32_t frame;
	uint32_t map;	     /* + 1 */
	uint32_t chain : 30; /* of inlined functions */
	uint32_t early : 1;
	uint32_t entry : 1; /* may begin a function: see owner_of */
};
#define CHAINS_MAX (UINT32_C(1) << 30)

/* The newest first. */
enum { KNOWN_BITS = 16, WAYS = 4 };
struct known_set {
	struct known_address ways[WAYS];
};

/* A stack that is asked for, and what its last address is now. */
struct step {
	uint32_t stack, frame, chain;
	bool early;
};

struct resolving {
	struct tickmap_loader *loader;
	struct known_set *known;
	uint32_t epochs;
	struct tickmap_table comm_of_tid; /* tid -> comm */
	uint32_t *thread_index;		  /* open addressing; + 1 */
	size_t thread_capacity;
	TICKMAP_VEC(struct step) path;
	size_t side;
};

static uint32_t epoch_at(struct resolving *r, struct tickmap_process *p,
			 uint64_t time_ns)
{
	bool moved = !p->epoch;

	for (; p->change < p->changes.count &&
	       p->changes.items[p->change] <= time_ns;
	     p->change++)
		moved = true;
	if (moved)
		p->epoch = ++r->epochs;
	return p->epoch;
}

/*
 * Whose is a return address? The byte before it is the call's, but not where a
 * runtime makes up the first frame: Erlang and Guile start a process with a
 * return to the first byte of code that nobody called. Nor where a kernel
 * followed what it took for frame pointers: data shaped like frames holds
 * entry points (a list of CPython's trampolines, which lie side by side), and
 * that a function of a code map ends in a call just before another one begins
 * is far rarer.
 */
bool tickmap_samples_may_be_entry(const struct tickmap_loader *loader,
				  const struct tickmap_stack *s)
{
	return s->kind == TICKMAP_STACK_CALLER &&
	       ((!loader->ours && !loader->dwarf_stacks) ||
		tickmap_stacks_is_first(&loader->stacks, s));
}

static struct tickmap_owner owner_of(const struct tickmap_loader *loader,
				     const struct tickmap_process *process,
				     const struct tickmap_stack *s,
				     uint64_t time_ns)
{
	struct tickmap_owner owner = tickmap_timeline_find(
		process->timeline, time_ns, s->avma, TICKMAP_SLACK_NS);

	if (!tickmap_samples_may_be_entry(loader, s) ||
	    (owner.owner != TICKMAP_NO_OWNER &&
	     owner.layer == TICKMAP_LAYER_FILE))
		return owner;
	struct tickmap_owner next = tickmap_timeline_find(
		process->timeline, time_ns, s->avma + 1, TICKMAP_SLACK_NS);
	return next.owner != TICKMAP_NO_OWNER &&
			       next.layer == TICKMAP_LAYER_CODE &&
			       next.start == s->avma + 1
		       ? next
		       : owner;
}

static uint32_t user_frame(struct tickmap_loader *loader,
			   struct tickmap_process *process,
			   struct tickmap_stack *s, uint64_t time_ns,
			   bool *ret_early)
{
	const struct tickmap_profile *profile = loader->profile;
	struct tickmap_owner owner = owner_of(loader, process, s, time_ns);
	bool in_file = owner.owner != TICKMAP_NO_OWNER &&
		       owner.layer == TICKMAP_LAYER_FILE;
	uint32_t map = in_file ? (uint32_t)owner.owner + 1 : 0;

	*ret_early = owner.owner != TICKMAP_NO_OWNER && owner.early;
	/* Most frames outlive the epoch in the file they were in. */
	if (map && map == s->map) {
		loader->chain = s->chain;
		return profile->nodes
			.items[tickmap_inlined_outer(loader, s->node, s->chain)]
			.frame;
	}
	s->map = map;
	return tickmap_frames_user(loader, process, s->avma, time_ns, &owner);
}

static struct known_set *known_place(const struct resolving *r, uint64_t avma,
				     uint32_t epoch)
{
	return &r->known[tickmap_mix(avma ^ (uint64_t)epoch << 48) >>
			 (64 - KNOWN_BITS)];
}

static const struct known_address *
known_in(const struct known_set *set, uint64_t avma, uint32_t epoch, bool entry)
{
	for (unsigned i = 0; i < WAYS; i++) {
		const struct known_address *k = &set->ways[i];
		if (k->avma == avma && k->epoch == epoch && k->entry == entry)
			return k;
	}
	return NULL;
}

/* Many stacks share few addresses. */
static uint32_t user_frame_once(struct resolving *r,
				struct tickmap_process *process,
				struct tickmap_stack *s, uint64_t time_ns,
				uint32_t epoch, bool *ret_early)
{
	struct known_set *set = known_place(r, s->avma, epoch);
	bool entry = tickmap_samples_may_be_entry(r->loader, s);
	const struct known_address *k = known_in(set, s->avma, epoch, entry);

	if (k) {
		s->map = k->map;
		r->loader->chain = k->chain;
		*ret_early = k->early;
		return k->frame;
	}
	uint32_t frame = user_frame(r->loader, process, s, time_ns, ret_early);
	if (frame == TICKMAP_NONE || r->loader->chain >= CHAINS_MAX)
		return frame;
	memmove(&set->ways[1], &set->ways[0], (WAYS - 1) * sizeof(*set->ways));
	set->ways[0] = (struct known_address) {
		.avma = s->avma,
		.epoch = epoch,
		.frame = frame,
		.map = s->map,
		.chain = r->loader->chain & (CHAINS_MAX - 1),
		.early = *ret_early,
		.entry = entry,
	};
	return frame;
}

static bool find_frame(struct resolving *r, struct step *step,
		       struct tickmap_process *process, uint64_t time_ns,
		       uint32_t epoch)
{
	struct tickmap_stack *s = &r->loader->stacks.all.items[step->stack];

	step->early = false;
	step->frame = s->kind == TICKMAP_STACK_KERNEL
			      ? tickmap_frames_kernel(r->loader, s->avma)
			      : user_frame_once(r, process, s, time_ns, epoch,
						&step->early);
	step->chain = s->kind == TICKMAP_STACK_KERNEL ? 0 : r->loader->chain;
	return step->frame != TICKMAP_NONE;
}

static bool place_stack(struct tickmap_loader *loader, const struct step *step,
			uint32_t epoch)
{
	struct tickmap_profile *profile = loader->profile;
	struct tickmap_stack *s = &loader->stacks.all.items[step->stack];
	const struct tickmap_stack *above =
		&loader->stacks.all.items[s->parent];
	const struct tickmap_frame *f = &profile->frames.items[step->frame];
	uint32_t node = tickmap_inlined_outer(loader, s->node, s->chain);
	struct tickmap_node before = profile->nodes.items[node];

	s->flags = above->flags;
	if (f->code_map)
		s->flags |= TICKMAP_STACK_JIT;
	if (f->code_map && f->kind == TICKMAP_FRAME_UNRESOLVED)
		s->flags |= TICKMAP_STACK_JIT_UNNAMED;
	s->early = above->early;
	if (step->early && s->early < UINT16_MAX)
		s->early++;
	if (!s->node || before.frame != step->frame ||
	    before.parent != above->node || s->chain != step->chain) {
		s->chain = step->chain;
		s->node =
			tickmap_profile_node(profile, above->node, step->frame);
		s->node = tickmap_inlined_nodes(loader, s->node, s->chain);
	}
	s->epoch = epoch;
	return s->node != UINT32_MAX;
}

/* In three rounds, so that what the next one wants is fetched for all frames
 * at once: addresses, frames, nodes. */
static bool resolve_stack(struct resolving *r, uint32_t stack,
			  struct tickmap_process *process, uint64_t time_ns,
			  uint32_t epoch)
{
	struct tickmap_stack *all = r->loader->stacks.all.items;
	uint32_t s = stack;

	r->path.count = 0;
	for (; all[s].kind != TICKMAP_STACK_PROCESS && all[s].epoch != epoch;
	     s = all[s].parent) {
		struct step *step = tickmap_vec_push(&r->path);
		if (!step)
			return false;
		step->stack = s;
		struct known_set *set = known_place(r, all[s].avma, epoch);
		__builtin_prefetch(set);
		__builtin_prefetch(&set->ways[WAYS - 1]);
	}
	for (size_t i = r->path.count; i-- > 0;) {
		struct step *step = &r->path.items[i];
		if (!find_frame(r, step, process, time_ns, epoch))
			return false;
	}
	for (size_t i = r->path.count; i-- > 0;)
		if (!place_stack(r->loader, &r->path.items[i], epoch))
			return false;
	return true;
}

/* Thread names as they were when the sample was taken. */
static bool follow_comm(struct resolving *r, uint64_t time_ns)
{
	struct tickmap_loader *loader = r->loader;

	for (; r->side < loader->side.count &&
	       loader->side.items[r->side].time_ns <= time_ns;
	     r->side++) {
		const struct tickmap_side *e = &loader->side.items[r->side];
		uint64_t *comm, inherited;
		if (e->kind == TICKMAP_SIDE_COMM) {
			comm = tickmap_table_put(&r->comm_of_tid, e->tid);
			if (!comm)
				return false;
			*comm = e->comm;
		} else if (e->kind == TICKMAP_SIDE_FORK && e->tid != e->ptid) {
			comm = tickmap_table_get(&r->comm_of_tid, e->ptid);
			inherited = comm ? *comm : 0;
			if (!inherited &&
			    !tickmap_table_get(&r->comm_of_tid, e->tid))
				continue;
			comm = tickmap_table_put(&r->comm_of_tid, e->tid);
			if (!comm)
				return false;
			if (e->time_ns || !*comm)
				*comm = inherited;
		}
	}
	return true;
}

static uint32_t *place_of_thread(const struct resolving *r,
				 const struct tickmap_thread *thread)
{
	const struct tickmap_thread *all = r->loader->profile->threads.items;
	uint64_t key = tickmap_mix(((uint64_t)thread->pid << 32 | thread->tid) ^
				   tickmap_mix(thread->comm));
	size_t mask = r->thread_capacity - 1, i = (size_t)key & mask;

	for (; r->thread_index[i]; i = (i + 1) & mask) {
		const struct tickmap_thread *t = &all[r->thread_index[i] - 1];
		if (t->pid == thread->pid && t->tid == thread->tid &&
		    t->comm == thread->comm)
			break;
	}
	return &r->thread_index[i];
}

static bool grow_threads(struct resolving *r)
{
	const struct tickmap_profile *profile = r->loader->profile;
	size_t capacity = r->thread_capacity ? r->thread_capacity * 2 : 256;
	uint32_t *next = calloc(capacity, sizeof(*next));

	if (!next)
		return false;
	free(r->thread_index);
	r->thread_index = next;
	r->thread_capacity = capacity;
	for (size_t i = 0; i < profile->threads.count; i++)
		*place_of_thread(r, &profile->threads.items[i]) =
			(uint32_t)(i + 1);
	return true;
}

static uint32_t thread_of(struct resolving *r,
			  const struct tickmap_raw_sample *raw)
{
	struct tickmap_profile *profile = r->loader->profile;
	const uint64_t *comm = tickmap_table_get(&r->comm_of_tid, raw->tid);
	struct tickmap_thread thread = { .pid = raw->pid,
					 .tid = raw->tid,
					 .comm = comm ? (tickmap_str)*comm
						      : 0 };
	if (profile->threads.count * 4 >= r->thread_capacity * 3 &&
	    !grow_threads(r))
		return TICKMAP_NONE;
	uint32_t *place = place_of_thread(r, &thread);
	if (*place)
		return *place - 1;
	struct tickmap_thread *added =
		profile->threads.count < UINT32_MAX - 1
			? tickmap_vec_push(&profile->threads)
			: NULL;
	if (!added)
		return TICKMAP_NONE;
	*added = thread;
	*place = (uint32_t)profile->threads.count;
	return *place - 1;
}

static bool is_in(const uint32_t *list, size_t count, uint32_t value)
{
	for (size_t i = 0; i < count; i++)
		if (list[i] == value)
			return true;
	return !list;
}

static bool is_wanted(const struct tickmap_profile_options *options,
		      const struct tickmap_raw_sample *raw)
{
	return is_in(options->pids, options->pid_count, raw->pid) &&
	       is_in(options->tids, options->tid_count, raw->tid) &&
	       raw->time_ns >= options->from_ns &&
	       (!options->to_ns || raw->time_ns < options->to_ns);
}

static void count(struct tickmap_profile *profile,
		  const struct tickmap_raw_sample *raw,
		  const struct tickmap_stack *stack)
{
	enum {
		REASONS = sizeof(profile->truncated_by) /
			  sizeof(*profile->truncated_by)
	};

	if (raw->truncated) {
		profile->truncated++;
		profile->truncated_by[raw->truncated < REASONS ? raw->truncated
							       : REASONS - 1]++;
	}
	if (stack->flags & TICKMAP_STACK_JIT) {
		profile->jit_samples++;
		if (!(stack->flags & TICKMAP_STACK_JIT_UNNAMED))
			profile->jit_resolved++;
	}
	profile->early += stack->early;
	if (stack->early)
		profile->clock.violations++;
	profile->cpu_seconds += (double)raw->cpu_ns / 1e9;
}

static bool resolve_sample(struct resolving *r,
			   const struct tickmap_raw_sample *raw)
{
	struct tickmap_loader *loader = r->loader;
	struct tickmap_profile *profile = loader->profile;

	if (!is_wanted(loader->options, raw)) {
		profile->filtered++;
		return true;
	}
	/* Without times everything is as it was in the end. */
	uint64_t time_ns = loader->timeless ? UINT64_MAX - TICKMAP_SLACK_NS - 1
					    : raw->time_ns;
	if (!follow_comm(r, time_ns))
		return false;
	struct tickmap_process *p =
		tickmap_profile_process_sampled(loader, raw->pid, time_ns);
	if (!resolve_stack(r, raw->stack, p, time_ns, epoch_at(r, p, time_ns)))
		return false;
	uint32_t thread = thread_of(r, raw);
	struct tickmap_profile_sample *sample =
		thread == TICKMAP_NONE ? NULL
				       : tickmap_vec_push(&profile->samples);
	if (!sample)
		return false;
	if (loader->options->addresses &&
	    !tickmap_profile_keep_stack(profile, raw->stack))
		return false;
	const struct tickmap_stack *stack =
		&loader->stacks.all.items[raw->stack];
	*sample = (struct tickmap_profile_sample) {
		.time_ns = raw->time_ns,
		.avma = raw->avma,
		.thread = thread,
		.cpu = raw->cpu,
		.node = stack->node,
		.jit = stack->flags & TICKMAP_STACK_JIT,
		.jit_resolved = (stack->flags & (TICKMAP_STACK_JIT |
						 TICKMAP_STACK_JIT_UNNAMED)) ==
				TICKMAP_STACK_JIT,
		.truncated = raw->truncated,
	};
	count(profile, raw, stack);
	return true;
}

static int by_time(const void *a, const void *b)
{
	const struct tickmap_raw_sample *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return (x->order > y->order) - (x->order < y->order);
}

static void sort_by_time(struct tickmap_loader *loader)
{
	const struct tickmap_raw_sample *raw = loader->raw.items;

	/* One ring's samples are in order; sorting takes as much memory again.
	 */
	for (size_t i = 1; i < loader->raw.count; i++) {
		if (by_time(&raw[i - 1], &raw[i]) > 0) {
			qsort(loader->raw.items, loader->raw.count,
			      sizeof(*loader->raw.items), by_time);
			return;
		}
	}
}

enum { MANY = 1 << 16 };

bool tickmap_samples_resolve(struct tickmap_loader *loader)
{
	struct resolving r = {
		.loader = loader,
		.known = calloc((size_t)1 << KNOWN_BITS, sizeof(*r.known)),
	};
	bool good = r.known;

	sort_by_time(loader);
	for (size_t i = 0; good && i < loader->raw.count; i++) {
		good = resolve_sample(&r, &loader->raw.items[i]);
		/* The samples of the profile take their place. */
		if ((i + 1) % MANY == 0)
			tickmap_platform_forget(
				&loader->raw.items[i + 1 - MANY],
				MANY * sizeof(loader->raw.items[0]));
	}
	tickmap_table_free(&r.comm_of_tid);
	free(r.thread_index);
	tickmap_vec_free(&r.path);
	free(r.known);
	return good;
}

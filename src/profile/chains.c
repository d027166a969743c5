/* SPDX-License-Identifier: MIT */
/*
 * Samples as the file has them: their chains into a tree of raw addresses, in
 * which those that are alike share their callers.
 */
#include "profile/load.h"
#include "unwind/unwind.h"

#include <linux/perf_event.h>

/* The kernel's default limit of a chain (kernel.perf_event_max_stack). */
enum { KERNEL_CHAIN_MAX = 127 };

static bool is_kernel_mode(uint16_t misc)
{
	unsigned mode = misc & PERF_RECORD_MISC_CPUMODE_MASK;

	return mode == PERF_RECORD_MISC_KERNEL ||
	       mode == PERF_RECORD_MISC_HYPERVISOR ||
	       mode == PERF_RECORD_MISC_GUEST_KERNEL;
}

static bool is_kernel_context(uint64_t marker)
{
	return marker == (uint64_t)PERF_CONTEXT_HV ||
	       marker == (uint64_t)PERF_CONTEXT_KERNEL ||
	       marker == (uint64_t)PERF_CONTEXT_GUEST_KERNEL;
}

/* Kernels from 6.19 on may walk the user part later; a cookie follows. */
#define CONTEXT_USER_DEFERRED ((uint64_t)-640)
enum { RECORD_CALLCHAIN_DEFERRED = 22 };

/*
 * Leaf first. A return address may already belong to the next function, so
 * callers are looked up one byte earlier; the first address of each context is
 * an instruction that really ran.
 */
static size_t read_chain(const struct tickmap_sample *sample, uint16_t misc,
			 struct tickmap_link *links, bool *ret_user,
			 uint64_t *ret_cookie)
{
	bool kernel = is_kernel_mode(misc), caller = false;
	size_t count = 0;

	*ret_user = false;
	*ret_cookie = 0;
	for (size_t i = 0; i < sample->chain_count; i++) {
		uint64_t ip = tickmap_sample_chain_at(sample, i);
		if (ip == CONTEXT_USER_DEFERRED) {
			if (i + 1 < sample->chain_count)
				*ret_cookie =
					tickmap_sample_chain_at(sample, i + 1);
			break;
		}
		if (ip >= (uint64_t)PERF_CONTEXT_MAX) {
			kernel = is_kernel_context(ip);
			caller = false;
			continue;
		}
		*ret_user |= !kernel;
		links[count++] =
			(struct tickmap_link) { .avma = ip - (caller && ip),
						.kernel = kernel,
						.caller = caller && ip };
		caller = true;
	}
	return count;
}

/* The user's instruction pointer, if registers were recorded: x86's bit 8. */
static uint64_t user_ip(const struct tickmap_sample *sample)
{
	enum { X86_IP = 8 };

	return sample->regs_abi && (sample->regs_mask >> X86_IP & 1)
		       ? sample->regs[X86_IP]
		       : 0;
}

static enum tickmap_stack_kind kind_of(const struct tickmap_link *link)
{
	return link->kernel   ? TICKMAP_STACK_KERNEL
	       : link->caller ? TICKMAP_STACK_CALLER
			      : TICKMAP_STACK_USER;
}

static uint32_t add_links(struct tickmap_loader *loader, uint32_t pid,
			  const struct tickmap_link *links, size_t count)
{
	struct tickmap_stacks *stacks = &loader->stacks;
	uint32_t stack =
		tickmap_stacks_add(stacks, 0, pid, TICKMAP_STACK_PROCESS);

	for (size_t i = count; i-- > 0 && stack != TICKMAP_NONE;)
		stack = tickmap_stacks_add(stacks, stack, links[i].avma,
					   kind_of(&links[i]));
	return stack;
}

/* The time that one sample stands for. Of several events the first counts:
 * they sample the same time. */
static uint64_t cpu_ns_of(const struct tickmap_loader *loader,
			  const struct tickmap_perfdata_attr *attr,
			  const struct tickmap_sample *sample)
{
	bool clock = attr->type == PERF_TYPE_SOFTWARE &&
		     (attr->config == PERF_COUNT_SW_CPU_CLOCK ||
		      attr->config == PERF_COUNT_SW_TASK_CLOCK);

	if (attr != loader->main_attr)
		return 0;
	if (clock && (attr->layout.sample_type & PERF_SAMPLE_PERIOD))
		return sample->period;
	if (attr->freq && attr->sample_freq_or_period)
		return UINT64_C(1000000000) / attr->sample_freq_or_period;
	return clock ? attr->sample_freq_or_period : 0;
}

uint32_t tickmap_chains_join(struct tickmap_loader *loader, uint32_t pid,
			     struct tickmap_link *user, size_t count,
			     uint32_t kernel)
{
	enum { DEEP = 1024 };
	uint32_t path[DEEP];
	size_t depth = 0;
	uint32_t stack = add_links(loader, pid, user, count);

	for (; loader->stacks.all.items[kernel].kind == TICKMAP_STACK_KERNEL &&
	       depth < DEEP;
	     kernel = loader->stacks.all.items[kernel].parent)
		path[depth++] = kernel;
	while (depth-- > 0 && stack != TICKMAP_NONE)
		stack = tickmap_stacks_add(
			&loader->stacks, stack,
			loader->stacks.all.items[path[depth]].avma,
			TICKMAP_STACK_KERNEL);
	return stack;
}

static bool defer(struct tickmap_loader *loader, uint64_t cookie, uint32_t tid,
		  uint32_t sample, uint32_t stack)
{
	struct tickmap_deferred *d = tickmap_vec_push(&loader->deferred);

	if (d)
		*d = (struct tickmap_deferred) { .cookie = cookie,
						 .tid = tid,
						 .sample = sample,
						 .stack = stack };
	return d;
}

bool tickmap_chains_deferred(struct tickmap_loader *loader,
			     const struct tickmap_perfdata_record *record)
{
	struct tickmap_bytes body =
		tickmap_bytes_of(record->bytes, record->size);
	struct tickmap_sample chain = { .swap = record->swap };
	uint64_t cookie, none;
	bool user;

	body.swap = record->swap;
	tickmap_take(&body, sizeof(struct perf_event_header));
	cookie = tickmap_u64(&body);
	uint64_t count = tickmap_u64(&body);
	if (body.failed || count > tickmap_bytes_left(&body) / 8)
		return true;
	chain.chain = body.base + body.pos;
	chain.chain_count = (size_t)count;
	if (!tickmap_vec_reserve(&loader->links, chain.chain_count + 1))
		return false;
	size_t links = read_chain(&chain, PERF_RECORD_MISC_USER,
				  loader->links.items, &user, &none);
	uint32_t stack =
		add_links(loader, record->id.pid, loader->links.items, links);
	return stack != TICKMAP_NONE &&
	       defer(loader, cookie, record->id.tid, TICKMAP_NONE, stack);
}

static int by_cookie(const void *a, const void *b)
{
	const struct tickmap_deferred *x = a, *y = b;

	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	if (x->cookie != y->cookie)
		return x->cookie < y->cookie ? -1 : 1;
	/* What was waited for comes behind those that wait. */
	return (x->sample > y->sample) - (x->sample < y->sample);
}

static bool join(struct tickmap_loader *loader, struct tickmap_raw_sample *raw,
		 uint32_t user)
{
	const struct tickmap_stack *all = loader->stacks.all.items;
	size_t count = 0;

	for (uint32_t s = user; all[s].kind == TICKMAP_STACK_USER ||
				all[s].kind == TICKMAP_STACK_CALLER;
	     s = all[s].parent) {
		struct tickmap_link *link;
		if (!tickmap_vec_reserve(&loader->links, count + 1))
			return false;
		link = &loader->links.items[count++];
		*link = (struct tickmap_link) {
			.avma = all[s].avma,
			.caller = all[s].kind == TICKMAP_STACK_CALLER,
		};
	}
	raw->truncated = 0;
	raw->stack = tickmap_chains_join(loader, raw->pid, loader->links.items,
					 count, raw->stack);
	return raw->stack != TICKMAP_NONE;
}

bool tickmap_chains_end(struct tickmap_loader *loader)
{
	const struct tickmap_deferred *d = loader->deferred.items;
	const struct tickmap_deferred *told = NULL;

	if (!loader->deferred.count)
		return true;
	qsort(loader->deferred.items, loader->deferred.count, sizeof(*d),
	      by_cookie);
	for (size_t i = loader->deferred.count; i-- > 0;) {
		if (d[i].sample == TICKMAP_NONE)
			told = &d[i];
		else if (told && told->tid == d[i].tid &&
			 told->cookie == d[i].cookie &&
			 !join(loader, &loader->raw.items[d[i].sample],
			       told->stack))
			return false;
	}
	return true;
}

static bool add_raw(struct tickmap_loader *loader,
		    const struct tickmap_perfdata_record *record,
		    const struct tickmap_sample *sample, size_t count,
		    uint8_t truncated, bool unwind)
{
	struct tickmap_link *links = loader->links.items;
	struct tickmap_raw_sample *raw =
		loader->raw.count < TICKMAP_NONE
			? tickmap_vec_push(&loader->raw)
			: NULL;

	if (!raw)
		return false;
	for (size_t i = 0; i < count; i++)
		loader->profile->kernel_seen |= links[i].kernel;
	*raw = (struct tickmap_raw_sample) {
		.time_ns = sample->time_ns,
		.cpu_ns = cpu_ns_of(loader, record->attr, sample),
		.order = loader->order,
		.pid = sample->pid,
		.tid = sample->tid,
		.cpu = sample->cpu,
		.stack = add_links(loader, sample->pid, links, count),
		.avma = links[0].avma,
		.truncated = truncated,
		.unwind = unwind,
	};
	return raw->stack != TICKMAP_NONE;
}

bool tickmap_samples_add(struct tickmap_loader *loader,
			 const struct tickmap_perfdata_record *record,
			 const struct tickmap_sample *sample)
{
	size_t room = sample->chain_count + 2, count;
	uint8_t truncated = loader->next_truncated;
	struct tickmap_link *links;
	uint64_t cookie;
	bool user, unwind = false;

	if (!tickmap_vec_reserve(&loader->links, room))
		return false;
	links = loader->links.items;
	count = read_chain(sample, record->misc, links, &user, &cookie);
	if (!count)
		links[count++] = (struct tickmap_link) {
			.avma = sample->ip,
			.kernel = is_kernel_mode(record->misc),
		};
	if (sample->stack_size && !loader->ours && !user) {
		/* Until it is walked only its leaf is known. */
		loader->dwarf_stacks = unwind = true;
		truncated = TICKMAP_TRUNCATED_NOT_UNWOUND;
		if (links[count - 1].kernel && user_ip(sample))
			links[count++] = (struct tickmap_link) {
				.avma = user_ip(sample),
			};
	} else if (cookie) {
		truncated = TICKMAP_TRUNCATED_DEFERRED;
		if (!defer(loader, cookie, sample->tid,
			   (uint32_t)loader->raw.count, 0))
			return false;
	} else if (!loader->ours && count == KERNEL_CHAIN_MAX) {
		truncated = TICKMAP_END_TOO_DEEP;
	}
	return add_raw(loader, record, sample, count, truncated, unwind);
}

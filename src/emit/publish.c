/* SPDX-License-Identifier: MIT */
/*
 * The calls between open and close. A publish takes the lock, then the time,
 * builds all records of the function in one buffer and appends them with one
 * write, the code straight from the caller's memory. Time inside the lock is
 * what keeps stamps in file order.
 *
 * Two threads that write to one file in turn are slower than one that writes
 * for both: the file's end, its last page and the lock go from one processor to
 * the other each time. So a thread that finds the lock taken leaves its request
 * for the one that has it, and waits. The one that has it, while others have
 * been there lately, gives them a moment to come before it writes: one write
 * for two costs little more than one for one. And it stays the one that writes,
 * as long as it comes in time.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "internal.h"

#include <string.h>

#define FIRST_CODE offsetof(struct tickmap_code, eh_frame)

static struct emit_stamp stamp_now(struct tickmap_emit *emit, uint32_t tid)
{
	return (struct emit_stamp) { .ns = tickmap_emit_now(emit),
				     .pid = emit->pid,
				     .tid = tid };
}

/* The cheap part of every call: latched, or in the wrong process. */
static int refuse(const struct tickmap_emit *emit)
{
	if (tickmap_emit_is_forked(emit))
		return TICKMAP_EMIT_E_FORKED;
	return atomic_load_explicit(&emit->status, memory_order_relaxed);
}

/* Lock, unless there is nothing left to do: then the status. */
static int enter(struct tickmap_emit *emit)
{
	int status = refuse(emit);

	if (status)
		return status;
	pthread_mutex_lock(&emit->lock);
	status = atomic_load_explicit(&emit->status, memory_order_relaxed);
	if (status)
		pthread_mutex_unlock(&emit->lock);
	return status;
}

static int take_code(const struct tickmap_emit *emit,
		     const struct tickmap_code *code, struct emit_code *own)
{
	int status;

	memset(own, 0, sizeof(*own));
	if (!tickmap_emit_take_struct(&own->code, code, sizeof(*code),
				      FIRST_CODE) ||
	    !own->code.name)
		return TICKMAP_EMIT_E_ARGUMENT;
	if (emit->options.flags & TICKMAP_EMIT_UNIQUE_TAIL)
		own->tail_size = TICKMAP_EMIT_TAIL_SIZE;
	if (own->code.code_size > UINT64_MAX - own->tail_size ||
	    own->code.code_size + own->tail_size > UINT64_MAX - own->code.addr)
		return TICKMAP_EMIT_E_ARGUMENT;
	if (!(emit->options.sinks & (TICKMAP_EMIT_JITDUMP | TICKMAP_EMIT_GDB)))
		own->code.line_count = 0;
	else if ((status = tickmap_emit_find_cfi(&own->code, &own->cfi)) ||
		 (status = tickmap_emit_jitdump_check(own)))
		return status;
	if (!own->code.name_length)
		own->code.name_length = strlen(own->code.name);
	own->tid = tickmap_emit_os_tid(emit->pid);
	own->short_names = emit->options.flags & TICKMAP_EMIT_SHORT_NAMES;
	return TICKMAP_EMIT_OK;
}

/* A publish that another thread may do. On its owner's stack. */
struct emit_request {
	struct emit_request *next;
	struct emit_code *code;
	int status;
	_Atomic int done;
};

/* The copy comes first: it is what may fail harmlessly. */
static struct emit_live *prepare(struct tickmap_emit *emit,
				 struct emit_code *code, int *ret_status)
{
	struct emit_live *entry = NULL;

	*ret_status = atomic_load_explicit(&emit->status, memory_order_relaxed);
	code->index = code->code.index ? code->code.index : emit->next_index;
	if (!*ret_status && code->index == UINT64_MAX)
		*ret_status = TICKMAP_EMIT_E_ARGUMENT; /* none is above it */
	if (!*ret_status && tickmap_emit_remembers(emit) &&
	    code->code.code_size)
		*ret_status = tickmap_emit_live_new(emit, code, &entry);
	if (!*ret_status && code->index >= emit->next_index)
		emit->next_index = code->index + 1;
	return entry;
}

static void finish(struct tickmap_emit *emit, const struct emit_code *code,
		   struct emit_live *entry, int status)
{
	/* As if it had never been asked for. */
	if (status && code->index + 1 == emit->next_index && !code->code.index)
		emit->next_index = code->index;
	if (!entry)
		return;
	if (status)
		tickmap_emit_live_drop(emit, entry);
	else
		tickmap_emit_live_insert(emit, entry);
}

/* With the lock held. */
static void publish_group(struct tickmap_emit *emit, struct emit_code **codes,
			  int *statuses, size_t count)
{
	struct emit_live *entries[EMIT_GROUP];

	for (size_t i = 0; i < count; i++)
		entries[i] = prepare(emit, codes[i], &statuses[i]);
	for (size_t i = 0; i < count;)
		i += tickmap_emit_write_codes(emit, codes + i, statuses + i,
					      count - i);
	for (size_t i = count; i--;)
		finish(emit, codes[i], entries[i], statuses[i]);
}

/* The first up to EMIT_GROUP requests of the list; the rest of it. */
static struct emit_request *serve_group(struct tickmap_emit *emit,
					struct emit_request *requests)
{
	struct emit_request *group[EMIT_GROUP];
	struct emit_code *codes[EMIT_GROUP];
	int statuses[EMIT_GROUP];
	size_t count = 0;

	for (; requests && count < EMIT_GROUP; requests = requests->next) {
		group[count] = requests;
		codes[count++] = requests->code;
	}
	publish_group(emit, codes, statuses, count);
	for (size_t i = 0; i < count; i++) {
		group[i]->status = statuses[i];
		/* It is gone when its owner sees this. */
		atomic_store_explicit(&group[i]->done, 1, memory_order_release);
	}
	return requests;
}

/* For a fraction of a write; so many times in vain before it is given up. */
#define COMPANY_SPINS 64
#define COMPANY_PATIENCE 8

static uint32_t hint(const _Atomic uint32_t *value)
{
	return atomic_load_explicit(value, memory_order_relaxed);
}

static void set_hint(_Atomic uint32_t *hinted, uint32_t value)
{
	if (hint(hinted) != value)
		atomic_store_explicit(hinted, value, memory_order_relaxed);
}

/* With the lock held. */
static void await_company(const struct tickmap_emit *emit)
{
	int spins = hint(&emit->company) && !emit->options.batch_size
			    ? COMPANY_SPINS
			    : 0;

	while (spins-- &&
	       !atomic_load_explicit(&emit->requests, memory_order_relaxed))
		tickmap_emit_relax();
}

static void note_company(struct tickmap_emit *emit, bool came)
{
	uint32_t patience = hint(&emit->company);

	if (came)
		set_hint(&emit->company, COMPANY_PATIENCE);
	else if (patience)
		set_hint(&emit->company, patience - 1);
}

/* With the lock held by the thread `tid`: `first`, if there is one, and what
 * was asked for up to now, the oldest first. */
static void serve(struct tickmap_emit *emit, struct emit_request *first,
		  uint32_t tid)
{
	struct emit_request *newest = NULL;
	struct emit_request *oldest = NULL;

	await_company(emit);
	if (atomic_load_explicit(&emit->requests, memory_order_relaxed))
		newest = atomic_exchange(&emit->requests, NULL);
	while (newest) {
		struct emit_request *next = newest->next;

		newest->next = oldest;
		oldest = newest;
		newest = next;
	}
	if (first) {
		first->next = oldest;
		oldest = first;
	}
	set_hint(&emit->writer, tid);
	note_company(emit, oldest && oldest->next);
	while (oldest)
		oldest = serve_group(emit, oldest);
}

/* Longer than many writes take, shorter than a turn of the scheduler. */
#define SPINS 1024
#define SPINS_A_TRY 32

static void publish_through_others(struct tickmap_emit *emit,
				   struct emit_request *request)
{
	request->next =
		atomic_load_explicit(&emit->requests, memory_order_relaxed);
	while (!atomic_compare_exchange_weak(&emit->requests, &request->next,
					     request))
		;
	for (int i = 1; i <= SPINS; i++) {
		if (atomic_load_explicit(&request->done, memory_order_acquire))
			return;
		if (i == SPINS)
			pthread_mutex_lock(&emit->lock);
		else if (i % SPINS_A_TRY ||
			 pthread_mutex_trylock(&emit->lock)) {
			tickmap_emit_relax();
			continue;
		}
		/* Ours is among them, or has been. */
		serve(emit, NULL, request->code->tid);
		pthread_mutex_unlock(&emit->lock);
		return;
	}
}

/* The one that wrote for both has the file's end in its cache. */
static bool leaves_it_to_other(const struct tickmap_emit *emit, uint32_t tid)
{
	return hint(&emit->company) && hint(&emit->writer) != tid;
}

int tickmap_emit_code(struct tickmap_emit *emit,
		      const struct tickmap_code *code)
{
	struct emit_code own;
	struct emit_request request = { .code = &own };
	int status;

	if (!emit || !code)
		return TICKMAP_EMIT_E_ARGUMENT;
	status = refuse(emit);
	if (!status)
		status = take_code(emit, code, &own);
	if (status)
		return status;
	if (leaves_it_to_other(emit, own.tid) ||
	    pthread_mutex_trylock(&emit->lock)) {
		publish_through_others(emit, &request);
		return request.status;
	}
	serve(emit, &request, own.tid);
	pthread_mutex_unlock(&emit->lock);
	return request.status;
}

int tickmap_emit_move(struct tickmap_emit *emit, uint64_t old_addr,
		      uint64_t new_addr, uint64_t code_size, uint64_t index)
{
	int status;

	if (!emit || !index || code_size > UINT64_MAX - old_addr ||
	    code_size > UINT64_MAX - new_addr)
		return TICKMAP_EMIT_E_ARGUMENT;
	status = enter(emit);
	if (status)
		return status;
	if (tickmap_emit_remembers(emit))
		status =
			tickmap_emit_live_move(emit, old_addr, new_addr, index);
	if (!status && emit->dump.fd >= 0) {
		struct emit_stamp stamp =
			stamp_now(emit, tickmap_emit_os_tid(emit->pid));
		struct emit_out out = tickmap_emit_empty_out(emit);

		tickmap_emit_jitdump_move(&out, old_addr, new_addr, code_size,
					  index, &stamp);
		status = tickmap_emit_append_out(emit, &emit->dump, &out);
	}
	pthread_mutex_unlock(&emit->lock);
	return status;
}

int tickmap_emit_remove(struct tickmap_emit *emit, uint64_t addr)
{
	int status = emit ? enter(emit) : TICKMAP_EMIT_E_ARGUMENT;

	if (status)
		return status;
	tickmap_emit_live_remove(emit, addr);
	pthread_mutex_unlock(&emit->lock);
	return TICKMAP_EMIT_OK;
}

int tickmap_emit_flush(struct tickmap_emit *emit)
{
	int status = emit ? enter(emit) : TICKMAP_EMIT_E_ARGUMENT;

	if (status)
		return status;
	status = tickmap_emit_append_pending(emit);
	pthread_mutex_unlock(&emit->lock);
	return status;
}

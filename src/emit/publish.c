/* SPDX-License-Identifier: MIT */
/*
 * The calls between open and close. A publish takes the lock, then the time,
 * builds all records of the function in one buffer and appends them with one
 * write, the code straight from the caller's memory. Time inside the lock is
 * what keeps stamps in file order.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "internal.h"

#include <string.h>

#define FIRST_CODE offsetof(struct tickmap_code, eh_frame)

static struct emit_stamp stamp_now(struct tickmap_emit *emit)
{
	return (struct emit_stamp) {
		.ns = tickmap_emit_now(emit),
		.pid = emit->pid,
		.tid = tickmap_emit_os_tid(emit->pid),
	};
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
	    !own->code.name ||
	    own->code.code_size > UINT64_MAX - own->code.addr)
		return TICKMAP_EMIT_E_ARGUMENT;
	if (!(emit->options.sinks & (TICKMAP_EMIT_JITDUMP | TICKMAP_EMIT_GDB)))
		own->code.line_count = 0;
	else if ((status = tickmap_emit_find_cfi(&own->code, &own->cfi)) ||
		 (status = tickmap_emit_jitdump_check(own)))
		return status;
	if (!own->code.name_length)
		own->code.name_length = strlen(own->code.name);
	if (emit->options.flags & TICKMAP_EMIT_UNIQUE_TAIL)
		own->tail_size = TICKMAP_EMIT_TAIL_SIZE;
	own->short_names = emit->options.flags & TICKMAP_EMIT_SHORT_NAMES;
	return TICKMAP_EMIT_OK;
}

int tickmap_emit_publish(struct tickmap_emit *emit,
			 const struct emit_code *code)
{
	struct emit_out out = tickmap_emit_empty_out(emit);
	int status = TICKMAP_EMIT_OK;

	if (emit->dump.fd >= 0) {
		struct emit_stamp stamp = stamp_now(emit);

		tickmap_emit_jitdump_code(&out, code, &stamp);
		status = tickmap_emit_append(emit, &emit->dump, &out, code);
	}
	if (!status && emit->map.fd >= 0) {
		out = tickmap_emit_empty_out(emit);
		tickmap_emit_perfmap_line(&out, &code->code);
		status = tickmap_emit_append(emit, &emit->map, &out, NULL);
	}
	return status;
}

/* With the lock held. The copy comes first: it is what may fail harmlessly. */
static int publish_and_remember(struct tickmap_emit *emit,
				struct emit_code *code)
{
	struct emit_live *entry = NULL;
	int status;

	code->index = code->code.index ? code->code.index : emit->next_index;
	if (tickmap_emit_remembers(emit) && code->code.code_size) {
		entry = tickmap_emit_live_new(emit, code);
		if (!entry)
			return TICKMAP_EMIT_E_NOMEM;
	}
	status = tickmap_emit_publish(emit, code);
	if (!status && code->index >= emit->next_index)
		emit->next_index = code->index + 1;
	if (!status && entry)
		tickmap_emit_live_insert(emit, entry);
	else if (entry)
		tickmap_emit_live_drop(emit, entry);
	return status;
}

int tickmap_emit_code(struct tickmap_emit *emit,
		      const struct tickmap_code *code)
{
	struct emit_code own;
	int status;

	if (!emit || !code)
		return TICKMAP_EMIT_E_ARGUMENT;
	status = refuse(emit);
	if (!status)
		status = take_code(emit, code, &own);
	if (!status)
		status = enter(emit);
	if (status)
		return status;
	status = publish_and_remember(emit, &own);
	pthread_mutex_unlock(&emit->lock);
	return status;
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
		struct emit_stamp stamp = stamp_now(emit);
		struct emit_out out = tickmap_emit_empty_out(emit);

		tickmap_emit_jitdump_move(&out, old_addr, new_addr, code_size,
					  index, &stamp);
		status = tickmap_emit_append(emit, &emit->dump, &out, NULL);
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

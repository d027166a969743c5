/* SPDX-License-Identifier: MIT */
#include "publish.h"

#include <errno.h>
#include <pthread.h>

#include "arena.h"
#include "trampoline.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct tickmap_emit *emit;
static struct tickmap_unwind unwind;
static int status;
static int status_errno;
/* Set in a fresh child; the files are made when there is something to say. */
static int forked;

void tickmap_publish_lock(void)
{
	pthread_mutex_lock(&lock);
}

void tickmap_publish_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

static void child_after_fork(void)
{
	forked = 1;
	pthread_mutex_unlock(&lock);
}

static int open_once(const struct tickmap_emit_options *options)
{
	if (emit)
		return TICKMAP_EMIT_OK;
	int result = tickmap_trampoline_unwind(&unwind);
	if (result != TICKMAP_EMIT_OK)
		return result;
	/* Registered before the files are there: handlers cannot be removed,
	 * and without them a child would write into its parent's. */
	static int watching_forks;
	if (!watching_forks) {
		int error = pthread_atfork(tickmap_publish_lock,
					   tickmap_publish_unlock,
					   child_after_fork);
		if (error != 0) {
			errno = error;
			return TICKMAP_EMIT_E_OS;
		}
		watching_forks = 1;
	}
	forked = 0;
	return tickmap_emit_open(options, &emit);
}

int tickmap_publish_open(uint32_t sinks, uint32_t flags, const char *dir)
{
	struct tickmap_emit_options options = TICKMAP_EMIT_OPTIONS_INIT;

	options.sinks = sinks;
	options.flags = flags;
	options.dir = dir;
	tickmap_publish_lock();
	int result = open_once(&options);
	int error = errno;
	status = result;
	status_errno = result == TICKMAP_EMIT_E_OS ? error : 0;
	tickmap_publish_unlock();
	errno = error;
	return result;
}

static int follow_fork(void)
{
	if (!forked)
		return TICKMAP_EMIT_OK;
	forked = 0;
	tickmap_arena_abandon();
	return tickmap_emit_after_fork(emit);
}

static int announce(const uint8_t *at, const char *name, size_t name_length,
		    const char *file, int line)
{
	struct tickmap_code code = TICKMAP_CODE_INIT;
	struct tickmap_line first = { 0 };

	code.addr = (uintptr_t)at;
	code.code_size = tickmap_trampoline_size;
	code.bytes = at;
	code.name = name;
	code.name_length = name_length;
	code.file = file;
	code.unwind = &unwind;
	code.mapped_size = tickmap_emit_mapped_size(&unwind); /* see arena.c */
	if (line >= 1) {
		first.line = (uint32_t)line;
		code.lines = &first;
		code.line_count = 1;
	}
	return tickmap_emit_code(emit, &code);
}

const uint8_t *tickmap_publish_function(const char *name, size_t name_length,
					const char *file, int line)
{
	if (!emit)
		return NULL;
	int result = follow_fork();
	if (result != TICKMAP_EMIT_OK) {
		status = result;
		status_errno = tickmap_emit_errno(emit);
		return NULL;
	}
	const uint8_t *at = tickmap_arena_take(&unwind);
	if (!at) {
		status = TICKMAP_EMIT_E_OS;
		status_errno = errno;
		return NULL;
	}
	result = announce(at, name, name_length, file, line);
	if (result == TICKMAP_EMIT_OK)
		return at;
	/* Not announced: the slot is lost, the status stays for the curious. */
	status = result;
	status_errno = tickmap_emit_errno(emit);
	return NULL;
}

int tickmap_publish_status(int *ret_errno)
{
	*ret_errno = status_errno;
	return status;
}

const char *tickmap_publish_path(uint32_t sink)
{
	return emit ? tickmap_emit_path(emit, sink) : NULL;
}

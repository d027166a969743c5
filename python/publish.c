/* SPDX-License-Identifier: MIT */
#include "publish.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arena.h"
#include "trampoline.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct tickmap_emit *emit;
static struct tickmap_unwind unwind;
/* What emit was opened with. */
static struct {
	uint32_t sinks;
	char dir[PATH_MAX];
} opened;
static char asked[PATH_MAX];
static char absolute[PATH_MAX];
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

/* Before the files are there: handlers cannot be removed, and without them a
 * child would write into its parent's. */
static int watch_forks(void)
{
	static int watching;

	if (watching)
		return TICKMAP_EMIT_OK;
	int error = pthread_atfork(tickmap_publish_lock, tickmap_publish_unlock,
				   child_after_fork);
	if (error != 0) {
		errno = error;
		return TICKMAP_EMIT_E_OS;
	}
	watching = 1;
	return TICKMAP_EMIT_OK;
}

/* From where the program is now: it may be elsewhere when it asks again. What
 * cannot be made absolute is left for the library to refuse. */
static void make_absolute(struct tickmap_publish_request *wanted)
{
	char here[PATH_MAX];

	if (wanted->dir[0] == '/' || !getcwd(here, sizeof(here)))
		return;
	int length = snprintf(absolute, sizeof(absolute), "%s/%s", here,
			      wanted->dir);
	if (length > 0 && (size_t)length < sizeof(absolute))
		wanted->dir = absolute;
}

/* What is not said in the request is as it was. */
static void complete(struct tickmap_publish_request *wanted)
{
	if (!wanted->sinks)
		wanted->sinks =
			opened.sinks ? opened.sinks : TICKMAP_EMIT_JITDUMP;
	if (!wanted->dir)
		wanted->dir = opened.sinks ? opened.dir : getenv("TICKMAP_DIR");
	if (!wanted->dir || !wanted->dir[0])
		wanted->dir = "/tmp";
}

static int open_another(const struct tickmap_publish_request *wanted)
{
	struct tickmap_emit_options options = TICKMAP_EMIT_OPTIONS_INIT;
	struct tickmap_emit *another;

	options.sinks = wanted->sinks;
	options.flags = wanted->flags;
	options.dir = wanted->dir;
	int result = tickmap_trampoline_unwind(&unwind);
	if (result == TICKMAP_EMIT_OK)
		result = watch_forks();
	if (result == TICKMAP_EMIT_OK)
		result = tickmap_emit_open(&options, &another);
	if (result != TICKMAP_EMIT_OK)
		return result;
	tickmap_emit_close(emit);
	emit = another;
	if (forked)
		tickmap_arena_abandon();
	forked = 0;
	opened.sinks = wanted->sinks;
	if (wanted->dir != opened.dir) /* the library has checked its length */
		strcpy(opened.dir, wanted->dir);
	return TICKMAP_EMIT_OK;
}

int tickmap_publish_open(const struct tickmap_publish_request *request,
			 int *ret_anew)
{
	struct tickmap_publish_request wanted = *request;
	int result = TICKMAP_EMIT_OK;

	tickmap_publish_lock();
	complete(&wanted);
	snprintf(asked, sizeof(asked), "%s", wanted.dir);
	make_absolute(&wanted);
	*ret_anew = !emit || wanted.sinks != opened.sinks ||
		    strcmp(wanted.dir, opened.dir) != 0;
	if (*ret_anew) {
		result = open_another(&wanted);
		int error = errno;
		status = result;
		status_errno = result == TICKMAP_EMIT_E_OS ? error : 0;
		errno = error;
	}
	int error = errno;
	tickmap_publish_unlock();
	errno = error;
	return result;
}

void tickmap_publish_folder(char *ret_folder, size_t size)
{
	tickmap_publish_lock();
	snprintf(ret_folder, size, "%s", asked);
	tickmap_publish_unlock();
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

void tickmap_publish_again(const uint8_t *at, const char *name,
			   size_t name_length, const char *file, int line)
{
	if (!emit || follow_fork() != TICKMAP_EMIT_OK)
		return;
	int result = announce(at, name, name_length, file, line);
	if (result != TICKMAP_EMIT_OK) {
		status = result;
		status_errno = tickmap_emit_errno(emit);
	}
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

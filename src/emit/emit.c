/* SPDX-License-Identifier: MIT */
/*
 * The handle: argument checks, the lock, the latch, and fork.
 *
 * A publish takes the lock, then the time, builds all records of the function
 * in one buffer and appends them with one write, the code straight from the
 * caller's memory. Time inside the lock is what keeps stamps in file order.
 *
 * Fork is seen through a word in a page that the kernel wipes in children, so
 * that a publish needs no system call to know; kernels without such pages pay
 * for getpid. pthread_atfork is not used: its handlers cannot be removed when
 * the library is unloaded.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REGION_SIZE                                                            \
	(EMIT_BUFFER_SIZE + 2 * EMIT_MAX_BATCH + (UINT32_C(1) << 16))

#define MAX_STRUCT 4096

const char *tickmap_emit_strerror(int status)
{
	switch (status) {
	case TICKMAP_EMIT_OK:
		return "success";
	case TICKMAP_EMIT_E_ARGUMENT:
		return "a parameter contradicts the interface";
	case TICKMAP_EMIT_E_NOMEM:
		return "out of memory";
	case TICKMAP_EMIT_E_OS:
		return "the operating system refused";
	case TICKMAP_EMIT_E_UNSAFE:
		return "the name is taken by something that is not ours";
	case TICKMAP_EMIT_E_EXISTS:
		return "a file that must be kept is there";
	case TICKMAP_EMIT_E_FORKED:
		return "in a forked child, tickmap_emit_after_fork comes first";
	case TICKMAP_EMIT_E_TOO_LARGE:
		return "the record would exceed its size field";
	default:
		return "unknown status";
	}
}

bool tickmap_emit_is_forked(const struct tickmap_emit *emit)
{
	if (emit->alive)
		return !*emit->alive;
	return (uint32_t)getpid() != emit->pid;
}

bool tickmap_emit_take_struct(void *ours, const void *theirs, size_t size,
			      size_t least)
{
	const uint8_t *bytes = theirs;
	size_t their_size;

	memcpy(&their_size, theirs, sizeof(their_size));
	/* No struct that holds its size ends elsewhere: half a pointer. Nor is
	 * one of ours ever so large: that is a size nobody has set. */
	if (their_size < least || their_size % sizeof(their_size) ||
	    their_size > MAX_STRUCT)
		return false;
	for (size_t i = size; i < their_size; i++) {
		if (bytes[i])
			return false;
	}
	memset(ours, 0, size);
	memcpy(ours, theirs, their_size < size ? their_size : size);
	return true;
}

void *tickmap_emit_allocate(const struct tickmap_emit *emit, size_t size)
{
	const struct tickmap_emit_options *options = &emit->options;

	return options->allocate
		       ? options->allocate(options->allocator_context, size)
		       : malloc(size);
}

void tickmap_emit_release(const struct tickmap_emit *emit, void *memory,
			  size_t size)
{
	const struct tickmap_emit_options *options = &emit->options;

	if (memory && options->allocate)
		options->release(options->allocator_context, memory, size);
	else
		free(memory);
}

int tickmap_emit_latch(struct tickmap_emit *emit, int status, int os_errno)
{
	int latched = atomic_load_explicit(&emit->status, memory_order_relaxed);

	if (latched)
		return latched;
	atomic_store_explicit(&emit->os_errno, os_errno, memory_order_relaxed);
	atomic_store_explicit(&emit->status, status, memory_order_relaxed);
	return status;
}

uint64_t tickmap_emit_now(struct tickmap_emit *emit)
{
	uint64_t ns = emit->options.clock
			      ? emit->options.clock(emit->options.clock_context)
			      : tickmap_emit_os_clock();

	if (ns < emit->last_ns)
		ns = emit->last_ns;
	emit->last_ns = ns;
	return ns;
}

static enum emit_found found_policy(const struct tickmap_emit *emit)
{
	return emit->options.flags & TICKMAP_EMIT_KEEP_EXISTING
		       ? EMIT_FOUND_KEEP
		       : EMIT_FOUND_REPLACE;
}

/* Put the pid where the option's name says so. False: it does not fit. */
static bool name_dump(const struct tickmap_emit *emit, char *name,
		      bool *ret_has_pid)
{
	size_t used = 0;

	*ret_has_pid = false;
	for (const char *at = emit->file_name; *at; at++) {
		int n;

		if (at[0] == '%' && at[1] == 'p') {
			n = snprintf(name + used, EMIT_NAME_SIZE - used, "%u",
				     (unsigned int)emit->pid);
			*ret_has_pid = true;
			at++;
		} else {
			n = snprintf(name + used, EMIT_NAME_SIZE - used, "%c",
				     *at);
		}
		if (n < 0 || (size_t)n >= EMIT_NAME_SIZE - used)
			return false;
		used += (size_t)n;
	}
	return true;
}

static int create_dump(struct tickmap_emit *emit)
{
	char name[EMIT_NAME_SIZE];
	bool has_pid;
	bool held;
	int status;

	if (!name_dump(emit, name, &has_pid))
		return TICKMAP_EMIT_E_ARGUMENT;
	status = tickmap_emit_file_create(
		&emit->dump, emit->dir, name, emit->options.mode,
		has_pid ? found_policy(emit) : EMIT_FOUND_KEEP, &held);
	if (status != TICKMAP_EMIT_E_EXISTS)
		return status;
	emit->state |= TICKMAP_EMIT_STATE_DUMP_BESIDE;
	return tickmap_emit_file_create_beside(&emit->dump, emit->dir, name,
					       emit->options.mode);
}

static int open_dump(struct tickmap_emit *emit)
{
	struct emit_out out = tickmap_emit_empty_out(emit);
	int status = create_dump(emit);

	if (status)
		return status;
	tickmap_emit_jitdump_header(&out, emit->options.elf_machine, emit->pid,
				    tickmap_emit_now(emit));
	status = tickmap_emit_append_out(emit, &emit->dump, &out);
	if (!status)
		status = tickmap_emit_append_pending(emit);
	/* Last of all: perf inject gives up a whole recording for one dump that
	 * was mapped and is gone again, or has no header. */
	if (!status && tickmap_emit_os_has_marker()) {
		emit->marker = tickmap_emit_os_map_marker(emit->dump.fd);
		if (!emit->marker)
			emit->state |= TICKMAP_EMIT_STATE_NO_MARKER;
	}
	return status;
}

static int open_map(struct tickmap_emit *emit)
{
	char name[sizeof("perf-4294967295.map")];
	bool held;
	int status;

	snprintf(name, sizeof(name), "perf-%u.map", (unsigned int)emit->pid);
	status = tickmap_emit_file_create(&emit->map, emit->map_dir, name,
					  emit->options.mode,
					  found_policy(emit), &held);
	if (status != TICKMAP_EMIT_E_EXISTS)
		return status;
	if (held && !(emit->options.flags & TICKMAP_EMIT_KEEP_EXISTING)) {
		emit->state |= TICKMAP_EMIT_STATE_MAP_SHARED;
		return tickmap_emit_file_join(&emit->map, emit->map_dir, name);
	}
	emit->map.path[0] = '\0';
	if (!(emit->options.sinks & TICKMAP_EMIT_JITDUMP))
		return status;
	emit->state |= TICKMAP_EMIT_STATE_NO_MAP;
	return TICKMAP_EMIT_OK;
}

/* Files, marker and fork flag for this process. errno for E_OS. */
static int open_files(struct tickmap_emit *emit)
{
	int status = TICKMAP_EMIT_OK;

	emit->pid = (uint32_t)getpid();
	emit->state = 0;
	emit->dump_pending.used = 0;
	emit->map_pending.used = 0;
	if (emit->options.sinks & TICKMAP_EMIT_PERF_MAP)
		status = open_map(emit);
	if (!status && emit->options.sinks & TICKMAP_EMIT_JITDUMP)
		status = open_dump(emit);
	if (!status) {
		*(volatile uint32_t *)emit->region = 1;
		return TICKMAP_EMIT_OK;
	}
	if (atomic_load(&emit->status))
		errno = atomic_load(&emit->os_errno);
	tickmap_emit_os_unmap_marker(emit->marker);
	emit->marker = NULL;
	tickmap_emit_file_discard(&emit->dump);
	tickmap_emit_file_discard(&emit->map);
	return status;
}

#define FIRST_OPTIONS offsetof(struct tickmap_emit_options, file_name)
#define ALL_SINKS                                                              \
	(TICKMAP_EMIT_PERF_MAP | TICKMAP_EMIT_JITDUMP | TICKMAP_EMIT_GDB)
#define ALL_FLAGS                                                              \
	(TICKMAP_EMIT_KEEP_EXISTING | TICKMAP_EMIT_REPUBLISH |                 \
	 TICKMAP_EMIT_UNIQUE_TAIL | TICKMAP_EMIT_DIR_FROM_ENV |                \
	 TICKMAP_EMIT_SHORT_NAMES)

static bool name_is_sound(const char *name)
{
	return !name ||
	       (name[0] && strlen(name) < EMIT_NAME_SIZE &&
		!strchr(name, '/') && strcmp(name, ".") && strcmp(name, ".."));
}

static int take_options(struct tickmap_emit_options *own,
			const struct tickmap_emit_options *options)
{
	if (!options || !tickmap_emit_take_struct(own, options, sizeof(*own),
						  FIRST_OPTIONS))
		return TICKMAP_EMIT_E_ARGUMENT;
	if (!own->sinks || (own->sinks & ~ALL_SINKS) ||
	    (own->flags & ~ALL_FLAGS) || own->elf_machine > UINT16_MAX ||
	    own->reserved || (own->mode & ~0644u) ||
	    own->batch_size > EMIT_MAX_BATCH || !own->allocate != !own->release)
		return TICKMAP_EMIT_E_ARGUMENT;
	if (!name_is_sound(own->file_name))
		return TICKMAP_EMIT_E_ARGUMENT;
	if (!own->mode)
		own->mode = 0600;
	if (!own->elf_machine)
		own->elf_machine = tickmap_emit_native_machine();
	return TICKMAP_EMIT_OK;
}

/* Absolute, so that a child that has changed its folder finds it again. */
static int copy_dir(struct tickmap_emit *emit, const char *dir)
{
	size_t used = 0;
	int length;

	emit->map_dir = emit->dir;
	if (!dir && emit->options.flags & TICKMAP_EMIT_DIR_FROM_ENV) {
		dir = tickmap_emit_os_getenv("JITDUMPDIR");
		if (dir && !dir[0])
			dir = NULL;
		if (dir)
			emit->map_dir = "/tmp";
	}
	if (!dir)
		dir = "/tmp";
	if (dir[0] != '/') {
		if (!getcwd(emit->dir, sizeof(emit->dir)))
			return TICKMAP_EMIT_E_OS;
		used = strlen(emit->dir);
		dir = strcmp(dir, ".") && dir[0] ? dir : "";
	}
	length = snprintf(emit->dir + used, sizeof(emit->dir) - used, "%s%s",
			  used && dir[0] ? "/" : "", dir);
	if (length < 0 || (size_t)length >= sizeof(emit->dir) - used) {
		errno = ENAMETOOLONG;
		return TICKMAP_EMIT_E_OS;
	}
	return TICKMAP_EMIT_OK;
}

static int map_region(struct tickmap_emit *emit)
{
	size_t buffer_at;
	bool wiped;

	emit->region =
		tickmap_emit_os_map_region(REGION_SIZE, &buffer_at, &wiped);
	if (!emit->region)
		return TICKMAP_EMIT_E_NOMEM;
	if (wiped)
		emit->alive = emit->region;
	emit->buffer = (uint8_t *)emit->region + buffer_at;
	emit->dump_pending.base = emit->buffer + EMIT_BUFFER_SIZE;
	emit->map_pending.base = emit->dump_pending.base + EMIT_MAX_BATCH;
	return TICKMAP_EMIT_OK;
}

/* Everything but the files, which are closed by now. */
static void release(struct tickmap_emit *emit)
{
	int saved = errno;

	tickmap_emit_os_unmap_region(emit->region, REGION_SIZE);
	pthread_mutex_destroy(&emit->lock);
	tickmap_emit_release(emit, emit, sizeof(*emit));
	errno = saved;
}

/* Opening, closing and their kin are cancellation points of libc. */
static int hold_cancellation(void)
{
	int old = 0;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	return old;
}

static int open_handle(const struct tickmap_emit_options *options,
		       struct tickmap_emit **ret_emit)
{
	struct tickmap_emit blank = { .next_index = 1,
				      .dump = { .fd = -1 },
				      .map = { .fd = -1 } };
	struct tickmap_emit *emit;
	int status;

	if (take_options(&blank.options, options))
		return TICKMAP_EMIT_E_ARGUMENT;
	emit = tickmap_emit_allocate(&blank, sizeof(*emit));
	if (!emit)
		return TICKMAP_EMIT_E_NOMEM;

	memcpy(emit, &blank, sizeof(*emit));
	emit->options.dir = emit->dir;
	snprintf(emit->file_name, sizeof(emit->file_name), "%s",
		 blank.options.file_name ? blank.options.file_name
					 : "jit-%p.dump");
	emit->options.file_name = emit->file_name;
	tickmap_emit_os_init_lock(&emit->lock);
	status = copy_dir(emit, blank.options.dir);
	if (!status)
		status = map_region(emit);
	if (!status)
		status = open_files(emit);
	if (status) {
		release(emit);
		return status;
	}
	*ret_emit = emit;
	return TICKMAP_EMIT_OK;
}

int tickmap_emit_open(const struct tickmap_emit_options *options,
		      struct tickmap_emit **ret_emit)
{
	int old;
	int status;

	if (!ret_emit)
		return TICKMAP_EMIT_E_ARGUMENT;
	*ret_emit = NULL;
	old = hold_cancellation();
	status = open_handle(options, ret_emit);
	pthread_setcancelstate(old, NULL);
	return status;
}

int tickmap_emit_before_fork(struct tickmap_emit *emit)
{
	if (!emit)
		return TICKMAP_EMIT_E_ARGUMENT;
	if (tickmap_emit_is_forked(emit))
		return TICKMAP_EMIT_E_FORKED;
	pthread_mutex_lock(&emit->lock);
	emit->before_fork = true;
	return TICKMAP_EMIT_OK;
}

static bool says_errno(int status)
{
	return status == TICKMAP_EMIT_E_OS || status == TICKMAP_EMIT_E_UNSAFE;
}

/* In the parent: nothing was held but, perhaps, the lock. */
static int after_fork_in_parent(struct tickmap_emit *emit)
{
	int status = atomic_load(&emit->status);

	if (emit->before_fork) {
		emit->before_fork = false;
		pthread_mutex_unlock(&emit->lock);
	}
	return status;
}

static int after_fork_in_child(struct tickmap_emit *emit)
{
	bool live_unknown;
	int status;

	/* Another thread of the parent may have held it; here it is nobody's.
	 */
	if (emit->before_fork)
		pthread_mutex_unlock(&emit->lock);
	else
		tickmap_emit_os_init_lock(&emit->lock);
	tickmap_emit_gdb_after_fork();
	/* On the stacks of threads that are not here. */
	atomic_store(&emit->requests, NULL);
	emit->before_fork = false;
	tickmap_emit_os_unmap_marker(emit->marker);
	emit->marker = NULL;
	tickmap_emit_file_close(&emit->dump);
	tickmap_emit_file_close(&emit->map);
	atomic_store(&emit->status, 0);
	atomic_store(&emit->os_errno, 0);
	live_unknown = emit->live_changing;
	if (live_unknown) {
		/* Its memory is lost: who knows what points where. */
		emit->live = NULL;
		emit->live_count = 0;
		emit->live_room = 0;
		emit->live_changing = false;
	}
	status = open_files(emit);
	if (live_unknown)
		emit->state |= TICKMAP_EMIT_STATE_LIVE_UNKNOWN;
	if (!status && emit->options.flags & TICKMAP_EMIT_REPUBLISH)
		return tickmap_emit_live_publish(emit);
	if (status) {
		tickmap_emit_latch(emit, status,
				   says_errno(status) ? errno : 0);
		*(volatile uint32_t *)emit->region = 1;
	}
	return status;
}

int tickmap_emit_after_fork(struct tickmap_emit *emit)
{
	int old;
	int status;

	if (!emit)
		return TICKMAP_EMIT_E_ARGUMENT;
	if (!tickmap_emit_is_forked(emit))
		return after_fork_in_parent(emit);
	old = hold_cancellation();
	status = after_fork_in_child(emit);
	pthread_setcancelstate(old, NULL);
	return status;
}

const char *tickmap_emit_path(const struct tickmap_emit *emit, uint32_t sink)
{
	const struct emit_file *file = NULL;

	if (emit && sink == TICKMAP_EMIT_JITDUMP)
		file = &emit->dump;
	if (emit && sink == TICKMAP_EMIT_PERF_MAP)
		file = &emit->map;
	return file && file->fd >= 0 ? file->path : NULL;
}

int tickmap_emit_errno(const struct tickmap_emit *emit)
{
	return emit ? atomic_load(&emit->os_errno) : 0;
}

uint32_t tickmap_emit_state(const struct tickmap_emit *emit)
{
	return emit ? emit->state : 0;
}

int tickmap_emit_close(struct tickmap_emit *emit)
{
	int old;
	int status;

	if (!emit)
		return TICKMAP_EMIT_OK;
	old = hold_cancellation();
	status = tickmap_emit_is_forked(emit) ? TICKMAP_EMIT_E_FORKED
					      : atomic_load(&emit->status);
	if (!status && emit->dump.fd >= 0) {
		struct emit_out out = tickmap_emit_empty_out(emit);

		tickmap_emit_jitdump_close(&out, tickmap_emit_now(emit));
		status = tickmap_emit_append_out(emit, &emit->dump, &out);
	}
	if (!status)
		status = tickmap_emit_append_pending(emit);
	if (!emit->live_changing)
		tickmap_emit_live_clear(emit);
	tickmap_emit_os_unmap_marker(emit->marker);
	tickmap_emit_file_close(&emit->dump);
	tickmap_emit_file_close(&emit->map);
	release(emit);
	pthread_setcancelstate(old, NULL);
	return status;
}

uint64_t tickmap_emit_mapped_size(const struct tickmap_unwind *unwind)
{
	if (!unwind || !unwind->frame_size)
		return 0;
	return TICKMAP_EMIT_MAPPED_SIZE(unwind->frame_size);
}

uint64_t tickmap_emit_spacing(uint64_t code_size,
			      const struct tickmap_unwind *unwind)
{
	if (unwind && unwind->frame_size)
		return TICKMAP_EMIT_SPACING(code_size, unwind->frame_size);
	return (code_size + 15) & ~UINT64_C(15);
}

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

#define REGION_SIZE (EMIT_BUFFER_SIZE + (UINT32_C(1) << 16))

struct tickmap_emit {
	struct tickmap_emit_options options; /* .dir points to dir below */
	pthread_mutex_t lock;
	/* Written under the lock, once; read by anyone, relaxed: a stale 0
	 * only means that the lock is taken to find out. */
	_Atomic int status;
	_Atomic int os_errno;
	uint32_t state;
	uint32_t pid;
	uint64_t last_ns;
	uint64_t next_index;
	struct emit_file dump;
	struct emit_file map;
	void *marker;
	void *region;
	const volatile uint32_t *alive; /* NULL: compare pids */
	uint8_t *buffer;
	char dir[EMIT_PATH_SIZE];
};

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

static bool is_forked(const struct tickmap_emit *emit)
{
	if (emit->alive)
		return !*emit->alive;
	return (uint32_t)getpid() != emit->pid;
}

/* A struct of a later version is one of ours if its tail says nothing. */
static bool size_is_sound(const void *options, size_t size, size_t ours)
{
	const uint8_t *bytes = options;

	if (size == ours)
		return true;
	if (size < ours)
		return false;
	for (size_t i = ours; i < size; i++) {
		if (bytes[i])
			return false;
	}
	return true;
}

/* Remember the first failure; returns the status of all later calls. */
static int latch(struct tickmap_emit *emit, int status, int os_errno)
{
	int latched = atomic_load_explicit(&emit->status, memory_order_relaxed);

	if (latched)
		return latched;
	atomic_store_explicit(&emit->os_errno, os_errno, memory_order_relaxed);
	atomic_store_explicit(&emit->status, status, memory_order_relaxed);
	return status;
}

static int append(struct tickmap_emit *emit, struct emit_file *file,
		  const struct emit_out *out, const void *code,
		  uint64_t code_size)
{
	struct iovec iov[2] = { { .iov_base = out->base,
				  .iov_len = out->used } };
	int error;

	if (out->full || out->used + code_size > EMIT_MAX_APPEND)
		return TICKMAP_EMIT_E_TOO_LARGE;
	/* iovec has no const; writev does not write. */
	iov[1].iov_base = (void *)(uintptr_t)code;
	iov[1].iov_len = (size_t)code_size;
	error = tickmap_emit_file_append(file, iov, code ? 2 : 1);
	return error ? latch(emit, TICKMAP_EMIT_E_OS, error) : 0;
}

static uint64_t now(struct tickmap_emit *emit)
{
	uint64_t ns = emit->options.clock
			      ? emit->options.clock(emit->options.clock_context)
			      : tickmap_emit_os_clock();

	if (ns < emit->last_ns)
		ns = emit->last_ns;
	emit->last_ns = ns;
	return ns;
}

static struct emit_stamp stamp_now(struct tickmap_emit *emit)
{
	return (struct emit_stamp) {
		.ns = now(emit),
		.pid = emit->pid,
		.tid = tickmap_emit_os_tid(emit->pid),
	};
}

static struct emit_out empty_out(const struct tickmap_emit *emit)
{
	return (struct emit_out) { .base = emit->buffer,
				   .size = EMIT_BUFFER_SIZE };
}

static enum emit_found found_policy(const struct tickmap_emit *emit)
{
	return emit->options.flags & TICKMAP_EMIT_KEEP_EXISTING
		       ? EMIT_FOUND_KEEP
		       : EMIT_FOUND_REPLACE;
}

static int open_dump(struct tickmap_emit *emit)
{
	struct emit_out out = empty_out(emit);
	char name[sizeof("jit-4294967295.dump")];
	bool held;
	int status;

	snprintf(name, sizeof(name), "jit-%u.dump", (unsigned int)emit->pid);
	status = tickmap_emit_file_create(&emit->dump, emit->dir, name,
					  found_policy(emit), &held);
	if (status == TICKMAP_EMIT_E_EXISTS) {
		status = tickmap_emit_file_create_beside(&emit->dump, emit->dir,
							 name);
		emit->state |= TICKMAP_EMIT_STATE_DUMP_BESIDE;
	}
	if (status)
		return status;

	/* First the mapping, then the header: who sees the mapping event first
	 * finds an empty dump, and who finds a header knows it is mapped. */
	emit->marker = tickmap_emit_os_map_marker(emit->dump.fd);
	if (!emit->marker)
		emit->state |= TICKMAP_EMIT_STATE_NO_MARKER;
	tickmap_emit_jitdump_header(&out, emit->options.elf_machine, emit->pid,
				    now(emit));
	return append(emit, &emit->dump, &out, NULL, 0);
}

static int open_map(struct tickmap_emit *emit)
{
	char name[sizeof("perf-4294967295.map")];
	bool held;
	int status;

	snprintf(name, sizeof(name), "perf-%u.map", (unsigned int)emit->pid);
	status = tickmap_emit_file_create(&emit->map, emit->dir, name,
					  found_policy(emit), &held);
	if (status != TICKMAP_EMIT_E_EXISTS)
		return status;
	if (held && !(emit->options.flags & TICKMAP_EMIT_KEEP_EXISTING)) {
		emit->state |= TICKMAP_EMIT_STATE_MAP_SHARED;
		return tickmap_emit_file_join(&emit->map, emit->dir, name);
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

static int check_options(const struct tickmap_emit_options *options)
{
	const uint32_t sinks = TICKMAP_EMIT_PERF_MAP | TICKMAP_EMIT_JITDUMP;

	if (!size_is_sound(options, options->size, sizeof(*options)) ||
	    !options->sinks || (options->sinks & ~sinks) ||
	    (options->flags & ~TICKMAP_EMIT_KEEP_EXISTING) ||
	    options->elf_machine > UINT16_MAX || options->reserved)
		return TICKMAP_EMIT_E_ARGUMENT;
	return TICKMAP_EMIT_OK;
}

/* Absolute, so that a child that has changed its folder finds it again. */
static int copy_dir(struct tickmap_emit *emit, const char *dir)
{
	size_t used = 0;
	int length;

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
	return TICKMAP_EMIT_OK;
}

/* Everything but the files, which are closed by now. */
static void release(struct tickmap_emit *emit)
{
	int saved = errno;

	tickmap_emit_os_unmap_region(emit->region, REGION_SIZE);
	pthread_mutex_destroy(&emit->lock);
	free(emit);
	errno = saved;
}

int tickmap_emit_open(const struct tickmap_emit_options *options,
		      struct tickmap_emit **ret_emit)
{
	struct tickmap_emit *emit;
	int status;

	if (!ret_emit)
		return TICKMAP_EMIT_E_ARGUMENT;
	*ret_emit = NULL;
	if (!options || check_options(options))
		return TICKMAP_EMIT_E_ARGUMENT;
	emit = calloc(1, sizeof(*emit));
	if (!emit)
		return TICKMAP_EMIT_E_NOMEM;

	emit->options = *options;
	emit->options.dir = emit->dir;
	if (!options->elf_machine)
		emit->options.elf_machine = tickmap_emit_native_machine();
	emit->dump.fd = -1;
	emit->map.fd = -1;
	emit->next_index = 1;
	tickmap_emit_os_init_lock(&emit->lock);
	status = copy_dir(emit, options->dir);
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

/* The cheap part of every call: latched, or in the wrong process. */
static int refuse(const struct tickmap_emit *emit)
{
	if (is_forked(emit))
		return TICKMAP_EMIT_E_FORKED;
	return atomic_load_explicit(&emit->status, memory_order_relaxed);
}

static int check_code(const struct tickmap_emit *emit,
		      const struct tickmap_code *code)
{
	if (!size_is_sound(code, code->size, sizeof(*code)) || !code->name ||
	    code->code_size > UINT64_MAX - code->addr)
		return TICKMAP_EMIT_E_ARGUMENT;
	return emit->dump.fd >= 0 ? tickmap_emit_jitdump_check(code)
				  : TICKMAP_EMIT_OK;
}

static int publish_dump(struct tickmap_emit *emit,
			const struct tickmap_code *code, size_t name_length)
{
	uint64_t index = code->index ? code->index : emit->next_index;
	struct emit_stamp stamp = stamp_now(emit);
	struct emit_out out = empty_out(emit);
	int status;

	tickmap_emit_jitdump_code(&out, code, name_length, index, &stamp);
	status = append(emit, &emit->dump, &out, code->bytes, code->code_size);
	if (!status && index >= emit->next_index)
		emit->next_index = index + 1;
	return status;
}

static int publish_map(struct tickmap_emit *emit,
		       const struct tickmap_code *code, size_t name_length)
{
	struct emit_out out = empty_out(emit);

	tickmap_emit_perfmap_line(&out, code, name_length);
	return append(emit, &emit->map, &out, NULL, 0);
}

int tickmap_emit_code(struct tickmap_emit *emit,
		      const struct tickmap_code *code)
{
	size_t name_length;
	int status;

	if (!emit || !code)
		return TICKMAP_EMIT_E_ARGUMENT;
	status = refuse(emit);
	if (!status)
		status = check_code(emit, code);
	if (status)
		return status;
	name_length =
		code->name_length ? code->name_length : strlen(code->name);

	pthread_mutex_lock(&emit->lock);
	status = atomic_load_explicit(&emit->status, memory_order_relaxed);
	if (!status && emit->dump.fd >= 0)
		status = publish_dump(emit, code, name_length);
	if (!status && emit->map.fd >= 0)
		status = publish_map(emit, code, name_length);
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
	status = refuse(emit);
	if (status)
		return status;

	pthread_mutex_lock(&emit->lock);
	status = atomic_load_explicit(&emit->status, memory_order_relaxed);
	if (!status && emit->dump.fd >= 0) {
		struct emit_stamp stamp = stamp_now(emit);
		struct emit_out out = empty_out(emit);

		tickmap_emit_jitdump_move(&out, old_addr, new_addr, code_size,
					  index, &stamp);
		status = append(emit, &emit->dump, &out, NULL, 0);
	}
	pthread_mutex_unlock(&emit->lock);
	return status;
}

int tickmap_emit_after_fork(struct tickmap_emit *emit)
{
	int status;

	if (!emit)
		return TICKMAP_EMIT_E_ARGUMENT;
	if (!is_forked(emit))
		return atomic_load(&emit->status);

	/* Another thread of the parent may have held it; here it is nobody's.
	 */
	tickmap_emit_os_init_lock(&emit->lock);
	tickmap_emit_os_unmap_marker(emit->marker);
	emit->marker = NULL;
	tickmap_emit_file_close(&emit->dump);
	tickmap_emit_file_close(&emit->map);
	atomic_store(&emit->status, 0);
	atomic_store(&emit->os_errno, 0);
	status = open_files(emit);
	if (status) {
		latch(emit, status, status == TICKMAP_EMIT_E_OS ? errno : 0);
		*(volatile uint32_t *)emit->region = 1;
	}
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
	int status;

	if (!emit)
		return TICKMAP_EMIT_OK;
	status = refuse(emit);
	if (!status && emit->dump.fd >= 0) {
		struct emit_out out = empty_out(emit);

		tickmap_emit_jitdump_close(&out, now(emit));
		status = append(emit, &emit->dump, &out, NULL, 0);
	}
	tickmap_emit_os_unmap_marker(emit->marker);
	tickmap_emit_file_close(&emit->dump);
	tickmap_emit_file_close(&emit->map);
	release(emit);
	return status;
}

static uint64_t round_up_16(uint64_t value)
{
	return (value + 15) & ~UINT64_C(15);
}

uint64_t tickmap_emit_mapped_size(const struct tickmap_unwind *unwind)
{
	return round_up_16(tickmap_emit_unwinding_size(unwind));
}

uint64_t tickmap_emit_spacing(uint64_t code_size,
			      const struct tickmap_unwind *unwind)
{
	uint64_t code_room = (code_size + 7) & ~UINT64_C(7);

	return round_up_16(code_room + tickmap_emit_mapped_size(unwind));
}

/* SPDX-License-Identifier: MIT */
/* The few things that differ by operating system. One file per OS. */
#ifndef TICKMAP_PLATFORM_PLATFORM_H
#define TICKMAP_PLATFORM_PLATFORM_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* CLOCK_MONOTONIC (Linux), in ns. */
uint64_t tickmap_mono_ns(void);

/*
 * From now on what a program frees of its large blocks of memory is the
 * system's again at once. For programs, not libraries, that make one large
 * thing after the other.
 */
void tickmap_platform_give_memory_back(void);

/*
 * malloc for blocks of many MiB that are read here and there: in large pages,
 * where the system has them, which saves a look-up in the page tables at nearly
 * every touch. From a page on they start with a line of the cache. Given back
 * by free. NULL: out of memory.
 */
void *tickmap_platform_large_block(size_t size);

/* What these bytes of a block from malloc hold is wanted no more, and undefined
 * from now on: the memory of whole pages is given back. */
void tickmap_platform_forget(void *bytes, size_t size);

/* The folder of the running program, without a slash at its end. */
int tickmap_platform_self_dir(char *out, size_t size);

/* When a process started, in ns of tickmap_mono_ns (10 ms steps on Linux,
 * rounded down); 0 if it is gone. */
uint64_t tickmap_process_start_ns(pid_t pid);

/* The pid that the process has in its own, innermost pid namespace; the pid
 * itself where that cannot be told. */
pid_t tickmap_process_inner_pid(pid_t pid);

/* First line of a small text file such as /proc/sys/...; false if unreadable.
 */
bool tickmap_read_line(const char *path, char *out, size_t size);

/* Reads a whole file of at most `limit` bytes into malloced memory with a NUL
 * behind it. */
int tickmap_read_file(const char *path, size_t limit, char **ret_bytes,
		      size_t *ret_size, struct tickmap_error *err);

#endif

/* SPDX-License-Identifier: MIT */
#include "arena.h"

#include <errno.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "trampoline.h"

enum { ARENA_BYTES = 64 * 1024 };

static uint8_t *next_slot;
static size_t slots_left;
static uint32_t serial;

/* Serials of different processes should not meet in a profiler's cache. */
static void scatter_serials(void)
{
	struct timespec now;
	uint64_t mix = (uint64_t)getpid() << 32;

	clock_gettime(CLOCK_MONOTONIC, &now);
	mix ^= (uint64_t)now.tv_sec * UINT64_C(1000000000) +
	       (uint64_t)now.tv_nsec;
	mix *= UINT64_C(0x9e3779b97f4a7c15);
	serial = (uint32_t)(mix >> 32);
}

static int arena_new(size_t spacing)
{
	uint8_t *base = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (base == MAP_FAILED)
		return -1;
	scatter_serials();
	size_t count = 0;
	for (size_t at = 0; spacing <= ARENA_BYTES - at; at += spacing) {
		tickmap_trampoline_write(base + at, serial++);
		count++;
	}
	__builtin___clear_cache((char *)base, (char *)base + ARENA_BYTES);
	if (mprotect(base, ARENA_BYTES, PROT_READ | PROT_EXEC) != 0) {
		int error = errno;

		munmap(base, ARENA_BYTES);
		errno = error;
		return -1;
	}
	next_slot = base;
	slots_left = count;
	return 0;
}

const uint8_t *tickmap_arena_take(const struct tickmap_unwind *unwind)
{
	size_t spacing =
		(size_t)tickmap_emit_spacing(tickmap_trampoline_size, unwind);

	if (slots_left == 0 && arena_new(spacing) != 0)
		return NULL;
	const uint8_t *slot = next_slot;
	next_slot += spacing;
	slots_left--;
	return slot;
}

void tickmap_arena_abandon(void)
{
	slots_left = 0;
}

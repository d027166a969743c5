/* SPDX-License-Identifier: MIT */
/*
 * Walks a stack: registers and a copy of the stack's bytes in, return addresses
 * out. Who maps what is the caller's business and comes by a callback; rules
 * are cached, so that the common frame costs one probe.
 */
#ifndef TICKMAP_UNWIND_UNWIND_H
#define TICKMAP_UNWIND_UNWIND_H

#include "unwind/cfi.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Why a walk ended. Numbers are stored in recordings: append only. */
enum tickmap_unwind_end {
	TICKMAP_END_COMPLETE = 0,     /* the thread's first frame */
	TICKMAP_END_STACK_SHORT = 1,  /* the dump ended before the stack did */
	TICKMAP_END_NO_RULE = 2,      /* code without CFI, and no sane frame
					 pointer */
	TICKMAP_END_BAD_RULE = 3,     /* CFI that cannot be read */
	TICKMAP_END_BAD_STACK = 4,    /* the result makes no progress */
	TICKMAP_END_NO_CODE = 5,      /* a return address outside all code */
	TICKMAP_END_TOO_DEEP = 6,     /* more frames than the caller has room
					 for */
	TICKMAP_END_NO_REGISTERS = 7, /* the kernel gave none (a kernel thread,
					 a 32-bit program) */
	TICKMAP_END_COUNT
};

/* A static phrase: "stack dump too short". */
const char *tickmap_unwind_end_text(enum tickmap_unwind_end end);

struct tickmap_unwind_input {
	uint64_t regs[TICKMAP_REGS]; /* by DWARF number */
	const uint8_t *stack;	     /* bytes from `stack_at` up; borrowed */
	size_t stack_size;
	uint64_t stack_at; /* the stack pointer's value */
};

/* The table for an address, as the caller knows it. */
struct tickmap_unwind_module {
	struct tickmap_cfi *cfi; /* NULL: mapped code without a table */
	uint64_t bias;		 /* avma - address in the table */
	/* Code without a table, or whose table says nothing here, may be walked
	 * by its frame pointer. */
	bool frame_pointer;
};

struct tickmap_unwind_space {
	/*
	 * Names this state of this address space for the rule cache: change it
	 * whenever an executable range gets another content.
	 */
	uint64_t key;
	void *context;
	/* False: no executable code is known at avma. */
	bool (*find)(void *context, uint64_t avma,
		     struct tickmap_unwind_module *ret_module);
	/*
	 * Copies the code in front of avma, as many of the wanted bytes as can
	 * be read. May be NULL. Only asked where code has neither a rule nor a
	 * frame pointer (.init, linkage stubs): there the return address is
	 * searched among the nearest words of the stack, and must follow a
	 * call.
	 */
	size_t (*code_before)(void *context, uint64_t avma, uint8_t *out,
			      size_t wanted);
};

struct tickmap_unwinder;

struct tickmap_unwinder *tickmap_unwinder_new(void);
void tickmap_unwinder_free(struct tickmap_unwinder *unwinder);

/*
 * Writes the leaf's pc and then the return addresses, as they stand on the
 * stack, to ips; returns how many. Never reads outside the stack given.
 */
size_t tickmap_unwind_walk(struct tickmap_unwinder *unwinder,
			   const struct tickmap_unwind_space *space,
			   const struct tickmap_unwind_input *input,
			   uint64_t *ips, size_t max,
			   enum tickmap_unwind_end *ret_end);

/*
 * Of the last walk: is ips[index], index > 0, the very address at which that
 * frame stopped? So it is for a signal's trampoline and for what the signal
 * interrupted; all others are return addresses, behind the call.
 */
bool tickmap_unwind_is_exact(const struct tickmap_unwinder *unwinder,
			     size_t index);

struct tickmap_unwind_stats {
	uint64_t frames, cache_hits, cache_misses, uncacheable;
};
struct tickmap_unwind_stats
tickmap_unwinder_stats(const struct tickmap_unwinder *unwinder);

/* Registers of a perf sample (perf's x86 numbers, asm/perf_regs.h) by DWARF
 * number. False if rip or rsp are missing or the program is not 64-bit. */
bool tickmap_unwind_regs_from_perf(uint64_t abi, uint64_t mask,
				   const uint64_t *by_perf_number,
				   uint64_t ret_regs[TICKMAP_REGS]);

#endif

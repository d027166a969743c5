/* SPDX-License-Identifier: MIT */
/* The test program looks at itself: its registers, its stack, its modules. */
#ifndef TICKMAP_TESTS_UNWIND_SELF_H
#define TICKMAP_TESTS_UNWIND_SELF_H

#include "unwind/unwind.h"

enum { SELF_MODULES = 64, SELF_RANGES = 4, SELF_FRAMES = 512 };

struct self_module {
	uint64_t start[SELF_RANGES], end[SELF_RANGES]; /* of code */
	unsigned ranges;
	struct tickmap_cfi cfi;
	bool table;
	bool frame_pointer;
};

/* Everything that dl_iterate_phdr names, with tables as they lie in memory. */
struct self_modules {
	struct self_module module[SELF_MODULES];
	unsigned count;
	bool without_hdr;
	struct tickmap_unwind_space space;
};

void self_modules_load(struct self_modules *modules);
void self_modules_free(struct self_modules *modules);
struct self_module *self_modules_add(struct self_modules *modules,
				     const void *code, size_t size);

/* One stack, and what glibc's backtrace() says of it. */
struct capture {
	struct tickmap_unwind_input input;
	uint8_t *stack;
	size_t room;
	uint64_t stack_end; /* 0: the thread's own */
	void *reference[SELF_FRAMES];
	int reference_count;
};

/* Fills one from the caller's point of view; frame 0 is self_capture itself. */
void self_capture(struct capture *capture);

/* Copies the stack above sp, up to its end (or what there is room for). */
void self_copy_stack(struct capture *capture, uint64_t sp, uint64_t end);

/* One behind the last byte of this thread's stack. */
uint64_t self_stack_end(void);

/* ---- chain.c: functions whose callers are known ---- */

struct chain {
	unsigned seed;
	void (*leaf)(void *);
	void *context;
	/* return addresses as the functions saw them, outermost first */
	void *expected[SELF_FRAMES];
	unsigned depth;
};

/* Calls `depth` functions of all kinds, and then the leaf. */
void chain_run(struct chain *chain, unsigned depth);

/* Calls much of libc, for single-stepping. */
unsigned chain_work(unsigned rounds);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * A JIT that is as small as it can be and still does what JITs do: it compiles
 * functions, runs them, moves them, frees them and reuses their memory, and
 * publishes all of it. A function spins for a while, perhaps calls another (or
 * a C function), and returns.
 *
 * Its true stack is known at every moment: a register that nothing else uses
 * (r15, x28) holds the ids of the functions that are on it, one byte each, the
 * innermost lowest. `perf record --user-regs=r15` writes it into each sample.
 * TOY_ENTER_ID, the id of the function by which C code comes in, is outermost.
 *
 * A function is on that stack from toy_function.enter_at on up to .leave_at;
 * between its two shifting instructions its byte is still 0.
 */
#ifndef EXAMPLES_TOYJIT_H
#define EXAMPLES_TOYJIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tickmap/emit.h>

#define TOY_ENTER_ID 0x5a
#define TOY_MAX_ID 0x7f
#define TOY_DEPTH 7 /* ids that fit below TOY_ENTER_ID */
#define TOY_SLOT_SIZE 256
#define TOY_SLOTS 64
#define TOY_MAX_CODE 128

enum toy_frame { TOY_FRAME_POINTER, TOY_FIXED, TOY_LEAF };

/* What is asked for, then what was made of it. */
struct toy_function {
	/* asked for */
	uint8_t id; /* 1..TOY_MAX_ID; its name is toy_ID in hex */
	enum toy_frame frame;
	bool is_signed; /* aarch64: landing pad and signed return address */
	uint32_t spins;
	const struct toy_function *callee;  /* or NULL; wherever it moves */
	void (*probe)(uint64_t true_stack); /* or NULL: a C function */
	/* made */
	uint8_t *code; /* callers call through this field */
	uint32_t size;
	uint32_t enter_at;
	uint32_t leave_at;
	uint64_t index;
	struct tickmap_unwind unwind;
	char name[16];
};

struct toy {
	struct tickmap_emit *emit; /* NULL: publish nothing */
	uint8_t *arena;
	bool taken[TOY_SLOTS];
	uint64_t next_index;
	struct toy_function enter;
};

/* All of these return 0 or a status of the emit library. */
int toy_open(struct toy *toy, struct tickmap_emit *emit);
int toy_compile(struct toy *toy, struct toy_function *function);
int toy_move(struct toy *toy, struct toy_function *function);
void toy_free(struct toy *toy, struct toy_function *function);
void toy_close(struct toy *toy);
void toy_run(const struct toy *toy, const struct toy_function *function);

/* Names of a true stack, innermost first; how many. */
size_t toy_stack_ids(uint64_t true_stack, uint8_t ids[TOY_DEPTH + 1]);

/* One for each machine. Both set .size, .enter_at, .leave_at, .unwind. */
int toy_assemble(struct toy_function *function, uint8_t code[TOY_MAX_CODE]);
int toy_assemble_enter(struct toy_function *function,
		       uint8_t code[TOY_MAX_CODE]);

#endif

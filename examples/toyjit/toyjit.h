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

/* What is asked for, then what was made of it. */
struct toy_function {
	/* asked for */
	uint8_t id;	/* 1..TOY_MAX_ID; its name is toy_ID in hex */
	uint32_t frame; /* TICKMAP_UNWIND_FRAME_POINTER, _FIXED or _LEAF */
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
/* To another slot. Nobody may be in the function. */
int toy_move(struct toy *toy, struct toy_function *function);
void toy_free(struct toy *toy, struct toy_function *function);
void toy_close(struct toy *toy);
void toy_run(const struct toy *toy, const struct toy_function *function);

/* Code under construction, and what each machine puts into it. */
struct toy_code {
	uint8_t bytes[TOY_SLOT_SIZE];
	uint32_t size;
};
extern const uint32_t toy_frame_size;
extern const uint32_t toy_signed_flags; /* TICKMAP_UNWIND_* of .is_signed */
void toy_put_prologue(struct toy_code *code, const struct toy_function *f);
void toy_put_epilogue(struct toy_code *code, const struct toy_function *f);
/* The function comes onto the true stack, and leaves it. */
void toy_put_push(struct toy_code *code, uint8_t id);
void toy_put_pop(struct toy_code *code);
void toy_put_spin(struct toy_code *code, uint32_t spins);
void toy_put_call(struct toy_code *code, uint8_t *const *callee);
void toy_put_probe(struct toy_code *code, void (*probe)(uint64_t));
/* toy_enter: the true stack is this one id; call the argument with it, then
 * have the register as it was. */
void toy_put_first_push(struct toy_code *code, uint8_t id);
void toy_put_first_call(struct toy_code *code);

#endif

/* SPDX-License-Identifier: MIT */
/* What is known of one frame while a stack is walked. */
#ifndef TICKMAP_UNWIND_X86_64_STATE_H
#define TICKMAP_UNWIND_X86_64_STATE_H

#include "unwind/unwind.h"

#include <string.h>

struct tickmap_x86_64_state {
	uint64_t reg[TICKMAP_REGS];
	uint32_t known; /* bit n: reg[n] holds the frame's value */
};

enum {
	TICKMAP_X86_64_ALL = (1 << TICKMAP_REGS) - 1,
	/* What a function must give back (System V psABI, 3.2.1). */
	TICKMAP_X86_64_PRESERVED = 1 << TICKMAP_RBX | 1 << TICKMAP_RBP |
				   1 << TICKMAP_RSP | 1 << TICKMAP_R12 |
				   1 << TICKMAP_R13 | 1 << TICKMAP_R14 |
				   1 << TICKMAP_R15,
};

/* How one step to the caller went. */
enum tickmap_step {
	TICKMAP_STEP_OK,
	TICKMAP_STEP_COMPLETE,
	TICKMAP_STEP_ABOVE, /* needs stack behind the copy's end */
	TICKMAP_STEP_BELOW, /* needs memory that is no stack of ours */
	TICKMAP_STEP_BAD_STACK,
	TICKMAP_STEP_BAD_RULE,
	TICKMAP_STEP_NO_RULE,
};

struct tickmap_stack {
	const uint8_t *bytes;
	size_t size;
	uint64_t at;
};

static inline enum tickmap_step
tickmap_stack_read(const struct tickmap_stack *stack, uint64_t address,
		   uint64_t *ret_word)
{
	uint64_t offset = address - stack->at;

	if (address < stack->at)
		return TICKMAP_STEP_BELOW;
	if (stack->size < sizeof(*ret_word) ||
	    offset > stack->size - sizeof(*ret_word))
		return TICKMAP_STEP_ABOVE;
	memcpy(ret_word, stack->bytes + offset, sizeof(*ret_word));
	return TICKMAP_STEP_OK;
}

static inline bool tickmap_state_knows(const struct tickmap_x86_64_state *state,
				       unsigned reg)
{
	return state->known >> reg & 1;
}

/*
 * A register's value out of the frame's save area. A slot below the copy lies
 * below the leaf's stack pointer: its epilogue has popped it, and compilers do
 * not state that because the red zone still holds the word; so does the
 * register itself.
 */
static inline void tickmap_state_reload(struct tickmap_x86_64_state *state,
					const struct tickmap_stack *stack,
					unsigned reg, uint64_t address)
{
	enum tickmap_step step =
		tickmap_stack_read(stack, address, &state->reg[reg]);

	if (step == TICKMAP_STEP_OK)
		state->known |= 1u << reg;
	else if (step == TICKMAP_STEP_ABOVE)
		state->known &= ~(1u << reg);
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Nearly all rules of compiled code in a few bytes, so that a cache of them is
 * small and a step needs no table:
 *
 *   register:  cfa = reg + offset             preserved registers at
 *   indirect:  cfa = *(reg + offset) + addend    cfa + 8 * slot
 *   realigned: cfa = *(reg + offset) + addend    reg + 8 * slot
 *
 * and the return address at cfa - 8.
 */
#ifndef TICKMAP_UNWIND_X86_64_FRAME_H
#define TICKMAP_UNWIND_X86_64_FRAME_H

#include "unwind/x86_64/state.h"

enum tickmap_x86_64_form {
	TICKMAP_FORM_NONE, /* nothing here: an empty place in the cache */
	TICKMAP_FORM_REGISTER,
	TICKMAP_FORM_INDIRECT,
	TICKMAP_FORM_REALIGNED,
	TICKMAP_FORM_OUTERMOST, /* the return address is undefined */
	TICKMAP_FORM_FRAME_POINTER,
	TICKMAP_FORM_GENERAL, /* does not fit: ask the table each time */
	TICKMAP_FORM_NO_RULE,
	TICKMAP_FORM_BAD_RULE,
};

enum { TICKMAP_X86_64_SLOTS = 6 }; /* rbx, rbp, r12 to r15 */

struct tickmap_x86_64_frame {
	uint8_t form;
	uint8_t cfa_register;
	uint8_t saved; /* bit n: slot[n] is in use */
	uint8_t lost;  /* bit n: that register is undefined */
	int32_t cfa_offset;
	int16_t cfa_addend;
	uint16_t span; /* bytes from the lowest slot up to the base */
	int16_t slot[TICKMAP_X86_64_SLOTS]; /* words, none above the base */
};
_Static_assert(sizeof(struct tickmap_x86_64_frame) == 24,
	       "a cache entry is 40 bytes");

/* `pc` is the address that the rule was asked for. */
struct tickmap_x86_64_frame
tickmap_x86_64_compact(const struct tickmap_cfi *cfi,
		       const struct tickmap_rule *rule, uint64_t pc);

enum { TICKMAP_X86_64_SLOT_RBP = 1 };

/* Not for FORM_GENERAL. `state` is the caller's if the result is OK. */
enum tickmap_step tickmap_x86_64_step(const struct tickmap_x86_64_frame *frame,
				      const struct tickmap_stack *stack,
				      struct tickmap_x86_64_state *state);

/*
 * The same for FORM_REGISTER, but it only follows the two registers that nearly
 * all frames are found by, and forgets the others.
 */
static inline enum tickmap_step
tickmap_x86_64_quick_step(const struct tickmap_x86_64_frame *frame,
			  const struct tickmap_stack *stack,
			  struct tickmap_x86_64_state *state)
{
	const unsigned rbp_bit = 1u << TICKMAP_X86_64_SLOT_RBP;
	uint64_t return_address;
	uint64_t cfa = state->reg[frame->cfa_register] +
		       (uint64_t)(int64_t)frame->cfa_offset;

	if (cfa <= state->reg[TICKMAP_RSP])
		return TICKMAP_STEP_BAD_STACK;
	enum tickmap_step step = tickmap_stack_read(
		stack, cfa - sizeof(return_address), &return_address);
	if (step != TICKMAP_STEP_OK)
		return step;
	state->known &=
		1u << TICKMAP_RSP | 1u << TICKMAP_RBP | 1u << TICKMAP_RIP;
	if (frame->saved & rbp_bit)
		tickmap_state_reload(
			state, stack, TICKMAP_RBP,
			cfa + (uint64_t)(frame->slot[TICKMAP_X86_64_SLOT_RBP] *
					 (int64_t)sizeof(uint64_t)));
	else if (frame->lost & rbp_bit)
		state->known &= ~(1u << TICKMAP_RBP);
	state->reg[TICKMAP_RSP] = cfa;
	state->reg[TICKMAP_RIP] = return_address;
	return TICKMAP_STEP_OK;
}

#endif

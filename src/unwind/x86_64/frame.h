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

/* The two registers that nearly all frames are found by. */
struct tickmap_x86_64_quick {
	uint64_t pc, sp, bp;
	bool knows_bp;
};

/*
 * One usual frame, and no other register followed. False: nothing has changed,
 * tickmap_x86_64_step knows why not.
 */
static inline bool
tickmap_x86_64_quick_step(const struct tickmap_x86_64_frame *frame,
			  const struct tickmap_stack *stack,
			  struct tickmap_x86_64_quick *quick)
{
	const unsigned bp_bit = 1u << TICKMAP_X86_64_SLOT_RBP;
	const uint64_t word = sizeof(uint64_t);
	bool by_bp = frame->cfa_register == TICKMAP_RBP;
	uint64_t pc, bp = quick->bp;
	bool knows_bp = quick->knows_bp;

	if (frame->form != TICKMAP_FORM_REGISTER ||
	    (by_bp ? !knows_bp : frame->cfa_register != TICKMAP_RSP))
		return false;
	uint64_t cfa =
		(by_bp ? bp : quick->sp) + (uint64_t)(int64_t)frame->cfa_offset;
	if (cfa <= quick->sp ||
	    tickmap_stack_read(stack, cfa - word, &pc) != TICKMAP_STEP_OK ||
	    !pc)
		return false;
	if ((frame->saved | frame->lost) & bp_bit) {
		uint64_t slot = (uint64_t)frame->slot[TICKMAP_X86_64_SLOT_RBP];
		if (frame->lost & bp_bit ||
		    tickmap_stack_read(stack, cfa + slot * word, &bp) !=
			    TICKMAP_STEP_OK)
			return false;
		knows_bp = true;
	}
	*quick = (struct tickmap_x86_64_quick) { pc, cfa, bp, knows_bp };
	return true;
}

#endif

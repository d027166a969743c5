/* SPDX-License-Identifier: MIT */
/*
 * Nearly all rules of compiled code in a few bytes, so that a cache of them is
 * small and a step needs no table:
 *
 *   cfa = reg + offset                 return address at cfa - 8
 *   cfa = *(reg + offset) + addend     preserved registers at cfa + 8 * slot
 */
#ifndef TICKMAP_UNWIND_X86_64_FRAME_H
#define TICKMAP_UNWIND_X86_64_FRAME_H

#include "unwind/x86_64/state.h"

enum tickmap_x86_64_form {
	TICKMAP_FORM_NONE, /* nothing here: an empty place in the cache */
	TICKMAP_FORM_REGISTER,
	TICKMAP_FORM_INDIRECT,
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
	int32_t cfa_addend;
	int16_t slot[TICKMAP_X86_64_SLOTS];
};
_Static_assert(sizeof(struct tickmap_x86_64_frame) == 24,
	       "a cache entry is 40 bytes");

/* `pc` is the address that the rule was asked for. */
struct tickmap_x86_64_frame
tickmap_x86_64_compact(const struct tickmap_cfi *cfi,
		       const struct tickmap_rule *rule, uint64_t pc);

/* Not for FORM_GENERAL. `state` is the caller's if the result is OK. */
enum tickmap_step tickmap_x86_64_step(const struct tickmap_x86_64_frame *frame,
				      const struct tickmap_stack *stack,
				      struct tickmap_x86_64_state *state);

#endif

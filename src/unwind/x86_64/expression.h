/* SPDX-License-Identifier: MIT */
/* DWARF expressions (DWARF 5, 2.5) as far as unwind tables use them. */
#ifndef TICKMAP_UNWIND_X86_64_EXPRESSION_H
#define TICKMAP_UNWIND_X86_64_EXPRESSION_H

#include "base/bytes.h"
#include "unwind/x86_64/state.h"

/* `initial` (the frame's address, or NULL) is pushed first. */
enum tickmap_step
tickmap_x86_64_expression(struct tickmap_bytes code,
			  const struct tickmap_x86_64_state *state,
			  const struct tickmap_stack *stack,
			  const uint64_t *initial, uint64_t *ret_value);

#endif

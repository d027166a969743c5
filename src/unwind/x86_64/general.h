/* SPDX-License-Identifier: MIT */
/* One step by a rule of any form: the slow way, for the few that need it. */
#ifndef TICKMAP_UNWIND_X86_64_GENERAL_H
#define TICKMAP_UNWIND_X86_64_GENERAL_H

#include "unwind/x86_64/state.h"

/* `state` is the caller's if the result is OK, and else unchanged. */
enum tickmap_step tickmap_x86_64_general(const struct tickmap_cfi *cfi,
					 const struct tickmap_rule *rule,
					 const struct tickmap_stack *stack,
					 struct tickmap_x86_64_state *state);

#endif

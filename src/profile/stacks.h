/* SPDX-License-Identifier: MIT */
/*
 * Call chains as recorded, kept as a tree from the root to the leaf: a million
 * samples share nearly all of their callers, so that each adds an entry or two.
 */
#ifndef TICKMAP_PROFILE_STACKS_H
#define TICKMAP_PROFILE_STACKS_H

#include "base/vec.h"

#include <stdint.h>

enum tickmap_stack_kind {
	TICKMAP_STACK_PROCESS, /* one a pid, just below the root */
	TICKMAP_STACK_USER,
	TICKMAP_STACK_CALLER, /* a user's return address minus one */
	TICKMAP_STACK_KERNEL,
};

/* What the frames of this stack, and of all above it, mean for quality. */
enum {
	TICKMAP_STACK_JIT = 1,	       /* generated code is in it */
	TICKMAP_STACK_JIT_UNNAMED = 2, /* and some of it has no name */
};

struct tickmap_stack {
	uint64_t avma; /* to look up: a return address minus one */
	uint32_t parent;
	union {
		uint32_t child; /* while stacks are added: the first one */
		/* Later: the node of the profile that it was in `epoch`; 0:
		 * never asked. */
		uint32_t node;
	};
	uint32_t epoch;
	uint32_t map;	/* that held the address then, if a file's; + 1 */
	uint32_t chain; /* of functions inlined there; 0: none */
	uint16_t early;
	uint8_t kind;  /* enum tickmap_stack_kind */
	uint8_t flags; /* TICKMAP_STACK_JIT... */
};
_Static_assert(sizeof(struct tickmap_stack) == 32, "there may be millions");

/* Zeroed means empty. Stack 0 is the root. */
struct tickmap_stacks {
	TICKMAP_VEC(struct tickmap_stack) all;
	/* All but first children, which most stacks are: open addressing; 0:
	 * free. */
	uint32_t *index;
	size_t index_count, index_capacity;
};

/* The stack of `parent` and one more frame; UINT32_MAX: out of memory. */
uint32_t tickmap_stacks_add(struct tickmap_stacks *stacks, uint32_t parent,
			    uint64_t avma, enum tickmap_stack_kind kind);
/* The caller of all others, or nobody but a zero above it: chains of frame
 * pointers like to end in one. */
bool tickmap_stacks_is_first(const struct tickmap_stacks *stacks,
			     const struct tickmap_stack *s);
/* No more are added: from now on they have nodes. */
void tickmap_stacks_end(struct tickmap_stacks *stacks);
void tickmap_stacks_free(struct tickmap_stacks *stacks);

#endif

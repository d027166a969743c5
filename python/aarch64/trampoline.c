/* SPDX-License-Identifier: MIT */
/*
 * aarch64, AAPCS64. The evaluator's three arguments stay in x0, x1 and w2; the
 * evaluator is the fourth, x3. x29 and x30 are kept as a frame record, so that
 * frame-pointer unwinders pass as well as those that read the published table.
 *
 * On 3.12 and 3.13 the call is credited with the units of C recursion that the
 * evaluator will charge: see x86_64/trampoline.c.
 */
#include <string.h>

#include "compat.h"
#include "trampoline.h"

#ifndef __aarch64__
#error "this file is for aarch64"
#endif

#if TICKMAP_COUNTS_C_RECURSION
#define REMAINING ((uint32_t)offsetof(PyThreadState, c_recursion_remaining))
#define UNITS ((uint32_t)TICKMAP_EVALUATOR_UNITS)
/* The offset is that of an unsigned immediate: in words, 12 bits. */
#define LDR_W9(base) (0xb9400009 | (REMAINING / 4) << 10 | (base) << 5)
#define STR_W9(base) (0xb9000009 | (REMAINING / 4) << 10 | (base) << 5)

_Static_assert(sizeof(((PyThreadState *)0)->c_recursion_remaining) == 4 &&
		       offsetof(PyThreadState, c_recursion_remaining) % 4 == 0,
	       "the credit is added to a 32-bit word");
_Static_assert(offsetof(PyThreadState, c_recursion_remaining) / 4 < 4096,
	       "the word lies within reach of one instruction");

/* An instruction a line. */
/* clang-format off */
static const uint32_t code[] = {
	0xd503245f,			/* bti c */
	0xa9be7bfd,			/* stp x29, x30, [sp, -32]! */
	0x910003fd,			/* mov x29, sp */
	0xf9000be0,			/* str x0, [sp, 16] */
	LDR_W9(0),			/* ldr w9, [x0, REMAINING] */
	0x11000129 | UNITS << 10,	/* add w9, w9, UNITS */
	STR_W9(0),			/* str w9, [x0, REMAINING] */
	0xd63f0060,			/* blr x3 */
	0xf9400bea,			/* ldr x10, [sp, 16] */
	LDR_W9(10),			/* ldr w9, [x10, REMAINING] */
	0x51000129 | UNITS << 10,	/* sub w9, w9, UNITS */
	STR_W9(10),			/* str w9, [x10, REMAINING] */
	0xa8c27bfd,			/* ldp x29, x30, [sp], 32 */
	0xd65f03c0,			/* ret */
	0x00000000,			/* the serial */
};
enum { FRAME_SIZE = 32 };
#else
static const uint32_t code[] = {
	0xd503245f,			/* bti c */
	0xa9bf7bfd,			/* stp x29, x30, [sp, -16]! */
	0x910003fd,			/* mov x29, sp */
	0xd63f0060,			/* blr x3 */
	0xa8c17bfd,			/* ldp x29, x30, [sp], 16 */
	0xd65f03c0,			/* ret */
	0x00000000,			/* the serial */
};
enum { FRAME_SIZE = 16 };
#endif
/* clang-format on */

const size_t tickmap_trampoline_size = sizeof(code);

/* The instruction cache is made to agree by arena.c. */
void tickmap_trampoline_write(uint8_t *at, uint32_t serial)
{
	memcpy(at, code, sizeof(code));
	memcpy(at + sizeof(code) - sizeof(serial), &serial, sizeof(serial));
}

int tickmap_trampoline_unwind(struct tickmap_unwind *ret_unwind)
{
	struct tickmap_unwind_shape shape = TICKMAP_UNWIND_SHAPE_INIT;

	shape.kind = TICKMAP_UNWIND_FRAME_POINTER;
	shape.flags = TICKMAP_UNWIND_LANDING_PAD;
	shape.leave_at = sizeof(code) - 12; /* ldp, ret, the serial */
	shape.frame_size = FRAME_SIZE;
	return tickmap_unwind_build(ret_unwind, &shape);
}

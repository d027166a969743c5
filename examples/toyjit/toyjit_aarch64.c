/* SPDX-License-Identifier: MIT */
#include "toyjit.h"

#if defined(__aarch64__)

#include <string.h>

struct assembler {
	uint8_t *code;
	uint32_t size;
};

static void put(struct assembler *a, uint32_t word)
{
	memcpy(a->code + a->size, &word, sizeof(word));
	a->size += 4;
}

/* The register, here and below, is x10. */
static void put_constant(struct assembler *a, const void *pointer)
{
	uint64_t value = (uintptr_t)pointer;

	for (uint32_t i = 0; i < 4; i++) {
		uint32_t part = (uint32_t)(value >> 16 * i) & 0xffff;

		/* movz x10, part; then movk x10, part, lsl 16 * i */
		put(a,
		    (i ? 0xf2800000 : 0xd2800000) | i << 21 | part << 5 | 10);
	}
}

static void put_calls(struct assembler *a, const struct toy_function *function)
{
	const void *probe;

	if (function->callee) {
		put_constant(a, &function->callee->code);
		put(a, 0xf940014a); /* ldr x10, [x10] */
		put(a, 0xd63f0140); /* blr x10 */
	}
	if (function->probe) {
		memcpy(&probe, &function->probe, sizeof(probe));
		put_constant(a, probe);
		put(a, 0xaa1c03e0); /* mov x0, x28 */
		put(a, 0xd63f0140); /* blr x10 */
	}
}

static void put_spin(struct assembler *a, uint32_t spins)
{
	put(a, 0x52800009 | (spins & 0xffff) << 5); /* movz w9 */
	put(a, 0x72a00009 | (spins >> 16) << 5);    /* movk w9, lsl 16 */
	put(a, 0x71000529);			    /* subs w9, w9, 1 */
	put(a, 0x54ffffe1);			    /* b.ne back */
}

static int build_unwind(struct toy_function *function, uint32_t end_at,
			uint32_t frame_size)
{
	static const uint32_t kinds[] = { TICKMAP_UNWIND_FRAME_POINTER,
					  TICKMAP_UNWIND_FIXED,
					  TICKMAP_UNWIND_LEAF };
	struct tickmap_unwind_shape shape = TICKMAP_UNWIND_SHAPE_INIT;

	shape.kind = kinds[function->frame];
	shape.leave_at = end_at;
	shape.frame_size = frame_size;
	if (function->is_signed)
		shape.flags =
			TICKMAP_UNWIND_SIGNED | TICKMAP_UNWIND_LANDING_PAD;
	return tickmap_unwind_build(&function->unwind, &shape);
}

int toy_assemble(struct toy_function *function, uint8_t code[TOY_MAX_CODE])
{
	struct assembler a = { .code = code };
	uint32_t end_at;

	if (function->is_signed) {
		put(&a, 0xd503245f); /* bti c */
		put(&a, 0xd503233f); /* paciasp */
	}
	if (function->frame == TOY_FRAME_POINTER) {
		put(&a, 0xa9bf7bfd); /* stp x29, x30, [sp, -16]! */
		put(&a, 0x910003fd); /* mov x29, sp */
	} else if (function->frame == TOY_FIXED) {
		put(&a, 0xd10083ff); /* sub sp, sp, 32 */
		put(&a, 0xf9000ffe); /* str x30, [sp, 24] */
	}
	put(&a, 0xd378df9c); /* lsl x28, x28, 8 */
	put(&a, 0x9100039c | (uint32_t)function->id << 10); /* add x28, id */
	function->enter_at = a.size;
	put_spin(&a, function->spins);
	put_calls(&a, function);
	put(&a, 0xd348ff9c); /* lsr x28, x28, 8 */
	function->leave_at = end_at = a.size;
	if (function->frame == TOY_FRAME_POINTER) {
		put(&a, 0xa8c17bfd); /* ldp x29, x30, [sp], 16 */
	} else if (function->frame == TOY_FIXED) {
		put(&a, 0xf9400ffe); /* ldr x30, [sp, 24] */
		put(&a, 0x910083ff); /* add sp, sp, 32 */
	}
	if (function->is_signed)
		put(&a, 0xd50323bf); /* autiasp */
	put(&a, 0xd65f03c0);	     /* ret */
	function->size = a.size;
	return build_unwind(function, end_at,
			    function->frame == TOY_FIXED ? 32 : 16);
}

int toy_assemble_enter(struct toy_function *function,
		       uint8_t code[TOY_MAX_CODE])
{
	struct assembler a = { .code = code };

	put(&a, 0xa9be7bfd);			 /* stp x29, x30, [sp, -32]! */
	put(&a, 0x910003fd);			 /* mov x29, sp */
	put(&a, 0xf9000bfc);			 /* str x28, [sp, 16] */
	put(&a, 0xd280001c | TOY_ENTER_ID << 5); /* mov x28, id */
	function->enter_at = a.size;
	put(&a, 0xd63f0000); /* blr x0 */
	put(&a, 0xf9400bfc); /* ldr x28, [sp, 16] */
	function->leave_at = a.size;
	put(&a, 0xa8c27bfd); /* ldp x29, x30, [sp], 32 */
	put(&a, 0xd65f03c0); /* ret */
	function->size = a.size;
	return build_unwind(function, function->leave_at, 32);
}

#endif

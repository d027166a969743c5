/* SPDX-License-Identifier: MIT */
#include "toyjit.h"

#if defined(__aarch64__)

#include <string.h>

static void put(struct toy_code *code, uint32_t word)
{
	memcpy(code->bytes + code->size, &word, sizeof(word));
	code->size += 4;
}

/* Into x10. */
static void put_constant(struct toy_code *code, uintptr_t value)
{
	for (uint32_t i = 0; i < 4; i++) {
		uint32_t part = (uint32_t)(value >> 16 * i) & 0xffff;
		/* movz x10, part; then movk x10, part, lsl 16 * i */
		uint32_t move = i ? 0xf2800000 : 0xd2800000;

		put(code, move | i << 21 | part << 5 | 10);
	}
}

const uint32_t toy_frame_size = 32;
const uint32_t toy_signed_flags =
	TICKMAP_UNWIND_SIGNED | TICKMAP_UNWIND_LANDING_PAD;

void toy_put_prologue(struct toy_code *code, const struct toy_function *f)
{
	if (f->is_signed) {
		put(code, 0xd503245f); /* bti c */
		put(code, 0xd503233f); /* paciasp */
	}
	if (f->frame == TICKMAP_UNWIND_FRAME_POINTER) {
		put(code, 0xa9be7bfd); /* stp x29, x30, [sp, -32]! */
		put(code, 0x910003fd); /* mov x29, sp */
	} else if (f->frame == TICKMAP_UNWIND_FIXED) {
		put(code, 0xd10083ff); /* sub sp, sp, 32 */
		put(code, 0xf9000ffe); /* str x30, [sp, 24] */
	}
}

void toy_put_epilogue(struct toy_code *code, const struct toy_function *f)
{
	if (f->frame == TICKMAP_UNWIND_FRAME_POINTER) {
		put(code, 0xa8c27bfd); /* ldp x29, x30, [sp], 32 */
	} else if (f->frame == TICKMAP_UNWIND_FIXED) {
		put(code, 0xf9400ffe); /* ldr x30, [sp, 24] */
		put(code, 0x910083ff); /* add sp, sp, 32 */
	}
	if (f->is_signed)
		put(code, 0xd50323bf); /* autiasp */
	put(code, 0xd65f03c0);	       /* ret */
}

void toy_put_push(struct toy_code *code, uint8_t id)
{
	put(code, 0xd378df9c);			    /* lsl x28, x28, 8 */
	put(code, 0x9100039c | (uint32_t)id << 10); /* add x28, x28, id */
}

void toy_put_pop(struct toy_code *code)
{
	put(code, 0xd348ff9c); /* lsr x28, x28, 8 */
}

void toy_put_spin(struct toy_code *code, uint32_t spins)
{
	put(code, 0x52800009 | (spins & 0xffff) << 5); /* movz w9 */
	put(code, 0x72a00009 | (spins >> 16) << 5);    /* movk w9, lsl 16 */
	put(code, 0x71000529);			       /* subs w9, w9, 1 */
	put(code, 0x54ffffe1);			       /* b.ne back */
}

void toy_put_call(struct toy_code *code, uint8_t *const *callee)
{
	put_constant(code, (uintptr_t)callee);
	put(code, 0xf940014a); /* ldr x10, [x10] */
	put(code, 0xd63f0140); /* blr x10 */
}

void toy_put_probe(struct toy_code *code, void (*probe)(uint64_t))
{
	put_constant(code, (uintptr_t)probe);
	put(code, 0xaa1c03e0); /* mov x0, x28 */
	put(code, 0xd63f0140); /* blr x10 */
}

void toy_put_first_push(struct toy_code *code, uint8_t id)
{
	put(code, 0xf9000bfc);			   /* str x28, [sp, 16] */
	put(code, 0xd280001c | (uint32_t)id << 5); /* mov x28, id */
}

void toy_put_first_call(struct toy_code *code)
{
	put(code, 0xd63f0000); /* blr x0 */
	put(code, 0xf9400bfc); /* ldr x28, [sp, 16] */
}

#endif

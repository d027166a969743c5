/* SPDX-License-Identifier: MIT */
#include "toyjit.h"

#if defined(__x86_64__)

#include <string.h>

struct assembler {
	uint8_t *code;
	uint32_t size;
};

#define EMIT(a, ...)                                                           \
	put(a, (const uint8_t[]) { __VA_ARGS__ },                              \
	    sizeof((const uint8_t[]) { __VA_ARGS__ }))

static void put(struct assembler *a, const void *bytes, size_t size)
{
	memcpy(a->code + a->size, bytes, size);
	a->size += (uint32_t)size;
}

#define PUSH_RBP 0x55
#define MOV_RBP_RSP 0x48, 0x89, 0xe5
#define POP_RBP 0x5d
#define LEAVE 0xc9
#define SUB_RSP_24 0x48, 0x83, 0xec, 24
#define ADD_RSP_24 0x48, 0x83, 0xc4, 24
#define RET 0xc3

static int build_unwind(struct toy_function *function, uint32_t end_at)
{
	static const uint32_t kinds[] = { TICKMAP_UNWIND_FRAME_POINTER,
					  TICKMAP_UNWIND_FIXED,
					  TICKMAP_UNWIND_LEAF };
	struct tickmap_unwind_shape shape = TICKMAP_UNWIND_SHAPE_INIT;

	shape.kind = kinds[function->frame];
	shape.leave_at = end_at;
	shape.frame_size = 24;
	return tickmap_unwind_build(&function->unwind, &shape);
}

static void put_calls(struct assembler *a, const struct toy_function *function)
{
	if (function->callee) {
		const void *slot = &function->callee->code;

		EMIT(a, 0x48, 0xb8); /* mov rax, slot */
		put(a, &slot, sizeof(slot));
		EMIT(a, 0xff, 0x10); /* call [rax] */
	}
	if (function->probe) {
		EMIT(a, 0x4c, 0x89, 0xff); /* mov rdi, r15 */
		EMIT(a, 0x48, 0xb8);	   /* mov rax, probe */
		put(a, &function->probe, sizeof(function->probe));
		EMIT(a, 0xff, 0xd0); /* call rax */
	}
}

int toy_assemble(struct toy_function *function, uint8_t code[TOY_MAX_CODE])
{
	struct assembler a = { .code = code };
	uint32_t end_at;

	if (function->frame == TOY_FRAME_POINTER)
		EMIT(&a, PUSH_RBP, MOV_RBP_RSP);
	else if (function->frame == TOY_FIXED)
		EMIT(&a, SUB_RSP_24);
	EMIT(&a, 0x49, 0xc1, 0xe7, 8);		  /* shl r15, 8 */
	EMIT(&a, 0x49, 0x83, 0xc7, function->id); /* add r15, id */
	function->enter_at = a.size;
	EMIT(&a, 0xb9); /* mov ecx, spins */
	put(&a, &function->spins, sizeof(function->spins));
	EMIT(&a, 0xff, 0xc9, 0x75, 0xfc); /* dec ecx; jnz back */
	put_calls(&a, function);
	EMIT(&a, 0x49, 0xc1, 0xef, 8); /* shr r15, 8 */
	function->leave_at = end_at = a.size;
	if (function->frame == TOY_FRAME_POINTER)
		EMIT(&a, POP_RBP);
	else if (function->frame == TOY_FIXED)
		EMIT(&a, ADD_RSP_24);
	EMIT(&a, RET);
	function->size = a.size;
	return build_unwind(function, end_at);
}

int toy_assemble_enter(struct toy_function *function,
		       uint8_t code[TOY_MAX_CODE])
{
	struct assembler a = { .code = code };

	EMIT(&a, PUSH_RBP, MOV_RBP_RSP);
	EMIT(&a, 0x41, 0x57, 0x48, 0x83, 0xec, 8);   /* push r15; sub rsp, 8 */
	EMIT(&a, 0x41, 0xbf, TOY_ENTER_ID, 0, 0, 0); /* mov r15d, id */
	function->enter_at = a.size;
	EMIT(&a, 0xff, 0xd7);		  /* call rdi */
	EMIT(&a, 0x4c, 0x8b, 0x7d, 0xf8); /* mov r15, [rbp - 8] */
	function->leave_at = a.size;
	EMIT(&a, LEAVE, RET);
	function->size = a.size;
	return build_unwind(function, function->leave_at);
}

#endif

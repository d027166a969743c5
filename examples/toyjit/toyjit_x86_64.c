/* SPDX-License-Identifier: MIT */
#include "toyjit.h"

#if defined(__x86_64__)

#include <string.h>

#define PUT(code, ...)                                                         \
	put(code, (const uint8_t[]) { __VA_ARGS__ },                           \
	    sizeof((const uint8_t[]) { __VA_ARGS__ }))

static void put(struct toy_code *code, const void *bytes, size_t size)
{
	memcpy(code->bytes + code->size, bytes, size);
	code->size += (uint32_t)size;
}

const uint32_t toy_frame_size = 24;
const uint32_t toy_signed_flags = 0;

void toy_put_prologue(struct toy_code *code, const struct toy_function *f)
{
	if (f->frame == TICKMAP_UNWIND_FRAME_POINTER)
		PUT(code, 0x55, 0x48, 0x89, 0xe5); /* push rbp; mov rbp, rsp */
	else if (f->frame == TICKMAP_UNWIND_FIXED)
		PUT(code, 0x48, 0x83, 0xec, 24); /* sub rsp, 24 */
}

void toy_put_epilogue(struct toy_code *code, const struct toy_function *f)
{
	if (f->frame == TICKMAP_UNWIND_FRAME_POINTER)
		PUT(code, 0xc9); /* leave */
	else if (f->frame == TICKMAP_UNWIND_FIXED)
		PUT(code, 0x48, 0x83, 0xc4, 24); /* add rsp, 24 */
	PUT(code, 0xc3);			 /* ret */
}

void toy_put_push(struct toy_code *code, uint8_t id)
{
	PUT(code, 0x49, 0xc1, 0xe7, 8);	 /* shl r15, 8 */
	PUT(code, 0x49, 0x83, 0xc7, id); /* add r15, id */
}

void toy_put_pop(struct toy_code *code)
{
	PUT(code, 0x49, 0xc1, 0xef, 8); /* shr r15, 8 */
}

void toy_put_spin(struct toy_code *code, uint32_t spins)
{
	PUT(code, 0xb9); /* mov ecx, spins */
	put(code, &spins, sizeof(spins));
	PUT(code, 0xff, 0xc9, 0x75, 0xfc); /* dec ecx; jnz back */
}

void toy_put_call(struct toy_code *code, uint8_t *const *callee)
{
	PUT(code, 0x48, 0xb8); /* mov rax, callee */
	put(code, &callee, sizeof(callee));
	PUT(code, 0xff, 0x10); /* call [rax] */
}

void toy_put_probe(struct toy_code *code, void (*probe)(uint64_t))
{
	PUT(code, 0x4c, 0x89, 0xff); /* mov rdi, r15 */
	PUT(code, 0x48, 0xb8);	     /* mov rax, probe */
	put(code, &probe, sizeof(probe));
	PUT(code, 0xff, 0xd0); /* call rax */
}

void toy_put_first_push(struct toy_code *code, uint8_t id)
{
	PUT(code, 0x41, 0x57, 0x48, 0x83, 0xec, 8); /* push r15; sub rsp, 8 */
	PUT(code, 0x41, 0xbf, id, 0, 0, 0);	    /* mov r15d, id */
}

void toy_put_first_call(struct toy_code *code)
{
	PUT(code, 0xff, 0xd7);		   /* call rdi */
	PUT(code, 0x4c, 0x8b, 0x7d, 0xf8); /* mov r15, [rbp - 8] */
}

#endif

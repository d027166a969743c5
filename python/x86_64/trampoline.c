/* SPDX-License-Identifier: MIT */
/*
 * x86-64, System V. The evaluator's three arguments stay in rdi, rsi and edx;
 * the evaluator is the fourth, rcx. rbp is kept, so that frame-pointer
 * unwinders pass as well as those that read the published table.
 *
 * On 3.12 and 3.13 the call is credited with the units of C recursion that the
 * evaluator will charge: with the hook installed every Python call goes
 * through C, and the plain interpreter would not have charged it.
 */
#include <string.h>

#include "compat.h"
#include "trampoline.h"

#ifndef __x86_64__
#error "this file is for x86-64"
#endif

/* An instruction a line. */
/* clang-format off */
#if defined(__CET__) && (__CET__ & 1)
#define LANDING 0xf3, 0x0f, 0x1e, 0xfa, /* endbr64 */
enum { PUSH_AT = 4 };
#else
#define LANDING
enum { PUSH_AT = 0 };
#endif

#if TICKMAP_COUNTS_C_RECURSION
#define REMAINING ((uint32_t)offsetof(PyThreadState, c_recursion_remaining))
#define LE32(x) (x) & 0xff, ((x) >> 8) & 0xff, ((x) >> 16) & 0xff, (x) >> 24
#define UNITS TICKMAP_EVALUATOR_UNITS

_Static_assert(sizeof(((PyThreadState *)0)->c_recursion_remaining) == 4,
	       "the credit is a 32-bit addition");

static const uint8_t code[] = {
	LANDING
	0x55,				    /* push rbp */
	0x48, 0x89, 0xe5,		    /* mov rbp, rsp */
	0x57,				    /* push rdi */
	0x48, 0x83, 0xec, 0x08,		    /* sub rsp, 8 */
	0x83, 0x87, LE32(REMAINING), UNITS, /* add dword [rdi+REMAINING], 2 */
	0xff, 0xd1,			    /* call rcx */
	0x48, 0x8b, 0x7d, 0xf8,		    /* mov rdi, [rbp-8] */
	0x83, 0xaf, LE32(REMAINING), UNITS, /* sub dword [rdi+REMAINING], 2 */
	0xc9,				    /* leave */
	0xc3,				    /* ret */
	0x0f, 0x1f, 0x80, 0, 0, 0, 0,	    /* nop [rax+serial] */
};
#else
static const uint8_t code[] = {
	LANDING
	0x55,				    /* push rbp */
	0x48, 0x89, 0xe5,		    /* mov rbp, rsp */
	0xff, 0xd1,			    /* call rcx */
	0x5d,				    /* pop rbp */
	0xc3,				    /* ret */
	0x0f, 0x1f, 0x80, 0, 0, 0, 0,	    /* nop [rax+serial] */
};
#endif
/* clang-format on */

enum { LEAVE_AT = sizeof(code) - 9 }; /* leave or pop, ret, the nop of 7 */

const size_t tickmap_trampoline_size = sizeof(code);

void tickmap_trampoline_write(uint8_t *at, uint32_t serial)
{
	memcpy(at, code, sizeof(code));
	memcpy(at + sizeof(code) - sizeof(serial), &serial, sizeof(serial));
}

int tickmap_trampoline_unwind(struct tickmap_unwind *ret_unwind)
{
	return tickmap_unwind_frame_pointer(ret_unwind, PUSH_AT, LEAVE_AT);
}

/* SPDX-License-Identifier: MIT */
/* Code that nothing describes, as in .init: found by what follows a call. */
#include "self.h"
#include "unwind/x86_64/call.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/*
 * bare_call has no .cfi directives on purpose. rbp is its caller's, which keeps
 * a number in it.
 */
void bare_call(void (*callee)(void *), void *context);
void with_odd_rbp(void (*callee)(void *), void *context);
__asm__(".text\n"
	".type with_odd_rbp, @function\n"
	"with_odd_rbp:\n"
	"	.cfi_startproc\n"
	"	push %rbp\n"
	"	.cfi_def_cfa_offset 16\n"
	"	.cfi_offset rbp, -16\n"
	"	mov $0x1235, %ebp\n"
	"	call bare_call\n"
	"	pop %rbp\n"
	"	.cfi_def_cfa_offset 8\n"
	"	.cfi_restore rbp\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size with_odd_rbp, . - with_odd_rbp\n");
__asm__(".text\n"
	".type bare_call, @function\n"
	"bare_call:\n"
	"	sub $8, %rsp\n"
	"	mov %rdi, %rax\n"
	"	mov %rsi, %rdi\n"
	"	call *%rax\n"
	"	add $8, %rsp\n"
	"	ret\n"
	".size bare_call, . - bare_call\n");

static size_t code_before(void *context, uint64_t avma, uint8_t *out,
			  size_t wanted)
{
	(void)context;
	memcpy(out, (const uint8_t *)(uintptr_t)(avma - wanted), wanted);
	return wanted;
}

enum { STACK_ROOM = 2 << 20 };

struct scene {
	struct capture capture;
};

static __attribute__((noinline)) void callee(void *context)
{
	struct scene *scene = context;

	self_capture(&scene->capture);
	__asm__ volatile("" ::: "memory");
}

static __attribute__((noinline)) void caller(struct scene *scene)
{
	with_odd_rbp(callee, scene);
	__asm__ volatile("" ::: "memory");
}

static bool holds(const uint64_t *ips, size_t count, const void *function,
		  size_t size)
{
	for (size_t i = 0; i < count; i++) {
		if (ips[i] - (uint64_t)(uintptr_t)function < size)
			return true;
	}
	return false;
}

static size_t walk(struct self_modules *modules, struct scene *scene,
		   uint64_t *ips, enum tickmap_unwind_end *ret_end)
{
	struct tickmap_unwinder *unwinder = tickmap_unwinder_new();
	size_t count = tickmap_unwind_walk(unwinder, &modules->space,
					   &scene->capture.input, ips,
					   SELF_FRAMES, ret_end);

	tickmap_unwinder_free(unwinder);
	return count;
}

static void a_frame_without_any_rule_is_walked_by_its_call(void **state)
{
	static struct self_modules modules;
	static struct scene scene;
	uint64_t ips[SELF_FRAMES];
	enum tickmap_unwind_end end;

	(void)state;
	self_modules_load(&modules);
	scene.capture.room = STACK_ROOM;
	scene.capture.stack = malloc(STACK_ROOM);
	assert_non_null(scene.capture.stack);
	caller(&scene);
	modules.space.code_before = code_before;
	size_t count = walk(&modules, &scene, ips, &end);
	assert_int_equal(end, TICKMAP_END_COMPLETE);
	assert_true(holds(ips, count, (const void *)bare_call, 20));
	assert_true(holds(ips, count, (const void *)with_odd_rbp, 20));
	assert_true(holds(ips, count, (const void *)caller, 64));

	/* Without a look at the code the walk ends there, or skips. */
	modules.space.code_before = NULL;
	modules.space.key++;
	count = walk(&modules, &scene, ips, &end);
	assert_false(end == TICKMAP_END_COMPLETE &&
		     holds(ips, count, (const void *)caller, 64));
	self_modules_free(&modules);
	free(scene.capture.stack);
}

static void every_form_of_call_is_known_and_nothing_else(void **state)
{
	static const struct {
		uint8_t bytes[8];
		uint8_t size;
		bool call;
	} cases[] = {
		{ { 0xe8, 1, 2, 3, 4 }, 5, true },
		{ { 0xff, 0xd0 }, 2, true },		 /* call *%rax */
		{ { 0x41, 0xff, 0xd3 }, 3, true },	 /* call *%r11 */
		{ { 0xff, 0x10 }, 2, true },		 /* call *(%rax) */
		{ { 0xff, 0x15, 1, 2, 3, 4 }, 6, true }, /* call *x(%rip) */
		{ { 0xff, 0x50, 8 }, 3, true },		 /* call *8(%rax) */
		{ { 0xff, 0x90, 1, 2, 3, 4 }, 6, true },
		{ { 0xff, 0x14, 0xc8 }, 3, true }, /* call *(%rax,%rcx,8) */
		{ { 0xff, 0x54, 0x24, 8 }, 4, true },
		{ { 0xff, 0x94, 0xc8, 1, 2, 3, 4 }, 7, true },
		{ { 0xff, 0x14, 0xc5, 1, 2, 3, 4 }, 7, true },
		{ { 0xff, 0xe0 }, 2, false }, /* jmp *%rax */
		{ { 0xff, 0x25, 1, 2, 3, 4 }, 6, false },
		{ { 0xe9, 1, 2, 3, 4 }, 5, false },
		{ { 0x90, 0x90, 0x90, 0x90, 0x90 }, 5, false },
		{ { 0xd0 }, 1, false },
		{ { 0 }, 0, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_int_equal(tickmap_x86_64_ends_with_call(cases[i].bytes,
							       cases[i].size),
				 cases[i].call);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_frame_without_any_rule_is_walked_by_its_call),
		cmocka_unit_test(every_form_of_call_is_known_and_nothing_else),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

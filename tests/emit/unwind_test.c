/* SPDX-License-Identifier: MIT */
/*
 * Unwinding information, as published, against the machine: real functions are
 * run one instruction at a time, and at each one libgcc's unwinder must find
 * the caller, its stack pointer and its frame pointer.
 */
#include "support.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unwind.h>

#define ROOM 4096

extern void __register_frame(void *begin);
extern void __deregister_frame(void *begin);

static struct {
	uintptr_t code;
	size_t size;
	uintptr_t entry_sp;
	uintptr_t entry_fp;
	uintptr_t return_address;
	size_t steps;
	size_t wrong;
	bool in_code; /* the frame before was the code's */
	bool found;
} trace;

static bool is_in_code(uintptr_t pc)
{
	return pc - trace.code < trace.size;
}

static _Unwind_Reason_Code look_at_frame(struct _Unwind_Context *context,
					 void *arg)
{
	uintptr_t pc = _Unwind_GetIP(context);

	(void)arg;
	if (trace.in_code) {
		trace.found =
			pc == trace.return_address &&
			_Unwind_GetCFA(context) == trace.entry_sp + 8 &&
			(uintptr_t)_Unwind_GetGR(context, 6) == trace.entry_fp;
		return _URC_END_OF_STACK;
	}
	trace.in_code = is_in_code(pc);
	return _URC_NO_REASON;
}

static void at_instruction(int signal_number, siginfo_t *info, void *arg)
{
	const greg_t *regs = ((ucontext_t *)arg)->uc_mcontext.gregs;
	uintptr_t pc = (uintptr_t)regs[REG_RIP];

	(void)signal_number;
	(void)info;
	if (!is_in_code(pc))
		return;
	if (pc == trace.code) {
		trace.entry_sp = (uintptr_t)regs[REG_RSP];
		trace.entry_fp = (uintptr_t)regs[REG_RBP];
		memcpy(&trace.return_address, (void *)trace.entry_sp, 8);
	}
	trace.steps++;
	trace.in_code = false;
	trace.found = false;
	_Unwind_Backtrace(look_at_frame, NULL);
	if (!trace.found)
		trace.wrong++;
}

/* The trap flag is set from here to the end of the call. */
__attribute__((noinline)) static void run_stepwise(uintptr_t code)
{
	__asm__ volatile("sub $128, %%rsp\n\t" /* the red zone */
			 ".cfi_adjust_cfa_offset 128\n\t"
			 "pushfq\n\t"
			 ".cfi_adjust_cfa_offset 8\n\t"
			 "orl $0x100, (%%rsp)\n\t"
			 "popfq\n\t"
			 ".cfi_adjust_cfa_offset -8\n\t"
			 "call *%0\n\t"
			 "pushfq\n\t"
			 ".cfi_adjust_cfa_offset 8\n\t"
			 "andl $~0x100, (%%rsp)\n\t"
			 "popfq\n\t"
			 ".cfi_adjust_cfa_offset -8\n\t"
			 "add $128, %%rsp\n\t"
			 ".cfi_adjust_cfa_offset -128"
			 :
			 : "b"(code)
			 : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10",
			   "r11", "cc", "memory");
}

/* Publish, read the unwinding bytes back, lay them behind the code, run. */
static void run_published(const char *dir, const uint8_t *bytes, size_t size,
			  const struct tickmap_unwind *unwind)
{
	uint8_t *memory = mmap(NULL, ROOM, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct tickmap_code code = small_code("stepped");
	struct sigaction action = { .sa_sigaction = at_instruction,
				    .sa_flags = SA_SIGINFO };
	struct sigaction old;
	struct tickmap_emit *emit;
	struct strict_dump dump;
	uint8_t *frame = memory + (size + 7) / 8 * 8;

	assert_ptr_not_equal(memory, MAP_FAILED);
	assert_int_equal(open_emit(dir, TICKMAP_EMIT_JITDUMP, 0, &emit), 0);
	code.addr = (uintptr_t)memory;
	code.bytes = bytes;
	code.code_size = size;
	code.unwind = unwind;
	assert_int_equal(tickmap_emit_code(emit, &code), 0);
	assert_int_equal(tickmap_emit_close(emit), 0);
	read_dump(dump_in(dir), &dump);
	assert_int_equal(remove(dump_in(dir)), 0);
	memcpy(memory, bytes, size);
	memcpy(frame, dump.codes[0].unwinding,
	       dump.codes[0].unwinding_size - 20);
	strict_free_dump(&dump);
	assert_int_equal(mprotect(memory, ROOM, PROT_READ | PROT_EXEC), 0);

	memset(&trace, 0, sizeof(trace));
	trace.code = (uintptr_t)memory;
	trace.size = size;
	__register_frame(frame);
	assert_int_equal(sigaction(SIGTRAP, &action, &old), 0);
	run_stepwise((uintptr_t)memory);
	sigaction(SIGTRAP, &old, NULL);
	__deregister_frame(frame);
	munmap(memory, ROOM);
}

#define PUSH_RBP 0x55
#define POP_RBP 0x5d
#define MOV_RBP_RSP 0x48, 0x89, 0xe5
#define SUB_RSP_24 0x48, 0x83, 0xec, 24
#define ADD_RSP_24 0x48, 0x83, 0xc4, 24
#define ADD_RSP_144 0x48, 0x81, 0xc4, 144, 0, 0, 0
#define PUSH_128 0x68, 128, 0, 0, 0
#define SUB_RSP_112 0x48, 0x83, 0xec, 112
#define LEAVE 0xc9
#define CLOBBER_SLOT 0x48, 0xc7, 0x44, 0x24, 0xf8, 0, 0, 0, 0
#define NOP 0x90
#define RET 0xc3

static void a_frame_pointer_function_unwinds_at_each_instruction(void **state)
{
	static const uint8_t plain[] = { PUSH_RBP, MOV_RBP_RSP, NOP, SUB_RSP_24,
					 NOP,	   LEAVE,	RET };
	/* Behind the pop, the slot of rbp is anybody's. */
	static const uint8_t late[] = { NOP, NOP,     PUSH_RBP,	    MOV_RBP_RSP,
					NOP, POP_RBP, CLOBBER_SLOT, RET };
	struct tickmap_unwind unwind;

	assert_int_equal(tickmap_unwind_frame_pointer(&unwind, 0, 10), 0);
	run_published(*state, plain, sizeof(plain), &unwind);
	assert_int_equal(trace.steps, 7);
	assert_int_equal(trace.wrong, 0);

	assert_int_equal(tickmap_unwind_frame_pointer(&unwind, 2, 7), 0);
	run_published(*state, late, sizeof(late), &unwind);
	assert_int_equal(trace.steps, 8);
	assert_int_equal(trace.wrong, 0);
}

/* Distances of every width of an advance: 6 bits, 8, 16. */
static void long_functions_unwind_up_to_their_end(void **state)
{
	static const size_t lengths[] = { 60, 70, 250, 300, 3000 };
	static uint8_t bytes[3100];
	struct tickmap_unwind unwind;

	for (size_t i = 0; i < 5; i++) {
		static const uint8_t head[] = { PUSH_RBP, MOV_RBP_RSP };
		size_t leave_at = lengths[i];

		memset(bytes, NOP, sizeof(bytes));
		memcpy(bytes, head, sizeof(head));
		bytes[leave_at] = LEAVE;
		bytes[leave_at + 1] = RET;
		assert_int_equal(tickmap_unwind_frame_pointer(
					 &unwind, 0, (uint32_t)leave_at),
				 0);
		run_published(*state, bytes, leave_at + 2, &unwind);
		assert_int_equal(trace.steps, leave_at);
		assert_int_equal(trace.wrong, 0);
	}
}

static void a_stack_pointer_function_unwinds_at_each_instruction(void **state)
{
	static const uint8_t leaf[] = { NOP, NOP, RET };
	static const uint8_t frame[] = { SUB_RSP_24, NOP, ADD_RSP_24, RET };
	static const uint8_t large[] = { SUB_RSP_24, PUSH_128,	  SUB_RSP_112,
					 NOP,	     ADD_RSP_144, RET };
	static const struct tickmap_unwind_step frame_steps[] = { { 0, 8 },
								  { 4, 32 },
								  { 9, 8 } };
	static const struct tickmap_unwind_step large_steps[] = {
		{ 4, 32 }, { 9, 40 }, { 13, 152 }, { 21, 8 }
	};
	struct tickmap_unwind unwind;

	assert_int_equal(tickmap_unwind_stack_pointer(&unwind, NULL, 0), 0);
	run_published(*state, leaf, sizeof(leaf), &unwind);
	assert_int_equal(trace.steps, 3);
	assert_int_equal(trace.wrong, 0);

	assert_int_equal(tickmap_unwind_stack_pointer(&unwind, frame_steps, 3),
			 0);
	run_published(*state, frame, sizeof(frame), &unwind);
	assert_int_equal(trace.steps, 4);
	assert_int_equal(trace.wrong, 0);

	assert_int_equal(tickmap_unwind_stack_pointer(&unwind, large_steps, 4),
			 0);
	run_published(*state, large, sizeof(large), &unwind);
	assert_int_equal(trace.steps, 6);
	assert_int_equal(trace.wrong, 0);
}

static void layouts_that_cannot_be_are_refused(void **state)
{
	static const struct tickmap_unwind_step same[] = { { 4, 16 },
							   { 4, 24 } };
	static const struct tickmap_unwind_step low = { 4, 7 };
	struct tickmap_unwind_step many[64];
	struct tickmap_unwind unwind;
	size_t count = 0;

	(void)state;
	assert_int_equal(tickmap_unwind_frame_pointer(NULL, 0, 6),
			 TICKMAP_EMIT_E_ARGUMENT);
	assert_int_equal(tickmap_unwind_frame_pointer(&unwind, 5, 8),
			 TICKMAP_EMIT_E_ARGUMENT);
	assert_int_equal(tickmap_unwind_frame_pointer(&unwind, 5, 9), 0);
	assert_int_equal(tickmap_unwind_frame_pointer(&unwind, UINT32_MAX, 0),
			 TICKMAP_EMIT_E_ARGUMENT);
	assert_int_equal(tickmap_unwind_frame_pointer(&unwind, 0, UINT32_MAX),
			 TICKMAP_EMIT_E_ARGUMENT);
	assert_int_equal(tickmap_unwind_stack_pointer(&unwind, NULL, 1),
			 TICKMAP_EMIT_E_ARGUMENT);
	assert_int_equal(tickmap_unwind_stack_pointer(&unwind, same, 2),
			 TICKMAP_EMIT_E_ARGUMENT);
	assert_int_equal(tickmap_unwind_stack_pointer(&unwind, &low, 1),
			 TICKMAP_EMIT_E_ARGUMENT);
	/* As many as the header promises, at the widest encoding. */
	for (uint32_t i = 0; i < 64; i++) {
		many[i].at = i << 16;
		many[i].cfa_offset = 0x1000;
	}
	while (!tickmap_unwind_stack_pointer(&unwind, many, count + 1))
		count++;
	assert_in_range(count, 10, 63);
	assert_int_equal(unwind.frame_size, 0);
}

#define SCRATCH_TEST(name)                                                     \
	cmocka_unit_test_setup_teardown(name, make_scratch, remove_scratch)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCRATCH_TEST(
			a_frame_pointer_function_unwinds_at_each_instruction),
		SCRATCH_TEST(long_functions_unwind_up_to_their_end),
		SCRATCH_TEST(
			a_stack_pointer_function_unwinds_at_each_instruction),
		cmocka_unit_test(layouts_that_cannot_be_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Walks stacks of this very program, whose true callers are known. */
#include "self.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <execinfo.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#ifdef __SANITIZE_ADDRESS__
static const bool sanitized = true;
#else
static const bool sanitized = __has_feature(address_sanitizer);
#endif

enum { STACK_ROOM = 2 << 20 };

static struct self_modules modules;
static struct tickmap_unwinder *unwinder;
static struct capture capture;

static size_t walk(uint64_t ips[SELF_FRAMES], enum tickmap_unwind_end *ret_end)
{
	return tickmap_unwind_walk(unwinder, &modules.space, &capture.input,
				   ips, SELF_FRAMES, ret_end);
}

static void print_stacks(const uint64_t *ips, size_t count)
{
	for (size_t i = 0; i < count || (int)i < capture.reference_count; i++)
		print_message(
			"  %3zu %#16" PRIx64 " %p\n", i, i < count ? ips[i] : 0,
			(int)i < capture.reference_count ? capture.reference[i]
							 : NULL);
}

/* All frames above the leaf are those of glibc's backtrace(). */
static void assert_like_backtrace(void)
{
	uint64_t ips[SELF_FRAMES];
	enum tickmap_unwind_end end;
	size_t count = walk(ips, &end);
	bool equal = end == TICKMAP_END_COMPLETE &&
		     (int)count == capture.reference_count;

	for (size_t i = 1; equal && i < count; i++)
		equal = ips[i] == (uint64_t)capture.reference[i];
	if (!equal) {
		print_stacks(ips, count);
		print_message("  %s\n", tickmap_unwind_end_text(end));
	}
	assert_int_equal(end, TICKMAP_END_COMPLETE);
	assert_true(equal);
}

/* The frames above self_capture and the leaf are those the chain noted. */
static void assert_like_chain(const struct chain *chain, unsigned skip)
{
	uint64_t ips[SELF_FRAMES];
	enum tickmap_unwind_end end;
	size_t count = walk(ips, &end);

	assert_true(count >= chain->depth + skip);
	for (unsigned i = 0; i < chain->depth; i++)
		assert_int_equal(ips[skip + i],
				 chain->expected[chain->depth - 1 - i]);
}

/* Behind a call: it is no tail call, the caller keeps its frame. */
#define STAY() __asm__ volatile("")

static void capture_leaf(void *context)
{
	(void)context;
	self_capture(&capture);
	STAY();
}

static void capture_handler(int signal_number)
{
	(void)signal_number;
	self_capture(&capture);
	STAY();
}

static void raise_leaf(void *context)
{
	(void)context;
	raise(SIGUSR1);
	STAY();
}

static void handle(int number, void (*handler)(int), int flags)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = flags };

	assert_int_equal(sigaction(number, &action, NULL), 0);
}

static void callers_are_those_that_the_functions_saw(void **state)
{
	(void)state;
	struct tickmap_unwind_stats before = tickmap_unwinder_stats(unwinder);
	for (unsigned i = 0; i < 200; i++) {
		struct chain chain = { .seed = i, .leaf = capture_leaf };
		chain_run(&chain, i % 60);
		assert_like_backtrace();
		/* 0 is self_capture, 1 returns to the leaf, 2 to the chain */
		assert_like_chain(&chain, 3);
	}
	struct tickmap_unwind_stats after = tickmap_unwinder_stats(unwinder);
	assert_true(after.frames > before.frames + 5000);
	assert_true(after.cache_hits - before.cache_hits >
		    (after.frames - before.frames) / 2);
}

static void a_signal_handler_is_left_through_its_trampoline(void **state)
{
	(void)state;
	handle(SIGUSR1, capture_handler, 0);
	for (unsigned i = 0; i < 40; i++) {
		struct chain chain = { .seed = i, .leaf = raise_leaf };
		chain_run(&chain, i);
		assert_like_backtrace();
	}
}

static void a_handler_on_its_own_stack_ends_where_the_copy_ends(void **state)
{
	(void)state;
	size_t size = 256 << 10;
	char *room = malloc(size);
	stack_t alternate = { .ss_sp = room, .ss_size = size }, old;
	uint64_t ips[SELF_FRAMES];
	enum tickmap_unwind_end end;

	assert_int_equal(sigaltstack(&alternate, &old), 0);
	handle(SIGUSR1, capture_handler, SA_ONSTACK);
	capture.stack_end = (uint64_t)room + size;
	raise(SIGUSR1);
	capture.stack_end = 0;
	sigaltstack(&old, NULL);
	size_t count = walk(ips, &end);
	/* self_capture, capture_handler, trampoline, raise's inner function */
	assert_true(count >= 4);
	assert_int_equal(end, TICKMAP_END_STACK_SHORT);
	free(room);
}

static void *thread_main(void *context)
{
	struct chain *chain = context;

	chain_run(chain, 20);
	return NULL;
}

static void a_thread_ends_at_its_start(void **state)
{
	(void)state;
	struct chain chain = { .seed = 4711, .leaf = capture_leaf };
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, thread_main, &chain), 0);
	pthread_join(thread, NULL);
	assert_like_backtrace();
	assert_like_chain(&chain, 3);
}

static void tables_without_a_header_give_the_same_frames(void **state)
{
	(void)state;
	static struct self_modules bare = { .without_hdr = true };
	uint64_t ips[SELF_FRAMES], other[SELF_FRAMES];
	enum tickmap_unwind_end end, other_end;
	struct chain chain = { .seed = 9, .leaf = capture_leaf };

	chain_run(&chain, 30);
	size_t count = walk(ips, &end);
	self_modules_load(&bare);
	bare.space.key = 1000;
	size_t other_count =
		tickmap_unwind_walk(unwinder, &bare.space, &capture.input,
				    other, SELF_FRAMES, &other_end);
	self_modules_free(&bare);
	assert_int_equal(end, other_end);
	assert_int_equal(count, other_count);
	assert_memory_equal(ips, other, count * sizeof(ips[0]));
}

static void a_short_copy_gives_the_inner_frames(void **state)
{
	(void)state;
	struct chain chain = { .seed = 3, .leaf = capture_leaf };
	uint64_t ips[SELF_FRAMES], part[SELF_FRAMES];
	enum tickmap_unwind_end end;

	chain_run(&chain, 25);
	size_t whole = capture.input.stack_size;
	size_t count = walk(ips, &end);
	size_t most = 0;
	for (size_t size = 0; size < whole; size += 8) {
		capture.input.stack_size = size;
		size_t n = walk(part, &end);
		if (end == TICKMAP_END_COMPLETE)
			break;
		assert_int_equal(end, TICKMAP_END_STACK_SHORT);
		assert_true(n >= most && n <= count);
		assert_memory_equal(part, ips, n * sizeof(ips[0]));
		most = n;
	}
	assert_int_equal(most + 1, count);
	capture.input.stack_size = whole;
	assert_int_equal(tickmap_unwind_walk(unwinder, &modules.space,
					     &capture.input, part, 7, &end),
			 7);
	assert_int_equal(end, TICKMAP_END_TOO_DEEP);
	assert_int_equal(tickmap_unwind_walk(unwinder, &modules.space,
					     &capture.input, part, count, &end),
			 count);
	assert_int_equal(end, TICKMAP_END_COMPLETE);
}

static void a_pc_outside_all_code_is_one_frame(void **state)
{
	(void)state;
	uint64_t ips[SELF_FRAMES];
	enum tickmap_unwind_end end;

	capture_leaf(NULL);
	capture.input.regs[TICKMAP_RIP] = 0x1234;
	assert_int_equal(walk(ips, &end), 1);
	assert_int_equal(ips[0], 0x1234);
	assert_int_equal(end, TICKMAP_END_NO_CODE);
}

/* ---- Single-stepping: every instruction of much of libc is a leaf ---- */

static struct {
	uint64_t stack_end;
	void *tail[SELF_FRAMES]; /* callers of the stepping function */
	size_t tail_count;
	size_t steps, compared, wrong;
	uint64_t first_wrong;
} stepping;

enum { TRAP_FLAG = 0x100, STEPS_MAX = 60000 };

static void regs_from_context(const ucontext_t *context)
{
	static const int from[TICKMAP_REGS] = {
		REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
		REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
		REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP,
	};

	for (unsigned i = 0; i < TICKMAP_REGS; i++)
		capture.input.regs[i] =
			(uint64_t)context->uc_mcontext.gregs[from[i]];
}

/* What backtrace() says above the handler's own frames, or NULL. */
static void **interrupted(uint64_t pc, size_t *ret_count)
{
	for (int i = 0; i < capture.reference_count; i++) {
		if ((uint64_t)capture.reference[i] == pc) {
			*ret_count = (size_t)(capture.reference_count - i);
			return &capture.reference[i];
		}
	}
	return NULL;
}

static bool step_is_right(void)
{
	uint64_t ips[SELF_FRAMES];
	enum tickmap_unwind_end end;
	size_t count = walk(ips, &end), want_count;
	void **want = interrupted(capture.input.regs[TICKMAP_RIP], &want_count);

	if (end != TICKMAP_END_COMPLETE || count <= stepping.tail_count ||
	    memcmp(&ips[count - stepping.tail_count], stepping.tail,
		   stepping.tail_count * sizeof(ips[0])))
		return false;
	/* backtrace() ends early where it meets code without a table. */
	if (!want ||
	    want[want_count - 1] != stepping.tail[stepping.tail_count - 1])
		return true;
	stepping.compared++;
	return want_count == count &&
	       !memcmp(ips, want, count * sizeof(ips[0]));
}

static void on_step(int number, siginfo_t *info, void *context)
{
	ucontext_t *interrupted_at = context;

	(void)number;
	(void)info;
	regs_from_context(interrupted_at);
	self_copy_stack(&capture, capture.input.regs[TICKMAP_RSP],
			stepping.stack_end);
	capture.reference_count = backtrace(capture.reference, SELF_FRAMES);
	stepping.steps++;
	if (!step_is_right()) {
		if (!stepping.wrong++)
			stepping.first_wrong = capture.input.regs[TICKMAP_RIP];
	}
	if (stepping.steps >= STEPS_MAX)
		interrupted_at->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
}

static void set_trap_flag(bool on)
{
	if (on)
		__asm__ volatile("leaq -128(%%rsp), %%rsp\n\t"
				 "pushfq\n\torq $0x100, (%%rsp)\n\tpopfq\n\t"
				 "leaq 128(%%rsp), %%rsp" ::
					 : "cc", "memory");
	else
		__asm__ volatile("leaq -128(%%rsp), %%rsp\n\t"
				 "pushfq\n\tandq $~0x100, (%%rsp)\n\tpopfq\n\t"
				 "leaq 128(%%rsp), %%rsp" ::
					 : "cc", "memory");
}

__attribute__((noinline)) static void step_through(unsigned rounds)
{
	capture_leaf(NULL);
	/* 0 self_capture, 1 capture_leaf, 2 this function */
	stepping.tail_count = (size_t)capture.reference_count - 3;
	memcpy(stepping.tail, &capture.reference[3],
	       stepping.tail_count * sizeof(stepping.tail[0]));
	set_trap_flag(true);
	chain_work(rounds);
	set_trap_flag(false);
}

static void every_instruction_is_a_leaf_with_the_right_callers(void **state)
{
	(void)state;
	if (sanitized) {
		print_message("skipped: a sanitizer minds the copying\n");
		skip();
	}
	size_t size = 512 << 10;
	char *room = malloc(size);
	stack_t alternate = { .ss_sp = room, .ss_size = size }, old;
	struct sigaction action = { .sa_sigaction = on_step,
				    .sa_flags = SA_ONSTACK | SA_SIGINFO };

	stepping.stack_end = self_stack_end();
	assert_int_equal(sigaltstack(&alternate, &old), 0);
	assert_int_equal(sigaction(SIGTRAP, &action, NULL), 0);
	step_through(2);
	sigaltstack(&old, NULL);
	free(room);
	if (!stepping.steps) {
		print_message("skipped: this machine does not single-step\n");
		skip();
	}
	print_message("%zu instructions, %zu wrong (first at %#" PRIx64
		      "), %zu compared frame by frame\n",
		      stepping.steps, stepping.wrong, stepping.first_wrong,
		      stepping.compared);
	assert_true(stepping.steps > 5000);
	assert_int_equal(stepping.wrong, 0);
}

/* ---- Generated code ---- */

/* A trampoline as CPython 3.13 copies it: call through the first argument. */
static const uint8_t trampoline[] = {
	0x48, 0x83, 0xec, 0x08, /* sub $8, %rsp */
	0xff, 0xd7,		/* call *%rdi */
	0x48, 0x83, 0xc4, 0x08, /* add $8, %rsp */
	0xc3,			/* ret */
};

/*
 * Its tables as CPython writes them (CIE 24 bytes, FDE 24, header 20; the frame
 * lies behind the code rounded up to 8 bytes).
 */
static const uint8_t trampoline_tables[] = {
	20,   0,    0,	  0,	0,    0,    0,	  0,	1,
	'z',  'R',  0,	  1,	0x78, 16,   1,	  0x1b, /* CIE */
	0x0c, 7,    8,	  0x90, 1,    0,    0, /* cfa = rsp + 8, ra at cfa - 8
						*/
	20,   0,    0,	  0,	28,   0,    0,	  0,	0xd0,
	0xff, 0xff, 0xff, 11,	0,    0,    0,	  0,	0x44,
	0x0e, 16,   0x46, 0x0e, 8,    0, /* +4: 16, +6: 8 */
	1,    0x1b, 0x03, 0x3b, 0xcc, 0xff, 0xff, 0xff, 1,
	0,    0,    0, /* header */
	0xc0, 0xff, 0xff, 0xff, 0xe8, 0xff, 0xff, 0xff,
};
enum { TRAMPOLINE_FRAME = 48, TRAMPOLINE_CODE = 16 };

/* The same with a frame record and no table, as V8 does. */
static const uint8_t framed[] = {
	0x55,		  /* push %rbp */
	0x48, 0x89, 0xe5, /* mov %rsp, %rbp */
	0xff, 0xd7,	  /* call *%rdi */
	0x5d,		  /* pop %rbp */
	0xc3,		  /* ret */
};

static void *make_code(const uint8_t *code, size_t size)
{
	uint8_t *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(memory, MAP_FAILED);
	memcpy(memory, code, size);
	assert_int_equal(mprotect(memory, 4096, PROT_READ | PROT_EXEC), 0);
	return memory;
}

static void capture_without_argument(void)
{
	self_capture(&capture);
	STAY();
}

typedef void (*generated)(void (*callee)(void));

/* backtrace() stops at the generated frame; the noted callers go on. */
static void call_generated(void *code)
{
	generated function;

	memcpy(&function, &code, sizeof(function));
	function(capture_without_argument);
	STAY();
}

static void assert_through_generated(const uint8_t *code, size_t size)
{
	struct chain chain = { .seed = 12,
			       .leaf = call_generated,
			       .context = (void *)(uintptr_t)code };
	uint64_t ips[SELF_FRAMES];
	enum tickmap_unwind_end end;

	chain_run(&chain, 12);
	size_t count = walk(ips, &end);
	if (end != TICKMAP_END_COMPLETE)
		print_stacks(ips, count);
	assert_int_equal(end, TICKMAP_END_COMPLETE);
	/* self_capture, capture_without_argument, the code, call_generated */
	assert_true(count > 4);
	assert_true(ips[2] > (uint64_t)code && ips[2] < (uint64_t)code + size);
	assert_like_chain(&chain, 5);
}

static void generated_code_is_walked_by_its_bare_table(void **state)
{
	(void)state;
	for (int with_hdr = 0; with_hdr < 2; with_hdr++) {
		uint8_t *code = make_code(trampoline, sizeof(trampoline));
		struct self_module *module =
			self_modules_add(&modules, code, sizeof(trampoline));
		module->table = true;
		module->cfi = (struct tickmap_cfi) {
			.eh_frame = trampoline_tables,
			.eh_frame_size = TRAMPOLINE_FRAME,
			.eh_frame_at = (uint64_t)code + TRAMPOLINE_CODE,
		};
		/* pc_begin as CPython counts it: from its own field back. */
		if (with_hdr) {
			module->cfi.hdr = trampoline_tables + TRAMPOLINE_FRAME;
			module->cfi.hdr_size = 20;
			module->cfi.hdr_at = (uint64_t)code + TRAMPOLINE_CODE +
					     TRAMPOLINE_FRAME;
		}
		tickmap_cfi_init(&module->cfi);
		assert_int_equal(module->cfi.sorted != NULL, with_hdr);
		assert_through_generated(code, sizeof(trampoline));
		assert_null(module->cfi.index);
		modules.count--;
		munmap(code, 4096);
	}
}

static void generated_code_is_walked_by_its_frame_pointer(void **state)
{
	(void)state;
	uint8_t *code = make_code(framed, sizeof(framed));
	struct self_module *module =
		self_modules_add(&modules, code, sizeof(framed));
	uint64_t ips[SELF_FRAMES];
	enum tickmap_unwind_end end;

	module->frame_pointer = true;
	assert_through_generated(code, sizeof(framed));

	/* Not allowed: the frame is the last one. */
	module->frame_pointer = false;
	modules.space.key++;
	assert_int_equal(walk(ips, &end), 3);
	assert_int_equal(end, TICKMAP_END_NO_RULE);
	modules.count--;
	munmap(code, 4096);
}

static int setup(void **state)
{
	(void)state;
	unwinder = tickmap_unwinder_new();
	capture.room = STACK_ROOM;
	capture.stack = aligned_alloc(64, STACK_ROOM);
	self_modules_load(&modules);
	return !unwinder || !capture.stack;
}

static int teardown(void **state)
{
	(void)state;
	self_modules_free(&modules);
	tickmap_unwinder_free(unwinder);
	free(capture.stack);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(callers_are_those_that_the_functions_saw),
		cmocka_unit_test(
			a_signal_handler_is_left_through_its_trampoline),
		cmocka_unit_test(
			a_handler_on_its_own_stack_ends_where_the_copy_ends),
		cmocka_unit_test(a_thread_ends_at_its_start),
		cmocka_unit_test(tables_without_a_header_give_the_same_frames),
		cmocka_unit_test(a_short_copy_gives_the_inner_frames),
		cmocka_unit_test(a_pc_outside_all_code_is_one_frame),
		cmocka_unit_test(
			every_instruction_is_a_leaf_with_the_right_callers),
		cmocka_unit_test(generated_code_is_walked_by_its_bare_table),
		cmocka_unit_test(generated_code_is_walked_by_its_frame_pointer),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}

/* SPDX-License-Identifier: MIT */
/*
 * Runs machine code that it has published, for perf_test.py: a function with a
 * frame pointer, one without, and two whose bytes are the same. Prints where
 * the dump is. perf_target DIR LOOPS [twins]: with twins, these two have one
 * name as well, and the tails that tell them apart.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <tickmap/emit.h>

#define DEC_RDI_JNZ 0x48, 0xff, 0xcf, 0x75, 0xfb

static const uint8_t with_fp[] = { 0x55,	0x48, 0x89, 0xe5,
				   DEC_RDI_JNZ, 0x5d, 0xc3 };
static const uint8_t without_fp[] = { 0x48, 0x83, 0xec, 0x18, DEC_RDI_JNZ,
				      0x48, 0x83, 0xc4, 0x18, 0xc3 };
static const struct tickmap_unwind_step steps[] = { { 4, 32 }, { 13, 8 } };
static const struct tickmap_line lines[] = { { 0, 10, 0, NULL },
					     { 4, 20, 0, NULL } };

typedef void (*spin_function)(uint64_t loops);

static struct tickmap_emit *emit;
static uint8_t *arena;
static size_t used;

static spin_function publish(const char *name, const uint8_t *bytes,
			     size_t size, const struct tickmap_unwind *unwind)
{
	struct tickmap_code code = TICKMAP_CODE_INIT;
	uint8_t *at = arena + used;
	spin_function function;

	memcpy(at, bytes, size);
	code.addr = (uintptr_t)at;
	code.bytes = at;
	code.code_size = size;
	code.name = name;
	code.file = "/nowhere/target.toy";
	code.lines = lines;
	code.line_count = 2;
	code.unwind = unwind;
	code.mapped_size = tickmap_emit_mapped_size(unwind);
	if (tickmap_emit_code(emit, &code))
		exit(1);
	used += tickmap_emit_spacing(size + TICKMAP_EMIT_TAIL_SIZE, unwind);
	memcpy(&function, &at, sizeof(function));
	return function;
}

__attribute__((noinline)) static void spin_here(spin_function function,
						uint64_t loops)
{
	function(loops);
	/* Keeps this frame on the stack: no tail call. */
	__asm__ volatile("" ::: "memory");
}

int main(int argc, char **argv)
{
	struct tickmap_emit_options options = TICKMAP_EMIT_OPTIONS_INIT;
	struct tickmap_unwind unwind_fp, unwind_sp;
	spin_function functions[4];
	uint64_t loops;
	bool twins = argc == 4;

	if (argc < 3)
		return 2;
	loops = strtoull(argv[2], NULL, 10);
	options.dir = argv[1];
	options.flags = twins ? TICKMAP_EMIT_UNIQUE_TAIL : 0;
	arena = mmap(NULL, 65536, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (arena == MAP_FAILED || tickmap_emit_open(&options, &emit) ||
	    tickmap_unwind_frame_pointer(&unwind_fp, 0, 9) ||
	    tickmap_unwind_stack_pointer(&unwind_sp, steps, 2))
		return 1;
	puts(tickmap_emit_path(emit, TICKMAP_EMIT_JITDUMP));
	fflush(stdout);
	functions[0] =
		publish("toy_with_fp", with_fp, sizeof(with_fp), &unwind_fp);
	functions[1] = publish("toy_without_fp", without_fp, sizeof(without_fp),
			       &unwind_sp);
	functions[2] =
		publish("toy_twin_a", with_fp, sizeof(with_fp), &unwind_fp);
	functions[3] = publish(twins ? "toy_twin_a" : "toy_twin_b", with_fp,
			       sizeof(with_fp), &unwind_fp);
	if (mprotect(arena, 65536, PROT_READ | PROT_EXEC))
		return 1;
	for (size_t i = 0; i < 4; i++)
		spin_here(functions[i], loops);
	return tickmap_emit_close(emit) ? 1 : 0;
}

/* SPDX-License-Identifier: MIT */
/* What is in the files. */
#include "support.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define BOTH (TICKMAP_EMIT_JITDUMP | TICKMAP_EMIT_PERF_MAP)

static uint64_t mono_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void the_header_is_in_the_records_clock(void **state)
{
	struct tickmap_emit *emit;
	struct strict_dump dump;
	uint64_t before = mono_ns();

	assert_int_equal(open_emit(*state, TICKMAP_EMIT_JITDUMP, 0, &emit), 0);
	uint64_t after = mono_ns();

	read_dump(dump_in(*state), &dump);
	assert_true(dump.ns >= before && dump.ns <= after);
	assert_int_equal(dump.pid, getpid());
	assert_int_equal(dump.machine, EM_X86_64);
	assert_int_equal(dump.code_count, 0);
	assert_false(dump.closed);
	strict_free_dump(&dump);
	assert_int_equal(tickmap_emit_close(emit), 0);
}

static void the_machine_can_be_another(void **state)
{
	struct tickmap_emit_options options = TICKMAP_EMIT_OPTIONS_INIT;
	struct tickmap_emit *emit;
	struct strict_dump dump;

	options.dir = *state;
	options.elf_machine = EM_RISCV;
	assert_int_equal(tickmap_emit_open(&options, &emit), 0);
	read_dump(tickmap_emit_path(emit, TICKMAP_EMIT_JITDUMP), &dump);
	assert_int_equal(dump.machine, EM_RISCV);
	strict_free_dump(&dump);
	tickmap_emit_close(emit);
}

static void a_function_reads_back_as_published(void **state)
{
	struct tickmap_emit *emit;
	struct strict_dump dump;
	struct strict_map map;
	struct tickmap_code code = small_code("plain");
	uint64_t before = mono_ns();

	assert_int_equal(open_emit(*state, BOTH, 0, &emit), 0);
	assert_string_equal(tickmap_emit_path(emit, TICKMAP_EMIT_JITDUMP),
			    dump_in(*state));
	assert_string_equal(tickmap_emit_path(emit, TICKMAP_EMIT_PERF_MAP),
			    map_in(*state));
	assert_int_equal(tickmap_emit_state(emit), 0);
	code.addr = UINT64_C(0xfedcba9876543210);
	assert_int_equal(tickmap_emit_code(emit, &code), 0);
	assert_int_equal(tickmap_emit_close(emit), 0);

	read_dump(dump_in(*state), &dump);
	assert_int_equal(dump.code_count, 1);
	assert_true(dump.codes[0].ns >= before);
	assert_true(dump.codes[0].ns <= mono_ns());
	assert_int_equal(dump.codes[0].pid, getpid());
	assert_int_equal(dump.codes[0].tid, syscall(SYS_gettid));
	assert_true(dump.codes[0].addr == code.addr);
	assert_int_equal(dump.codes[0].size, code.code_size);
	assert_memory_equal(dump.codes[0].bytes, code.bytes, code.code_size);
	assert_string_equal(dump.codes[0].name, "plain");
	assert_null(dump.codes[0].lines);
	assert_null(dump.codes[0].unwinding);
	assert_true(dump.closed);
	strict_free_dump(&dump);

	read_map(map_in(*state), &map);
	assert_int_equal(map.count, 1);
	assert_true(map.lines[0].addr == code.addr);
	assert_int_equal(map.lines[0].size, code.code_size);
	assert_string_equal(map.lines[0].name, "plain");
	strict_free_map(&map);
}

static void lines_reach_to_the_end_of_the_code(void **state)
{
	static const struct tickmap_line lines[] = {
		{ 0, 10, 3, NULL },
		{ 4, 12, 0, "b.py" },
		{ 6, 11, UINT32_MAX, "\xff" },
	};
	struct tickmap_emit *emit;
	struct strict_dump dump;
	struct tickmap_code code = small_code("lined");
	const struct strict_line *got;

	assert_int_equal(open_emit(*state, BOTH, 0, &emit), 0);
	code.lines = lines;
	code.line_count = 3;
	code.file = "a\n.py";
	assert_int_equal(tickmap_emit_code(emit, &code), 0);
	code.lines = &lines[1];
	code.line_count = 1;
	code.code_size = 4;
	assert_int_equal(tickmap_emit_code(emit, &code), 0);
	code.lines = &lines[0];
	code.file = NULL;
	assert_int_equal(tickmap_emit_code(emit, &code), 0);
	assert_int_equal(tickmap_emit_close(emit), 0);

	read_dump(dump_in(*state), &dump);
	assert_int_equal(dump.code_count, 3);
	got = dump.codes[0].lines;
	assert_int_equal(dump.codes[0].line_count, 4);
	assert_int_equal(got[0].addr, code.addr);
	assert_int_equal(got[0].line, 10);
	assert_int_equal(got[0].column, 3);
	assert_string_equal(got[0].file, "a?.py");
	assert_int_equal(got[1].addr, code.addr + 4);
	assert_string_equal(got[1].file, "b.py");
	/* FF 00 would mean "as before" */
	assert_string_equal(got[2].file, "?");
	assert_true(got[2].column == UINT32_MAX);
	assert_int_equal(got[3].addr, code.addr + 9);
	assert_int_equal(got[3].line, 11);
	/* The last entry is at the end already. */
	assert_int_equal(dump.codes[1].line_count, 1);
	assert_string_equal(dump.codes[2].lines[0].file, "?");
	strict_free_dump(&dump);
}

#define MANY 100000

static void a_table_of_many_lines_reads_back(void **state)
{
	struct tickmap_line *lines = calloc(MANY, sizeof(*lines));
	struct tickmap_code code = small_code("lined");
	char file[100] = "/a/path/as/long/as/those/of/real/sources/are";
	struct tickmap_emit *emit;
	struct strict_dump dump;

	assert_non_null(lines);
	memset(file + strlen(file), 'x', sizeof(file) - 1 - strlen(file));
	for (uint32_t i = 0; i < MANY; i++)
		lines[i] = (struct tickmap_line) { i, i + 1, 2, file };
	code.lines = lines;
	code.line_count = MANY;
	code.bytes = NULL;
	code.code_size = MANY + 1;
	assert_int_equal(open_emit(*state, BOTH, 0, &emit), 0);
	assert_int_equal(tickmap_emit_code(emit, &code), 0);
	assert_int_equal(tickmap_emit_close(emit), 0);
	read_dump(dump_in(*state), &dump);
	assert_int_equal(dump.codes[0].line_count, MANY + 1);
	for (uint32_t i = 0; i <= MANY; i++) {
		const struct strict_line *got = &dump.codes[0].lines[i];

		assert_int_equal(got->addr - code.addr, i + (i == MANY));
		assert_int_equal(got->line, i + (i < MANY));
		assert_string_equal(got->file, file);
	}
	strict_free_dump(&dump);
	free(lines);
}

static int32_t i32(const uint8_t *at)
{
	int32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

/* As the image has it: code at 0, the unwinding bytes behind it. */
static void assert_self_contained(const struct strict_code *code)
{
	int64_t base = (int64_t)((code->size + 7) & ~UINT64_C(7));
	int64_t frame_size = (int64_t)code->unwinding_size - 20;
	const uint8_t *frame = code->unwinding;
	const uint8_t *hdr = frame + frame_size;
	int64_t cie_size = i32(frame) + 4;
	const uint8_t *fde = frame + cie_size;
	int64_t hdr_at = base + frame_size;

	assert_int_equal(code->eh_frame_hdr_size, 20);
	assert_memory_equal(frame + 9, "zR", 3);
	assert_int_equal(i32(fde) + 4, frame_size - cie_size);
	assert_int_equal(i32(fde + 4), cie_size + 4);
	/* pc-begin is relative to itself and says 0, the code */
	assert_int_equal(base + cie_size + 8 + i32(fde + 8), 0);
	assert_int_equal(i32(fde + 12), code->size);
	assert_memory_equal(hdr, "\x01\x1b\x03\x3b", 4);
	assert_int_equal(hdr_at + 4 + i32(hdr + 4), base);
	assert_int_equal(i32(hdr + 8), 1);
	assert_int_equal(hdr_at + i32(hdr + 12), 0);
	assert_int_equal(hdr_at + i32(hdr + 16), base + cie_size);
}

static void unwinding_bytes_are_self_contained_at_every_code_size(void **state)
{
	uint8_t bytes[40] = { 0 };
	struct tickmap_emit *emit;
	struct tickmap_unwind unwind;
	struct strict_dump dump;
	struct tickmap_code code = small_code("unwound");

	assert_int_equal(open_emit(*state, TICKMAP_EMIT_JITDUMP, 0, &emit), 0);
	code.bytes = bytes;
	code.unwind = &unwind;
	for (code.code_size = 0; code.code_size <= 40; code.code_size++) {
		uint32_t leave_at = (uint32_t)code.code_size * 5000 + 4;

		assert_int_equal(
			tickmap_unwind_frame_pointer(&unwind, 0, leave_at), 0);
		code.mapped_size = code.code_size % 2
					   ? tickmap_emit_mapped_size(&unwind)
					   : 0;
		assert_int_equal(tickmap_emit_code(emit, &code), 0);
	}
	assert_int_equal(tickmap_emit_close(emit), 0);

	read_dump(dump_in(*state), &dump);
	/* The first one, of no bytes, is left out. */
	assert_int_equal(dump.code_count, 40);
	for (size_t i = 0; i < 40; i++) {
		assert_int_equal(dump.codes[i].size, i + 1);
		assert_non_null(dump.codes[i].unwinding);
		assert_self_contained(&dump.codes[i]);
		assert_int_equal(dump.codes[i].mapped_size,
				 i % 2 ? 0
				       : (dump.codes[i].unwinding_size + 15) /
						 16 * 16);
	}
	strict_free_dump(&dump);
}

static void equal_functions_have_unequal_images_and_equal_code(void **state)
{
	struct tickmap_emit *emit;
	struct tickmap_unwind unwind;
	struct strict_dump dump;
	struct tickmap_code code = small_code("twin");

	assert_int_equal(open_emit(*state, TICKMAP_EMIT_JITDUMP, 0, &emit), 0);
	assert_int_equal(tickmap_unwind_frame_pointer(&unwind, 0, 5), 0);
	code.unwind = &unwind;
	assert_int_equal(tickmap_emit_code(emit, &code), 0);
	assert_int_equal(tickmap_emit_code(emit, &code), 0);
	assert_int_equal(tickmap_emit_close(emit), 0);

	read_dump(dump_in(*state), &dump);
	assert_memory_equal(dump.codes[0].bytes, code.bytes, code.code_size);
	assert_memory_equal(dump.codes[1].bytes, code.bytes, code.code_size);
	assert_int_equal(dump.codes[0].unwinding_size,
			 dump.codes[1].unwinding_size);
	assert_memory_not_equal(dump.codes[0].unwinding,
				dump.codes[1].unwinding,
				dump.codes[0].unwinding_size);
	strict_free_dump(&dump);
}

static void indices_go_on_behind_the_callers(void **state)
{
	static const uint64_t given[] = { 0, 0, 40, 0, 7, 0 };
	static const uint64_t expected[] = { 1, 2, 40, 41, 7, 42 };
	struct tickmap_emit *emit;
	struct strict_dump dump;

	assert_int_equal(open_emit(*state, TICKMAP_EMIT_JITDUMP, 0, &emit), 0);
	for (size_t i = 0; i < 6; i++) {
		struct tickmap_code code = small_code("indexed");

		code.index = given[i];
		assert_int_equal(tickmap_emit_code(emit, &code), 0);
	}
	assert_int_equal(tickmap_emit_close(emit), 0);
	read_dump(dump_in(*state), &dump);
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(dump.codes[i].index, expected[i]);
	strict_free_dump(&dump);
}

/* Nothing is above the last one, and a 0 must never be written. */
static void the_last_index_is_refused(void **state)
{
	struct tickmap_code code = small_code("last");
	struct tickmap_emit *emit;
	struct strict_dump dump;

	assert_int_equal(open_emit(*state, TICKMAP_EMIT_JITDUMP, 0, &emit), 0);
	code.index = UINT64_MAX;
	assert_int_equal(tickmap_emit_code(emit, &code),
			 TICKMAP_EMIT_E_ARGUMENT);
	code.index--;
	assert_int_equal(tickmap_emit_code(emit, &code), 0);
	code.index = 0;
	for (int i = 0; i < 3; i++)
		assert_int_equal(tickmap_emit_code(emit, &code),
				 TICKMAP_EMIT_E_ARGUMENT);
	code.index = 5;
	assert_int_equal(tickmap_emit_code(emit, &code), 0);
	assert_int_equal(tickmap_emit_close(emit), 0);
	read_dump(dump_in(*state), &dump);
	assert_int_equal(dump.code_count, 2);
	assert_true(dump.codes[0].index == UINT64_MAX - 1);
	strict_free_dump(&dump);
}

static void code_ends_within_the_addresses(void **state)
{
	struct tickmap_code code = small_code("top");
	struct tickmap_emit *emit;

	for (uint32_t tail = 0; tail <= TICKMAP_EMIT_TAIL_SIZE;
	     tail += TICKMAP_EMIT_TAIL_SIZE) {
		uint32_t flags = tail ? TICKMAP_EMIT_UNIQUE_TAIL : 0;

		assert_int_equal(
			open_emit(*state, TICKMAP_EMIT_JITDUMP, flags, &emit),
			0);
		code.addr = UINT64_MAX - code.code_size - tail;
		assert_int_equal(tickmap_emit_code(emit, &code), 0);
		code.addr++;
		assert_int_equal(tickmap_emit_code(emit, &code),
				 TICKMAP_EMIT_E_ARGUMENT);
		assert_int_equal(tickmap_emit_close(emit), 0);
	}
}

static void a_move_names_its_code(void **state)
{
	struct tickmap_emit *emit;
	struct strict_dump dump;
	struct strict_map map;
	struct tickmap_code code = small_code("mover");

	code.index = 5;
	assert_int_equal(open_emit(*state, BOTH, 0, &emit), 0);
	assert_int_equal(tickmap_emit_code(emit, &code), 0);
	assert_int_equal(tickmap_emit_move(emit, 0x1000, 0x2000, 9, 5), 0);
	assert_int_equal(tickmap_emit_move(emit, 0x2000, UINT64_MAX, 9, 5),
			 TICKMAP_EMIT_E_ARGUMENT);
	assert_int_equal(tickmap_emit_move(emit, 0x2000, 0x3000, 9, 0),
			 TICKMAP_EMIT_E_ARGUMENT);
	assert_int_equal(tickmap_emit_close(emit), 0);

	read_dump(dump_in(*state), &dump);
	assert_int_equal(dump.move_count, 1);
	assert_int_equal(dump.moves[0].old_addr, 0x1000);
	assert_int_equal(dump.moves[0].new_addr, 0x2000);
	assert_int_equal(dump.moves[0].size, 9);
	assert_int_equal(dump.moves[0].index, 5);
	strict_free_dump(&dump);
	read_map(map_in(*state), &map);
	assert_int_equal(map.count, 1);
	strict_free_map(&map);
}

static void names_of_any_bytes_stay_within_their_record(void **state)
{
	struct tickmap_emit *emit;
	struct strict_dump dump;
	struct strict_map map;
	char expected[257];
	char all[256];

	assert_int_equal(open_emit(*state, BOTH, 0, &emit), 0);
	for (size_t i = 0; i < 256; i++) {
		all[i] = (char)i;
		expected[i] = i < 32 || i == 127 ? '?' : (char)i;
	}
	expected[256] = '\0';
	/* each byte alone, all bytes, a forged line, UTF-8, nothing, a prefix
	 */
	for (size_t i = 0; i < 256; i++) {
		struct tickmap_code code = small_code(&all[i]);

		code.name_length = 1;
		assert_int_equal(tickmap_emit_code(emit, &code), 0);
	}
	struct tickmap_code code = small_code(all);

	code.name_length = sizeof(all);
	assert_int_equal(tickmap_emit_code(emit, &code), 0);
	code = small_code("a\nffff 10 forged\r\n");
	assert_int_equal(tickmap_emit_code(emit, &code), 0);
	code = small_code("λ→函数");
	assert_int_equal(tickmap_emit_code(emit, &code), 0);
	code = small_code("");
	assert_int_equal(tickmap_emit_code(emit, &code), 0);
	code = small_code("prefix");
	code.name_length = 3;
	assert_int_equal(tickmap_emit_code(emit, &code), 0);
	assert_int_equal(tickmap_emit_close(emit), 0);

	read_dump(dump_in(*state), &dump);
	read_map(map_in(*state), &map);
	assert_int_equal(dump.code_count, 261);
	assert_int_equal(map.count, 261);
	for (size_t i = 0; i < 261; i++)
		assert_string_equal(dump.codes[i].name, map.lines[i].name);
	for (size_t i = 0; i < 256; i++) {
		assert_int_equal(dump.codes[i].name[0], expected[i]);
		assert_int_equal(dump.codes[i].name[1], 0);
	}
	assert_string_equal(dump.codes[256].name, expected);
	assert_string_equal(dump.codes[257].name, "a?ffff 10 forged??");
	assert_string_equal(dump.codes[258].name, "λ→函数");
	assert_string_equal(dump.codes[259].name, "?");
	assert_string_equal(dump.codes[260].name, "pre");
	strict_free_dump(&dump);
	strict_free_map(&map);
}

static void code_without_bytes_is_zeros(void **state)
{
	struct tickmap_emit *emit;
	struct strict_dump dump;
	struct tickmap_code code = small_code("hidden");
	uint8_t zeros[100] = { 0 };

	assert_int_equal(open_emit(*state, TICKMAP_EMIT_JITDUMP, 0, &emit), 0);
	code.bytes = NULL;
	code.code_size = 100;
	assert_int_equal(tickmap_emit_code(emit, &code), 0);
	code.code_size = UINT64_C(64) << 20;
	assert_int_equal(tickmap_emit_code(emit, &code),
			 TICKMAP_EMIT_E_TOO_LARGE);
	assert_int_equal(tickmap_emit_close(emit), 0);
	read_dump(dump_in(*state), &dump);
	assert_int_equal(dump.code_count, 1);
	assert_memory_equal(dump.codes[0].bytes, zeros, 100);
	strict_free_dump(&dump);
}

static void what_is_too_large_leaves_no_trace_and_does_not_latch(void **state)
{
	struct tickmap_emit *emit;
	struct strict_dump dump;
	size_t length = (size_t)32 << 20;
	char *name = malloc(length);
	uint8_t *large = calloc(1, length);
	struct tickmap_code code;

	assert_non_null(name);
	assert_non_null(large);
	memset(name, 'n', length);
	code = small_code(name);
	code.name_length = length;
	assert_int_equal(open_emit(*state, BOTH, 0, &emit), 0);
	assert_int_equal(tickmap_emit_code(emit, &code),
			 TICKMAP_EMIT_E_TOO_LARGE);
	code = small_code("huge");
	code.code_size = UINT64_C(1) << 32;
	assert_int_equal(tickmap_emit_code(emit, &code),
			 TICKMAP_EMIT_E_TOO_LARGE);
	/* Large code and a long name are fine. */
	code = small_code(name);
	code.name_length = (size_t)10 << 20;
	code.bytes = large;
	code.code_size = length;
	assert_int_equal(tickmap_emit_code(emit, &code), 0);
	assert_int_equal(tickmap_emit_errno(emit), 0);
	assert_int_equal(tickmap_emit_close(emit), 0);

	read_dump(dump_in(*state), &dump);
	assert_int_equal(dump.code_count, 1);
	assert_int_equal(strlen(dump.codes[0].name), 10 << 20);
	assert_int_equal(dump.codes[0].size, length);
	strict_free_dump(&dump);
	free(name);
	free(large);
}

static uint64_t stepping_clock(void *context)
{
	static const uint64_t times[] = { 500, 600, 550, 700, 0, 800 };
	size_t *next = context;

	return times[(*next)++ % 6];
}

static void a_clock_that_steps_back_stands_still(void **state)
{
	struct tickmap_emit_options options = TICKMAP_EMIT_OPTIONS_INIT;
	struct tickmap_emit *emit;
	struct strict_dump dump;
	size_t next = 0;

	options.dir = *state;
	options.clock = stepping_clock;
	options.clock_context = &next;
	assert_int_equal(tickmap_emit_open(&options, &emit), 0);
	for (size_t i = 0; i < 5; i++) {
		struct tickmap_code code = small_code("timed");

		assert_int_equal(tickmap_emit_code(emit, &code), 0);
	}
	read_dump(dump_in(*state), &dump);
	assert_int_equal(dump.ns, 500);
	assert_int_equal(dump.codes[0].ns, 600);
	assert_int_equal(dump.codes[1].ns, 600);
	assert_int_equal(dump.codes[2].ns, 700);
	assert_int_equal(dump.codes[3].ns, 700);
	assert_int_equal(dump.codes[4].ns, 800);
	strict_free_dump(&dump);
	tickmap_emit_close(emit);
}

static void codes_that_contradict_the_header_are_refused(void **state)
{
	static const struct tickmap_line unsorted[] = { { 4, 1, 0, "f" },
							{ 3, 1, 0, "f" } };
	static const struct tickmap_line line_zero = { 0, 0, 0, "f" };
	static const struct tickmap_line outside = { 10, 1, 0, "f" };
	struct tickmap_unwind unwind = { .frame_size = 129, .pc_begin = 32 };
	struct tickmap_emit *emit;
	struct strict_dump dump;
	struct tickmap_code bad[10];
	size_t count = 0;

	bad[count++] = (struct tickmap_code)TICKMAP_CODE_INIT;
	bad[count] = small_code("size");
	bad[count++].size = 8;
	bad[count] = small_code("wraps");
	bad[count++].addr = UINT64_MAX;
	bad[count] = small_code("no lines");
	bad[count++].line_count = 1;
	bad[count] = small_code("unsorted");
	bad[count].lines = unsorted;
	bad[count++].line_count = 2;
	bad[count] = small_code("line 0");
	bad[count].lines = &line_zero;
	bad[count++].line_count = 1;
	bad[count] = small_code("outside");
	bad[count].lines = &outside;
	bad[count++].line_count = 1;
	bad[count] = small_code("unwind");
	bad[count++].unwind = &unwind;

	assert_int_equal(open_emit(*state, TICKMAP_EMIT_JITDUMP, 0, &emit), 0);
	assert_int_equal(tickmap_emit_code(emit, NULL),
			 TICKMAP_EMIT_E_ARGUMENT);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(tickmap_emit_code(emit, &bad[i]),
				 TICKMAP_EMIT_E_ARGUMENT);
	/* every pc-begin that does not lie in the frame */
	unwind.frame_size = 60;
	for (uint32_t at = 0; at < 200; at++) {
		unwind.pc_begin = at;
		assert_int_equal(tickmap_emit_code(emit, &bad[count - 1]),
				 at >= 8 && at <= 51 ? 0
						     : TICKMAP_EMIT_E_ARGUMENT);
	}
	assert_int_equal(tickmap_emit_close(emit), 0);
	read_dump(dump_in(*state), &dump);
	assert_int_equal(dump.code_count, 44);
	strict_free_dump(&dump);
}

static void *no_memory(void *context, size_t size)
{
	(void)context;
	(void)size;
	return NULL;
}

static void options_that_contradict_the_header_are_refused(void **state)
{
	struct {
		struct tickmap_emit_options options;
		uint64_t later;
	} v = { TICKMAP_EMIT_OPTIONS_INIT, 0 };
	const struct tickmap_emit_options good = v.options;
	struct tickmap_emit *emit = NULL;

	v.options.sinks = 0;
	assert_int_equal(tickmap_emit_open(&v.options, &emit),
			 TICKMAP_EMIT_E_ARGUMENT);
	v.options.sinks = 8;
	assert_int_equal(tickmap_emit_open(&v.options, &emit),
			 TICKMAP_EMIT_E_ARGUMENT);
	v.options = good;
	v.options.flags = 1 << 5;
	assert_int_equal(tickmap_emit_open(&v.options, &emit),
			 TICKMAP_EMIT_E_ARGUMENT);
	v.options = good;
	v.options.reserved = 1;
	assert_int_equal(tickmap_emit_open(&v.options, &emit),
			 TICKMAP_EMIT_E_ARGUMENT);
	v.options = good;
	v.options.mode = 0622;
	assert_int_equal(tickmap_emit_open(&v.options, &emit),
			 TICKMAP_EMIT_E_ARGUMENT);
	v.options = good;
	v.options.file_name = "../jit.dump";
	assert_int_equal(tickmap_emit_open(&v.options, &emit),
			 TICKMAP_EMIT_E_ARGUMENT);
	v.options = good;
	v.options.batch_size = 1 << 22;
	assert_int_equal(tickmap_emit_open(&v.options, &emit),
			 TICKMAP_EMIT_E_ARGUMENT);
	v.options = good;
	v.options.allocate = no_memory;
	assert_int_equal(tickmap_emit_open(&v.options, &emit),
			 TICKMAP_EMIT_E_ARGUMENT);
	/* The struct of the first version is the least; none ends in the
	 * middle of a pointer. */
	v.options = good;
	v.options.sinks = TICKMAP_EMIT_GDB;
	v.options.file_name = "%p";
	for (size_t size = 0; size <= sizeof(good); size++) {
		bool sound = size % sizeof(size) == 0 &&
			     size >= offsetof(struct tickmap_emit_options,
					      file_name);

		v.options.size = size;
		assert_int_equal(tickmap_emit_open(&v.options, &emit),
				 sound ? 0 : TICKMAP_EMIT_E_ARGUMENT);
		assert_int_equal(tickmap_emit_close(emit), 0);
	}
	/* A later header's struct: fine as long as its tail says nothing. */
	v.options = good;
	v.options.dir = *state;
	v.options.size = sizeof(v);
	v.later = 1;
	assert_int_equal(tickmap_emit_open(&v.options, &emit),
			 TICKMAP_EMIT_E_ARGUMENT);
	assert_null(emit);
	v.later = 0;
	assert_int_equal(tickmap_emit_open(&v.options, &emit), 0);
	assert_int_equal(tickmap_emit_close(emit), 0);
	assert_int_equal(tickmap_emit_open(NULL, &emit),
			 TICKMAP_EMIT_E_ARGUMENT);
	assert_int_equal(tickmap_emit_open(&good, NULL),
			 TICKMAP_EMIT_E_ARGUMENT);
	assert_int_equal(tickmap_emit_close(NULL), 0);
}

/* Nobody's size: what lies behind the struct, all of it zeros, is no tail. */
static void a_size_that_nobody_has_set_is_refused(void **state)
{
	static const size_t sizes[] = { (size_t)1 << 16, (size_t)1 << 40,
					SIZE_MAX - 7 };
	struct tickmap_emit_options *options = calloc(1, (size_t)1 << 16);
	struct tickmap_emit_options good = TICKMAP_EMIT_OPTIONS_INIT;
	struct tickmap_unwind_shape shape = TICKMAP_UNWIND_SHAPE_INIT;
	struct tickmap_code code = small_code("sized");
	struct tickmap_unwind unwind;
	struct tickmap_emit *emit;

	assert_non_null(options);
	*options = good;
	options->dir = *state;
	assert_int_equal(open_emit(*state, BOTH, 0, &emit), 0);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct tickmap_emit *none;

		options->size = sizes[i];
		assert_int_equal(tickmap_emit_open(options, &none),
				 TICKMAP_EMIT_E_ARGUMENT);
		code.size = sizes[i];
		assert_int_equal(tickmap_emit_code(emit, &code),
				 TICKMAP_EMIT_E_ARGUMENT);
		shape.size = sizes[i];
		assert_int_equal(tickmap_unwind_build(&unwind, &shape),
				 TICKMAP_EMIT_E_ARGUMENT);
	}
	assert_int_equal(tickmap_emit_close(emit), 0);
	free(options);
}

static void functions_at_their_spacing_never_overlap(void **state)
{
	struct tickmap_unwind unwind;

	(void)state;
	assert_int_equal(tickmap_unwind_frame_pointer(&unwind, 0, 6), 0);
	assert_int_equal(tickmap_emit_mapped_size(NULL), 0);
	for (uint64_t size = 0; size < 100; size++) {
		uint64_t with = tickmap_emit_spacing(size, &unwind);

		assert_int_equal(with % 16, 0);
		assert_true(with >= (size + 7) / 8 * 8 +
					    tickmap_emit_mapped_size(&unwind));
		assert_true(tickmap_emit_mapped_size(&unwind) >=
			    unwind.frame_size + 20);
		assert_int_equal(tickmap_emit_spacing(size, NULL),
				 (size + 15) / 16 * 16);
	}
}

#define SCRATCH_TEST(name)                                                     \
	cmocka_unit_test_setup_teardown(name, make_scratch, remove_scratch)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCRATCH_TEST(the_header_is_in_the_records_clock),
		SCRATCH_TEST(the_machine_can_be_another),
		SCRATCH_TEST(a_function_reads_back_as_published),
		SCRATCH_TEST(lines_reach_to_the_end_of_the_code),
		SCRATCH_TEST(a_table_of_many_lines_reads_back),
		SCRATCH_TEST(
			unwinding_bytes_are_self_contained_at_every_code_size),
		SCRATCH_TEST(
			equal_functions_have_unequal_images_and_equal_code),
		SCRATCH_TEST(indices_go_on_behind_the_callers),
		SCRATCH_TEST(the_last_index_is_refused),
		SCRATCH_TEST(code_ends_within_the_addresses),
		SCRATCH_TEST(a_move_names_its_code),
		SCRATCH_TEST(names_of_any_bytes_stay_within_their_record),
		SCRATCH_TEST(code_without_bytes_is_zeros),
		SCRATCH_TEST(
			what_is_too_large_leaves_no_trace_and_does_not_latch),
		SCRATCH_TEST(a_clock_that_steps_back_stands_still),
		SCRATCH_TEST(codes_that_contradict_the_header_are_refused),
		SCRATCH_TEST(options_that_contradict_the_header_are_refused),
		SCRATCH_TEST(a_size_that_nobody_has_set_is_refused),
		cmocka_unit_test(functions_at_their_spacing_never_overlap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

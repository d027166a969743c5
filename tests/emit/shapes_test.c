/* SPDX-License-Identifier: MIT */
/*
 * The shapes of each machine against a model of it: the prologues and epilogues
 * that the header lists are played one instruction at a time, and at each one
 * the published call frame information, read by an interpreter of its own, must
 * give back the caller's stack pointer, frame pointer and return address.
 */
#include "support.h"

#include <stdio.h>
#include <string.h>

#define X86_64 62
#define AARCH64 183
#define RISCV 243

#define JUNK INT64_C(-9999)
#define CALLERS_FP INT64_C(5555)
#define CALLERS_RA INT64_C(7777)

/* Addresses are relative to the CFA; the stack is at most 512 deep. */
struct machine {
	int64_t sp;
	int64_t fp;
	int64_t ra;
	bool is_signed;
	int64_t stack[64];
};

enum what {
	NOTHING,
	MOVE_SP,    /* sp += n; what is below it then is anybody's */
	PUSH_FP,    /* sp -= 8, fp stored there */
	POP_FP,	    /* the reverse */
	STORE_PAIR, /* sp += n (< 0), fp and ra stored at sp */
	LOAD_PAIR,  /* the reverse */
	SET_FP,	    /* fp = sp + n */
	STORE_FP,   /* at sp + n */
	STORE_RA,
	LOAD_FP,
	LOAD_RA,
	TOGGLE_SIGN,
	CALL, /* ra is lost if the machine has one */
};

struct instruction {
	uint32_t size;
	enum what what;
	int64_t n;
};

static int64_t *slot(struct machine *m, int64_t addr)
{
	assert_true(addr < 0 && addr >= -512 && addr % 8 == 0);
	return &m->stack[(addr + 512) / 8];
}

static void move_sp(struct machine *m, int64_t n)
{
	int64_t old = m->sp;

	m->sp += n;
	for (; old < m->sp; old += 8)
		*slot(m, old) = JUNK;
}

static void play(struct machine *m, const struct instruction *in, bool has_ra)
{
	switch (in->what) {
	case NOTHING:
		break;
	case MOVE_SP:
		move_sp(m, in->n);
		break;
	case PUSH_FP:
		m->sp -= 8;
		*slot(m, m->sp) = m->fp;
		break;
	case POP_FP:
		m->fp = *slot(m, m->sp);
		move_sp(m, 8);
		break;
	case STORE_PAIR:
		m->sp += in->n;
		*slot(m, m->sp) = m->fp;
		*slot(m, m->sp + 8) = m->ra;
		break;
	case LOAD_PAIR:
		m->fp = *slot(m, m->sp);
		m->ra = *slot(m, m->sp + 8);
		move_sp(m, in->n);
		break;
	case SET_FP:
		m->fp = m->sp + in->n;
		break;
	case STORE_FP:
		*slot(m, m->sp + in->n) = m->fp;
		break;
	case STORE_RA:
		*slot(m, m->sp + in->n) = m->ra;
		break;
	case LOAD_FP:
		m->fp = *slot(m, m->sp + in->n);
		break;
	case LOAD_RA:
		m->ra = *slot(m, m->sp + in->n);
		break;
	case TOGGLE_SIGN:
		m->is_signed = !m->is_signed;
		break;
	case CALL:
		if (has_ra)
			m->ra = JUNK;
		break;
	}
}

/* The interpreter. */
struct row {
	uint32_t cfa_register;
	int64_t cfa_offset;
	int64_t saved[32]; /* 0: in its register; else the offset */
	bool is_signed;
};

struct table {
	const uint8_t *at;
	uint32_t code_align;
	int64_t data_align;
	uint32_t ra;
	const uint8_t *initial, *initial_end;
	const uint8_t *rules, *rules_end;
};

static uint64_t uleb(const uint8_t **at)
{
	uint64_t value = 0;

	for (unsigned int shift = 0;; shift += 7) {
		value |= (uint64_t)(**at & 0x7f) << shift;
		if (!(*(*at)++ & 0x80))
			return value;
	}
}

static uint32_t u32_at(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static void read_table(const uint8_t *frame, struct table *ret_table)
{
	struct table *t = ret_table;
	const uint8_t *fde = frame + 4 + u32_at(frame);
	const uint8_t *at = frame + 9;

	assert_memory_equal(at, "zR", 3);
	at += 3;
	t->code_align = (uint32_t)uleb(&at);
	assert_int_equal(*at, 0x78); /* -8 */
	at++;
	t->data_align = -8;
	t->ra = *at++;
	assert_memory_equal(at, "\x01\x1b", 2);
	t->initial = at + 2;
	t->initial_end = fde;
	assert_int_equal(u32_at(fde + 4), fde + 4 - frame);
	t->rules = fde + 17 + fde[16];
	t->rules_end = fde + 4 + u32_at(fde);
}

/* Rules up to, and including, those that hold at `pc`. */
static void run_rules(const struct table *t, struct row *row, const uint8_t *at,
		      const uint8_t *end, uint32_t pc)
{
	uint32_t loc = 0;

	while (at < end) {
		uint8_t op = *at++;
		uint32_t delta = 0;

		if (op >> 6 == 1)
			delta = op & 0x3f;
		else if (op == 0x02)
			delta = *at++;
		else if (op == 0x03 || op == 0x04) {
			memcpy(&delta, at, op == 0x03 ? 2 : 4);
			at += op == 0x03 ? 2 : 4;
		}
		loc += delta * t->code_align;
		if (loc > pc)
			return;
		if (delta || !op)
			continue;
		if (op >> 6 == 2)
			row->saved[op & 0x3f] =
				(int64_t)uleb(&at) * t->data_align;
		else if (op >> 6 == 3)
			row->saved[op & 0x3f] = 0;
		else if (op == 0x0c) {
			row->cfa_register = (uint32_t)uleb(&at);
			row->cfa_offset = (int64_t)uleb(&at);
		} else if (op == 0x0d)
			row->cfa_register = (uint32_t)uleb(&at);
		else if (op == 0x0e)
			row->cfa_offset = (int64_t)uleb(&at);
		else if (op == 0x2d)
			row->is_signed = !row->is_signed;
		else
			fail_msg("unknown rule %#x", op);
	}
}

struct numbers {
	uint32_t sp, fp, ra;
};

static struct numbers numbers_of(uint32_t elf_machine)
{
	if (elf_machine == X86_64)
		return (struct numbers) { 7, 6, 16 };
	if (elf_machine == AARCH64)
		return (struct numbers) { 31, 29, 30 };
	return (struct numbers) { 2, 8, 1 };
}

static void check_at(const struct table *t, struct machine *m,
		     uint32_t elf_machine, uint32_t pc)
{
	struct numbers n = numbers_of(elf_machine);
	struct row row = { 0 };
	int64_t cfa, fp, ra;

	run_rules(t, &row, t->initial, t->initial_end, UINT32_MAX);
	run_rules(t, &row, t->rules, t->rules_end, pc);
	assert_int_equal(t->ra, n.ra);
	assert_true(row.cfa_register == n.sp || row.cfa_register == n.fp);
	cfa = (row.cfa_register == n.sp ? m->sp : m->fp) + row.cfa_offset;
	fp = row.saved[n.fp] ? *slot(m, cfa + row.saved[n.fp]) : m->fp;
	ra = row.saved[n.ra] ? *slot(m, cfa + row.saved[n.ra]) : m->ra;
	if (cfa || fp != CALLERS_FP || ra != CALLERS_RA ||
	    row.is_signed != m->is_signed)
		fail_msg("machine %u, offset %u: cfa %d fp %d ra %d signed %d",
			 elf_machine, pc, (int)cfa, (int)fp, (int)ra,
			 row.is_signed);
}

/* Publish with `unwind`, play, check before each instruction. */
static void check_program(const char *dir, const struct tickmap_unwind *unwind,
			  uint32_t elf_machine,
			  const struct instruction *program, size_t count)
{
	bool has_ra = elf_machine != X86_64;
	struct machine m = { .sp = has_ra ? 0 : -8,
			     .fp = CALLERS_FP,
			     .ra = has_ra ? CALLERS_RA : JUNK };
	struct tickmap_code code = small_code("shape");
	struct tickmap_emit *emit;
	struct strict_dump dump;
	struct table table;
	uint32_t pc = 0;

	for (size_t i = 0; i < 64; i++)
		m.stack[i] = JUNK;
	if (!has_ra)
		*slot(&m, -8) = CALLERS_RA;
	code.unwind = unwind;
	assert_int_equal(open_emit(dir, TICKMAP_EMIT_JITDUMP, 0, &emit), 0);
	assert_int_equal(tickmap_emit_code(emit, &code), 0);
	assert_int_equal(tickmap_emit_close(emit), 0);
	read_dump(dump_in(dir), &dump);
	remove(dump_in(dir));
	read_table(dump.codes[0].unwinding, &table);
	for (size_t i = 0; i < count; i++) {
		check_at(&table, &m, elf_machine, pc);
		play(&m, &program[i], has_ra);
		pc += program[i].size;
	}
	check_at(&table, &m, elf_machine, pc);
	assert_int_equal(m.sp, has_ra ? 0 : -8);
	strict_free_dump(&dump);
}

static uint32_t offset_of(const struct instruction *program, size_t count)
{
	uint32_t offset = 0;

	for (size_t i = 0; i < count; i++)
		offset += program[i].size;
	return offset;
}

/* enter, leave: which instructions they are; leave 0: none. */
static void check_shape(const char *dir, uint32_t elf_machine, uint32_t kind,
			uint32_t flags, uint32_t frame_size,
			const struct instruction *program, size_t count,
			size_t enter, size_t leave)
{
	struct tickmap_unwind_shape shape = TICKMAP_UNWIND_SHAPE_INIT;
	struct tickmap_unwind unwind;

	shape.elf_machine = elf_machine;
	shape.kind = kind;
	shape.flags = flags;
	shape.frame_size = frame_size;
	shape.enter_at = offset_of(program, enter);
	shape.leave_at = offset_of(program, leave);
	assert_int_equal(tickmap_unwind_build(&unwind, &shape), 0);
	check_program(dir, &unwind, elf_machine, program, count);
}

#define CHECK_SHAPE(dir, machine, kind, flags, size, program, enter, leave)    \
	check_shape(dir, machine, kind, flags, size, program,                  \
		    sizeof(program) / sizeof((program)[0]), enter, leave)

#define FP TICKMAP_UNWIND_FRAME_POINTER
#define FIXED TICKMAP_UNWIND_FIXED
#define LEAF TICKMAP_UNWIND_LEAF
#define PAD TICKMAP_UNWIND_LANDING_PAD
#define SIGNED TICKMAP_UNWIND_SIGNED
#define COMPRESSED TICKMAP_UNWIND_COMPRESSED

static void x86_64_shapes(void **state)
{
	static const struct instruction fp[] = {
		{ 3, NOTHING, 0 },  { 4, NOTHING, 0 },	 { 1, PUSH_FP, 0 },
		{ 3, SET_FP, 0 },   { 4, MOVE_SP, -64 }, { 5, CALL, 0 },
		{ 4, MOVE_SP, 64 }, { 1, POP_FP, 0 },	 { 1, NOTHING, 0 },
	};
	static const struct instruction fixed[] = {
		{ 2, NOTHING, 0 },   { 4, MOVE_SP, -120 }, { 5, CALL, 0 },
		{ 4, MOVE_SP, 120 }, { 1, NOTHING, 0 },
	};
	static const struct instruction large[] = {
		{ 7, MOVE_SP, -128 },
		{ 5, CALL, 0 },
		{ 7, MOVE_SP, 128 },
		{ 1, NOTHING, 0 },
	};
	static const struct instruction leaf[] = { { 1, NOTHING, 0 },
						   { 1, NOTHING, 0 } };

	CHECK_SHAPE(*state, X86_64, FP, PAD, 0, fp, 1, 7);
	CHECK_SHAPE(*state, X86_64, FIXED, 0, 120, fixed, 1, 3);
	CHECK_SHAPE(*state, X86_64, FIXED, 0, 128, large, 0, 2);
	CHECK_SHAPE(*state, X86_64, LEAF, PAD, 0, leaf, 0, 0);
}

static void aarch64_shapes(void **state)
{
	static const struct instruction fp[] = {
		{ 4, NOTHING, 0 }, { 4, STORE_PAIR, -48 }, { 4, SET_FP, 0 },
		{ 4, CALL, 0 },	   { 4, LOAD_PAIR, 48 },   { 4, NOTHING, 0 },
	};
	static const struct instruction fp_signed[] = {
		{ 4, NOTHING, 0 },	{ 4, TOGGLE_SIGN, 0 },
		{ 4, STORE_PAIR, -16 }, { 4, SET_FP, 0 },
		{ 4, CALL, 0 },		{ 4, LOAD_PAIR, 16 },
		{ 4, TOGGLE_SIGN, 0 },	{ 4, NOTHING, 0 },
	};
	static const struct instruction fixed[] = {
		{ 4, NOTHING, 0 },   { 4, TOGGLE_SIGN, 0 }, { 4, MOVE_SP, -80 },
		{ 4, STORE_RA, 72 }, { 4, CALL, 0 },	    { 4, LOAD_RA, 72 },
		{ 4, MOVE_SP, 80 },  { 4, TOGGLE_SIGN, 0 }, { 4, NOTHING, 0 },
	};
	static const struct instruction plain[] = {
		{ 4, MOVE_SP, -16 }, { 4, STORE_RA, 8 }, { 4, CALL, 0 },
		{ 4, LOAD_RA, 8 },   { 4, MOVE_SP, 16 }, { 4, NOTHING, 0 },
	};
	static const struct instruction leaf[] = {
		{ 4, NOTHING, 0 },     { 4, TOGGLE_SIGN, 0 }, { 4, NOTHING, 0 },
		{ 4, TOGGLE_SIGN, 0 }, { 4, NOTHING, 0 },
	};

	CHECK_SHAPE(*state, AARCH64, FP, 0, 48, fp, 1, 4);
	CHECK_SHAPE(*state, AARCH64, FP, SIGNED | PAD, 0, fp_signed, 0, 5);
	CHECK_SHAPE(*state, AARCH64, FP, SIGNED, 0, fp_signed, 1, 5);
	CHECK_SHAPE(*state, AARCH64, FIXED, SIGNED | PAD, 80, fixed, 0, 5);
	CHECK_SHAPE(*state, AARCH64, FIXED, 0, 0, plain, 0, 3);
	CHECK_SHAPE(*state, AARCH64, LEAF, SIGNED | PAD, 0, leaf, 0, 3);
}

static void riscv64_shapes(void **state)
{
	for (uint32_t unit = 2; unit <= 4; unit += 2) {
		uint32_t flags = unit == 2 ? COMPRESSED : 0;
		const struct instruction fp[] = {
			{ 4, NOTHING, 0 },	{ unit, MOVE_SP, -48 },
			{ unit, STORE_RA, 40 }, { unit, STORE_FP, 32 },
			{ unit, SET_FP, 48 },	{ 4, CALL, 0 },
			{ unit, LOAD_RA, 40 },	{ unit, LOAD_FP, 32 },
			{ unit, MOVE_SP, 48 },	{ 2, NOTHING, 0 },
		};
		const struct instruction fixed[] = {
			{ unit, MOVE_SP, -16 }, { unit, STORE_RA, 8 },
			{ 4, CALL, 0 },		{ unit, LOAD_RA, 8 },
			{ unit, MOVE_SP, 16 },	{ 2, NOTHING, 0 },
		};

		CHECK_SHAPE(*state, RISCV, FP, flags | PAD, 48, fp, 0, 6);
		CHECK_SHAPE(*state, RISCV, FP, flags, 48, fp, 1, 6);
		CHECK_SHAPE(*state, RISCV, FIXED, flags, 0, fixed, 0, 3);
	}
}

/* What no shape has: registers saved one by one, the frame grown in between. */
static void rules_follow_any_layout(void **state)
{
	static const struct instruction program[] = {
		{ 4, MOVE_SP, -32 },   { 4, STORE_FP, 16 },
		{ 4, MOVE_SP, -64 },   { 4, TOGGLE_SIGN, 0 },
		{ 4, STORE_RA, 88 },   { 4, SET_FP, 64 },
		{ 4, CALL, 0 },	       { 4, LOAD_RA, 88 },
		{ 4, TOGGLE_SIGN, 0 }, { 4, LOAD_FP, 80 },
		{ 4, MOVE_SP, 96 },    { 4, NOTHING, 0 },
	};
	static const struct tickmap_unwind_rule rules[] = {
		{ 4, TICKMAP_UNWIND_FROM_SP, 32, 0, 0, 0 },
		{ 8, TICKMAP_UNWIND_FROM_SP, 32, 16, 0, 0 },
		{ 12, TICKMAP_UNWIND_FROM_SP, 96, 16, 0, 0 },
		{ 16, TICKMAP_UNWIND_FROM_SP, 96, 16, 0, 1 },
		{ 20, TICKMAP_UNWIND_FROM_SP, 96, 16, 8, 1 },
		{ 24, TICKMAP_UNWIND_FROM_FP, 32, 16, 8, 1 },
		{ 32, TICKMAP_UNWIND_FROM_FP, 32, 16, 0, 1 },
		{ 36, TICKMAP_UNWIND_FROM_FP, 32, 16, 0, 0 },
		{ 40, TICKMAP_UNWIND_FROM_SP, 96, 0, 0, 0 },
		{ 44, TICKMAP_UNWIND_FROM_SP, 0, 0, 0, 0 },
	};
	struct tickmap_unwind unwind;

	assert_int_equal(tickmap_unwind_rules(&unwind, AARCH64, rules, 10), 0);
	check_program(*state, &unwind, AARCH64, program,
		      sizeof(program) / sizeof(program[0]));
}

static int build_with(uint32_t machine, uint32_t kind, uint32_t flags,
		      uint32_t enter_at, uint32_t leave_at, uint32_t frame_size)
{
	struct tickmap_unwind_shape shape = TICKMAP_UNWIND_SHAPE_INIT;
	struct tickmap_unwind unwind;

	shape.elf_machine = machine;
	shape.kind = kind;
	shape.flags = flags;
	shape.enter_at = enter_at;
	shape.leave_at = leave_at;
	shape.frame_size = frame_size;
	return tickmap_unwind_build(&unwind, &shape);
}

static void shapes_that_cannot_be_are_refused(void **state)
{
	static const struct tickmap_unwind_rule odd = { 4, 0, 16, 12, 0, 0 };
	static const struct tickmap_unwind_rule sign = { 4, 0, 16, 0, 0, 1 };
	static const struct tickmap_unwind_rule third = { 4, 2, 16, 0, 0, 0 };
	struct tickmap_unwind unwind;
	const int refused = TICKMAP_EMIT_E_ARGUMENT;

	(void)state;
	assert_int_equal(build_with(0, FP, 0, 0, 20, 16), 0);
	assert_int_equal(build_with(22, LEAF, 0, 0, 0, 0), refused);
	assert_int_equal(build_with(X86_64, 3, 0, 0, 0, 16), refused);
	assert_int_equal(build_with(X86_64, FP, SIGNED, 0, 0, 0), refused);
	assert_int_equal(build_with(X86_64, FIXED, 0, 0, 0, 0), refused);
	assert_int_equal(build_with(X86_64, FIXED, 0, 0, 3, 8), refused);
	assert_int_equal(build_with(X86_64, FIXED, 0, 0, 0, 12), refused);
	assert_int_equal(build_with(AARCH64, FP, COMPRESSED, 0, 0, 0), refused);
	assert_int_equal(build_with(AARCH64, FP, 0, 2, 0, 0), refused);
	assert_int_equal(build_with(AARCH64, FP, 0, 0, 4, 0), refused);
	assert_int_equal(build_with(AARCH64, FP, 0, 0, 0, 24), refused);
	assert_int_equal(build_with(RISCV, FP, 0, 0, 12, 0), refused);
	assert_int_equal(build_with(RISCV, FP, SIGNED, 0, 0, 0), refused);
	assert_int_equal(build_with(AARCH64, FP, 0, UINT32_MAX - 3, 0, 0),
			 refused);
	assert_int_equal(tickmap_unwind_build(NULL, NULL), refused);
	assert_int_equal(tickmap_unwind_rules(&unwind, X86_64, &odd, 1),
			 refused);
	assert_int_equal(tickmap_unwind_rules(&unwind, X86_64, &sign, 1),
			 refused);
	assert_int_equal(tickmap_unwind_rules(&unwind, AARCH64, &third, 1),
			 refused);
	assert_int_equal(tickmap_unwind_rules(&unwind, 22, NULL, 0), refused);
}

/* A CIE with the B key's letter, and an FDE that saves r12. */
static const uint8_t raw[] = {
	20, 0, 0,    0,	 0,  0,	   0,	 0,  1,	   'z',	 'R', 'B',
	0,  1, 0x78, 16, 1,  0x1b, 0x0c, 7,  8,	   0x90, 1,   0,
	20, 0, 0,    0,	 28, 0,	   0,	 0,  9,	   9,	 9,   9,
	9,  9, 9,    9,	 0,  0x41, 0x0e, 16, 0x8c, 2,	 0,   0,
};

static int publish_raw(const char *dir, const uint8_t *bytes, size_t size)
{
	struct tickmap_code code = small_code("raw");
	struct tickmap_emit *emit;
	int status;

	assert_int_equal(open_emit(dir, TICKMAP_EMIT_JITDUMP, 0, &emit), 0);
	code.eh_frame = bytes;
	code.eh_frame_size = size;
	code.mapped_size = TICKMAP_EMIT_MAPPED_SIZE(size);
	status = tickmap_emit_code(emit, &code);
	assert_int_equal(tickmap_emit_close(emit), 0);
	return status;
}

static void raw_frames_are_passed_on(void **state)
{
	struct strict_dump dump;
	const struct strict_code *code;
	uint8_t expected[sizeof(raw)];
	int32_t back = -(16 + 32); /* nine bytes of code, rounded up */
	uint32_t range = 9;

	assert_int_equal(publish_raw(*state, raw, sizeof(raw)), 0);
	read_dump(dump_in(*state), &dump);
	code = &dump.codes[0];
	memcpy(expected, raw, sizeof(raw));
	memcpy(expected + 32, &back, sizeof(back));
	memcpy(expected + 36, &range, sizeof(range));
	assert_int_equal(code->unwinding_size, sizeof(raw) + 20);
	assert_memory_equal(code->unwinding, expected, sizeof(raw));
	assert_int_equal(code->eh_frame_hdr_size, TICKMAP_EH_FRAME_HDR_SIZE);
	/* the table's one entry: the function, and its FDE */
	memcpy(&back, code->unwinding + sizeof(raw) + 12, sizeof(back));
	assert_int_equal(back, -(16 + (int32_t)sizeof(raw)));
	memcpy(&back, code->unwinding + sizeof(raw) + 16, sizeof(back));
	assert_int_equal(back, 24 - (int32_t)sizeof(raw));
	strict_free_dump(&dump);
}

static void raw_frames_of_another_kind_are_refused(void **state)
{
	struct tickmap_code code = small_code("both");
	struct tickmap_unwind unwind;
	struct tickmap_emit *emit;
	uint8_t bytes[sizeof(raw) + 8] = { 0 };

	/* cut anywhere, with each byte of the CIE's head another */
	for (size_t size = 0; size < sizeof(raw); size++)
		assert_int_equal(publish_raw(*state, raw, size),
				 TICKMAP_EMIT_E_ARGUMENT);
	for (size_t i = 0; i < 18; i++) {
		memcpy(bytes, raw, sizeof(raw));
		bytes[i] = i == 13 || i == 15 ? bytes[i] : 'L';
		assert_int_equal(publish_raw(*state, bytes, sizeof(raw)),
				 i == 13 || i == 14 || i == 15 || i == 16
					 ? 0
					 : TICKMAP_EMIT_E_ARGUMENT);
	}
	/* a second FDE, but not a terminator */
	memcpy(bytes, raw, sizeof(raw));
	assert_int_equal(publish_raw(*state, bytes, sizeof(bytes)), 0);
	bytes[sizeof(raw)] = 1;
	assert_int_equal(publish_raw(*state, bytes, sizeof(bytes)),
			 TICKMAP_EMIT_E_ARGUMENT);
	assert_int_equal(tickmap_unwind_frame_pointer(&unwind, 0, 0), 0);
	code.unwind = &unwind;
	code.eh_frame = raw;
	code.eh_frame_size = sizeof(raw);
	assert_int_equal(open_emit(*state, TICKMAP_EMIT_JITDUMP, 0, &emit), 0);
	assert_int_equal(tickmap_emit_code(emit, &code),
			 TICKMAP_EMIT_E_ARGUMENT);
	assert_int_equal(tickmap_emit_close(emit), 0);
}

#define SCRATCH_TEST(name)                                                     \
	cmocka_unit_test_setup_teardown(name, make_scratch, remove_scratch)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCRATCH_TEST(x86_64_shapes),
		SCRATCH_TEST(aarch64_shapes),
		SCRATCH_TEST(riscv64_shapes),
		SCRATCH_TEST(rules_follow_any_layout),
		cmocka_unit_test(shapes_that_cannot_be_are_refused),
		SCRATCH_TEST(raw_frames_are_passed_on),
		SCRATCH_TEST(raw_frames_of_another_kind_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

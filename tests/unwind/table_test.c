/* SPDX-License-Identifier: MIT */
/* Tables made by hand: what no compiler here writes, and what nobody should. */
#include "unwind/cfi.h"
#include "unwind/unwind.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

enum { AT = 0x100000, HDR_AT = 0x200000 };

/* ---- A small assembler ---- */

struct table {
	uint8_t bytes[8192];
	size_t size;
	size_t record; /* where the open record's length stands */
	bool wide;
	struct tickmap_cfi cfi;
};

static void put(struct table *t, uint64_t value, size_t size)
{
	assert_true(size <= sizeof(t->bytes) - t->size);
	memcpy(t->bytes + t->size, &value, size);
	t->size += size;
}

static void put_uleb(struct table *t, uint64_t value)
{
	for (; value > 0x7f; value >>= 7)
		put(t, (value & 0x7f) | 0x80, 1);
	put(t, value, 1);
}

static void put_bytes(struct table *t, const void *bytes, size_t size)
{
	assert_true(size <= sizeof(t->bytes) - t->size);
	memcpy(t->bytes + t->size, bytes, size);
	t->size += size;
}

static void begin(struct table *t)
{
	t->record = t->size;
	put(t, t->wide ? UINT32_MAX : 0, 4);
	if (t->wide)
		put(t, 0, 8);
}

static void end(struct table *t)
{
	uint64_t head = t->wide ? 12 : 4;
	uint64_t length = t->size - t->record - head;

	memcpy(t->bytes + t->record + head - (t->wide ? 8 : 4), &length,
	       t->wide ? 8 : 4);
}

/* cfa = rsp + 8, the return address at cfa - 8 */
static const uint8_t usual[] = { 0x0c, 7, 8, 0x90, 1 };

static size_t put_cie(struct table *t, unsigned version, const char *letters,
		      const void *data, size_t data_size)
{
	size_t offset = t->size;

	begin(t);
	put(t, 0, 4);
	put(t, version, 1);
	put_bytes(t, letters, strlen(letters) + 1);
	if (version == 4)
		put(t, 0x0008, 2);
	put(t, 1, 1);	 /* code alignment */
	put(t, 0x78, 1); /* data alignment -8 */
	put(t, TICKMAP_RIP, 1);
	if (letters[0] == 'z') {
		put_uleb(t, data_size);
		put_bytes(t, data, data_size);
	}
	put_bytes(t, usual, sizeof(usual));
	end(t);
	return offset;
}

static void begin_fde(struct table *t, size_t cie)
{
	begin(t);
	put(t, t->size - cie, 4);
}

/* An FDE of a CIE "zR" with absolute addresses. */
static void put_fde(struct table *t, size_t cie, uint64_t start, uint64_t size,
		    const void *program, size_t program_size)
{
	begin_fde(t, cie);
	put(t, start, 8);
	put(t, size, 8);
	put(t, 0, 1);
	if (program_size)
		put_bytes(t, program, program_size);
	end(t);
}

static struct tickmap_cfi *open_table(struct table *t)
{
	tickmap_cfi_done(&t->cfi);
	t->cfi = (struct tickmap_cfi) { .eh_frame = t->bytes,
					.eh_frame_size = t->size,
					.eh_frame_at = AT };
	tickmap_cfi_init(&t->cfi);
	return &t->cfi;
}

static enum tickmap_cfi_result rule_of(struct table *t, const void *program,
				       size_t size, uint64_t pc,
				       struct tickmap_rule *rule)
{
	static const uint8_t absolute = 0;

	t->size = 0;
	size_t cie = put_cie(t, 1, "zR", &absolute, 1);
	put_fde(t, cie, 0x1000, 0x100, program, size);
	return tickmap_cfi_rule(open_table(t), pc, rule);
}

#define RULE(t, pc, rule, ...)                                                 \
	rule_of(t, (const uint8_t[]) { __VA_ARGS__ },                          \
		sizeof((const uint8_t[]) { __VA_ARGS__ }), pc, rule)

/* ---- Records ---- */

static void check_usual(struct tickmap_cfi *cfi, uint64_t start, uint64_t size)
{
	struct tickmap_rule rule;

	assert_int_equal(tickmap_cfi_rule(cfi, start, &rule), TICKMAP_CFI_OK);
	assert_int_equal(rule.cfa_register, TICKMAP_RSP);
	assert_int_equal(rule.cfa_offset, 8);
	assert_int_equal(rule.reg[TICKMAP_RIP].kind, TICKMAP_RULE_OFFSET);
	assert_int_equal(rule.reg[TICKMAP_RIP].offset, -8);
	assert_int_equal(rule.function_start, start);
	assert_int_equal(rule.function_end, start + size);
	assert_int_equal(tickmap_cfi_rule(cfi, start + size - 1, &rule),
			 TICKMAP_CFI_OK);
	assert_int_equal(tickmap_cfi_rule(cfi, start + size, &rule),
			 TICKMAP_CFI_NONE);
	assert_int_equal(tickmap_cfi_rule(cfi, start - 1, &rule),
			 TICKMAP_CFI_NONE);
}

static void every_pointer_encoding_finds_the_function(void **state)
{
	static const struct {
		uint8_t encoding;
		size_t size; /* 0: LEB128 */
	} cases[] = {
		{ 0x00, 8 }, { 0x02, 2 }, { 0x03, 4 }, { 0x04, 8 }, { 0x0a, 2 },
		{ 0x0b, 4 }, { 0x0c, 8 }, { 0x01, 0 }, { 0x10, 8 }, { 0x1a, 2 },
		{ 0x1b, 4 }, { 0x1c, 8 }, { 0x13, 4 }, { 0x14, 8 },
	};
	static struct table t;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool relative = cases[i].encoding & 0x10;
		/* near enough for two bytes, and behind the table */
		uint64_t start = relative ? AT + 0x1000 : 0x1234;
		t.size = 0;
		size_t cie = put_cie(&t, 1, "zR", &cases[i].encoding, 1);
		begin_fde(&t, cie);
		uint64_t value = relative ? start - (AT + t.size) : start;
		if (cases[i].size) {
			put(&t, value, cases[i].size);
			put(&t, 0x40, cases[i].size);
		} else {
			put_uleb(&t, value);
			put_uleb(&t, 0x40);
		}
		put(&t, 0, 1);
		end(&t);
		check_usual(open_table(&t), start, 0x40);
	}
	tickmap_cfi_done(&t.cfi);
}

static void meaningless_addresses_are_passed_over(void **state)
{
	static const uint8_t odd[] = { 0x9b, 0x20, 0x30, 0x40, 0x0f, 0xff };
	static const uint8_t absolute = 0;
	static struct table t;

	(void)state;
	for (size_t i = 0; i < sizeof(odd); i++) {
		t.size = 0;
		size_t cie = put_cie(&t, 1, "zR", &odd[i], 1);
		put_fde(&t, cie, 0x5000, 0x40, NULL, 0);
		cie = put_cie(&t, 1, "zR", &absolute, 1);
		put_fde(&t, cie, 0x1234, 0x40, NULL, 0);
		check_usual(open_table(&t), 0x1234, 0x40);
		struct tickmap_rule rule;
		assert_int_equal(tickmap_cfi_rule(&t.cfi, 0x5000, &rule),
				 TICKMAP_CFI_NONE);
	}
	tickmap_cfi_done(&t.cfi);
}

static void versions_and_augmentations_are_read(void **state)
{
	static const uint8_t plr[] = { 0x9b, 1, 2, 3, 4, 0x1b, 0x04 };
	static const uint8_t unknown[] = { 0x04, 1, 2, 3 };
	static const unsigned versions[] = { 1, 3, 4 };
	static struct table t;
	struct tickmap_rule rule;

	(void)state;
	for (int wide = 0; wide < 2; wide++) {
		t.wide = wide;
		for (unsigned i = 0; i < 3; i++) {
			t.size = 0;
			size_t cie = put_cie(&t, versions[i], "zPLR", plr,
					     sizeof(plr));
			put_fde(&t, cie, 0x1000, 0x10, NULL, 0);
			check_usual(open_table(&t), 0x1000, 0x10);
			t.size = 0;
			cie = put_cie(&t, versions[i], "zRS", plr + 6, 1);
			put_fde(&t, cie, 0x1000, 0x10, NULL, 0);
			check_usual(open_table(&t), 0x1000, 0x10);
			assert_int_equal(
				tickmap_cfi_rule(&t.cfi, 0x1000, &rule),
				TICKMAP_CFI_OK);
			assert_true(rule.signal_frame);
		}
		/* What 'Q' means nobody knows: the size leads over it. */
		t.size = 0;
		size_t cie = put_cie(&t, 1, "zRQB", unknown, sizeof(unknown));
		put_fde(&t, cie, 0x1000, 0x10, NULL, 0);
		check_usual(open_table(&t), 0x1000, 0x10);
		/* No augmentation at all. */
		t.size = 0;
		cie = put_cie(&t, 3, "", NULL, 0);
		begin_fde(&t, cie);
		put(&t, 0x1000, 8);
		put(&t, 0x10, 8);
		end(&t);
		check_usual(open_table(&t), 0x1000, 0x10);
		/* Not readable: version 2, a name without 'z'. */
		t.size = 0;
		cie = put_cie(&t, 2, "zR", plr + 6, 1);
		put_fde(&t, cie, 0x1000, 0x10, NULL, 0);
		assert_int_equal(
			tickmap_cfi_rule(open_table(&t), 0x1000, &rule),
			TICKMAP_CFI_NONE);
	}
	t.wide = false;
	tickmap_cfi_done(&t.cfi);
}

/* Two functions with a hole between them, and more, for an index. */
static size_t put_functions(struct table *t, unsigned count)
{
	static const uint8_t absolute = 0;

	t->size = 0;
	size_t cie = put_cie(t, 1, "zR", &absolute, 1);
	for (unsigned i = 0; i < count; i++) {
		/* out of order: the even ones first */
		unsigned n = i < (count + 1) / 2
				     ? 2 * i
				     : 2 * (i - (count + 1) / 2) + 1;
		put_fde(t, cie, 0x1000 + 0x100 * n, 0x80, NULL, 0);
	}
	return cie;
}

static void a_hole_between_functions_has_no_rule(void **state)
{
	static struct table t;

	(void)state;
	for (unsigned count = 1; count < 40; count++) {
		put_functions(&t, count);
		open_table(&t);
		for (unsigned i = 0; i < count; i++)
			check_usual(&t.cfi, 0x1000 + 0x100 * i, 0x80);
		/* Nothing is allocated for the few functions of JIT code. */
		assert_int_equal(t.cfi.index != NULL, count > 8);
	}
	tickmap_cfi_done(&t.cfi);
}

static void what_stands_before_damage_is_kept(void **state)
{
	static struct table t;
	struct tickmap_rule rule;

	(void)state;
	put_functions(&t, 2);
	size_t good = t.size;
	put(&t, 0x7fffffff, 4);
	put(&t, 0x20, 4);
	check_usual(open_table(&t), 0x1000, 0x80);
	check_usual(&t.cfi, 0x1100, 0x80);
	/* A terminator hides what comes behind it. */
	put_functions(&t, 1);
	put(&t, 0, 4);
	put_fde(&t, 0, 0x3000, 0x10, NULL, 0);
	open_table(&t);
	assert_int_equal(tickmap_cfi_rule(&t.cfi, 0x3000, &rule),
			 TICKMAP_CFI_NONE);
	/* An FDE that names no CIE is passed over. */
	put_functions(&t, 1);
	size_t at = t.size;
	put_fde(&t, at - 3, 0x3000, 0x10, NULL, 0);
	put_fde(&t, 0, 0x4000, 0x10, NULL, 0);
	open_table(&t);
	assert_int_equal(tickmap_cfi_rule(&t.cfi, 0x3000, &rule),
			 TICKMAP_CFI_NONE);
	check_usual(&t.cfi, 0x4000, 0x10);
	/* Cut anywhere: never more than is there. */
	put_functions(&t, 2);
	for (size_t size = 0; size < good; size++) {
		t.size = size;
		open_table(&t);
		for (uint64_t pc = 0x1000; pc < 0x1200; pc += 0x40)
			tickmap_cfi_rule(&t.cfi, pc, &rule);
	}
	tickmap_cfi_done(&t.cfi);
}

static void a_range_may_reach_the_top_of_memory(void **state)
{
	static const uint8_t absolute = 0;
	static struct table t;
	struct tickmap_rule rule;

	(void)state;
	size_t cie = put_cie(&t, 1, "zR", &absolute, 1);
	put_fde(&t, cie, UINT64_MAX - 15, 0x1000, NULL, 0);
	open_table(&t);
	assert_int_equal(tickmap_cfi_rule(&t.cfi, UINT64_MAX - 1, &rule),
			 TICKMAP_CFI_OK);
	assert_int_equal(tickmap_cfi_rule(&t.cfi, 5, &rule), TICKMAP_CFI_NONE);
	tickmap_cfi_done(&t.cfi);
}

/* ---- .eh_frame_hdr ---- */

static size_t fde_at(const struct table *t, unsigned n)
{
	size_t offset = 0;

	for (unsigned i = 0; i <= n; i++) {
		uint32_t length;
		memcpy(&length, t->bytes + offset, 4);
		offset += 4 + length;
	}
	return offset;
}

/* Functions in order of `order`; the table has those of put_functions(4). */
static void open_with_hdr(struct table *t, struct table *hdr,
			  const unsigned order[4], unsigned rows,
			  uint8_t encoding)
{
	static const uint8_t number_at[4] = { 0, 2, 1, 3 };

	put_functions(t, 4);
	hdr->size = 0;
	put(hdr, 1, 1);
	put(hdr, 0x1b, 1);
	put(hdr, 0x03, 1);
	put(hdr, encoding, 1);
	put(hdr, AT - (HDR_AT + 4), 4);
	put(hdr, rows, 4);
	for (unsigned i = 0; i < 4; i++) {
		put(hdr, 0x1000 + 0x100 * order[i] - HDR_AT, 4);
		put(hdr, AT + fde_at(t, number_at[order[i]]) - HDR_AT, 4);
	}
	tickmap_cfi_done(&t->cfi);
	t->cfi = (struct tickmap_cfi) { .eh_frame = t->bytes,
					.eh_frame_size = t->size,
					.eh_frame_at = AT,
					.hdr = hdr->bytes,
					.hdr_size = hdr->size,
					.hdr_at = HDR_AT };
	tickmap_cfi_init(&t->cfi);
}

static void check_four(struct table *t)
{
	for (unsigned i = 0; i < 4; i++)
		check_usual(&t->cfi, 0x1000 + 0x100 * i, 0x80);
}

static void a_header_is_used_when_it_is_sane(void **state)
{
	static const unsigned order[] = { 0, 1, 2, 3 };
	static struct table t, hdr;

	(void)state;
	open_with_hdr(&t, &hdr, order, 4, 0x3b);
	assert_non_null(t.cfi.sorted);
	check_four(&t);
	assert_non_null(t.cfi.sorted);
	assert_false(t.cfi.indexed);
}

static void a_header_that_lies_is_dropped(void **state)
{
	static const unsigned order[] = { 0, 1, 2, 3 };
	static const unsigned mixed[] = { 2, 0, 3, 1 };
	static struct table t, hdr;

	(void)state;
	open_with_hdr(&t, &hdr, mixed, 4, 0x3b); /* not sorted */
	assert_null(t.cfi.sorted);
	check_four(&t);
	open_with_hdr(&t, &hdr, order, 5, 0x3b); /* more rows than bytes */
	assert_null(t.cfi.sorted);
	check_four(&t);
	open_with_hdr(&t, &hdr, order, 4, 0x1b); /* not relative to itself */
	assert_null(t.cfi.sorted);
	check_four(&t);
	for (size_t at = 12; at < hdr.size; at++) {
		open_with_hdr(&t, &hdr, order, 4, 0x3b);
		hdr.bytes[at] ^= 0x10;
		tickmap_cfi_init(&t.cfi);
		/* Never a neighbour's rule, whatever the header says. */
		struct tickmap_rule rule;
		for (uint64_t pc = 0xf00; pc < 0x1500; pc += 0x20) {
			if (tickmap_cfi_rule(&t.cfi, pc, &rule) ==
			    TICKMAP_CFI_OK)
				assert_true(pc >= rule.function_start &&
					    pc < rule.function_end);
		}
		tickmap_cfi_done(&t.cfi);
	}
}

/* ---- Programs ---- */

static void rows_follow_the_program(void **state)
{
	static struct table t;
	struct tickmap_rule r;

	(void)state;
	/* push rbp; mov rsp, rbp; ... with a remembered row */
	static const uint8_t program[] = {
		0x41, 0x0e, 16,	  0x86, 2, /* +1: cfa 16, rbp at -16 */
		0x43, 0x0d, 6,		   /* +4: cfa by rbp */
		0x02, 0x20, 0x0a,	   /* +0x24: remember */
		0x0c, 7,    8,	  0xc6,	   /* cfa rsp + 8, rbp restored */
		0x03, 0x08, 0x00, 0x0b,	   /* +0x2c: recall */
		0x04, 0x10, 0,	  0,	0, 0x0e, 24, /* +0x3c: offset 24 */
	};
	static const struct {
		uint64_t start, end;
		uint8_t reg;
		int64_t offset;
		uint8_t rbp;
	} want[] = {
		{ 0x1000, 0x1001, 7, 8, TICKMAP_RULE_SAME },
		{ 0x1001, 0x1004, 7, 16, TICKMAP_RULE_OFFSET },
		{ 0x1004, 0x1024, 6, 16, TICKMAP_RULE_OFFSET },
		{ 0x1024, 0x102c, 7, 8, TICKMAP_RULE_SAME },
		{ 0x102c, 0x103c, 6, 16, TICKMAP_RULE_OFFSET },
		{ 0x103c, 0x1100, 6, 24, TICKMAP_RULE_OFFSET },
	};
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		for (uint64_t pc = want[i].start; pc < want[i].end; pc++) {
			assert_int_equal(
				rule_of(&t, program, sizeof(program), pc, &r),
				TICKMAP_CFI_OK);
			assert_int_equal(r.start, want[i].start);
			assert_int_equal(r.end, want[i].end);
			assert_int_equal(r.cfa_register, want[i].reg);
			assert_int_equal(r.cfa_offset, want[i].offset);
			assert_int_equal(r.reg[TICKMAP_RBP].kind, want[i].rbp);
		}
	}
	tickmap_cfi_done(&t.cfi);
}

static void every_operation_sets_its_rule(void **state)
{
	static struct table t;
	struct tickmap_rule r;

	(void)state;
	assert_int_equal(RULE(&t, 0x1000, &r, 0x05, 3, 2, 0x11, 12, 0x7d, 0x2f,
			      13, 4, 0x14, 14, 5, 0x15, 15, 0x7f, 0x09, 0, 2,
			      0x07, 1, 0x08, 4),
			 TICKMAP_CFI_OK);
	assert_int_equal(r.reg[TICKMAP_RBX].kind, TICKMAP_RULE_OFFSET);
	assert_int_equal(r.reg[TICKMAP_RBX].offset, -16);
	assert_int_equal(r.reg[TICKMAP_R12].offset, 24);
	assert_int_equal(r.reg[TICKMAP_R13].kind, TICKMAP_RULE_OFFSET);
	assert_int_equal(r.reg[TICKMAP_R13].offset, 32);
	assert_int_equal(r.reg[TICKMAP_R14].kind, TICKMAP_RULE_VAL_OFFSET);
	assert_int_equal(r.reg[TICKMAP_R14].offset, -40);
	assert_int_equal(r.reg[TICKMAP_R15].kind, TICKMAP_RULE_VAL_OFFSET);
	assert_int_equal(r.reg[TICKMAP_R15].offset, 8);
	assert_int_equal(r.reg[TICKMAP_RAX].kind, TICKMAP_RULE_REGISTER);
	assert_int_equal(r.reg[TICKMAP_RAX].offset, 2);
	assert_int_equal(r.reg[TICKMAP_RDX].kind, TICKMAP_RULE_UNDEFINED);
	assert_int_equal(r.reg[TICKMAP_RSI].kind, TICKMAP_RULE_SAME);

	assert_int_equal(RULE(&t, 0x1000, &r, 0x12, 6, 0x7e, 0x13, 0x7d, 0x2e,
			      16, 0x00, 0x05, 3, 2, 0x06, 3, 0x05, 40, 9),
			 TICKMAP_CFI_OK);
	assert_int_equal(r.cfa_register, TICKMAP_RBP);
	assert_int_equal(r.cfa_offset, 24);
	assert_int_equal(r.reg[TICKMAP_RBX].kind, TICKMAP_RULE_SAME);

	assert_int_equal(RULE(&t, 0x1000, &r, 0x0f, 2, 0x77, 8, 0x10, 3, 1,
			      0x30, 0x16, 6, 1, 0x31),
			 TICKMAP_CFI_OK);
	assert_true(r.cfa_is_expression);
	assert_int_equal(r.cfa_expression_size, 2);
	assert_int_equal(t.bytes[r.cfa_expression], 0x77);
	assert_int_equal(r.reg[TICKMAP_RBX].kind, TICKMAP_RULE_EXPRESSION);
	assert_int_equal(t.bytes[r.reg[TICKMAP_RBX].offset], 0x30);
	assert_int_equal(r.reg[TICKMAP_RBP].kind, TICKMAP_RULE_VAL_EXPRESSION);
	assert_int_equal(t.bytes[r.reg[TICKMAP_RBP].offset], 0x31);

	/* set_loc, in the FDE's encoding */
	assert_int_equal(RULE(&t, 0x1050, &r, 0x01, 0x40, 0x10, 0, 0, 0, 0, 0,
			      0, 0x0e, 80),
			 TICKMAP_CFI_OK);
	assert_int_equal(r.start, 0x1040);
	assert_int_equal(r.cfa_offset, 80);
	tickmap_cfi_done(&t.cfi);
}

static void programs_that_make_no_sense_are_refused(void **state)
{
	static struct table t;
	struct tickmap_rule r;

	(void)state;
	/* unknown operation; a state that was never remembered; register 200
	 * for the frame; half of an expression; a block behind the end; back
	 * in the code; an offset beyond 32 bits; a cut operand */
	assert_int_equal(RULE(&t, 0x1000, &r, 0x3f), TICKMAP_CFI_BAD);
	assert_int_equal(RULE(&t, 0x1000, &r, 0x2d), TICKMAP_CFI_BAD);
	assert_int_equal(RULE(&t, 0x1000, &r, 0x0b), TICKMAP_CFI_BAD);
	assert_int_equal(RULE(&t, 0x1000, &r, 0x0d, 0xc8, 1), TICKMAP_CFI_BAD);
	assert_int_equal(RULE(&t, 0x1000, &r, 0x0f, 1, 0x30, 0x0e, 8),
			 TICKMAP_CFI_BAD);
	assert_int_equal(RULE(&t, 0x1000, &r, 0x0f, 100, 0x30),
			 TICKMAP_CFI_BAD);
	assert_int_equal(
		RULE(&t, 0x1010, &r, 0x48, 0x01, 0, 0x10, 0, 0, 0, 0, 0, 0),
		TICKMAP_CFI_BAD);
	assert_int_equal(
		RULE(&t, 0x1000, &r, 0x05, 3, 0xff, 0xff, 0xff, 0xff, 0x7f),
		TICKMAP_CFI_BAD);
	assert_int_equal(RULE(&t, 0x1000, &r, 0x04, 1), TICKMAP_CFI_BAD);
	/* Nine deep. */
	assert_int_equal(RULE(&t, 0x1000, &r, 10, 10, 10, 10, 10, 10, 10, 10),
			 TICKMAP_CFI_OK);
	assert_int_equal(
		RULE(&t, 0x1000, &r, 10, 10, 10, 10, 10, 10, 10, 10, 10),
		TICKMAP_CFI_BAD);
	/* The damage lies behind the row: it does not matter. */
	assert_int_equal(RULE(&t, 0x1000, &r, 0x41, 0x3f), TICKMAP_CFI_OK);
	tickmap_cfi_done(&t.cfi);
}

/* ---- Walks over such tables ---- */

static bool find_table(void *context, uint64_t avma,
		       struct tickmap_unwind_module *ret_module)
{
	ret_module->cfi = context;
	ret_module->frame_pointer = true;
	return avma >= 0x1000 && avma < 0x2000;
}

static enum tickmap_unwind_end walk_words(struct table *t,
					  const uint64_t *words, size_t size,
					  uint64_t rbp, size_t *ret_count)
{
	struct tickmap_unwinder *unwinder = tickmap_unwinder_new();
	struct tickmap_unwind_space space = { 1, &t->cfi, find_table };
	struct tickmap_unwind_input input = {
		.regs = { [TICKMAP_RSP] = 0x7000,
			  [TICKMAP_RIP] = 0x1000,
			  [TICKMAP_RBP] = rbp,
			  [TICKMAP_RAX] = 0x7000 },
		.stack = (const uint8_t *)words,
		.stack_size = size,
		.stack_at = 0x7000,
	};
	uint64_t ips[8];
	enum tickmap_unwind_end end;

	*ret_count =
		tickmap_unwind_walk(unwinder, &space, &input, ips, 8, &end);
	assert_true(*ret_count >= 1 && *ret_count <= 8);
	tickmap_unwinder_free(unwinder);
	return end;
}

static void unknown_registers_carry_no_frame(void **state)
{
	/* cfa by rax: the leaf's is known, its caller's is not. */
	static const uint8_t by_rax[] = { 0x0c, 0, 16 };
	static const uint64_t words[] = { 0, 0x1010, 0, 0 };
	static struct table t;
	struct tickmap_rule r;
	size_t count;

	(void)state;
	rule_of(&t, by_rax, sizeof(by_rax), 0x1000, &r);
	assert_int_equal(walk_words(&t, words, sizeof(words), 0, &count),
			 TICKMAP_END_BAD_STACK);
	assert_int_equal(count, 2);
	tickmap_cfi_done(&t.cfi);
}

static void walks_end_for_the_reason_there_is(void **state)
{
	static const uint64_t to_zero[] = { 0x1010, 0, 0, 0 };
	static const uint64_t outside[] = { 0x9999, 0, 0, 0 };
	static const uint8_t none[] = { 0x07, 16 };	/* ra undefined */
	static const uint8_t stays[] = { 0x0c, 7, 0 };	/* cfa = rsp */
	static const uint8_t same[] = { 0x08, 16 };	/* ra is the same */
	static const uint8_t below[] = { 0x05, 16, 3 }; /* ra at cfa - 24 */
	static struct table t;
	struct tickmap_rule r;
	size_t n;

	(void)state;
	rule_of(&t, NULL, 0, 0x1000, &r);
	assert_int_equal(walk_words(&t, to_zero, 32, 0, &n),
			 TICKMAP_END_COMPLETE);
	assert_int_equal(n, 2);
	assert_int_equal(walk_words(&t, to_zero, 8, 0, &n),
			 TICKMAP_END_STACK_SHORT);
	assert_int_equal(n, 2);
	assert_int_equal(walk_words(&t, to_zero, 7, 0, &n),
			 TICKMAP_END_STACK_SHORT);
	assert_int_equal(n, 1);
	assert_int_equal(walk_words(&t, outside, 32, 0, &n),
			 TICKMAP_END_NO_CODE);
	assert_int_equal(n, 2);
	rule_of(&t, none, sizeof(none), 0x1000, &r);
	assert_int_equal(walk_words(&t, to_zero, 32, 0, &n),
			 TICKMAP_END_COMPLETE);
	assert_int_equal(n, 1);
	rule_of(&t, stays, sizeof(stays), 0x1000, &r);
	assert_int_equal(walk_words(&t, to_zero, 32, 0, &n),
			 TICKMAP_END_BAD_STACK);
	rule_of(&t, below, sizeof(below), 0x1000, &r);
	assert_int_equal(walk_words(&t, to_zero, 32, 0, &n),
			 TICKMAP_END_BAD_STACK);
	rule_of(&t, same, sizeof(same), 0x1000, &r);
	assert_int_equal(walk_words(&t, to_zero, 32, 0, &n),
			 TICKMAP_END_BAD_RULE);
	tickmap_cfi_done(&t.cfi);
}

static void a_frame_pointer_is_believed_only_if_sane(void **state)
{
	/* 0x1000 has no rule here; rbp leads to the words at 0x7010 */
	static const uint64_t good[] = { 1, 1, 0x7020, 0x1500, 0, 0 };
	static const uint64_t astray[] = { 1, 1, 0x7020, 0x9999, 0, 0 };
	static const uint64_t loops[] = { 1, 1, 0x7010, 0x1500, 0, 0 };
	static struct table t;
	size_t n;

	(void)state;
	t.size = 0;
	open_table(&t);
	assert_int_equal(walk_words(&t, good, 48, 0x7010, &n),
			 TICKMAP_END_COMPLETE);
	assert_int_equal(n, 2);
	assert_int_equal(walk_words(&t, astray, 48, 0x7010, &n),
			 TICKMAP_END_NO_RULE);
	assert_int_equal(n, 1);
	assert_int_equal(walk_words(&t, loops, 48, 0x7010, &n),
			 TICKMAP_END_NO_RULE);
	assert_int_equal(n, 2);
	assert_int_equal(walk_words(&t, good, 48, 0x7012, &n),
			 TICKMAP_END_NO_RULE);
	assert_int_equal(walk_words(&t, good, 48, 0x6ff8, &n),
			 TICKMAP_END_NO_RULE);
	assert_int_equal(walk_words(&t, good, 48, 0, &n), TICKMAP_END_NO_RULE);
	assert_int_equal(walk_words(&t, good, 48, UINT64_MAX - 7, &n),
			 TICKMAP_END_NO_RULE);
	/* Just behind the copy: the stack goes on there. */
	assert_int_equal(walk_words(&t, good, 48, 0x7028, &n),
			 TICKMAP_END_STACK_SHORT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_pointer_encoding_finds_the_function),
		cmocka_unit_test(meaningless_addresses_are_passed_over),
		cmocka_unit_test(versions_and_augmentations_are_read),
		cmocka_unit_test(a_hole_between_functions_has_no_rule),
		cmocka_unit_test(what_stands_before_damage_is_kept),
		cmocka_unit_test(a_range_may_reach_the_top_of_memory),
		cmocka_unit_test(a_header_is_used_when_it_is_sane),
		cmocka_unit_test(a_header_that_lies_is_dropped),
		cmocka_unit_test(rows_follow_the_program),
		cmocka_unit_test(every_operation_sets_its_rule),
		cmocka_unit_test(programs_that_make_no_sense_are_refused),
		cmocka_unit_test(unknown_registers_carry_no_frame),
		cmocka_unit_test(walks_end_for_the_reason_there_is),
		cmocka_unit_test(a_frame_pointer_is_believed_only_if_sane),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

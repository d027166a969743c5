/* SPDX-License-Identifier: MIT */
#include "unwind/x86_64/expression.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

static const struct tickmap_x86_64_state some_state = {
	.reg = { [TICKMAP_RAX] = 100,
		 [TICKMAP_RSP] = 0x7000,
		 [TICKMAP_R10] = 0x7008,
		 [TICKMAP_RIP] = 0x401b },
	.known = 1 << TICKMAP_RAX | 1 << TICKMAP_RSP | 1 << TICKMAP_R10 |
		 1 << TICKMAP_RIP,
};
static const uint64_t some_words[] = { 11, 0x7000, 33 };

static enum tickmap_step compute(const uint8_t *code, size_t size,
				 uint64_t *value)
{
	struct tickmap_stack stack = { (const uint8_t *)some_words,
				       sizeof(some_words), 0x7000 };
	uint64_t initial = 5;

	return tickmap_x86_64_expression(tickmap_bytes_of(code, size),
					 &some_state, &stack, &initial, value);
}

#define COMPUTES(want, ...)                                                    \
	do {                                                                   \
		uint64_t value = 0;                                            \
		assert_int_equal(                                              \
			compute((const uint8_t[]) { __VA_ARGS__ },             \
				sizeof((const uint8_t[]) { __VA_ARGS__ }),     \
				&value),                                       \
			TICKMAP_STEP_OK);                                      \
		assert_int_equal(value, (uint64_t)(want));                     \
	} while (0)

#define ENDS(want, ...)                                                        \
	do {                                                                   \
		uint64_t value = 0;                                            \
		assert_int_equal(                                              \
			compute((const uint8_t[]) { __VA_ARGS__ },             \
				sizeof((const uint8_t[]) { __VA_ARGS__ }),     \
				&value),                                       \
			want);                                                 \
	} while (0)

static void expressions_compute(void **state)
{
	(void)state;
	COMPUTES(5, 0x96);
	COMPUTES(31, 0x4f);
	COMPUTES(200, 0x08, 200);
	COMPUTES(-56, 0x09, 200);
	COMPUTES(0x8001, 0x0a, 1, 0x80);
	COMPUTES(-0x7fff, 0x0b, 1, 0x80);
	COMPUTES(0x80000001, 0x0c, 1, 0, 0, 0x80);
	COMPUTES(-0x7fffffff, 0x0d, 1, 0, 0, 0x80);
	COMPUTES(0x100000000000000, 0x0e, 0, 0, 0, 0, 0, 0, 0, 1);
	COMPUTES(300, 0x10, 0xac, 2);
	COMPUTES(-2, 0x11, 0x7e);
	COMPUTES(10, 0x12, 0x22);		   /* dup, plus */
	COMPUTES(5, 0x31, 0x13);		   /* lit1, drop */
	COMPUTES(5, 0x31, 0x14);		   /* over */
	COMPUTES(5, 0x31, 0x32, 0x15, 2);	   /* pick 2 */
	COMPUTES(-4, 0x31, 0x16, 0x1c);		   /* swap, minus */
	COMPUTES(1, 0x31, 0x32, 0x17);		   /* rot: 2 5 1 */
	COMPUTES(2, 0x09, 0xfe, 0x19);		   /* abs */
	COMPUTES(4, 0x36, 0x1a);		   /* 5 and 6 */
	COMPUTES(35, 0x37, 0x1e);		   /* mul */
	COMPUTES(-5, 0x1f);			   /* neg */
	COMPUTES(-6, 0x20);			   /* not */
	COMPUTES(7, 0x32, 0x21);		   /* or */
	COMPUTES(305, 0x23, 0xac, 2);		   /* plus_uconst */
	COMPUTES(20, 0x32, 0x24);		   /* shl */
	COMPUTES(0, 0x08, 64, 0x24);		   /* all bits out */
	COMPUTES(2, 0x31, 0x25);		   /* shr */
	COMPUTES(-1, 0x09, 0xfe, 0x31, 0x26);	   /* shra */
	COMPUTES(6, 0x33, 0x27);		   /* xor */
	COMPUTES(1, 0x35, 0x29);		   /* eq */
	COMPUTES(1, 0x35, 0x2a);		   /* ge */
	COMPUTES(0, 0x35, 0x2b);		   /* gt */
	COMPUTES(1, 0x35, 0x2c);		   /* le */
	COMPUTES(0, 0x35, 0x2d);		   /* lt */
	COMPUTES(0, 0x35, 0x2e);		   /* ne */
	COMPUTES(0, 0x09, 0xff, 0x2d);		   /* 5 < -1: signed */
	COMPUTES(100, 0x50);			   /* reg0 */
	COMPUTES(99, 0x70, 0x7f);		   /* breg0 -1 */
	COMPUTES(0x7010, 0x92, 10, 8);		   /* bregx r10 + 8 */
	COMPUTES(11, 0x77, 0, 0x06);		   /* *rsp */
	COMPUTES(11, 0x7a, 0, 0x06, 0x06);	   /* **r10 */
	COMPUTES(7, 0x37, 0x2f, 1, 0, 0x38);	   /* skip over lit8 */
	COMPUTES(7, 0x37, 0x31, 0x28, 1, 0, 0x38); /* bra, taken */
	COMPUTES(8, 0x37, 0x30, 0x28, 1, 0, 0x38); /* bra, not taken */
	/* .plt: rsp + 8 + ((rip & 15) >= 11) * 8 */
	COMPUTES(0x7010, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24,
		 0x22);
}

static void expressions_that_make_no_sense_end(void **state)
{
	uint8_t deep[64];

	(void)state;
	ENDS(TICKMAP_STEP_BAD_RULE, 0x13); /* nothing left */
	ENDS(TICKMAP_STEP_BAD_RULE, 0x13, 0x13);
	ENDS(TICKMAP_STEP_BAD_RULE, 0xff);
	ENDS(TICKMAP_STEP_BAD_RULE, 0x1b);	       /* div */
	ENDS(TICKMAP_STEP_BAD_RULE, 0x0c, 1);	       /* cut */
	ENDS(TICKMAP_STEP_BAD_RULE, 0x15, 9);	       /* pick too deep */
	ENDS(TICKMAP_STEP_BAD_RULE, 0x2f, 0xfd, 0xff); /* for ever */
	ENDS(TICKMAP_STEP_BAD_RULE, 0x2f, 0xff, 0x7f); /* out */
	ENDS(TICKMAP_STEP_BAD_RULE, 0x2f, 0x00, 0x80);
	ENDS(TICKMAP_STEP_BAD_RULE, 0x61);	    /* reg17 */
	ENDS(TICKMAP_STEP_BAD_STACK, 0x53);	    /* rbx: not known */
	ENDS(TICKMAP_STEP_BELOW, 0x77, 0x78, 0x06); /* below the copy */
	ENDS(TICKMAP_STEP_ABOVE, 0x77, 0x18, 0x06); /* above it */
	ENDS(TICKMAP_STEP_ABOVE, 0x77, 0x11, 0x06); /* half of a word */
	memset(deep, 0x31, sizeof(deep));
	uint64_t value;
	assert_int_equal(compute(deep, 31, &value), TICKMAP_STEP_OK);
	assert_int_equal(compute(deep, 32, &value), TICKMAP_STEP_BAD_RULE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(expressions_compute),
		cmocka_unit_test(expressions_that_make_no_sense_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
#include "unwind/x86_64/expression.h"

enum {
	OP_DEREF = 0x06,
	OP_CONST1U = 0x08,
	OP_CONST1S = 0x09,
	OP_CONST2U = 0x0a,
	OP_CONST2S = 0x0b,
	OP_CONST4U = 0x0c,
	OP_CONST4S = 0x0d,
	OP_CONST8U = 0x0e,
	OP_CONST8S = 0x0f,
	OP_CONSTU = 0x10,
	OP_CONSTS = 0x11,
	OP_DUP = 0x12,
	OP_DROP = 0x13,
	OP_OVER = 0x14,
	OP_PICK = 0x15,
	OP_SWAP = 0x16,
	OP_ROT = 0x17,
	OP_ABS = 0x19,
	OP_AND = 0x1a,
	OP_MINUS = 0x1c,
	OP_MUL = 0x1e,
	OP_NEG = 0x1f,
	OP_NOT = 0x20,
	OP_OR = 0x21,
	OP_PLUS = 0x22,
	OP_PLUS_UCONST = 0x23,
	OP_SHL = 0x24,
	OP_SHR = 0x25,
	OP_SHRA = 0x26,
	OP_XOR = 0x27,
	OP_BRA = 0x28,
	OP_EQ = 0x29,
	OP_GE = 0x2a,
	OP_GT = 0x2b,
	OP_LE = 0x2c,
	OP_LT = 0x2d,
	OP_NE = 0x2e,
	OP_SKIP = 0x2f,
	OP_LIT0 = 0x30,
	OP_LIT31 = 0x4f,
	OP_REG0 = 0x50,
	OP_REG31 = 0x6f,
	OP_BREG0 = 0x70,
	OP_BREG31 = 0x8f,
	OP_BREGX = 0x92,
	OP_NOP = 0x96,
};

enum {
	DEPTH_MAX = 32,
	/* Branches may go back: this bounds a loop. */
	STEPS_MAX = 512,
};

struct machine {
	struct tickmap_bytes b;
	const struct tickmap_x86_64_state *state;
	const struct tickmap_stack *memory;
	enum tickmap_step step; /* the first thing that went wrong */
	unsigned depth;
	uint64_t stack[DEPTH_MAX];
};

static void fail(struct machine *m, enum tickmap_step step)
{
	if (m->step == TICKMAP_STEP_OK)
		m->step = step;
}

static void push(struct machine *m, uint64_t value)
{
	if (m->depth == DEPTH_MAX)
		fail(m, TICKMAP_STEP_BAD_RULE);
	else
		m->stack[m->depth++] = value;
}

static uint64_t pop(struct machine *m)
{
	if (!m->depth) {
		fail(m, TICKMAP_STEP_BAD_RULE);
		return 0;
	}
	return m->stack[--m->depth];
}

static uint64_t pick(struct machine *m, unsigned index)
{
	if (index >= m->depth) {
		fail(m, TICKMAP_STEP_BAD_RULE);
		return 0;
	}
	return m->stack[m->depth - 1 - index];
}

static void push_register(struct machine *m, uint64_t reg, int64_t offset)
{
	if (reg >= TICKMAP_REGS)
		fail(m, TICKMAP_STEP_BAD_RULE);
	else if (!tickmap_state_knows(m->state, (unsigned)reg))
		fail(m, TICKMAP_STEP_BAD_STACK);
	else
		push(m, m->state->reg[reg] + (uint64_t)offset);
}

static void branch(struct machine *m, bool taken)
{
	int16_t offset = (int16_t)tickmap_u16(&m->b);
	uint64_t target = m->b.pos + (uint64_t)(int64_t)offset;

	if (taken && !m->b.failed)
		tickmap_seek(&m->b,
			     target > SIZE_MAX ? SIZE_MAX : (size_t)target);
}

static void rotate(struct machine *m)
{
	uint64_t first = pop(m);
	uint64_t second = pop(m);
	uint64_t third = pop(m);

	push(m, first);
	push(m, third);
	push(m, second);
}

static void swap(struct machine *m)
{
	uint64_t first = pop(m);
	uint64_t second = pop(m);

	push(m, first);
	push(m, second);
}

static void dereference(struct machine *m)
{
	uint64_t word = 0;
	enum tickmap_step step = tickmap_stack_read(m->memory, pop(m), &word);

	if (step != TICKMAP_STEP_OK)
		fail(m, step);
	push(m, word);
}

/* False: not a constant. */
static bool run_constant(struct machine *m, uint8_t op)
{
	switch (op) {
	case OP_CONST1U:
		push(m, tickmap_u8(&m->b));
		return true;
	case OP_CONST1S:
		push(m, (uint64_t)(int8_t)tickmap_u8(&m->b));
		return true;
	case OP_CONST2U:
		push(m, tickmap_u16(&m->b));
		return true;
	case OP_CONST2S:
		push(m, (uint64_t)(int16_t)tickmap_u16(&m->b));
		return true;
	case OP_CONST4U:
		push(m, tickmap_u32(&m->b));
		return true;
	case OP_CONST4S:
		push(m, (uint64_t)(int32_t)tickmap_u32(&m->b));
		return true;
	case OP_CONST8U:
	case OP_CONST8S:
		push(m, tickmap_u64(&m->b));
		return true;
	case OP_CONSTU:
		push(m, tickmap_uleb(&m->b));
		return true;
	case OP_CONSTS:
		push(m, (uint64_t)tickmap_sleb(&m->b));
		return true;
	default:
		return false;
	}
}

static uint64_t shifted(uint8_t op, uint64_t value, uint64_t by)
{
	int64_t sign = (int64_t)value < 0 ? -1 : 0;

	if (by > 63)
		return op == OP_SHRA ? (uint64_t)sign : 0;
	if (op == OP_SHL)
		return value << by;
	return op == OP_SHR ? value >> by : (uint64_t)((int64_t)value >> by);
}

/* False: not an operation on two values. */
static bool run_binary(struct machine *m, uint8_t op)
{
	if (op != OP_AND && op != OP_MINUS && op != OP_MUL && op != OP_OR &&
	    op != OP_PLUS && (op < OP_SHL || op > OP_XOR) &&
	    (op < OP_EQ || op > OP_NE))
		return false;
	uint64_t b = pop(m);
	uint64_t a = pop(m);
	int64_t sb = (int64_t)b, sa = (int64_t)a;
	switch (op) {
	case OP_AND:
		push(m, a & b);
		break;
	case OP_MINUS:
		push(m, a - b);
		break;
	case OP_MUL:
		push(m, a * b);
		break;
	case OP_OR:
		push(m, a | b);
		break;
	case OP_PLUS:
		push(m, a + b);
		break;
	case OP_XOR:
		push(m, a ^ b);
		break;
	case OP_EQ:
		push(m, a == b);
		break;
	case OP_GE:
		push(m, sa >= sb);
		break;
	case OP_GT:
		push(m, sa > sb);
		break;
	case OP_LE:
		push(m, sa <= sb);
		break;
	case OP_LT:
		push(m, sa < sb);
		break;
	case OP_NE:
		push(m, a != b);
		break;
	default:
		push(m, shifted(op, a, b));
	}
	return true;
}

static void run_other(struct machine *m, uint8_t op)
{
	uint64_t value;

	switch (op) {
	case OP_NOP:
		break;
	case OP_DEREF:
		dereference(m);
		break;
	case OP_DUP:
		push(m, pick(m, 0));
		break;
	case OP_DROP:
		pop(m);
		break;
	case OP_OVER:
		push(m, pick(m, 1));
		break;
	case OP_PICK:
		push(m, pick(m, tickmap_u8(&m->b)));
		break;
	case OP_SWAP:
		swap(m);
		break;
	case OP_ROT:
		rotate(m);
		break;
	case OP_ABS:
		value = pop(m);
		push(m, (int64_t)value < 0 ? 0 - value : value);
		break;
	case OP_NEG:
		push(m, 0 - pop(m));
		break;
	case OP_NOT:
		push(m, ~pop(m));
		break;
	case OP_PLUS_UCONST:
		value = pop(m);
		push(m, value + tickmap_uleb(&m->b));
		break;
	case OP_BRA:
		branch(m, pop(m) != 0);
		break;
	case OP_SKIP:
		branch(m, true);
		break;
	case OP_BREGX:
		value = tickmap_uleb(&m->b);
		push_register(m, value, tickmap_sleb(&m->b));
		break;
	default:
		fail(m, TICKMAP_STEP_BAD_RULE);
	}
}

static void run_one(struct machine *m)
{
	uint8_t op = tickmap_u8(&m->b);

	if (op >= OP_LIT0 && op <= OP_LIT31)
		push(m, op - OP_LIT0);
	else if (op >= OP_REG0 && op <= OP_REG31)
		push_register(m, op - OP_REG0, 0);
	else if (op >= OP_BREG0 && op <= OP_BREG31)
		push_register(m, op - OP_BREG0, tickmap_sleb(&m->b));
	else if (!run_constant(m, op) && !run_binary(m, op))
		run_other(m, op);
}

enum tickmap_step
tickmap_x86_64_expression(struct tickmap_bytes code,
			  const struct tickmap_x86_64_state *state,
			  const struct tickmap_stack *stack,
			  const uint64_t *initial, uint64_t *ret_value)
{
	struct machine m;

	m.b = code;
	m.state = state;
	m.memory = stack;
	m.step = TICKMAP_STEP_OK;
	m.depth = 0;
	if (initial)
		push(&m, *initial);
	for (unsigned i = 0; tickmap_bytes_left(&m.b); i++) {
		if (i == STEPS_MAX)
			return TICKMAP_STEP_BAD_RULE;
		run_one(&m);
		if (m.step != TICKMAP_STEP_OK)
			return m.step;
	}
	if (m.b.failed || !m.depth)
		return TICKMAP_STEP_BAD_RULE;
	*ret_value = m.stack[m.depth - 1];
	return TICKMAP_STEP_OK;
}

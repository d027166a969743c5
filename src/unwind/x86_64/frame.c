/* SPDX-License-Identifier: MIT */
#include "unwind/x86_64/frame.h"

#include "unwind/cfi_entry.h"

static const uint8_t slot_reg[TICKMAP_X86_64_SLOTS] = {
	TICKMAP_RBX, TICKMAP_RBP, TICKMAP_R12,
	TICKMAP_R13, TICKMAP_R14, TICKMAP_R15,
};

enum {
	WORD = 8,
	OP_DEREF = 0x06,
	OP_PLUS_UCONST = 0x23,
	OP_LIT0 = 0x30,
	OP_BREG0 = 0x70,
	/* How far above the copy a frame pointer is still believed to be one:
	 * the usual stack limit. */
	STACK_SPAN = 8 << 20,
};

/*
 * The linker's rule for .plt: an entry pushes its number in its first
 * eleven bytes. rsp + 8 + ((rip & 15) >= 11) * 8, the 11 may differ.
 */
static bool compact_plt(const uint8_t *code, size_t size, uint64_t pc,
			struct tickmap_x86_64_frame *frame)
{
	static const uint8_t want[] = { 0x77, 0x08, 0x80, 0x00, 0x3f, 0x1a,
					0,    0x2a, 0x33, 0x24, 0x22 };
	enum { LIMIT_AT = 6 };

	if (size != sizeof(want) || memcmp(code, want, LIMIT_AT) ||
	    memcmp(code + LIMIT_AT + 1, want + LIMIT_AT + 1,
		   sizeof(want) - LIMIT_AT - 1))
		return false;
	unsigned limit = (unsigned)code[LIMIT_AT] - OP_LIT0;
	/* `pc` may be one less than rip: only where that makes no difference,
	 * which is so for every instruction of an entry. */
	bool pushed = (pc & 15) >= limit;
	if (limit > 15 || pushed != (((pc + 1) & 15) >= limit))
		return false;
	frame->form = TICKMAP_FORM_REGISTER;
	frame->cfa_register = TICKMAP_RSP;
	frame->cfa_offset = pushed ? 2 * WORD : WORD;
	return true;
}

/* Realigned frames: *(reg + offset), and hand-written ones add to that. */
static bool compact_indirect(struct tickmap_bytes b,
			     struct tickmap_x86_64_frame *frame)
{
	unsigned reg = (unsigned)tickmap_u8(&b) - OP_BREG0;
	int64_t offset = tickmap_sleb(&b);
	uint64_t addend = 0;

	if (tickmap_u8(&b) != OP_DEREF)
		return false;
	if (tickmap_bytes_left(&b)) {
		if (tickmap_u8(&b) != OP_PLUS_UCONST)
			return false;
		addend = tickmap_uleb(&b);
	}
	if (b.failed || tickmap_bytes_left(&b) || reg >= TICKMAP_REGS ||
	    offset != (int32_t)offset || addend > INT16_MAX)
		return false;
	frame->form = TICKMAP_FORM_INDIRECT;
	frame->cfa_register = (uint8_t)reg;
	frame->cfa_offset = (int32_t)offset;
	frame->cfa_addend = (int16_t)addend;
	return true;
}

static bool compact_cfa(const struct tickmap_cfi *cfi,
			const struct tickmap_rule *rule, uint64_t pc,
			struct tickmap_x86_64_frame *frame)
{
	if (!rule->cfa_is_expression) {
		frame->form = TICKMAP_FORM_REGISTER;
		frame->cfa_register = rule->cfa_register;
		frame->cfa_offset = (int32_t)rule->cfa_offset;
		return rule->cfa_offset == frame->cfa_offset;
	}
	struct tickmap_bytes b = tickmap_cfi_bytes(cfi, rule->cfa_expression,
						   cfi->eh_frame_size);
	struct tickmap_bytes code = tickmap_sub(&b, rule->cfa_expression_size);
	return !code.failed && (compact_plt(code.base, code.size, pc, frame) ||
				compact_indirect(code, frame));
}

/* A frame that is found by its register keeps the others beside that: the
 * slot's address is reg + n. */
static bool slot_by_register(const struct tickmap_cfi *cfi,
			     const struct tickmap_rule *rule, unsigned reg,
			     const struct tickmap_x86_64_frame *frame,
			     int64_t *ret_offset)
{
	struct tickmap_bytes b = tickmap_cfi_bytes(
		cfi, (size_t)rule->reg[reg].offset, cfi->eh_frame_size);
	struct tickmap_bytes code = tickmap_sub(&b, rule->reg[reg].size);
	unsigned op = tickmap_u8(&code);

	*ret_offset = tickmap_sleb(&code);
	return !code.failed && !tickmap_bytes_left(&code) &&
	       op == OP_BREG0 + (unsigned)frame->cfa_register;
}

static bool put_slot(struct tickmap_x86_64_frame *frame, unsigned i,
		     int64_t offset)
{
	if (offset > 0 || offset < -UINT16_MAX || offset % WORD)
		return false;
	frame->slot[i] = (int16_t)(offset / WORD);
	frame->saved |= (uint8_t)(1u << i);
	if (-offset > frame->span)
		frame->span = (uint16_t)-offset;
	return true;
}

static bool compact_slot(const struct tickmap_cfi *cfi,
			 const struct tickmap_rule *rule, unsigned i,
			 struct tickmap_x86_64_frame *frame)
{
	unsigned reg = slot_reg[i];
	int64_t offset;

	switch (rule->reg[reg].kind) {
	case TICKMAP_RULE_SAME:
		return true;
	case TICKMAP_RULE_UNDEFINED:
		frame->lost |= (uint8_t)(1u << i);
		return true;
	case TICKMAP_RULE_OFFSET:
		return frame->form != TICKMAP_FORM_REALIGNED &&
		       put_slot(frame, i, rule->reg[reg].offset);
	case TICKMAP_RULE_EXPRESSION:
		/* The first one decides, all must agree. */
		if (frame->form == TICKMAP_FORM_INDIRECT && !frame->saved)
			frame->form = TICKMAP_FORM_REALIGNED;
		return frame->form == TICKMAP_FORM_REALIGNED &&
		       slot_by_register(cfi, rule, reg, frame, &offset) &&
		       put_slot(frame, i, offset);
	default:
		return false;
	}
}

static bool compact_registers(const struct tickmap_cfi *cfi,
			      const struct tickmap_rule *rule,
			      struct tickmap_x86_64_frame *frame)
{
	uint32_t simple = 1u << TICKMAP_RIP;

	if (rule->reg[TICKMAP_RIP].kind != TICKMAP_RULE_OFFSET ||
	    rule->reg[TICKMAP_RIP].offset != -WORD)
		return false;
	for (unsigned i = 0; i < TICKMAP_X86_64_SLOTS; i++) {
		simple |= 1u << slot_reg[i];
		if (!compact_slot(cfi, rule, i, frame))
			return false;
	}
	/* Any word on one of the others is worth the slow way. */
	for (unsigned reg = 0; reg < TICKMAP_REGS; reg++) {
		if (!(simple >> reg & 1) &&
		    rule->reg[reg].kind != TICKMAP_RULE_SAME)
			return false;
	}
	return true;
}

struct tickmap_x86_64_frame
tickmap_x86_64_compact(const struct tickmap_cfi *cfi,
		       const struct tickmap_rule *rule, uint64_t pc)
{
	struct tickmap_x86_64_frame frame = { 0 };

	if (rule->reg[TICKMAP_RIP].kind == TICKMAP_RULE_UNDEFINED) {
		frame.form = TICKMAP_FORM_OUTERMOST;
	} else if (rule->signal_frame || !compact_cfa(cfi, rule, pc, &frame) ||
		   !compact_registers(cfi, rule, &frame)) {
		frame = (struct tickmap_x86_64_frame) {
			.form = TICKMAP_FORM_GENERAL
		};
	}
	return frame;
}

/* A mask of slots as one of registers. */
static uint32_t slot_mask(unsigned slots)
{
	_Static_assert(TICKMAP_RBX == 3 && TICKMAP_RBP == 6 &&
			       TICKMAP_R12 == 12 && TICKMAP_R15 == 15,
		       "the shifts below");
	return (slots & 1) << 3 | (slots & 2) << 5 | (slots & 0x3c) << 10;
}

/* Some of the save area lies outside the copy: word by word. */
static void reload_carefully(const struct tickmap_x86_64_frame *frame,
			     const struct tickmap_stack *stack, uint64_t base,
			     struct tickmap_x86_64_state *state)
{
	for (unsigned left = frame->saved; left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctz(left);
		tickmap_state_reload(state, stack, slot_reg[i],
				     base + (uint64_t)(frame->slot[i] * WORD));
	}
}

/*
 * The usual case: all of the save area is there. Every slot is read, the unused
 * ones (0) too, so that nothing depends on which registers a frame saves and no
 * branch is mispredicted.
 */
static void reload(const struct tickmap_x86_64_frame *frame,
		   const struct tickmap_stack *stack, uint64_t base,
		   struct tickmap_x86_64_state *state)
{
	uint64_t offset = base - stack->at;

	if (base < stack->at || offset < frame->span || stack->size < WORD ||
	    offset > stack->size - WORD) {
		reload_carefully(frame, stack, base, state);
		return;
	}
	const uint8_t *at = stack->bytes + offset;
#pragma GCC unroll 6
	for (unsigned i = 0; i < TICKMAP_X86_64_SLOTS; i++) {
		uint64_t word, *reg = &state->reg[slot_reg[i]];
		memcpy(&word, at + frame->slot[i] * WORD, sizeof(word));
		*reg = frame->saved >> i & 1 ? word : *reg;
	}
	state->known |= slot_mask(frame->saved);
}

static enum tickmap_step step_by_cfa(const struct tickmap_x86_64_frame *frame,
				     const struct tickmap_stack *stack,
				     struct tickmap_x86_64_state *state)
{
	uint64_t return_address, base;
	enum tickmap_step step;

	if (!tickmap_state_knows(state, frame->cfa_register))
		return TICKMAP_STEP_BAD_STACK;
	base = state->reg[frame->cfa_register];
	uint64_t cfa = base + (uint64_t)(int64_t)frame->cfa_offset;
	if (frame->form != TICKMAP_FORM_REGISTER) {
		step = tickmap_stack_read(stack, cfa, &cfa);
		if (step != TICKMAP_STEP_OK)
			return step;
		cfa += (uint64_t)(int64_t)frame->cfa_addend;
	}
	if (frame->form != TICKMAP_FORM_REALIGNED)
		base = cfa;
	if (cfa <= state->reg[TICKMAP_RSP])
		return TICKMAP_STEP_BAD_STACK;
	step = tickmap_stack_read(stack, cfa - WORD, &return_address);
	if (step != TICKMAP_STEP_OK)
		return step;

	state->known &= TICKMAP_X86_64_PRESERVED;
	if (frame->saved)
		reload(frame, stack, base, state);
	state->known &= ~slot_mask(frame->lost);
	state->known |= 1u << TICKMAP_RSP | 1u << TICKMAP_RIP;
	state->reg[TICKMAP_RSP] = cfa;
	state->reg[TICKMAP_RIP] = return_address;
	return TICKMAP_STEP_OK;
}

/* rbp points to the caller's rbp, and the return address lies above it. */
static enum tickmap_step
step_by_frame_pointer(const struct tickmap_stack *stack,
		      struct tickmap_x86_64_state *state)
{
	uint64_t rbp = state->reg[TICKMAP_RBP];
	uint64_t return_address;

	if (!tickmap_state_knows(state, TICKMAP_RBP) ||
	    rbp < state->reg[TICKMAP_RSP] || rbp % WORD)
		return TICKMAP_STEP_NO_RULE;
	if (tickmap_stack_read(stack, rbp + WORD, &return_address) !=
	    TICKMAP_STEP_OK)
		return rbp - stack->at < stack->size + STACK_SPAN
			       ? TICKMAP_STEP_ABOVE
			       : TICKMAP_STEP_NO_RULE;
	if (tickmap_stack_read(stack, rbp, &state->reg[TICKMAP_RBP]) !=
	    TICKMAP_STEP_OK)
		return TICKMAP_STEP_NO_RULE;
	/* Where such code saves the other registers nobody says. */
	state->known =
		1u << TICKMAP_RSP | 1u << TICKMAP_RBP | 1u << TICKMAP_RIP;
	state->reg[TICKMAP_RSP] = rbp + 2 * WORD;
	state->reg[TICKMAP_RIP] = return_address;
	return TICKMAP_STEP_OK;
}

enum tickmap_step tickmap_x86_64_step(const struct tickmap_x86_64_frame *frame,
				      const struct tickmap_stack *stack,
				      struct tickmap_x86_64_state *state)
{
	switch (frame->form) {
	case TICKMAP_FORM_REGISTER:
	case TICKMAP_FORM_INDIRECT:
	case TICKMAP_FORM_REALIGNED:
		return step_by_cfa(frame, stack, state);
	case TICKMAP_FORM_OUTERMOST:
		return TICKMAP_STEP_COMPLETE;
	case TICKMAP_FORM_FRAME_POINTER:
		return step_by_frame_pointer(stack, state);
	case TICKMAP_FORM_NO_RULE:
		return TICKMAP_STEP_NO_RULE;
	default:
		return TICKMAP_STEP_BAD_RULE;
	}
}

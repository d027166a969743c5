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
	    offset != (int32_t)offset || addend > INT32_MAX)
		return false;
	frame->form = TICKMAP_FORM_INDIRECT;
	frame->cfa_register = (uint8_t)reg;
	frame->cfa_offset = (int32_t)offset;
	frame->cfa_addend = (int32_t)addend;
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

static bool compact_slot(const struct tickmap_rule *rule, unsigned i,
			 struct tickmap_x86_64_frame *frame)
{
	unsigned reg = slot_reg[i];
	int32_t offset = rule->reg[reg].offset;

	switch (rule->reg[reg].kind) {
	case TICKMAP_RULE_SAME:
		return true;
	case TICKMAP_RULE_UNDEFINED:
		frame->lost |= (uint8_t)(1u << i);
		return true;
	case TICKMAP_RULE_OFFSET:
		frame->slot[i] = (int16_t)(offset / WORD);
		frame->saved |= (uint8_t)(1u << i);
		return frame->slot[i] * WORD == offset;
	default:
		return false;
	}
}

static bool compact_registers(const struct tickmap_rule *rule,
			      struct tickmap_x86_64_frame *frame)
{
	uint32_t simple = 1u << TICKMAP_RIP;

	if (rule->reg[TICKMAP_RIP].kind != TICKMAP_RULE_OFFSET ||
	    rule->reg[TICKMAP_RIP].offset != -WORD)
		return false;
	for (unsigned i = 0; i < TICKMAP_X86_64_SLOTS; i++) {
		simple |= 1u << slot_reg[i];
		if (!compact_slot(rule, i, frame))
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
		   !compact_registers(rule, &frame)) {
		frame = (struct tickmap_x86_64_frame) {
			.form = TICKMAP_FORM_GENERAL
		};
	}
	return frame;
}

static enum tickmap_step step_by_cfa(const struct tickmap_x86_64_frame *frame,
				     const struct tickmap_stack *stack,
				     struct tickmap_x86_64_state *state)
{
	uint64_t return_address;
	enum tickmap_step step;

	if (!tickmap_state_knows(state, frame->cfa_register))
		return TICKMAP_STEP_BAD_STACK;
	uint64_t cfa = state->reg[frame->cfa_register] +
		       (uint64_t)(int64_t)frame->cfa_offset;
	if (frame->form == TICKMAP_FORM_INDIRECT) {
		step = tickmap_stack_read(stack, cfa, &cfa);
		if (step != TICKMAP_STEP_OK)
			return step;
		cfa += (uint64_t)(int64_t)frame->cfa_addend;
	}
	if (cfa <= state->reg[TICKMAP_RSP])
		return TICKMAP_STEP_BAD_STACK;
	step = tickmap_stack_read(stack, cfa - WORD, &return_address);
	if (step != TICKMAP_STEP_OK)
		return step;

	state->known &= TICKMAP_X86_64_PRESERVED;
	state->known |= 1u << TICKMAP_RSP | 1u << TICKMAP_RIP;
	for (unsigned left = frame->saved; left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctz(left);
		tickmap_state_reload(state, stack, slot_reg[i],
				     cfa + (uint64_t)(frame->slot[i] * WORD));
	}
	for (unsigned left = frame->lost; left; left &= left - 1)
		state->known &= ~(1u << slot_reg[__builtin_ctz(left)]);
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

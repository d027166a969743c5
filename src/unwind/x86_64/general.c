/* SPDX-License-Identifier: MIT */
#include "unwind/x86_64/general.h"

#include "unwind/cfi_entry.h"
#include "unwind/x86_64/expression.h"

struct frame {
	const struct tickmap_cfi *cfi;
	const struct tickmap_stack *stack;
	const struct tickmap_x86_64_state *state;
	uint64_t cfa;
};

static enum tickmap_step evaluate(const struct frame *frame, uint32_t at,
				  uint32_t size, const uint64_t *initial,
				  uint64_t *ret_value)
{
	struct tickmap_bytes b =
		tickmap_cfi_bytes(frame->cfi, at, frame->cfi->eh_frame_size);

	return tickmap_x86_64_expression(tickmap_sub(&b, size), frame->state,
					 frame->stack, initial, ret_value);
}

static enum tickmap_step find_cfa(struct frame *frame,
				  const struct tickmap_rule *rule)
{
	if (rule->cfa_is_expression)
		return evaluate(frame, rule->cfa_expression,
				rule->cfa_expression_size, NULL, &frame->cfa);
	if (!tickmap_state_knows(frame->state, rule->cfa_register))
		return TICKMAP_STEP_BAD_STACK;
	frame->cfa = frame->state->reg[rule->cfa_register] +
		     (uint64_t)rule->cfa_offset;
	return TICKMAP_STEP_OK;
}

/* The caller's value of a register, by a rule that says where it is. */
static enum tickmap_step find_value(const struct frame *frame,
				    const struct tickmap_rule *rule,
				    unsigned reg, uint64_t *ret_value)
{
	int32_t offset = rule->reg[reg].offset;
	uint64_t at = frame->cfa + (uint64_t)(int64_t)offset;
	enum tickmap_step step = TICKMAP_STEP_OK;

	switch (rule->reg[reg].kind) {
	case TICKMAP_RULE_VAL_OFFSET:
		*ret_value = at;
		return TICKMAP_STEP_OK;
	case TICKMAP_RULE_REGISTER:
		if (!tickmap_state_knows(frame->state, (unsigned)offset))
			return TICKMAP_STEP_BAD_STACK;
		*ret_value = frame->state->reg[offset];
		return TICKMAP_STEP_OK;
	case TICKMAP_RULE_VAL_EXPRESSION:
		return evaluate(frame, (uint32_t)offset, rule->reg[reg].size,
				&frame->cfa, ret_value);
	case TICKMAP_RULE_EXPRESSION:
		step = evaluate(frame, (uint32_t)offset, rule->reg[reg].size,
				&frame->cfa, &at);
		break;
	case TICKMAP_RULE_OFFSET:
		break;
	default:
		return TICKMAP_STEP_BAD_RULE;
	}
	if (step != TICKMAP_STEP_OK)
		return step;
	return tickmap_stack_read(frame->stack, at, ret_value);
}

/* What cannot be found is unknown from here on: it may never be needed. */
static void find_register(const struct frame *frame,
			  const struct tickmap_rule *rule, unsigned reg,
			  struct tickmap_x86_64_state *next)
{
	bool kept = rule->signal_frame || TICKMAP_X86_64_PRESERVED >> reg & 1;
	enum tickmap_step step;

	switch (rule->reg[reg].kind) {
	case TICKMAP_RULE_SAME:
		if (reg == TICKMAP_RSP)
			next->reg[reg] = frame->cfa;
		else if (!kept)
			next->known &= ~(1u << reg);
		break;
	case TICKMAP_RULE_UNDEFINED:
		next->known &= ~(1u << reg);
		break;
	default:
		step = find_value(frame, rule, reg, &next->reg[reg]);
		if (step == TICKMAP_STEP_OK)
			next->known |= 1u << reg;
		else if (step != TICKMAP_STEP_BELOW) /* see state.h: popped */
			next->known &= ~(1u << reg);
	}
}

/*
 * Callers lie higher. A signal handler may run on a stack of its own, anywhere;
 * and nothing of a leaf is on the stack while its return address is kept in a
 * register (vfork).
 */
static bool makes_progress(const struct tickmap_rule *rule,
			   const struct tickmap_x86_64_state *state,
			   const struct tickmap_x86_64_state *next)
{
	uint64_t sp = state->reg[TICKMAP_RSP];
	uint64_t next_sp = next->reg[TICKMAP_RSP];

	if (rule->signal_frame)
		return true;
	if (rule->reg[TICKMAP_RIP].kind == TICKMAP_RULE_REGISTER)
		return next_sp >= sp;
	return next_sp > sp;
}

enum tickmap_step tickmap_x86_64_general(const struct tickmap_cfi *cfi,
					 const struct tickmap_rule *rule,
					 const struct tickmap_stack *stack,
					 struct tickmap_x86_64_state *state)
{
	struct tickmap_x86_64_state next = *state;
	struct frame frame = { .cfi = cfi, .stack = stack, .state = state };

	if (rule->reg[TICKMAP_RIP].kind == TICKMAP_RULE_UNDEFINED)
		return TICKMAP_STEP_COMPLETE;
	enum tickmap_step step = find_cfa(&frame, rule);
	if (step != TICKMAP_STEP_OK)
		return step;
	for (unsigned reg = 0; reg < TICKMAP_RIP; reg++)
		find_register(&frame, rule, reg, &next);
	if (!tickmap_state_knows(&next, TICKMAP_RSP) ||
	    !makes_progress(rule, state, &next))
		return TICKMAP_STEP_BAD_STACK;
	step = find_value(&frame, rule, TICKMAP_RIP, &next.reg[TICKMAP_RIP]);
	if (step != TICKMAP_STEP_OK)
		return step;
	next.known |= 1u << TICKMAP_RIP;
	*state = next;
	return TICKMAP_STEP_OK;
}

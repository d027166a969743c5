/* SPDX-License-Identifier: MIT */
#include "unwind/cfi_program.h"

enum {
	CFA_ADVANCE_LOC = 0x40, /* these three keep an operand in six bits */
	CFA_OFFSET = 0x80,
	CFA_RESTORE = 0xc0,
	CFA_HIGH = 0xc0,

	CFA_NOP = 0x00,
	CFA_SET_LOC = 0x01,
	CFA_ADVANCE_LOC1 = 0x02,
	CFA_ADVANCE_LOC2 = 0x03,
	CFA_ADVANCE_LOC4 = 0x04,
	CFA_OFFSET_EXTENDED = 0x05,
	CFA_RESTORE_EXTENDED = 0x06,
	CFA_UNDEFINED = 0x07,
	CFA_SAME_VALUE = 0x08,
	CFA_REGISTER = 0x09,
	CFA_REMEMBER_STATE = 0x0a,
	CFA_RESTORE_STATE = 0x0b,
	CFA_DEF_CFA = 0x0c,
	CFA_DEF_CFA_REGISTER = 0x0d,
	CFA_DEF_CFA_OFFSET = 0x0e,
	CFA_DEF_CFA_EXPRESSION = 0x0f,
	CFA_EXPRESSION = 0x10,
	CFA_OFFSET_EXTENDED_SF = 0x11,
	CFA_DEF_CFA_SF = 0x12,
	CFA_DEF_CFA_OFFSET_SF = 0x13,
	CFA_VAL_OFFSET = 0x14,
	CFA_VAL_OFFSET_SF = 0x15,
	CFA_VAL_EXPRESSION = 0x16,
	CFA_GNU_ARGS_SIZE = 0x2e,
	CFA_GNU_NEGATIVE_OFFSET_EXTENDED = 0x2f,
};

enum {
	REMEMBERED_MAX = 8, /* compilers nest one deep */
	NO_REGISTER = 0xff,
};

struct machine {
	const struct tickmap_cfi *cfi;
	const struct tickmap_cie *cie;
	struct tickmap_bytes b;
	uint64_t pc;
	bool bad;
	bool reached;			    /* the row behind pc has begun */
	const struct tickmap_rule *initial; /* NULL while the CIE runs */
	struct tickmap_rule *row;
	unsigned depth;
	struct tickmap_rule remembered[REMEMBERED_MAX];
};

/* Registers that we do not follow (vectors, flags) are read and forgotten. */
static void set_reg(struct machine *m, uint64_t reg,
		    enum tickmap_rule_kind kind, int64_t offset, uint64_t size)
{
	if (reg >= TICKMAP_REGS)
		return;
	if (offset != (int32_t)offset) {
		m->bad = true;
		return;
	}
	m->row->reg[reg].kind = (uint8_t)kind;
	m->row->reg[reg].offset = (int32_t)offset;
	m->row->reg[reg].size = (uint32_t)size;
}

static void set_cfa(struct machine *m, uint64_t reg, int64_t offset)
{
	if (reg >= TICKMAP_REGS)
		m->bad = true;
	m->row->cfa_is_expression = false;
	m->row->cfa_register = (uint8_t)reg;
	m->row->cfa_offset = offset;
}

/* A change of only one half needs the other one to be there. */
static void set_cfa_offset(struct machine *m, int64_t offset)
{
	if (m->row->cfa_is_expression)
		m->bad = true;
	m->row->cfa_offset = offset;
}

static int64_t scaled(const struct machine *m, uint64_t factored)
{
	return (int64_t)(factored * (uint64_t)m->cie->data_align);
}

static void restore(struct machine *m, uint64_t reg)
{
	if (reg >= TICKMAP_REGS)
		return;
	if (m->initial)
		m->row->reg[reg] = m->initial->reg[reg];
	else
		set_reg(m, reg, TICKMAP_RULE_SAME, 0, 0);
}

static void go_to(struct machine *m, uint64_t location)
{
	if (location < m->row->start || !m->initial) {
		m->bad = true;
	} else if (location > m->pc) {
		m->reached = true;
		if (location < m->row->end)
			m->row->end = location;
	} else {
		m->row->start = location;
	}
}

static void advance(struct machine *m, uint64_t delta)
{
	go_to(m, m->row->start + delta * m->cie->code_align);
}

static void set_location(struct machine *m)
{
	uint64_t location;

	if (tickmap_cfi_pointer(&m->b, m->cfi->eh_frame_at, m->cie->encoding,
				NULL, &location))
		go_to(m, location);
	else
		m->bad = true;
}

static void remember(struct machine *m)
{
	if (m->depth == REMEMBERED_MAX)
		m->bad = true;
	else
		m->remembered[m->depth++] = *m->row;
}

static void recall(struct machine *m)
{
	if (!m->depth) {
		m->bad = true;
		return;
	}
	uint64_t start = m->row->start;
	*m->row = m->remembered[--m->depth];
	m->row->start = start;
}

/* The block's place in the section; its bytes are skipped. */
static size_t take_block(struct machine *m, uint64_t *ret_size)
{
	*ret_size = tickmap_uleb(&m->b);
	size_t at = m->b.pos;
	if (*ret_size > tickmap_bytes_left(&m->b))
		m->bad = true;
	else
		tickmap_take(&m->b, (size_t)*ret_size);
	return at;
}

static void set_expression(struct machine *m, enum tickmap_rule_kind kind)
{
	uint64_t size;
	uint64_t reg = tickmap_uleb(&m->b);
	size_t at = take_block(m, &size);

	set_reg(m, reg, kind, (int64_t)at, size);
}

static void set_cfa_expression(struct machine *m)
{
	uint64_t size;
	size_t at = take_block(m, &size);

	m->row->cfa_is_expression = true;
	m->row->cfa_register = NO_REGISTER;
	m->row->cfa_expression = (uint32_t)at;
	m->row->cfa_expression_size = (uint32_t)size;
}

static void set_from_register(struct machine *m)
{
	uint64_t reg = tickmap_uleb(&m->b);
	uint64_t from = tickmap_uleb(&m->b);

	if (from < TICKMAP_REGS)
		set_reg(m, reg, TICKMAP_RULE_REGISTER, (int64_t)from, 0);
	else
		set_reg(m, reg, TICKMAP_RULE_UNDEFINED, 0, 0);
}

/* Operations that say where a register is. False: not one of them. */
static bool run_register(struct machine *m, uint8_t op)
{
	struct tickmap_bytes *b = &m->b;
	uint64_t reg;

	switch (op) {
	case CFA_REGISTER:
		set_from_register(m);
		return true;
	case CFA_EXPRESSION:
		set_expression(m, TICKMAP_RULE_EXPRESSION);
		return true;
	case CFA_VAL_EXPRESSION:
		set_expression(m, TICKMAP_RULE_VAL_EXPRESSION);
		return true;
	case CFA_OFFSET_EXTENDED:
	case CFA_RESTORE_EXTENDED:
	case CFA_UNDEFINED:
	case CFA_SAME_VALUE:
	case CFA_OFFSET_EXTENDED_SF:
	case CFA_VAL_OFFSET:
	case CFA_VAL_OFFSET_SF:
	case CFA_GNU_NEGATIVE_OFFSET_EXTENDED:
		break;
	default:
		return false;
	}
	reg = tickmap_uleb(b);
	if (op == CFA_RESTORE_EXTENDED)
		restore(m, reg);
	else if (op == CFA_UNDEFINED)
		set_reg(m, reg, TICKMAP_RULE_UNDEFINED, 0, 0);
	else if (op == CFA_SAME_VALUE)
		set_reg(m, reg, TICKMAP_RULE_SAME, 0, 0);
	else if (op == CFA_OFFSET_EXTENDED)
		set_reg(m, reg, TICKMAP_RULE_OFFSET, scaled(m, tickmap_uleb(b)),
			0);
	else if (op == CFA_OFFSET_EXTENDED_SF)
		set_reg(m, reg, TICKMAP_RULE_OFFSET,
			scaled(m, (uint64_t)tickmap_sleb(b)), 0);
	else if (op == CFA_GNU_NEGATIVE_OFFSET_EXTENDED)
		set_reg(m, reg, TICKMAP_RULE_OFFSET,
			scaled(m, 0 - tickmap_uleb(b)), 0);
	else if (op == CFA_VAL_OFFSET)
		set_reg(m, reg, TICKMAP_RULE_VAL_OFFSET,
			scaled(m, tickmap_uleb(b)), 0);
	else
		set_reg(m, reg, TICKMAP_RULE_VAL_OFFSET,
			scaled(m, (uint64_t)tickmap_sleb(b)), 0);
	return true;
}

/* Operations that say where the frame is. False: not one of them. */
static bool run_cfa(struct machine *m, uint8_t op)
{
	struct tickmap_bytes *b = &m->b;
	uint64_t reg;

	switch (op) {
	case CFA_DEF_CFA:
		reg = tickmap_uleb(b);
		set_cfa(m, reg, (int64_t)tickmap_uleb(b));
		return true;
	case CFA_DEF_CFA_SF:
		reg = tickmap_uleb(b);
		set_cfa(m, reg, scaled(m, (uint64_t)tickmap_sleb(b)));
		return true;
	case CFA_DEF_CFA_REGISTER:
		if (m->row->cfa_is_expression)
			m->bad = true;
		set_cfa(m, tickmap_uleb(b), m->row->cfa_offset);
		return true;
	case CFA_DEF_CFA_OFFSET:
		set_cfa_offset(m, (int64_t)tickmap_uleb(b));
		return true;
	case CFA_DEF_CFA_OFFSET_SF:
		set_cfa_offset(m, scaled(m, (uint64_t)tickmap_sleb(b)));
		return true;
	case CFA_DEF_CFA_EXPRESSION:
		set_cfa_expression(m);
		return true;
	default:
		return false;
	}
}

static void run_extended(struct machine *m, uint8_t op)
{
	switch (op) {
	case CFA_NOP:
		break;
	case CFA_GNU_ARGS_SIZE:
		tickmap_uleb(&m->b);
		break;
	case CFA_SET_LOC:
		set_location(m);
		break;
	case CFA_ADVANCE_LOC1:
		advance(m, tickmap_u8(&m->b));
		break;
	case CFA_ADVANCE_LOC2:
		advance(m, tickmap_u16(&m->b));
		break;
	case CFA_ADVANCE_LOC4:
		advance(m, tickmap_u32(&m->b));
		break;
	case CFA_REMEMBER_STATE:
		remember(m);
		break;
	case CFA_RESTORE_STATE:
		recall(m);
		break;
	default:
		if (!run_register(m, op) && !run_cfa(m, op))
			m->bad = true;
	}
}

static bool run(struct machine *m, size_t program, size_t end)
{
	m->b = tickmap_cfi_bytes(m->cfi, program, end);
	while (!m->bad && !m->reached && tickmap_bytes_left(&m->b)) {
		uint8_t op = tickmap_u8(&m->b);
		uint8_t low = op & (uint8_t)~CFA_HIGH;
		switch (op & CFA_HIGH) {
		case CFA_ADVANCE_LOC:
			advance(m, low);
			break;
		case CFA_OFFSET:
			set_reg(m, low, TICKMAP_RULE_OFFSET,
				scaled(m, tickmap_uleb(&m->b)), 0);
			break;
		case CFA_RESTORE:
			restore(m, low);
			break;
		default:
			run_extended(m, op);
		}
	}
	return !m->bad && !m->b.failed;
}

enum tickmap_cfi_result tickmap_cfi_run(const struct tickmap_cfi *cfi,
					const struct tickmap_fde *fde,
					uint64_t pc,
					struct tickmap_rule *ret_rule)
{
	struct tickmap_rule initial;
	struct machine m;

	m.cfi = cfi;
	m.cie = &fde->cie;
	m.pc = pc;
	m.bad = m.reached = false;
	m.initial = NULL;
	m.row = ret_rule;
	m.depth = 0;
	*ret_rule = (struct tickmap_rule) {
		.signal_frame = fde->cie.signal_frame,
		.cfa_register = NO_REGISTER,
		.start = fde->start,
		.end = fde->end,
		.function_start = fde->start,
		.function_end = fde->end,
	};
	if (!run(&m, fde->cie.program, fde->cie.program_end))
		return TICKMAP_CFI_BAD;
	initial = *ret_rule;
	m.initial = &initial;
	m.depth = 0;
	if (!run(&m, fde->program, fde->program_end))
		return TICKMAP_CFI_BAD;
	if (!ret_rule->cfa_is_expression &&
	    ret_rule->cfa_register == NO_REGISTER)
		return TICKMAP_CFI_BAD;
	return TICKMAP_CFI_OK;
}

/* SPDX-License-Identifier: MIT */
/*
 * From rules to call frame information: each step is written as what differs
 * from the one before. What the machines are like is in unwind_ARCH.c.
 */
#include "internal.h"

#include <string.h>

#define DW_CFA_def_cfa 0x0c
#define DW_CFA_def_cfa_register 0x0d
#define DW_CFA_def_cfa_offset 0x0e
#define DW_CFA_AARCH64_negate_ra_state 0x2d
#define DW_CFA_offset 0x80
#define DW_CFA_restore 0xc0

#define SLOT 8 /* bytes of a saved register; the data alignment is -SLOT */

static const struct emit_arch *find_arch(uint32_t elf_machine)
{
	if (!elf_machine)
		elf_machine = tickmap_emit_native_machine();
	switch (elf_machine) {
	case EMIT_EM_X86_64:
		return &tickmap_emit_arch_x86_64;
	case EMIT_EM_AARCH64:
		return &tickmap_emit_arch_aarch64;
	case EMIT_EM_RISCV:
		return &tickmap_emit_arch_riscv64;
	default:
		return NULL;
	}
}

static uint32_t base_register(const struct emit_arch *arch,
			      const struct tickmap_unwind_rule *rule)
{
	return rule->cfa_from == TICKMAP_UNWIND_FROM_FP ? arch->fp : arch->sp;
}

static void put_cfa(struct emit_frame *frame, const struct emit_arch *arch,
		    const struct tickmap_unwind_rule *old,
		    const struct tickmap_unwind_rule *rule)
{
	bool other_base = rule->cfa_from != old->cfa_from;
	bool other_offset = rule->cfa_offset != old->cfa_offset;

	if (other_base && other_offset)
		tickmap_emit_frame_op(frame, DW_CFA_def_cfa);
	else if (other_base)
		tickmap_emit_frame_op(frame, DW_CFA_def_cfa_register);
	else if (other_offset)
		tickmap_emit_frame_op(frame, DW_CFA_def_cfa_offset);
	if (other_base)
		tickmap_emit_frame_uleb(frame, base_register(arch, rule));
	if (other_offset)
		tickmap_emit_frame_uleb(frame, rule->cfa_offset);
}

/* Where the register's value at entry is: so far below the CFA, or in it. */
static void put_saved(struct emit_frame *frame, uint32_t reg, uint32_t old,
		      uint32_t depth)
{
	if (depth == old)
		return;
	if (!depth) {
		tickmap_emit_frame_op(frame, (uint8_t)(DW_CFA_restore | reg));
		return;
	}
	tickmap_emit_frame_op(frame, (uint8_t)(DW_CFA_offset | reg));
	tickmap_emit_frame_uleb(frame, depth / SLOT);
}

static bool is_sound(const struct emit_arch *arch,
		     const struct tickmap_unwind_rule *rule)
{
	return rule->cfa_from <= TICKMAP_UNWIND_FROM_FP &&
	       rule->cfa_offset <= INT32_MAX && rule->is_signed <= 1 &&
	       (!rule->is_signed || arch->can_sign) &&
	       rule->at % arch->code_align == 0 && rule->saved_fp % SLOT == 0 &&
	       rule->saved_ra % SLOT == 0 &&
	       (rule->cfa_from == TICKMAP_UNWIND_FROM_FP ||
		rule->cfa_offset >= arch->entry_offset);
}

static int build(struct tickmap_unwind *ret_unwind,
		 const struct emit_arch *arch,
		 const struct tickmap_unwind_rule *rules, size_t count)
{
	struct tickmap_unwind_rule old = { .cfa_offset = arch->entry_offset };
	struct emit_frame frame;

	for (size_t i = 0; i < count; i++) {
		if (!is_sound(arch, &rules[i]) ||
		    (i && rules[i].at <= rules[i - 1].at))
			return TICKMAP_EMIT_E_ARGUMENT;
	}
	tickmap_emit_frame_cie(&frame, ret_unwind, arch->code_align, -SLOT,
			       arch->ra);
	tickmap_emit_frame_op(&frame, DW_CFA_def_cfa);
	tickmap_emit_frame_uleb(&frame, arch->sp);
	tickmap_emit_frame_uleb(&frame, arch->entry_offset);
	put_saved(&frame, arch->ra, 0, arch->entry_ra);
	tickmap_emit_frame_fde(&frame);
	old.saved_ra = arch->entry_ra;
	for (size_t i = 0; i < count; i++) {
		struct tickmap_unwind_rule rule = rules[i];

		if (arch->entry_ra)
			rule.saved_ra = arch->entry_ra;
		tickmap_emit_frame_advance(&frame, rule.at);
		if (rule.is_signed != old.is_signed)
			tickmap_emit_frame_op(&frame,
					      DW_CFA_AARCH64_negate_ra_state);
		put_cfa(&frame, arch, &old, &rule);
		put_saved(&frame, arch->fp, old.saved_fp, rule.saved_fp);
		put_saved(&frame, arch->ra, old.saved_ra, rule.saved_ra);
		old = rule;
	}
	return tickmap_emit_frame_end(&frame);
}

int tickmap_unwind_rules(struct tickmap_unwind *ret_unwind,
			 uint32_t elf_machine,
			 const struct tickmap_unwind_rule *rules, size_t count)
{
	const struct emit_arch *arch = find_arch(elf_machine);

	if (!ret_unwind || !arch || (count && !rules))
		return TICKMAP_EMIT_E_ARGUMENT;
	return build(ret_unwind, arch, rules, count);
}

/* Far enough from the end that no offset of a prologue overflows. */
#define MAX_OFFSET (UINT32_MAX - 64)

int tickmap_unwind_build(struct tickmap_unwind *ret_unwind,
			 const struct tickmap_unwind_shape *shape)
{
	struct tickmap_unwind_rule rules[EMIT_SHAPE_RULES];
	struct tickmap_unwind_shape own;
	const struct emit_arch *arch;
	size_t count = 0;

	if (!ret_unwind || !shape ||
	    !tickmap_emit_take_struct(&own, shape, sizeof(own), sizeof(own)))
		return TICKMAP_EMIT_E_ARGUMENT;
	arch = find_arch(own.elf_machine);
	if (!arch || own.kind > TICKMAP_UNWIND_FIXED ||
	    (own.flags & ~arch->flags) || own.enter_at > MAX_OFFSET ||
	    own.leave_at > MAX_OFFSET || own.frame_size > INT32_MAX / 2)
		return TICKMAP_EMIT_E_ARGUMENT;
	if (own.flags & TICKMAP_UNWIND_LANDING_PAD)
		own.enter_at += 4;
	if (own.kind != TICKMAP_UNWIND_LEAF ||
	    own.flags & TICKMAP_UNWIND_SIGNED) {
		count = arch->shape(&own, rules);
		if (!count)
			return TICKMAP_EMIT_E_ARGUMENT;
	}
	return build(ret_unwind, arch, rules, count);
}

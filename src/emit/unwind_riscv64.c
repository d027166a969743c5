/* SPDX-License-Identifier: MIT */
/*
 * How functions of the RISC-V psABI find their caller. DWARF register numbers:
 * 1 ra, 2 sp, 8 s0, which as a frame pointer holds the CFA itself.
 */
#include "internal.h"

static size_t riscv64_rules(const struct tickmap_unwind_shape *shape,
			    struct tickmap_unwind_rule *rules)
{
	bool has_fp = shape->kind == TICKMAP_UNWIND_FRAME_POINTER;
	uint32_t unit = shape->flags & TICKMAP_UNWIND_COMPRESSED ? 2 : 4;
	uint32_t size = shape->frame_size ? shape->frame_size : 16;
	struct tickmap_unwind_rule rule = { .at = shape->enter_at + unit,
					    .cfa_offset = size };
	size_t count = 0;

	if (size % 16 || shape->enter_at % 2 || shape->leave_at % 2)
		return 0;
	rules[count++] = rule;
	rule.at += unit;
	rule.saved_ra = 8;
	rules[count++] = rule;
	if (has_fp) {
		rule.at += unit;
		rule.saved_fp = 16;
		rules[count++] = rule;
		rule.at += unit;
		rule.cfa_from = TICKMAP_UNWIND_FROM_FP;
		rule.cfa_offset = 0;
		rules[count++] = rule;
	}
	if (!shape->leave_at)
		return count;

	if (shape->leave_at < rule.at)
		return 0;
	rule.at = shape->leave_at + unit;
	rule.saved_ra = 0;
	rules[count++] = rule;
	if (has_fp) {
		/* s0 is the caller's again, sp still ours. */
		rule = (struct tickmap_unwind_rule) { .at = rule.at + unit,
						      .cfa_offset = size };
		rules[count++] = rule;
	}
	rules[count++] = (struct tickmap_unwind_rule) { .at = rule.at + unit };
	return count;
}

const struct emit_arch tickmap_emit_arch_riscv64 = {
	.code_align = 2,
	.fp = 8,
	.sp = 2,
	.ra = 1,
	.flags = TICKMAP_UNWIND_LANDING_PAD | TICKMAP_UNWIND_COMPRESSED,
	.shape = riscv64_rules,
};

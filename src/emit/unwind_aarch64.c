/* SPDX-License-Identifier: MIT */
/*
 * How functions of the AAPCS64 find their caller. DWARF register numbers: 29
 * the frame pointer, 30 the return address, 31 sp. A return address that
 * paciasp has signed is marked by a toggle that stays until autiasp.
 */
#include "internal.h"

static size_t aarch64_rules(const struct tickmap_unwind_shape *shape,
			    struct tickmap_unwind_rule *rules)
{
	bool has_fp = shape->kind == TICKMAP_UNWIND_FRAME_POINTER;
	uint32_t size = shape->frame_size ? shape->frame_size : 16;
	struct tickmap_unwind_rule rule = { .at = shape->enter_at };
	size_t count = 0;

	if (size % 16 || shape->enter_at % 4 || shape->leave_at % 4)
		return 0;
	if (shape->flags & TICKMAP_UNWIND_SIGNED) {
		rule.at += 4;
		rule.is_signed = 1;
		rules[count++] = rule;
	}
	if (shape->kind != TICKMAP_UNWIND_LEAF) {
		rule.at += 4;
		rule.cfa_offset = size;
		rule.saved_fp = has_fp ? size : 0;
		rule.saved_ra = has_fp ? size - 8 : 0;
		rules[count++] = rule;
		rule.at += 4;
		rule.cfa_from = has_fp ? TICKMAP_UNWIND_FROM_FP
				       : TICKMAP_UNWIND_FROM_SP;
		rule.saved_ra = has_fp ? size - 8 : 8;
		rules[count++] = rule;
	}
	if (!shape->leave_at)
		return count;

	if (shape->leave_at < rule.at)
		return 0;
	rule.at = shape->leave_at;
	if (shape->kind == TICKMAP_UNWIND_FIXED) {
		rule.at += 4;
		rule.saved_ra = 0;
		rules[count++] = rule;
	}
	if (shape->kind != TICKMAP_UNWIND_LEAF) {
		rule = (struct tickmap_unwind_rule) { .at = rule.at + 4,
						      .is_signed =
							      rule.is_signed };
		rules[count++] = rule;
	}
	if (rule.is_signed)
		rules[count++] =
			(struct tickmap_unwind_rule) { .at = rule.at + 4 };
	return count;
}

const struct emit_arch tickmap_emit_arch_aarch64 = {
	.code_align = 4,
	.fp = 29,
	.sp = 31,
	.ra = 30,
	.can_sign = true,
	.flags = TICKMAP_UNWIND_LANDING_PAD | TICKMAP_UNWIND_SIGNED,
	.shape = aarch64_rules,
};

/* SPDX-License-Identifier: MIT */
/*
 * How functions of the System V x86-64 psABI find their caller. DWARF register
 * numbers: 6 rbp, 7 rsp, 16 the return address.
 */
#include "internal.h"

#define CALL 8 /* what the call has pushed */

static size_t frame_pointer_rules(struct tickmap_unwind_rule *rules,
				  uint32_t push_at, uint32_t leave_at)
{
	size_t count = 0;

	if (leave_at && leave_at < push_at + 4)
		return 0;
	rules[count++] = (struct tickmap_unwind_rule) { .at = push_at + 1,
							.cfa_offset = CALL + 8,
							.saved_fp = 16 };
	rules[count++] = (struct tickmap_unwind_rule) {
		.at = push_at + 4,
		.cfa_from = TICKMAP_UNWIND_FROM_FP,
		.cfa_offset = CALL + 8,
		.saved_fp = 16,
	};
	/* rbp's slot is below rsp then, where no stack copy reaches. */
	if (leave_at)
		rules[count++] =
			(struct tickmap_unwind_rule) { .at = leave_at + 1,
						       .cfa_offset = CALL };
	return count;
}

static size_t fixed_rules(struct tickmap_unwind_rule *rules,
			  const struct tickmap_unwind_shape *shape)
{
	uint32_t length = shape->frame_size <= 127 ? 4 : 7;
	size_t count = 0;

	if (shape->frame_size % 8 || !shape->frame_size ||
	    (shape->leave_at && shape->leave_at < shape->enter_at + length))
		return 0;
	rules[count++] = (struct tickmap_unwind_rule) {
		.at = shape->enter_at + length,
		.cfa_offset = CALL + shape->frame_size,
	};
	if (shape->leave_at)
		rules[count++] = (struct tickmap_unwind_rule) {
			.at = shape->leave_at + length, .cfa_offset = CALL
		};
	return count;
}

static size_t x86_64_rules(const struct tickmap_unwind_shape *shape,
			   struct tickmap_unwind_rule *rules)
{
	if (shape->kind == TICKMAP_UNWIND_FIXED)
		return fixed_rules(rules, shape);
	return frame_pointer_rules(rules, shape->enter_at, shape->leave_at);
}

const struct emit_arch tickmap_emit_arch_x86_64 = {
	.code_align = 1,
	.fp = 6,
	.sp = 7,
	.ra = 16,
	.entry_offset = CALL,
	.entry_ra = 8,
	.flags = TICKMAP_UNWIND_LANDING_PAD,
	.shape = x86_64_rules,
};

int tickmap_unwind_frame_pointer(struct tickmap_unwind *ret_unwind,
				 uint32_t push_at, uint32_t leave_at)
{
	struct tickmap_unwind_shape shape = TICKMAP_UNWIND_SHAPE_INIT;

	shape.elf_machine = EMIT_EM_X86_64;
	shape.kind = TICKMAP_UNWIND_FRAME_POINTER;
	shape.enter_at = push_at;
	shape.leave_at = leave_at;
	return tickmap_unwind_build(ret_unwind, &shape);
}

#define MAX_STEPS (TICKMAP_UNWIND_FRAME_BYTES / 2)

int tickmap_unwind_stack_pointer(struct tickmap_unwind *ret_unwind,
				 const struct tickmap_unwind_step *steps,
				 size_t count)
{
	struct tickmap_unwind_rule rules[MAX_STEPS];

	if (count > MAX_STEPS || (count && !steps))
		return TICKMAP_EMIT_E_ARGUMENT;
	for (size_t i = 0; i < count; i++)
		rules[i] = (struct tickmap_unwind_rule) {
			.at = steps[i].at, .cfa_offset = steps[i].cfa_offset
		};
	return tickmap_unwind_rules(ret_unwind, EMIT_EM_X86_64, rules, count);
}

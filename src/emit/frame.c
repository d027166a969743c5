/* SPDX-License-Identifier: MIT */
/*
 * Assembles the .eh_frame of one function: a CIE with augmentation "zR" and
 * 32-bit pc-relative addresses, and an FDE whose pc-begin, range and four bytes
 * of augmentation data are filled in when a function is published.
 */
#include "internal.h"

#include <string.h>

#define DW_CFA_nop 0x00
#define DW_CFA_advance_loc1 0x02
#define DW_CFA_advance_loc2 0x03
#define DW_CFA_advance_loc4 0x04
#define DW_CFA_advance_loc 0x40
#define DW_EH_PE_pcrel_sdata4 0x1b

void tickmap_emit_frame_op(struct emit_frame *frame, uint8_t op)
{
	tickmap_emit_put(&frame->out, &op, 1);
}

void tickmap_emit_frame_uleb(struct emit_frame *frame, uint32_t value)
{
	while (value > 0x7f) {
		tickmap_emit_frame_op(frame, (uint8_t)(value | 0x80));
		value >>= 7;
	}
	tickmap_emit_frame_op(frame, (uint8_t)value);
}

/* Pad the entry with no-ops to a multiple of `unit`, state its length. */
static void finish_entry(struct emit_frame *frame, size_t unit)
{
	uint32_t length;

	while (!frame->out.full && (frame->out.used - frame->entry) % unit)
		tickmap_emit_frame_op(frame, DW_CFA_nop);
	length = (uint32_t)(frame->out.used - frame->entry - 4);
	if (!frame->out.full)
		memcpy(frame->out.base + frame->entry, &length, sizeof(length));
}

void tickmap_emit_frame_cie(struct emit_frame *frame,
			    struct tickmap_unwind *unwind, uint32_t code_align,
			    int data_align, uint32_t return_register)
{
	static const uint8_t version_and_augmentation[] = { 1, 'z', 'R', 0 };

	memset(unwind, 0, sizeof(*unwind));
	*frame = (struct emit_frame) {
		.unwind = unwind,
		.out = { .base = unwind->frame, .size = sizeof(unwind->frame) },
		.code_align = code_align,
	};
	tickmap_emit_put_u32(&frame->out, 0);
	tickmap_emit_put_u32(&frame->out, 0);
	tickmap_emit_put(&frame->out, version_and_augmentation,
			 sizeof(version_and_augmentation));
	tickmap_emit_frame_uleb(frame, code_align);
	/* SLEB128 of a small number */
	tickmap_emit_frame_op(frame, (uint8_t)(data_align & 0x7f));
	tickmap_emit_frame_uleb(frame, return_register);
	tickmap_emit_frame_uleb(frame, 1);
	tickmap_emit_frame_op(frame, DW_EH_PE_pcrel_sdata4);
}

void tickmap_emit_frame_fde(struct emit_frame *frame)
{
	finish_entry(frame, 8);
	frame->entry = frame->out.used;
	tickmap_emit_put_u32(&frame->out, 0);
	/* Distance from this field back to the CIE, which starts at 0. */
	tickmap_emit_put_u32(&frame->out, (uint32_t)frame->out.used);
	frame->unwind->pc_begin = (uint32_t)frame->out.used;
	tickmap_emit_put_zeros(&frame->out, 8);
	tickmap_emit_frame_uleb(frame, 4);
	tickmap_emit_put_zeros(&frame->out, 4);
}

int tickmap_emit_frame_end(struct emit_frame *frame)
{
	finish_entry(frame, 4);
	if (frame->out.full) {
		memset(frame->unwind, 0, sizeof(*frame->unwind));
		return TICKMAP_EMIT_E_ARGUMENT;
	}
	frame->unwind->frame_size = (uint32_t)frame->out.used;
	return TICKMAP_EMIT_OK;
}

void tickmap_emit_frame_advance(struct emit_frame *frame, uint32_t to)
{
	uint32_t delta = (to - frame->at) / frame->code_align;

	frame->at = to;
	if (!delta)
		return;
	if (delta < 0x40) {
		tickmap_emit_frame_op(frame,
				      (uint8_t)(DW_CFA_advance_loc | delta));
	} else if (delta <= UINT8_MAX) {
		uint8_t narrow = (uint8_t)delta;

		tickmap_emit_frame_op(frame, DW_CFA_advance_loc1);
		tickmap_emit_put(&frame->out, &narrow, sizeof(narrow));
	} else if (delta <= UINT16_MAX) {
		uint16_t narrow = (uint16_t)delta;

		tickmap_emit_frame_op(frame, DW_CFA_advance_loc2);
		tickmap_emit_put(&frame->out, &narrow, sizeof(narrow));
	} else {
		tickmap_emit_frame_op(frame, DW_CFA_advance_loc4);
		tickmap_emit_put_u32(&frame->out, delta);
	}
}

/* SPDX-License-Identifier: MIT */
/*
 * How functions of the System V x86-64 psABI find their caller. DWARF register
 * numbers: 6 rbp, 7 rsp, 16 the return address.
 */
#include "internal.h"

#if defined(__x86_64__)

#define RBP 6
#define RSP 7
#define RETURN_ADDRESS 16
#define DATA_ALIGN (-8)

#define DW_CFA_def_cfa 0x0c
#define DW_CFA_def_cfa_register 0x0d
#define DW_CFA_def_cfa_offset 0x0e
#define DW_CFA_offset 0x80
#define DW_CFA_restore 0xc0

#define EM_X86_64 62

uint32_t tickmap_emit_native_machine(void)
{
	return EM_X86_64;
}

static void def_cfa(struct emit_frame *frame, uint32_t reg, uint32_t offset)
{
	tickmap_emit_frame_op(frame, DW_CFA_def_cfa);
	tickmap_emit_frame_uleb(frame, reg);
	tickmap_emit_frame_uleb(frame, offset);
}

static void def_cfa_offset(struct emit_frame *frame, uint32_t offset)
{
	tickmap_emit_frame_op(frame, DW_CFA_def_cfa_offset);
	tickmap_emit_frame_uleb(frame, offset);
}

/* The register's value at entry lies at cfa - depth. */
static void saved_at(struct emit_frame *frame, uint32_t reg, uint32_t depth)
{
	tickmap_emit_frame_op(frame, (uint8_t)(DW_CFA_offset | reg));
	tickmap_emit_frame_uleb(frame, depth / 8);
}

/* Right after the call: the return address is all that there is. */
static void begin_at_call(struct emit_frame *frame,
			  struct tickmap_unwind *unwind)
{
	tickmap_emit_frame_cie(frame, unwind, 1, DATA_ALIGN, RETURN_ADDRESS);
	def_cfa(frame, RSP, 8);
	saved_at(frame, RETURN_ADDRESS, 8);
	tickmap_emit_frame_fde(frame);
}

int tickmap_unwind_frame_pointer(struct tickmap_unwind *ret_unwind,
				 uint32_t push_at, uint32_t leave_at)
{
	struct emit_frame frame;

	if (!ret_unwind || push_at > UINT32_MAX - 4 || leave_at == UINT32_MAX)
		return TICKMAP_EMIT_E_ARGUMENT;
	if (leave_at && leave_at < push_at + 4)
		return TICKMAP_EMIT_E_ARGUMENT;

	begin_at_call(&frame, ret_unwind);
	tickmap_emit_frame_advance(&frame, push_at + 1);
	def_cfa_offset(&frame, 16);
	saved_at(&frame, RBP, 16);
	tickmap_emit_frame_advance(&frame, push_at + 4);
	tickmap_emit_frame_op(&frame, DW_CFA_def_cfa_register);
	tickmap_emit_frame_uleb(&frame, RBP);
	if (leave_at) {
		tickmap_emit_frame_advance(&frame, leave_at + 1);
		def_cfa(&frame, RSP, 8);
		/* Its slot is below rsp now, where no stack copy reaches. */
		tickmap_emit_frame_op(&frame, DW_CFA_restore | RBP);
	}
	return tickmap_emit_frame_end(&frame);
}

int tickmap_unwind_stack_pointer(struct tickmap_unwind *ret_unwind,
				 const struct tickmap_unwind_step *steps,
				 size_t count)
{
	struct emit_frame frame;

	if (!ret_unwind || (count && !steps))
		return TICKMAP_EMIT_E_ARGUMENT;
	for (size_t i = 0; i < count; i++) {
		if (steps[i].cfa_offset < 8 ||
		    (i && steps[i].at <= steps[i - 1].at))
			return TICKMAP_EMIT_E_ARGUMENT;
	}

	begin_at_call(&frame, ret_unwind);
	for (size_t i = 0; i < count; i++) {
		tickmap_emit_frame_advance(&frame, steps[i].at);
		def_cfa_offset(&frame, steps[i].cfa_offset);
	}
	return tickmap_emit_frame_end(&frame);
}

#endif

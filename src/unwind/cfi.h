/* SPDX-License-Identifier: MIT */
/*
 * DWARF call frame information (.eh_frame: Linux Standard Base Core 5.0,
 * "Exception Frames"; DWARF 5, 6.4) reduced to rules: for one pc, how to find
 * the caller's registers. Own reader: it is the core of live unwinding, and JIT
 * code comes as bare tables without an ELF file.
 */
#ifndef TICKMAP_UNWIND_CFI_H
#define TICKMAP_UNWIND_CFI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * One table. Fill the first six fields (all borrowed) and call
 * tickmap_cfi_init; tickmap_cfi_done frees the index that it may have built.
 * Addresses may be svma or avma: rules come out for the same kind.
 */
struct tickmap_cfi {
	const uint8_t *eh_frame;
	size_t eh_frame_size;
	uint64_t eh_frame_at; /* address of its first byte */
	const uint8_t *hdr;   /* .eh_frame_hdr or NULL */
	size_t hdr_size;
	uint64_t hdr_at;
	/* private */
	const uint8_t *sorted; /* the header's table */
	size_t sorted_count;
	struct tickmap_cfi_fde_ref {
		uint64_t start;
		uint64_t fde_offset;
	} * index; /* own, where no usable header is there */
	size_t index_count;
	bool indexed;
};

void tickmap_cfi_init(struct tickmap_cfi *cfi);
void tickmap_cfi_done(struct tickmap_cfi *cfi);

/* x86-64 registers by DWARF number (System V psABI, figure 3.36). */
enum {
	TICKMAP_RAX,
	TICKMAP_RDX,
	TICKMAP_RCX,
	TICKMAP_RBX,
	TICKMAP_RSI,
	TICKMAP_RDI,
	TICKMAP_RBP,
	TICKMAP_RSP,
	TICKMAP_R8,
	TICKMAP_R9,
	TICKMAP_R10,
	TICKMAP_R11,
	TICKMAP_R12,
	TICKMAP_R13,
	TICKMAP_R14,
	TICKMAP_R15,
	TICKMAP_RIP, /* the return address column */
	TICKMAP_REGS,
};

enum tickmap_rule_kind {
	TICKMAP_RULE_SAME,	 /* the caller's value is still there */
	TICKMAP_RULE_UNDEFINED,	 /* lost; for RIP: the outermost frame */
	TICKMAP_RULE_OFFSET,	 /* saved at cfa + offset */
	TICKMAP_RULE_VAL_OFFSET, /* is cfa + offset */
	TICKMAP_RULE_REGISTER,	 /* is in register `offset` */
	TICKMAP_RULE_EXPRESSION, /* saved at the result */
	TICKMAP_RULE_VAL_EXPRESSION,
};

/* One row: how the caller's frame follows from this one. */
struct tickmap_rule {
	bool cfa_is_expression;
	bool signal_frame; /* the pc is exact, not a return address */
	uint8_t cfa_register;
	int64_t cfa_offset;
	uint32_t cfa_expression, cfa_expression_size; /* in eh_frame */
	struct {
		uint8_t kind;
		int32_t offset; /* or register, or expression in
				   eh_frame */
		uint32_t size;	/* of the expression */
	} reg[TICKMAP_REGS];
	uint64_t start, end; /* addresses for which this row holds */
	uint64_t function_start, function_end;
};

enum tickmap_cfi_result {
	TICKMAP_CFI_OK,
	TICKMAP_CFI_NONE, /* no FDE covers the address */
	TICKMAP_CFI_BAD,  /* malformed, or an operation we do not know */
};

enum tickmap_cfi_result tickmap_cfi_rule(struct tickmap_cfi *cfi, uint64_t pc,
					 struct tickmap_rule *ret_rule);

/* Only the bounds of the function around pc. */
bool tickmap_cfi_function(struct tickmap_cfi *cfi, uint64_t pc,
			  uint64_t *ret_start, uint64_t *ret_end);

#endif

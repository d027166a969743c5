/* SPDX-License-Identifier: MIT */
/*
 * The records of an .eh_frame section, as they stand in the bytes:
 *
 *   u32 length (0: end; 0xffffffff: u64 length follows)
 *   u32 id     (0: a CIE; else the distance back to the FDE's CIE)
 *   CIE: version, augmentation, alignments, return column, program
 *   FDE: start, size, augmentation data, program
 */
#ifndef TICKMAP_UNWIND_CFI_ENTRY_H
#define TICKMAP_UNWIND_CFI_ENTRY_H

#include "base/bytes.h"
#include "unwind/cfi.h"

enum tickmap_cfi_entry_kind {
	TICKMAP_ENTRY_CIE,
	TICKMAP_ENTRY_FDE,
	TICKMAP_ENTRY_LAST, /* the terminator, or the end of the bytes */
	TICKMAP_ENTRY_BAD,  /* a length that does not fit */
};

struct tickmap_cfi_entry {
	enum tickmap_cfi_entry_kind kind;
	size_t body, end;  /* offsets; `end` is where the next one starts */
	size_t cie_offset; /* of an FDE */
};

struct tickmap_cie {
	size_t offset;
	uint8_t encoding; /* of the FDE's addresses */
	bool sized_augmentation;
	bool signal_frame;
	uint64_t code_align;
	int64_t data_align;
	size_t program, program_end;
};

struct tickmap_fde {
	uint64_t start, end;
	size_t program, program_end;
	struct tickmap_cie cie;
};

struct tickmap_cfi_entry tickmap_cfi_entry_at(const struct tickmap_cfi *cfi,
					      size_t offset);

/*
 * Reads the FDE of `entry`. `fde->cie` is reused where it is the one wanted:
 * start with offset SIZE_MAX. NONE: its addresses are written in a way that has
 * no meaning without the running process.
 */
enum tickmap_cfi_result
tickmap_cfi_read_fde(const struct tickmap_cfi *cfi,
		     const struct tickmap_cfi_entry *entry,
		     struct tickmap_fde *fde);

/*
 * One encoded pointer of a section whose bytes (all of them in `b`) start at
 * address `at`; `data_base` is what "datarel" adds. False if it cannot be read
 * or has no meaning for us; the cursor has then moved behind it if it could.
 */
bool tickmap_cfi_pointer(struct tickmap_bytes *b, uint64_t at, uint8_t encoding,
			 const uint64_t *data_base, uint64_t *ret_value);

/* Bytes of the section up to `end`, to be read from `pos`. */
static inline struct tickmap_bytes
tickmap_cfi_bytes(const struct tickmap_cfi *cfi, size_t pos, size_t end)
{
	struct tickmap_bytes b = tickmap_bytes_of(cfi->eh_frame, end);
	tickmap_seek(&b, pos);
	return b;
}

#endif

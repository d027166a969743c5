/* SPDX-License-Identifier: MIT */
/* Call frame instructions (DWARF 5, 6.4.2; LSB Core 5.0, 10.5.2). */
#ifndef TICKMAP_UNWIND_CFI_PROGRAM_H
#define TICKMAP_UNWIND_CFI_PROGRAM_H

#include "unwind/cfi_entry.h"

/* The row that holds at pc, which lies inside the FDE. */
enum tickmap_cfi_result tickmap_cfi_run(const struct tickmap_cfi *cfi,
					const struct tickmap_fde *fde,
					uint64_t pc,
					struct tickmap_rule *ret_rule);

#endif

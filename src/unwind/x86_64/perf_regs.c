/* SPDX-License-Identifier: MIT */
#include "unwind/unwind.h"

enum { ABI_64 = 2 }; /* PERF_SAMPLE_REGS_ABI_64 */

/* perf's numbers (asm/perf_regs.h): 9 to 15 are flags and segments. */
static const uint8_t perf_number[TICKMAP_REGS] = {
	[TICKMAP_RAX] = 0,  [TICKMAP_RBX] = 1,	[TICKMAP_RCX] = 2,
	[TICKMAP_RDX] = 3,  [TICKMAP_RSI] = 4,	[TICKMAP_RDI] = 5,
	[TICKMAP_RBP] = 6,  [TICKMAP_RSP] = 7,	[TICKMAP_RIP] = 8,
	[TICKMAP_R8] = 16,  [TICKMAP_R9] = 17,	[TICKMAP_R10] = 18,
	[TICKMAP_R11] = 19, [TICKMAP_R12] = 20, [TICKMAP_R13] = 21,
	[TICKMAP_R14] = 22, [TICKMAP_R15] = 23,
};

bool tickmap_unwind_regs_from_perf(uint64_t abi, uint64_t mask,
				   const uint64_t *by_perf_number,
				   uint64_t ret_regs[TICKMAP_REGS])
{
	uint64_t needed = UINT64_C(1) << perf_number[TICKMAP_RSP] |
			  UINT64_C(1) << perf_number[TICKMAP_RIP];

	if (abi != ABI_64 || (mask & needed) != needed)
		return false;
	for (unsigned reg = 0; reg < TICKMAP_REGS; reg++) {
		bool given = mask >> perf_number[reg] & 1;
		ret_regs[reg] = given ? by_perf_number[perf_number[reg]] : 0;
	}
	return true;
}

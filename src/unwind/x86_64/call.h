/* SPDX-License-Identifier: MIT */
#ifndef TICKMAP_UNWIND_X86_64_CALL_H
#define TICKMAP_UNWIND_X86_64_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The longest call: REX, opcode, ModRM, SIB, 32-bit displacement. */
enum { TICKMAP_X86_64_CALL_MAX = 8 };

/* Do these bytes end with a call instruction (Intel SDM volume 2, CALL: E8
 * rel32, FF /2)? */
bool tickmap_x86_64_ends_with_call(const uint8_t *bytes, size_t size);

#endif

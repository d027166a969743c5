/* SPDX-License-Identifier: MIT */
/*
 * A line of a perf map: address and size in lower-case hex without prefix
 * (readers exist that refuse "0x"), one blank each, the name, a line feed.
 */
#include "internal.h"

static void put_hex(struct emit_out *out, uint64_t value)
{
	char digits[16];
	size_t at = sizeof(digits);

	do {
		digits[--at] = "0123456789abcdef"[value & 15];
		value >>= 4;
	} while (value);
	tickmap_emit_put(out, digits + at, sizeof(digits) - at);
}

void tickmap_emit_perfmap_line(struct emit_out *out,
			       const struct tickmap_code *code)
{
	put_hex(out, code->addr);
	tickmap_emit_put(out, " ", 1);
	put_hex(out, code->code_size);
	tickmap_emit_put(out, " ", 1);
	tickmap_emit_put_text(out, code->name, code->name_length);
	tickmap_emit_put(out, "\n", 1);
}

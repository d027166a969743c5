/* SPDX-License-Identifier: MIT */
/*
 * Interned strings: equal bytes get the same 32-bit id, so that comparison is
 * `==`. Id 0 is the empty string. Bytes are kept as given (any encoding, NULs
 * allowed) with a NUL behind them.
 */
#ifndef TICKMAP_BASE_STRINGS_H
#define TICKMAP_BASE_STRINGS_H

#include <stddef.h>
#include <stdint.h>

typedef uint32_t tickmap_str;

struct tickmap_strings;

struct tickmap_strings *tickmap_strings_new(void); /* NULL: no memory */
void tickmap_strings_free(struct tickmap_strings *strings); /* NULL is fine */

/* The id of these bytes. Out of memory: 0, and tickmap_strings_failed. */
tickmap_str tickmap_intern(struct tickmap_strings *strings, const char *bytes,
			   size_t length);
tickmap_str tickmap_intern_cstr(struct tickmap_strings *strings,
				const char *text);

/* Borrowed until the table is freed; never NULL. `ret_length` may be NULL. */
const char *tickmap_string(const struct tickmap_strings *strings,
			   tickmap_str id, size_t *ret_length);

size_t tickmap_strings_count(const struct tickmap_strings *strings);

/* Nonzero once an intern ran out of memory. */
int tickmap_strings_failed(const struct tickmap_strings *strings);

#endif

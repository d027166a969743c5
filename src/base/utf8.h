/* SPDX-License-Identifier: MIT */
#ifndef TICKMAP_BASE_UTF8_H
#define TICKMAP_BASE_UTF8_H

#include <stddef.h>

/* Bytes of the well-formed character at the front (1 to 4), 0 if there is none.
 */
size_t tickmap_utf8_length(const char *bytes, size_t size);

#endif

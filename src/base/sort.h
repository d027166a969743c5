/* SPDX-License-Identifier: MIT */
#ifndef TICKMAP_BASE_SORT_H
#define TICKMAP_BASE_SORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In linear time. Needs as much memory again; false: there is none. */
bool tickmap_sort_u64(uint64_t *values, size_t count);

#endif

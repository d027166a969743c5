/* SPDX-License-Identifier: MIT */
/* Other unwinders, walking the live stack from inside their caller. */
#ifndef TICKMAP_BENCH_UNWIND_PEER_H
#define TICKMAP_BENCH_UNWIND_PEER_H

#include <stddef.h>

struct peer {
	const char *name;
	size_t (*walk)(void **ips, size_t max);
};

/* Ends with a NULL name. */
extern const struct peer peers[];

#endif

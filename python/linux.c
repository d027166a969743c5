/* SPDX-License-Identifier: MIT */
/* What the extension needs of Linux. */
#if defined(__linux__)

#include "guard.h"

#include <pthread.h>

int tickmap_stack_bounds(uintptr_t *ret_top, uintptr_t *ret_size)
{
	pthread_attr_t attributes;
	void *lowest;
	size_t bytes;

	/* Fails where /proc is not mounted, for the first thread alone. */
	if (pthread_getattr_np(pthread_self(), &attributes) != 0)
		return 0;
	int found = pthread_attr_getstack(&attributes, &lowest, &bytes) == 0;
	pthread_attr_destroy(&attributes);
	if (!found)
		return 0;
	*ret_top = (uintptr_t)lowest + bytes;
	*ret_size = bytes;
	return 1;
}

#else
typedef int tickmap_linux_unused;
#endif

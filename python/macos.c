/* SPDX-License-Identifier: MIT */
/* What the extension needs of macOS. */
#if defined(__APPLE__)

#include "guard.h"

#include <pthread.h>

int tickmap_stack_bounds(uintptr_t *ret_top, uintptr_t *ret_size)
{
	*ret_top = (uintptr_t)pthread_get_stackaddr_np(pthread_self());
	*ret_size = pthread_get_stacksize_np(pthread_self());
	return *ret_size != 0;
}

#else
typedef int tickmap_macos_unused;
#endif

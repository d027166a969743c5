/* SPDX-License-Identifier: MIT */
#include "peer.h"

#include <dlfcn.h>
#define UNW_LOCAL_ONLY
#include <libunwind.h>
#include <string.h>

/* libunwind has a backtrace() too, which hides glibc's: ask for that one. */
static size_t glibc(void **ips, size_t max)
{
	static int (*function)(void **, int);

	if (!function) {
		void *libc = dlopen("libc.so.6", RTLD_NOW);
		void *symbol = libc ? dlsym(libc, "backtrace") : NULL;
		if (!symbol)
			return 0;
		memcpy(&function, &symbol, sizeof(function));
	}
	return (size_t)function(ips, (int)max);
}

/* Its own cache of x86-64 frames, the fastest that it has. */
static size_t fast(void **ips, size_t max)
{
	return (size_t)unw_backtrace(ips, (int)max);
}

/* The general interface, with its rule cache (the default one). */
static size_t step(void **ips, size_t max)
{
	unw_context_t context;
	unw_cursor_t cursor;
	unw_word_t ip;
	size_t count = 0;

	unw_getcontext(&context);
	if (unw_init_local(&cursor, &context))
		return 0;
	do {
		if (unw_get_reg(&cursor, UNW_REG_IP, &ip))
			break;
		ips[count++] = (void *)ip;
	} while (count < max && unw_step(&cursor) > 0);
	return count;
}

const struct peer peers[] = {
	{ "libunwind_step", step },
	{ "libunwind_backtrace", fast },
	{ "glibc_backtrace", glibc },
	{ NULL, NULL },
};

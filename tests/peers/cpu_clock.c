/* SPDX-License-Identifier: MIT */
/*
 * Preloaded into a profiler that insists on hardware cycles: each event of
 * them that it opens becomes one of the kernel's cpu-clock, which needs no
 * counter. samply 0.13.1, in a virtual machine without counters, takes the
 * kernel's ENOENT for a missing permission and gives up.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ARGUMENTS 6

/* Later kernels know longer ones; the size is in the second word. */
union attr {
	struct perf_event_attr known;
	unsigned char bytes[4096];
};

static void use_cpu_clock(long arguments[ARGUMENTS], union attr *copy)
{
	const struct perf_event_attr *asked =
		(const struct perf_event_attr *)arguments[0];

	if (asked->type != PERF_TYPE_HARDWARE ||
	    asked->config != PERF_COUNT_HW_CPU_CYCLES ||
	    asked->size > sizeof(*copy))
		return;
	memcpy(copy, asked, asked->size);
	copy->known.type = PERF_TYPE_SOFTWARE;
	copy->known.config = PERF_COUNT_SW_CPU_CLOCK;
	arguments[0] = (long)copy;
}

/* libc's own, which perf_event_open has no other name for. */
__attribute__((visibility("default"))) long syscall(long number, ...)
{
	long (*next)(long number, ...);
	void *found = dlsym(RTLD_NEXT, "syscall");
	long arguments[ARGUMENTS];
	union attr copy;
	va_list list;

	memcpy(&next, &found, sizeof(next));
	va_start(list, number);
	for (int i = 0; i < ARGUMENTS; i++)
		arguments[i] = va_arg(list, long);
	va_end(list);
	if (number == SYS_perf_event_open)
		use_cpu_clock(arguments, &copy);
	return next(number, arguments[0], arguments[1], arguments[2],
		    arguments[3], arguments[4], arguments[5]);
}

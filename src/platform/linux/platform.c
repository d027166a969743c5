/* SPDX-License-Identifier: MIT */
#include "platform/platform.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Linux 6.1; older C libraries do not name it. */
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

static uint64_t now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * UINT64_C(1000000000) +
	       (uint64_t)ts.tv_nsec;
}

uint64_t tickmap_mono_ns(void)
{
	return now_ns(CLOCK_MONOTONIC);
}

void *tickmap_platform_large_block(size_t size)
{
	const size_t line = 64, page = 2 << 20;
	bool is_large = size >= 2 * page;
	void *block;

	if (size < 4096)
		return malloc(size);
	if (posix_memalign(&block, is_large ? page : line, size))
		return NULL;
	if (!is_large)
		return block;
	/* Whole ones only: a page in part would cost memory for nothing. */
	madvise(block, size & ~(page - 1), MADV_HUGEPAGE);
	return block;
}

void tickmap_platform_forget(void *bytes, size_t size)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t begin = ((uintptr_t)bytes + page - 1) & ~(page - 1);
	uintptr_t end = ((uintptr_t)bytes + size) & ~(page - 1);

	if (begin < end)
		madvise((void *)begin, end - begin, MADV_DONTNEED);
}

void tickmap_platform_give_memory_back(void)
{
#ifdef M_MMAP_THRESHOLD
	/* By itself glibc raises it with each such block that is freed. */
	mallopt(M_MMAP_THRESHOLD, 1 << 20);
#endif
}

int tickmap_platform_self_dir(char *out, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", out, size - 1);
	char *slash;

	if (n < 0)
		return TICKMAP_E_OS;
	out[n] = '\0';
	slash = strrchr(out, '/');
	if (!slash)
		return TICKMAP_E_FORMAT;
	*slash = '\0';
	return TICKMAP_OK;
}

bool tickmap_read_line(const char *path, char *out, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, out, size - 1);
	close(fd);
	if (n < 0)
		return false;
	out[n] = '\0';
	out[strcspn(out, "\n")] = '\0';
	return true;
}

uint64_t tickmap_process_start_ns(pid_t pid)
{
	char path[64], line[1024];
	unsigned long long ticks;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (!tickmap_read_line(path, line, sizeof(line)))
		return 0;
	/* The name in parentheses may hold anything: count behind its last. */
	const char *at = strrchr(line, ')');
	if (!at || sscanf(at + 1,
			  " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u"
			  " %*u %*d %*d %*d %*d %*d %*d %llu",
			  &ticks) != 1)
		return 0;
	uint64_t boot_ns =
		ticks * (UINT64_C(1000000000) / (uint64_t)sysconf(_SC_CLK_TCK));
	/* starttime counts from boot with suspends, CLOCK_MONOTONIC without. */
	uint64_t suspended = now_ns(CLOCK_BOOTTIME) - now_ns(CLOCK_MONOTONIC);
	return boot_ns > suspended ? boot_ns - suspended : 1;
}

pid_t tickmap_process_inner_pid(pid_t pid)
{
	char path[64], line[4096];
	pid_t inner = pid;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	FILE *file = fopen(path, "re");
	if (!file)
		return pid;
	while (fgets(line, sizeof(line), file)) {
		if (strncmp(line, "NStgid:", 7))
			continue;
		const char *last = strrchr(line, '\t');
		if (last)
			inner = (pid_t)strtol(last + 1, NULL, 10);
		break;
	}
	fclose(file);
	return inner > 0 ? inner : pid;
}

int tickmap_read_file(const char *path, size_t limit, char **ret_bytes,
		      size_t *ret_size, struct tickmap_error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t size = 0, capacity = 16384;
	char *bytes = NULL;
	int status = TICKMAP_OK;

	if (fd < 0)
		return tickmap_fail_os(err, errno, "cannot open");
	for (;;) {
		char *grown = realloc(bytes, capacity + 1);
		if (!grown) {
			status = tickmap_fail(err, TICKMAP_E_NOMEM, 0,
					      "out of memory");
			break;
		}
		bytes = grown;
		ssize_t n = read(fd, bytes + size, capacity - size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			status = tickmap_fail_os(err, errno, "cannot read");
			break;
		}
		size += (size_t)n;
		if (n == 0)
			break;
		if (size > limit) {
			status = tickmap_fail(err, TICKMAP_E_LIMIT, limit,
					      "file is larger than we read");
			break;
		}
		if (size == capacity)
			capacity *= 2;
	}
	close(fd);
	if (status) {
		free(bytes);
		return status;
	}
	bytes[size] = '\0';
	*ret_bytes = bytes;
	*ret_size = size;
	return TICKMAP_OK;
}

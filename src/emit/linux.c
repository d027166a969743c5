/* SPDX-License-Identifier: MIT */
/* What the emit library needs of Linux. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "internal.h"

#if defined(__linux__)

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif
#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

uint64_t tickmap_emit_os_clock(void)
{
	struct timespec now = { 0, 0 };

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) +
	       (uint64_t)now.tv_nsec;
}

/*
 * starttime in /proc/self/stat, in ticks of CLOCK_BOOTTIME. It is the 20th
 * field behind the name, which ends at the last ')'.
 */
uint64_t tickmap_emit_os_started(void)
{
	struct timespec wall, boot;
	char text[1024];
	long hz = sysconf(_SC_CLK_TCK);
	unsigned long long ticks;
	const char *at;
	ssize_t n;
	int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	at = strrchr(text, ')');
	for (int i = 0; at && i < 20; i++)
		at = strchr(at + 1, ' ');
	if (!at || hz <= 0 || sscanf(at, "%llu", &ticks) != 1 ||
	    clock_gettime(CLOCK_REALTIME, &wall) ||
	    clock_gettime(CLOCK_BOOTTIME, &boot))
		return 0;
	return (uint64_t)(wall.tv_sec - boot.tv_sec) * UINT64_C(1000000000) +
	       (uint64_t)wall.tv_nsec - (uint64_t)boot.tv_nsec +
	       ticks * (UINT64_C(1000000000) / (uint64_t)hz);
}

uint64_t tickmap_emit_os_written(const struct stat *st)
{
	return (uint64_t)st->st_mtim.tv_sec * UINT64_C(1000000000) +
	       (uint64_t)st->st_mtim.tv_nsec;
}

const char *tickmap_emit_os_getenv(const char *name)
{
	return secure_getenv(name);
}

/*
 * gettid costs as much as a tenth of a publish. A forked child inherits its
 * parent's thread-local data, hence the pid.
 */
uint32_t tickmap_emit_os_tid(uint32_t pid)
{
	static _Thread_local struct {
		uint32_t pid;
		uint32_t tid;
	} cached;

	if (cached.pid != pid) {
		cached.tid = (uint32_t)syscall(SYS_gettid);
		cached.pid = pid;
	}
	return cached.tid;
}

/* The lock is held for one write: shorter than going to sleep and back. */
void tickmap_emit_os_init_lock(pthread_mutex_t *lock)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
#ifdef __GLIBC__
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP);
#endif
	pthread_mutex_init(lock, &attr);
	pthread_mutexattr_destroy(&attr);
}

int tickmap_emit_os_open_dir(int at, const char *path, bool follow)
{
	return openat(at, path,
		      O_PATH | O_DIRECTORY | O_CLOEXEC |
			      (follow ? 0 : O_NOFOLLOW));
}

/*
 * Not writev(3): that is a cancellation point, and a thread cancelled in it
 * would keep the lock.
 */
ssize_t tickmap_emit_os_writev(int fd, const struct iovec *iov, int count)
{
	return (ssize_t)syscall(SYS_writev, fd, iov, count);
}

bool tickmap_emit_os_holds(uint64_t dev, uint64_t ino)
{
	DIR *fds = opendir("/proc/self/fd");
	const struct dirent *entry;
	bool holds = false;
	struct stat st;

	if (!fds)
		return true;
	while (!holds && (entry = readdir(fds))) {
		if (entry->d_name[0] == '.' || fstat(atoi(entry->d_name), &st))
			continue;
		holds = st.st_dev == dev && st.st_ino == ino;
	}
	closedir(fds);
	return holds;
}

static size_t page_size(void)
{
	long size = sysconf(_SC_PAGESIZE);

	return size > 0 ? (size_t)size : 4096;
}

bool tickmap_emit_os_has_marker(void)
{
	return true;
}

/* For people who read /proc/PID/maps, where the kernel takes names. */
static void name_mapping(const void *at, size_t size)
{
	prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, at, size, "tickmap-emit");
}

void *tickmap_emit_os_map_marker(int fd)
{
	void *marker = mmap(NULL, page_size(), PROT_READ | PROT_EXEC,
			    MAP_PRIVATE, fd, 0);

	if (marker == MAP_FAILED)
		return NULL;
	name_mapping(marker, page_size());
	return marker;
}

void tickmap_emit_os_unmap_marker(void *marker)
{
	if (marker)
		munmap(marker, page_size());
}

/*
 * qemu's user mode, and others that take advice for a hint, say yes to any and
 * do nothing.
 */
#define NO_ADVICE 0x7ead

static bool wipe_on_fork(void *page, size_t size)
{
	return madvise(page, size, NO_ADVICE) &&
	       !madvise(page, size, MADV_WIPEONFORK);
}

void *tickmap_emit_os_map_region(size_t size, size_t *ret_buffer_at,
				 bool *ret_wiped)
{
	size_t page = page_size();
	void *region = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (region == MAP_FAILED)
		return NULL;
	name_mapping(region, size);
	*ret_wiped = wipe_on_fork(region, page);
	*ret_buffer_at = page;
	return region;
}

void tickmap_emit_os_unmap_region(void *region, size_t size)
{
	if (region)
		munmap(region, size);
}

#endif

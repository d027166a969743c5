/* SPDX-License-Identifier: MIT */
/* What the emit library needs of macOS. */
#include "internal.h"

#if defined(__APPLE__)

#include <errno.h>
#include <fcntl.h>
#include <mach/mach_time.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sysctl.h>
#include <unistd.h>

uint64_t tickmap_emit_os_clock(void)
{
	/* Two threads may both ask; the kernel gives both the same answer. */
	static _Atomic uint64_t cached;
	uint64_t ratio = atomic_load_explicit(&cached, memory_order_relaxed);

	if (!ratio) {
		mach_timebase_info_data_t timebase = { 1, 1 };

		mach_timebase_info(&timebase);
		ratio = (uint64_t)timebase.numer << 32 | timebase.denom;
		atomic_store_explicit(&cached, ratio, memory_order_relaxed);
	}
	return tickmap_emit_scale_ticks(
		mach_absolute_time(), (uint32_t)(ratio >> 32), (uint32_t)ratio);
}

/* Cheap: the thread holds its id. The field has 32 bits. */
uint32_t tickmap_emit_os_tid(uint32_t pid)
{
	uint64_t tid = 0;

	(void)pid;
	pthread_threadid_np(NULL, &tid);
	return (uint32_t)tid;
}

uint64_t tickmap_emit_os_started(void)
{
	struct kinfo_proc info;
	size_t size = sizeof(info);
	int name[] = { CTL_KERN, KERN_PROC, KERN_PROC_PID, getpid() };

	if (sysctl(name, 4, &info, &size, NULL, 0) || size < sizeof(info))
		return 0;
	return (uint64_t)info.kp_proc.p_starttime.tv_sec *
		       UINT64_C(1000000000) +
	       (uint64_t)info.kp_proc.p_starttime.tv_usec * 1000;
}

uint64_t tickmap_emit_os_written(const struct stat *st)
{
	return (uint64_t)st->st_mtimespec.tv_sec * UINT64_C(1000000000) +
	       (uint64_t)st->st_mtimespec.tv_nsec;
}

const char *tickmap_emit_os_getenv(const char *name)
{
	return issetugid() ? NULL : getenv(name);
}

void tickmap_emit_os_init_lock(pthread_mutex_t *lock)
{
	pthread_mutex_init(lock, NULL);
}

int tickmap_emit_os_open_dir(int at, const char *path, bool follow)
{
	return openat(at, path,
		      O_RDONLY | O_DIRECTORY | O_CLOEXEC |
			      (follow ? 0 : O_NOFOLLOW));
}

/* A cancellation point; macOS has no other way to the system call. */
ssize_t tickmap_emit_os_writev(int fd, const struct iovec *iov, int count)
{
	int old;
	ssize_t n;
	int saved;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	n = writev(fd, iov, count);
	saved = errno;
	pthread_setcancelstate(old, NULL);
	errno = saved;
	return n;
}

#define MAX_FDS 65536

bool tickmap_emit_os_holds(uint64_t dev, uint64_t ino)
{
	long limit = sysconf(_SC_OPEN_MAX);
	struct stat st;

	if (limit < 0 || limit > MAX_FDS)
		limit = MAX_FDS;
	for (int fd = 0; fd < limit; fd++) {
		if (!fstat(fd, &st) && (uint64_t)st.st_dev == dev &&
		    (uint64_t)st.st_ino == ino)
			return true;
	}
	return false;
}

/* Profilers watch the opening of jit-PID.dump instead. */
bool tickmap_emit_os_has_marker(void)
{
	return false;
}

void *tickmap_emit_os_map_marker(int fd)
{
	(void)fd;
	return NULL;
}

void tickmap_emit_os_unmap_marker(void *marker)
{
	(void)marker;
}

/* No page is wiped by fork here, and getpid is no system call. */
void *tickmap_emit_os_map_region(size_t size, size_t *ret_buffer_at,
				 bool *ret_wiped)
{
	void *region = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANON, -1, 0);

	if (region == MAP_FAILED)
		return NULL;
	*ret_wiped = false;
	*ret_buffer_at = (size_t)getpagesize();
	return region;
}

void tickmap_emit_os_unmap_region(void *region, size_t size)
{
	if (region)
		munmap(region, size);
}

#endif

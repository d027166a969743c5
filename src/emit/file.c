/* SPDX-License-Identifier: MIT */
/*
 * Files in a folder that anybody may write to, and appends that are whole or
 * not there. The folder is opened once and everything is done relative to it;
 * nothing is ever opened through a link, and a file is only written to if this
 * call made it or another writer of this process holds it.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

/* How often a name may reappear between unlinking and creating it. */
#define CREATE_TRIES 8
#define MAX_FOLDERS 4096
/*
 * Descriptors from here on. A host that closes every descriptor and opens new
 * ones gets the lowest numbers, not ours, so that what we append cannot end up
 * in a file of the host's.
 */
#define LOWEST_FD 256

/* Closes without changing errno. */
static void close_quietly(int fd)
{
	int saved = errno;

	if (fd >= 0)
		close(fd);
	errno = saved;
}

static uint64_t size_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	return limit.rlim_cur;
}

static void move_up(int *fd)
{
	int higher = fcntl(*fd, F_DUPFD_CLOEXEC, LOWEST_FD);

	/* A small RLIMIT_NOFILE; standard streams are still not ours. */
	if (higher < 0 && *fd <= STDERR_FILENO)
		higher = fcntl(*fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (higher < 0)
		return;
	close(*fd);
	*fd = higher;
}

static int join_path(char *path, const char *dir, const char *name)
{
	int length = snprintf(path, EMIT_PATH_SIZE, "%s/%s", dir, name);

	if (length > 0 && length < EMIT_PATH_SIZE)
		return TICKMAP_EMIT_OK;
	errno = ENAMETOOLONG;
	return TICKMAP_EMIT_E_OS;
}

/* What keeps us from a file that is there, as emit.h lists it; 0: nothing. */
static int objection(const struct stat *st)
{
	if (S_ISLNK(st->st_mode))
		return ELOOP;
	if (S_ISDIR(st->st_mode))
		return EISDIR;
	if (!S_ISREG(st->st_mode))
		return EINVAL;
	if (st->st_uid != geteuid())
		return EPERM;
	return st->st_nlink == 1 ? 0 : EMLINK;
}

/* 0, or TICKMAP_EMIT_E_UNSAFE and errno. */
static int refuse_unsafe(const struct stat *st)
{
	int why = objection(st);

	if (!why)
		return TICKMAP_EMIT_OK;
	errno = why;
	return TICKMAP_EMIT_E_UNSAFE;
}

/*
 * Written to since this process began, under a name with its pid: by a handle
 * that is closed, or by a program that has executed this one. A recorder that
 * is at work needs it still. The slack is for clocks of coarse ticks.
 */
static bool is_of_this_life(const struct stat *st)
{
	const uint64_t slack = UINT64_C(50000000);
	uint64_t started = tickmap_emit_os_started();

	return started && tickmap_emit_os_written(st) + slack >= started;
}

/* Of a file that is there, however little may be done with it; or -1. */
static int open_to_look(int dir_fd, const char *name)
{
	return openat(dir_fd, name,
		      O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY |
			      O_NONBLOCK);
}

/*
 * Is there anything in it that a recorder may need: the start of a dump, or of
 * a line of a map? True when unknown.
 */
static bool is_code_map(int fd)
{
	const uint32_t magic = UINT32_C(0x4A695444);
	char start[32];
	ssize_t n = read(fd, start, sizeof(start) - 1);
	size_t digits;

	if (n < 0)
		return true;
	start[n] = '\0';
	if ((size_t)n >= sizeof(magic) && !memcmp(start, &magic, sizeof(magic)))
		return true;
	digits = strspn(start, "0123456789abcdefABCDEFxX");
	return digits && start[digits] == ' ';
}

/*
 * Each writer locks what it has made, so that one in another container, with
 * the same pid and the same /tmp, sees that it lives.
 */
static bool is_locked(int fd)
{
	return flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;
}

/* Make room for a file whose name is taken. *ret_held as in file_create. */
static int clear_name(int dir_fd, const char *name, enum emit_found found,
		      bool *ret_held)
{
	struct stat st;
	bool is_others;
	int status;
	int fd;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? TICKMAP_EMIT_OK : TICKMAP_EMIT_E_OS;
	status = refuse_unsafe(&st);
	if (status)
		return status;
	*ret_held =
		tickmap_emit_os_holds((uint64_t)st.st_dev, (uint64_t)st.st_ino);
	fd = open_to_look(dir_fd, name);
	is_others = !*ret_held && is_locked(fd);
	if (!*ret_held && !is_others)
		*ret_held = is_of_this_life(&st) && is_code_map(fd);
	close_quietly(fd);
	if (*ret_held || is_others || found == EMIT_FOUND_KEEP)
		return TICKMAP_EMIT_E_EXISTS;
	if (unlinkat(dir_fd, name, 0) && errno != ENOENT)
		return TICKMAP_EMIT_E_OS;
	return TICKMAP_EMIT_OK;
}

static int create_at(int dir_fd, const char *name, mode_t mode,
		     enum emit_found found, int *ret_fd, bool *ret_held)
{
	/* Readable, as the marker mapping must be. */
	const int flags = O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW |
			  O_CLOEXEC | O_NOCTTY;
	int status;

	for (int i = 0; i < CREATE_TRIES; i++) {
		int fd = openat(dir_fd, name, flags, mode);

		if (fd >= 0) {
			move_up(&fd);
			fchmod(fd, mode); /* whatever the umask took away */
			flock(fd, LOCK_EX | LOCK_NB); /* see is_locked */
			*ret_fd = fd;
			return TICKMAP_EMIT_OK;
		}
		if (errno != EEXIST)
			return TICKMAP_EMIT_E_OS;
		status = clear_name(dir_fd, name, found, ret_held);
		if (status)
			return status;
	}
	/* Somebody makes it anew each time. */
	errno = EEXIST;
	return TICKMAP_EMIT_E_UNSAFE;
}

static void set_open(struct emit_file *file, int fd, bool created)
{
	file->fd = fd;
	file->created = created;
	file->is_limited = size_limit() != UINT64_MAX;
}

int tickmap_emit_file_create(struct emit_file *file, const char *dir,
			     const char *name, mode_t mode,
			     enum emit_found found, bool *ret_held)
{
	int status = join_path(file->path, dir, name);
	int dir_fd;
	int fd = -1;

	*ret_held = false;
	if (status)
		return status;
	dir_fd = tickmap_emit_os_open_dir(AT_FDCWD, dir, true);
	if (dir_fd < 0)
		return TICKMAP_EMIT_E_OS;
	status = create_at(dir_fd, name, mode, found, &fd, ret_held);
	close_quietly(dir_fd);
	if (!status)
		set_open(file, fd, true);
	return status;
}

int tickmap_emit_file_join(struct emit_file *file, const char *dir,
			   const char *name)
{
	int status = join_path(file->path, dir, name);
	struct stat st;
	int fd;

	if (status)
		return status;
	/* O_NONBLOCK: should it have become a FIFO, do not wait for readers.
	 * Read is its last byte; see ends_whole. */
	fd = open(file->path, O_RDWR | O_APPEND | O_NOFOLLOW | O_CLOEXEC |
				      O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return errno == ELOOP || errno == ENXIO ? TICKMAP_EMIT_E_UNSAFE
							: TICKMAP_EMIT_E_OS;
	if (fstat(fd, &st)) {
		close_quietly(fd);
		return TICKMAP_EMIT_E_OS;
	}
	status = refuse_unsafe(&st);
	if (status) {
		close_quietly(fd);
		return status;
	}
	move_up(&fd);
	set_open(file, fd, false);
	return TICKMAP_EMIT_OK;
}

/* A folder that nobody else can write to, existing or new; or -1. */
static int open_private_folder(int dir_fd, const char *name)
{
	struct stat st;
	int fd;

	if (mkdirat(dir_fd, name, 0700) && errno != EEXIST)
		return -1;
	fd = tickmap_emit_os_open_dir(dir_fd, name, false);
	if (fd < 0)
		return -1;
	if (!fstat(fd, &st) && st.st_uid == geteuid() &&
	    !(st.st_mode & (S_IWGRP | S_IWOTH)))
		return fd;
	close(fd);
	errno = EEXIST;
	return -1;
}

static int create_in_folder(struct emit_file *file, int dir_fd, const char *dir,
			    const char *folder, const char *name, mode_t mode)
{
	char path[EMIT_PATH_SIZE];
	bool held = false;
	int status;
	int fd = -1;
	int folder_fd = open_private_folder(dir_fd, folder);

	if (folder_fd < 0)
		return errno == EEXIST || errno == ELOOP || errno == ENOTDIR
			       ? TICKMAP_EMIT_E_EXISTS
			       : TICKMAP_EMIT_E_OS;
	status = create_at(folder_fd, name, mode, EMIT_FOUND_KEEP, &fd, &held);
	close_quietly(folder_fd);
	if (status == TICKMAP_EMIT_E_UNSAFE)
		return TICKMAP_EMIT_E_EXISTS;
	if (status)
		return status;
	set_open(file, fd, true);
	status = join_path(path, dir, folder);
	return status ? status : join_path(file->path, path, name);
}

int tickmap_emit_file_create_beside(struct emit_file *file, const char *dir,
				    const char *name, mode_t mode)
{
	char folder[sizeof("tickmap-4294967295")];
	int status = TICKMAP_EMIT_E_EXISTS;
	int dir_fd = tickmap_emit_os_open_dir(AT_FDCWD, dir, true);

	if (dir_fd < 0)
		return TICKMAP_EMIT_E_OS;
	for (unsigned int i = 1;
	     i <= MAX_FOLDERS && status == TICKMAP_EMIT_E_EXISTS; i++) {
		snprintf(folder, sizeof(folder), "tickmap-%u", i);
		status =
			create_in_folder(file, dir_fd, dir, folder, name, mode);
	}
	close_quietly(dir_fd);
	return status;
}

/*
 * Take back what an append that failed has left, unless another writer has
 * appended behind it: the file offset stands where our last byte went.
 */
static void roll_back(const struct emit_file *file, size_t left)
{
	off_t end = lseek(file->fd, 0, SEEK_CUR);
	struct stat st;

	if (!left || end < (off_t)left || fstat(file->fd, &st) ||
	    st.st_size != end)
		return;
	while (ftruncate(file->fd, end - (off_t)left) && errno == EINTR)
		;
}

/* The rest of an append of which `done` bytes got through. 0 or errno. */
static int append_rest(const struct emit_file *file, const struct iovec *iov,
		       int count, size_t *done)
{
	size_t skip = *done;
	off_t end = lseek(file->fd, 0, SEEK_CUR);

	/* Writing at the limit would raise SIGXFSZ, which ends the process. */
	if (end >= 0 && (uint64_t)end >= size_limit())
		return EFBIG;
	for (; count; iov++, count--) {
		struct iovec part = *iov;

		if (skip >= part.iov_len) {
			skip -= part.iov_len;
			continue;
		}
		part.iov_base = (char *)part.iov_base + skip;
		part.iov_len -= skip;
		skip = 0;
		while (part.iov_len) {
			ssize_t n = tickmap_emit_os_writev(file->fd, &part, 1);

			if (n < 0 && errno == EINTR)
				continue;
			if (n <= 0)
				return n ? errno : EIO;
			*done += (size_t)n;
			part.iov_base = (char *)part.iov_base + n;
			part.iov_len -= (size_t)n;
		}
	}
	return 0;
}

/*
 * The answer to a write that begins at the limit is SIGXFSZ, which ends the
 * process. Where there is a limit it may be lowered, so it is asked for each
 * time; where there was none, nobody pays for the question.
 */
static bool is_beyond_limit(const struct emit_file *file, size_t size)
{
	uint64_t limit = file->is_limited ? size_limit() : UINT64_MAX;
	struct stat st;

	/* Of the file itself: another writer of a map may have moved its end.
	 */
	if (limit == UINT64_MAX || fstat(file->fd, &st))
		return false;
	return (uint64_t)st.st_size > limit ||
	       size > limit - (uint64_t)st.st_size;
}

static int append_whole(struct emit_file *file, const struct iovec *iov,
			int count)
{
	size_t total = 0;
	size_t done;
	ssize_t n;
	int error;

	for (int i = 0; i < count; i++)
		total += iov[i].iov_len;
	if (is_beyond_limit(file, total))
		return EFBIG;
	do {
		n = tickmap_emit_os_writev(file->fd, iov, count);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno;
	done = (size_t)n;
	/* Only to learn the reason, or past a file system that is slow. */
	error = done == total ? 0 : append_rest(file, iov, count, &done);
	if (error) {
		roll_back(file, done);
		return error;
	}
	return 0;
}

/* Has the other writer of a map ended its last line? */
static bool ends_whole(const struct emit_file *file)
{
	off_t end = lseek(file->fd, 0, SEEK_END);
	char last = '\n';
	int old;

	if (end <= 0)
		return true;
	/* A cancellation point. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	if (pread(file->fd, &last, 1, end - 1) != 1)
		last = '\n';
	pthread_setcancelstate(old, NULL);
	return last == '\n';
}

int tickmap_emit_file_append(struct emit_file *file, const struct iovec *iov,
			     int count)
{
	struct iovec feed = { (void *)(uintptr_t) "\n", 1 };
	int error;

	if (!file->created && !ends_whole(file)) {
		error = append_whole(file, &feed, 1);
		if (error)
			return error;
	}
	return append_whole(file, iov, count);
}
void tickmap_emit_file_close(struct emit_file *file)
{
	close_quietly(file->fd);
	file->fd = -1;
	file->path[0] = '\0';
}

void tickmap_emit_file_discard(struct emit_file *file)
{
	int saved = errno;

	if (file->fd >= 0 && file->created)
		unlink(file->path);
	errno = saved;
	tickmap_emit_file_close(file);
}

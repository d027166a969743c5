/* SPDX-License-Identifier: MIT */
#include "record/codemapdir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX "tickmap-"
/* In the folder; its holder is a recorder that lives. */
#define LOCK "lock"

static int remove_one(const char *path, const struct stat *st, int type,
		      struct FTW *walk)
{
	(void)st;
	(void)type;
	(void)walk;
	remove(path);
	return 0;
}

static void remove_all(const char *path)
{
	nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* A program that outlived its recorder still writes to its files. */
static bool written_by_the_living(int dir_fd)
{
	int copy = dup(dir_fd);
	DIR *files = copy < 0 ? NULL : fdopendir(copy);
	bool living = !files;
	struct dirent *entry;

	while (files && !living && (entry = readdir(files))) {
		int pid;

		if (sscanf(entry->d_name, "jit-%d.dump", &pid) == 1 ||
		    sscanf(entry->d_name, "perf-%d.map", &pid) == 1)
			living = pid > 0 && (!kill(pid, 0) || errno == EPERM);
	}
	if (files)
		closedir(files);
	else if (copy >= 0)
		close(copy);
	return living;
}

/* Ours, by a recorder that did not get to remove it: nobody holds its lock. */
static bool is_orphan(int dir_fd)
{
	struct stat st;
	int lock = -1;

	if (fstat(dir_fd, &st) || st.st_uid != geteuid())
		return false;
	lock = openat(dir_fd, LOCK, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	bool orphan = lock >= 0 && !fstat(lock, &st) &&
		      st.st_uid == geteuid() &&
		      !flock(lock, LOCK_EX | LOCK_NB) &&
		      !written_by_the_living(dir_fd);
	if (lock >= 0)
		close(lock);
	return orphan;
}

static void remove_orphans(const char *tmp)
{
	DIR *folders = opendir(tmp);
	struct dirent *entry;

	while (folders && (entry = readdir(folders))) {
		const char *name = entry->d_name;
		char path[512];

		if (strncmp(name, PREFIX, strlen(PREFIX)) ||
		    strlen(name) != strlen(PREFIX) + 6)
			continue;
		int fd =
			openat(dirfd(folders), name,
			       O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s", tmp, name);
		if (is_orphan(fd))
			remove_all(path);
		close(fd);
	}
	if (folders)
		closedir(folders);
}

static bool make_in(struct tickmap_code_map_dir *dir, const char *tmp)
{
	size_t room = sizeof(dir->path);
	/* It ends up in the path of a mapping: keep it absolute and short. */
	int length = snprintf(dir->path, room, "%s/" PREFIX "XXXXXX", tmp);

	if (length > 0 && (size_t)length < room && mkdtemp(dir->path))
		return true;
	dir->path[0] = '\0';
	return false;
}

int tickmap_code_map_dir_make(struct tickmap_code_map_dir *dir,
			      struct tickmap_error *err)
{
	const char *tmp = getenv("TMPDIR");
	char lock[300];

	/* A TMPDIR may be gone, or not ours. */
	if (!tmp || tmp[0] != '/' || !make_in(dir, tmp)) {
		tmp = "/tmp";
		if (!make_in(dir, tmp)) {
			tickmap_fail_os(err, errno,
					"cannot make a folder for code maps");
			tickmap_error_source(err, tmp);
			return TICKMAP_E_OS;
		}
	}
	snprintf(lock, sizeof(lock), "%s/" LOCK, dir->path);
	dir->lock = open(lock, O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (dir->lock >= 0)
		flock(dir->lock, LOCK_EX);
	/* A root's command may change its user: then as safe as /tmp, since
	 * files are made exclusively and under a name nobody can foresee. */
	if (geteuid() == 0)
		chmod(dir->path, 01777);
	snprintf(dir->notes, sizeof(dir->notes), "%s/notes", dir->path);
	remove_orphans(tmp);
	return TICKMAP_OK;
}

void tickmap_code_map_dir_remove(struct tickmap_code_map_dir *dir)
{
	if (!dir->path[0])
		return;
	remove_all(dir->path);
	if (dir->lock >= 0)
		close(dir->lock);
	dir->path[0] = '\0';
}

void tickmap_code_map_dir_leave(struct tickmap_code_map_dir *dir)
{
	char lock[300];

	unlink(dir->notes);
	snprintf(lock, sizeof(lock), "%s/" LOCK, dir->path);
	unlink(lock);
	if (dir->lock >= 0)
		close(dir->lock);
	dir->path[0] = '\0';
}

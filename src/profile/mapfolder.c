/* SPDX-License-Identifier: MIT */
#include "profile/mapfolder.h"

#include "base/bytes.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	MAGIC = 0x4a695444, /* "JiTD" */
	HEADER = 40,
	PREFIX = 16,
	ARCH_TIMESTAMP = 1,
	ENTRIES_MAX = 1 << 16,
};

uint32_t tickmap_perf_map_pid(const char *name)
{
	unsigned pid;
	int end = 0;

	return sscanf(name, "perf-%9u.map%n", &pid, &end) == 1 && end &&
			       !name[end]
		       ? pid
		       : 0;
}

bool tickmap_map_file_peek(int fd, struct tickmap_map_file *ret_file)
{
	uint8_t bytes[HEADER + PREFIX];
	ssize_t got = pread(fd, bytes, sizeof(bytes), 0);
	struct tickmap_bytes b =
		tickmap_bytes_of(bytes, got > 0 ? (size_t)got : 0);

	uint32_t magic = tickmap_u32(&b);
	b.swap = magic == __builtin_bswap32(MAGIC);
	if (b.failed || (magic != MAGIC && !b.swap))
		return false;
	tickmap_take(&b, 16); /* version, size, machine, padding */
	ret_file->pid = tickmap_u32(&b);
	tickmap_u64(&b); /* the header's own time */
	ret_file->arch_clock = tickmap_u64(&b) & ARCH_TIMESTAMP;
	tickmap_take(&b, 8); /* the first record's id and size */
	ret_file->stamp = tickmap_u64(&b);
	return true;
}

static bool add(struct tickmap_map_folder *folder, const char *path,
		const char *name, const struct stat *st, bool strict)
{
	struct tickmap_map_file file = { .device = st->st_dev,
					 .inode = st->st_ino,
					 .strict = strict };

	file.pid = tickmap_perf_map_pid(name);
	file.perf_map = file.pid;
	if (!file.perf_map) {
		int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK |
					    O_NOCTTY |
					    (strict ? O_NOFOLLOW : 0));
		bool dump = fd >= 0 && tickmap_map_file_peek(fd, &file);
		if (fd >= 0)
			close(fd);
		if (!dump)
			return true;
	}
	struct tickmap_map_file *place = tickmap_vec_push(&folder->files);
	if (!place)
		return false;
	file.path = strdup(path);
	*place = file;
	return file.path;
}

bool tickmap_map_folder_scan(struct tickmap_map_folder *folder, const char *dir,
			     unsigned depth, bool strict)
{
	DIR *stream = opendir(dir);
	bool good = true;

	for (struct dirent *e; stream && good && (e = readdir(stream)) &&
			       folder->seen < ENTRIES_MAX;
	     folder->seen++) {
		char *path = NULL;
		struct stat st, link;
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		if (asprintf(&path, "%s/%s", dir, e->d_name) < 0) {
			good = false;
			break;
		}
		/* No link to a folder is followed: it might lead in a circle.
		 */
		if (!lstat(path, &link) && !stat(path, &st)) {
			if (S_ISREG(st.st_mode))
				good = add(folder, path, e->d_name, &st,
					   strict);
			else if (S_ISDIR(link.st_mode) && depth)
				good = tickmap_map_folder_scan(
					folder, path, depth - 1, strict);
		}
		free(path);
	}
	if (stream)
		closedir(stream);
	return good;
}

void tickmap_map_folder_free(struct tickmap_map_folder *folder)
{
	for (size_t i = 0; i < folder->files.count; i++)
		free(folder->files.items[i].path);
	tickmap_vec_free(&folder->files);
	folder->seen = 0;
}

/* SPDX-License-Identifier: MIT */
#include "record/keep.h"

#include "codemap/codemap.h"
#include "platform/platform.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DUMP_MAX = 1 << 30 };

struct map_writer {
	FILE *out;
	bool failed;
};

static void put_line(void *context, const struct tickmap_code_event *event)
{
	struct map_writer *w = context;

	if (event->kind != TICKMAP_CODE_LOAD || !event->size)
		return;
	fprintf(w->out, "%llx %llx ", (unsigned long long)event->avma,
		(unsigned long long)event->size);
	/* A name may not end the line. */
	for (size_t i = 0; i < event->name_length; i++) {
		unsigned char c = (unsigned char)event->name[i];
		putc(c < 0x20 || c == 0x7f ? '?' : c, w->out);
	}
	putc('\n', w->out);
}

static void ignore(void *context, const struct tickmap_finding *finding)
{
	(void)context;
	(void)finding;
}

static bool append_dump(struct map_writer *w, const char *path)
{
	struct tickmap_code_handler handler = {
		.context = w,
		.code = put_line,
		.finding = ignore,
	};
	char *bytes;
	size_t size;

	if (tickmap_read_file(path, DUMP_MAX, &bytes, &size, NULL))
		return false;
	struct tickmap_jitdump *dump = tickmap_jitdump_new(&handler);
	bool ok = dump && tickmap_jitdump_feed(dump, bytes, size);
	if (ok)
		tickmap_jitdump_end(dump);
	tickmap_jitdump_free(dump);
	free(bytes);
	return ok;
}

static bool is_below(const char *path, const char *dir)
{
	size_t length = strlen(dir);

	return length && !strncmp(path, dir, length) && path[length] == '/';
}

/* This process already got its map from an earlier dump in the list. */
static bool is_first_of_pid(const struct tickmap_follower *follower,
			    size_t index, const char *dir)
{
	struct tickmap_followed f = tickmap_follower_at(follower, index);

	for (size_t i = 0; i < index; i++) {
		struct tickmap_followed g = tickmap_follower_at(follower, i);
		if (!g.perf_map && g.pid == f.pid && is_below(g.path, dir))
			return false;
	}
	return true;
}

/* All dumps of one process (it may have exec'd) make one map. */
static int write_map(const struct tickmap_follower *follower, size_t index,
		     const char *dir, const char *path,
		     struct tickmap_error *err)
{
	struct tickmap_followed f = tickmap_follower_at(follower, index);
	int fd =
		open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		     0600);
	struct map_writer w = { 0 };

	if (fd < 0)
		return tickmap_fail_os(err, errno, "cannot create");
	w.out = fdopen(fd, "w");
	if (!w.out) {
		close(fd);
		return tickmap_fail(err, TICKMAP_E_NOMEM, 0, "out of memory");
	}
	for (size_t i = index; i < tickmap_follower_count(follower); i++) {
		struct tickmap_followed g = tickmap_follower_at(follower, i);
		if (!g.perf_map && g.pid == f.pid && is_below(g.path, dir))
			append_dump(&w, g.path);
	}
	bool failed = ferror(w.out);
	if (fclose(w.out) || failed) {
		int error = errno;
		unlink(path);
		return tickmap_fail_os(err, error, "cannot write");
	}
	return TICKMAP_OK;
}

int tickmap_keep_perf_maps(const struct tickmap_follower *follower,
			   const char *dir,
			   void (*refused)(void *context, const char *path),
			   void *context, struct tickmap_error *err)
{
	int written = 0;

	for (size_t i = 0; i < tickmap_follower_count(follower); i++) {
		struct tickmap_followed f = tickmap_follower_at(follower, i);
		struct tickmap_error why = { 0 };
		char path[64];

		if (f.perf_map || !is_below(f.path, dir) ||
		    !is_first_of_pid(follower, i, dir))
			continue;
		snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)f.pid);
		int status = write_map(follower, i, dir, path, &why);
		if (status && why.os_errno == EEXIST) {
			refused(context, path);
		} else if (status) {
			tickmap_error_source(&why, path);
			if (err)
				*err = why;
			return status;
		} else {
			written++;
		}
	}
	return written;
}

void tickmap_remove_own_switch_files(const struct tickmap_follower *follower,
				     const char *dir)
{
	for (size_t i = 0; i < tickmap_follower_count(follower); i++) {
		struct tickmap_followed f = tickmap_follower_at(follower, i);
		struct stat st;
		if (is_below(f.path, dir) || lstat(f.path, &st))
			continue;
		if (st.st_dev == f.device && st.st_ino == f.inode)
			unlink(f.path);
	}
}

/* SPDX-License-Identifier: MIT */
#include "record/follow.h"

#include "base/vec.h"
#include "codemap/codemap.h"
#include "platform/platform.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

enum {
	READ_SIZE = 64 * 1024,
	/* A process without a perf map is asked again this often. */
	MAP_RETRY_MS = 250,
};

struct followed {
	struct tickmap_follower *follower;
	char *path;
	int fd; /* -1: no more bytes will come */
	pid_t pid;
	bool perf_map;
	uint64_t device, inode;
	uint64_t offset;
	uint64_t seen_ns; /* when the file was last seen at its end */
	struct tickmap_jitdump *dump;
	struct tickmap_perfmap *map;
};

struct tickmap_follower {
	struct tickmap_processes *processes;
	struct tickmap_perfdata_writer *writer;
	TICKMAP_VEC(struct followed *) all;
	uint64_t functions, missed;
	bool no_memory;
	uint8_t buffer[READ_SIZE];
};

struct tickmap_follower *
tickmap_follower_new(struct tickmap_processes *processes,
		     struct tickmap_perfdata_writer *writer)
{
	struct tickmap_follower *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->processes = processes;
	f->writer = writer;
	return f;
}

static void close_file(struct followed *file)
{
	if (file->fd >= 0)
		close(file->fd);
	file->fd = -1;
	tickmap_jitdump_free(file->dump);
	tickmap_perfmap_free(file->map);
	file->dump = NULL;
	file->map = NULL;
}

void tickmap_follower_free(struct tickmap_follower *follower)
{
	if (!follower)
		return;
	for (size_t i = 0; i < follower->all.count; i++) {
		close_file(follower->all.items[i]);
		free(follower->all.items[i]->path);
		free(follower->all.items[i]);
	}
	tickmap_vec_free(&follower->all);
	free(follower);
}

/* The process that a record of this dump speaks of. The dump is bound to the
 * process that mapped it; its own numbers may be another namespace's. */
static pid_t owner_of(const struct followed *file, uint32_t record_pid)
{
	const struct tickmap_jitdump_header *header =
		file->dump ? tickmap_jitdump_header(file->dump) : NULL;

	if (!header || !record_pid || record_pid == header->pid)
		return file->pid;
	return (pid_t)record_pid;
}

static void on_code(void *context, const struct tickmap_code_event *event)
{
	struct followed *file = context;
	struct tickmap_follower *f = file->follower;
	struct tickmap_live_code code = {
		.when = event->when,
		.avma = event->avma,
		.size = event->size,
		.moved = event->kind == TICKMAP_CODE_MOVE,
		.old_avma = event->old_avma,
	};

	if (event->kind == TICKMAP_CODE_CLOSE)
		return;
	/* A stamp of another clock orders nothing here: in force at once. */
	if (code.when > tickmap_mono_ns())
		code.when = 0;
	f->functions += event->kind == TICKMAP_CODE_LOAD;
	if (event->eh_frame_size)
		code.eh_frame = tickmap_processes_eh_frame(
			f->processes, event->eh_frame, event->eh_frame_size);
	if (!tickmap_process_publish(f->processes, owner_of(file, event->pid),
				     &code))
		f->no_memory = true;
}

static void on_finding(void *context, const struct tickmap_finding *finding)
{
	(void)context; /* the recording holds the bytes: report shows them */
	(void)finding;
}

static int write_chunk(struct followed *file, uint32_t id, const uint8_t *bytes,
		       size_t size, struct tickmap_error *err)
{
	struct tickmap_note note = {
		.kind = file->perf_map ? TICKMAP_NOTE_PERF_MAP
				       : TICKMAP_NOTE_JITDUMP,
		.pid = (uint32_t)file->pid,
		.file_id = id,
		.time_ns = file->seen_ns,
		.value = file->offset,
		.bytes = bytes,
		.size = size,
	};

	return tickmap_perfdata_write_note(file->follower->writer, &note, err);
}

/* Reads up to the file's present end. */
static int read_more(struct followed *file, uint32_t id, uint64_t now_ns,
		     struct tickmap_error *err)
{
	struct tickmap_follower *f = file->follower;

	while (file->fd >= 0) {
		ssize_t n = pread(file->fd, f->buffer, sizeof(f->buffer),
				  (off_t)file->offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		int status = write_chunk(file, id, f->buffer, (size_t)n, err);
		if (status)
			return status;
		bool ok =
			file->perf_map
				? tickmap_perfmap_feed(file->map, f->buffer,
						       (size_t)n, file->seen_ns)
				: tickmap_jitdump_feed(file->dump, f->buffer,
						       (size_t)n);
		file->offset += (uint64_t)n;
		/* Not a dump after all: what was copied stays harmless. */
		if (!ok)
			close_file(file);
		if (f->no_memory)
			return tickmap_fail(err, TICKMAP_E_NOMEM, 0,
					    "out of memory");
	}
	file->seen_ns = now_ns;
	return TICKMAP_OK;
}

static struct followed *add(struct tickmap_follower *follower, int fd,
			    const char *path, pid_t pid, bool perf_map,
			    const struct stat *st)
{
	struct followed *file = calloc(1, sizeof(*file));
	struct followed **at = file ? tickmap_vec_push(&follower->all) : NULL;

	if (!at) {
		free(file);
		close(fd);
		return NULL;
	}
	*at = file;
	file->follower = follower;
	file->fd = fd;
	file->pid = pid;
	file->perf_map = perf_map;
	file->device = st->st_dev;
	file->inode = st->st_ino;
	file->path = strdup(path);

	struct tickmap_code_handler handler = {
		.context = file,
		.code = on_code,
		.finding = on_finding,
	};
	if (perf_map)
		file->map = tickmap_perfmap_new(&handler);
	else
		file->dump = tickmap_jitdump_new(&handler);
	if (!file->path || (!file->map && !file->dump)) {
		follower->no_memory = true;
		close_file(file);
	}
	return file;
}

static int start(struct followed *file, uint64_t now_ns,
		 struct tickmap_error *err)
{
	struct tickmap_follower *f = file->follower;
	uint32_t id = (uint32_t)f->all.count; /* from 1 */
	struct tickmap_note note = {
		.kind = TICKMAP_NOTE_CODE_MAP_PATH,
		.pid = (uint32_t)file->pid,
		.file_id = id,
		.value = file->perf_map ? TICKMAP_NOTE_PERF_MAP
					: TICKMAP_NOTE_JITDUMP,
		.bytes = (const uint8_t *)file->path,
		.size = file->path ? strlen(file->path) : 0,
	};
	int status = tickmap_perfdata_write_note(f->writer, &note, err);

	return status ? status : read_more(file, id, now_ns, err);
}

/* Through the process's own root first: containers have their own /tmp. */
static int open_for(pid_t pid, const char *path, struct stat *ret_st,
		    char *ret_path, size_t size)
{
	const int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
	int fd;

	snprintf(ret_path, size, "/proc/%d/root%s", (int)pid, path);
	fd = open(ret_path, flags);
	if (fd < 0) {
		snprintf(ret_path, size, "%s", path);
		fd = open(ret_path, flags);
	} else {
		/* Name it as it can be opened when the process is gone. */
		struct stat here, there;
		if (!fstat(fd, &there) && !stat(path, &here) &&
		    here.st_dev == there.st_dev && here.st_ino == there.st_ino)
			snprintf(ret_path, size, "%s", path);
	}
	if (fd < 0)
		return -1;
	if (fstat(fd, ret_st) || !S_ISREG(ret_st->st_mode)) {
		close(fd);
		return -1;
	}
	return fd;
}

int tickmap_follow_marker(struct tickmap_follower *follower,
			  const struct tickmap_mmap_record *marker,
			  struct tickmap_error *err)
{
	char path[4200], plain[4096];
	struct stat st;
	uint64_t now_ns = tickmap_mono_ns();
	char *deleted;

	snprintf(plain, sizeof(plain), "%s", marker->path);
	deleted = strstr(plain, " (deleted)");
	if (deleted)
		*deleted = '\0';
	int fd = open_for((pid_t)marker->pid, plain, &st, path, sizeof(path));
	if (fd >= 0 && marker->ino && st.st_ino != marker->ino) {
		close(fd); /* another file by that name: stale, or foreign */
		fd = -1;
	}
	if (fd < 0) {
		/* The mapping itself still leads to an unlinked file. */
		snprintf(path, sizeof(path), "/proc/%u/map_files/%llx-%llx",
			 marker->pid, (unsigned long long)marker->avma,
			 (unsigned long long)(marker->avma + marker->size));
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd >= 0 && (fstat(fd, &st) || !S_ISREG(st.st_mode))) {
			close(fd);
			fd = -1;
		}
	}
	if (fd < 0) {
		follower->missed++;
		return TICKMAP_OK;
	}
	for (size_t i = 0; i < follower->all.count; i++) {
		const struct followed *old = follower->all.items[i];
		if (old->device == st.st_dev && old->inode == st.st_ino &&
		    old->pid == (pid_t)marker->pid) {
			close(fd); /* mapped twice, or the second arena */
			return TICKMAP_OK;
		}
	}
	struct followed *file =
		add(follower, fd, path, (pid_t)marker->pid, false, &st);
	if (!file)
		return tickmap_fail(err, TICKMAP_E_NOMEM, 0, "out of memory");
	return start(file, now_ns, err);
}

static void perf_map_path(pid_t pid, char *out, size_t size)
{
	snprintf(out, size, "/tmp/perf-%d.map",
		 (int)tickmap_process_inner_pid(pid));
}

/* Made before the process: by an earlier one with the same number. */
static bool older_than(int fd, uint64_t started_ns)
{
	struct statx stx;
	struct timespec now;

	if (!started_ns)
		return false;
	if (statx(fd, "", AT_EMPTY_PATH, STATX_BTIME | STATX_MTIME, &stx))
		return false;
	clock_gettime(CLOCK_REALTIME, &now);
	int64_t wall_ns = now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
	int64_t age = (int64_t)(tickmap_mono_ns() - started_ns);
	/* Clock ticks of file systems and of /proc: 10 ms each. */
	int64_t began = wall_ns - age - 20 * 1000 * 1000;
	const struct statx_timestamp *t =
		stx.stx_mask & STATX_BTIME ? &stx.stx_btime : &stx.stx_mtime;
	return t->tv_sec * INT64_C(1000000000) + t->tv_nsec < began;
}

void tickmap_follow_birth(struct tickmap_follower *follower,
			  struct tickmap_process *process)
{
	char path[64], real[4200];
	struct stat st;
	int fd;

	(void)follower;
	if (process->map_checked)
		return;
	process->map_checked = true;
	process->map_skip = 0;
	perf_map_path(process->pid, path, sizeof(path));
	fd = open_for(process->pid, path, &st, real, sizeof(real));
	if (fd < 0)
		return;
	/* We may be late: what the process itself has made already is its. */
	if (older_than(fd, process->started))
		process->map_skip = (uint64_t)st.st_size;
	close(fd);
}

void tickmap_follow_perf_map(struct tickmap_follower *follower,
			     struct tickmap_process *process, uint64_t now_ns)
{
	char path[64], real[4200];
	struct stat st, dir;
	int fd;

	if (process->map_file ||
	    (now_ns && process->map_last_try &&
	     now_ns - process->map_last_try < MAP_RETRY_MS * UINT64_C(1000000)))
		return;
	process->map_last_try = now_ns;
	perf_map_path(process->pid, path, sizeof(path));
	fd = open_for(process->pid, path, &st, real, sizeof(real));
	if (fd < 0)
		return;
	/* Somebody else's file says nothing about this process. */
	snprintf(path, sizeof(path), "/proc/%d", (int)process->pid);
	bool foreign = stat(path, &dir) == 0 && st.st_uid != dir.st_uid &&
		       st.st_uid != 0;
	uint64_t started = process->started
				   ? process->started
				   : tickmap_process_start_ns(process->pid);
	bool stale = !process->map_skip && older_than(fd, started);
	if (foreign || stale || (uint64_t)st.st_size <= process->map_skip) {
		close(fd);
		return;
	}
	struct followed *file =
		add(follower, fd, real, process->pid, true, &st);
	if (!file) {
		follower->no_memory = true;
		return;
	}
	file->offset = process->map_skip;
	process->map_file = (uint32_t)follower->all.count;
	if (start(file, now_ns, NULL))
		close_file(file);
}

int tickmap_follow_poll(struct tickmap_follower *follower, uint64_t now_ns,
			struct tickmap_error *err)
{
	for (size_t i = 0; i < follower->all.count; i++) {
		struct followed *file = follower->all.items[i];
		int status;

		if (file->fd < 0)
			continue;
		status = read_more(file, (uint32_t)i + 1, now_ns, err);
		if (status)
			return status;
	}
	return TICKMAP_OK;
}

int tickmap_follow_end(struct tickmap_follower *follower, pid_t pid,
		       struct tickmap_error *err)
{
	for (size_t i = 0; i < follower->all.count; i++) {
		struct followed *file = follower->all.items[i];
		int status;

		if (file->fd < 0 || file->pid != pid)
			continue;
		status = read_more(file, (uint32_t)i + 1, tickmap_mono_ns(),
				   err);
		if (status)
			return status;
		close_file(file);
	}
	return TICKMAP_OK;
}

size_t tickmap_follower_count(const struct tickmap_follower *follower)
{
	return follower->all.count;
}

struct tickmap_followed
tickmap_follower_at(const struct tickmap_follower *follower, size_t index)
{
	const struct followed *file = follower->all.items[index];
	struct tickmap_followed f = {
		.path = file->path,
		.pid = file->pid,
		.perf_map = file->perf_map,
		.device = file->device,
		.inode = file->inode,
		.bytes = file->offset,
	};
	return f;
}

uint64_t tickmap_follower_functions(const struct tickmap_follower *follower)
{
	return follower->functions;
}

uint64_t tickmap_follower_missed(const struct tickmap_follower *follower)
{
	return follower->missed;
}

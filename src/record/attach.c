/* SPDX-License-Identifier: MIT */
#include "record/attach.h"

#include "capture/procmaps.h"
#include "codemap/marker.h"
#include "platform/platform.h"

#include <dirent.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_MAX_BYTES = 4096, TRAILER_WORDS = 3 };

/* Appends the sample_id trailer (TID, TIME, CPU) and writes the record. */
static int write_record(struct tickmap_perfdata_writer *writer, uint32_t type,
			uint16_t misc, uint64_t *words, size_t count,
			uint32_t pid, uint32_t tid, struct tickmap_error *err)
{
	struct perf_event_header header = { .type = type, .misc = misc };

	words[count++] = (uint64_t)tid << 32 | pid;
	words[count++] = 0; /* made up: older than everything */
	words[count++] = 0;
	header.size = (uint16_t)(count * 8);
	memcpy(words, &header, sizeof(header));
	return tickmap_perfdata_write(writer, words, count * 8, err);
}

/* Copies a name padded with zeros to whole words; returns their number. */
static size_t put_name(uint64_t *words, const char *name)
{
	size_t length = strnlen(name, NAME_MAX_BYTES - 1);
	size_t count = length / 8 + 1;

	words[count - 1] = 0;
	memcpy(words, name, length);
	return count;
}

static int write_mmap(struct tickmap_perfdata_writer *writer,
		      const struct tickmap_mmap_record *m, uint16_t misc,
		      struct tickmap_error *err)
{
	uint64_t words[9 + NAME_MAX_BYTES / 8 + TRAILER_WORDS];
	size_t n = 1;

	words[n++] = (uint64_t)m->tid << 32 | m->pid;
	words[n++] = m->avma;
	words[n++] = m->size;
	words[n++] = m->file_offset;
	words[n++] = (uint64_t)m->min << 32 | m->maj;
	words[n++] = m->ino;
	words[n++] = m->ino_generation;
	words[n++] = (uint64_t)m->flags << 32 | m->prot;
	n += put_name(words + n, m->path);
	return write_record(writer, PERF_RECORD_MMAP2, misc, words, n, m->pid,
			    m->tid, err);
}

static int write_comm(struct tickmap_perfdata_writer *writer, uint32_t pid,
		      uint32_t tid, const char *comm, struct tickmap_error *err)
{
	uint64_t words[2 + NAME_MAX_BYTES / 8 + TRAILER_WORDS];
	size_t n = 1;

	words[n++] = (uint64_t)tid << 32 | pid;
	n += put_name(words + n, comm);
	return write_record(writer, PERF_RECORD_COMM, 0, words, n, pid, tid,
			    err);
}

struct attaching {
	struct tickmap_processes *processes;
	struct tickmap_follower *follower;
	struct tickmap_perfdata_writer *writer;
	struct tickmap_error *err;
};

static int on_mapping(void *context, const struct tickmap_mmap_record *mmap)
{
	struct attaching *a = context;
	int status = write_mmap(a->writer, mmap, PERF_RECORD_MISC_USER, a->err);

	if (status)
		return status;
	if (!tickmap_process_map(a->processes, mmap))
		return tickmap_fail(a->err, TICKMAP_E_NOMEM, 0,
				    "out of memory");
	if (tickmap_is_jitdump_path(mmap->path))
		return tickmap_follow_marker(a->follower, mmap, a->err);
	return TICKMAP_OK;
}

static int attach_threads(pid_t pid, struct tickmap_process *process,
			  struct tickmap_perfdata_writer *writer,
			  struct tickmap_error *err)
{
	char path[96], comm[64];
	unsigned threads = 0;
	int status = TICKMAP_OK;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	if (!dir)
		return TICKMAP_OK;
	for (struct dirent *e; !status && (e = readdir(dir));) {
		uint32_t tid = (uint32_t)strtoul(e->d_name, NULL, 10);
		if (!tid)
			continue;
		threads++;
		snprintf(path, sizeof(path), "/proc/%d/task/%u/comm", (int)pid,
			 tid);
		if (tickmap_read_line(path, comm, sizeof(comm)))
			status = write_comm(writer, (uint32_t)pid, tid, comm,
					    err);
	}
	closedir(dir);
	if (threads)
		process->threads = threads;
	return status;
}

int tickmap_attach_process(pid_t pid, struct tickmap_processes *processes,
			   struct tickmap_follower *follower,
			   struct tickmap_perfdata_writer *writer,
			   struct tickmap_error *err)
{
	struct attaching a = { processes, follower, writer, err };
	struct tickmap_process *process = tickmap_process_of(processes, pid);
	int status;

	if (!process)
		return tickmap_fail(err, TICKMAP_E_NOMEM, 0, "out of memory");
	status = attach_threads(pid, process, writer, err);
	if (!status)
		status = tickmap_procmaps_read(pid, on_mapping, &a, err);
	/* Its perf map may have grown for hours: all of it is its own as far
	 * as the file is not older than the process. */
	process->map_checked = true;
	if (!status)
		tickmap_follow_perf_map(follower, process, tickmap_mono_ns());
	return status;
}

int tickmap_attach_kernel(struct tickmap_perfdata_writer *writer,
			  struct tickmap_error *err)
{
	FILE *file = fopen("/proc/kallsyms", "re");
	char line[512];
	unsigned long long text = 0;

	if (!file)
		return TICKMAP_OK;
	while (fgets(line, sizeof(line), file)) {
		unsigned long long at;
		char type, name[256];
		if (sscanf(line, "%llx %c %255s", &at, &type, name) == 3 &&
		    (!strcmp(name, "_text") || !strcmp(name, "_stext"))) {
			text = at;
			break;
		}
	}
	fclose(file);
	if (!text) /* hidden by kptr_restrict */
		return TICKMAP_OK;
	struct tickmap_mmap_record mmap = {
		.pid = UINT32_MAX,
		.tid = 0,
		.avma = text,
		.size = UINT64_MAX - text,
		.file_offset = text,
		.path = "[kernel.kallsyms]_text",
	};
	return write_mmap(writer, &mmap, PERF_RECORD_MISC_KERNEL, err);
}

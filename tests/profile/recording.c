/* SPDX-License-Identifier: MIT */
#include "recording.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

struct record {
	_Alignas(8) uint8_t bytes[4096];
	size_t size;
};

static void put(struct record *record, const void *bytes, size_t size)
{
	assert_true(size <= sizeof(record->bytes) - record->size);
	memcpy(record->bytes + record->size, bytes, size);
	record->size += size;
}

static void put32(struct record *record, uint32_t value)
{
	put(record, &value, sizeof(value));
}

static void put64(struct record *record, uint64_t value)
{
	put(record, &value, sizeof(value));
}

static void put_text(struct record *record, const char *text)
{
	static const uint8_t zeros[8];
	size_t size = strlen(text) + 1;

	put(record, text, size);
	put(record, zeros, (8 - size % 8) % 8);
}

static void begin(struct record *record)
{
	record->size = sizeof(struct perf_event_header);
}

static void end(struct recording *r, struct record *record, uint32_t type,
		uint16_t misc)
{
	struct perf_event_header header = { .type = type, .misc = misc };

	header.size = (uint16_t)record->size;
	memcpy(record->bytes, &header, sizeof(header));
	assert_int_equal(tickmap_perfdata_write(r->writer, record->bytes,
						record->size, NULL),
			 0);
}

/* TID, TIME, CPU: what the sample type below asks of other records. */
static void put_trailer(struct record *record, uint32_t pid, uint32_t tid,
			uint64_t time_ns)
{
	put32(record, pid);
	put32(record, tid);
	put64(record, time_ns);
	put64(record, 0);
}

static void open_with(struct recording *r, int clockid, uint64_t config)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = config,
		.sample_freq = 1000,
		.freq = 1,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID |
			       PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |
			       PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN,
		.sample_id_all = 1,
		.use_clockid = clockid >= 0,
		.clockid = clockid >= 0 ? clockid : 0,
	};
	struct tickmap_perfdata_event event = {
		.attr = &attr,
		.name = config == PERF_COUNT_SW_CPU_CLOCK ? "cpu-clock"
							  : "page-faults",
	};

	strcpy(r->dir, "/tmp/tickmap-test-XXXXXX");
	assert_non_null(mkdtemp(r->dir));
	snprintf(r->path, sizeof(r->path), "%s/perf.data", r->dir);
	assert_int_equal(
		tickmap_perfdata_create(r->path, &event, 0, &r->writer, NULL),
		0);
}

void recording_open(struct recording *r, int clockid)
{
	open_with(r, clockid, PERF_COUNT_SW_CPU_CLOCK);
}

void recording_open_faults(struct recording *r)
{
	open_with(r, CLOCK_MONOTONIC, PERF_COUNT_SW_PAGE_FAULTS);
}

void recording_finish(struct recording *r)
{
	struct tickmap_perfdata_facts facts = { .version = "test" };

	assert_int_equal(tickmap_perfdata_finish(r->writer, &facts, NULL), 0);
	r->writer = NULL;
}

struct tickmap_profile *
recording_load(struct recording *r,
	       const struct tickmap_profile_options *options)
{
	struct tickmap_profile *profile = NULL;
	struct tickmap_error err = { 0 };

	if (r->writer)
		recording_finish(r);
	int status = tickmap_profile_load(r->path, options, &profile, &err);
	if (status)
		print_error("%s\n", err.what);
	assert_int_equal(status, 0);
	assert_non_null(profile);
	return profile;
}

void recording_remove(struct recording *r)
{
	DIR *dir = opendir(r->dir);

	assert_non_null(dir);
	for (struct dirent *e; (e = readdir(dir));) {
		char path[512];
		snprintf(path, sizeof(path), "%s/%s", r->dir, e->d_name);
		if (e->d_name[0] != '.')
			unlink(path);
	}
	closedir(dir);
	rmdir(r->dir);
}

void record_map(struct recording *r, uint64_t time_ns, uint32_t pid,
		uint64_t avma, uint64_t size, const char *path)
{
	record_map_of(r, time_ns, pid, avma, size, path, RECORDING_INODE);
}

void record_map_of(struct recording *r, uint64_t time_ns, uint32_t pid,
		   uint64_t avma, uint64_t size, const char *path,
		   uint64_t inode)
{
	struct record record;

	begin(&record);
	put32(&record, pid);
	put32(&record, pid);
	put64(&record, avma);
	put64(&record, size);
	put64(&record, 0);
	put32(&record, 8);
	put32(&record, 1);
	put64(&record, inode);
	put64(&record, 0);
	put32(&record, 5); /* PROT_READ | PROT_EXEC */
	put32(&record, 2); /* MAP_PRIVATE */
	put_text(&record, path);
	put_trailer(&record, pid, pid, time_ns);
	end(r, &record, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER);
}

void record_comm(struct recording *r, uint64_t time_ns, uint32_t pid,
		 uint32_t tid, const char *comm, bool exec)
{
	struct record record;

	begin(&record);
	put32(&record, pid);
	put32(&record, tid);
	put_text(&record, comm);
	put_trailer(&record, pid, tid, time_ns);
	end(r, &record, PERF_RECORD_COMM,
	    exec ? PERF_RECORD_MISC_COMM_EXEC : 0);
}

static void record_task(struct recording *r, uint32_t type, uint64_t time_ns,
			uint32_t pid, uint32_t ppid, uint32_t tid,
			uint32_t ptid)
{
	struct record record;

	begin(&record);
	put32(&record, pid);
	put32(&record, ppid);
	put32(&record, tid);
	put32(&record, ptid);
	put64(&record, time_ns);
	put_trailer(&record, ppid, ptid, time_ns);
	end(r, &record, type, 0);
}

void record_fork(struct recording *r, uint64_t time_ns, uint32_t pid,
		 uint32_t ppid)
{
	record_task(r, PERF_RECORD_FORK, time_ns, pid, ppid, pid, ppid);
}

void record_thread(struct recording *r, uint64_t time_ns, uint32_t pid,
		   uint32_t tid)
{
	record_task(r, PERF_RECORD_FORK, time_ns, pid, pid, tid, pid);
}

void record_exit(struct recording *r, uint64_t time_ns, uint32_t pid)
{
	record_task(r, PERF_RECORD_EXIT, time_ns, pid, 1, pid, 1);
}

void record_lost(struct recording *r, uint64_t time_ns, uint64_t lost)
{
	struct record record;

	begin(&record);
	put64(&record, 0);
	put64(&record, lost);
	put_trailer(&record, 0, 0, time_ns);
	end(r, &record, PERF_RECORD_LOST, 0);
}

void record_chain(struct recording *r, uint64_t time_ns, uint32_t pid,
		  uint32_t tid, const uint64_t *chain, size_t count)
{
	struct record record;

	begin(&record);
	put64(&record, count > 1 ? chain[1] : 0); /* ip */
	put32(&record, pid);
	put32(&record, tid);
	put64(&record, time_ns);
	put64(&record, 3);	 /* cpu */
	put64(&record, 1000000); /* period: 1 ms of CPU */
	put64(&record, count);
	for (size_t i = 0; i < count; i++)
		put64(&record, chain[i]);
	end(r, &record, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
}

void record_sample(struct recording *r, uint64_t time_ns, uint32_t pid,
		   uint64_t ip)
{
	const uint64_t chain[] = { (uint64_t)PERF_CONTEXT_USER, ip };

	record_chain(r, time_ns, pid, pid, chain, 2);
}

void record_note(struct recording *r, enum tickmap_note_kind kind, uint32_t pid,
		 uint32_t file_id, uint64_t time_ns, uint64_t value,
		 const void *bytes, size_t size)
{
	struct tickmap_note note = {
		.kind = kind,
		.pid = pid,
		.file_id = file_id,
		.time_ns = time_ns,
		.value = value,
		.bytes = bytes,
		.size = size,
	};

	assert_int_equal(tickmap_perfdata_write_note(r->writer, &note, NULL),
			 0);
}

static void add(struct dump *dump, const void *bytes, size_t size)
{
	assert_true(size <= sizeof(dump->bytes) - dump->size);
	memcpy(dump->bytes + dump->size, bytes, size);
	dump->size += size;
}

static void add32(struct dump *dump, uint32_t value)
{
	add(dump, &value, sizeof(value));
}

static void add64(struct dump *dump, uint64_t value)
{
	add(dump, &value, sizeof(value));
}

void dump_begin(struct dump *dump, uint32_t pid, uint64_t flags)
{
	dump->size = 0;
	dump->index = 1;
	add32(dump, 0x4a695444);
	add32(dump, 1);
	add32(dump, 40);
	add32(dump, 62); /* EM_X86_64 */
	add32(dump, 0);
	add32(dump, pid);
	add64(dump, 1);
	add64(dump, flags);
}

void dump_load(struct dump *dump, uint64_t time_ns, uint32_t pid, uint64_t avma,
	       uint32_t size, const char *name)
{
	uint32_t total = 56 + (uint32_t)strlen(name) + 1 + size;

	add32(dump, 0);
	add32(dump, total);
	add64(dump, time_ns);
	add32(dump, pid);
	add32(dump, pid);
	add64(dump, avma);
	add64(dump, avma);
	add64(dump, size);
	add64(dump, dump->index++);
	add(dump, name, strlen(name) + 1);
	for (uint32_t i = 0; i < size; i++)
		add(dump, "\xc3", 1);
}

void dump_move(struct dump *dump, uint64_t time_ns, uint32_t pid, uint64_t from,
	       uint64_t to, uint32_t size)
{
	add32(dump, 1);
	add32(dump, 64);
	add64(dump, time_ns);
	add32(dump, pid);
	add32(dump, pid);
	add64(dump, to);
	add64(dump, from);
	add64(dump, to);
	add64(dump, size);
	add64(dump, 1);
}

void write_file(const char *dir, const char *name, const void *bytes,
		size_t size)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, size), (ssize_t)size);
	close(fd);
}

void record_deferred(struct recording *r, uint64_t time_ns, uint32_t pid,
		     uint32_t tid, uint64_t cookie, const uint64_t *chain,
		     size_t count)
{
	enum { CALLCHAIN_DEFERRED = 22 }; /* newer than our headers */
	struct record record;

	begin(&record);
	put64(&record, cookie);
	put64(&record, count);
	for (size_t i = 0; i < count; i++)
		put64(&record, chain[i]);
	put_trailer(&record, pid, tid, time_ns);
	end(r, &record, CALLCHAIN_DEFERRED, PERF_RECORD_MISC_USER);
}

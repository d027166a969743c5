/* SPDX-License-Identifier: MIT */
/* A whole perf.data file, read as the profile loader reads it. */
#include "capture/perfdata.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A few bytes may unfold to gigabytes, which is slow but no news. */
enum { RECORDS_MAX = 20000 };

static volatile uint64_t sink;

static void read_sample(const struct tickmap_perfdata_record *record,
			struct tickmap_bytes *body)
{
	struct tickmap_sample sample;

	if (tickmap_sample_decode(&record->attr->layout, body, &sample, NULL))
		return;
	for (size_t i = 0; i < sample.chain_count; i++)
		sink += tickmap_sample_chain_at(&sample, i);
	for (size_t i = 0; i < sample.stack_size; i++)
		sink += sample.stack[i];
}

static void read_record(const struct tickmap_perfdata_record *record)
{
	struct tickmap_bytes body =
		tickmap_bytes_of(record->bytes + 8, record->size - 8);
	struct tickmap_mmap_record mmap;
	struct tickmap_comm_record comm;
	struct tickmap_task_record task;
	struct tickmap_note note;

	body.swap = record->swap;
	switch (record->type) {
	case PERF_RECORD_SAMPLE:
		read_sample(record, &body);
		break;
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		if (!tickmap_mmap_decode(&body, record->type, record->misc,
					 &mmap))
			sink += strlen(mmap.path) + mmap.build_id_size;
		break;
	case PERF_RECORD_COMM:
		if (!tickmap_comm_decode(&body, record->misc, &comm))
			sink += strlen(comm.comm);
		break;
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		if (!tickmap_task_decode(&body, &task))
			sink += task.pid;
		break;
	case TICKMAP_RECORD_NOTE:
		if (!tickmap_note_decode(record, &note))
			for (size_t i = 0; i < note.size; i++)
				sink += note.bytes[i];
		break;
	default:
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1;
	static char path[64];
	struct tickmap_perfdata *file;
	struct tickmap_perfdata_record record;
	uint8_t id[20];

	if (fd < 0) {
		fd = memfd_create("fuzz", MFD_CLOEXEC);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	}
	if (ftruncate(fd, 0) || pwrite(fd, data, size, 0) != (ssize_t)size)
		abort();
	if (tickmap_perfdata_open(path, &file, NULL))
		return 0;
	for (unsigned i = 0; i < 32; i++)
		if (tickmap_perfdata_feature_text(file, i))
			sink += strlen(tickmap_perfdata_feature_text(file, i));
	sink += tickmap_perfdata_build_id_of(file, "[kernel.kallsyms]", id);
	for (unsigned i = 0; i < RECORDS_MAX; i++) {
		if (tickmap_perfdata_next(file, &record, NULL) != 1)
			break;
		read_record(&record);
	}
	tickmap_perfdata_close(file);
	return 0;
}

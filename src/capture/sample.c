/* SPDX-License-Identifier: MIT */
#include "capture/sample.h"

#include <linux/perf_event.h>
#include <sys/mman.h>

/* Newer than the oldest headers that we build with. */
enum {
	READ_FORMAT_LOST = 1 << 4,
	BRANCH_HW_INDEX = 1 << 17,
	BRANCH_COUNTERS = 1 << 19,
};

uint64_t tickmap_sample_chain_at(const struct tickmap_sample *sample,
				 size_t index)
{
	uint64_t v;

	memcpy(&v, sample->chain + index * sizeof(v), sizeof(v));
	return sample->swap ? __builtin_bswap64(v) : v;
}

/* Skips `count` elements of `size` bytes; both may come from the input. */
static void skip(struct tickmap_bytes *body, uint64_t count, size_t size)
{
	if (count > tickmap_bytes_left(body) / size)
		tickmap_take(body, tickmap_bytes_left(body) + 1);
	else
		tickmap_take(body, (size_t)count * size);
}

static void skip_read(uint64_t format, struct tickmap_bytes *body)
{
	size_t times = !!(format & PERF_FORMAT_TOTAL_TIME_ENABLED) +
		       !!(format & PERF_FORMAT_TOTAL_TIME_RUNNING);
	size_t each =
		1 + !!(format & PERF_FORMAT_ID) + !!(format & READ_FORMAT_LOST);

	if (format & PERF_FORMAT_GROUP) {
		uint64_t count = tickmap_u64(body);
		skip(body, times, 8);
		skip(body, count, each * 8);
	} else {
		skip(body, times + each, 8);
	}
}

static void skip_branches(uint64_t branch_type, struct tickmap_bytes *body)
{
	uint64_t count = tickmap_u64(body);

	if (branch_type & BRANCH_HW_INDEX)
		skip(body, 1, 8);
	skip(body, count, 24);
	if (branch_type & BRANCH_COUNTERS)
		skip(body, count, 8);
}

static void decode_regs(uint64_t mask, struct tickmap_bytes *body,
			struct tickmap_sample *sample)
{
	sample->regs_abi = tickmap_u64(body);
	if (sample->regs_abi == PERF_SAMPLE_REGS_ABI_NONE)
		return;
	sample->regs_mask = mask;
	for (unsigned i = 0; i < TICKMAP_SAMPLE_REGS_MAX; i++)
		if (mask >> i & 1)
			sample->regs[i] = tickmap_u64(body);
}

static void decode_stack(struct tickmap_bytes *body,
			 struct tickmap_sample *sample)
{
	uint64_t size = tickmap_u64(body);

	if (!size)
		return;
	const uint8_t *stack = size <= tickmap_bytes_left(body)
				       ? tickmap_take(body, (size_t)size)
				       : NULL;
	if (!stack) {
		skip(body, size, 1);
		return;
	}
	/* The kernel reserves `size` bytes and says how many it filled. */
	uint64_t filled = tickmap_u64(body);
	sample->stack = stack;
	sample->stack_size = (size_t)(filled < size ? filled : size);
}

/* Fields in front of READ, which all have their place. */
static void decode_fixed(uint64_t type, struct tickmap_bytes *body,
			 struct tickmap_sample *sample)
{
	if (type & PERF_SAMPLE_IDENTIFIER)
		sample->id = tickmap_u64(body);
	if (type & PERF_SAMPLE_IP)
		sample->ip = tickmap_u64(body);
	if (type & PERF_SAMPLE_TID) {
		sample->pid = tickmap_u32(body);
		sample->tid = tickmap_u32(body);
	}
	if (type & PERF_SAMPLE_TIME)
		sample->time_ns = tickmap_u64(body);
	if (type & PERF_SAMPLE_ADDR)
		sample->addr = tickmap_u64(body);
	if (type & PERF_SAMPLE_ID)
		sample->id = tickmap_u64(body);
	if (type & PERF_SAMPLE_STREAM_ID)
		sample->stream_id = tickmap_u64(body);
	if (type & PERF_SAMPLE_CPU) {
		sample->cpu = tickmap_u32(body);
		tickmap_u32(body);
	}
	if (type & PERF_SAMPLE_PERIOD)
		sample->period = tickmap_u64(body);
}

int tickmap_sample_decode(const struct tickmap_sample_layout *layout,
			  struct tickmap_bytes *body,
			  struct tickmap_sample *ret_sample,
			  struct tickmap_error *err)
{
	uint64_t type = layout->sample_type;
	struct tickmap_sample sample = { .swap = body->swap };

	decode_fixed(type, body, &sample);
	if (type & PERF_SAMPLE_READ)
		skip_read(layout->read_format, body);
	if (type & PERF_SAMPLE_CALLCHAIN) {
		uint64_t count = tickmap_u64(body);
		size_t at = body->pos;
		skip(body, count, 8);
		if (!body->failed && count) {
			sample.chain = body->base + at;
			sample.chain_count = (size_t)count;
		}
	}
	if (type & PERF_SAMPLE_RAW) {
		uint32_t size = tickmap_u32(body);
		skip(body, size, 1);
	}
	if (type & PERF_SAMPLE_BRANCH_STACK)
		skip_branches(layout->branch_sample_type, body);
	if (type & PERF_SAMPLE_REGS_USER)
		decode_regs(layout->regs_user, body, &sample);
	if (type & PERF_SAMPLE_STACK_USER)
		decode_stack(body, &sample);
	/* Nobody asks for what comes behind the stack. */
	if (body->failed)
		return tickmap_fail(err, TICKMAP_E_TRUNCATED, body->failed_at,
				    "sample is shorter than its fields");
	*ret_sample = sample;
	return TICKMAP_OK;
}

int tickmap_sample_id_decode(const struct tickmap_sample_layout *layout,
			     const uint8_t *record, size_t size, bool swap,
			     struct tickmap_sample_id *ret_id)
{
	static const uint64_t fields = PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
				       PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID |
				       PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;
	uint64_t type = layout->sample_type;
	size_t trailer = 8 * (size_t)__builtin_popcountll(type & fields);
	struct tickmap_sample_id id = { 0 };

	memset(ret_id, 0, sizeof(*ret_id));
	if (!layout->sample_id_all)
		return TICKMAP_OK;
	if (size < sizeof(struct perf_event_header) + trailer)
		return TICKMAP_E_TRUNCATED;

	struct tickmap_bytes b =
		tickmap_bytes_of(record + (size - trailer), trailer);
	b.swap = swap;
	if (type & PERF_SAMPLE_TID) {
		id.pid = tickmap_u32(&b);
		id.tid = tickmap_u32(&b);
	}
	if (type & PERF_SAMPLE_TIME)
		id.time_ns = tickmap_u64(&b);
	if (type & PERF_SAMPLE_ID)
		id.id = tickmap_u64(&b);
	if (type & PERF_SAMPLE_STREAM_ID)
		tickmap_u64(&b);
	if (type & PERF_SAMPLE_CPU) {
		id.cpu = tickmap_u32(&b);
		tickmap_u32(&b);
	}
	if (type & PERF_SAMPLE_IDENTIFIER)
		id.id = tickmap_u64(&b);
	*ret_id = id;
	return TICKMAP_OK;
}

/* 20 bytes of build id behind its size and 3 bytes of padding. */
static void decode_build_id(struct tickmap_bytes *body,
			    struct tickmap_mmap_record *mmap)
{
	size_t size = tickmap_u8(body);

	tickmap_take(body, 3);
	const uint8_t *id = tickmap_take(body, sizeof(mmap->build_id));
	if (!id)
		return;
	if (size > sizeof(mmap->build_id))
		size = sizeof(mmap->build_id);
	memcpy(mmap->build_id, id, size);
	mmap->build_id_size = size;
}

int tickmap_mmap_decode(struct tickmap_bytes *body, uint32_t type,
			uint16_t misc, struct tickmap_mmap_record *ret_mmap)
{
	struct tickmap_mmap_record mmap = { 0 };

	mmap.pid = tickmap_u32(body);
	mmap.tid = tickmap_u32(body);
	mmap.avma = tickmap_u64(body);
	mmap.size = tickmap_u64(body);
	mmap.file_offset = tickmap_u64(body);
	if (type == PERF_RECORD_MMAP2) {
		if (misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
			decode_build_id(body, &mmap);
		} else {
			mmap.maj = tickmap_u32(body);
			mmap.min = tickmap_u32(body);
			mmap.ino = tickmap_u64(body);
			mmap.ino_generation = tickmap_u64(body);
		}
		mmap.prot = tickmap_u32(body);
		mmap.flags = tickmap_u32(body);
	} else {
		/* MMAP tells code from data and no more. */
		mmap.prot = misc & PERF_RECORD_MISC_MMAP_DATA
				    ? PROT_READ
				    : PROT_READ | PROT_EXEC;
	}
	mmap.path = tickmap_cstr(body, NULL);
	if (body->failed)
		return TICKMAP_E_TRUNCATED;
	*ret_mmap = mmap;
	return TICKMAP_OK;
}

int tickmap_comm_decode(struct tickmap_bytes *body, uint16_t misc,
			struct tickmap_comm_record *ret_comm)
{
	struct tickmap_comm_record comm = { 0 };

	comm.pid = tickmap_u32(body);
	comm.tid = tickmap_u32(body);
	comm.comm = tickmap_cstr(body, NULL);
	comm.exec = misc & PERF_RECORD_MISC_COMM_EXEC;
	if (body->failed)
		return TICKMAP_E_TRUNCATED;
	*ret_comm = comm;
	return TICKMAP_OK;
}

int tickmap_task_decode(struct tickmap_bytes *body,
			struct tickmap_task_record *ret_task)
{
	struct tickmap_task_record task = { 0 };

	task.pid = tickmap_u32(body);
	task.ppid = tickmap_u32(body);
	task.tid = tickmap_u32(body);
	task.ptid = tickmap_u32(body);
	task.time_ns = tickmap_u64(body);
	if (body->failed)
		return TICKMAP_E_TRUNCATED;
	*ret_task = task;
	return TICKMAP_OK;
}

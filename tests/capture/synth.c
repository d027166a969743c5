/* SPDX-License-Identifier: MIT */
#include "synth.h"

#include <string.h>
#include <sys/mman.h>
#include <time.h>

void synth_attr(struct perf_event_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->size = sizeof(*attr);
	attr->type = PERF_TYPE_SOFTWARE;
	attr->config = PERF_COUNT_SW_CPU_CLOCK;
	attr->freq = 1;
	attr->sample_freq = 999;
	attr->sample_type = SYNTH_SAMPLE_TYPE;
	attr->inherit = 1;
	attr->mmap = 1;
	attr->mmap2 = 1;
	attr->comm = 1;
	attr->comm_exec = 1;
	attr->task = 1;
	attr->sample_id_all = 1;
	attr->use_clockid = 1;
	attr->clockid = CLOCK_MONOTONIC;
}

uint64_t synth_next(uint64_t *state)
{
	uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static uint8_t *put_u32(uint8_t *at, uint32_t v)
{
	memcpy(at, &v, sizeof(v));
	return at + sizeof(v);
}

static uint8_t *put_u64(uint8_t *at, uint64_t v)
{
	memcpy(at, &v, sizeof(v));
	return at + sizeof(v);
}

static size_t finish(uint8_t *out, const uint8_t *end, uint32_t type,
		     uint16_t misc)
{
	struct perf_event_header header = {
		.type = type,
		.misc = misc,
		.size = (uint16_t)(end - out),
	};

	memcpy(out, &header, sizeof(header));
	return header.size;
}

size_t synth_sample(uint8_t *out, uint64_t *state, uint64_t time_ns)
{
	uint64_t depth = 1 + synth_next(state) % 60;
	uint64_t ip = 0x400000 + synth_next(state) % 0x10000;
	uint8_t *at = out + 8;

	at = put_u64(at, ip);
	at = put_u32(at, 4000);
	at = put_u32(at, 4000 + (uint32_t)(synth_next(state) % 3));
	at = put_u64(at, time_ns);
	at = put_u32(at, (uint32_t)(synth_next(state) % 2));
	at = put_u32(at, 0);
	at = put_u64(at, 1001001);
	at = put_u64(at, depth + 1);
	at = put_u64(at, PERF_CONTEXT_USER);
	at = put_u64(at, ip);
	for (uint64_t i = 1; i < depth; i++)
		at = put_u64(at, 0x400000 + synth_next(state) % 0x800 * 16);
	return finish(out, at, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
}

static uint8_t *put_text(uint8_t *at, const char *text)
{
	size_t size = strlen(text) + 1;
	size_t padded = (size + 7) & ~(size_t)7;

	memset(at, 0, padded);
	memcpy(at, text, size);
	return at + padded;
}

static uint8_t *put_trailer(uint8_t *at, uint32_t pid, uint64_t time_ns)
{
	at = put_u32(at, pid);
	at = put_u32(at, pid);
	at = put_u64(at, time_ns);
	return put_u64(at, 0);
}

size_t synth_mmap2(uint8_t *out, uint32_t pid, uint64_t avma, uint64_t size,
		   const char *path, uint64_t time_ns)
{
	uint8_t *at = out + 8;

	at = put_u32(at, pid);
	at = put_u32(at, pid);
	at = put_u64(at, avma);
	at = put_u64(at, size);
	/* Offset as address: perf 6.1 prints addresses relative to the file,
	 * which are then the same. */
	at = put_u64(at, avma);
	at = put_u32(at, 8);
	at = put_u32(at, 1);
	at = put_u64(at, 1234);
	at = put_u64(at, 1);
	at = put_u32(at, PROT_READ | PROT_EXEC);
	at = put_u32(at, MAP_PRIVATE);
	at = put_text(at, path);
	at = put_trailer(at, pid, time_ns);
	return finish(out, at, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER);
}

size_t synth_comm(uint8_t *out, uint32_t pid, const char *comm,
		  uint64_t time_ns)
{
	uint8_t *at = out + 8;

	at = put_u32(at, pid);
	at = put_u32(at, pid);
	at = put_text(at, comm);
	at = put_trailer(at, pid, time_ns);
	return finish(out, at, PERF_RECORD_COMM,
		      PERF_RECORD_MISC_USER | PERF_RECORD_MISC_COMM_EXEC);
}

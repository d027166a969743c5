/* SPDX-License-Identifier: MIT */
/*
 * make_recording DIR SAMPLES FRAMES FUNCTIONS: a recording of one process whose
 * every frame is one of that many functions out of a jitdump, all chains
 * different: DIR/perf.data and DIR/jit-4242.dump.
 */
#include "capture/perfdata.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PID = 4242, CODE_SIZE = 256 };
#define ARENA UINT64_C(0x7f0000000000)
#define START UINT64_C(100000000000)

static _Alignas(8) uint8_t record[65536];
static size_t used;
static struct tickmap_perfdata_writer *writer;

static void put(const void *bytes, size_t size)
{
	memcpy(record + used, bytes, size);
	used += size;
}

static void put32(uint32_t v)
{
	put(&v, sizeof(v));
}

static void put64(uint64_t v)
{
	put(&v, sizeof(v));
}

static void put_text(const char *text)
{
	size_t size = strlen(text) + 1;

	put(text, size);
	put("\0\0\0\0\0\0\0", (8 - size % 8) % 8);
}

static void put_trailer(uint64_t time_ns)
{
	put32(PID);
	put32(PID);
	put64(time_ns);
}

static void finish(uint32_t type)
{
	struct perf_event_header header = {
		.type = type,
		.misc = PERF_RECORD_MISC_USER,
		.size = (uint16_t)used,
	};

	memcpy(record, &header, sizeof(header));
	if (tickmap_perfdata_write(writer, record, used, NULL))
		exit(1);
	used = sizeof(header);
}

static void put_map(const char *path, uint64_t avma, uint64_t size)
{
	put32(PID);
	put32(PID);
	put64(avma);
	put64(size);
	put64(0);
	for (unsigned i = 0; i < 6; i++)
		put32(0);
	put32(5); /* PROT_READ | PROT_EXEC */
	put32(2);
	put_text(path);
	put_trailer(START);
	finish(PERF_RECORD_MMAP2);
}

static uint64_t next(void)
{
	static uint64_t state = 1;
	uint64_t x = state += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static void put_samples(uint64_t samples, uint64_t frames, uint64_t functions)
{
	for (uint64_t i = 0; i < samples; i++) {
		uint64_t time_ns = START + 1000000000 + i * 10000;
		uint64_t leaf = ARENA + next() % functions * CODE_SIZE + 8;
		put64(leaf);
		put_trailer(time_ns);
		put64(frames + 1);
		put64((uint64_t)PERF_CONTEXT_USER);
		put64(leaf);
		for (uint64_t f = 1; f < frames; f++)
			put64(ARENA + next() % functions * CODE_SIZE + 17);
		finish(PERF_RECORD_SAMPLE);
	}
}

static void write_dump(const char *path, uint64_t functions)
{
	static const uint8_t code[CODE_SIZE];
	FILE *out = fopen(path, "wb");
	uint32_t header[10] = { 0x4a695444, 1, 40, 62, 0, PID };

	if (!out)
		exit(1);
	fwrite(header, sizeof(header), 1, out);
	for (uint64_t i = 0; i < functions; i++) {
		char name[64];
		int length = snprintf(name, sizeof(name),
				      "JS:*function_%06u /srv/app.js:%u",
				      (unsigned)i, (unsigned)i % 5000);
		uint64_t avma = ARENA + i * CODE_SIZE;
		uint32_t total =
			(uint32_t)(56 + (size_t)length + 1 + CODE_SIZE);
		used = 0;
		put32(0);
		put32(total);
		put64(START + i * 1000);
		put32(PID);
		put32(PID);
		put64(avma);
		put64(avma);
		put64(CODE_SIZE);
		put64(i);
		put(name, (size_t)length + 1);
		put(code, CODE_SIZE);
		fwrite(record, used, 1, out);
	}
	if (fclose(out))
		exit(1);
}

int main(int argc, char **argv)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_freq = 999,
		.freq = 1,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID |
			       PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
	struct tickmap_perfdata_event event = { &attr, "cpu-clock" };
	struct tickmap_perfdata_facts facts = { .version = "bench" };
	char path[4096];

	if (argc != 5) {
		fputs("make_recording DIR SAMPLES FRAMES FUNCTIONS\n", stderr);
		return 2;
	}
	uint64_t functions = strtoull(argv[4], NULL, 10);
	snprintf(path, sizeof(path), "%s/jit-%d.dump", argv[1], PID);
	write_dump(path, functions);
	snprintf(path, sizeof(path), "%s/perf.data", argv[1]);
	if (tickmap_perfdata_create(path, &event, 0, &writer, NULL))
		return 1;
	used = sizeof(struct perf_event_header);
	put32(PID);
	put32(PID);
	put_text("bench");
	put_trailer(START);
	finish(PERF_RECORD_COMM);
	put_map("//anon", ARENA, functions * CODE_SIZE);
	snprintf(path, sizeof(path), "%s/jit-%d.dump", argv[1], PID);
	put_map(path, ARENA - (1 << 20), 4096);
	put_samples(strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10),
		    functions);
	return tickmap_perfdata_finish(writer, &facts, NULL) ? 1 : 0;
}

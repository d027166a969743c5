/* SPDX-License-Identifier: MIT */
/*
 * Inputs are not amplified: the largest memory of a process that reads or
 * repairs the worst of them stays below eight times their size and 64 MiB, and
 * that of one that reads ten million lines of a perf map does not grow at all.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those first */
#include <cmocka.h>

#include "codemap/codemap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* A sanitizer's own memory is no measure. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1, LINES = 200000 };
#else
enum { SANITIZED = 0, LINES = 10000000 };
#endif

enum { MIB = 1 << 20, DUMP_SIZE = 8 * MIB };

struct input {
	uint8_t *bytes;
	size_t size;
};

static size_t peak(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (size_t)usage.ru_maxrss * 1024;
}

/* In a process of its own: how much more memory the work needed at most. */
static size_t growth(void (*work)(const struct input *input),
		     const struct input *input)
{
	size_t before, more = 0;
	int ends[2];
	pid_t child;

	assert_int_equal(pipe(ends), 0);
	child = fork();
	if (!child) {
		before = peak();
		work(input);
		more = peak() - before;
		_exit(write(ends[1], &more, sizeof(more)) != sizeof(more));
	}
	close(ends[1]);
	assert_int_equal(read(ends[0], &more, sizeof(more)), sizeof(more));
	close(ends[0]);
	assert_int_equal(waitpid(child, NULL, 0), child);
	return more;
}

static void put(uint8_t **at, const void *bytes, size_t size)
{
	memcpy(*at, bytes, size);
	*at += size;
}

static void put_u64(uint8_t **at, uint64_t value)
{
	put(at, &value, sizeof(value));
}

static void put_prefix(uint8_t **at, uint32_t id, uint32_t size, uint64_t when)
{
	put_u64(at, (uint64_t)size << 32 | id);
	put_u64(at, when);
}

static uint8_t *begin(struct input *input)
{
	uint8_t *at = input->bytes = malloc(DUMP_SIZE + 4096);

	assert_non_null(at);
	put_u64(&at, UINT64_C(1) << 32 | 0x4a695444);
	put_u64(&at, UINT64_C(62) << 32 | 40);
	put_u64(&at, UINT64_C(7) << 32);
	put_u64(&at, 1000);
	put_u64(&at, 0);
	return at;
}

static void put_load(uint8_t **at, uint64_t index, uint32_t pid)
{
	put_prefix(at, 0, 58, 1000 + index);
	put_u64(at, (uint64_t)pid << 32 | pid);
	put_u64(at, 4096 * index);
	put_u64(at, 4096 * index);
	put_u64(at, 0);
	put_u64(at, index * 977);
	put(at, "f", 2);
}

/* The smallest functions, whose indexes fit no array. */
static struct input smallest_functions(void)
{
	struct input input;
	uint8_t *at = begin(&input);

	for (uint64_t i = 0; at < input.bytes + DUMP_SIZE; i++)
		put_load(&at, i, i % 2 ? 7 : 8);
	input.size = (size_t)(at - input.bytes);
	return input;
}

/* Debug records whose names are long and repeated in two bytes each. */
static struct input repeated_names(void)
{
	enum { ENTRIES = 500, NAME = 60000 };
	static char name[NAME];
	struct input input;
	uint8_t *at = begin(&input);

	memset(name, 'n', NAME - 1);
	while (at + 2 * NAME < input.bytes + DUMP_SIZE) {
		put_prefix(&at, 2, 32 + 16 + NAME + (ENTRIES - 1) * 18, 1000);
		put_u64(&at, 4096);
		put_u64(&at, ENTRIES);
		for (uint64_t i = 0; i < ENTRIES; i++) {
			put_u64(&at, 4096 + i);
			put_u64(&at, 1 + i);
			if (i)
				put(&at, "\xff", 2);
			else
				put(&at, name, NAME);
		}
		put_load(&at, 1, 7);
	}
	input.size = (size_t)(at - input.bytes);
	return input;
}

/* A record that says it is 4 GiB long, and code that is not there. */
static struct input large_numbers(void)
{
	struct input input;
	uint8_t *at = begin(&input);

	while (at < input.bytes + DUMP_SIZE) {
		put_load(&at, 1, 7);
		/* code_size of the last one, without bytes */
		uint64_t size = UINT64_C(1) << 39;
		memcpy(at - 18, &size, 8);
		put_prefix(&at, 4, UINT32_MAX, 1000);
	}
	input.size = (size_t)(at - input.bytes);
	return input;
}

static void ignore(void *context, const struct tickmap_finding *finding)
{
	(void)context;
	(void)finding;
}

static void read_dump(const struct input *input)
{
	struct tickmap_code_handler handler = { .finding = ignore };
	struct tickmap_jitdump *dump = tickmap_jitdump_new(&handler);

	for (size_t at = 0; at < input->size; at += 65536)
		tickmap_jitdump_feed(dump, input->bytes + at,
				     input->size - at < 65536 ? input->size - at
							      : 65536);
	tickmap_jitdump_end(dump);
	tickmap_jitdump_free(dump);
}

static bool count_bytes(void *context, const void *bytes, size_t size)
{
	(void)bytes;
	*(size_t *)context += size;
	return true;
}

static void repair(const struct input *input)
{
	size_t written = 0;

	if (tickmap_jitdump_repair(input->bytes, input->size, 62, count_bytes,
				   &written, NULL) != TICKMAP_REPAIR_DONE ||
	    written > 10 * input->size + MIB)
		abort();
}

static void check(const char *name, struct input input)
{
	size_t limit = 8 * input.size + 64 * MIB;
	size_t reading = growth(read_dump, &input);
	size_t repairing = growth(repair, &input);

	print_message("%s: %zu MiB: reading takes %zu MiB, repairing %zu\n",
		      name, input.size / MIB, reading / MIB, repairing / MIB);
	if (!SANITIZED) {
		assert_in_range(reading, 0, limit);
		assert_in_range(repairing, 0, limit);
	}
	free(input.bytes);
}

static void dumps_are_not_amplified(void **unused)
{
	(void)unused;
	check("smallest functions", smallest_functions());
	check("repeated names", repeated_names());
	check("large numbers", large_numbers());
}

static void count_entry(void *context, const struct tickmap_code_event *event)
{
	*(uint64_t *)context += event->size;
}

static void read_lines(const struct input *unused)
{
	uint64_t entries = 0;
	struct tickmap_code_handler handler = { .context = &entries,
						.code = count_entry,
						.finding = ignore };
	struct tickmap_perfmap *map = tickmap_perfmap_new(&handler);
	char block[1000 * 40];
	int size = 0;

	(void)unused;
	for (int i = 0; i < 1000; i++)
		size += sprintf(block + size, "7f%x 1 JS:f_%d a.js:%d\n",
				i * 4096, i, i * 7);
	for (int i = 0; i < LINES; i += 1000)
		tickmap_perfmap_feed(map, block, (size_t)size, 1);
	tickmap_perfmap_end(map, 1);
	tickmap_perfmap_free(map);
	if (entries != LINES)
		abort();
}

static void ten_million_lines_take_no_more_memory_than_one(void **unused)
{
	size_t more = growth(read_lines, NULL);

	(void)unused;
	print_message("%d lines: %zu KiB\n", LINES, more / 1024);
	if (!SANITIZED)
		assert_in_range(more, 0, 4 * MIB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dumps_are_not_amplified),
		cmocka_unit_test(
			ten_million_lines_take_no_more_memory_than_one),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * What reading a code map costs beyond going over its bytes: the reader against
 * a count of newlines by memchr (what `wc -l` does) over the same bytes, in
 * turn, CPU time, medians over rounds. Prints one "name value" a line:
 *
 *	jitdump_ratio      file in memory, both over the same bytes
 *	jitdump_file_ratio both read the file in blocks of 256 KiB
 *	perfmap_ratio      a perf map, in memory
 *
 *	bench_codemap [FUNCTIONS [ROUNDS [DIR]]]
 */
#include "codemap/codemap.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { MAX_ROUNDS = 101, BLOCK = 256 << 10, CODE = 256 };

struct file {
	uint8_t *bytes;
	size_t size;
	int fd;
};

static size_t function_count = 100000;
static size_t round_count = 31;
static volatile uint64_t sink;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void put(FILE *out, const void *bytes, size_t size)
{
	if (fwrite(bytes, size, 1, out) != 1)
		die("memory");
}

static void put_u64(FILE *out, uint64_t value)
{
	put(out, &value, sizeof(value));
}

static void put_prefix(FILE *out, uint32_t id, size_t size, uint64_t when)
{
	put_u64(out, (uint64_t)size << 32 | id);
	put_u64(out, when);
}

/* As V8 writes it: an empty .eh_frame_hdr, then the function. */
static void put_function(FILE *out, size_t i)
{
	static uint8_t header[20] = { 1, 0x1b, 3, 0x3b };
	uint8_t code[CODE];
	char name[64];
	int length = snprintf(name, sizeof(name),
			      "JS:*function_%zu /a/b.js:%zu:7", i, i % 5000);
	uint64_t when = 1000000000 + i * 1000;
	uint64_t avma = 0x7f0000000000 + i * 320;

	put_prefix(out, 4, 40 + sizeof(header) + 4, when);
	put_u64(out, sizeof(header));
	put_u64(out, sizeof(header));
	put_u64(out, 0);
	put(out, header, sizeof(header));
	put(out, "\0\0\0", 4);
	put_prefix(out, 0, 56 + (size_t)length + 1 + CODE, when);
	put_u64(out, (uint64_t)77 << 32 | 77);
	put_u64(out, avma);
	put_u64(out, avma);
	put_u64(out, CODE);
	put_u64(out, i);
	put(out, name, (size_t)length + 1);
	for (size_t k = 0; k < CODE; k++)
		code[k] = (uint8_t)((i + k) * 2654435761u >> 13);
	put(out, code, CODE);
}

static struct file make(const char *dir, bool map)
{
	struct file file = { .fd = -1 };
	char path[4096];
	char *bytes;
	FILE *out = open_memstream(&bytes, &file.size);

	if (!out)
		die("memory");
	if (!map) {
		put_u64(out, UINT64_C(1) << 32 | 0x4a695444);
		put_u64(out, UINT64_C(62) << 32 | 40);
		put_u64(out, UINT64_C(77) << 32);
		put_u64(out, 999999999);
		put_u64(out, 0);
	}
	for (size_t i = 0; i < function_count; i++) {
		if (map)
			fprintf(out, "%zx 100 JS:*function_%zu /a/b.js:%zu:7\n",
				(size_t)0x7f0000000000 + i * 320, i, i % 5000);
		else
			put_function(out, i);
	}
	fclose(out);
	file.bytes = (uint8_t *)bytes;
	snprintf(path, sizeof(path), "%s/bench-codemap-XXXXXX", dir);
	file.fd = mkstemp(path);
	if (file.fd < 0 || unlink(path) ||
	    write(file.fd, bytes, file.size) != (ssize_t)file.size)
		die(path);
	return file;
}

static void saw_code(void *context, const struct tickmap_code_event *event)
{
	*(uint64_t *)context += event->avma + event->name_length;
}

static uint64_t count_lines(const uint8_t *bytes, size_t size)
{
	const uint8_t *end = bytes + size;
	uint64_t lines = 0;

	while (bytes < end &&
	       (bytes = memchr(bytes, '\n', (size_t)(end - bytes)))) {
		lines++;
		bytes++;
	}
	return lines;
}

/* Whole: in memory; else by blocks of the file. */
static double time_scan(const struct file *file, bool whole)
{
	static uint8_t block[BLOCK];
	double from = seconds();
	ssize_t got;
	off_t at = 0;

	if (whole)
		sink += count_lines(file->bytes, file->size);
	while (!whole && (got = pread(file->fd, block, BLOCK, at)) > 0) {
		sink += count_lines(block, (size_t)got);
		at += got;
	}
	return seconds() - from;
}

static void finding(void *context, const struct tickmap_finding *f)
{
	(void)context;
	fprintf(stderr, "unexpected: %s at %llu\n", f->id,
		(unsigned long long)f->offset);
	exit(1);
}

static double time_read(const struct file *file, bool whole, bool is_map)
{
	static uint8_t block[BLOCK];
	uint64_t sum = 0;
	struct tickmap_code_handler handler = { .context = &sum,
						.code = saw_code,
						.finding = finding };
	double from = seconds();
	struct tickmap_jitdump *dump = tickmap_jitdump_new(&handler);
	struct tickmap_perfmap *map = tickmap_perfmap_new(&handler);
	ssize_t got;
	off_t at = 0;

	if (whole && is_map)
		tickmap_perfmap_feed(map, file->bytes, file->size, 1);
	else if (whole)
		tickmap_jitdump_feed(dump, file->bytes, file->size);
	while (!whole && (got = pread(file->fd, block, BLOCK, at)) > 0) {
		tickmap_jitdump_feed(dump, block, (size_t)got);
		at += got;
	}
	if (!is_map)
		tickmap_jitdump_end(dump);
	if (!is_map && tickmap_jitdump_counts(dump).loads != function_count)
		exit(1);
	tickmap_jitdump_free(dump);
	tickmap_perfmap_free(map);
	sink += sum;
	return seconds() - from;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void compare(const char *name, const struct file *file, bool whole,
		    bool map)
{
	double ratios[MAX_ROUNDS], rates[MAX_ROUNDS];

	for (size_t i = 0; i < round_count; i++) {
		double scan = time_scan(file, whole);
		double read = time_read(file, whole, map);
		ratios[i] = read / scan;
		rates[i] = (double)file->size / read / 1e9;
	}
	qsort(ratios, round_count, sizeof(*ratios), ascending);
	qsort(rates, round_count, sizeof(*rates), ascending);
	printf("%s_ratio %.2f\n%s_gb_per_s %.2f\n", name,
	       ratios[round_count / 2], name, rates[round_count / 2]);
}

int main(int argc, char **argv)
{
	const char *dir = argc > 3 ? argv[3] : "/tmp";
	struct file dump, map;
	struct rusage usage;

	if (argc > 1)
		function_count = strtoul(argv[1], NULL, 10);
	if (argc > 2)
		round_count = strtoul(argv[2], NULL, 10);
	if (!function_count || !round_count || round_count > MAX_ROUNDS)
		return 2;
	dump = make(dir, false);
	map = make(dir, true);
	printf("functions %zu\njitdump_bytes %zu\n", function_count, dump.size);
	compare("jitdump", &dump, true, false);
	compare("jitdump_file", &dump, false, false);
	compare("perfmap", &map, true, true);
	getrusage(RUSAGE_SELF, &usage);
	printf("memory_mb %.1f\n", (double)usage.ru_maxrss / 1024);
	free(dump.bytes);
	free(map.bytes);
	return 0;
}

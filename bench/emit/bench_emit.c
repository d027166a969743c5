/* SPDX-License-Identifier: MIT */
/*
 * What publishing costs beyond the write itself: functions published through
 * the library against bare writev calls of the very same bytes, in turn, on the
 * same file system. Prints one "name value" a line; ratios are medians over
 * rounds of wall time, which a busy machine disturbs on both sides alike. With
 * two threads, `throughput` is how many functions two publish in the time in
 * which one publishes one; not below 1 is what is wanted, as the file has one
 * end. `batched` gathers 64 KiB of records for a write, and gives up that each
 * published function is in the file should the process be killed.
 *
 *	bench_emit [FUNCTIONS [ROUNDS [DIR]]]
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <tickmap/emit.h>
#include <time.h>
#include <unistd.h>

#define CODE_SIZE 256
#define MAX_THREADS 2
#define MAX_ROUNDS 64

static size_t function_count = 100000;
static size_t round_count = 7;
static const char *dir = "/tmp";

static uint8_t code_bytes[CODE_SIZE];
static struct tickmap_unwind unwind;

struct share {
	pthread_t thread;
	struct tickmap_emit *emit;
	const uint8_t *bytes;
	const size_t *ends; /* of the appends in `bytes` */
	size_t tail;	    /* bytes of an append in its second piece */
	int fd;
	size_t first;
	size_t count;
};

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void *publish(void *arg)
{
	const struct share *share = arg;
	struct tickmap_code code = TICKMAP_CODE_INIT;
	char name[] = "a_function_with_a_forty_byte_name_00000000";

	code.bytes = code_bytes;
	code.code_size = sizeof(code_bytes);
	code.name = name + 2;
	code.unwind = &unwind;
	code.mapped_size = tickmap_emit_mapped_size(&unwind);
	for (size_t i = share->first; i < share->first + share->count; i++) {
		size_t digits = i;

		for (char *at = name + sizeof(name) - 2; *at != '_'; at--) {
			*at = (char)('0' + digits % 10);
			digits /= 10;
		}
		code.addr = UINT64_C(0x7f0000000000) + i * 384;
		if (tickmap_emit_code(share->emit, &code))
			die("publish");
	}
	return NULL;
}

static void *replay(void *arg)
{
	const struct share *share = arg;

	for (size_t i = share->first; i < share->first + share->count; i++) {
		size_t start = i ? share->ends[i - 1] : 0;
		size_t size = share->ends[i] - start;
		uint8_t *bytes = (uint8_t *)(uintptr_t)share->bytes + start;
		struct iovec iov[2] = {
			{ bytes, size - share->tail },
			{ bytes + size - share->tail, share->tail },
		};

		if (writev(share->fd, iov, share->tail ? 2 : 1) !=
		    (ssize_t)size)
			die("writev");
	}
	return NULL;
}

static double run(void *(*work)(void *), const struct share *common,
		  size_t threads)
{
	struct share shares[MAX_THREADS];
	double start = seconds();

	for (size_t i = 0; i < threads; i++) {
		shares[i] = *common;
		shares[i].first = function_count * i / threads;
		shares[i].count =
			function_count * (i + 1) / threads - shares[i].first;
		if (i &&
		    pthread_create(&shares[i].thread, NULL, work, &shares[i]))
			die("pthread_create");
	}
	work(&shares[0]);
	for (size_t i = 1; i < threads; i++)
		pthread_join(shares[i].thread, NULL);
	return seconds() - start;
}

static uint8_t *read_file(const char *path, size_t *ret_size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	uint8_t *bytes;

	if (fd < 0 || fstat(fd, &st))
		die(path);
	bytes = malloc((size_t)st.st_size);
	if (!bytes || read(fd, bytes, (size_t)st.st_size) != st.st_size)
		die(path);
	close(fd);
	*ret_size = (size_t)st.st_size;
	return bytes;
}

/* Where each append ended: behind a code-load record, behind a line. */
static size_t *find_ends(const uint8_t *bytes, size_t size, bool is_map)
{
	size_t *ends = calloc(function_count, sizeof(*ends));
	size_t at = is_map ? 0 : 40;
	size_t found = 0;

	if (!ends)
		die("calloc");
	while (found < function_count && at < size) {
		uint32_t head[2];

		if (is_map) {
			const uint8_t *end =
				memchr(bytes + at, '\n', size - at);

			at = end ? (size_t)(end - bytes) + 1 : size;
			ends[found++] = at;
			continue;
		}
		memcpy(head, bytes + at, sizeof(head));
		at += head[1];
		if (head[0] == 0)
			ends[found++] = at;
	}
	if (found != function_count)
		die("published functions are missing");
	return ends;
}

static int by_value(const void *a, const void *b)
{
	const double *left = a;
	const double *right = b;

	return (*left > *right) - (*left < *right);
}

static double median(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), by_value);
	return values[count / 2];
}

/* Publish, then replay what was written; both timed. */
static void one_round(uint32_t sink, size_t threads, uint32_t batch_size,
		      double *ret_ours, double *ret_bare)
{
	struct tickmap_emit_options options = TICKMAP_EMIT_OPTIONS_INIT;
	struct share share = { 0 };
	char path[4096];
	size_t size;
	uint8_t *bytes;

	options.sinks = sink;
	options.dir = dir;
	options.batch_size = batch_size;
	if (tickmap_emit_open(&options, &share.emit))
		die("open");
	*ret_ours = run(publish, &share, threads);
	snprintf(path, sizeof(path), "%s", tickmap_emit_path(share.emit, sink));
	if (tickmap_emit_close(share.emit))
		die("close");
	bytes = read_file(path, &size);
	unlink(path);

	share.bytes = bytes;
	share.ends = find_ends(bytes, size, sink == TICKMAP_EMIT_PERF_MAP);
	share.tail = sink == TICKMAP_EMIT_PERF_MAP ? 0 : CODE_SIZE;
	share.fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC,
			0600);
	if (share.fd < 0)
		die(path);
	*ret_bare = run(replay, &share, threads);
	close(share.fd);
	unlink(path);
	free((void *)(uintptr_t)share.ends);
	free(bytes);
}

struct series {
	const char *suffix;
	size_t threads;
	uint32_t batch_size;
	double ours[MAX_ROUNDS];
	double ratio[MAX_ROUNDS];
};

/* All ways in turn, round by round. */
static void measure(const char *name, uint32_t sink)
{
	static struct series all[] = {
		{ .suffix = "", .threads = 1 },
		{ .suffix = "_2_threads", .threads = 2 },
		{ .suffix = "_batched", .threads = 1, .batch_size = 65536 }
	};
	double gain[MAX_ROUNDS];

	for (size_t i = 0; i < round_count; i++) {
		for (size_t s = 0; s < 3; s++) {
			double bare;

			one_round(sink, all[s].threads, all[s].batch_size,
				  &all[s].ours[i], &bare);
			all[s].ratio[i] = all[s].ours[i] / bare;
		}
		gain[i] = all[0].ours[i] / all[1].ours[i];
	}
	for (size_t s = 0; s < 3; s++) {
		printf("%s%s_ns_per_function %.0f\n", name, all[s].suffix,
		       median(all[s].ours, round_count) * 1e9 /
			       (double)function_count);
		printf("%s%s_ratio %.2f\n", name, all[s].suffix,
		       median(all[s].ratio, round_count));
	}
	printf("%s_2_threads_throughput %.2f\n", name,
	       median(gain, round_count));
}

int main(int argc, char **argv)
{
	if (argc > 1)
		function_count = strtoul(argv[1], NULL, 10);
	if (argc > 2)
		round_count = strtoul(argv[2], NULL, 10);
	if (argc > 3)
		dir = argv[3];
	if (!function_count || function_count > 100000000 || !round_count ||
	    round_count > MAX_ROUNDS)
		return 2;
	memset(code_bytes, 0x90, sizeof(code_bytes));
	if (tickmap_unwind_frame_pointer(&unwind, 0, CODE_SIZE - 2))
		return 1;
	measure("dump", TICKMAP_EMIT_JITDUMP);
	measure("map", TICKMAP_EMIT_PERF_MAP);
	return 0;
}

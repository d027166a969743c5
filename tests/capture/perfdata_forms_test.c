/* SPDX-License-Identifier: MIT */
/* The forms that a recording comes in: as written to a pipe, a directory of
 * files, standard input; and what is kept of damaged ones. */
#include "capture/perfdata.h"
#include "capture/perfdata_format.h"
#include "craft.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zstd.h>
/* cmocka wants the above first */
#include <cmocka.h>

enum { SAMPLE_ID_ALL = 1 << 18 };

static struct craft file;

static void put_sample_of(uint64_t id, uint64_t time_ns)
{
	size_t record = craft_record(&file, PERF_RECORD_SAMPLE, 2);

	craft_u64(&file, id);
	craft_u64(&file, 0x1000 + time_ns);
	craft_u32(&file, 10);
	craft_u32(&file, 11);
	craft_u64(&file, time_ns);
	craft_record_end(&file, record);
}

static void put_attr_record(uint32_t type, uint64_t config, uint32_t size,
			    uint64_t id)
{
	size_t record = craft_record(&file, PERFDATA_RECORD_HEADER_ATTR, 0);
	size_t start = file.count;

	craft_u32(&file, type);
	craft_u32(&file, size);
	craft_u64(&file, config);
	craft_u64(&file, 999);
	craft_u64(&file, PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP |
				 PERF_SAMPLE_TID | PERF_SAMPLE_TIME);
	craft_u64(&file, 0);
	/* Of a big-endian machine bit 18 is bit 45. */
	craft_u64(&file, file.swap ? UINT64_C(1) << 45 : SAMPLE_ID_ALL);
	while (file.count < start + size)
		craft_u32(&file, 0);
	craft_u64(&file, id);
	craft_u64(&file, id + 1);
	craft_record_end(&file, record);
}

static void put_update(uint64_t id, const char *name)
{
	size_t record = craft_record(&file, PERFDATA_RECORD_EVENT_UPDATE, 0);

	craft_u64(&file, PERFDATA_EVENT_UPDATE_NAME);
	craft_u64(&file, id);
	craft_text(&file, name, 32);
	craft_record_end(&file, record);
}

static void put_feature(uint64_t bit, const char *text)
{
	size_t record = craft_record(&file, PERFDATA_RECORD_HEADER_FEATURE, 0);

	craft_u64(&file, bit);
	craft_u32(&file, 64);
	craft_text(&file, text, 64);
	craft_record_end(&file, record);
}

static void put_build_id(const char *path)
{
	size_t record = craft_record(&file, PERFDATA_RECORD_BUILD_ID,
				     PERFDATA_MISC_BUILD_ID_SIZE);

	craft_u32(&file, UINT32_MAX);
	craft_bytes(&file, "0123456789abcdefghij", 20);
	craft_bytes(&file, "\x10\0\0\0", 4);
	craft_text(&file, path, 64);
	craft_record_end(&file, record);
}

/* What perf record -o - writes, with its raw data behind records. */
static void pipe_begin(bool swap, uint32_t attr_size)
{
	file.count = 0;
	file.swap = swap;
	craft_u64(&file, PERFDATA_MAGIC);
	craft_u64(&file, 16);
	put_attr_record(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, attr_size,
			100);
	put_attr_record(PERF_TYPE_RAW, 0x3c, attr_size, 200);
	put_update(201, "cpu_core/CPU_CLK_UNHALTED.THREAD/");
	put_feature(PERFDATA_FEATURE_HOSTNAME, "somewhere");
	put_feature(255, "unknown");
	size_t record = craft_record(&file, PERFDATA_RECORD_TRACING_DATA, 0);
	craft_u32(&file, 5);
	craft_u32(&file, 0);
	craft_record_end(&file, record);
	craft_text(&file, "\x40\0\0", 8); /* not to be read as a record */
}

static struct tickmap_perfdata *open_at(const char *path)
{
	struct tickmap_perfdata *data = NULL;
	struct tickmap_error err = { 0 };
	char text[300];

	if (tickmap_perfdata_open(path, &data, &err)) {
		print_error("%s\n",
			    tickmap_error_text(&err, text, sizeof(text)));
		fail();
	}
	return data;
}

/* Times of its samples, by digit; the status at the end. */
static int read_times(struct tickmap_perfdata *data, char *out, size_t size)
{
	struct tickmap_perfdata_record record;
	struct tickmap_error err = { 0 };
	size_t count = 0;
	int status;

	while ((status = tickmap_perfdata_next(data, &record, &err)) == 1)
		if (record.type == PERF_RECORD_SAMPLE && count + 1 < size)
			out[count++] = (char)('0' + record.id.time_ns);
	out[count] = '\0';
	return status;
}

static void check_pipe(struct tickmap_perfdata *data)
{
	char times[16];
	uint8_t id[20];

	assert_int_equal(tickmap_perfdata_attr_count(data), 2);
	assert_true(tickmap_perfdata_attr_at(data, 0)->counts_time);
	assert_true(tickmap_perfdata_attr_at(data, 1)->counts_time);
	assert_string_equal(tickmap_perfdata_attr_at(data, 1)->name,
			    "cpu_core/CPU_CLK_UNHALTED.THREAD/");
	assert_string_equal(
		tickmap_perfdata_feature_text(data, PERFDATA_FEATURE_HOSTNAME),
		"somewhere");
	assert_int_equal(tickmap_perfdata_build_id_of(data, "/bin/x", id), 16);
	for (int again = 0; again < 2; again++) {
		assert_int_equal(read_times(data, times, sizeof(times)), 0);
		assert_string_equal(times, "123");
		tickmap_perfdata_rewind(data);
	}
	struct tickmap_perfdata_record record;
	do {
		assert_int_equal(tickmap_perfdata_next(data, &record, NULL), 1);
	} while (record.type != PERF_RECORD_SAMPLE || record.id.time_ns != 2);
	assert_ptr_equal(record.attr, tickmap_perfdata_attr_at(data, 1));
	tickmap_perfdata_close(data);
}

static void pipe_mode_tells_in_records_what_a_header_would(void **state)
{
	static const uint32_t sizes[] = { 64, 80, 128, 144, 1024 };
	(void)state;

	for (unsigned i = 0; i < 10; i++) {
		pipe_begin(i & 1, sizes[i / 2]);
		put_sample_of(100, 1);
		put_sample_of(201, 2);
		put_build_id("/bin/x"); /* may come at any place */
		put_sample_of(101, 3);
		char *path = craft_save(&file, "pipe");
		check_pipe(open_at(path));
		unlink(path);
		free(path);
	}
}

/* Runs as another process: a writer into a pipe. */
static pid_t write_to(int fd)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	for (size_t at = 0; at < file.count; at += 100) {
		size_t n = file.count - at < 100 ? file.count - at : 100;
		if (write(fd, file.bytes + at, n) != (ssize_t)n)
			_exit(1);
	}
	_exit(0);
}

static void standard_input_and_fifos_are_read_like_files(void **state)
{
	int ends[2], status;
	(void)state;

	pipe_begin(false, 128);
	put_sample_of(100, 1);
	put_sample_of(201, 2);
	put_sample_of(101, 3);
	put_build_id("/bin/x");
	assert_int_equal(pipe(ends), 0);
	int saved = dup(STDIN_FILENO);
	dup2(ends[0], STDIN_FILENO);
	pid_t pid = write_to(ends[1]);
	close(ends[0]);
	close(ends[1]);
	check_pipe(open_at("-"));
	if (saved >= 0)
		dup2(saved, STDIN_FILENO);
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);

	char dir[] = "/tmp/tickmap-fifo-XXXXXX", path[64];
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/fifo", dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	pid = fork();
	if (!pid) {
		int fd = open(path, O_WRONLY);
		ssize_t n = write(fd, file.bytes, file.count);
		_exit(n != (ssize_t)file.count);
	}
	check_pipe(open_at(path));
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	unlink(path);
	rmdir(dir);
}

static const struct craft_attr one_event = {
	.type = PERF_TYPE_SOFTWARE,
	.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP |
		       PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
	.flags = SAMPLE_ID_ALL,
	.size = 128,
};

static void save_part(const char *dir, const char *name, size_t from)
{
	char path[96];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	FILE *out = fopen(path, "wb");
	assert_non_null(out);
	size_t size = file.count - from;
	assert_int_equal(fwrite(file.bytes + from, 1, size, out), size);
	assert_int_equal(fclose(out), 0);
}

static void pack(size_t from)
{
	static uint8_t plain[1 << 16], packed[1 << 16];
	size_t size = file.count - from;

	memcpy(plain, file.bytes + from, size);
	size_t got = ZSTD_compress(packed, sizeof(packed), plain, size, 1);
	assert_false(ZSTD_isError(got));
	file.count = from;
	size_t record = craft_record(&file, PERFDATA_RECORD_COMPRESSED, 0);
	craft_bytes(&file, packed, got);
	craft_record_end(&file, record);
}

/* perf record --threads: each data.N holds one thread's records, packed or
 * not, in the order of their numbers. */
static void a_directory_is_one_recording(void **state)
{
	char dir[] = "/tmp/tickmap-dir-XXXXXX", call[64], times[16];
	struct tickmap_error err = { 0 };
	struct tickmap_perfdata_record record;
	(void)state;

	assert_non_null(mkdtemp(dir));
	file.swap = false;
	file.count = 0;
	size_t at = craft_begin(&file, &one_event, 1);
	put_sample_of(1, 1);
	craft_finish(&file, at);
	save_part(dir, "data", 0);
	file.count = 0;
	put_sample_of(1, 2);
	pack(0);
	save_part(dir, "data.2", 0);
	file.count = 0;
	put_sample_of(1, 3);
	pack(0);
	save_part(dir, "data.10", 0);
	save_part(dir, "data.10.old", file.count);
	struct tickmap_perfdata *data = open_at(dir);
	assert_int_equal(read_times(data, times, sizeof(times)), 0);
	assert_string_equal(times, "123");
	tickmap_perfdata_close(data);

	/* A damaged part costs its own. */
	file.count = 0;
	put_sample_of(1, 2);
	put_sample_of(1, 2);
	file.count -= 12;
	save_part(dir, "data.2", 0);
	data = open_at(dir);
	assert_int_equal(read_times(data, times, sizeof(times)),
			 TICKMAP_E_TRUNCATED);
	assert_string_equal(times, "123");
	assert_int_equal(tickmap_perfdata_next(data, &record, &err),
			 TICKMAP_E_TRUNCATED);
	assert_non_null(strstr(err.source, "/data.2"));
	assert_int_equal(err.offset, 40);
	tickmap_perfdata_close(data);
	snprintf(call, sizeof(call), "rm -r '%s'", dir);
	assert_int_equal(system(call), 0);
}

/* Each of these in the middle of good records. */
static void damage_costs_what_is_damaged(void **state)
{
	static const uint8_t zeros[24], ones[40] = { [0 ... 39] = 0xff };
	static const uint8_t text[33] = "GET /index.html HTTP/1.1 text...";
	static const struct {
		const uint8_t *bytes;
		size_t size;
	} damages[] = {
		{ zeros, 24 },
		{ ones, 40 },
		{ text, 33 },
		{ ones, 3 },
	};
	char times[16];
	(void)state;

	for (unsigned i = 0; i < 4; i++) {
		for (int packed = 0; packed < 2; packed++) {
			file.count = 0;
			size_t at = craft_begin(&file, &one_event, 1);
			size_t from = file.count;
			put_sample_of(1, 1);
			put_sample_of(1, 2);
			craft_bytes(&file, damages[i].bytes, damages[i].size);
			for (uint64_t t = 3; t < 8; t++)
				put_sample_of(1, t);
			if (packed)
				pack(from);
			craft_finish(&file, at);
			char *path = craft_save(&file, "damage");
			struct tickmap_perfdata *data = open_at(path);
			assert_int_equal(read_times(data, times, sizeof(times)),
					 TICKMAP_E_FORMAT);
			assert_string_equal(times, "1234567");
			tickmap_perfdata_close(data);
			unlink(path);
			free(path);
		}
	}
}

/* A zstd stream cannot be entered in the middle, but others may follow, and
 * what lies between is not packed at all. */
static void a_damaged_zstd_frame_costs_no_other(void **state)
{
	char times[16];
	(void)state;

	file.count = 0;
	size_t at = craft_begin(&file, &one_event, 1);
	for (uint64_t t = 1; t < 6; t += 2) {
		size_t from = file.count;
		put_sample_of(1, t);
		pack(from);
		if (t == 3) /* its frame's descriptor, a reserved bit of it */
			file.bytes[from + 8 + 4] |= 8;
		put_sample_of(1, t + 1);
	}
	craft_finish(&file, at);
	char *path = craft_save(&file, "frames");
	struct tickmap_perfdata *data = open_at(path);
	assert_int_equal(read_times(data, times, sizeof(times)),
			 TICKMAP_E_FORMAT);
	assert_string_equal(times, "12456");
	assert_true(tickmap_perfdata_skipped(data) > 0);
	tickmap_perfdata_close(data);
	unlink(path);
	free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			pipe_mode_tells_in_records_what_a_header_would),
		cmocka_unit_test(standard_input_and_fifos_are_read_like_files),
		cmocka_unit_test(a_directory_is_one_recording),
		cmocka_unit_test(damage_costs_what_is_damaged),
		cmocka_unit_test(a_damaged_zstd_frame_costs_no_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
#include "capture/perfdata.h"
#include "capture/perfdata_format.h"
#include "craft.h"
#include "platform/platform.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>
/* cmocka wants the above first */
#include <cmocka.h>

enum { SAMPLE_ID_ALL = 1 << 18, FREQ = 1 << 10, USE_CLOCKID = 1 << 25 };

static struct craft file;
static char *path;

static const struct craft_attr one_event = {
	.type = PERF_TYPE_SOFTWARE,
	.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
	.flags = SAMPLE_ID_ALL | FREQ,
	.size = 128,
};

static int fresh(void **state)
{
	(void)state;
	file.count = 0;
	file.swap = false;
	return 0;
}

static int remove_file(void **state)
{
	(void)state;
	if (path)
		unlink(path);
	free(path);
	path = NULL;
	return 0;
}

static struct tickmap_perfdata *open_crafted(void)
{
	struct tickmap_perfdata *data;
	struct tickmap_error err = { 0 };
	char text[256];

	free(path);
	path = craft_save(&file, "read");
	if (tickmap_perfdata_open(path, &data, &err)) {
		print_error("%s\n",
			    tickmap_error_text(&err, text, sizeof(text)));
		fail();
	}
	return data;
}

static int open_status(struct tickmap_error *err)
{
	struct tickmap_perfdata *data = NULL;

	free(path);
	path = craft_save(&file, "read");
	int status = tickmap_perfdata_open(path, &data, err);
	if (!status)
		tickmap_perfdata_close(data);
	return status;
}

static void put_sample(uint64_t ip, uint64_t time_ns)
{
	size_t record = craft_record(&file, PERF_RECORD_SAMPLE, 2);

	craft_u64(&file, ip);
	craft_u32(&file, 10);
	craft_u32(&file, 11);
	craft_u64(&file, time_ns);
	craft_record_end(&file, record);
}

static void put_comm(uint64_t time_ns)
{
	size_t record = craft_record(&file, PERF_RECORD_COMM, 0);

	craft_u32(&file, 20);
	craft_u32(&file, 21);
	craft_text(&file, "comm", 8);
	craft_u32(&file, 20);
	craft_u32(&file, 21);
	craft_u64(&file, time_ns);
	craft_record_end(&file, record);
}

static struct tickmap_perfdata_record must_next(struct tickmap_perfdata *data,
						uint32_t type)
{
	struct tickmap_perfdata_record record;
	struct tickmap_error err = { 0 };
	char text[256];

	int status = tickmap_perfdata_next(data, &record, &err);
	if (status != 1) {
		print_error("%d %s\n", status,
			    tickmap_error_text(&err, text, sizeof(text)));
		fail();
	}
	assert_int_equal(record.type, type);
	return record;
}

static void must_end(struct tickmap_perfdata *data)
{
	struct tickmap_perfdata_record record;

	assert_int_equal(tickmap_perfdata_next(data, &record, NULL), 0);
	assert_int_equal(tickmap_perfdata_next(data, &record, NULL), 0);
	tickmap_perfdata_close(data);
}

/* The same failure, asked twice, with the file's name. */
static void must_fail(struct tickmap_perfdata *data, int status,
		      uint64_t offset)
{
	struct tickmap_perfdata_record record;

	for (int i = 0; i < 2; i++) {
		struct tickmap_error err = { 0 };
		assert_int_equal(tickmap_perfdata_next(data, &record, &err),
				 status);
		assert_int_equal(err.offset, offset);
		assert_string_equal(err.source, path);
	}
	tickmap_perfdata_close(data);
}

static void both_byte_orders_and_all_attr_sizes_read_alike(void **state)
{
	static const uint32_t sizes[] = { 64, 72, 96, 112, 128, 144, 4080 };
	(void)state;

	for (unsigned i = 0; i < 2 * sizeof(sizes) / sizeof(*sizes); i++) {
		struct craft_attr attr = one_event;
		file.count = 0;
		file.swap = i & 1;
		attr.size = sizes[i / 2];
		size_t at = craft_begin(&file, &attr, 1);
		put_comm(5);
		put_sample(0x1234, 6);
		craft_finish(&file, at);
		struct tickmap_perfdata *data = open_crafted();
		assert_true(tickmap_perfdata_is_finished(data));
		const struct tickmap_perfdata_attr *got =
			tickmap_perfdata_attr_at(data, 0);
		assert_string_equal(got->name, "cpu-clock");
		assert_true(got->freq);
		assert_false(got->use_clockid);
		assert_true(got->layout.sample_id_all);
		struct tickmap_perfdata_record record =
			must_next(data, PERF_RECORD_COMM);
		assert_int_equal(record.id.pid, 20);
		assert_int_equal(record.id.tid, 21);
		assert_int_equal(record.id.time_ns, 5);
		assert_int_equal(record.swap, file.swap);
		record = must_next(data, PERF_RECORD_SAMPLE);
		assert_int_equal(record.id.pid, 10);
		assert_int_equal(record.id.time_ns, 6);
		must_end(data);
		unlink(path);
	}
}

static void two_events(uint64_t id_bit, bool swap)
{
	struct craft_attr attrs[2] = { one_event, one_event };

	file.count = 0;
	file.swap = swap;
	attrs[0].sample_type |= id_bit;
	attrs[0].ids[0] = 100;
	attrs[0].ids[1] = 101;
	attrs[1] = attrs[0];
	attrs[1].config = PERF_COUNT_SW_PAGE_FAULTS;
	attrs[1].sample_type |= PERF_SAMPLE_PERIOD;
	attrs[1].ids[0] = 200;
	attrs[1].ids[1] = 201;
	size_t at = craft_begin(&file, attrs, 2);
	static const uint64_t ids[] = { 101, 200, 999, 201, 0 };
	for (unsigned i = 0; i < 5; i++) {
		size_t record = craft_record(&file, PERF_RECORD_SAMPLE, 2);
		if (id_bit == PERF_SAMPLE_IDENTIFIER)
			craft_u64(&file, ids[i]);
		craft_u64(&file, 0x1000);
		craft_u64(&file, 0);
		craft_u64(&file, i);
		if (id_bit == PERF_SAMPLE_ID)
			craft_u64(&file, ids[i]);
		craft_u64(&file, 7);
		craft_record_end(&file, record);
		record = craft_record(&file, PERF_RECORD_EXIT, 0);
		for (unsigned j = 0; j < 3; j++)
			craft_u64(&file, 0);
		craft_u64(&file, 0); /* trailer: pid, tid */
		craft_u64(&file, i);
		craft_u64(&file, ids[i]);
		craft_record_end(&file, record);
	}
	craft_finish(&file, at);

	struct tickmap_perfdata *data = open_crafted();
	static const size_t owner[] = { 0, 1, 0, 1, 0 };
	assert_int_equal(tickmap_perfdata_attr_count(data), 2);
	assert_true(tickmap_perfdata_attr_at(data, 0)->counts_time);
	assert_false(tickmap_perfdata_attr_at(data, 1)->counts_time);
	for (unsigned i = 0; i < 5; i++) {
		for (int sample = 1; sample >= 0; sample--) {
			struct tickmap_perfdata_record record =
				must_next(data, sample ? PERF_RECORD_SAMPLE
						       : PERF_RECORD_EXIT);
			assert_ptr_equal(record.attr, tickmap_perfdata_attr_at(
							      data, owner[i]));
			assert_int_equal(record.id.id, ids[i]);
			assert_int_equal(record.id.time_ns, i);
		}
	}
	must_end(data);
	unlink(path);
}

static void every_record_finds_its_event_by_id(void **state)
{
	(void)state;
	two_events(PERF_SAMPLE_IDENTIFIER, false);
	two_events(PERF_SAMPLE_IDENTIFIER, true);
	two_events(PERF_SAMPLE_ID, false);
	two_events(PERF_SAMPLE_ID, true);
}

/* ---- Compressed ---- */

/* Many records as one zstd stream, cut into COMPRESSED records of `piece`. */
static void put_compressed(uint32_t type, size_t piece, unsigned samples)
{
	static struct craft raw;
	static uint8_t packed[1 << 18];

	raw.count = 0;
	for (unsigned i = 0; i < samples; i++) {
		size_t record = craft_record(&raw, PERF_RECORD_SAMPLE, 2);
		craft_u64(&raw, i * UINT64_C(0x9e3779b97f4a7c15));
		craft_u64(&raw, 0);
		craft_u64(&raw, i);
		craft_record_end(&raw, record);
	}
	size_t size =
		ZSTD_compress(packed, sizeof(packed), raw.bytes, raw.count, 3);
	assert_false(ZSTD_isError(size));
	for (size_t at = 0; at < size; at += piece) {
		size_t n = size - at < piece ? size - at : piece;
		size_t record = craft_record(&file, type, 0);
		if (type == PERFDATA_RECORD_COMPRESSED2)
			craft_u64(&file, n);
		craft_bytes(&file, packed + at, n);
		if (type == PERFDATA_RECORD_COMPRESSED2)
			craft_bytes(&file, "\0\0\0\0\0\0\0", -n & 7);
		craft_record_end(&file, record);
	}
}

static void records_may_straddle_compressed_ones(void **state)
{
	static const size_t pieces[] = { 3, 64, 1000, 60000 };
	(void)state;

	for (unsigned i = 0; i < 8; i++) {
		file.count = 0;
		size_t at = craft_begin(&file, &one_event, 1);
		put_comm(1);
		put_compressed(i & 1 ? PERFDATA_RECORD_COMPRESSED2
				     : PERFDATA_RECORD_COMPRESSED,
			       pieces[i / 2], 2000);
		put_comm(2);
		craft_finish(&file, at);
		struct tickmap_perfdata *data = open_crafted();
		must_next(data, PERF_RECORD_COMM);
		for (unsigned j = 0; j < 2000; j++)
			assert_int_equal(
				must_next(data, PERF_RECORD_SAMPLE).id.time_ns,
				j);
		must_next(data, PERF_RECORD_COMM);
		must_end(data);
		unlink(path);
	}
}

static void a_small_record_may_unfold_to_megabytes(void **state)
{
	size_t big = 64 << 20;
	uint8_t *raw = calloc(1, big), packed[65000];
	(void)state;

	/* Records of type 200 and 32 KiB each, all zeros. */
	for (size_t i = 0; i < big; i += 32768) {
		struct perf_event_header header = { 200, 0, 32768 };
		memcpy(raw + i, &header, sizeof(header));
	}
	size_t size = ZSTD_compress(packed, sizeof(packed), raw, big, 3);
	assert_false(ZSTD_isError(size));
	free(raw);
	size_t at = craft_begin(&file, &one_event, 1);
	size_t record = craft_record(&file, PERFDATA_RECORD_COMPRESSED, 0);
	craft_bytes(&file, packed, size);
	craft_record_end(&file, record);
	craft_finish(&file, at);
	struct tickmap_perfdata *data = open_crafted();
	for (size_t i = 0; i < big / 32768; i++)
		must_next(data, 200);
	must_end(data);
}

static void damaged_compressed_data_end_the_reading_where_they_are(void **state)
{
	(void)state;
	size_t at = craft_begin(&file, &one_event, 1);
	put_comm(1);
	size_t damaged = file.count;
	size_t record = craft_record(&file, PERFDATA_RECORD_COMPRESSED, 0);
	craft_bytes(&file, "not zstd at all.", 16);
	craft_record_end(&file, record);
	craft_finish(&file, at);
	struct tickmap_perfdata *data = open_crafted();
	must_next(data, PERF_RECORD_COMM);
	must_fail(data, TICKMAP_E_FORMAT, damaged);

	/* A size inside the record that is larger than it. */
	file.count = 0;
	at = craft_begin(&file, &one_event, 1);
	damaged = file.count;
	record = craft_record(&file, PERFDATA_RECORD_COMPRESSED2, 0);
	craft_u64(&file, 1000);
	craft_record_end(&file, record);
	craft_finish(&file, at);
	must_fail(open_crafted(), TICKMAP_E_FORMAT, damaged);
}

/* ---- What follows records, and what is missing ---- */

static void payloads_behind_records_are_passed_over(void **state)
{
	(void)state;
	size_t at = craft_begin(&file, &one_event, 1);
	size_t record = craft_record(&file, PERFDATA_RECORD_AUXTRACE, 0);
	craft_u64(&file, 800);
	craft_record_end(&file, record);
	for (unsigned i = 0; i < 100; i++)
		craft_u64(&file, 0);
	record = craft_record(&file, PERFDATA_RECORD_TRACING_DATA, 0);
	craft_u32(&file, 13);
	craft_u32(&file, 0);
	craft_record_end(&file, record);
	craft_u64(&file, 0);
	craft_u64(&file, 0);
	put_sample(1, 2);
	record = craft_record(&file, PERFDATA_RECORD_AUXTRACE, 0);
	craft_u64(&file, UINT64_MAX);
	craft_record_end(&file, record);
	craft_finish(&file, at);
	struct tickmap_perfdata *data = open_crafted();
	must_next(data, PERFDATA_RECORD_AUXTRACE);
	must_next(data, PERFDATA_RECORD_TRACING_DATA);
	must_next(data, PERF_RECORD_SAMPLE);
	must_next(data, PERFDATA_RECORD_AUXTRACE);
	must_end(data);
}

static void what_is_no_record_is_stepped_over(void **state)
{
	(void)state;
	size_t at = craft_begin(&file, &one_event, 1);
	put_sample(1, 2);
	size_t bad = file.count;
	craft_u32(&file, PERF_RECORD_SAMPLE);
	craft_u16(&file, 0);
	craft_u16(&file, 7);
	put_sample(1, 3);
	craft_finish(&file, at);
	struct tickmap_perfdata *data = open_crafted();
	must_next(data, PERF_RECORD_SAMPLE);
	assert_int_equal(must_next(data, PERF_RECORD_SAMPLE).id.time_ns, 3);
	assert_int_equal(tickmap_perfdata_skipped(data), 8);
	must_fail(data, TICKMAP_E_FORMAT, bad);
}

/* Any size instead of a record's own: none of the others is lost. */
static void a_wrong_size_hides_no_other_record(void **state)
{
	enum { COUNT = 40, BAD = 5 };
	size_t bad = 0;
	(void)state;

	size_t at = craft_begin(&file, &one_event, 1);
	for (unsigned i = 0; i < COUNT; i++) {
		if (i == BAD)
			bad = file.count;
		put_sample(1, 100 + i);
	}
	size_t size = (file.count - bad) / (COUNT - BAD);
	craft_finish(&file, at);
	for (size_t wrong = 0; wrong < 1 << 16;
	     wrong += wrong < 1500 ? 8 : 4096) {
		/* One that ends where another record begins is no wrong one. */
		if (wrong % size == 0 && wrong && bad + wrong <= file.count)
			continue;
		uint16_t bytes = (uint16_t)wrong;
		memcpy(file.bytes + bad + 6, &bytes, sizeof(bytes));
		struct tickmap_perfdata *data = open_crafted();
		struct tickmap_perfdata_record record;
		unsigned others = 0;
		while (tickmap_perfdata_next(data, &record, NULL) == 1)
			others += record.type == PERF_RECORD_SAMPLE &&
				  record.id.time_ns >= 100 &&
				  record.id.time_ns != 100 + BAD;
		if (others != COUNT - 1)
			print_error("size %zu\n", wrong);
		assert_int_equal(others, COUNT - 1);
		assert_true(tickmap_perfdata_skipped(data) <= size);
		tickmap_perfdata_close(data);
	}
}

static void an_unfinished_file_is_read_to_its_last_whole_record(void **state)
{
	(void)state;
	craft_begin(&file, &one_event, 1);
	put_sample(1, 2);
	put_sample(1, 3);
	size_t whole = file.count;
	put_sample(1, 4);
	for (size_t end = whole; end < whole + 32; end++) {
		file.count = end;
		struct tickmap_perfdata *data = open_crafted();
		assert_false(tickmap_perfdata_is_finished(data));
		must_next(data, PERF_RECORD_SAMPLE);
		must_next(data, PERF_RECORD_SAMPLE);
		must_end(data);
	}
}

static void a_finished_file_that_was_cut_is_said_to_be(void **state)
{
	(void)state;
	size_t at = craft_begin(&file, &one_event, 1);
	put_sample(1, 2);
	put_sample(1, 3);
	craft_finish(&file, at);
	file.count -= 8;
	struct tickmap_perfdata *data = open_crafted();
	assert_false(tickmap_perfdata_is_finished(data));
	must_next(data, PERF_RECORD_SAMPLE);
	must_fail(data, TICKMAP_E_TRUNCATED, file.count);
}

static void what_is_not_for_us_is_named(void **state)
{
	struct tickmap_error err = { 0 };
	struct tickmap_perfdata *data;
	(void)state;

	craft_bytes(&file, "PERFILE2", 8);
	craft_u64(&file, 16);
	assert_int_equal(open_status(&err), TICKMAP_E_FORMAT);
	assert_non_null(strstr(err.what, "no event"));
	assert_string_equal(err.source, path);

	file.count = 0;
	craft_bytes(&file, "DTiJ\1\0\0\0", 8);
	assert_int_equal(open_status(&err), TICKMAP_E_FORMAT);
	assert_non_null(strstr(err.what, "not a perf.data"));

	file.count = 0;
	assert_int_equal(open_status(&err), TICKMAP_E_FORMAT);
	assert_int_equal(tickmap_perfdata_open("/", &data, &err), TICKMAP_E_OS);
	assert_int_equal(err.os_errno, ENOENT);
	assert_int_equal(tickmap_perfdata_open("/dev/null", &data, &err),
			 TICKMAP_E_UNSUPPORTED);
	assert_int_equal(tickmap_perfdata_open("/nonexistent", &data, &err),
			 TICKMAP_E_OS);
	assert_int_equal(err.os_errno, ENOENT);
}

static void impossible_headers_are_refused(void **state)
{
	struct tickmap_error err = { 0 };
	static struct craft whole;
	(void)state;

	size_t at = craft_begin(&file, &one_event, 1);
	put_sample(1, 2);
	craft_finish(&file, at);
	whole = file;
	static const struct {
		size_t at;
		uint64_t value;
		int status;
	} changes[] = {
		{ 8, 71, TICKMAP_E_TRUNCATED },
		{ 16, 0, TICKMAP_E_FORMAT },
		{ 16, 79, TICKMAP_E_FORMAT },
		{ 16, UINT64_MAX, TICKMAP_E_FORMAT },
		{ 24, UINT64_MAX, TICKMAP_E_TRUNCATED },
		{ 32, 0, TICKMAP_E_FORMAT },
		{ 32, 144 * 2, TICKMAP_OK }, /* data taken for ids: noted */
		{ 32, UINT64_MAX, TICKMAP_E_LIMIT },
		{ 40, UINT64_MAX, TICKMAP_E_TRUNCATED },
	};
	for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
		file = whole;
		file.count = changes[i].at;
		craft_u64(&file, changes[i].value);
		file.count = whole.count;
		/* Enough behind it for a second event. */
		for (unsigned j = 0; j < 32; j++)
			craft_u64(&file, UINT64_C(0x7777777777777777));
		int status = open_status(&err);
		if (status != changes[i].status)
			print_error("change %zu\n", i);
		assert_int_equal(status, changes[i].status);
	}
}

static void every_cut_and_every_changed_byte_is_survived(void **state)
{
	static struct craft whole;
	struct tickmap_perfdata_record record;
	(void)state;

	two_events(PERF_SAMPLE_IDENTIFIER, true);
	file.swap = false;
	file.count = 0;
	size_t at = craft_begin(&file, &one_event, 1);
	put_comm(1);
	put_compressed(PERFDATA_RECORD_COMPRESSED, 200, 50);
	craft_finish(&file, at);
	whole = file;
	for (size_t i = 0; i < whole.count; i++) {
		for (int change = 0; change < 2; change++) {
			struct tickmap_perfdata *data;
			file = whole;
			if (change)
				file.bytes[i] ^= 0xff;
			else
				file.count = i;
			free(path);
			path = craft_save(&file, "read");
			if (tickmap_perfdata_open(path, &data, NULL))
				continue;
			unsigned records = 0;
			while (tickmap_perfdata_next(data, &record, NULL) == 1)
				records++;
			assert_true(records <= file.count);
			tickmap_perfdata_close(data);
		}
	}
}

static void notes_of_others_are_not_ours(void **state)
{
	struct tickmap_note note;
	(void)state;

	size_t at = craft_begin(&file, &one_event, 1);
	size_t record = craft_record(&file, TICKMAP_RECORD_NOTE, 0);
	craft_text(&file, "some event name", 72);
	craft_record_end(&file, record);
	record = craft_record(&file, TICKMAP_RECORD_NOTE, 0);
	craft_record_end(&file, record);
	record = craft_record(&file, TICKMAP_RECORD_NOTE, 0);
	craft_u32(&file, TICKMAP_NOTE_MAGIC);
	for (unsigned i = 0; i < 7; i++)
		craft_u32(&file, 1);
	craft_u32(&file, 1000); /* bytes that are not there */
	craft_u32(&file, 0);
	craft_record_end(&file, record);
	put_sample(1, 2);
	craft_finish(&file, at);
	struct tickmap_perfdata *data = open_crafted();
	static const int expected[] = { TICKMAP_E_NOT_FOUND,
					TICKMAP_E_NOT_FOUND,
					TICKMAP_E_TRUNCATED };
	for (unsigned i = 0; i < 3; i++) {
		struct tickmap_perfdata_record r =
			must_next(data, TICKMAP_RECORD_NOTE);
		assert_int_equal(tickmap_note_decode(&r, &note), expected[i]);
	}
	struct tickmap_perfdata_record r = must_next(data, PERF_RECORD_SAMPLE);
	assert_int_equal(tickmap_note_decode(&r, &note), TICKMAP_E_NOT_FOUND);
	must_end(data);
}

/* ---- perf's own recordings, with perf as a second opinion ---- */

struct total {
	unsigned count;
	uint64_t time_ns, tid; /* sums */
};

static struct total as_perf_lists(const char *perf)
{
	char call[1024], line[512];
	struct total total = { 0 };

	snprintf(call, sizeof(call),
		 "%s script --ns -F tid,time -G -i %s 2>/dev/null", perf, path);
	FILE *out = popen(call, "r");
	assert_non_null(out);
	while (fgets(line, sizeof(line), out)) {
		char *at = line;
		uint64_t tid = strtoull(at, &at, 10);
		uint64_t seconds = strtoull(at, &at, 10);
		if (*at != '.')
			continue;
		total.count++;
		total.tid += tid;
		total.time_ns +=
			seconds * 1000000000 + strtoull(at + 1, NULL, 10);
	}
	assert_int_equal(pclose(out), 0);
	return total;
}

static struct total as_we_read(void)
{
	struct tickmap_perfdata *data;
	struct tickmap_perfdata_record record;
	struct tickmap_sample sample;
	struct total total = { 0 };

	assert_int_equal(tickmap_perfdata_open(path, &data, NULL), 0);
	while (tickmap_perfdata_next(data, &record, NULL) == 1) {
		if (record.type != PERF_RECORD_SAMPLE)
			continue;
		struct tickmap_bytes body =
			tickmap_bytes_of(record.bytes + 8, record.size - 8);
		assert_int_equal(tickmap_sample_decode(&record.attr->layout,
						       &body, &sample, NULL),
				 0);
		total.count++;
		total.tid += sample.tid;
		total.time_ns += sample.time_ns;
	}
	tickmap_perfdata_close(data);
	return total;
}

static void perf_records_and_we_read_the_same(void **state)
{
	static const char *const options[] = {
		"-e cpu-clock,page-faults -c 1 -g",
		"-z -e cpu-clock -F 9999 --call-graph dwarf",
		"-e cpu-clock,task-clock -F 9999 -d --phys-data -T -P -R",
		"-e page-faults -c 1 --namespaces --switch-events",
	};
	const char *perf = getenv("PERF");
	char call[1024];
	(void)state;

	if (!perf)
		perf = "perf";
	file.count = 0;
	path = craft_save(&file, "perf");
	for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
		snprintf(call, sizeof(call),
			 "%s record -q -N -o %s %s -- "
			 "sh -c 'ls -R /proc/self/ /sys/kernel/mm' "
			 ">/dev/null 2>&1; test -s %s",
			 perf, path, options[i], path);
		if (system(call)) {
			print_message("skipped: perf cannot record here\n");
			skip();
		}
		struct total theirs = as_perf_lists(perf);
		struct total ours = as_we_read();
		assert_true(ours.count > 10);
		assert_int_equal(ours.count, theirs.count);
		assert_int_equal(ours.tid, theirs.tid);
		assert_int_equal(ours.time_ns, theirs.time_ns);
		unlink(path);
	}
}

int main(void)
{
#define sentence(test) cmocka_unit_test_setup_teardown(test, fresh, remove_file)
	const struct CMUnitTest tests[] = {
		sentence(both_byte_orders_and_all_attr_sizes_read_alike),
		sentence(every_record_finds_its_event_by_id),
		sentence(records_may_straddle_compressed_ones),
		sentence(a_small_record_may_unfold_to_megabytes),
		sentence(
			damaged_compressed_data_end_the_reading_where_they_are),
		sentence(payloads_behind_records_are_passed_over),
		sentence(what_is_no_record_is_stepped_over),
		sentence(a_wrong_size_hides_no_other_record),
		sentence(an_unfinished_file_is_read_to_its_last_whole_record),
		sentence(a_finished_file_that_was_cut_is_said_to_be),
		sentence(what_is_not_for_us_is_named),
		sentence(impossible_headers_are_refused),
		sentence(every_cut_and_every_changed_byte_is_survived),
		sentence(notes_of_others_are_not_ours),
		sentence(perf_records_and_we_read_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

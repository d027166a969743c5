/* SPDX-License-Identifier: MIT */
#include "capture/perfdata.h"
#include "capture/perfdata_format.h"
#include "platform/platform.h"
#include "synth.h"

#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
/* cmocka wants the above first */
#include <cmocka.h>

static char path[256];

static int fresh_path(void **state)
{
	const char *dir = getenv("TMPDIR");
	(void)state;

	snprintf(path, sizeof(path), "%s/tickmap-write-%d.data",
		 dir ? dir : "/tmp", (int)getpid());
	unlink(path);
	return 0;
}

static int remove_path(void **state)
{
	(void)state;
	unlink(path);
	return 0;
}

static struct tickmap_perfdata_writer *create(int level)
{
	struct perf_event_attr attr;
	struct tickmap_perfdata_event event = { &attr, "cpu-clock" };
	struct tickmap_perfdata_writer *writer = NULL;

	synth_attr(&attr);
	if (tickmap_perfdata_create(path, &event, level, &writer, NULL))
		abort();
	return writer;
}

/* ---- What is written is what is read ---- */

enum { ROUND = 64 };

/* Record number i of a stream that follows from its seed. */
static size_t nth_record(uint8_t *out, uint64_t *seed, unsigned i)
{
	uint64_t time_ns = 1000000 + (uint64_t)i * 1001001;

	if (i == 0)
		return synth_comm(out, 4000, "prog", time_ns);
	if (i % 50 == 1)
		return synth_mmap2(out, 4000, 0x400000, 0x20000, "/bin/prog",
				   time_ns);
	return synth_sample(out, seed, time_ns);
}

/* Reads the stream back; returns how many records were there and right. */
static unsigned read_back(unsigned *rounds, bool *finished, int *status)
{
	struct tickmap_perfdata *data;
	struct tickmap_perfdata_record record;
	uint8_t expected[SYNTH_RECORD_MAX];
	uint64_t seed = 1;
	unsigned count = 0;

	*rounds = 0;
	assert_int_equal(tickmap_perfdata_open(path, &data, NULL), 0);
	*finished = tickmap_perfdata_is_finished(data);
	while ((*status = tickmap_perfdata_next(data, &record, NULL)) == 1) {
		if (record.type == PERFDATA_RECORD_FINISHED_ROUND) {
			++*rounds;
			continue;
		}
		if (record.type == TICKMAP_RECORD_NOTE)
			continue;
		size_t size = nth_record(expected, &seed, count);
		assert_int_equal(record.size, size);
		assert_memory_equal(record.bytes, expected, size);
		assert_int_equal(record.id.time_ns,
				 1000000 + (uint64_t)count * 1001001);
		assert_int_equal(record.id.pid, 4000);
		assert_ptr_equal(record.attr,
				 tickmap_perfdata_attr_at(data, 0));
		count++;
	}
	tickmap_perfdata_close(data);
	return count;
}

static void write_stream(struct tickmap_perfdata_writer *writer, unsigned from,
			 unsigned count, uint64_t *seed)
{
	uint8_t record[SYNTH_RECORD_MAX];

	for (unsigned i = from; i < from + count; i++) {
		size_t size = nth_record(record, seed, i);
		if (tickmap_perfdata_write(writer, record, size, NULL))
			abort();
		if (i % ROUND == ROUND - 1 &&
		    tickmap_perfdata_round(writer, NULL))
			abort();
	}
}

static void round_trip(int level)
{
	struct tickmap_perfdata_writer *writer = create(level);
	uint64_t seed = 1;
	unsigned rounds;
	bool finished;
	int status;

	write_stream(writer, 0, 5000, &seed);
	assert_int_equal(tickmap_perfdata_finish(writer, NULL, NULL), 0);
	assert_int_equal(read_back(&rounds, &finished, &status), 5000);
	assert_int_equal(rounds, 5000 / ROUND);
	assert_true(finished);
	assert_int_equal(status, 0);
}

static void records_come_back_as_they_were(void **state)
{
	(void)state;
	for (int level = 0; level < 4; level++) {
		round_trip(level);
		unlink(path);
	}
}

static void a_round_makes_all_before_it_readable(void **state)
{
	struct tickmap_perfdata_writer *writer = create(3);
	uint64_t seed = 1;
	unsigned rounds;
	bool finished;
	int status;
	(void)state;

	assert_int_equal(read_back(&rounds, &finished, &status), 0);
	for (unsigned round = 0; round < 5; round++) {
		write_stream(writer, round * ROUND, ROUND, &seed);
		assert_int_equal(read_back(&rounds, &finished, &status),
				 (round + 1) * ROUND);
		assert_int_equal(rounds, round + 1);
		assert_false(finished);
		assert_int_equal(status, 0);
	}
	assert_int_equal(tickmap_perfdata_finish(writer, NULL, NULL), 0);
}

static void a_killed_writer_leaves_its_finished_rounds(void **state)
{
	uint64_t delays = 99;
	unsigned some = 0;
	(void)state;

	for (unsigned attempt = 0; attempt < 20; attempt++) {
		unsigned rounds = 0;
		bool finished = true;
		int status = -1;
		pid_t child = fork();
		assert_true(child >= 0);
		if (child == 0) {
			struct tickmap_perfdata_writer *writer = create(3);
			uint64_t seed = 1;
			for (unsigned i = 0;; i += ROUND)
				write_stream(writer, i, ROUND, &seed);
		}
		usleep(2000 + (useconds_t)(synth_next(&delays) % 8000));
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		struct stat st;
		if (stat(path, &st) || !st.st_size) {
			unlink(path);
			continue; /* it had not even begun */
		}
		unsigned count = read_back(&rounds, &finished, &status);
		assert_false(finished);
		assert_int_equal(status, 0);
		assert_true(count >= rounds * ROUND);
		some += rounds > 0;
		unlink(path);
	}
	assert_true(some > 10);
}

/* The file of a disk that ran full, or of a copy that was cut. */
static void a_file_cut_anywhere_gives_what_is_whole(void **state)
{
	struct tickmap_perfdata_writer *writer = create(3);
	uint64_t seed = 1;
	unsigned rounds, last = 0;
	bool finished;
	int status;
	(void)state;

	write_stream(writer, 0, 300, &seed);
	assert_int_equal(tickmap_perfdata_finish(writer, NULL, NULL), 0);
	char *bytes;
	size_t size;
	assert_int_equal(tickmap_read_file(path, 1 << 24, &bytes, &size, NULL),
			 0);
	for (size_t cut = 248; cut < size; cut += 61) {
		assert_int_equal(truncate(path, 0), 0);
		FILE *file = fopen(path, "wb");
		assert_non_null(file);
		assert_int_equal(fwrite(bytes, 1, cut, file), cut);
		assert_int_equal(fclose(file), 0);
		unsigned count = read_back(&rounds, &finished, &status);
		assert_true(count >= last);
		last = count;
		if (!finished)
			assert_int_equal(status, TICKMAP_E_TRUNCATED);
	}
	assert_int_equal(last, 300);
	free(bytes);
}

static void what_cannot_be_compressed_comes_back_too(void **state)
{
	struct tickmap_perfdata_writer *writer = create(3);
	struct tickmap_perfdata *data;
	struct tickmap_perfdata_record record;
	uint64_t noise[SYNTH_RECORD_MAX / 8], seed = 5;
	struct perf_event_header header = { .type = 200,
					    .size = sizeof(noise) };
	(void)state;

	for (unsigned i = 0; i < 50; i++) {
		for (size_t j = 0; j < SYNTH_RECORD_MAX / 8; j++)
			noise[j] = synth_next(&seed);
		memcpy(noise, &header, sizeof(header));
		assert_int_equal(tickmap_perfdata_write(writer, noise,
							sizeof(noise), NULL),
				 0);
	}
	assert_int_equal(tickmap_perfdata_finish(writer, NULL, NULL), 0);
	assert_int_equal(tickmap_perfdata_open(path, &data, NULL), 0);
	seed = 5;
	for (unsigned i = 0; i < 50; i++) {
		for (size_t j = 0; j < SYNTH_RECORD_MAX / 8; j++)
			noise[j] = synth_next(&seed);
		memcpy(noise, &header, sizeof(header));
		assert_int_equal(tickmap_perfdata_next(data, &record, NULL), 1);
		assert_int_equal(record.size, sizeof(noise));
		assert_memory_equal(record.bytes, noise, sizeof(noise));
	}
	assert_int_equal(tickmap_perfdata_next(data, &record, NULL), 0);
	tickmap_perfdata_close(data);
}

/* ---- Notes and facts ---- */

static void notes_come_back_and_long_chunks_in_pieces(void **state)
{
	struct tickmap_perfdata_writer *writer = create(3);
	static uint8_t dump[200001];
	struct tickmap_note fact = { .kind = TICKMAP_NOTE_FACT,
				     .bytes = (const uint8_t *)"a=b",
				     .size = 3 };
	struct tickmap_note chunk = { TICKMAP_NOTE_JITDUMP, 7, 8, 9, 10, dump,
				      sizeof(dump) };
	struct tickmap_note too_long = { .kind = TICKMAP_NOTE_SYMBOLS,
					 .bytes = dump,
					 .size = sizeof(dump) };
	struct tickmap_note empty = { .kind = TICKMAP_NOTE_TRUNCATED,
				      .value = 3 };
	struct tickmap_perfdata *data;
	struct tickmap_perfdata_record record;
	struct tickmap_note note;
	uint64_t seed = 3;
	size_t got = 0;
	(void)state;

	for (size_t i = 0; i < sizeof(dump); i++)
		dump[i] = (uint8_t)synth_next(&seed);
	assert_int_equal(tickmap_perfdata_write_note(writer, &fact, NULL), 0);
	assert_int_equal(tickmap_perfdata_write_note(writer, &chunk, NULL), 0);
	assert_int_equal(tickmap_perfdata_write_note(writer, &too_long, NULL),
			 TICKMAP_E_LIMIT);
	assert_int_equal(tickmap_perfdata_write_note(writer, &empty, NULL), 0);
	assert_int_equal(tickmap_perfdata_finish(writer, NULL, NULL), 0);

	assert_int_equal(tickmap_perfdata_open(path, &data, NULL), 0);
	assert_int_equal(tickmap_perfdata_next(data, &record, NULL), 1);
	assert_int_equal(tickmap_note_decode(&record, &note), 0);
	assert_int_equal(note.kind, TICKMAP_NOTE_FACT);
	assert_int_equal(note.size, 3);
	assert_memory_equal(note.bytes, "a=b", 3);
	while (got < sizeof(dump)) {
		assert_int_equal(tickmap_perfdata_next(data, &record, NULL), 1);
		assert_int_equal(record.size % 8, 0);
		assert_int_equal(tickmap_note_decode(&record, &note), 0);
		assert_int_equal(note.kind, TICKMAP_NOTE_JITDUMP);
		assert_int_equal(note.pid, 7);
		assert_int_equal(note.file_id, 8);
		assert_int_equal(note.time_ns, 9);
		assert_int_equal(note.value, 10);
		assert_in_range(note.size, 1, sizeof(dump) - got);
		assert_memory_equal(note.bytes, dump + got, note.size);
		got += note.size;
	}
	assert_int_equal(tickmap_perfdata_next(data, &record, NULL), 1);
	assert_int_equal(tickmap_note_decode(&record, &note), 0);
	assert_int_equal(note.kind, TICKMAP_NOTE_TRUNCATED);
	assert_int_equal(note.value, 3);
	assert_int_equal(note.size, 0);
	assert_int_equal(tickmap_perfdata_next(data, &record, NULL), 0);
	tickmap_perfdata_close(data);
}

static const char *const command[] = { "tickmap", "record", "--", "my prog" };
static const struct tickmap_perfdata_build_id build_ids[] = {
	{ "/bin/prog",
	  { 1,	2,  3,	4,  5,	6,  7,	8,  9,	10,
	    11, 12, 13, 14, 15, 16, 17, 18, 19, 20 },
	  20,
	  false },
	{ "[kernel.kallsyms]", { 0xaa, 0xbb }, 20, true },
	{ "/lib/short.so", { 9, 8, 7, 6, 5, 4, 3, 2 }, 8, false },
};
static const struct tickmap_perfdata_facts facts = {
	.command = command,
	.command_count = 4,
	.version = "tickmap 0.1",
	.first_sample_ns = 3002002,
	.last_sample_ns = 400000000,
	.build_ids = build_ids,
	.build_id_count = 3,
};

static void facts_come_back(void **state)
{
	struct tickmap_perfdata_writer *writer = create(3);
	struct tickmap_perfdata *data;
	uint8_t id[20];
	char host[256];
	uint64_t seed = 1;
	(void)state;

	write_stream(writer, 0, 100, &seed);
	assert_int_equal(tickmap_perfdata_finish(writer, &facts, NULL), 0);
	assert_int_equal(tickmap_perfdata_open(path, &data, NULL), 0);
	assert_string_equal(
		tickmap_perfdata_feature_text(data, PERFDATA_FEATURE_CMDLINE),
		"tickmap record -- my prog");
	assert_string_equal(
		tickmap_perfdata_feature_text(data, PERFDATA_FEATURE_VERSION),
		"tickmap 0.1");
	assert_int_equal(gethostname(host, sizeof(host)), 0);
	assert_string_equal(
		tickmap_perfdata_feature_text(data, PERFDATA_FEATURE_HOSTNAME),
		host);
	assert_null(tickmap_perfdata_feature_text(data, 1));
	assert_null(tickmap_perfdata_feature_text(data, 4000));
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(tickmap_perfdata_build_id_of(
					 data, build_ids[i].path, id),
				 build_ids[i].id_size);
		assert_memory_equal(id, build_ids[i].id, 20);
	}
	assert_int_equal(tickmap_perfdata_build_id_of(data, "/bin/other", id),
			 0);
	const struct tickmap_perfdata_attr *attr =
		tickmap_perfdata_attr_at(data, 0);
	assert_int_equal(tickmap_perfdata_attr_count(data), 1);
	assert_string_equal(attr->name, "cpu-clock");
	assert_true(attr->counts_time);
	assert_true(attr->use_clockid);
	assert_int_equal(attr->clockid, 1);
	assert_true(attr->freq);
	assert_int_equal(attr->sample_freq_or_period, 999);
	assert_true(attr->layout.sample_id_all);
	tickmap_perfdata_close(data);
}

/* ---- What the file system says no to ---- */

static void an_existing_file_or_link_is_never_written(void **state)
{
	struct perf_event_attr attr;
	struct tickmap_perfdata_event event = { &attr, "cpu-clock" };
	struct tickmap_perfdata_writer *writer = NULL;
	struct tickmap_error err = { 0 };
	struct stat st;
	(void)state;

	synth_attr(&attr);
	assert_int_equal(symlink("/nonexistent/target", path), 0);
	assert_int_equal(
		tickmap_perfdata_create(path, &event, 3, &writer, &err),
		TICKMAP_E_OS);
	assert_int_equal(err.os_errno, EEXIST);
	assert_string_equal(err.source, path);
	unlink(path);
	writer = create(3);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(tickmap_perfdata_finish(writer, NULL, NULL), 0);
	assert_int_equal(
		tickmap_perfdata_create(path, &event, 3, &writer, &err),
		TICKMAP_E_OS);
	assert_int_equal(err.os_errno, EEXIST);
}

static void sizes_that_perf_data_cannot_hold_are_refused(void **state)
{
	struct tickmap_perfdata_writer *writer = create(0);
	static uint8_t record[70000];
	(void)state;

	assert_int_equal(tickmap_perfdata_write(writer, record, 0, NULL),
			 TICKMAP_E_LIMIT);
	assert_int_equal(tickmap_perfdata_write(writer, record, 12, NULL),
			 TICKMAP_E_LIMIT);
	assert_int_equal(tickmap_perfdata_write(writer, record, 65536, NULL),
			 TICKMAP_E_LIMIT);
	assert_int_equal(tickmap_perfdata_finish(writer, NULL, NULL), 0);
}

static void a_full_disk_is_told_once_and_for_all(void **state)
{
	struct tickmap_perfdata_writer *writer = create(0);
	struct rlimit before, small;
	struct tickmap_error err = { 0 };
	unsigned rounds;
	bool finished;
	int status = 0;
	uint64_t seed = 1;
	uint8_t record[SYNTH_RECORD_MAX];
	(void)state;

	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &before);
	small = before;
	small.rlim_cur = 300000;
	setrlimit(RLIMIT_FSIZE, &small);
	for (unsigned i = 0; i < 5000 && !status; i++) {
		size_t size = nth_record(record, &seed, i);
		status = tickmap_perfdata_write(writer, record, size, &err);
	}
	assert_int_equal(status, TICKMAP_E_OS);
	assert_int_equal(err.os_errno, EFBIG);
	assert_string_equal(err.source, path);
	assert_int_equal(tickmap_perfdata_round(writer, NULL), TICKMAP_E_OS);
	assert_int_equal(tickmap_perfdata_finish(writer, &facts, &err),
			 TICKMAP_E_OS);
	setrlimit(RLIMIT_FSIZE, &before);
	/* What got through is an unfinished file like any other. */
	assert_true(read_back(&rounds, &finished, &status) > 100);
	assert_false(finished);
	assert_int_equal(status, 0);
}

/* ---- perf as a second opinion ---- */

/* Reads one whitespace-separated word; false at the end of the line. */
static bool word_of(char **at, char *word, size_t size)
{
	*at += strspn(*at, " \t");
	size_t length = strcspn(*at, " \t\n");
	if (!length || length >= size)
		return false;
	memcpy(word, *at, length);
	word[length] = '\0';
	*at += length;
	return true;
}

/* "TID SECONDS.NANOSECONDS:" then a line per address, then an empty line. */
static void expect_sample(FILE *out, const struct tickmap_sample *sample)
{
	char line[512], word[64], *at = line;

	assert_non_null(fgets(line, sizeof(line), out));
	assert_true(word_of(&at, word, sizeof(word)));
	assert_int_equal(strtoul(word, NULL, 10), sample->tid);
	assert_true(word_of(&at, word, sizeof(word)));
	char *point = strchr(word, '.');
	assert_non_null(point);
	assert_int_equal(strtoull(word, NULL, 10) * 1000000000 +
				 strtoull(point + 1, NULL, 10),
			 sample->time_ns);
	for (size_t i = 1; i < sample->chain_count; i++) { /* 0: "user" */
		assert_non_null(fgets(line, sizeof(line), out));
		uint64_t ip = tickmap_sample_chain_at(sample, i);
		assert_int_equal(strtoull(line, NULL, 16), ip);
	}
	assert_non_null(fgets(line, sizeof(line), out));
	assert_int_equal(line[0], '\n');
}

static void perf_reads(const char *perf)
{
	char call[1024], rest[512];
	struct tickmap_perfdata *data;
	struct tickmap_perfdata_record record;
	struct tickmap_sample sample;
	unsigned samples = 0;

	/* perf's warnings would come first and not be a sample. */
	snprintf(call, sizeof(call),
		 "%s script --ns -F tid,time,ip --max-stack 1000 -i %s 2>&1",
		 perf, path);
	FILE *out = popen(call, "r");
	assert_non_null(out);
	assert_int_equal(tickmap_perfdata_open(path, &data, NULL), 0);
	while (tickmap_perfdata_next(data, &record, NULL) == 1) {
		if (record.type != PERF_RECORD_SAMPLE)
			continue;
		struct tickmap_bytes body =
			tickmap_bytes_of(record.bytes + 8, record.size - 8);
		assert_int_equal(tickmap_sample_decode(&record.attr->layout,
						       &body, &sample, NULL),
				 0);
		expect_sample(out, &sample);
		samples++;
	}
	assert_null(fgets(rest, sizeof(rest), out));
	assert_int_equal(pclose(out), 0);
	tickmap_perfdata_close(data);
	assert_int_equal(samples, 2000 - 1 - 2000 / 50);
}

static void perf_lists_the_same_samples_without_a_warning(void **state)
{
	const char *perf = getenv("PERF");
	(void)state;

	if (!perf)
		perf = "perf";
	char call[512];
	snprintf(call, sizeof(call), "%s --version >/dev/null 2>&1", perf);
	if (system(call)) {
		print_message("skipped: no perf here\n");
		skip();
	}
	for (int level = 0; level < 4; level += 3) {
		struct tickmap_perfdata_writer *writer = create(level);
		static const uint8_t chunk[100000];
		struct tickmap_note note = { .kind = TICKMAP_NOTE_JITDUMP,
					     .bytes = chunk,
					     .size = sizeof(chunk) };
		uint64_t seed = 1;
		write_stream(writer, 0, 1000, &seed);
		assert_int_equal(
			tickmap_perfdata_write_note(writer, &note, NULL), 0);
		write_stream(writer, 1000, 1000, &seed);
		assert_int_equal(tickmap_perfdata_finish(writer, &facts, NULL),
				 0);
		perf_reads(perf);
		unlink(path);
	}
}

/* Text that `perf report --header-only` must show. */
static void perf_shows_our_facts(void **state)
{
	static const char *const lines[] = {
		"# perf version : tickmap 0.1\n",
		"# cmdline : tickmap record -- my prog \n",
		"# event : name = cpu-clock,",
		"# time of first sample : 0.003002\n",
		"# time of last sample : 0.400000\n",
		"# clockid: monotonic (1)\n",
		"# compressed : Zstd, level = 3,",
	};
	char call[2048], *text = NULL;
	const char *perf = getenv("PERF");
	uint64_t seed = 1;
	size_t size = 0;
	(void)state;

	if (!perf)
		perf = "perf";
	snprintf(call, sizeof(call), "%s --version >/dev/null 2>&1", perf);
	if (system(call)) {
		print_message("skipped: no perf here\n");
		skip();
	}
	struct tickmap_perfdata_writer *writer = create(3);
	write_stream(writer, 0, 100, &seed);
	assert_int_equal(tickmap_perfdata_finish(writer, &facts, NULL), 0);
	snprintf(call, sizeof(call),
		 "%s report --header-only -I -i %s 2>&1; "
		 "%s buildid-list -i %s 2>&1",
		 perf, path, perf, path);
	FILE *out = popen(call, "r");
	assert_non_null(out);
	FILE *memory = open_memstream(&text, &size);
	for (int c; (c = fgetc(out)) != EOF;)
		fputc(c, memory);
	fclose(memory);
	pclose(out);
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		if (!strstr(text, lines[i])) {
			print_error("missing: %s in\n%s", lines[i], text);
			fail();
		}
	assert_non_null(strstr(text, "0102030405060708090a0b0c0d0e0f1011121314"
				     " /bin/prog\n"));
	assert_non_null(strstr(text, "0908070605040302"));
	free(text);
}

int main(void)
{
#define sentence(test)                                                         \
	cmocka_unit_test_setup_teardown(test, fresh_path, remove_path)
	const struct CMUnitTest tests[] = {
		sentence(records_come_back_as_they_were),
		sentence(a_round_makes_all_before_it_readable),
		sentence(a_killed_writer_leaves_its_finished_rounds),
		sentence(a_file_cut_anywhere_gives_what_is_whole),
		sentence(what_cannot_be_compressed_comes_back_too),
		sentence(notes_come_back_and_long_chunks_in_pieces),
		sentence(facts_come_back),
		sentence(an_existing_file_or_link_is_never_written),
		sentence(sizes_that_perf_data_cannot_hold_are_refused),
		sentence(a_full_disk_is_told_once_and_for_all),
		sentence(perf_lists_the_same_samples_without_a_warning),
		sentence(perf_shows_our_facts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * Dumps made by make_dumps.py, read in chunks of many sizes, against what it
 * says was written.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those first */
#include <cmocka.h>

#include "codemap/codemap.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *folder;

/* What a reader said, as make_dumps.py would write it. */
struct seen {
	char *events, *findings;
	size_t events_size, findings_size;
	FILE *to_events, *to_findings;
	bool with_code;
};

static const char *kind_name(enum tickmap_code_kind kind)
{
	return kind == TICKMAP_CODE_LOAD   ? "LOAD"
	       : kind == TICKMAP_CODE_MOVE ? "MOVE"
					   : "CLOSE";
}

static void saw_code(void *context, const struct tickmap_code_event *event)
{
	struct seen *seen = context;
	unsigned sum = 0;

	fprintf(seen->to_events, "%s %llu %u %u %llx %llx %llx %llu [",
		kind_name(event->kind), (unsigned long long)event->when,
		event->pid, event->tid, (unsigned long long)event->avma,
		(unsigned long long)event->size,
		(unsigned long long)event->old_avma,
		(unsigned long long)event->code_index);
	fwrite(event->name, 1, event->name_length, seen->to_events);
	fprintf(seen->to_events, "] [%.*s] %u %zu", (int)event->file_length,
		event->file ? event->file : "", event->line,
		event->eh_frame_size);
	if (seen->with_code)
		fprintf(seen->to_events, " %llu",
			event->code ? (unsigned long long)event->size : 0);
	fputc('\n', seen->to_events);
	/* All of it is readable. */
	for (uint64_t i = 0; event->code && i < event->size; i++)
		sum += event->code[i];
	for (size_t i = 0; i < event->eh_frame_size; i++) {
		sum += event->eh_frame[i];
		/* One that had its header first has an unused entry there. */
		assert_true(!seen->with_code || event->eh_frame[i] == 0xee ||
			    (event->eh_frame_size == 76 && i < 20));
	}
	(void)sum;
}

static void saw_finding(void *context, const struct tickmap_finding *finding)
{
	struct seen *seen = context;

	fprintf(seen->to_findings, "%s @%llu %llu\n", finding->id,
		(unsigned long long)finding->offset,
		(unsigned long long)finding->value);
}

static void read_dump(const uint8_t *bytes, size_t size, size_t chunk,
		      struct seen *seen)
{
	struct tickmap_code_handler handler = { .context = seen,
						.code = saw_code,
						.finding = saw_finding };
	struct tickmap_jitdump *dump = tickmap_jitdump_new(&handler);

	seen->to_events = open_memstream(&seen->events, &seen->events_size);
	seen->to_findings =
		open_memstream(&seen->findings, &seen->findings_size);
	for (size_t at = 0; at < size; at += chunk) {
		size_t n = size - at < chunk ? size - at : chunk;
		/* Its own allocation: a sanitizer sees its end. */
		uint8_t *copy = malloc(n);
		assert_non_null(copy);
		memcpy(copy, bytes + at, n);
		assert_true(tickmap_jitdump_feed(dump, copy, n));
		free(copy);
	}
	tickmap_jitdump_end(dump);
	tickmap_jitdump_free(dump);
	fclose(seen->to_events);
	fclose(seen->to_findings);
}

static void free_seen(struct seen *seen)
{
	free(seen->events);
	free(seen->findings);
}

static uint8_t *read_file(const char *name, const char *ending, size_t *size)
{
	char path[4096];
	uint8_t *bytes;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s%s", folder, name, ending);
	file = fopen(path, "rb");
	if (!file)
		fail_msg("%s cannot be opened", path);
	fseek(file, 0, SEEK_END);
	*size = (size_t)ftell(file);
	rewind(file);
	bytes = malloc(*size + 1);
	assert_non_null(bytes);
	assert_int_equal(fread(bytes, 1, *size, file), *size);
	bytes[*size] = 0;
	fclose(file);
	return bytes;
}

static void check_dump(const char *name)
{
	static const size_t chunks[] = { 1, 3, 16, 57, 100, SIZE_MAX / 2 };
	size_t size, expected_size;
	uint8_t *bytes = read_file(name, ".dump", &size);
	char *expected = (char *)read_file(name, ".expected", &expected_size);

	for (size_t i = 0; i < sizeof(chunks) / sizeof(chunks[0]); i++) {
		struct seen seen = { .with_code = true };
		char *all;
		read_dump(bytes, size, chunks[i], &seen);
		assert_true(asprintf(&all, "%s%s", seen.events,
				     seen.findings) >= 0);
		if (strcmp(all, expected) != 0)
			fail_msg("%s, chunks of %zu:\n%s--- expected:\n%s",
				 name, chunks[i], all, expected);
		free(all);
		free_seen(&seen);
	}
	free(bytes);
	free(expected);
}

static void every_dump_gives_what_was_written(void **unused)
{
	DIR *dir = opendir(folder);
	unsigned count = 0;

	(void)unused;
	assert_non_null(dir);
	for (struct dirent *e; (e = readdir(dir));) {
		char *dot = strstr(e->d_name, ".dump");
		if (!dot)
			continue;
		*dot = 0;
		check_dump(e->d_name);
		count++;
	}
	closedir(dir);
	print_message("%u dumps\n", count);
	assert_true(count >= 15);
}

/* Cut anywhere, a dump gives what stands before the cut, and of a LOAD that
 * is cut within its code all but the code. */
static void check_cuts(const char *name)
{
	size_t size;
	uint8_t *bytes = read_file(name, ".dump", &size);
	struct seen whole = { .with_code = false };
	size_t longest = 0;

	read_dump(bytes, size, size, &whole);
	for (size_t cut = 0; cut < size; cut++) {
		struct seen seen = { .with_code = false };
		read_dump(bytes, cut, 64, &seen);
		assert_true(seen.events_size <= whole.events_size);
		assert_memory_equal(seen.events, whole.events,
				    seen.events_size);
		assert_true(seen.events_size >= longest);
		longest = seen.events_size;
		free_seen(&seen);
	}
	assert_true(longest > 0);
	free_seen(&whole);
	free(bytes);
}

static void a_dump_cut_at_any_byte_gives_what_stands_before(void **unused)
{
	(void)unused;
	check_cuts("all_kinds");
	check_cuts("all_kinds_swapped");
	check_cuts("mono_header");
	check_cuts("sign_extended");
}

static unsigned count_loads(const char *events)
{
	unsigned count = 0;

	for (; (events = strstr(events, "LOAD ")); events++)
		count++;
	return count;
}

/* Whatever byte is damaged, at most the function it lies in and the one whose
 * place it takes are lost. */
static void one_damaged_byte_costs_two_functions_at_most(void **unused)
{
	size_t size;
	uint8_t *bytes;
	struct seen whole = { .with_code = false };
	unsigned loads, worst = 0;

	(void)unused;
	bytes = read_file("fork", ".dump", &size);
	read_dump(bytes, size, size, &whole);
	loads = count_loads(whole.events);
	for (size_t i = 40; i < size; i++) {
		static const uint8_t changes[] = { 0x01, 0x10, 0x80, 0xff };
		for (size_t c = 0; c < sizeof(changes); c++) {
			struct seen seen = { .with_code = false };
			unsigned left;
			bytes[i] ^= changes[c];
			read_dump(bytes, size, size, &seen);
			bytes[i] ^= changes[c];
			left = count_loads(seen.events);
			if (left < loads && loads - left > worst)
				worst = loads - left;
			free_seen(&seen);
		}
	}
	print_message("%u functions, at most %u lost\n", loads, worst);
	assert_true(worst <= 2);
	free_seen(&whole);
	free(bytes);
}

static void what_is_no_jitdump_is_refused(void **unused)
{
	struct tickmap_code_handler handler = { .context = NULL };
	struct tickmap_jitdump *dump = tickmap_jitdump_new(&handler);

	(void)unused;
	assert_null(tickmap_jitdump_header(dump));
	assert_true(tickmap_jitdump_feed(dump, "\177E", 2));
	assert_false(tickmap_jitdump_feed(dump, "LF", 2));
	assert_false(tickmap_jitdump_feed(dump, "more", 4));
	tickmap_jitdump_end(dump);
	assert_null(tickmap_jitdump_header(dump));
	tickmap_jitdump_free(dump);
	tickmap_jitdump_free(NULL);
}

static void the_header_says_who_wrote_the_dump(void **unused)
{
	struct tickmap_code_handler handler = { .context = NULL };
	struct tickmap_jitdump *dump = tickmap_jitdump_new(&handler);
	const struct tickmap_jitdump_header *header;
	size_t size;
	uint8_t *bytes = read_file("all_kinds_swapped", ".dump", &size);

	(void)unused;
	assert_true(tickmap_jitdump_feed(dump, bytes, 39));
	assert_null(tickmap_jitdump_header(dump));
	assert_true(tickmap_jitdump_feed(dump, bytes + 39, 1));
	header = tickmap_jitdump_header(dump);
	assert_non_null(header);
	assert_true(header->swap == (__BYTE_ORDER == __LITTLE_ENDIAN));
	assert_int_equal(header->version, 1);
	assert_int_equal(header->elf_machine, 22);
	assert_int_equal(header->pid, 4242);
	assert_int_equal(header->timestamp, 10000000000);
	assert_int_equal(header->flags, 0);
	tickmap_jitdump_free(dump);
	free(bytes);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_dump_gives_what_was_written),
		cmocka_unit_test(
			a_dump_cut_at_any_byte_gives_what_stands_before),
		cmocka_unit_test(one_damaged_byte_costs_two_functions_at_most),
		cmocka_unit_test(what_is_no_jitdump_is_refused),
		cmocka_unit_test(the_header_says_who_wrote_the_dump),
	};
	folder = argc > 1 ? argv[1] : CODEMAP_DUMPS;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

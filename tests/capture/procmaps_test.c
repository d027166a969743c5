/* SPDX-License-Identifier: MIT */
#include "capture/procmaps.h"

#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
/* cmocka wants the above first */
#include <cmocka.h>

struct seen {
	struct tickmap_mmap_record last;
	char path[4096];
	unsigned count, stop_after;
	bool self, vdso, libc;
};

static int see(void *context, const struct tickmap_mmap_record *mmap)
{
	struct seen *seen = context;

	seen->count++;
	seen->last = *mmap;
	snprintf(seen->path, sizeof(seen->path), "%s", mmap->path);
	assert_true(mmap->prot & PROT_EXEC);
	uint64_t here = (uintptr_t)see;
	if (here - mmap->avma < mmap->size) {
		seen->self = true;
		assert_non_null(strstr(mmap->path, "procmaps"));
		assert_true(mmap->ino != 0);
		assert_int_equal(mmap->flags, MAP_PRIVATE);
	}
	seen->vdso |= !strcmp(mmap->path, "[vdso]");
	seen->libc |= strstr(mmap->path, "libc") != NULL;
	return seen->count == seen->stop_after ? 5 : 0;
}

static void our_own_code_is_found_where_it_runs(void **state)
{
	struct seen seen = { 0 };
	struct tickmap_error err = { 0 };
	(void)state;

	assert_int_equal(tickmap_procmaps_read(getpid(), see, &seen, &err), 0);
	assert_true(seen.self);
	assert_true(seen.vdso);
	assert_true(seen.libc);
	assert_int_equal(seen.last.pid, getpid());
}

/* Counts with the C library's scanner what the parser should have shown. */
static void as_many_mappings_as_a_second_reader_sees(void **state)
{
	struct seen seen = { 0 };
	unsigned count = 0;
	uint64_t first, last;
	char line[4096], permissions[5];
	FILE *maps = fopen("/proc/self/maps", "re");
	(void)state;

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		count += sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", &first,
				&last, permissions) == 3 &&
			 permissions[2] == 'x';
	fclose(maps);
	assert_int_equal(tickmap_procmaps_read(getpid(), see, &seen, NULL), 0);
	assert_int_equal(seen.count, count);
}

static void the_handlers_word_ends_the_walk(void **state)
{
	struct seen seen = { .stop_after = 2 };
	(void)state;

	assert_int_equal(tickmap_procmaps_read(getpid(), see, &seen, NULL), 5);
	assert_int_equal(seen.count, 2);
}

static void a_process_that_is_gone_is_an_error_of_the_system(void **state)
{
	struct seen seen = { 0 };
	struct tickmap_error err = { 0 };
	(void)state;

	assert_int_equal(tickmap_procmaps_read(0x3fffffff, see, &seen, &err),
			 TICKMAP_E_OS);
	assert_int_equal(err.os_errno, ENOENT);
	assert_string_equal(err.source, "/proc/1073741823/maps");
}

static int parse(const char *text, struct seen *seen)
{
	memset(seen, 0, sizeof(*seen));
	/* A copy without a NUL, so that a sanitizer sees a step too far. */
	size_t size = strlen(text);
	char *copy = malloc(size ? size : 1);
	if (!copy)
		abort();
	memcpy(copy, text, size);
	int status = tickmap_procmaps_parse(copy, size, 7, see, seen);
	free(copy);
	return status;
}

static void every_field_of_a_line_is_taken(void **state)
{
	struct seen seen;
	(void)state;

	parse("7f0000001000-7f0000003000 r-xs 00002000 fd:0a 123456789   "
	      "         /a b/c\\012d (deleted)\n",
	      &seen);
	assert_int_equal(seen.count, 1);
	assert_int_equal(seen.last.avma, 0x7f0000001000);
	assert_int_equal(seen.last.size, 0x2000);
	assert_int_equal(seen.last.file_offset, 0x2000);
	assert_int_equal(seen.last.maj, 0xfd);
	assert_int_equal(seen.last.min, 10);
	assert_int_equal(seen.last.ino, 123456789);
	assert_int_equal(seen.last.prot, PROT_READ | PROT_EXEC);
	assert_int_equal(seen.last.flags, MAP_SHARED);
	assert_int_equal(seen.last.pid, 7);
	assert_string_equal(seen.path, "/a b/c\nd (deleted)");
}

static void a_mapping_without_a_name_is_anonymous_memory(void **state)
{
	struct seen seen;
	(void)state;

	parse("1000-2000 rwxp 00000000 00:00 0 ", &seen);
	assert_int_equal(seen.count, 1);
	assert_string_equal(seen.path, "//anon");
	assert_int_equal(seen.last.prot, PROT_READ | PROT_WRITE | PROT_EXEC);
}

static void lines_that_make_no_sense_are_passed_over(void **state)
{
	struct seen seen;
	(void)state;

	parse("\n"
	      "nonsense\n"
	      "2000-1000 r-xp 0 0:0 0 /backwards\n"
	      "1000-1000 r-xp 0 0:0 0 /empty\n"
	      "1000-2000 r-x\n"
	      "11111111111111111-22222222222222222 r-xp 0 0:0 0 /too big\n"
	      "1000-2000 r--p 0 0:0 0 /not code\n"
	      "3000-4000 r-xp 0 0:0 0 /good\n"
	      "5000-6000 r-xp 0 0:0",
	      &seen);
	assert_int_equal(seen.count, 1);
	assert_string_equal(seen.path, "/good");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(our_own_code_is_found_where_it_runs),
		cmocka_unit_test(as_many_mappings_as_a_second_reader_sees),
		cmocka_unit_test(the_handlers_word_ends_the_walk),
		cmocka_unit_test(
			a_process_that_is_gone_is_an_error_of_the_system),
		cmocka_unit_test(every_field_of_a_line_is_taken),
		cmocka_unit_test(a_mapping_without_a_name_is_anonymous_memory),
		cmocka_unit_test(lines_that_make_no_sense_are_passed_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

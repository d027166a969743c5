/* SPDX-License-Identifier: MIT */
/* What is only done on request: remembering, batches, names, memory. */
#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define DUMP TICKMAP_EMIT_JITDUMP
#define MAP TICKMAP_EMIT_PERF_MAP
#define GDB TICKMAP_EMIT_GDB
#define REPUBLISH TICKMAP_EMIT_REPUBLISH

static struct tickmap_emit *inherited;

static int publish_at(uint64_t addr, uint64_t size, const char *name)
{
	static const uint8_t bytes[4096] = { 0x90 };
	struct tickmap_code code = small_code(name);

	code.addr = addr;
	code.code_size = size;
	code.bytes = bytes;
	return tickmap_emit_code(inherited, &code);
}

/* name@addr of each code in the dump, and that it is this process's. */
static int list_codes(const char *path, char *text, size_t size)
{
	struct strict_dump dump;
	size_t used = 0;
	const char *why = strict_read_dump(path, true, &dump);

	if (why)
		return check_failed(path, 0, why);
	text[0] = '\0';
	for (size_t i = 0; i < dump.code_count; i++) {
		const struct strict_code *code = &dump.codes[i];

		CHECK(code->pid == (uint32_t)getpid());
		CHECK(code->tid == (uint32_t)syscall(SYS_gettid));
		used += (size_t)snprintf(
			text + used, size - used, "%s@%llx#%d ", code->name,
			(unsigned long long)code->addr, (int)code->index);
	}
	strict_free_dump(&dump);
	return 0;
}

static int child_with_live_code(const char *dir)
{
	struct strict_map map;
	struct strict_dump dump;
	char text[512];

	CHECK(tickmap_emit_after_fork(inherited) == 0);
	CHECK(tickmap_emit_state(inherited) == 0);
	CHECK(!list_codes(dump_in(dir), text, sizeof(text)));
	/* dead: removed, overwritten in part; moved: where it is now */
	CHECK(!strcmp(text, "over@2080#5 moved@7000#4 whole@9000#6 "));
	CHECK(publish_at(0x3000, 16, "childs") == 0);
	CHECK(tickmap_emit_close(inherited) == 0);
	CHECK(!strict_read_dump(dump_in(dir), false, &dump));
	CHECK(dump.code_count == 4 && dump.codes[3].index == 7);
	/* with all that belongs to it, and its own bytes */
	CHECK(dump.codes[2].line_count == 3);
	CHECK(!strcmp(dump.codes[2].lines[0].file, "a.c"));
	CHECK(!strcmp(dump.codes[2].lines[1].file, "b.c"));
	CHECK(dump.codes[2].lines[2].line == 6);
	CHECK(dump.codes[2].unwinding && dump.codes[2].mapped_size == 96);
	CHECK(dump.codes[2].size == 100 && dump.codes[2].bytes[99] == 99);
	strict_free_dump(&dump);
	CHECK(!strict_read_map(map_in(dir), false, &map));
	CHECK(map.count == 4 && map.lines[2].addr == 0x9000);
	strict_free_map(&map);
	return 0;
}

static void publish_the_whole(void)
{
	struct tickmap_line lines[2] = { { 0, 5, 1, "a.c" },
					 { 50, 6, 2, "b.c" } };
	struct tickmap_code code = small_code("whole");
	struct tickmap_unwind unwind;
	uint8_t bytes[100];
	char name[] = "whole and more";

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)i;
	assert_int_equal(tickmap_unwind_frame_pointer(&unwind, 0, 0), 0);
	code.addr = 0x9000;
	code.code_size = sizeof(bytes);
	code.bytes = bytes;
	code.name = name;
	code.name_length = 5;
	code.lines = lines;
	code.line_count = 2;
	code.unwind = &unwind;
	code.mapped_size = tickmap_emit_mapped_size(&unwind);
	assert_int_equal(code.mapped_size, 80);
	code.mapped_size = 96;
	assert_int_equal(tickmap_emit_code(inherited, &code), 0);
	/* Nothing of it is kept: all of this is gone when the child runs. */
	memset(lines, 0xee, sizeof(lines));
	memset(&unwind, 0xee, sizeof(unwind));
	memset(bytes, 0xee, sizeof(bytes));
	memset(name, 0xee, sizeof(name));
}

static void a_child_publishes_the_live_code_again(void **state)
{
	assert_int_equal(open_emit(*state, DUMP | MAP, REPUBLISH, &inherited),
			 0);
	assert_int_equal(publish_at(0x1000, 64, "removed"), 0);
	assert_int_equal(publish_at(0x2000, 256, "overlapped"), 0);
	assert_int_equal(publish_at(0x2100, 256, "overlapped_too"), 0);
	assert_int_equal(publish_at(0x5000, 256, "moved"), 0);
	assert_int_equal(publish_at(0x2080, 256, "over"), 0);
	publish_the_whole();
	assert_int_equal(tickmap_emit_remove(inherited, 0x1000), 0);
	assert_int_equal(tickmap_emit_remove(inherited, 0x1000), 0);
	assert_int_equal(tickmap_emit_remove(inherited, 0x2081), 0);
	assert_int_equal(tickmap_emit_move(inherited, 0x5000, 0x7000, 256, 4),
			 0);
	assert_int_equal(tickmap_emit_before_fork(inherited), 0);
	assert_child(child_with_live_code, *state, "");
	/* In the parent it gives the lock back. */
	assert_int_equal(tickmap_emit_after_fork(inherited), 0);
	assert_int_equal(publish_at(0x1000, 64, "parents"), 0);
	assert_int_equal(tickmap_emit_close(inherited), 0);
}

static atomic_bool stop;

static void *publish_on(void *arg)
{
	for (uint64_t i = 0; !atomic_load(&stop); i++) {
		if (publish_at(0x10000 + i % 50 * 16, 24, "churn"))
			return arg;
		tickmap_emit_remove(inherited, 0x10000 + i % 50 * 16);
	}
	return NULL;
}

static int child_of_busy_threads(const char *dir)
{
	struct strict_dump dump;
	uint32_t state;

	CHECK(tickmap_emit_after_fork(inherited) == 0);
	state = tickmap_emit_state(inherited);
	CHECK(!(state & ~TICKMAP_EMIT_STATE_LIVE_UNKNOWN));
	CHECK(publish_at(0x1000, 16, "child") == 0);
	CHECK(tickmap_emit_close(inherited) == 0);
	CHECK(!strict_read_dump(dump_in(dir), false, &dump));
	CHECK(dump.code_count >= 1);
	/* "stays" is lost only where the table was being changed. */
	if (!state)
		CHECK(!strcmp(dump.codes[0].name, "stays"));
	strict_free_dump(&dump);
	remove(dump_in(dir));
	return state ? SKIPPED : 0;
}

static void forks_amid_changes_know_what_they_know(void **state)
{
	pthread_t threads[2];
	size_t unknown = 0;

	assert_int_equal(open_emit(*state, DUMP | GDB, REPUBLISH, &inherited),
			 0);
	assert_int_equal(publish_at(0x2000, 16, "stays"), 0);
	atomic_store(&stop, false);
	for (size_t i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, publish_on, inherited);
	for (size_t i = 0; i < 40; i++) {
		bool announced = i % 2;
		int outcome;

		if (announced)
			assert_int_equal(tickmap_emit_before_fork(inherited),
					 0);
		outcome = run_in_child(child_of_busy_threads, *state);
		assert_int_equal(tickmap_emit_after_fork(inherited), 0);
		if (announced)
			assert_int_equal(outcome, 0);
		else
			assert_true(outcome == 0 || outcome == SKIPPED);
		unknown += outcome == SKIPPED;
	}
	atomic_store(&stop, true);
	for (size_t i = 0; i < 2; i++) {
		void *failed;

		pthread_join(threads[i], &failed);
		assert_null(failed);
	}
	print_message("%zu of 20 unannounced forks fell into a change\n",
		      unknown);
	assert_int_equal(tickmap_emit_close(inherited), 0);
}

static int child_without_the_batch(const char *dir)
{
	char text[128];

	CHECK(tickmap_emit_after_fork(inherited) == 0);
	CHECK(publish_at(0x1000, 16, "childs") == 0);
	CHECK(tickmap_emit_flush(inherited) == 0);
	CHECK(!list_codes(dump_in(dir), text, sizeof(text)));
	CHECK(!strcmp(text, "childs@1000#3 "));
	CHECK(tickmap_emit_close(inherited) == 0);
	return 0;
}

static void a_batch_is_written_when_full_on_demand_and_at_close(void **state)
{
	struct tickmap_emit_options options = TICKMAP_EMIT_OPTIONS_INIT;
	struct stat st;
	char text[512];

	options.sinks = DUMP | MAP;
	options.dir = *state;
	options.batch_size = 1000;
	assert_int_equal(tickmap_emit_open(&options, &inherited), 0);
	assert_int_equal(publish_at(0x1000, 16, "first"), 0);
	assert_int_equal(publish_at(0x2000, 16, "second"), 0);
	assert_int_equal(stat(dump_in(*state), &st), 0);
	assert_int_equal(st.st_size, 40);
	/* A child throws away what is the parent's. */
	assert_child(child_without_the_batch, *state, "");
	assert_int_equal(tickmap_emit_flush(inherited), 0);
	assert_int_equal(list_codes(dump_in(*state), text, sizeof(text)), 0);
	assert_string_equal(text, "first@1000#1 second@2000#2 ");
	assert_true(holds_text(map_in(*state), "1000 10 first\n"
					       "2000 10 second\n"));
	/* Larger than a batch, behind one that waits: order is kept. */
	assert_int_equal(publish_at(0x3000, 16, "third"), 0);
	assert_int_equal(publish_at(0x4000, 2000, "large"), 0);
	assert_int_equal(publish_at(0x5000, 16, "last"), 0);
	assert_int_equal(list_codes(dump_in(*state), text, sizeof(text)), 0);
	assert_string_equal(text, "first@1000#1 second@2000#2 third@3000#3 "
				  "large@4000#4 ");
	assert_int_equal(tickmap_emit_close(inherited), 0);
	assert_int_equal(list_codes(dump_in(*state), text, sizeof(text)), 0);
	assert_string_equal(text, "first@1000#1 second@2000#2 third@3000#3 "
				  "large@4000#4 last@5000#5 ");
}

struct ledger {
	size_t calls;
	size_t fail_at; /* 0: never */
	size_t bytes;
};

static void *allocate(void *context, size_t size)
{
	struct ledger *ledger = context;

	if (++ledger->calls == ledger->fail_at)
		return NULL;
	ledger->bytes += size;
	return malloc(size);
}

static void release(void *context, void *memory, size_t size)
{
	struct ledger *ledger = context;

	ledger->bytes -= size;
	free(memory);
}

/* Every allocation fails once; what is not out of memory is whole. */
static void memory_is_the_callers_and_may_run_out(void **state)
{
	struct tickmap_emit_options options = TICKMAP_EMIT_OPTIONS_INIT;
	struct ledger ledger = { 0 };
	size_t refused = 0;

	options.sinks = DUMP | GDB;
	options.dir = *state;
	options.flags = REPUBLISH;
	options.allocate = allocate;
	options.release = release;
	options.allocator_context = &ledger;
	do {
		struct strict_dump dump;
		size_t published = 0;

		ledger.calls = 0;
		ledger.fail_at++;
		if (tickmap_emit_open(&options, &inherited)) {
			assert_int_equal(ledger.fail_at, 1);
			continue;
		}
		for (uint64_t i = 1; i <= 300; i++) {
			int status = publish_at(i * 4096, 100, "f");

			assert_true(!status || status == TICKMAP_EMIT_E_NOMEM);
			published += !status;
			refused += !!status;
		}
		if (tickmap_emit_move(inherited, 4096, 64, 100, 1))
			refused++;
		assert_int_equal(tickmap_emit_close(inherited), 0);
		assert_int_equal(ledger.bytes, 0);
		read_dump(dump_in(*state), &dump);
		assert_int_equal(dump.code_count, published);
		strict_free_dump(&dump);
		remove(dump_in(*state));
		if (ledger.fail_at > 10)
			ledger.fail_at += 13;
	} while (ledger.calls >= ledger.fail_at);
	assert_true(refused > 40);
}

/* Its name is in the ELF file twice. */
static void what_is_too_large_for_gdb_is_no_lack_of_memory(void **state)
{
	const size_t length = (size_t)10 << 20;
	static const struct tickmap_line line = { 0, 1, 0, "f.js" };
	struct tickmap_code code = small_code("f");
	char *name = malloc(length);

	assert_non_null(name);
	memset(name, 'n', length);
	assert_int_equal(open_emit(*state, DUMP | GDB, 0, &inherited), 0);
	assert_int_equal(tickmap_emit_code(inherited, &code), 0);
	code.name = name;
	code.name_length = length;
	code.lines = &line;
	code.line_count = 1;
	code.addr += 4096;
	assert_int_equal(tickmap_emit_code(inherited, &code),
			 TICKMAP_EMIT_E_TOO_LARGE);
	assert_int_equal(publish_at(8192, 1, "g"), 0);
	assert_int_equal(tickmap_emit_close(inherited), 0);
	free(name);
}

static void without_requests_only_open_allocates(void **state)
{
	struct tickmap_emit_options options = TICKMAP_EMIT_OPTIONS_INIT;
	struct ledger ledger = { 0 };

	options.sinks = DUMP | MAP;
	options.dir = *state;
	options.allocate = allocate;
	options.release = release;
	options.allocator_context = &ledger;
	assert_int_equal(tickmap_emit_open(&options, &inherited), 0);
	assert_int_equal(ledger.calls, 1);
	assert_int_equal(publish_at(0x1000, 100, "f"), 0);
	assert_int_equal(tickmap_emit_move(inherited, 0x1000, 64, 100, 1), 0);
	assert_int_equal(tickmap_emit_close(inherited), 0);
	assert_int_equal(ledger.calls, 1);
	assert_int_equal(ledger.bytes, 0);
}

static int child_with_a_fixed_name(const char *dir)
{
	CHECK(tickmap_emit_after_fork(inherited) == 0);
	CHECK(!strcmp(tickmap_emit_path(inherited, DUMP),
		      in_dir(in_dir(dir, "tickmap-1"), "fixed.dump")));
	CHECK(tickmap_emit_close(inherited) == 0);
	return 0;
}

static void the_file_has_the_name_and_mode_that_were_asked_for(void **state)
{
	struct tickmap_emit_options options = TICKMAP_EMIT_OPTIONS_INIT;
	char expected[64];
	struct stat st;

	options.dir = *state;
	options.mode = 0644;
	options.file_name = "x-%p-%%.%p";
	snprintf(expected, sizeof(expected), "x-%d-%%%%.%d", getpid(),
		 getpid());
	assert_int_equal(tickmap_emit_open(&options, &inherited), 0);
	assert_string_equal(tickmap_emit_path(inherited, DUMP),
			    in_dir(*state, expected));
	assert_int_equal(stat(in_dir(*state, expected), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0644);
	assert_int_equal(tickmap_emit_close(inherited), 0);

	/* A name without a pid may be anybody's: never replaced. */
	options.file_name = "fixed.dump";
	assert_int_equal(tickmap_emit_open(&options, &inherited), 0);
	assert_string_equal(tickmap_emit_path(inherited, DUMP),
			    in_dir(*state, "fixed.dump"));
	assert_child(child_with_a_fixed_name, *state, "");
	assert_int_equal(tickmap_emit_close(inherited), 0);
}

static void the_folder_may_come_from_the_environment(void **state)
{
	struct tickmap_emit_options options = TICKMAP_EMIT_OPTIONS_INIT;

	options.flags = TICKMAP_EMIT_DIR_FROM_ENV;
	options.sinks = DUMP | MAP;
	setenv("JITDUMPDIR", *state, 1);
	assert_int_equal(tickmap_emit_open(&options, &inherited), 0);
	unsetenv("JITDUMPDIR");
	assert_string_equal(tickmap_emit_path(inherited, DUMP),
			    dump_in(*state));
	assert_string_equal(tickmap_emit_path(inherited, MAP), map_in("/tmp"));
	assert_int_equal(tickmap_emit_close(inherited), 0);
	remove(map_in("/tmp"));
	assert_int_equal(tickmap_emit_open(&options, &inherited), 0);
	assert_string_equal(tickmap_emit_path(inherited, DUMP),
			    dump_in("/tmp"));
	assert_int_equal(tickmap_emit_close(inherited), 0);
	remove(map_in("/tmp"));
	remove(dump_in("/tmp"));
}

static void repeated_file_names_are_one_byte_on_request(void **state)
{
	static const struct tickmap_line lines[] = { { 0, 1, 0, NULL },
						     { 1, 2, 0, NULL },
						     { 2, 3, 0, "other" },
						     { 3, 4, 0, "other" } };
	struct tickmap_code code = small_code("f");
	struct strict_dump dump;
	static const char *const expected[] = { "file", "\xff", "other", "\xff",
						"\xff" };

	code.file = "file";
	code.lines = lines;
	code.line_count = 4;
	assert_int_equal(
		open_emit(*state, DUMP, TICKMAP_EMIT_SHORT_NAMES, &inherited),
		0);
	assert_int_equal(tickmap_emit_code(inherited, &code), 0);
	assert_int_equal(tickmap_emit_close(inherited), 0);
	read_dump(dump_in(*state), &dump);
	assert_int_equal(dump.codes[0].line_count, 5);
	for (size_t i = 0; i < 5; i++)
		assert_string_equal(dump.codes[0].lines[i].file, expected[i]);
	strict_free_dump(&dump);
}

static void unique_tails_leave_the_code_as_it_is(void **state)
{
	static const uint8_t bytes[13] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 };
	struct tickmap_code code = small_code("f");
	struct tickmap_line line = { 0, 1, 0, NULL };
	struct tickmap_unwind unwind;
	struct strict_dump dump;
	uint32_t range;

	assert_int_equal(tickmap_unwind_frame_pointer(&unwind, 0, 0), 0);
	code.bytes = bytes;
	code.code_size = sizeof(bytes);
	code.unwind = &unwind;
	code.lines = &line;
	code.line_count = 1;
	assert_int_equal(open_emit(*state, DUMP | MAP, TICKMAP_EMIT_UNIQUE_TAIL,
				   &inherited),
			 0);
	assert_int_equal(tickmap_emit_code(inherited, &code), 0);
	code.bytes = NULL;
	assert_int_equal(tickmap_emit_code(inherited, &code), 0);
	assert_int_equal(tickmap_emit_close(inherited), 0);
	read_dump(dump_in(*state), &dump);
	for (uint64_t i = 0; i < 2; i++) {
		const struct strict_code *read = &dump.codes[i];
		uint64_t tail;

		assert_int_equal(read->size, 13 + TICKMAP_EMIT_TAIL_SIZE);
		assert_int_equal(read->bytes[2], i ? 0 : 3);
		memcpy(&tail, read->bytes + 13, sizeof(tail));
		assert_int_equal(tail, i + 1);
		memcpy(&range, read->unwinding + unwind.pc_begin + 4, 4);
		assert_int_equal(range, read->size);
		assert_int_equal(read->lines[1].addr, read->addr + read->size);
	}
	strict_free_dump(&dump);
	assert_true(holds_text(map_in(*state), "1000 d f\n1000 d f\n"));
}

/* A dump and a map as an earlier program of this process, or an earlier
 * handle, would have left them. */
static void what_this_process_has_written_is_kept(void **state)
{
	char text[256];

	assert_int_equal(open_emit(*state, DUMP | MAP, 0, &inherited), 0);
	assert_int_equal(publish_at(0x1000, 16, "before"), 0);
	assert_int_equal(tickmap_emit_close(inherited), 0);
	assert_int_equal(open_emit(*state, DUMP | MAP, 0, &inherited), 0);
	assert_int_equal(tickmap_emit_state(inherited),
			 TICKMAP_EMIT_STATE_DUMP_BESIDE |
				 TICKMAP_EMIT_STATE_MAP_SHARED);
	assert_int_equal(publish_at(0x2000, 16, "behind"), 0);
	assert_int_equal(tickmap_emit_close(inherited), 0);
	assert_int_equal(list_codes(dump_in(*state), text, sizeof(text)), 0);
	assert_string_equal(text, "before@1000#1 ");
	assert_int_equal(list_codes(dump_in(in_dir(*state, "tickmap-1")), text,
				    sizeof(text)),
			 0);
	assert_string_equal(text, "behind@2000#1 ");
	assert_true(holds_text(map_in(*state), "1000 10 before\n"
					       "2000 10 behind\n"));
}

/* The program itself, as it is executed in a process that has published. */
static int second_life(const char *dir)
{
	CHECK(open_emit(dir, DUMP, 0, &inherited) == 0);
	CHECK(publish_at(0x2000, 16, "after_exec") == 0);
	CHECK(tickmap_emit_close(inherited) == 0);
	return 0;
}

static int first_life(const char *dir)
{
	CHECK(open_emit(dir, DUMP, 0, &inherited) == 0);
	CHECK(publish_at(0x1000, 16, "before_exec") == 0);
	execl("/proc/self/exe", "options_test", "second-life", dir, NULL);
	return 1;
}

static void an_exec_loses_nothing(void **state)
{
	struct strict_dump dump;
	char name[32];
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(first_life(*state));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	snprintf(name, sizeof(name), "jit-%d.dump", pid);
	assert_null(strict_read_dump(in_dir(*state, name), true, &dump));
	assert_string_equal(dump.codes[0].name, "before_exec");
	strict_free_dump(&dump);
	read_dump(in_dir(in_dir(*state, "tickmap-1"), name), &dump);
	assert_string_equal(dump.codes[0].name, "after_exec");
	strict_free_dump(&dump);
}

#define SCRATCH_TEST(name)                                                     \
	cmocka_unit_test_setup_teardown(name, make_scratch, remove_scratch)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		SCRATCH_TEST(a_child_publishes_the_live_code_again),
		SCRATCH_TEST(forks_amid_changes_know_what_they_know),
		SCRATCH_TEST(
			a_batch_is_written_when_full_on_demand_and_at_close),
		SCRATCH_TEST(memory_is_the_callers_and_may_run_out),
		SCRATCH_TEST(what_is_too_large_for_gdb_is_no_lack_of_memory),
		SCRATCH_TEST(without_requests_only_open_allocates),
		SCRATCH_TEST(
			the_file_has_the_name_and_mode_that_were_asked_for),
		SCRATCH_TEST(the_folder_may_come_from_the_environment),
		SCRATCH_TEST(repeated_file_names_are_one_byte_on_request),
		SCRATCH_TEST(unique_tails_leave_the_code_as_it_is),
		SCRATCH_TEST(what_this_process_has_written_is_kept),
		SCRATCH_TEST(an_exec_loses_nothing),
	};

	if (argc == 3)
		return second_life(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

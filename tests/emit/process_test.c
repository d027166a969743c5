/* SPDX-License-Identifier: MIT */
/* Threads, forks and sudden death. */
#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DUMP TICKMAP_EMIT_JITDUMP
#define MAP TICKMAP_EMIT_PERF_MAP
#define THREADS 8
#define PER_THREAD 1500

struct publisher {
	pthread_t thread;
	struct tickmap_emit *emit;
	uint32_t number;
	uint32_t tid;
	size_t failures;
};

static uint64_t addr_of(uint32_t thread, uint32_t i)
{
	return ((uint64_t)thread << 32) + (uint64_t)i * 16 + 0x10000;
}

/* Sizes, names and parts differ, so that a torn record cannot look whole. */
static void *publish_many(void *arg)
{
	struct publisher *publisher = arg;
	struct tickmap_line line = { 0, 1, 0, NULL };
	struct tickmap_unwind unwind;
	uint8_t bytes[300];
	char name[64];

	publisher->tid = (uint32_t)syscall(SYS_gettid);
	memset(bytes, (int)publisher->number, sizeof(bytes));
	tickmap_unwind_frame_pointer(&unwind, 0, 0);
	for (uint32_t i = 0; i < PER_THREAD; i++) {
		struct tickmap_code code = small_code(name);

		snprintf(name, sizeof(name), "thread_%u_function_%0*u",
			 (unsigned int)publisher->number, (int)(i % 30),
			 (unsigned int)i);
		code.addr = addr_of(publisher->number, i);
		code.bytes = bytes;
		code.code_size = 1 + i % (sizeof(bytes) - 1);
		code.unwind = i % 3 ? &unwind : NULL;
		code.lines = &line;
		code.line_count = i % 10 ? 0 : 1;
		if (tickmap_emit_code(publisher->emit, &code))
			publisher->failures++;
	}
	return NULL;
}

static const struct publisher *publisher_of(const struct publisher *publishers,
					    uint64_t addr)
{
	assert_true(addr >> 32 < THREADS);
	return &publishers[addr >> 32];
}

static void check_threads_dump(const char *path,
			       const struct publisher *publishers)
{
	uint32_t next[THREADS] = { 0 };
	struct strict_dump dump;
	char end[32];

	read_dump(path, &dump);
	assert_int_equal(dump.code_count, THREADS * PER_THREAD);
	for (size_t i = 0; i < dump.code_count; i++) {
		const struct strict_code *code = &dump.codes[i];
		const struct publisher *publisher =
			publisher_of(publishers, code->addr);
		uint32_t n = next[publisher->number]++;

		/* each thread's functions are there, once, in its order */
		assert_true(code->addr == addr_of(publisher->number, n));
		assert_int_equal(code->tid, publisher->tid);
		assert_int_equal(code->size, 1 + n % 299);
		assert_int_equal(!!code->unwinding, n % 3 != 0);
		assert_int_equal(!!code->lines, n % 10 == 0);
		snprintf(end, sizeof(end), "%u", n);
		assert_non_null(strstr(code->name, end));
		for (size_t at = 0; at < code->size; at++)
			assert_int_equal(code->bytes[at], publisher->number);
	}
	strict_free_dump(&dump);
}

static void records_of_eight_threads_never_tear(void **state)
{
	struct publisher publishers[THREADS] = { 0 };
	struct tickmap_emit *emit;
	struct strict_map map;
	size_t count[THREADS] = { 0 };

	assert_int_equal(open_emit(*state, DUMP | MAP, 0, &emit), 0);
	for (uint32_t i = 0; i < THREADS; i++) {
		publishers[i].emit = emit;
		publishers[i].number = i;
		assert_int_equal(pthread_create(&publishers[i].thread, NULL,
						publish_many, &publishers[i]),
				 0);
	}
	for (size_t i = 0; i < THREADS; i++) {
		pthread_join(publishers[i].thread, NULL);
		assert_int_equal(publishers[i].failures, 0);
	}
	assert_int_equal(tickmap_emit_close(emit), 0);

	check_threads_dump(dump_in(*state), publishers);
	read_map(map_in(*state), &map);
	assert_int_equal(map.count, THREADS * PER_THREAD);
	for (size_t i = 0; i < map.count; i++) {
		uint32_t thread =
			publisher_of(publishers, map.lines[i].addr)->number;

		assert_true(map.lines[i].addr ==
			    addr_of(thread, (uint32_t)count[thread]));
		count[thread]++;
	}
	strict_free_map(&map);
}

enum death { BY_SIGKILL, BY_EXIT, BY_ABORT };

/* How many publishes of the child have returned. */
static _Atomic uint32_t *returned;

static void publish_until_death(const char *dir, enum death death,
				uint32_t limit)
{
	struct tickmap_emit *emit;
	struct tickmap_unwind unwind;
	static uint8_t bytes[3000];
	char name[32];

	tickmap_unwind_frame_pointer(&unwind, 0, 0);
	if (open_emit(dir, DUMP | MAP, 0, &emit))
		_exit(1);
	for (uint32_t i = 0; i < limit || death == BY_SIGKILL; i++) {
		struct tickmap_code code = small_code(name);

		snprintf(name, sizeof(name), "function_%u", (unsigned int)i);
		code.bytes = bytes;
		code.code_size = 1 + i % (sizeof(bytes) - 1);
		code.unwind = &unwind;
		if (tickmap_emit_code(emit, &code))
			_exit(1);
		atomic_store(returned, i + 1);
	}
	if (death == BY_ABORT)
		abort();
	_exit(0);
}

static void check_survivors(const char *dir, pid_t pid, uint32_t count)
{
	struct strict_dump dump;
	struct strict_map map;
	char name[32];
	const char *why;

	snprintf(name, sizeof(name), "jit-%d.dump", pid);
	why = strict_read_dump(in_dir(dir, name), true, &dump);
	if (why)
		fail_msg("%s: %s", name, why);
	assert_in_range(dump.code_count, count, count + 1);
	for (size_t i = 0; i < dump.code_count; i++) {
		snprintf(name, sizeof(name), "function_%zu", i);
		assert_string_equal(dump.codes[i].name, name);
	}
	strict_free_dump(&dump);
	unlink(in_dir(dir, name));

	snprintf(name, sizeof(name), "perf-%d.map", pid);
	why = strict_read_map(in_dir(dir, name), true, &map);
	if (why)
		fail_msg("%s: %s", name, why);
	assert_in_range(map.count, count, count + 1);
	strict_free_map(&map);
}

static void die_and_check(const char *dir, enum death death, uint32_t random)
{
	struct timespec nap = { 0, random % 4000 * 1000 };
	pid_t pid;
	int status;

	atomic_store(returned, 0);
	pid = fork();
	if (!pid) {
		/* No core file of an abort that is meant. */
		signal(SIGABRT, SIG_DFL);
		publish_until_death(dir, death, random % 300);
	}
	assert_true(pid > 0);
	if (death == BY_SIGKILL) {
		while (!atomic_load(returned) && !waitpid(pid, NULL, WNOHANG))
			sched_yield();
		nanosleep(&nap, NULL);
		assert_int_equal(kill(pid, SIGKILL), 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (death == BY_EXIT)
		assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
	else
		assert_true(WIFSIGNALED(status));
	check_survivors(dir, pid, atomic_load(returned));
}

static void whatever_was_published_survives_sudden_death(void **state)
{
	uint32_t seed = (uint32_t)time(NULL);
	uint32_t most = 0;

	print_message("seed %u\n", (unsigned int)seed);
	returned = mmap(NULL, sizeof(*returned), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(returned, MAP_FAILED);
	for (int i = 0; i < 50; i++) {
		seed = seed * 1664525 + 1013904223;
		die_and_check(*state, BY_SIGKILL, seed >> 8);
		if (atomic_load(returned) > most)
			most = atomic_load(returned);
	}
	assert_true(most > 10);
	die_and_check(*state, BY_EXIT, 250);
	die_and_check(*state, BY_ABORT, 250);
	munmap((void *)(uintptr_t)returned, sizeof(*returned));
}

static struct tickmap_emit *inherited;
static char parent_dump[512];
static char parent_map[512];

static bool is_mapped(const char *path)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[1024];
	bool found = false;

	while (maps && fgets(line, sizeof(line), maps))
		found = found || strstr(line, path);
	if (maps)
		fclose(maps);
	return found;
}

static bool is_open(const char *path)
{
	char link[64];
	char target[1024];

	for (int fd = 0; fd < 1024; fd++) {
		ssize_t n;

		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		n = readlink(link, target, sizeof(target) - 1);
		target[n < 0 ? 0 : n] = '\0';
		if (!strcmp(target, path))
			return true;
	}
	return false;
}

static int child_before_after_fork(const char *dir)
{
	struct tickmap_code code = small_code("never");

	(void)dir;
	CHECK(tickmap_emit_code(inherited, &code) == TICKMAP_EMIT_E_FORKED);
	CHECK(tickmap_emit_move(inherited, 1, 2, 3, 4) ==
	      TICKMAP_EMIT_E_FORKED);
	CHECK(tickmap_emit_close(inherited) == TICKMAP_EMIT_E_FORKED);
	CHECK(!is_open(parent_dump) && !is_open(parent_map));
	CHECK(!is_mapped(parent_dump));
	return 0;
}

static int grandchild(const char *dir)
{
	struct tickmap_code code = small_code("grandchild");
	struct strict_dump dump;

	CHECK(tickmap_emit_code(inherited, &code) == TICKMAP_EMIT_E_FORKED);
	CHECK(tickmap_emit_after_fork(inherited) == 0);
	CHECK(tickmap_emit_code(inherited, &code) == 0);
	CHECK(tickmap_emit_close(inherited) == 0);
	CHECK(!strict_read_dump(dump_in(dir), false, &dump));
	CHECK(dump.code_count == 1);
	strict_free_dump(&dump);
	return 0;
}

static int child_after_fork(const char *dir)
{
	struct tickmap_code code = small_code("child");
	struct strict_dump dump;
	struct strict_map map;

	CHECK(tickmap_emit_after_fork(inherited) == 0);
	CHECK(tickmap_emit_after_fork(inherited) == 0); /* again: no harm */
	CHECK(!is_open(parent_dump) && !is_open(parent_map));
	CHECK(!is_mapped(parent_dump));
	CHECK(is_mapped(dump_in(dir)));
	CHECK(!strcmp(tickmap_emit_path(inherited, DUMP), dump_in(dir)));
	CHECK(!strcmp(tickmap_emit_path(inherited, MAP), map_in(dir)));
	CHECK(tickmap_emit_code(inherited, &code) == 0);
	CHECK(run_in_child(grandchild, dir) == 0);
	CHECK(tickmap_emit_code(inherited, &code) == 0);
	CHECK(tickmap_emit_close(inherited) == 0);

	CHECK(!strict_read_dump(dump_in(dir), false, &dump));
	CHECK(dump.code_count == 2 && dump.closed);
	CHECK(dump.pid == (uint32_t)getpid());
	CHECK(dump.codes[0].pid == (uint32_t)getpid());
	CHECK(dump.codes[0].tid == (uint32_t)syscall(SYS_gettid));
	/* The parent's index stays the parent's code's. */
	CHECK(dump.codes[0].index == 2);
	strict_free_dump(&dump);
	CHECK(!strict_read_map(map_in(dir), false, &map));
	CHECK(map.count == 2);
	strict_free_map(&map);
	return 0;
}

static void a_child_writes_to_its_own_files_or_not_at_all(void **state)
{
	struct tickmap_code code = small_code("parent");
	struct strict_dump dump;
	struct strict_map map;

	assert_int_equal(open_emit(*state, DUMP | MAP, 0, &inherited), 0);
	snprintf(parent_dump, sizeof(parent_dump), "%s", dump_in(*state));
	snprintf(parent_map, sizeof(parent_map), "%s", map_in(*state));
	assert_true(is_open(parent_dump) && is_mapped(parent_dump));
	assert_int_equal(tickmap_emit_code(inherited, &code), 0);
	assert_child(child_before_after_fork, *state, "");
	assert_child(child_after_fork, *state, "");
	assert_int_equal(tickmap_emit_after_fork(inherited), 0);
	assert_int_equal(tickmap_emit_code(inherited, &code), 0);
	assert_int_equal(tickmap_emit_close(inherited), 0);

	read_dump(parent_dump, &dump);
	assert_int_equal(dump.code_count, 2);
	assert_true(dump.closed);
	assert_string_equal(dump.codes[1].name, "parent");
	strict_free_dump(&dump);
	read_map(parent_map, &map);
	assert_int_equal(map.count, 2);
	strict_free_map(&map);
}

static int child_without_a_folder(const char *dir)
{
	struct tickmap_code code = small_code("lost");

	char moved[512];

	snprintf(moved, sizeof(moved), "%s-moved", dir);
	CHECK(!rename(dir, moved));
	errno = 0;
	CHECK(tickmap_emit_after_fork(inherited) == TICKMAP_EMIT_E_OS);
	CHECK(!rename(moved, dir));
	CHECK(tickmap_emit_errno(inherited) == ENOENT);
	CHECK(tickmap_emit_code(inherited, &code) == TICKMAP_EMIT_E_OS);
	CHECK(!tickmap_emit_path(inherited, DUMP));
	CHECK(tickmap_emit_close(inherited) == TICKMAP_EMIT_E_OS);
	return 0;
}

static void a_child_that_cannot_open_its_files_stays_silent(void **state)
{
	assert_int_equal(open_emit(*state, DUMP, 0, &inherited), 0);
	assert_child(child_without_a_folder, *state, "");
	assert_int_equal(tickmap_emit_close(inherited), 0);
}

static atomic_bool stop;

static void *publish_on(void *arg)
{
	struct tickmap_code code = small_code("meanwhile");

	while (!atomic_load(&stop)) {
		if (tickmap_emit_code(arg, &code))
			return arg;
	}
	return NULL;
}

static int child_of_busy_threads(const char *dir)
{
	struct tickmap_code code = small_code("child");

	(void)dir;
	CHECK(tickmap_emit_code(inherited, &code) == TICKMAP_EMIT_E_FORKED);
	CHECK(tickmap_emit_after_fork(inherited) == 0);
	CHECK(tickmap_emit_code(inherited, &code) == 0);
	CHECK(tickmap_emit_close(inherited) == 0);
	return 0;
}

static void forking_while_threads_publish_neither_hangs_nor_tears(void **state)
{
	pthread_t threads[3];
	struct strict_dump dump;
	char path[512];

	assert_int_equal(open_emit(*state, DUMP, 0, &inherited), 0);
	snprintf(path, sizeof(path), "%s", dump_in(*state));
	atomic_store(&stop, false);
	for (size_t i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, publish_on, inherited);
	for (int i = 0; i < 30; i++)
		assert_child(child_of_busy_threads, *state, "");
	atomic_store(&stop, true);
	for (size_t i = 0; i < 3; i++) {
		void *failed;

		pthread_join(threads[i], &failed);
		assert_null(failed);
	}
	assert_int_equal(tickmap_emit_close(inherited), 0);
	read_dump(path, &dump);
	assert_true(dump.code_count > 30);
	for (size_t i = 0; i < dump.code_count; i++)
		assert_string_equal(dump.codes[i].name, "meanwhile");
	strict_free_dump(&dump);
}

/* ASan takes the stack that a cancelled thread has left for a live one. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define UNDER_ASAN 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define UNDER_ASAN 1
#endif
#ifndef UNDER_ASAN
#define UNDER_ASAN 0
#endif

static void *publish_until_cancelled(void *arg)
{
	struct tickmap_code code = small_code("cancelled");

	while (!tickmap_emit_code(arg, &code))
		pthread_testcancel();
	return NULL;
}

static void a_cancelled_thread_does_not_keep_the_lock(void **state)
{
	struct tickmap_code code = small_code("after");
	struct timespec nap = { 0, 1000000 };
	struct tickmap_emit *emit;

	if (UNDER_ASAN) {
		print_message("skipped: ASan does not stand cancellation\n");
		skip();
	}
	assert_int_equal(open_emit(*state, DUMP, 0, &emit), 0);
	alarm(60);
	for (int i = 0; i < 20; i++) {
		pthread_t thread;

		pthread_create(&thread, NULL, publish_until_cancelled, emit);
		nanosleep(&nap, NULL);
		pthread_cancel(thread);
		pthread_join(thread, NULL);
		assert_int_equal(tickmap_emit_code(emit, &code), 0);
	}
	alarm(0);
	assert_int_equal(tickmap_emit_close(emit), 0);
}

/* All calls, with a cancellation pending from the first one on. */
static void *call_all_cancelled(void *dir)
{
	struct tickmap_code code = small_code("cancelled");
	struct tickmap_emit *emit;
	FILE *other = fopen(map_in(dir), "we");
	int *reached = malloc(sizeof(*reached));
	int old;
	int status;

	*reached = 0;
	fputs("1 1 cut", other);
	fclose(other);
	pthread_cancel(pthread_self());
	/* ASan needs a thread that ends by itself. */
	status = open_emit(dir, DUMP | MAP, 0, &emit);
	if (!status)
		status = tickmap_emit_code(emit, &code);
	if (!status)
		status = tickmap_emit_after_fork(emit);
	if (!status)
		status = tickmap_emit_flush(emit);
	if (!status)
		status = tickmap_emit_close(emit);
	*reached = !status;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	return reached;
}

static void no_call_is_a_cancellation_point(void **state)
{
	pthread_t thread;
	void *reached;

	pthread_create(&thread, NULL, call_all_cancelled, *state);
	pthread_join(thread, &reached);
	assert_ptr_not_equal(reached, PTHREAD_CANCELED);
	assert_int_equal(*(int *)reached, 1);
	free(reached);
	assert_true(holds_text(map_in(*state), "1 1 cut\n1000 9 cancelled\n"));
}

/*
 * Two processes of pid 1, each in a namespace of its own, that share a folder:
 * the second one comes when the first one's files look old.
 */
static int pipes[2][2];

static int pid_1_publishes(const char *dir, bool is_first)
{
	static const struct timespec old[2] = { { 1000000000, 0 },
						{ 1000000000, 0 } };
	struct tickmap_code code = small_code(is_first ? "first" : "second");
	struct tickmap_emit *emit;
	char byte = 0;

	/* Who fails is the end of its pipe; alarms do not reach a pid 1. */
	close(pipes[0][!is_first ? 1 : 0]);
	close(pipes[1][is_first ? 1 : 0]);
	CHECK(getpid() == 1);
	CHECK(is_first || read(pipes[0][0], &byte, 1) == 1);
	CHECK(open_emit(dir, DUMP | MAP, 0, &emit) == 0);
	CHECK(tickmap_emit_code(emit, &code) == 0);
	if (is_first) {
		CHECK(!utimensat(AT_FDCWD, dump_in(dir), old, 0));
		CHECK(!utimensat(AT_FDCWD, map_in(dir), old, 0));
		CHECK(write(pipes[0][1], &byte, 1) == 1);
		CHECK(read(pipes[1][0], &byte, 1) == 1);
		CHECK(tickmap_emit_state(emit) == 0);
		CHECK(tickmap_emit_code(emit, &code) == 0);
	} else {
		CHECK(tickmap_emit_state(emit) ==
		      (TICKMAP_EMIT_STATE_DUMP_BESIDE |
		       TICKMAP_EMIT_STATE_NO_MAP));
		CHECK(write(pipes[1][1], &byte, 1) == 1);
	}
	CHECK(tickmap_emit_close(emit) == 0);
	return 0;
}

static int first_pid_1(const char *dir)
{
	return pid_1_publishes(dir, true);
}

static int second_pid_1(const char *dir)
{
	return pid_1_publishes(dir, false);
}

static int first_container(const char *dir)
{
	return unshare(CLONE_NEWPID) ? SKIPPED : run_in_child(first_pid_1, dir);
}

static int second_container(const char *dir)
{
	return unshare(CLONE_NEWPID) ? SKIPPED
				     : run_in_child(second_pid_1, dir);
}

static int both_containers(const char *dir)
{
	pid_t first;
	int outcome;
	int status;

	CHECK(!pipe(pipes[0]) && !pipe(pipes[1]));
	first = fork();
	if (!first)
		_exit(first_container(dir));
	close(pipes[0][1]);
	outcome = run_in_child(second_container, dir);
	close(pipes[1][1]);
	CHECK(waitpid(first, &status, 0) == first);
	if (outcome == SKIPPED)
		return outcome;
	CHECK(outcome == 0 && status == 0);
	return 0;
}

static void a_live_writer_of_another_container_keeps_its_files(void **state)
{
	struct strict_dump dump;

	assert_child(both_containers, *state,
		     "pid namespaces are not for this user");
	read_dump(in_dir(*state, "jit-1.dump"), &dump);
	assert_int_equal(dump.code_count, 2);
	strict_free_dump(&dump);
	read_dump(in_dir(in_dir(*state, "tickmap-1"), "jit-1.dump"), &dump);
	assert_int_equal(dump.code_count, 1);
	assert_string_equal(dump.codes[0].name, "second");
	strict_free_dump(&dump);
	assert_true(holds_text(in_dir(*state, "perf-1.map"),
			       "1000 9 first\n1000 9 first\n"));
}

#define SCRATCH_TEST(name)                                                     \
	cmocka_unit_test_setup_teardown(name, make_scratch, remove_scratch)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCRATCH_TEST(records_of_eight_threads_never_tear),
		SCRATCH_TEST(whatever_was_published_survives_sudden_death),
		SCRATCH_TEST(a_child_writes_to_its_own_files_or_not_at_all),
		SCRATCH_TEST(a_child_that_cannot_open_its_files_stays_silent),
		SCRATCH_TEST(
			forking_while_threads_publish_neither_hangs_nor_tears),
		SCRATCH_TEST(a_cancelled_thread_does_not_keep_the_lock),
		SCRATCH_TEST(no_call_is_a_cancellation_point),
		SCRATCH_TEST(
			a_live_writer_of_another_container_keeps_its_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

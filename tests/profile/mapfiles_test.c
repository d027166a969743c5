/* SPDX-License-Identifier: MIT */
/* Where the code maps of a recording are found, and where they are not. */
#include "codemap/marker.h"
#include "recording.h"

#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define MS UINT64_C(1000000)
#define START (UINT64_C(100) * 1000 * MS)
#define JIT UINT64_C(0x7f0000000000)
#define PID 4194001u
#define PARENT 4194000u

static const char *leaf(const struct tickmap_profile *p, size_t sample)
{
	const struct tickmap_frame *f =
		&p->frames.items[p->nodes.items[p->samples.items[sample].node]
					 .frame];
	return tickmap_string(p->strings, f->name, NULL);
}

static bool has_finding(const struct tickmap_profile *p, const char *id)
{
	for (size_t i = 0; i < p->findings.count; i++)
		if (!strncmp(tickmap_string(p->strings, p->findings.items[i],
					    NULL),
			     id, strlen(id)))
			return true;
	return false;
}

/* A dump with one function at `avma`, in a file of the recording's folder. */
static void put_dump(const struct recording *r, const char *name, uint32_t pid,
		     uint64_t when, uint64_t avma, const char *function)
{
	static struct dump dump;

	dump_begin(&dump, pid, 0);
	dump_load(&dump, when, pid, avma, 64, function);
	write_file(r->dir, name, dump.bytes, dump.size);
}

static void begin(struct recording *r)
{
	recording_open(r, CLOCK_MONOTONIC);
	record_map(r, 1, PID, JIT, 0x10000, "//anon");
}

/* Folders below that of `r`. */
static void make_folder(const struct recording *r, const char *name)
{
	char path[160];

	snprintf(path, sizeof(path), "%s/%s", r->dir, name);
	assert_int_equal(mkdir(path, 0700), 0);
}

static void remove_all(struct recording *r)
{
	char command[160];

	snprintf(command, sizeof(command), "rm -r '%s'", r->dir);
	assert_int_equal(system(command), 0);
}

/* Loads it with the code maps of `other`. */
static struct tickmap_profile *load_with(struct recording *r,
					 const struct recording *other)
{
	const char *dirs[] = { other->dir };
	struct tickmap_profile_options options = { .code_map_dirs = dirs,
						   .code_map_dir_count = 1 };

	return recording_load(r, &options);
}

static void a_dump_is_known_by_its_magic_and_not_by_its_name(void **state)
{
	struct recording r, other;

	(void)state;
	begin(&other);
	begin(&r);
	make_folder(&other, "deep");
	make_folder(&other, "deep/down");
	put_dump(&other, "deep/down/what.bin", PID, START, JIT, "f");
	write_file(other.dir, "jit-1.dump", "no dump at all", 14);
	record_sample(&r, START + MS, PID, JIT);
	struct tickmap_profile *p = load_with(&r, &other);
	assert_string_equal(leaf(p, 0), "f");
	tickmap_profile_free(p);
	recording_finish(&other);
	remove_all(&other);
	recording_remove(&r);
}

static void two_dumps_of_one_basename_are_both_used(void **state)
{
	struct recording r, other;

	(void)state;
	begin(&other);
	begin(&r);
	make_folder(&other, "a");
	make_folder(&other, "b");
	put_dump(&other, "a/jit-9.dump", 9, START, JIT, "of a");
	put_dump(&other, "b/jit-9.dump", 9, START, JIT + 64, "of b");
	record_map(&r, START - MS, PID, JIT + 0x20000, 0x1000,
		   "/srv/b/jit-9.dump");
	record_map(&r, START - MS, PID, JIT + 0x21000, 0x1000,
		   "/srv/a/jit-9.dump");
	/* The marker of one of them again. */
	record_map(&r, START + 5 * MS, PID, JIT + 0x22000, 0x1000,
		   "/srv/a/jit-9.dump");
	record_sample(&r, START + MS, PID, JIT);
	record_sample(&r, START + MS + 1, PID, JIT + 64);
	struct tickmap_profile *p = load_with(&r, &other);
	assert_string_equal(leaf(p, 0), "of a");
	assert_string_equal(leaf(p, 1), "of b");
	assert_int_equal(p->code_loads, 2);
	tickmap_profile_free(p);
	recording_finish(&other);
	remove_all(&other);
	recording_remove(&r);
}

static void a_dump_and_its_copies_say_everything_once(void **state)
{
	struct recording r, other;

	(void)state;
	begin(&other);
	begin(&r);
	make_folder(&other, "copies");
	put_dump(&other, "jit-1.dump", PID, START, JIT, "once");
	put_dump(&other, "copies/jit-1.dump", PID, START, JIT, "once");
	put_dump(&other, "copies/other.dump", PID, START, JIT + 64, "else");
	record_sample(&r, START + MS, PID, JIT);
	record_sample(&r, START + MS + 1, PID, JIT + 64);
	struct tickmap_profile *p = load_with(&r, &other);
	assert_string_equal(leaf(p, 0), "once");
	assert_string_equal(leaf(p, 1), "else");
	assert_int_equal(p->code_loads, 2);
	tickmap_profile_free(p);
	recording_finish(&other);
	remove_all(&other);
	recording_remove(&r);
}

static void a_dump_of_another_time_is_said_and_not_used(void **state)
{
	struct recording r;

	(void)state;
	begin(&r);
	record_fork(&r, START - MS, PID, PARENT);
	put_dump(&r, "other.dump", PID, START - 5000 * MS, JIT, "stale");
	record_sample(&r, START + MS, PID, JIT);
	struct tickmap_profile *p = recording_load(&r, NULL);
	assert_int_equal(p->code_loads, 0);
	assert_true(has_finding(p, "CM006"));
	tickmap_profile_free(p);
	recording_remove(&r);
}

/* A process of which the recording does not say when it began. */
static void
a_dump_of_that_pid_in_tmp_is_not_used_if_its_times_deny_it(void **state)
{
	enum { ITS, ANOTHERS, COUNT };
	(void)state;

	for (int whose = ITS; whose < COUNT; whose++) {
		static struct dump dump;
		struct recording r;

		begin(&r);
		record_sample(&r, START + MS, PID, JIT);
		dump_begin(&dump, PID, 0);
		dump_load(&dump, whose == ITS ? START : START + 5000 * MS, PID,
			  JIT, 64, "of tmp");
		write_file("/tmp", "jit-4194001.dump", dump.bytes, dump.size);
		struct tickmap_profile *p = recording_load(&r, NULL);
		unlink("/tmp/jit-4194001.dump");
		assert_int_equal(p->code_loads, whose == ITS);
		assert_int_equal(has_finding(p, "CM006"), whose != ITS);
		tickmap_profile_free(p);
		recording_remove(&r);
	}
}

static void of_two_processes_with_one_pid_each_gets_its_own_dump(void **state)
{
	struct recording r;

	(void)state;
	begin(&r);
	make_folder(&r, "first");
	make_folder(&r, "second");
	/* The first one's life, in which nothing was captured but its dump. */
	put_dump(&r, "jit-first.dump", PID, START + MS, JIT, "first");
	put_dump(&r, "jit-second.dump", PID, START + 5000 * MS, JIT, "second");
	record_fork(&r, START, PID, PARENT);
	record_map(&r, START, PID, JIT + 0x20000, 0x1000, "/gone/jit-1.dump");
	record_sample(&r, START + 2 * MS, PID, JIT);
	record_exit(&r, START + 10 * MS, PID);
	record_fork(&r, START + 4000 * MS, PID, PARENT);
	record_map(&r, START + 4001 * MS, PID, JIT + 0x20000, 0x1000,
		   "/gone/jit-1.dump");
	record_sample(&r, START + 4500 * MS, PID, JIT);
	record_sample(&r, START + 5001 * MS, PID, JIT);
	struct tickmap_profile *p = recording_load(&r, NULL);
	assert_string_equal(leaf(p, 0), "first");
	assert_true(strcmp(leaf(p, 1), "first") != 0);
	assert_true(strcmp(leaf(p, 1), "second") != 0);
	assert_string_equal(leaf(p, 2), "second");
	tickmap_profile_free(p);
	remove_all(&r);
}

static void a_program_started_by_exec_has_its_own_code_maps(void **state)
{
	struct recording r;

	(void)state;
	begin(&r);
	put_dump(&r, "jit-1.dump", PID, START + MS, JIT, "before");
	put_dump(&r, "jit-2.dump", PID, START + 20 * MS, JIT, "after");
	record_map(&r, START, PID, JIT + 0x20000, 0x1000, "/gone/jit-1.dump");
	record_sample(&r, START + 2 * MS, PID, JIT);
	record_comm(&r, START + 10 * MS, PID, PID, "other", true);
	record_map(&r, START + 11 * MS, PID, JIT, 0x10000, "//anon");
	record_map(&r, START + 12 * MS, PID, JIT + 0x20000, 0x1000,
		   "/gone/jit-2.dump");
	record_sample(&r, START + 13 * MS, PID, JIT);
	record_sample(&r, START + 21 * MS, PID, JIT);
	struct tickmap_profile *p = recording_load(&r, NULL);
	assert_string_equal(leaf(p, 0), "before");
	assert_true(strcmp(leaf(p, 1), "before") &&
		    strcmp(leaf(p, 1), "after"));
	assert_string_equal(leaf(p, 2), "after");
	tickmap_profile_free(p);
	recording_remove(&r);
}

/* Memory that looks like a file and is none belongs to the code map: what is
 * published there stays when it is mapped again. */
static void memory_like_a_file_is_the_code_maps(void **state)
{
	static const char *const names[] = {
		"/memfd:JITCode:QtQml (deleted)",
		"/dev/zero (deleted)",
		"/dev/shm/code",
		"/SYSV00000000 (deleted)",
		"/anon_hugepage (deleted)",
		"[anon:v8]",
		"",
		"/tmp/ffiYtTBXl (deleted)",
		NULL, /* a file that is here and not ELF */
		"/usr/lib/libupgraded.so.1 (deleted)",
	};
	enum { NAMES = sizeof(names) / sizeof(*names) };

	(void)state;
	for (unsigned i = 0; i < NAMES; i++) {
		bool library = i == NAMES - 1;
		struct recording r;
		char arena[160];
		recording_open(&r, CLOCK_MONOTONIC);
		snprintf(arena, sizeof(arena), "%s/arena", r.dir);
		write_file(r.dir, "arena", "no ELF file", 11);
		const char *name = names[i] ? names[i] : arena;
		record_map(&r, 1, PID, JIT, 0x10000, name);
		put_dump(&r, "jit-1.dump", PID, START, JIT, "f");
		record_map(&r, START + MS, PID, JIT, 0x1000, name);
		record_sample(&r, START + 2 * MS, PID, JIT);
		record_sample(&r, START + 2 * MS + 1, PID, JIT + 64);
		struct tickmap_profile *p = recording_load(&r, NULL);
		if (library != (strcmp(leaf(p, 0), "f") != 0))
			fail_msg("%s: %s", name, leaf(p, 0));
		assert_int_equal(p->unresolved[TICKMAP_UNRESOLVED_NOT_IN_MAP],
				 !library);
		assert_int_equal(p->jit_samples, library ? 0 : 2);
		tickmap_profile_free(p);
		recording_remove(&r);
	}
}

/* In the first process of new pid and mount namespaces; never returns. */
static void contain(void (*body)(const void *), const void *context, int ready)
{
	int inside[2];
	pid_t inner = -1;
	char byte;

	if (unshare(CLONE_NEWPID | CLONE_NEWNS) || pipe(inside))
		_exit(1);
	inner = fork();
	if (!inner) {
		if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		    mount("none", "/tmp", "tmpfs", 0, NULL))
			_exit(1);
		body(context);
		if (write(inside[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	close(inside[1]);
	if (read(inside[0], &byte, 1) != 1 ||
	    write(ready, &inner, sizeof(inner)) < 0)
		_exit(1);
	waitpid(inner, NULL, 0);
	_exit(0);
}

/* Runs `body` in a child that then waits for its end; -1: it failed. */
static pid_t live(void (*body)(const void *), const void *context,
		  bool container)
{
	int ready[2];
	pid_t pid = -1;

	assert_int_equal(pipe(ready), 0);
	if (!fork()) {
		if (container)
			contain(body, context, ready[1]);
		body(context);
		pid = getpid();
		if (write(ready[1], &pid, sizeof(pid)) > 0)
			pause();
		_exit(0);
	}
	close(ready[1]);
	if (read(ready[0], &pid, sizeof(pid)) != sizeof(pid))
		pid = -1;
	close(ready[0]);
	return pid;
}

struct open_dump {
	char path[160];
	struct dump dump;
};

static void hold_removed_dump(const void *context)
{
	const struct open_dump *o = context;
	int fd = open(o->path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || unlink(o->path))
		_exit(1);
}

static void a_removed_dump_is_read_from_the_process_that_has_it(void **state)
{
	static struct open_dump o;
	struct recording r;
	struct stat st;
	char marker[200];

	(void)state;
	begin(&r);
	snprintf(o.path, sizeof(o.path), "%s/jit-77.dump", r.dir);
	dump_begin(&o.dump, 77, 0);
	dump_load(&o.dump, START, 77, JIT, 64, "removed");
	write_file(r.dir, "jit-77.dump", o.dump.bytes, o.dump.size);
	assert_int_equal(stat(o.path, &st), 0);
	pid_t pid = live(hold_removed_dump, &o, false);
	assert_true(pid > 0);
	assert_int_not_equal(access(o.path, F_OK), 0);
	snprintf(marker, sizeof(marker), "%s (deleted)", o.path);
	record_map(&r, 1, (uint32_t)pid, JIT, 0x10000, "//anon");
	record_map_of(&r, 2, (uint32_t)pid, JIT + 0x20000, 0x1000, marker,
		      st.st_ino);
	record_sample(&r, START + MS, (uint32_t)pid, JIT);
	struct tickmap_profile *p = recording_load(&r, NULL);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_string_equal(leaf(p, 0), "removed");
	tickmap_profile_free(p);
	recording_remove(&r);
}

static void write_map_as_pid_1(const void *context)
{
	static const char map[] = "7f0000000000 40 in the container\n";

	(void)context;
	write_file("/tmp", "perf-1.map", map, sizeof(map) - 1);
}

static void a_container_is_asked_under_its_root_and_its_pid(void **state)
{
	struct recording r;

	(void)state;
	if (geteuid()) {
		print_message("a pid namespace needs root\n");
		skip();
	}
	pid_t pid = live(write_map_as_pid_1, NULL, true);
	if (pid < 0) { /* the root of a chroot is no mount point */
		print_message("no namespace of mounts can be made here\n");
		skip();
	}
	begin(&r);
	assert_true(pid > 1);
	record_map(&r, 1, (uint32_t)pid, JIT, 0x10000, "//anon");
	record_sample(&r, START + MS, (uint32_t)pid, JIT);
	struct tickmap_profile *p = recording_load(&r, NULL);
	kill(pid, SIGKILL);
	while (waitpid(-1, NULL, 0) > 0)
		;
	/* Whatever this machine's own pid 1 may have written. */
	assert_string_equal(leaf(p, 0), "in the container");
	tickmap_profile_free(p);
	recording_remove(&r);
}

static void a_marker_is_known_by_its_name(void **state)
{
	static const struct {
		const char *path;
		bool marker;
		uint32_t pid;
	} names[] = {
		{ "/tmp/jit-12.dump", true, 12 },
		{ "jit-12.dump", true, 12 },
		{ "/tmp/jit-12.dump (deleted)", true, 12 },
		{ "/tmp/jit-7-12.dump", true, 12 },
		{ "/tmp/jit-7-12-Quqfps", true, 12 },
		{ "/tmp/jit-7-12-1a2345", true, 12 },
		{ "/tmp/jit-7-12-123456 (deleted)", true, 12 },
		{ "/tmp/jit-12-Quqfps", false, 0 },
		{ "/tmp/jit-7-12-Quqf", false, 0 },
		{ "/tmp/jit-7-12-Quq.ps", false, 0 },
		{ "/tmp/jit-.dump", false, 0 },
		{ "/tmp/jit-a-12.dump", false, 0 },
		{ "/tmp/libjit-12.dump", false, 0 },
		{ "/tmp/jit-12.so", false, 0 },
		{ "/tmp/jit-12.dump/lib.so", false, 0 },
		{ "", false, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const char *path = names[i].path;
		const char *deleted = strstr(path, " (deleted)");
		size_t length =
			deleted ? (size_t)(deleted - path) : strlen(path);
		assert_int_equal(tickmap_is_jitdump_path(path),
				 names[i].marker);
		assert_int_equal(tickmap_jitdump_path_pid(path, length),
				 names[i].pid);
	}
}

/* JavaScriptCore's, in a folder that nobody chose. Only the name leads there:
 * the pid is that of another namespace. */
static void a_dump_with_a_random_end_is_found_by_its_marker(void **state)
{
	struct recording r;

	(void)state;
	begin(&r);
	put_dump(&r, "jit-7-5-Quqfps", 5, START, JIT, "f");
	record_map(&r, START - MS, PID, JIT + 0x20000, 0x1000,
		   "/gone/jit-7-5-Quqfps");
	record_sample(&r, START + MS, PID, JIT);
	struct tickmap_profile *p = recording_load(&r, NULL);
	assert_string_equal(leaf(p, 0), "f");
	tickmap_profile_free(p);
	recording_remove(&r);
}

static size_t hints_with(const struct tickmap_profile *p, const char *text)
{
	size_t count = 0;

	for (size_t i = 0; i < p->hints.count; i++)
		count += strstr(tickmap_string(p->strings, p->hints.items[i],
					       NULL),
				text) != NULL;
	return count;
}

static void it_is_said_how_a_runtime_publishes_its_code(void **state)
{
	struct recording r;

	(void)state;
	begin(&r);
	record_map(&r, 1, PID, 0x400000, 0x1000, "/nowhere/bin/node");
	record_sample(&r, START, PID, JIT);
	/* A child that maps nothing of its own. */
	record_fork(&r, START, PID + 1, PID);
	record_sample(&r, START + MS, PID + 1, JIT);
	/* This one published code that is not here. */
	record_map(&r, 1, PID + 2, JIT, 0x10000, "//anon");
	record_map(&r, 1, PID + 2, 0x400000, 0x1000, "/nowhere/lib/libjvm.so");
	record_map(&r, 1, PID + 2, JIT + 0x20000, 0x1000, "/gone/jit-3.dump");
	record_sample(&r, START, PID + 2, JIT);
	/* That one was not seen in generated code. */
	record_map(&r, 1, PID + 3, 0x400000, 0x1000, "/nowhere/bin/bun");
	record_sample(&r, START, PID + 3, 0x400010);
	struct tickmap_profile *p = recording_load(&r, NULL);
	assert_int_equal(hints_with(p, "--perf-prof"), 1);
	assert_int_equal(hints_with(p, "java"), 0);
	assert_int_equal(hints_with(p, "BUN_"), 0);
	assert_true(has_finding(p, "CM002"));
	tickmap_profile_free(p);
	recording_remove(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_dump_is_known_by_its_magic_and_not_by_its_name),
		cmocka_unit_test(two_dumps_of_one_basename_are_both_used),
		cmocka_unit_test(a_dump_and_its_copies_say_everything_once),
		cmocka_unit_test(a_dump_of_another_time_is_said_and_not_used),
		cmocka_unit_test(
			a_dump_of_that_pid_in_tmp_is_not_used_if_its_times_deny_it),
		cmocka_unit_test(
			of_two_processes_with_one_pid_each_gets_its_own_dump),
		cmocka_unit_test(
			a_program_started_by_exec_has_its_own_code_maps),
		cmocka_unit_test(memory_like_a_file_is_the_code_maps),
		cmocka_unit_test(
			a_removed_dump_is_read_from_the_process_that_has_it),
		cmocka_unit_test(
			a_container_is_asked_under_its_root_and_its_pid),
		cmocka_unit_test(a_marker_is_known_by_its_name),
		cmocka_unit_test(
			a_dump_with_a_random_end_is_found_by_its_marker),
		cmocka_unit_test(it_is_said_how_a_runtime_publishes_its_code),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

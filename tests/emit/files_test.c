/* SPDX-License-Identifier: MIT */
/* Which files are made, replaced, refused; and what a full disk leaves. */
#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define DUMP TICKMAP_EMIT_JITDUMP
#define MAP TICKMAP_EMIT_PERF_MAP
#define KEEP TICKMAP_EMIT_KEEP_EXISTING
#define NOBODY 65534

static void files_are_private_whatever_the_umask(void **state)
{
	static const mode_t masks[] = { 0, 022, 0777 };

	for (size_t i = 0; i < 3; i++) {
		mode_t old = umask(masks[i]);
		struct tickmap_emit *emit;
		struct stat st;

		assert_int_equal(open_emit(*state, DUMP | MAP, 0, &emit), 0);
		umask(old);
		assert_int_equal(stat(dump_in(*state), &st), 0);
		assert_int_equal(st.st_mode, S_IFREG | 0600);
		assert_int_equal(stat(map_in(*state), &st), 0);
		assert_int_equal(st.st_mode, S_IFREG | 0600);
		tickmap_emit_close(emit);
	}
}

/* The descriptor that refers to path, or -1. */
static int find_fd(const char *path)
{
	struct stat wanted, st;

	if (stat(path, &wanted))
		return -1;
	for (int fd = 0; fd < 1024; fd++) {
		if (!fstat(fd, &st) && st.st_dev == wanted.st_dev &&
		    st.st_ino == wanted.st_ino)
			return fd;
	}
	return -1;
}

static void descriptors_are_closed_on_exec_and_out_of_the_way(void **state)
{
	struct tickmap_emit *emit;
	int fd;

	assert_int_equal(open_emit(*state, DUMP, 0, &emit), 0);
	fd = find_fd(dump_in(*state));
	assert_true(fd >= 256);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_true(fcntl(fd, F_GETFL) & O_APPEND);
	tickmap_emit_close(emit);
	assert_int_equal(find_fd(dump_in(*state)), -1);
}

static int with_few_descriptors(const char *dir)
{
	struct rlimit limit = { 16, 16 };
	struct tickmap_emit *emit;

	CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
	close(0);
	CHECK(open_emit(dir, DUMP, 0, &emit) == 0);
	/* 0 would make the host read its own dump. */
	CHECK(find_fd(dump_in(dir)) > 2);
	CHECK(tickmap_emit_close(emit) == 0);
	return 0;
}

static void standard_streams_are_never_taken(void **state)
{
	assert_child(with_few_descriptors, *state, "");
}

/* As if a process that had our pid before us had written it. */
static void make_old(const char *path)
{
	static const struct timespec times[2] = { { 1000000000, 0 },
						  { 1000000000, 0 } };

	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void a_stale_file_of_ours_is_replaced_not_rewritten(void **state)
{
	struct tickmap_emit *emit;
	struct strict_dump dump;
	struct stat st;
	int old;

	write_text(dump_in(*state), "stale dump");
	write_text(map_in(*state), "stale map\n");
	make_old(dump_in(*state));
	make_old(map_in(*state));
	old = open(dump_in(*state), O_RDONLY);
	assert_true(old >= 0);
	close(old);
	assert_int_equal(open_emit(*state, DUMP | MAP, 0, &emit), 0);
	read_dump(dump_in(*state), &dump);
	strict_free_dump(&dump);
	assert_int_equal(stat(map_in(*state), &st), 0);
	assert_int_equal(st.st_size, 0);
	assert_int_equal(tickmap_emit_state(emit), 0);
	tickmap_emit_close(emit);
}

/* Written to since the process began, but nothing that a recorder needs. */
static void what_is_no_code_map_is_stale_at_any_age(void **state)
{
	static const char *const texts[] = { "", "stale", "not hex\n", "cafe\n",
					     "\n10 10 f\n" };
	struct tickmap_emit *emit;
	struct strict_dump dump;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		write_text(dump_in(*state), texts[i]);
		write_text(map_in(*state), texts[i]);
		assert_int_equal(open_emit(*state, DUMP | MAP, 0, &emit), 0);
		assert_int_equal(tickmap_emit_state(emit), 0);
		assert_int_equal(tickmap_emit_close(emit), 0);
		read_dump(dump_in(*state), &dump);
		strict_free_dump(&dump);
		assert_true(holds_text(map_in(*state), ""));
		unlink(dump_in(*state));
	}
}

static void assert_refused(const char *dir, uint32_t sink, int why)
{
	struct tickmap_emit *emit = (void *)1;

	errno = 0;
	assert_int_equal(open_emit(dir, sink, 0, &emit), TICKMAP_EMIT_E_UNSAFE);
	assert_int_equal(errno, why);
	assert_null(emit);
	errno = 0;
	assert_int_equal(open_emit(dir, DUMP | MAP, 0, &emit),
			 TICKMAP_EMIT_E_UNSAFE);
	assert_int_equal(errno, why);
	assert_null(emit);
}

static void assert_both_refused(const char *dir, const char *dump,
				const char *map,
				void (*plant)(const char *path), int why)
{
	plant(dump);
	assert_refused(dir, DUMP, why);
	/* What was made before the refusal is gone again. */
	assert_int_equal(access(map, F_OK), -1);
	remove(dump);
	plant(map);
	assert_refused(dir, MAP, why);
	assert_int_equal(access(dump, F_OK), -1);
	remove(map);
}

static char victim[512];

static void plant_symlink(const char *path)
{
	assert_int_equal(symlink(victim, path), 0);
}

static void plant_hard_link(const char *path)
{
	assert_int_equal(link(victim, path), 0);
}

static void plant_fifo(const char *path)
{
	assert_int_equal(mkfifo(path, 0600), 0);
}

static void plant_folder(const char *path)
{
	assert_int_equal(mkdir(path, 0700), 0);
}

static void plant_foreign(const char *path)
{
	write_text(path, "foreign");
	assert_int_equal(chown(path, NOBODY, NOBODY), 0);
}

static void planted_links_are_refused_and_their_target_untouched(void **state)
{
	snprintf(victim, sizeof(victim), "%s/victim", (char *)*state);
	write_text(victim, "precious");
	assert_both_refused(*state, dump_in(*state), map_in(*state),
			    plant_symlink, ELOOP);
	assert_true(holds_text(victim, "precious"));
	assert_both_refused(*state, dump_in(*state), map_in(*state),
			    plant_hard_link, EMLINK);
	assert_true(holds_text(victim, "precious"));
	/* a link that leads nowhere must not make its target */
	assert_int_equal(unlink(victim), 0);
	assert_both_refused(*state, dump_in(*state), map_in(*state),
			    plant_symlink, ELOOP);
	assert_int_equal(access(victim, F_OK), -1);
}

static void fifos_and_folders_are_refused_without_waiting(void **state)
{
	alarm(20);
	assert_both_refused(*state, dump_in(*state), map_in(*state), plant_fifo,
			    EINVAL);
	assert_both_refused(*state, dump_in(*state), map_in(*state),
			    plant_folder, EISDIR);
	alarm(0);
}

static void a_foreign_file_is_refused_even_by_root(void **state)
{
	if (geteuid()) {
		print_message("skipped: giving files away needs root\n");
		skip();
	}
	assert_both_refused(*state, dump_in(*state), map_in(*state),
			    plant_foreign, EPERM);
}

static int nobody_in_a_sticky_folder(const char *dir)
{
	struct tickmap_emit *emit;

	if (geteuid())
		return SKIPPED;
	write_text(dump_in(dir), "root's");
	CHECK(!chmod(dir, 01777));
	CHECK(!setresgid(NOBODY, NOBODY, NOBODY));
	CHECK(!setresuid(NOBODY, NOBODY, NOBODY));
	CHECK(open_emit(dir, DUMP, 0, &emit) == TICKMAP_EMIT_E_UNSAFE);
	CHECK(open_emit(dir, DUMP, KEEP, &emit) == TICKMAP_EMIT_E_UNSAFE);
	CHECK(open_emit(dir, MAP, 0, &emit) == 0);
	CHECK(tickmap_emit_close(emit) == 0);
	return 0;
}

static void another_users_file_in_a_sticky_folder_is_refused(void **state)
{
	assert_child(nobody_in_a_sticky_folder, *state, "needs root");
}

static int nobody_in_a_read_only_folder(const char *dir)
{
	struct tickmap_emit *emit;

	if (!geteuid()) {
		CHECK(!chown(dir, NOBODY, NOBODY));
		CHECK(!setresuid(NOBODY, NOBODY, NOBODY));
	}
	CHECK(!chmod(dir, 0555));
	errno = 0;
	CHECK(open_emit(dir, DUMP, 0, &emit) == TICKMAP_EMIT_E_OS);
	CHECK(errno == EACCES && !emit);
	CHECK(open_emit(in_dir(dir, "none"), MAP, 0, &emit) ==
	      TICKMAP_EMIT_E_OS);
	CHECK(errno == ENOENT && !emit);
	return 0;
}

static void a_folder_that_we_may_not_write_to_is_an_os_failure(void **state)
{
	assert_child(nobody_in_a_read_only_folder, *state, "");
}

static int in_a_relative_folder(const char *dir)
{
	struct tickmap_emit *emit;

	CHECK(!chdir(dir) && !mkdir("sub", 0700));
	CHECK(open_emit("sub", DUMP, 0, &emit) == 0);
	CHECK(!strncmp(tickmap_emit_path(emit, DUMP), dir, strlen(dir)));
	CHECK(!access(dump_in("sub"), F_OK));
	CHECK(tickmap_emit_close(emit) == 0);
	CHECK(open_emit(".", DUMP, 0, &emit) == 0);
	CHECK(!strcmp(tickmap_emit_path(emit, DUMP), dump_in(dir)));
	CHECK(tickmap_emit_close(emit) == 0);
	return 0;
}

static void paths_are_absolute(void **state)
{
	assert_child(in_a_relative_folder, *state, "");
}

static void with_keep_existing_the_dump_goes_beside(void **state)
{
	struct tickmap_emit *emit;
	struct stat st;
	char name[64];

	write_text(dump_in(*state), "kept dump");
	write_text(map_in(*state), "kept map\n");
	assert_int_equal(open_emit(*state, MAP, KEEP, &emit),
			 TICKMAP_EMIT_E_EXISTS);
	/* what tickmap-1 must not be: a link, or somebody's folder */
	assert_int_equal(symlink("/tmp", in_dir(*state, "tickmap-1")), 0);
	assert_int_equal(mkdir(in_dir(*state, "tickmap-2"), 0700), 0);
	assert_int_equal(chmod(in_dir(*state, "tickmap-2"), 0777), 0);
	for (int i = 3; i < 5; i++) {
		assert_int_equal(open_emit(*state, DUMP | MAP, KEEP, &emit), 0);
		snprintf(name, sizeof(name), "tickmap-%d", i);
		assert_string_equal(tickmap_emit_path(emit, DUMP),
				    dump_in(in_dir(*state, name)));
		assert_null(tickmap_emit_path(emit, MAP));
		assert_int_equal(tickmap_emit_state(emit),
				 TICKMAP_EMIT_STATE_DUMP_BESIDE |
					 TICKMAP_EMIT_STATE_NO_MAP);
		assert_int_equal(stat(in_dir(*state, name), &st), 0);
		assert_int_equal(st.st_mode & 0777, 0700);
		assert_int_equal(tickmap_emit_close(emit), 0);
	}
	assert_true(holds_text(dump_in(*state), "kept dump"));
	assert_true(holds_text(map_in(*state), "kept map\n"));
}

static void what_another_writer_of_this_process_holds_is_not_stale(void **state)
{
	FILE *other_map = fopen(map_in(*state), "ae");
	FILE *other_dump = fopen(dump_in(*state), "we");
	struct tickmap_code code = small_code("ours");
	struct tickmap_emit *emit;

	fputs("10 10 theirs\n", other_map);
	fputs("their dump", other_dump);
	fflush(other_map);
	fflush(other_dump);
	assert_int_equal(open_emit(*state, MAP, KEEP, &emit),
			 TICKMAP_EMIT_E_EXISTS);
	assert_int_equal(open_emit(*state, DUMP | MAP, 0, &emit), 0);
	assert_int_equal(tickmap_emit_state(emit),
			 TICKMAP_EMIT_STATE_DUMP_BESIDE |
				 TICKMAP_EMIT_STATE_MAP_SHARED);
	assert_int_equal(tickmap_emit_code(emit, &code), 0);
	fputs("20 10 again\n", other_map);
	fflush(other_map);
	assert_int_equal(tickmap_emit_close(emit), 0);
	fclose(other_map);
	fclose(other_dump);
	assert_true(holds_text(map_in(*state), "10 10 theirs\n"
					       "1000 9 ours\n"
					       "20 10 again\n"));
	assert_true(holds_text(dump_in(*state), "their dump"));
}

static void
a_line_that_another_writer_has_not_ended_does_not_take_ours(void **state)
{
	FILE *other = fopen(map_in(*state), "ae");
	struct tickmap_code code = small_code("ours");
	struct tickmap_emit *emit;

	fputs("10 10 half", other);
	fflush(other);
	assert_int_equal(open_emit(*state, MAP, 0, &emit), 0);
	assert_int_equal(tickmap_emit_state(emit),
			 TICKMAP_EMIT_STATE_MAP_SHARED);
	assert_int_equal(tickmap_emit_code(emit, &code), 0);
	assert_int_equal(tickmap_emit_code(emit, &code), 0);
	fputs("20 10 ha", other);
	fflush(other);
	assert_int_equal(tickmap_emit_code(emit, &code), 0);
	fputs("lf\n", other);
	fflush(other);
	assert_int_equal(tickmap_emit_code(emit, &code), 0);
	assert_int_equal(tickmap_emit_close(emit), 0);
	fclose(other);
	assert_true(holds_text(map_in(*state), "10 10 half\n"
					       "1000 9 ours\n"
					       "1000 9 ours\n"
					       "20 10 ha\n"
					       "1000 9 ours\n"
					       "lf\n"
					       "1000 9 ours\n"));
}

static bool maps_have(const char *path, const char *permissions)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[1024];
	bool found = false;

	while (maps && fgets(line, sizeof(line), maps)) {
		if (strstr(line, path) && strstr(line, permissions))
			found = true;
	}
	if (maps)
		fclose(maps);
	return found;
}

static void the_marker_is_mapped_until_close(void **state)
{
	struct tickmap_emit *emit;

	assert_int_equal(open_emit(*state, DUMP, 0, &emit), 0);
	assert_true(maps_have(dump_in(*state), " r-xp 00000000 "));
	tickmap_emit_close(emit);
	assert_false(maps_have(dump_in(*state), ""));
}

/* A file system of our own, gone with the child. */
static bool mount_tmpfs(const char *dir, unsigned long flags,
			const char *options)
{
	return !unshare(CLONE_NEWNS) &&
	       !mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
	       !mount("tmpfs", dir, "tmpfs", flags, options);
}

static int on_a_noexec_mount(const char *dir)
{
	struct tickmap_code code = small_code("unmarked");
	struct tickmap_emit *emit;
	struct strict_dump dump;

	if (!mount_tmpfs(dir, MS_NOEXEC, "size=1m"))
		return SKIPPED;
	CHECK(open_emit(dir, DUMP, 0, &emit) == 0);
	CHECK(tickmap_emit_state(emit) == TICKMAP_EMIT_STATE_NO_MARKER);
	CHECK(tickmap_emit_code(emit, &code) == 0);
	CHECK(tickmap_emit_close(emit) == 0);
	CHECK(!strict_read_dump(dump_in(dir), false, &dump));
	CHECK(dump.code_count == 1);
	strict_free_dump(&dump);
	return 0;
}

static void without_a_marker_publishing_goes_on_and_says_so(void **state)
{
	assert_child(on_a_noexec_mount, *state, "mounting needs root");
}

/* Publish until it fails, then see that the files are whole. */
static int publish_to_the_end(const char *dir, uint32_t sinks, int error)
{
	struct tickmap_code code = small_code("fills_the_disk");
	struct tickmap_emit *emit;
	struct strict_dump dump;
	struct strict_map map;
	struct stat st;
	size_t good = 0;
	int status = 0;

	CHECK(open_emit(dir, sinks, 0, &emit) == 0);
	for (; good < 100000 && !status; good += !status)
		status = tickmap_emit_code(emit, &code);
	CHECK(status == TICKMAP_EMIT_E_OS);
	CHECK(tickmap_emit_errno(emit) == error);

	/* Latched, also when there is room again. */
	unlink(in_dir(dir, "ballast"));
	CHECK(!stat(sinks & DUMP ? dump_in(dir) : map_in(dir), &st));
	CHECK(tickmap_emit_code(emit, &code) == TICKMAP_EMIT_E_OS);
	CHECK(tickmap_emit_move(emit, 1, 2, 3, 4) == TICKMAP_EMIT_E_OS);
	CHECK(tickmap_emit_close(emit) == TICKMAP_EMIT_E_OS);
	if (sinks & DUMP) {
		off_t size = st.st_size;

		CHECK(!stat(dump_in(dir), &st) && st.st_size == size);
		CHECK(!strict_read_dump(dump_in(dir), false, &dump));
		CHECK(dump.code_count == good && !dump.closed);
		strict_free_dump(&dump);
	} else {
		CHECK(!strict_read_map(map_in(dir), false, &map));
		CHECK(map.count == good);
		strict_free_map(&map);
	}
	return 0;
}

static int on_a_full_disk(const char *dir)
{
	char ballast[20000];

	memset(ballast, 'x', sizeof(ballast) - 1);
	ballast[sizeof(ballast) - 1] = '\0';
	if (!mount_tmpfs(dir, 0, "size=64k"))
		return SKIPPED;
	write_text(in_dir(dir, "ballast"), ballast);
	if (publish_to_the_end(dir, DUMP, ENOSPC))
		return 1;
	unlink(dump_in(dir));
	write_text(in_dir(dir, "ballast"), ballast);
	return publish_to_the_end(dir, MAP, ENOSPC);
}

static void a_full_disk_leaves_whole_records(void **state)
{
	assert_child(on_a_full_disk, *state, "mounting needs root");
}

static int up_to_limit(const char *dir, uint32_t sinks, rlim_t size)
{
	/* SIGXFSZ is not ignored: it would end this process. */
	struct rlimit limit = { size, 20000 };

	CHECK(!setrlimit(RLIMIT_FSIZE, &limit));
	return publish_to_the_end(dir, sinks, EFBIG);
}

static int at_the_file_size_limit(const char *dir)
{
	/* inside a record, and where one ends */
	CHECK(!up_to_limit(dir, DUMP, 10007));
	unlink(dump_in(dir));
	CHECK(!up_to_limit(dir, DUMP, 40 + 100 * 80));
	CHECK(!up_to_limit(dir, MAP, 10007));
	unlink(map_in(dir));
	CHECK(!up_to_limit(dir, MAP, 400 * 22));
	return 0;
}

static void the_file_size_limit_is_a_failure_not_a_signal(void **state)
{
	assert_child(at_the_file_size_limit, *state, "");
}

static int with_a_raised_limit(const char *dir)
{
	struct rlimit limit = { 1000, 20000 };
	struct tickmap_code code = small_code("grows");
	struct tickmap_emit *emit;

	CHECK(!setrlimit(RLIMIT_FSIZE, &limit));
	CHECK(open_emit(dir, DUMP, 0, &emit) == 0);
	limit.rlim_cur = 20000;
	CHECK(!setrlimit(RLIMIT_FSIZE, &limit));
	for (int i = 0; i < 100; i++)
		CHECK(tickmap_emit_code(emit, &code) == 0);
	return tickmap_emit_close(emit);
}

static void a_limit_raised_later_counts(void **state)
{
	assert_child(with_a_raised_limit, *state, "");
}

/* Another writer of the map takes the room that there was. */
static int with_a_limit_shared(const char *dir)
{
	struct rlimit limit = { 1000, 20000 };
	struct tickmap_code code = small_code("shared");
	struct tickmap_emit *emit;
	FILE *other = fopen(map_in(dir), "ae");

	signal(SIGXFSZ, SIG_DFL);
	CHECK(other);
	CHECK(!setrlimit(RLIMIT_FSIZE, &limit));
	CHECK(open_emit(dir, MAP, 0, &emit) == 0);
	CHECK(tickmap_emit_code(emit, &code) == 0);
	for (int i = 0; i < (1000 - 14) / 2; i++)
		fputs("x\n", other);
	CHECK(!fclose(other));
	CHECK(tickmap_emit_code(emit, &code) == TICKMAP_EMIT_E_OS);
	CHECK(tickmap_emit_errno(emit) == EFBIG);
	CHECK(tickmap_emit_close(emit) == TICKMAP_EMIT_E_OS);
	return 0;
}

static void a_limit_that_another_writer_reaches_is_no_signal(void **state)
{
	assert_child(with_a_limit_shared, *state, "");
}

/* The limit falls inside a record that the kernel then cuts short. */
static int with_a_lowered_limit(const char *dir)
{
	struct tickmap_code code = small_code("cut_short");
	struct rlimit limit = { 150, 20000 };
	struct tickmap_emit *emit;
	struct strict_dump dump;

	signal(SIGXFSZ, SIG_IGN);
	CHECK(open_emit(dir, DUMP, 0, &emit) == 0);
	CHECK(tickmap_emit_code(emit, &code) == 0);
	CHECK(!setrlimit(RLIMIT_FSIZE, &limit));
	CHECK(tickmap_emit_code(emit, &code) == TICKMAP_EMIT_E_OS);
	CHECK(tickmap_emit_errno(emit) == EFBIG);
	CHECK(tickmap_emit_close(emit) == TICKMAP_EMIT_E_OS);
	CHECK(!strict_read_dump(dump_in(dir), false, &dump));
	CHECK(dump.code_count == 1);
	strict_free_dump(&dump);
	return 0;
}

static void a_short_write_is_taken_back(void **state)
{
	assert_child(with_a_lowered_limit, *state, "");
}

static void unreadable_code_is_a_failure_and_leaves_whole_records(void **state)
{
	struct tickmap_code code = small_code("good");
	struct tickmap_emit *emit;
	struct strict_dump dump;

	assert_int_equal(open_emit(*state, DUMP, 0, &emit), 0);
	assert_int_equal(tickmap_emit_code(emit, &code), 0);
	code.bytes = (const void *)16;
	assert_int_equal(tickmap_emit_code(emit, &code), TICKMAP_EMIT_E_OS);
	assert_int_equal(tickmap_emit_errno(emit), EFAULT);
	assert_int_equal(tickmap_emit_close(emit), TICKMAP_EMIT_E_OS);
	read_dump(dump_in(*state), &dump);
	assert_int_equal(dump.code_count, 1);
	strict_free_dump(&dump);
}

static void every_status_has_its_own_phrase(void **state)
{
	(void)state;
	for (int a = 0; a > -8; a--) {
		for (int b = -8; b < a; b++)
			assert_string_not_equal(tickmap_emit_strerror(a),
						tickmap_emit_strerror(b));
	}
}

#define SCRATCH_TEST(name)                                                     \
	cmocka_unit_test_setup_teardown(name, make_scratch, remove_scratch)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCRATCH_TEST(files_are_private_whatever_the_umask),
		SCRATCH_TEST(descriptors_are_closed_on_exec_and_out_of_the_way),
		SCRATCH_TEST(standard_streams_are_never_taken),
		SCRATCH_TEST(a_stale_file_of_ours_is_replaced_not_rewritten),
		SCRATCH_TEST(what_is_no_code_map_is_stale_at_any_age),
		SCRATCH_TEST(
			planted_links_are_refused_and_their_target_untouched),
		SCRATCH_TEST(fifos_and_folders_are_refused_without_waiting),
		SCRATCH_TEST(a_foreign_file_is_refused_even_by_root),
		SCRATCH_TEST(another_users_file_in_a_sticky_folder_is_refused),
		SCRATCH_TEST(
			a_folder_that_we_may_not_write_to_is_an_os_failure),
		SCRATCH_TEST(paths_are_absolute),
		SCRATCH_TEST(with_keep_existing_the_dump_goes_beside),
		SCRATCH_TEST(
			what_another_writer_of_this_process_holds_is_not_stale),
		SCRATCH_TEST(
			a_line_that_another_writer_has_not_ended_does_not_take_ours),
		SCRATCH_TEST(the_marker_is_mapped_until_close),
		SCRATCH_TEST(without_a_marker_publishing_goes_on_and_says_so),
		SCRATCH_TEST(a_full_disk_leaves_whole_records),
		SCRATCH_TEST(the_file_size_limit_is_a_failure_not_a_signal),
		SCRATCH_TEST(a_limit_raised_later_counts),
		SCRATCH_TEST(a_limit_that_another_writer_reaches_is_no_signal),
		SCRATCH_TEST(a_short_write_is_taken_back),
		SCRATCH_TEST(
			unreadable_code_is_a_failure_and_leaves_whole_records),
		cmocka_unit_test(every_status_has_its_own_phrase),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * Any sequence of calls leaves files that the strict reader takes: publish in
 * all forms, move, remove, flush, fork, close and open again, and writes that
 * fail because the file may grow no more. The input is the list of calls.
 *
 * With TICKMAP_EMIT_FUZZ_KEEP naming a folder, the dumps are made and left
 * there (for fuzz_perf_test.py, which has a main of its own below).
 */
#include "strict.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <tickmap/emit.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *at;
	size_t left;
};

static char work[256];
static bool keep;
static bool no_moves; /* TICKMAP_EMIT_FUZZ_NO_MOVES */

static uint32_t take(struct input *in, uint32_t limit)
{
	uint32_t value = 0;

	for (size_t i = 0; i < 2 && in->left; i++) {
		value = value << 8 | *in->at++;
		in->left--;
	}
	return limit ? value % limit : 0;
}

/* There is a limit from the start: only then is it looked at. */
#define NO_LIMIT ((rlim_t)1 << 40)

static void limit_files(rlim_t size)
{
	struct rlimit limit;

	getrlimit(RLIMIT_FSIZE, &limit);
	limit.rlim_cur = size < limit.rlim_max ? size : limit.rlim_max;
	setrlimit(RLIMIT_FSIZE, &limit);
}

static void die(const char *path, const char *why)
{
	/* stderr may be a file. */
	limit_files(NO_LIMIT);
	fprintf(stderr, "%s: %s\n", path, why);
	abort();
}

/* What became of the files of the handle; then they are gone. */
static void check_files(const char *dump, const char *map)
{
	struct strict_dump read;
	struct strict_map lines;
	const char *why;

	if (dump[0]) {
		why = strict_read_dump(dump, false, &read);
		if (why)
			die(dump, why);
		strict_free_dump(&read);
		if (!keep)
			unlink(dump);
	}
	if (map[0]) {
		why = strict_read_map(map, false, &lines);
		if (why)
			die(map, why);
		strict_free_map(&lines);
		unlink(map);
	}
}

static void close_and_check(struct tickmap_emit **emit)
{
	char dump[512] = "";
	char map[512] = "";

	if (!*emit)
		return;
	if (tickmap_emit_path(*emit, TICKMAP_EMIT_JITDUMP))
		snprintf(dump, sizeof(dump), "%s",
			 tickmap_emit_path(*emit, TICKMAP_EMIT_JITDUMP));
	if (tickmap_emit_path(*emit, TICKMAP_EMIT_PERF_MAP))
		snprintf(map, sizeof(map), "%s",
			 tickmap_emit_path(*emit, TICKMAP_EMIT_PERF_MAP));
	tickmap_emit_close(*emit);
	*emit = NULL;
	check_files(dump, map);
}

static void open_again(struct input *in, struct tickmap_emit **emit)
{
	struct tickmap_emit_options options = TICKMAP_EMIT_OPTIONS_INIT;
	uint32_t bits = take(in, 0x10000);

	close_and_check(emit);
	limit_files(NO_LIMIT);
	options.dir = work;
	options.sinks = bits & 7 ? bits & 7 : TICKMAP_EMIT_JITDUMP;
	options.flags = (bits >> 3 & 3) << 1 | (bits >> 5 & 1) << 4;
	options.batch_size = bits & 64 ? take(in, 3000) : 0;
	if (tickmap_emit_open(&options, emit))
		*emit = NULL;
}

/* Where perf is to read it, only addresses that a process may have: perf 6.1
 * never ends over code in the last pages of the address space. */
static uint64_t high_half(bool wanted)
{
	if (keep)
		return UINT64_C(0x7f0000000000);
	return wanted ? ~UINT64_C(0xffff) : 0;
}

static void publish(struct input *in, struct tickmap_emit *emit)
{
	static uint8_t bytes[70000];
	struct tickmap_line lines[4] = { { 0 } };
	struct tickmap_code code = TICKMAP_CODE_INIT;
	struct tickmap_unwind unwind;
	uint32_t bits = take(in, 0x10000);
	size_t name = bits & 1 ? take(in, 3000) : take(in, 8);

	code.addr = (uint64_t)take(in, 0x1000) * 8 + high_half(bits & 2);
	code.code_size = bits & 4 ? take(in, 0x10000) : take(in, 64);
	code.bytes = bits & 8 ? bytes : NULL;
	code.name = (const char *)in->at;
	code.name_length = name < in->left ? name : in->left;
	if (!code.name_length)
		code.name = "";
	code.file = bits & 16 ? "a.c" : NULL;
	code.lines = lines;
	code.line_count = bits >> 5 & 3;
	for (size_t i = 0; i < code.line_count; i++) {
		lines[i].offset = i * take(in, 40);
		lines[i].line = take(in, 100);
		lines[i].file = bits & 128 ? "b\n.c" : NULL;
	}
	if (bits & 256 &&
	    !tickmap_unwind_frame_pointer(&unwind, take(in, 80), 0))
		code.unwind = &unwind;
	if (bits & 512) {
		/* Bytes of the input, or good ones with one of them wrong. */
		code.eh_frame = in->at;
		code.eh_frame_size = in->left < 200 ? in->left : 200;
		if (bits & 1024 && code.unwind) {
			if (bits & 2048)
				unwind.frame[take(in, unwind.frame_size)] ^=
					(uint8_t)take(in, 256);
			code.eh_frame = unwind.frame;
			code.eh_frame_size = unwind.frame_size;
			code.unwind = NULL;
		}
	}
	code.mapped_size = bits & 4096 ? take(in, 300) : 0;
	tickmap_emit_code(emit, &code);
}

static void run(struct input *in, struct tickmap_emit **emit, int depth);

static void wait_for(pid_t pid)
{
	int status;
	pid_t done;

	do {
		done = waitpid(pid, &status, 0);
	} while (done < 0 && errno == EINTR); /* libFuzzer's own alarm */
	if (done != pid || status)
		die("child", "it found something");
}

static void fork_here(struct input *in, struct tickmap_emit **emit, int depth)
{
	struct input rest = *in;
	pid_t pid;

	if (depth >= 2)
		return;
	if (*emit && take(in, 2))
		tickmap_emit_before_fork(*emit);
	pid = fork();
	if (!pid) {
		if (*emit && take(&rest, 8)) {
			tickmap_emit_after_fork(*emit);
		} else {
			/* Its files are the parent's. */
			publish(&rest, *emit);
			tickmap_emit_close(*emit);
			*emit = NULL;
		}
		run(&rest, emit, depth + 1);
		close_and_check(emit);
		_exit(0);
	}
	if (*emit)
		tickmap_emit_after_fork(*emit);
	if (pid > 0)
		wait_for(pid);
}

static void run(struct input *in, struct tickmap_emit **emit, int depth)
{
	size_t forks = 0;

	while (in->left) {
		uint32_t call = take(in, 64);

		if (call == 0 || !*emit)
			open_again(in, emit);
		if (!*emit)
			continue;
		if (call == 1 && no_moves)
			continue;
		if (call == 1)
			tickmap_emit_move(*emit, take(in, 0x1000) * 8,
					  take(in, 0x1000) * 8, take(in, 64),
					  take(in, 20));
		else if (call == 2 && forks++ < 2)
			fork_here(in, emit, depth);
		else if (call == 3)
			limit_files(take(in, 4000));
		else if (call == 4)
			limit_files(NO_LIMIT);
		else if (call < 8)
			tickmap_emit_remove(*emit, take(in, 0x1000) * 8);
		else if (call < 10)
			tickmap_emit_flush(*emit);
		else if (call == 10)
			close_and_check(emit);
		else
			publish(in, *emit);
	}
}

static void remove_work(void)
{
	rmdir(work);
}

static void prepare(void)
{
	const char *folder = getenv("TICKMAP_EMIT_FUZZ_KEEP");

	keep = folder;
	no_moves = getenv("TICKMAP_EMIT_FUZZ_NO_MOVES");
	snprintf(work, sizeof(work), "%s",
		 keep ? folder : "/tmp/tickmap-fuzz-XXXXXX");
	if (!keep && !mkdtemp(work))
		abort();
	if (!keep)
		atexit(remove_work);
	/* A write at the limit must not get that far. */
	signal(SIGXFSZ, SIG_DFL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	struct tickmap_emit *emit = NULL;

	if (!work[0])
		prepare();
	run(&in, &emit, 0);
	close_and_check(&emit);
	limit_files(NO_LIMIT);
	return 0;
}

#ifdef EMIT_FUZZ_ONCE

/* Each file once. */
int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		size_t size;
		uint8_t *bytes = strict_slurp(argv[i], &size);

		if (!bytes)
			return 2;
		LLVMFuzzerTestOneInput(bytes, size);
		free(bytes);
	}
	return 0;
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The emit library on any machine, without a test framework, so that it can be
 * cross-compiled and run by qemu: every record in this machine's byte order,
 * threads, fork, and, where the toy JIT has an assembler, the published frames
 * against libgcc's unwinder.
 *
 *	portable DIR EM_NUMBER
 */
#include "../../examples/toyjit/toyjit.h"
#include "strict.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unwind.h>

#define THREADS 4
#define PER_THREAD 200

#define CHECK(condition)                                                       \
	do {                                                                   \
		if (!(condition)) {                                            \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__,     \
				#condition);                                   \
			exit(1);                                               \
		}                                                              \
	} while (0)

static const char *dir;
static uint32_t machine;

static struct tickmap_emit *open_emit(uint32_t sinks, uint32_t flags)
{
	struct tickmap_emit_options options = TICKMAP_EMIT_OPTIONS_INIT;
	struct tickmap_emit *emit;

	options.sinks = sinks;
	options.flags = flags;
	options.dir = dir;
	CHECK(!tickmap_emit_open(&options, &emit));
	return emit;
}

static void read_back(const char *path, struct strict_dump *dump)
{
	const char *why = strict_read_dump(path, false, dump);

	if (why)
		fprintf(stderr, "%s: %s\n", path, why);
	CHECK(!why);
	CHECK(dump->machine == machine);
	CHECK(dump->pid == (uint32_t)getpid());
}

static const struct tickmap_line lines[] = { { 0, 7, 3, NULL },
					     { 4, 9, 0, "other.c" } };
static const uint8_t bytes[16] = { 1, 2, 3, 4, 5, 6, 7, 8 };

static struct tickmap_code a_code(const char *name, uint64_t addr)
{
	struct tickmap_code code = TICKMAP_CODE_INIT;

	code.addr = addr;
	code.bytes = bytes;
	code.code_size = sizeof(bytes);
	code.name = name;
	code.file = "file.c";
	code.lines = lines;
	code.line_count = 2;
	return code;
}

static void check_every_record(void)
{
	struct tickmap_emit *emit = open_emit(
		TICKMAP_EMIT_JITDUMP | TICKMAP_EMIT_PERF_MAP | TICKMAP_EMIT_GDB,
		0);
	struct tickmap_code code = a_code("first", 0x123456789abcdef0);
	struct tickmap_unwind unwind;
	struct strict_dump dump;
	struct strict_map map;
	char path[512];

	CHECK(!tickmap_unwind_rules(&unwind, 183, NULL, 0));
	code.unwind = &unwind;
	CHECK(!tickmap_emit_code(emit, &code));
	CHECK(!tickmap_emit_move(emit, code.addr, 0x4000, sizeof(bytes), 1));
	code = a_code("se\ncond\xff", 0x10);
	code.name_length = 8;
	code.line_count = 0;
	code.bytes = NULL;
	CHECK(!tickmap_emit_code(emit, &code));
	CHECK(!tickmap_emit_remove(emit, 0x10));
	snprintf(path, sizeof(path), "%s",
		 tickmap_emit_path(emit, TICKMAP_EMIT_JITDUMP));
	CHECK(!strict_read_map(tickmap_emit_path(emit, TICKMAP_EMIT_PERF_MAP),
			       false, &map));
	CHECK(map.count == 2 && map.lines[0].addr == 0x123456789abcdef0);
	CHECK(!strcmp(map.lines[1].name, "se?cond\xff"));
	strict_free_map(&map);
	CHECK(!tickmap_emit_close(emit));

	read_back(path, &dump);
	CHECK(dump.code_count == 2 && dump.move_count == 1 && dump.closed);
	CHECK(dump.codes[0].addr == 0x123456789abcdef0);
	CHECK(!memcmp(dump.codes[0].bytes, bytes, sizeof(bytes)));
	CHECK(dump.codes[0].line_count == 3);
	CHECK(dump.codes[0].lines[1].line == 9);
	CHECK(dump.codes[0].lines[0].column == 3);
	CHECK(!strcmp(dump.codes[0].lines[0].file, "file.c"));
	CHECK(dump.codes[0].unwinding_size == unwind.frame_size + 20);
	CHECK(dump.codes[0].tid == (uint32_t)syscall(SYS_gettid));
	CHECK(dump.moves[0].new_addr == 0x4000 && dump.moves[0].index == 1);
	CHECK(!strcmp(dump.codes[1].name, "se?cond\xff"));
	CHECK(dump.codes[1].index == 2 && dump.codes[1].size == sizeof(bytes));
	strict_free_dump(&dump);
	remove(path);
}

static void *publish_many(void *arg)
{
	struct tickmap_code code = a_code("threads", 0x1000);

	for (size_t i = 0; i < PER_THREAD; i++)
		CHECK(!tickmap_emit_code(arg, &code));
	return NULL;
}

static void check_threads(void)
{
	struct tickmap_emit *emit = open_emit(TICKMAP_EMIT_JITDUMP, 0);
	pthread_t threads[THREADS];
	struct strict_dump dump;
	char path[512];

	snprintf(path, sizeof(path), "%s",
		 tickmap_emit_path(emit, TICKMAP_EMIT_JITDUMP));
	for (size_t i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&threads[i], NULL, publish_many, emit));
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	CHECK(!tickmap_emit_close(emit));
	read_back(path, &dump);
	CHECK(dump.code_count == THREADS * PER_THREAD);
	strict_free_dump(&dump);
	remove(path);
}

static void in_child(struct tickmap_emit *emit)
{
	struct tickmap_code code = a_code("child", 0x9000);
	struct strict_dump dump;
	char path[512];

	CHECK(tickmap_emit_code(emit, &code) == TICKMAP_EMIT_E_FORKED);
	CHECK(!tickmap_emit_after_fork(emit));
	CHECK(!tickmap_emit_code(emit, &code));
	snprintf(path, sizeof(path), "%s",
		 tickmap_emit_path(emit, TICKMAP_EMIT_JITDUMP));
	CHECK(!tickmap_emit_close(emit));
	read_back(path, &dump);
	CHECK(dump.code_count == 2);
	CHECK(!strcmp(dump.codes[0].name, "inherited"));
	CHECK(dump.codes[0].pid == (uint32_t)getpid());
	CHECK(!strcmp(dump.codes[1].name, "child"));
	strict_free_dump(&dump);
	remove(path);
	exit(0);
}

static void check_fork(void)
{
	struct tickmap_emit *emit =
		open_emit(TICKMAP_EMIT_JITDUMP, TICKMAP_EMIT_REPUBLISH);
	struct tickmap_code code = a_code("inherited", 0x8000);
	struct strict_dump dump;
	char path[512];
	int status;
	pid_t pid;

	snprintf(path, sizeof(path), "%s",
		 tickmap_emit_path(emit, TICKMAP_EMIT_JITDUMP));
	CHECK(!tickmap_emit_code(emit, &code));
	pid = fork();
	if (!pid)
		in_child(emit);
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
	      !WEXITSTATUS(status));
	CHECK(!tickmap_emit_close(emit));
	read_back(path, &dump);
	CHECK(dump.code_count == 1);
	strict_free_dump(&dump);
	remove(path);
}

#if defined(__x86_64__) || defined(__aarch64__)

extern void __register_frame(void *begin);
extern void __deregister_frame(void *begin);

int main(int argc, char **argv);

static struct toy toy;
static struct toy_function functions[3];
static size_t probes;

struct walk {
	uint8_t ids[TOY_DEPTH + 1];
	size_t count;
	bool reached_main;
};

static uint8_t id_at(uintptr_t pc)
{
	for (size_t i = 0; i < 3; i++) {
		if (pc - (uintptr_t)functions[i].code < functions[i].size)
			return functions[i].id;
	}
	return pc - (uintptr_t)toy.enter.code < toy.enter.size ? TOY_ENTER_ID
							       : 0;
}

static _Unwind_Reason_Code look_at_frame(struct _Unwind_Context *context,
					 void *arg)
{
	struct walk *walk = arg;
	uintptr_t pc = _Unwind_GetIP(context);
	int (*entry)(int, char **) = main;
	void *function = _Unwind_FindEnclosingFunction((void *)(pc - 1));
	uint8_t id = id_at(pc - 1);

	if (id && walk->count <= TOY_DEPTH)
		walk->ids[walk->count++] = id;
	if (!memcmp(&entry, &function, sizeof(function)))
		walk->reached_main = true;
	return _URC_NO_REASON;
}

static void probe(uint64_t true_stack)
{
	uint8_t ids[TOY_DEPTH + 1];
	size_t count = 0;
	struct walk walk = { 0 };

	for (uint64_t rest = true_stack; rest; rest >>= 8)
		ids[count++] = (uint8_t)rest;
	_Unwind_Backtrace(look_at_frame, &walk);
	if (walk.count != 4)
		fprintf(stderr, "%zu frames of %016" PRIx64 "\n", walk.count,
			true_stack);
	CHECK(walk.count == count);
	CHECK(!memcmp(ids, walk.ids, walk.count));
	CHECK(walk.reached_main);
	probes++;
}

/* The published frames, behind their code, where they say they are. */
static void lay_out(const struct strict_dump *dump, bool registered)
{
	for (size_t i = 0; i < dump->code_count; i++) {
		const struct strict_code *code = &dump->codes[i];
		uint8_t *frame =
			(uint8_t *)(uintptr_t)(code->addr +
					       (code->size + 7) / 8 * 8);
		size_t size = code->unwinding_size - 20;

		if (registered) {
			memcpy(frame, code->unwinding, size);
			memset(frame + size, 0, 4);
			__register_frame(frame);
		} else {
			__deregister_frame(frame);
		}
	}
}

static void check_toy(uint32_t frame, bool is_signed)
{
	struct tickmap_emit *emit = open_emit(TICKMAP_EMIT_JITDUMP, 0);
	struct strict_dump dump;
	char path[512];

	CHECK(!toy_open(&toy, emit));
	for (size_t i = 3; i--;) {
		functions[i] = (struct toy_function) {
			.id = (uint8_t)(i + 1),
			.frame = i == 1 ? TICKMAP_UNWIND_FRAME_POINTER : frame,
			.is_signed = is_signed,
			.spins = 10,
			.callee = i == 2 ? NULL : &functions[i + 1],
			.probe = i == 2 ? probe : NULL,
		};
		CHECK(!toy_compile(&toy, &functions[i]));
	}
	snprintf(path, sizeof(path), "%s",
		 tickmap_emit_path(emit, TICKMAP_EMIT_JITDUMP));
	CHECK(!tickmap_emit_close(emit));
	read_back(path, &dump);
	CHECK(dump.code_count == 4);
	lay_out(&dump, true);
	toy_run(&toy, &functions[0]);
	toy_run(&toy, &functions[0]);
	lay_out(&dump, false);
	strict_free_dump(&dump);
	remove(path);
	toy_close(&toy);
}

static void check_toys(void)
{
	check_toy(TICKMAP_UNWIND_FRAME_POINTER, false);
	check_toy(TICKMAP_UNWIND_FIXED, false);
	check_toy(TICKMAP_UNWIND_FRAME_POINTER, true);
	check_toy(TICKMAP_UNWIND_FIXED, true);
	CHECK(probes == 8);
	printf("%zu true stacks unwound\n", probes);
}

#else

static void check_toys(void)
{
	puts("no toy for this machine");
}

#endif

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	dir = argv[1];
	machine = (uint32_t)strtoul(argv[2], NULL, 10);
	check_every_record();
	check_threads();
	check_fork();
	check_toys();
	puts("good");
	return 0;
}

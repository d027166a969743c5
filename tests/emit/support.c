/* SPDX-License-Identifier: MIT */
#include "support.h"

#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

int make_scratch(void **state)
{
	char path[] = "/tmp/tickmap-emit-XXXXXX";

	*state = mkdtemp(path) ? strdup(path) : NULL;
	return *state ? 0 : -1;
}

static int remove_entry(const char *path, const struct stat *st, int type,
			struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

int remove_scratch(void **state)
{
	chmod(*state, 0700);
	nftw(*state, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
	free(*state);
	return 0;
}

int open_emit(const char *dir, uint32_t sinks, uint32_t flags,
	      struct tickmap_emit **ret_emit)
{
	struct tickmap_emit_options options = TICKMAP_EMIT_OPTIONS_INIT;

	options.sinks = sinks;
	options.flags = flags;
	options.dir = dir;
	return tickmap_emit_open(&options, ret_emit);
}

struct tickmap_code small_code(const char *name)
{
	static const uint8_t bytes[] = { 0x55, 0x48, 0x89, 0xe5, 0x90,
					 0x5d, 0xc3, 0xcc, 0xcc };
	struct tickmap_code code = TICKMAP_CODE_INIT;

	code.addr = 0x1000;
	code.bytes = bytes;
	code.code_size = sizeof(bytes);
	code.name = name;
	return code;
}

void read_dump(const char *path, struct strict_dump *ret_dump)
{
	const char *why = strict_read_dump(path, false, ret_dump);

	if (why)
		fail_msg("%s: %s", path, why);
}

void read_map(const char *path, struct strict_map *ret_map)
{
	const char *why = strict_read_map(path, false, ret_map);

	if (why)
		fail_msg("%s: %s", path, why);
}

const char *in_dir(const char *dir, const char *name)
{
	static char paths[8][512];
	static unsigned int next;
	char *path = paths[next++ % 8];

	snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
	return path;
}

const char *dump_in(const char *dir)
{
	char name[32];

	snprintf(name, sizeof(name), "jit-%d.dump", getpid());
	return in_dir(dir, name);
}

const char *map_in(const char *dir)
{
	char name[32];

	snprintf(name, sizeof(name), "perf-%d.map", getpid());
	return in_dir(dir, name);
}

void write_text(const char *path, const char *text)
{
	FILE *file = fopen(path, "we");

	if (file) {
		fputs(text, file);
		fclose(file);
	}
}

bool holds_text(const char *path, const char *text)
{
	size_t size;
	uint8_t *bytes = strict_slurp(path, &size);
	bool same = bytes && size == strlen(text) && !memcmp(bytes, text, size);

	free(bytes);
	return same;
}

int check_failed(const char *file, int line, const char *condition)
{
	fprintf(stderr, "%s:%d: %s\n", file, line, condition);
	return 1;
}

int run_in_child(int (*work)(const char *dir), const char *dir)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		/* A child that hangs is a failure, not a hanging test. */
		alarm(60);
		_exit(work(dir));
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

void assert_child(int (*work)(const char *dir), const char *dir,
		  const char *skip_reason)
{
	int outcome = run_in_child(work, dir);

	if (outcome == SKIPPED) {
		print_message("skipped: %s\n", skip_reason);
		skip();
	}
	assert_int_equal(outcome, 0);
}

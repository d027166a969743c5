/* SPDX-License-Identifier: MIT */
#include "codemap.h"

#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK = 256 << 10 };

static int fail(const struct tickmap_file *file, int os_errno, const char *what)
{
	struct tickmap_error err = { 0 };

	tickmap_fail_os(&err, os_errno, what);
	tickmap_error_source(&err, file->path);
	return tickmap_cli_error(&err, NULL);
}

/* A perf map is text: no NUL in front. One that is empty is one, too. */
static enum tickmap_file_kind kind_of(const uint8_t *head, unsigned size)
{
	if (tickmap_jitdump_is(head, size))
		return TICKMAP_FILE_JITDUMP;
	if (size == 8 &&
	    (!memcmp(head, "PERFILE2", 8) || !memcmp(head, "2ELIFREP", 8)))
		return TICKMAP_FILE_RECORDING;
	/* A file cut short under its writer has a hole of zeros. */
	while (size && !*head) {
		head++;
		size--;
	}
	for (unsigned i = 0; i < size; i++)
		if ((head[i] < 0x20 && head[i] != '\t' && head[i] != '\n' &&
		     head[i] != '\r') ||
		    head[i] == 0x7f)
			return TICKMAP_FILE_OTHER;
	return TICKMAP_FILE_PERFMAP;
}

int tickmap_file_open(struct tickmap_file *file, const char *path)
{
	struct stat st;

	memset(file, 0, sizeof(*file));
	file->path = strcmp(path, "-") ? path : "standard input";
	file->fd = strcmp(path, "-")
			   ? open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY)
			   : STDIN_FILENO;
	if (file->fd < 0)
		return fail(file, errno, "cannot open");
	if (fstat(file->fd, &st) == 0 && S_ISDIR(st.st_mode)) {
		int code = fail(file, EISDIR, "cannot read");
		tickmap_file_close(file);
		return code;
	}
	if (S_ISREG(st.st_mode))
		file->size = (uint64_t)st.st_size;
	while (file->head_size < sizeof(file->head)) {
		ssize_t got = read(file->fd, file->head + file->head_size,
				   sizeof(file->head) - file->head_size);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			int code = fail(file, errno, "cannot read");
			tickmap_file_close(file);
			return code;
		}
		if (!got)
			break;
		file->head_size += (unsigned)got;
	}
	file->kind = kind_of(file->head, file->head_size);
	return TICKMAP_EXIT_DONE;
}

int tickmap_file_refuse(const struct tickmap_file *file, const char *command)
{
	bool recording = file->kind == TICKMAP_FILE_RECORDING;
	struct tickmap_error err = { 0 };

	tickmap_fail(&err, TICKMAP_E_UNSUPPORTED, 0,
		     recording ? "this is a recording, not a code map"
			       : "neither a jitdump nor a perf map");
	tickmap_error_source(&err, file->path);
	tickmap_cli_error(&err, NULL);
	if (recording)
		fprintf(stderr,
			"its code maps are judged by: tickmap lint %s\n",
			file->path);
	else
		fprintf(stderr, "try: tickmap help %s\n", command);
	return TICKMAP_EXIT_INPUT;
}

int tickmap_file_no_entry(const struct tickmap_file *file)
{
	struct tickmap_error err = { 0 };

	tickmap_fail(&err, TICKMAP_E_FORMAT, 0,
		     "no line of it is an entry of a perf map");
	tickmap_error_source(&err, file->path);
	return tickmap_cli_error(&err, NULL);
}

long tickmap_file_read(struct tickmap_file *file, void *bytes, size_t size)
{
	unsigned head = file->head_size - file->head_done;
	ssize_t got;

	if (head) {
		if (head > size)
			head = (unsigned)size;
		memcpy(bytes, file->head + file->head_done, head);
		file->head_done += head;
		return head;
	}
	do
		got = read(file->fd, bytes, size);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		fail(file, errno, "cannot read");
	return (long)got;
}

static int no_memory(const struct tickmap_file *file)
{
	struct tickmap_error err = { 0 };

	tickmap_fail(&err, TICKMAP_E_NOMEM, 0, "out of memory");
	tickmap_error_source(&err, file->path);
	return tickmap_cli_error(&err, NULL);
}

static int feed_all(struct tickmap_file *file, uint8_t *block,
		    struct tickmap_jitdump *dump, struct tickmap_perfmap *map)
{
	long got;

	while ((got = tickmap_file_read(file, block, BLOCK)) > 0) {
		bool good =
			dump ? tickmap_jitdump_feed(dump, block, (size_t)got)
			     : tickmap_perfmap_feed(map, block, (size_t)got, 0);
		if (!good)
			return no_memory(file);
	}
	if (got < 0)
		return TICKMAP_EXIT_ENVIRONMENT;
	if (dump)
		tickmap_jitdump_end(dump);
	else
		tickmap_perfmap_end(map, 0);
	return TICKMAP_EXIT_DONE;
}

int tickmap_file_feed(struct tickmap_file *file,
		      const struct tickmap_code_handler *handler,
		      struct tickmap_jitdump **ret_dump)
{
	struct tickmap_jitdump *dump = NULL;
	struct tickmap_perfmap *map = NULL;
	uint8_t *block = malloc(BLOCK);
	int code = TICKMAP_EXIT_ENVIRONMENT;

	if (file->kind == TICKMAP_FILE_JITDUMP)
		dump = tickmap_jitdump_new(handler);
	else
		map = tickmap_perfmap_new(handler);
	if (ret_dump)
		*ret_dump = dump;
	if (block && (dump || map))
		code = feed_all(file, block, dump, map);
	else
		no_memory(file);
	free(block);
	tickmap_perfmap_free(map);
	if (!ret_dump)
		tickmap_jitdump_free(dump);
	return code;
}

int tickmap_file_slurp(struct tickmap_file *file, uint8_t **ret_bytes,
		       size_t *ret_size)
{
	size_t room = file->size ? (size_t)file->size + 1 : BLOCK, used = 0;
	uint8_t *bytes = malloc(room), *more;
	long got = -1;

	while (bytes &&
	       (got = tickmap_file_read(file, bytes + used, room - used)) > 0) {
		used += (size_t)got;
		if (used < room)
			continue;
		more = room > SIZE_MAX / 2 ? NULL : realloc(bytes, room * 2);
		if (!more)
			break;
		bytes = more;
		room *= 2;
	}
	if (bytes && got == 0) {
		*ret_bytes = bytes;
		*ret_size = used;
		return TICKMAP_EXIT_DONE;
	}
	if (!bytes || got > 0)
		no_memory(file);
	free(bytes);
	return TICKMAP_EXIT_ENVIRONMENT;
}

void tickmap_file_close(struct tickmap_file *file)
{
	if (file->fd > STDIN_FILENO)
		close(file->fd);
	file->fd = -1;
}

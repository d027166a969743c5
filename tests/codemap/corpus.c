/* SPDX-License-Identifier: MIT */
#include "corpus.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static _Noreturn void give_up(const char *path, const char *why)
{
	fprintf(stderr, "%s: %s\n", path, why);
	abort();
}

const char *corpus_folder(void)
{
	const char *folder = getenv("TICKMAP_CORPUS");
	return folder && *folder ? folder : NULL;
}

static uint8_t *read_all(FILE *file, const char *path, size_t *ret_size)
{
	size_t size = 0, capacity = 1 << 16;
	uint8_t *bytes = malloc(capacity);

	while (bytes) {
		size_t n = fread(bytes + size, 1, capacity - size - 1, file);
		size += n;
		if (!n)
			break;
		if (size + 1 == capacity)
			bytes = realloc(bytes, capacity *= 2);
	}
	if (!bytes)
		give_up(path, "out of memory");
	bytes[size] = 0;
	*ret_size = size;
	return bytes;
}

static uint8_t *unpack(const char *path, size_t *ret_size)
{
	uint8_t *bytes;
	int ends[2], status;
	pid_t child;
	FILE *file;

	if (pipe(ends))
		give_up(path, strerror(errno));
	child = fork();
	if (child < 0)
		give_up(path, strerror(errno));
	if (!child) {
		dup2(ends[1], STDOUT_FILENO);
		close(ends[0]);
		close(ends[1]);
		execlp("xz", "xz", "-dc", "--", path, (char *)NULL);
		_exit(127);
	}
	close(ends[1]);
	file = fdopen(ends[0], "rb");
	bytes = read_all(file, path, ret_size);
	fclose(file);
	if (waitpid(child, &status, 0) != child || status)
		give_up(path, "xz failed");
	return bytes;
}

uint8_t *corpus_read(const char *path, size_t *ret_size)
{
	size_t length = strlen(path);
	uint8_t *bytes;
	FILE *file;

	if (length > 3 && !strcmp(path + length - 3, ".xz"))
		return unpack(path, ret_size);
	file = fopen(path, "rb");
	if (!file)
		give_up(path, strerror(errno));
	bytes = read_all(file, path, ret_size);
	fclose(file);
	return bytes;
}

static int column_of(char *header, const char *column)
{
	int i = 0;

	for (char *cell; (cell = strsep(&header, "\t")); i++)
		if (!strcmp(cell, column))
			return i;
	give_up(column, "no such column in the manifest");
}

void corpus_each_case(const char *column, void *context,
		      void (*each)(void *context, const char *name, char *cell))
{
	char path[4096];
	size_t size;
	char *rows, *row, *rest;
	int wanted;

	snprintf(path, sizeof(path), "%s/manifest.tsv", corpus_folder());
	rows = rest = (char *)corpus_read(path, &size);
	wanted = column_of(strsep(&rest, "\n"), column);
	while ((row = strsep(&rest, "\n"))) {
		char *name = strsep(&row, "\t"), *cell = NULL;
		for (int i = 0; row && i < wanted; i++)
			cell = strsep(&row, "\t");
		if (*name && cell)
			each(context, name, cell);
	}
	free(rows);
}

/* SPDX-License-Identifier: MIT */
/*
 * Replays a folder through a fuzz target without a fuzzing engine: every file
 * whole, cut at every length (with a stride for large ones), and with single
 * bytes changed. Fails when the folder holds nothing: a replay of no file
 * proves nothing.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A copy of its own size, so that a sanitizer sees the first byte behind it. */
static void one(const uint8_t *bytes, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);
	if (!copy)
		abort();
	if (size)
		memcpy(copy, bytes, size);
	LLVMFuzzerTestOneInput(copy, size);
	free(copy);
}

static void replay(const char *path)
{
	FILE *file = fopen(path, "rb");
	uint8_t *bytes;
	long size;

	if (!file || fseek(file, 0, SEEK_END) || (size = ftell(file)) < 0 ||
	    fseek(file, 0, SEEK_SET)) {
		perror(path);
		exit(2);
	}
	bytes = malloc((size_t)size + 1);
	if (!bytes || fread(bytes, 1, (size_t)size, file) != (size_t)size)
		exit(2);
	fclose(file);

	size_t n = (size_t)size;
	size_t stride = n / 2000 + 1;
	one(bytes, n);
	for (size_t cut = 0; cut < n; cut += stride)
		one(bytes, cut);
	for (size_t i = 0; i < n; i += stride) {
		static const uint8_t change[] = { 0x01, 0x80, 0xff };
		for (size_t c = 0; c < sizeof(change); c++) {
			bytes[i] ^= change[c];
			one(bytes, n);
			bytes[i] ^= change[c];
		}
	}
	free(bytes);
}

int main(int argc, char **argv)
{
	unsigned files = 0;

	for (int i = 1; i < argc; i++) {
		DIR *dir = opendir(argv[i]);
		if (!dir) {
			perror(argv[i]);
			return 2;
		}
		for (struct dirent *e; (e = readdir(dir));) {
			char path[4096];
			if (e->d_name[0] == '.')
				continue;
			snprintf(path, sizeof(path), "%s/%s", argv[i],
				 e->d_name);
			replay(path);
			files++;
		}
		closedir(dir);
	}
	printf("%u files replayed\n", files);
	return files ? 0 : 1;
}

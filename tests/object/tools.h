/* SPDX-License-Identifier: MIT */
/* Other tools' answers, and files that they make for a test. */
#ifndef TESTS_OBJECT_TOOLS_H
#define TESTS_OBJECT_TOOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Runs a shell command that must succeed. */
void must_run(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Its output, line by line; ends with pclose. */
FILE *must_open(const char *format, ...) __attribute__((format(printf, 1, 2)));

bool have_tool(const char *name);

/* A new folder; remove_folder removes it with all it holds. */
void make_folder(char out[64]);
void remove_folder(const char *folder);
void write_text(const char *path, const char *text);

/* The whole file, malloced; the size goes to ret_size. */
uint8_t *read_all(const char *path, size_t *ret_size);
void write_all(const char *path, const void *bytes, size_t size);

/* Symbols of functions that readelf lists with a size, by address. */
struct listed {
	uint64_t svma, size;
	char *name; /* without a version */
};
struct listing {
	struct listed *items;
	size_t count;
	bool symtab; /* not only dynamic ones */
};

/* Of the file and, if there is one, of its debug file. */
struct listing list_functions(const char *path, const char *debug_path);
void free_listing(struct listing *listing);

/*
 * The naive answer: among all functions that hold svma the one that starts last
 * and, of those, ends first. True if `name` is one of its names; `ret_any` says
 * whether any holds svma.
 */
bool listing_agrees(const struct listing *listing, uint64_t svma,
		    const char *name, bool *ret_any);

/* The separate debug file by build id in the system's folder, or "". */
void system_debug_file(const char *path, char *out, size_t size);

#endif

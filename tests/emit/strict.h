/* SPDX-License-Identifier: MIT */
/*
 * A reader of its own for the emit tests: it knows the formats from their
 * description, shares no code with the product and forgives nothing.
 */
#ifndef TESTS_EMIT_STRICT_H
#define TESTS_EMIT_STRICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct strict_line {
	uint64_t addr;
	uint32_t line;
	uint32_t column;
	const char *file;
};

struct strict_code {
	uint64_t ns;
	uint32_t pid;
	uint32_t tid;
	uint64_t addr;
	uint64_t size;
	uint64_t index;
	const char *name;
	const uint8_t *bytes;
	size_t line_count; /* of a debug record; 0: there was none */
	const struct strict_line *lines;
	const uint8_t *unwinding; /* NULL: there was none */
	uint64_t unwinding_size;
	uint64_t eh_frame_hdr_size;
	uint64_t mapped_size;
};

struct strict_move {
	uint64_t old_addr;
	uint64_t new_addr;
	uint64_t size;
	uint64_t index;
};

#define STRICT_MOVES 1024

struct strict_dump {
	uint32_t machine;
	uint32_t pid;
	uint64_t ns;
	size_t code_count;
	struct strict_code *codes;
	size_t move_count;
	struct strict_move moves[STRICT_MOVES];
	bool closed;
	bool cut; /* the last record is incomplete */
	/* private */
	uint8_t *bytes;
	size_t size;
	struct strict_line *lines;
};

/* Returns NULL, or what is wrong. `may_be_cut`: the writer was killed. */
const char *strict_read_dump(const char *path, bool may_be_cut,
			     struct strict_dump *ret_dump);
void strict_free_dump(struct strict_dump *dump);

struct strict_map_line {
	uint64_t addr;
	uint64_t size;
	char *name;
};

struct strict_map {
	size_t count;
	struct strict_map_line *lines;
	char *bytes;
};

const char *strict_read_map(const char *path, bool may_be_cut,
			    struct strict_map *ret_map);
void strict_free_map(struct strict_map *map);

uint8_t *strict_slurp(const char *path, size_t *ret_size);

#endif

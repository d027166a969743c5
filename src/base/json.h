/* SPDX-License-Identifier: MIT */
/*
 * A streaming JSON writer: profiles are larger than a document tree should be.
 * Commas and nesting are its business. Strings may hold any bytes: what is not
 * UTF-8 becomes U+FFFD, control bytes are escaped.
 */
#ifndef TICKMAP_BASE_JSON_H
#define TICKMAP_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct tickmap_json {
	FILE *out; /* borrowed; errors stay in ferror(out) */
	bool comma;
};

void tickmap_json_open(struct tickmap_json *json, char bracket);
void tickmap_json_close(struct tickmap_json *json, char bracket);
void tickmap_json_key(struct tickmap_json *json, const char *key);
void tickmap_json_string(struct tickmap_json *json, const char *bytes,
			 size_t length);
void tickmap_json_text(struct tickmap_json *json, const char *text);
void tickmap_json_u64(struct tickmap_json *json, uint64_t value);
void tickmap_json_i64(struct tickmap_json *json, int64_t value);
void tickmap_json_double(struct tickmap_json *json, double value);
void tickmap_json_bool(struct tickmap_json *json, bool value);
void tickmap_json_null(struct tickmap_json *json);

#endif

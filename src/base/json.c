/* SPDX-License-Identifier: MIT */
#include "base/json.h"

#include "base/utf8.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static void value_follows(struct tickmap_json *json)
{
	if (json->comma)
		putc(',', json->out);
	json->comma = true;
}

void tickmap_json_open(struct tickmap_json *json, char bracket)
{
	value_follows(json);
	putc(bracket, json->out);
	json->comma = false;
}

void tickmap_json_close(struct tickmap_json *json, char bracket)
{
	putc(bracket, json->out);
	json->comma = true;
}

void tickmap_json_key(struct tickmap_json *json, const char *key)
{
	tickmap_json_text(json, key);
	putc(':', json->out);
	json->comma = false;
}

void tickmap_json_string(struct tickmap_json *json, const char *bytes,
			 size_t length)
{
	value_follows(json);
	putc('"', json->out);
	for (size_t i = 0; i < length;) {
		unsigned char c = (unsigned char)bytes[i];
		size_t n = tickmap_utf8_length(bytes + i, length - i);

		if (n == 0) {
			fputs("\\ufffd", json->out);
			i++;
			continue;
		}
		/* '<' is escaped so that a page may hold the text in a script.
		 */
		if (c == '"' || c == '\\')
			fprintf(json->out, "\\%c", c);
		else if (c < 0x20 || c == 0x7f || c == '<')
			fprintf(json->out, "\\u%04x", c);
		else
			fwrite(bytes + i, 1, n, json->out);
		i += n;
	}
	putc('"', json->out);
}

void tickmap_json_text(struct tickmap_json *json, const char *text)
{
	tickmap_json_string(json, text, strlen(text));
}

void tickmap_json_u64(struct tickmap_json *json, uint64_t value)
{
	value_follows(json);
	fprintf(json->out, "%" PRIu64, value);
}

void tickmap_json_i64(struct tickmap_json *json, int64_t value)
{
	value_follows(json);
	fprintf(json->out, "%" PRId64, value);
}

void tickmap_json_double(struct tickmap_json *json, double value)
{
	value_follows(json);
	if (isfinite(value))
		fprintf(json->out, "%.17g", value);
	else
		fputs("null", json->out);
}

void tickmap_json_bool(struct tickmap_json *json, bool value)
{
	value_follows(json);
	fputs(value ? "true" : "false", json->out);
}

void tickmap_json_null(struct tickmap_json *json)
{
	value_follows(json);
	fputs("null", json->out);
}

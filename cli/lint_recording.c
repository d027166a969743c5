/* SPDX-License-Identifier: MIT */
/*
 * The code maps of a recording: those that it carries are judged as they are;
 * of those that it only names it is said what to type.
 */
#include "lint.h"

#include "base/bytes.h"
#include "base/table.h"
#include "base/vec.h"
#include "capture/perfdata.h"
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct carried {
	uint32_t pid, file_id;
	bool map;
	TICKMAP_VEC(uint8_t) bytes; /* of the file */
	char path[256];
};

struct named {
	char path[256];
};

struct recording {
	TICKMAP_VEC(struct carried) carried;
	TICKMAP_VEC(struct named) named;
	struct tickmap_table places; /* in `carried`, from 1 on: by pid, file */
	struct tickmap_table known;  /* named paths */
	bool no_memory;
};

static struct carried *find(struct recording *r,
			    const struct tickmap_note *note)
{
	uint64_t *place = tickmap_table_put(
		&r->places, (uint64_t)note->pid << 32 | note->file_id);
	struct carried *c;

	if (place && *place)
		return &r->carried.items[*place - 1];
	c = place ? tickmap_vec_push(&r->carried) : NULL;
	if (!c) {
		r->no_memory = true;
		return NULL;
	}
	*place = r->carried.count;
	memset(c, 0, sizeof(*c));
	c->pid = note->pid;
	c->file_id = note->file_id;
	snprintf(c->path, sizeof(c->path), "code map of pid %u", c->pid);
	return c;
}

static void take_note(struct recording *r, const struct tickmap_note *note)
{
	struct carried *c;

	if (note->kind != TICKMAP_NOTE_JITDUMP &&
	    note->kind != TICKMAP_NOTE_PERF_MAP &&
	    note->kind != TICKMAP_NOTE_CODE_MAP_PATH)
		return;
	c = find(r, note);
	if (!c)
		return;
	if (note->kind == TICKMAP_NOTE_CODE_MAP_PATH) {
		snprintf(c->path, sizeof(c->path), "%.*s", (int)note->size,
			 (const char *)note->bytes);
		return;
	}
	c->map = note->kind == TICKMAP_NOTE_PERF_MAP;
	if (!tickmap_vec_reserve(&c->bytes, c->bytes.count + note->size)) {
		r->no_memory = true;
		return;
	}
	memcpy(c->bytes.items + c->bytes.count, note->bytes, note->size);
	c->bytes.count += note->size;
}

/* "…/jit-NUMBERS.dump": the marker of a dump. */
static bool is_marker(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *base = slash ? slash + 1 : path;
	size_t length = strlen(base);

	return length > 9 && !strncmp(base, "jit-", 4) &&
	       !strcmp(base + length - 5, ".dump");
}

static void take_mapping(struct recording *r,
			 const struct tickmap_perfdata_record *record)
{
	struct tickmap_bytes b = tickmap_bytes_of(record->bytes, record->size);
	const char *path;
	struct named *named;
	uint64_t *known;

	tickmap_seek(&b, record->type == PERF_RECORD_MMAP ? 40 : 72);
	path = tickmap_cstr(&b, NULL);
	if (!path || !is_marker(path))
		return;
	known = tickmap_table_put(&r->known, tickmap_hash(path, strlen(path)));
	if (known && *known)
		return;
	named = known ? tickmap_vec_push(&r->named) : NULL;
	if (!named) {
		r->no_memory = true;
		return;
	}
	*known = 1;
	snprintf(named->path, sizeof(named->path), "%s", path);
}

static void take_record(struct recording *r,
			const struct tickmap_perfdata_record *record)
{
	struct tickmap_note note;

	if (record->type == TICKMAP_RECORD_NOTE &&
	    tickmap_note_decode(record, &note) == TICKMAP_OK)
		take_note(r, &note);
	else if (record->type == PERF_RECORD_MMAP ||
		 record->type == PERF_RECORD_MMAP2)
		take_mapping(r, record);
}

static int read_all(struct recording *r, const char *path)
{
	struct tickmap_error err = { 0 };
	struct tickmap_perfdata *data;
	struct tickmap_perfdata_record record;
	int more = 0;

	if (tickmap_perfdata_open(path, &data, &err) < 0)
		return tickmap_cli_error(&err, NULL);
	while (!r->no_memory &&
	       (more = tickmap_perfdata_next(data, &record, &err)) > 0)
		take_record(r, &record);
	tickmap_perfdata_close(data);
	if (!r->no_memory && more >= 0)
		return TICKMAP_EXIT_DONE;
	if (r->no_memory)
		tickmap_fail(&err, TICKMAP_E_NOMEM, 0, "out of memory");
	return tickmap_cli_error(&err, NULL);
}

static void judge(struct tickmap_lint *lint, const struct carried *c,
		  const char *recording)
{
	struct tickmap_code_handler handler = tickmap_lint_handler(lint);
	char path[600];
	struct tickmap_jitdump *dump = NULL;
	struct tickmap_perfmap *map = NULL;

	snprintf(path, sizeof(path), "%s(%s)", recording, c->path);
	lint->path = path;
	if (c->map && (map = tickmap_perfmap_new(&handler))) {
		tickmap_perfmap_feed(map, c->bytes.items, c->bytes.count, 0);
		tickmap_perfmap_end(map, 0);
	} else if (!c->map && (dump = tickmap_jitdump_new(&handler))) {
		tickmap_jitdump_feed(dump, c->bytes.items, c->bytes.count);
		tickmap_jitdump_end(dump);
	}
	tickmap_lint_sum(lint, dump);
	tickmap_jitdump_free(dump);
	tickmap_perfmap_free(map);
	lint->path = recording;
}

static int judge_all(struct tickmap_lint *lint, struct recording *r,
		     const char *path)
{
	for (size_t i = 0; i < r->carried.count; i++)
		if (r->carried.items[i].bytes.count)
			judge(lint, &r->carried.items[i], path);
	if (r->carried.count)
		return TICKMAP_EXIT_DONE;
	if (!r->named.count) {
		tickmap_cli_say("%s: no code map in it, and none named by it",
				path);
		fprintf(stderr, "perf maps lie in /tmp; try: tickmap lint "
				"/tmp/perf-PID.map\n");
		return TICKMAP_EXIT_FINDINGS;
	}
	tickmap_cli_say("%s: carries no code map, but names %zu", path,
			r->named.count);
	for (size_t i = 0; i < r->named.count; i++)
		fprintf(stderr, "try: tickmap lint %s\n",
			r->named.items[i].path);
	return TICKMAP_EXIT_FINDINGS;
}

int tickmap_lint_recording(struct tickmap_lint *lint, const char *path)
{
	struct recording r = { .no_memory = false };
	int code = read_all(&r, path);

	if (code == TICKMAP_EXIT_DONE)
		code = judge_all(lint, &r, path);
	for (size_t i = 0; i < r.carried.count; i++)
		tickmap_vec_free(&r.carried.items[i].bytes);
	tickmap_vec_free(&r.carried);
	tickmap_vec_free(&r.named);
	tickmap_table_free(&r.places);
	tickmap_table_free(&r.known);
	return code;
}

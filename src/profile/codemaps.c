/* SPDX-License-Identifier: MIT */
/*
 * Code maps -> one list of code events. They are applied when all processes
 * are known, because chunks and sideband interleave in any order.
 */
#include "profile/load.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Flag of a jitdump's header: times are ticks of the CPU's counter. */
enum { ARCH_TIMESTAMP = 1 };

/* What a parser's callbacks get: sources move in memory, this does not. */
struct tickmap_feeding {
	struct tickmap_loader *loader;
	uint32_t source;
	struct tickmap_code_handler handler;
};

bool tickmap_codemaps_finding(struct tickmap_loader *loader, const char *id,
			      const char *what, tickmap_str path,
			      uint64_t offset)
{
	tickmap_str name = tickmap_intern_cstr(loader->profile->strings, id);

	for (size_t i = 0; i < loader->oddities.count; i++) {
		if (loader->oddities.items[i].id == name) {
			loader->oddities.items[i].count++;
			return true;
		}
	}
	struct tickmap_oddity *o = tickmap_vec_push(&loader->oddities);
	if (!o)
		return false;
	*o = (struct tickmap_oddity) {
		.id = name,
		.what = tickmap_intern_cstr(loader->profile->strings, what),
		.count = 1,
		.path = path,
		.offset = offset,
	};
	return true;
}

static uint32_t add_code(struct tickmap_loader *loader,
			 const struct tickmap_code_event *event)
{
	struct tickmap_strings *strings = loader->profile->strings;

	if (loader->codes.count >= TICKMAP_NONE - 1)
		return TICKMAP_NONE;
	struct tickmap_code *code = tickmap_vec_push(&loader->codes);
	if (!code)
		return TICKMAP_NONE;
	*code = (struct tickmap_code) {
		.name = tickmap_intern(strings, event->name,
				       event->name_length),
		.line = event->line,
		.frame = TICKMAP_NONE,
		.image = TICKMAP_NONE,
	};
	if (event->eh_frame_size && loader->dwarf_stacks) {
		code->eh_frame =
			tickmap_intern(strings, (const char *)event->eh_frame,
				       event->eh_frame_size);
		code->eh_frame_gap = (event->size + 7) & ~UINT64_C(7);
	}
	if (event->file)
		code->file = tickmap_intern(strings, event->file,
					    event->file_length);
	return (uint32_t)(loader->codes.count - 1);
}

static void note_stamp(struct tickmap_source *source, uint64_t when)
{
	if (when > source->last_ns)
		source->last_ns = when;
	if (when && (!source->first_ns || when < source->first_ns))
		source->first_ns = when;
}

static void on_code(void *context, const struct tickmap_code_event *event)
{
	struct tickmap_feeding *feeding = context;
	struct tickmap_loader *loader = feeding->loader;
	struct tickmap_source *source = &loader->sources.items[feeding->source];
	uint32_t code = TICKMAP_NONE;

	if (event->kind == TICKMAP_CODE_CLOSE || !event->size)
		return;
	note_stamp(source, event->when);
	if (source->perf_map) {
		loader->profile->code_loads++;
		if (!tickmap_maplines_add(loader, source, event))
			loader->no_memory = true;
		return;
	}
	if (tickmap_copies_said(loader, source, event))
		return;
	if (event->kind == TICKMAP_CODE_LOAD) {
		code = add_code(loader, event);
		if (code == TICKMAP_NONE) {
			loader->no_memory = true;
			return;
		}
		loader->profile->code_loads++;
	}
	struct tickmap_code_record *record =
		tickmap_vec_push(&loader->code_records);
	if (!record) {
		loader->no_memory = true;
		return;
	}
	*record = (struct tickmap_code_record) {
		.when = event->when,
		.chunk_ns = source->chunk_ns,
		.avma = event->avma,
		.size = event->size,
		.old_avma = event->old_avma,
		.index = event->code_index,
		.source = feeding->source,
		.code = code,
		.pid = event->pid,
		.kind = (uint8_t)event->kind,
	};
	source->moves |= event->kind == TICKMAP_CODE_MOVE;
}

static void on_finding(void *context, const struct tickmap_finding *finding)
{
	struct tickmap_feeding *feeding = context;
	struct tickmap_loader *loader = feeding->loader;

	/* By what is merely odd nobody loses anything: `lint` says it. */
	if (finding->kind->severity == TICKMAP_INFO)
		return;
	if (!tickmap_codemaps_finding(
		    loader, finding->id, finding->what,
		    loader->sources.items[feeding->source].path,
		    finding->offset))
		loader->no_memory = true;
}

static uint32_t add_source(struct tickmap_loader *loader,
			   const struct tickmap_source *model)
{
	struct tickmap_feeding *feeding = calloc(1, sizeof(*feeding));
	struct tickmap_source *source =
		feeding && loader->sources.count < TICKMAP_NONE - 1
			? tickmap_vec_push(&loader->sources)
			: NULL;

	if (!source) {
		free(feeding);
		return TICKMAP_NONE;
	}
	*feeding = (struct tickmap_feeding) {
		.loader = loader,
		.source = (uint32_t)(loader->sources.count - 1),
		.handler = { .context = feeding,
			     .code = on_code,
			     .finding = on_finding },
	};
	*source = *model;
	source->process = TICKMAP_NONE;
	source->feeding = feeding;
	return feeding->source;
}

static bool open_parser(struct tickmap_source *source)
{
	if (source->dump || source->map)
		return true;
	if (source->perf_map)
		source->map = tickmap_perfmap_new(&source->feeding->handler);
	else
		source->dump = tickmap_jitdump_new(&source->feeding->handler);
	return source->dump || source->map;
}

/* Callbacks may not add sources, so the pointer stays good. */
static void feed(struct tickmap_source *source, const void *bytes, size_t size)
{
	if (source->dead)
		return;
	if (source->perf_map) {
		source->dead = !tickmap_perfmap_feed(source->map, bytes, size,
						     source->chunk_ns);
		return;
	}
	source->dead = !tickmap_jitdump_feed(source->dump, bytes, size);
	const struct tickmap_jitdump_header *header =
		tickmap_jitdump_header(source->dump);
	if (header) {
		source->header_pid = header->pid;
		source->header_stamp = header->timestamp;
		source->arch_clock = header->flags & ARCH_TIMESTAMP;
	}
}

static uint32_t embedded_source(struct tickmap_loader *loader,
				const struct tickmap_note *note)
{
	uint64_t key = (uint64_t)note->pid << 32 | note->file_id;
	uint64_t *slot = tickmap_table_put(&loader->source_of_note, key);

	if (!slot)
		return TICKMAP_NONE;
	if (!*slot) {
		struct tickmap_source model = {
			.embedded = true,
			.pid = note->pid,
		};
		uint32_t index = add_source(loader, &model);
		if (index == TICKMAP_NONE)
			return TICKMAP_NONE;
		*slot = (uint64_t)index + 1;
	}
	return (uint32_t)(*slot - 1);
}

bool tickmap_codemaps_note(struct tickmap_loader *loader,
			   const struct tickmap_note *note)
{
	uint32_t index = embedded_source(loader, note);

	if (index == TICKMAP_NONE)
		return false;
	struct tickmap_source *source = &loader->sources.items[index];
	if (note->kind == TICKMAP_NOTE_CODE_MAP_PATH) {
		size_t length = strnlen((const char *)note->bytes, note->size);
		source->path =
			tickmap_intern(loader->profile->strings,
				       (const char *)note->bytes, length);
		return true;
	}
	if (!source->dump && !source->map)
		source->perf_map = note->kind == TICKMAP_NOTE_PERF_MAP;
	if (!open_parser(source))
		return false;
	source->chunk_ns = note->time_ns;
	if (note->time_ns > source->known_ns)
		source->known_ns = note->time_ns;
	feed(source, note->bytes, note->size);
	return !loader->no_memory;
}

bool tickmap_codemaps_file(struct tickmap_loader *loader, int fd,
			   const char *path, uint32_t pid, uint64_t known_ns,
			   bool perf_map)
{
	enum { BLOCK = 1 << 16 };
	struct tickmap_source model = {
		.perf_map = perf_map,
		.pid = pid,
		.known_ns = known_ns,
		.path = tickmap_intern_cstr(loader->profile->strings, path),
	};
	uint32_t index = add_source(loader, &model);
	uint8_t *block = malloc(BLOCK);
	bool good = index != TICKMAP_NONE && block &&
		    open_parser(&loader->sources.items[index]) &&
		    (perf_map ? tickmap_maplines_begin(
					loader, &loader->sources.items[index])
			      : tickmap_copies_begin(
					loader, &loader->sources.items[index]));

	while (good) {
		ssize_t got = read(fd, block, BLOCK);
		if (got <= 0)
			break;
		feed(&loader->sources.items[index], block, (size_t)got);
		good = !loader->no_memory;
	}
	free(block);
	return good;
}

static void close_parser(struct tickmap_source *source)
{
	if (source->dump)
		tickmap_jitdump_end(source->dump);
	if (source->map)
		tickmap_perfmap_end(source->map, source->chunk_ns);
	tickmap_jitdump_free(source->dump);
	tickmap_perfmap_free(source->map);
	source->dump = NULL;
	source->map = NULL;
	tickmap_table_free(&source->said);
}

bool tickmap_codemaps_write_findings(struct tickmap_loader *loader)
{
	struct tickmap_profile *profile = loader->profile;

	for (size_t i = 0; i < loader->oddities.count; i++) {
		const struct tickmap_oddity *o = &loader->oddities.items[i];
		char text[512], times[40] = "", at[32] = "", where[300] = "";
		profile->findings_count += o->count;
		if (o->count > 1)
			snprintf(times, sizeof(times), ", %llu times",
				 (unsigned long long)o->count);
		if (o->path && o->offset)
			snprintf(at, sizeof(at), "at 0x%llx of ",
				 (unsigned long long)o->offset);
		if (o->path)
			snprintf(where, sizeof(where), "%s %s%s",
				 o->count > 1 || o->offset ? ", first" : ":",
				 at,
				 tickmap_string(profile->strings, o->path,
						NULL));
		snprintf(text, sizeof(text), "%s: %s%s%s",
			 tickmap_string(profile->strings, o->id, NULL),
			 tickmap_string(profile->strings, o->what, NULL), times,
			 where);
		tickmap_str *finding = tickmap_vec_push(&profile->findings);
		if (!finding)
			return false;
		*finding = tickmap_intern_cstr(profile->strings, text);
	}
	return true;
}

void tickmap_codemaps_end(struct tickmap_loader *loader)
{
	for (size_t i = 0; i < loader->sources.count; i++)
		close_parser(&loader->sources.items[i]);
}

static void free_source(struct tickmap_source *source)
{
	free(source->feeding);
	tickmap_vec_free(&source->lines);
	tickmap_vec_free(&source->chunks);
}

void tickmap_codemaps_free(struct tickmap_loader *loader)
{
	tickmap_codemaps_end(loader);
	for (size_t i = 0; i < loader->sources.count; i++)
		free_source(&loader->sources.items[i]);
	tickmap_vec_free(&loader->sources);
	tickmap_vec_free(&loader->codes);
	tickmap_vec_free(&loader->code_records);
	tickmap_vec_free(&loader->oddities);
	tickmap_vec_free(&loader->asked);
	tickmap_table_free(&loader->source_of_note);
}

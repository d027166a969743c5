/* SPDX-License-Identifier: MIT */
#include "record/names.h"

#include "base/strings.h"
#include "base/table.h"
#include "base/vec.h"
#include "symbolize/symbolize.h"

#include <stdlib.h>
#include <string.h>

enum {
	RECENT = 4096, /* a power of two */
	OFFSET_BITS = 44,
};

struct tickmap_names {
	/* Asked lately: most frames of most samples are. */
	uint64_t recent[RECENT];
	struct tickmap_table files;  /* module << OFFSET_BITS | file offset */
	struct tickmap_table kernel; /* avma */
	TICKMAP_VEC(struct tickmap_perfdata_build_id) build_ids;
};

struct tickmap_names *tickmap_names_new(void)
{
	return calloc(1, sizeof(struct tickmap_names));
}

void tickmap_names_free(struct tickmap_names *names)
{
	if (!names)
		return;
	tickmap_table_free(&names->files);
	tickmap_table_free(&names->kernel);
	tickmap_vec_free(&names->build_ids);
	free(names);
}

void tickmap_names_want(struct tickmap_names *names,
			struct tickmap_processes *processes,
			const struct tickmap_process *process, uint64_t avma,
			bool caller)
{
	uint64_t at = avma - caller;
	uint64_t key = (process->key << 32) ^ at ^ (process->key >> 32);
	uint64_t *recent = &names->recent[tickmap_mix(key) & (RECENT - 1)];
	uint64_t file_offset;
	uint32_t module;

	if (*recent == key)
		return;
	*recent = key;
	if (!tickmap_process_file_of(processes, process, at, &module,
				     &file_offset) ||
	    file_offset >> OFFSET_BITS)
		return;
	tickmap_table_put(&names->files,
			  (uint64_t)module << OFFSET_BITS | file_offset);
}

void tickmap_names_want_kernel(struct tickmap_names *names, uint64_t avma,
			       bool caller)
{
	tickmap_table_put(&names->kernel, avma - caller);
}

/* ---- Writing ---- */

struct batch {
	struct tickmap_perfdata_writer *writer;
	const char *path;
	uint64_t inode;
	TICKMAP_VEC(uint8_t) bytes;
	uint64_t entries;
	struct tickmap_table written; /* function starts */
};

static bool append(struct batch *batch, const void *bytes, size_t size)
{
	if (!tickmap_vec_reserve(&batch->bytes, batch->bytes.count + size))
		return false;
	memcpy(batch->bytes.items + batch->bytes.count, bytes, size);
	batch->bytes.count += size;
	return true;
}

static int flush(struct batch *batch, struct tickmap_error *err)
{
	struct tickmap_note note = {
		.kind = TICKMAP_NOTE_SYMBOLS,
		.time_ns = batch->inode,
		.value = batch->entries,
		.bytes = batch->bytes.items,
		.size = batch->bytes.count,
	};
	int status = TICKMAP_OK;

	if (batch->entries)
		status = tickmap_perfdata_write_note(batch->writer, &note, err);
	batch->bytes.count = 0;
	batch->entries = 0;
	return status;
}

static int add(struct batch *batch, const struct tickmap_symbol *symbol,
	       const char *raw_name, struct tickmap_error *err)
{
	size_t length = strlen(raw_name) + 1;
	uint64_t *seen = tickmap_table_put(&batch->written, symbol->start);
	size_t path_size = strlen(batch->path) + 1;
	uint64_t size = symbol->size;
	int status;

	if (!seen || *seen || length > TICKMAP_NOTE_BYTES_MAX / 2)
		return TICKMAP_OK;
	*seen = 1;
	if (batch->bytes.count + 16 + length > TICKMAP_NOTE_BYTES_MAX) {
		status = flush(batch, err);
		if (status)
			return status;
	}
	if (!batch->bytes.count && !append(batch, batch->path, path_size))
		return TICKMAP_OK;
	/* A table has no size for some kernel functions: one byte past the
	 * address asked for is certain. */
	if (!size)
		size = symbol->svma - symbol->start + 1;
	if (!append(batch, &symbol->start, 8) || !append(batch, &size, 8) ||
	    !append(batch, raw_name, length))
		return tickmap_fail(err, TICKMAP_E_NOMEM, 0, "out of memory");
	batch->entries++;
	return TICKMAP_OK;
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x, y;

	memcpy(&x, a, 8);
	memcpy(&y, b, 8);
	return x < y ? -1 : x > y;
}

static uint64_t *sorted_keys(const struct tickmap_table *table)
{
	uint64_t *keys = malloc(table->count * sizeof(*keys) + 1);
	size_t n = 0;

	for (size_t i = 0; keys && i < table->capacity; i++) {
		if (tickmap_table_is_used(table, i))
			keys[n++] = table->slots[i].key;
	}
	if (keys)
		qsort(keys, n, sizeof(*keys), compare_u64);
	return keys;
}

/* A symbolizer of its own for each file: one symbol table at a time. */
struct asker {
	struct tickmap_strings *strings;
	struct tickmap_symbolizer *symbolizer;
};

static bool asker_open(struct asker *a)
{
	a->strings = tickmap_strings_new();
	a->symbolizer = a->strings ? tickmap_symbolizer_new(a->strings) : NULL;
	return a->symbolizer;
}

static void asker_close(struct asker *a)
{
	tickmap_symbolizer_free(a->symbolizer);
	tickmap_strings_free(a->strings);
}

static int write_segment(const struct tickmap_module *module,
			 uint64_t file_offset, uint64_t end, uint64_t svma,
			 struct tickmap_perfdata_writer *writer,
			 struct tickmap_error *err)
{
	uint64_t place[3] = { file_offset, end - file_offset, svma };
	size_t path_size = strlen(module->path) + 1;
	uint8_t bytes[4096 + sizeof(place)];
	struct tickmap_note note = {
		.kind = TICKMAP_NOTE_SEGMENT,
		.time_ns = module->inode,
		.bytes = bytes,
		.size = path_size + sizeof(place),
	};

	if (path_size > sizeof(bytes) - sizeof(place))
		return TICKMAP_OK;
	memcpy(bytes, module->path, path_size);
	memcpy(bytes + path_size, place, sizeof(place));
	return tickmap_perfdata_write_note(writer, &note, err);
}

/* The sampled ranges of the file, each with one distance to its svma. */
static int write_segments(const uint64_t *keys, size_t count,
			  const struct tickmap_module *module,
			  struct tickmap_perfdata_writer *writer,
			  struct tickmap_error *err)
{
	const uint64_t mask = (UINT64_C(1) << OFFSET_BITS) - 1;
	uint64_t start = 0, end = 0, start_svma = 0;
	int status = TICKMAP_OK;

	for (size_t i = 0; module->elf && i < count && !status; i++) {
		uint64_t offset = keys[i] & mask, svma;
		if (!tickmap_elf_svma_of_offset(module->elf, offset, &svma))
			continue;
		if (end && svma - offset != start_svma - start) {
			status = write_segment(module, start, end, start_svma,
					       writer, err);
			end = 0;
		}
		if (!end) {
			start = offset;
			start_svma = svma;
		}
		end = offset + 1;
	}
	if (!status && end)
		status = write_segment(module, start, end, start_svma, writer,
				       err);
	return status;
}

static int write_file(struct tickmap_names *names, uint64_t *keys, size_t count,
		      struct tickmap_module *module,
		      struct tickmap_perfdata_writer *writer,
		      struct tickmap_error *err)
{
	struct batch batch = {
		.writer = writer,
		.path = module->path,
		.inode = module->inode,
	};
	struct asker asker;
	int status = TICKMAP_OK;

	(void)names;
	if (!asker_open(&asker)) {
		asker_close(&asker);
		return tickmap_fail(err, TICKMAP_E_NOMEM, 0, "out of memory");
	}
	tickmap_symbolizer_kernel_is_ours(asker.symbolizer, true);
	uint32_t dso = tickmap_symbolizer_file(asker.symbolizer, module->path,
					       module->inode, module->build_id,
					       module->build_id_size);
	if (module->fd >= 0)
		tickmap_symbolizer_opened(asker.symbolizer, dso, module->fd);
	for (size_t i = 0; i < count && !status; i++) {
		uint64_t offset = keys[i] & ((UINT64_C(1) << OFFSET_BITS) - 1);
		struct tickmap_symbol s =
			tickmap_symbolize_file(asker.symbolizer, dso, offset);
		if (s.reason == TICKMAP_SYMBOL_FOUND && s.raw_name)
			status = add(
				&batch, &s,
				tickmap_string(asker.strings, s.raw_name, NULL),
				err);
	}
	if (!status)
		status = flush(&batch, err);
	if (!status)
		status = write_segments(keys, count, module, writer, err);
	tickmap_vec_free(&batch.bytes);
	tickmap_table_free(&batch.written);
	asker_close(&asker);
	return status;
}

static int write_kernel(struct tickmap_names *names,
			struct tickmap_perfdata_writer *writer,
			struct tickmap_error *err)
{
	struct batch batch = { .writer = writer, .path = "[kernel.kallsyms]" };
	uint64_t *keys = sorted_keys(&names->kernel);
	struct asker asker;
	int status = TICKMAP_OK;

	if (!asker_open(&asker) || !keys) {
		asker_close(&asker);
		free(keys);
		return tickmap_fail(err, TICKMAP_E_NOMEM, 0, "out of memory");
	}
	tickmap_symbolizer_kernel_is_ours(asker.symbolizer, true);
	for (size_t i = 0; i < names->kernel.count && !status; i++) {
		struct tickmap_symbol s =
			tickmap_symbolize_kernel(asker.symbolizer, keys[i]);
		if (s.reason == TICKMAP_SYMBOL_FOUND && s.raw_name)
			status = add(
				&batch, &s,
				tickmap_string(asker.strings, s.raw_name, NULL),
				err);
	}
	if (!status)
		status = flush(&batch, err);
	tickmap_vec_free(&batch.bytes);
	tickmap_table_free(&batch.written);
	asker_close(&asker);
	free(keys);
	return status;
}

int tickmap_names_write(struct tickmap_names *names,
			struct tickmap_modules *modules,
			struct tickmap_perfdata_writer *writer,
			struct tickmap_error *err)
{
	uint64_t *keys = sorted_keys(&names->files);
	int status = TICKMAP_OK;

	if (!keys)
		return tickmap_fail(err, TICKMAP_E_NOMEM, 0, "out of memory");
	for (size_t i = 0; i < names->files.count && !status;) {
		uint64_t module = keys[i] >> OFFSET_BITS;
		size_t end = i;
		while (end < names->files.count &&
		       keys[end] >> OFFSET_BITS == module)
			end++;
		struct tickmap_module *m =
			tickmap_modules_at(modules, (uint32_t)module);
		status = write_file(names, keys + i, end - i, m, writer, err);
		if (m->build_id_size && m->path[0] == '/') {
			struct tickmap_perfdata_build_id *id =
				tickmap_vec_push(&names->build_ids);
			if (id) {
				*id = (struct tickmap_perfdata_build_id) {
					.path = m->path,
					.id_size = m->build_id_size,
				};
				memcpy(id->id, m->build_id, sizeof(id->id));
			}
		}
		i = end;
	}
	free(keys);
	if (!status && names->kernel.count)
		status = write_kernel(names, writer, err);
	return status;
}

const struct tickmap_perfdata_build_id *
tickmap_names_build_ids(struct tickmap_names *names,
			struct tickmap_modules *modules, size_t *ret_count)
{
	(void)modules;
	*ret_count = names->build_ids.count;
	return names->build_ids.items;
}

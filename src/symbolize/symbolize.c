/* SPDX-License-Identifier: MIT */
#include "symbolize/internal.h"

#include <elf.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define KERNEL "[kernel.kallsyms]"
#define VDSO "[vdso]"

static const char deleted[] = " (deleted)";

static const char *text_of(const struct tickmap_symbolizer *symbolizer,
			   tickmap_str id)
{
	return tickmap_string(symbolizer->strings, id, NULL);
}

tickmap_str tickmap_readable_name(struct tickmap_symbolizer *symbolizer,
				  const char *raw)
{
	char *readable = tickmap_demangle(raw);
	tickmap_str id = tickmap_intern_cstr(symbolizer->strings,
					     readable ? readable : raw);

	free(readable);
	return id;
}

/* ---- Files ---- */

struct tickmap_symbolizer *
tickmap_symbolizer_new(struct tickmap_strings *strings)
{
	struct tickmap_symbolizer *symbolizer = calloc(1, sizeof(*symbolizer));

	if (symbolizer)
		symbolizer->strings = strings;
	return symbolizer;
}

void tickmap_symbolizer_brief(struct tickmap_symbolizer *symbolizer, bool brief)
{
	symbolizer->brief = brief;
}

static void free_dso(struct dso *dso)
{
	if (dso->cfi_ready)
		tickmap_cfi_done(&dso->cfi);
	tickmap_dwarf_close(dso->dwarf);
	tickmap_table_free(&dso->functions);
	tickmap_vec_free(&dso->function_names);
	tickmap_symbols_free(dso->symbols);
	tickmap_elf_close(dso->elf);
	tickmap_table_free(&dso->names);
	free(dso->hint);
}

void tickmap_symbolizer_free(struct tickmap_symbolizer *symbolizer)
{
	if (!symbolizer)
		return;
	for (size_t i = 0; i < symbolizer->dsos.count; i++)
		free_dso(&symbolizer->dsos.items[i]);
	for (size_t i = 0; i < symbolizer->known.count; i++) {
		tickmap_vec_free(&symbolizer->known.items[i].symbols);
		tickmap_vec_free(&symbolizer->known.items[i].segments);
	}
	tickmap_vec_free(&symbolizer->dsos);
	tickmap_vec_free(&symbolizer->known);
	tickmap_table_free(&symbolizer->dso_by_key);
	tickmap_table_free(&symbolizer->known_by_path);
	tickmap_kallsyms_free(symbolizer->kernel.list);
	free(symbolizer);
}

/* A path and a build id as one string. */
static tickmap_str key_of(struct tickmap_symbolizer *symbolizer,
			  const char *path, const uint8_t *id, size_t id_size)
{
	size_t length = strlen(path) + 1;
	char *key = malloc(length + id_size);
	tickmap_str interned;

	if (!key)
		return 0;
	memcpy(key, path, length);
	if (id_size)
		memcpy(key + length, id, id_size);
	interned = tickmap_intern(symbolizer->strings, key, length + id_size);
	free(key);
	return interned;
}

static tickmap_str short_name(struct tickmap_symbolizer *symbolizer,
			      const char *path)
{
	size_t length = strlen(path);
	const char *slash;

	if (ends_with(path, deleted))
		length -= strlen(deleted);
	slash = memrchr(path, '/', length);
	const char *name = slash && *path != '[' ? slash + 1 : path;
	return tickmap_intern(symbolizer->strings, name,
			      (size_t)(path + length - name));
}

const char *tickmap_symbolizer_identity(const char *path, uint64_t inode,
					char *out, size_t size)
{
	if (!inode)
		snprintf(out, size, "%s", path);
	else
		snprintf(out, size, "%s\n%" PRIu64, path, inode);
	return out;
}

uint32_t tickmap_symbolizer_dso(struct tickmap_symbolizer *symbolizer,
				const char *path, const uint8_t *build_id,
				size_t build_id_size)
{
	return tickmap_symbolizer_file(symbolizer, path, 0, build_id,
				       build_id_size);
}

/* Number 0 stands for what no memory was left for: a file without a path. */
uint32_t tickmap_symbolizer_file(struct tickmap_symbolizer *symbolizer,
				 const char *path, uint64_t inode,
				 const uint8_t *build_id, size_t build_id_size)
{
	char identity[4200];
	struct dso dso = { .inode = inode };

	if (build_id_size > sizeof(dso.build_id))
		build_id_size = sizeof(dso.build_id);
	if (!symbolizer->dsos.count) {
		struct dso *none = tickmap_vec_push(&symbolizer->dsos);
		if (!none)
			return 0;
		*none = (struct dso) { .opened = true };
		none->reason = TICKMAP_SYMBOL_FILE_MISSING;
	}
	tickmap_symbolizer_identity(path, inode, identity, sizeof(identity));
	tickmap_str key = key_of(symbolizer, identity, build_id, build_id_size);
	uint64_t *number =
		key ? tickmap_table_put(&symbolizer->dso_by_key, key) : NULL;
	if (!number)
		return 0;
	if (*number)
		return (uint32_t)*number;
	dso.path = tickmap_intern_cstr(symbolizer->strings, path);
	dso.identity = tickmap_intern_cstr(symbolizer->strings, identity);
	dso.name = short_name(symbolizer, path);
	dso.build_id_size = build_id_size;
	if (build_id_size)
		memcpy(dso.build_id, build_id, build_id_size);
	struct dso *new = tickmap_vec_push(&symbolizer->dsos);
	if (!new)
		return 0;
	*new = dso;
	*number = symbolizer->dsos.count - 1;
	return (uint32_t)*number;
}

static struct dso *dso_at(struct tickmap_symbolizer *symbolizer, uint32_t dso)
{
	return dso < symbolizer->dsos.count ? &symbolizer->dsos.items[dso]
					    : NULL;
}

tickmap_str tickmap_symbolizer_dso_name(struct tickmap_symbolizer *symbolizer,
					uint32_t dso)
{
	struct dso *d = dso_at(symbolizer, dso);

	return d ? d->name : 0;
}

const char *tickmap_symbolizer_dso_path(struct tickmap_symbolizer *symbolizer,
					uint32_t dso)
{
	struct dso *d = dso_at(symbolizer, dso);

	return d ? text_of(symbolizer, d->path) : "";
}

/* Older recordings pad a short id with zeros and do not tell its size. */
static bool same_build(const struct dso *dso)
{
	uint8_t id[20];
	size_t size = tickmap_elf_build_id(dso->elf, id);

	if (!dso->build_id_size)
		return true;
	if (!size || size > dso->build_id_size ||
	    memcmp(id, dso->build_id, size) != 0)
		return false;
	for (size_t i = size; i < dso->build_id_size; i++)
		if (dso->build_id[i])
			return false;
	return true;
}

/* Where no build id tells builds apart, the inode has to; and on the machine
 * itself it says more, since a recording's build ids are kept by path. */
static bool same_file(const struct tickmap_symbolizer *symbolizer,
		      const struct dso *dso, const char *path)
{
	struct stat st;

	if (!dso->inode || *path != '/' ||
	    (dso->build_id_size && !symbolizer->kernel.ours))
		return true;
	return stat(path, &st) == 0 && st.st_ino == dso->inode;
}

static enum tickmap_symbol_reason load_symbols(struct dso *dso,
					       const char *debug_path)
{
	return tickmap_symbols_load(dso->elf, debug_path, "", &dso->symbols,
				    NULL) < 0
		       ? TICKMAP_SYMBOL_FILE_MISSING
		       : TICKMAP_SYMBOL_FOUND;
}

static enum tickmap_symbol_reason
open_file(const struct tickmap_symbolizer *symbolizer, struct dso *dso,
	  const char *path)
{
	const char *debug_path = path;
	const void *image;
	size_t size;
	int rc;

	if (strcmp(path, VDSO) == 0) {
		if (!tickmap_vdso_image(&image, &size))
			return TICKMAP_SYMBOL_FILE_MISSING;
		rc = tickmap_elf_open_memory(image, size, &dso->elf, NULL);
		debug_path = NULL;
	} else if (*path != '/' || ends_with(path, deleted)) {
		return TICKMAP_SYMBOL_FILE_MISSING;
	} else {
		rc = tickmap_elf_open(path, &dso->elf, NULL);
	}
	if (rc < 0)
		return rc == TICKMAP_E_OS || rc == TICKMAP_E_NOMEM
			       ? TICKMAP_SYMBOL_FILE_MISSING
			       : TICKMAP_SYMBOL_NOT_ELF;
	if (!same_build(dso) || !same_file(symbolizer, dso, path))
		return TICKMAP_SYMBOL_OTHER_BUILD;
	return load_symbols(dso, debug_path);
}

void tickmap_symbolizer_opened(struct tickmap_symbolizer *symbolizer,
			       uint32_t number, int fd)
{
	struct dso *dso = dso_at(symbolizer, number);

	if (!dso || dso->opened || !dso->path ||
	    tickmap_elf_open_fd(fd, &dso->elf, NULL))
		return;
	dso->reason = load_symbols(dso, text_of(symbolizer, dso->path));
	dso->opened = dso->reason == TICKMAP_SYMBOL_FOUND;
	if (!dso->opened) {
		tickmap_elf_close(dso->elf);
		dso->elf = NULL;
	}
}

void tickmap_dso_open(struct tickmap_symbolizer *symbolizer, struct dso *dso)
{
	if (dso->opened)
		return;
	dso->opened = true;
	dso->reason =
		open_file(symbolizer, dso, text_of(symbolizer, dso->path));
	if (dso->reason != TICKMAP_SYMBOL_FOUND) {
		tickmap_elf_close(dso->elf);
		dso->elf = NULL;
	}
}

/* ---- Functions without a symbol ---- */

static struct tickmap_cfi *cfi_of(struct dso *dso)
{
	uint16_t machine = tickmap_elf_machine(dso->elf);

	if (dso->cfi_ready)
		return &dso->cfi;
	if (dso->cfi_absent)
		return NULL;
	dso->cfi_absent = true;
	if (!tickmap_elf_is_64(dso->elf) ||
	    (machine != EM_X86_64 && machine != EM_AARCH64))
		return NULL;
	struct tickmap_elf_section frame =
		tickmap_elf_section(dso->elf, ".eh_frame");
	struct tickmap_elf_section hdr =
		tickmap_elf_section(dso->elf, ".eh_frame_hdr");
	if (!frame.size)
		return NULL;
	dso->cfi = (struct tickmap_cfi) {
		.eh_frame = frame.bytes,
		.eh_frame_size = frame.size,
		.eh_frame_at = frame.svma,
		.hdr = hdr.size ? hdr.bytes : NULL,
		.hdr_size = hdr.size,
		.hdr_at = hdr.svma,
	};
	tickmap_cfi_init(&dso->cfi);
	dso->cfi_ready = true;
	dso->cfi_absent = false;
	return &dso->cfi;
}

static bool function_bounds(struct dso *dso, struct tickmap_symbol *symbol)
{
	struct tickmap_cfi *cfi = cfi_of(dso);
	uint64_t start, end;

	if (!cfi || !tickmap_cfi_function(cfi, symbol->svma, &start, &end) ||
	    symbol->svma < start || symbol->svma >= end)
		return false;
	symbol->start = start;
	symbol->size = end - start;
	return true;
}

/* "[libz.so.1+0x1234]", "[vdso+0x780]" */
static tickmap_str unnamed(struct tickmap_symbolizer *symbolizer,
			   tickmap_str library, uint64_t at)
{
	char text[NAME_MAX + 32];
	size_t length;
	const char *name =
		tickmap_string(symbolizer->strings, library, &length);

	if (length > 2 && *name == '[' && name[length - 1] == ']') {
		name++;
		length -= 2;
	}
	if (length > NAME_MAX) /* no file's */
		length = NAME_MAX;
	if (symbolizer->brief)
		snprintf(text, sizeof(text), "[%.*s]", (int)length, name);
	else
		snprintf(text, sizeof(text), "[%.*s+0x%llx]", (int)length, name,
			 (unsigned long long)at);
	return tickmap_intern_cstr(symbolizer->strings, text);
}

struct tickmap_cfi *
tickmap_symbolizer_cfi(struct tickmap_symbolizer *symbolizer, uint32_t dso,
		       uint64_t file_offset, uint64_t *ret_svma)
{
	struct dso *d = dso_at(symbolizer, dso);

	if (!d)
		return NULL;
	tickmap_dso_open(symbolizer, d);
	if (!d->elf ||
	    !tickmap_elf_svma_of_offset(d->elf, file_offset, ret_svma))
		return NULL;
	return cfi_of(d);
}

bool tickmap_symbolizer_read(struct tickmap_symbolizer *symbolizer,
			     uint32_t dso, uint64_t file_offset, void *out,
			     size_t size)
{
	struct dso *d = dso_at(symbolizer, dso);

	if (!d)
		return false;
	tickmap_dso_open(symbolizer, d);
	return d->elf && tickmap_elf_bytes(d->elf, file_offset, out, size);
}

/* ---- Names ---- */

/* Demangling and interning once for each function is enough. */
static void name_symbol(struct tickmap_symbolizer *symbolizer, struct dso *dso,
			const struct tickmap_elf_symbol *found,
			struct tickmap_symbol *symbol)
{
	size_t index = (size_t)(found - tickmap_symbols_at(dso->symbols, 0));
	uint64_t *names = tickmap_table_get(&dso->names, index);

	symbol->reason = TICKMAP_SYMBOL_FOUND;
	if (names) {
		symbol->raw_name = (tickmap_str)(*names >> 32);
		symbol->name = (tickmap_str)*names;
		return;
	}
	symbol->raw_name =
		tickmap_intern_cstr(symbolizer->strings, found->name);
	symbol->name = tickmap_readable_name(symbolizer, found->name);
	names = tickmap_table_put(&dso->names, index);
	if (names)
		*names = (uint64_t)symbol->raw_name << 32 | symbol->name;
}

static bool name_known(struct tickmap_symbolizer *symbolizer, tickmap_str path,
		       struct tickmap_symbol *symbol)
{
	const struct known_symbol *known = tickmap_known_find(
		tickmap_known_file(symbolizer, path), symbol->svma);

	if (!known)
		return false;
	symbol->reason = TICKMAP_SYMBOL_FOUND;
	symbol->raw_name = known->name;
	symbol->name = tickmap_readable_name(symbolizer,
					     text_of(symbolizer, known->name));
	symbol->start = known->svma;
	symbol->size = known->size;
	return true;
}

/* The file's own answer; false leaves the reason and the bounds, if any. */
static bool name_by_file(struct tickmap_symbolizer *symbolizer, struct dso *dso,
			 struct tickmap_symbol *symbol)
{
	const struct tickmap_elf_symbol *found =
		tickmap_symbols_find(dso->symbols, symbol->svma);

	if (found && found->size) {
		symbol->start = found->svma;
		symbol->size = found->size;
		name_symbol(symbolizer, dso, found, symbol);
		return true;
	}
	/* An exported function without a size: the unwind table has it. */
	bool bounded = function_bounds(dso, symbol);
	if (bounded && !found)
		found = tickmap_symbols_find(dso->symbols, symbol->start);
	if (found && (!bounded || found->svma == symbol->start)) {
		if (!found->size || found->svma == symbol->svma) {
			symbol->start = found->svma;
			name_symbol(symbolizer, dso, found, symbol);
			return true;
		}
	}
	symbol->reason = tickmap_symbols_stripped(dso->symbols)
				 ? TICKMAP_SYMBOL_STRIPPED
				 : TICKMAP_SYMBOL_NO_FUNCTION;
	return false;
}

struct tickmap_symbol
tickmap_symbolize_file(struct tickmap_symbolizer *symbolizer, uint32_t dso,
		       uint64_t file_offset)
{
	struct tickmap_symbol symbol = { .svma = file_offset };
	struct dso *d = dso_at(symbolizer, dso);

	if (!d) {
		symbol.reason = TICKMAP_SYMBOL_FILE_MISSING;
		return symbol;
	}
	struct known_file *known = tickmap_known_file(symbolizer, d->identity);
	if (d->inode && known) {
		symbol.svma = tickmap_known_svma_of_offset(known, file_offset);
		if (name_known(symbolizer, d->identity, &symbol))
			return symbol;
	}
	tickmap_dso_open(symbolizer, d);
	symbol.reason = d->reason;
	if (d->reason != TICKMAP_SYMBOL_FOUND)
		symbol.svma = tickmap_known_svma_of_offset(known, file_offset);
	else if (!tickmap_elf_svma_of_offset(d->elf, file_offset, &symbol.svma))
		symbol.reason = TICKMAP_SYMBOL_NO_FUNCTION;
	else if (name_by_file(symbolizer, d, &symbol))
		return symbol;

	if (!name_known(symbolizer, d->identity, &symbol))
		symbol.name = unnamed(symbolizer, d->name,
				      symbol.size ? symbol.start : symbol.svma);
	return symbol;
}

/* ---- The kernel ---- */

void tickmap_symbolizer_kernel_is_ours(struct tickmap_symbolizer *symbolizer,
				       bool ours)
{
	symbolizer->kernel.said = true;
	symbolizer->kernel.ours = ours;
}

static const struct kallsyms *kernel_list(struct tickmap_symbolizer *symbolizer,
					  tickmap_str path)
{
	bool trusted = symbolizer->kernel.said
			       ? symbolizer->kernel.ours
			       : !tickmap_known_file(symbolizer, path);

	if (!trusted)
		return NULL;
	if (!symbolizer->kernel.loaded) {
		symbolizer->kernel.loaded = true;
		symbolizer->kernel.list =
			tickmap_kallsyms_load("/proc/kallsyms");
	}
	return symbolizer->kernel.list;
}

struct tickmap_symbol
tickmap_symbolize_kernel(struct tickmap_symbolizer *symbolizer, uint64_t avma)
{
	struct tickmap_symbol symbol = { .svma = avma };
	tickmap_str path = tickmap_intern_cstr(symbolizer->strings, KERNEL);
	const struct kallsyms *list = kernel_list(symbolizer, path);
	const char *name =
		list ? tickmap_kallsyms_find(list, avma, &symbol.start,
					     &symbol.size)
		     : NULL;

	if (name) {
		symbol.raw_name =
			tickmap_intern_cstr(symbolizer->strings, name);
		symbol.name = tickmap_readable_name(symbolizer, name);
	} else if (!name_known(symbolizer, path, &symbol)) {
		symbol.reason = list ? TICKMAP_SYMBOL_NO_FUNCTION
				     : TICKMAP_SYMBOL_KERNEL_HIDDEN;
		symbol.name = unnamed(
			symbolizer,
			tickmap_intern_cstr(symbolizer->strings, "kernel"),
			avma);
	}
	return symbol;
}

/* ---- Advice ---- */

static char *advice(struct tickmap_symbolizer *symbolizer,
		    const struct dso *dso)
{
	const char *name = text_of(symbolizer, dso->name);
	const char *path = text_of(symbolizer, dso->path);
	char package[256];
	char *text = NULL;
	int rc = 0;

	if (dso->reason == TICKMAP_SYMBOL_OTHER_BUILD)
		rc = asprintf(&text,
			      "%s: the file is of another build than the one "
			      "that ran; its names are not used",
			      name);
	else if (dso->reason == TICKMAP_SYMBOL_FILE_MISSING)
		rc = asprintf(&text, "%s: the file is not here any more", name);
	else if (dso->split)
		rc = asprintf(&text,
			      "%s: its inlined functions are in .dwo files, "
			      "which are not read; build it without "
			      "-gsplit-dwarf",
			      name);
	else if (dso->reason != TICKMAP_SYMBOL_FOUND || *path != '/' ||
		 !tickmap_symbols_stripped(dso->symbols))
		return NULL;
	else if (tickmap_package_of_file(path, package, sizeof(package)))
		rc = asprintf(&text,
			      "%s: no symbols; install the debug symbols of "
			      "package %s (%s-dbgsym or %s-dbg)",
			      name, package, package, package);
	else
		rc = asprintf(&text,
			      "%s: no symbols; build it without strip, or put "
			      "its debug file beside it",
			      name);
	return rc < 0 ? NULL : text;
}

const char *tickmap_symbolizer_hint(struct tickmap_symbolizer *symbolizer,
				    uint32_t dso)
{
	struct dso *d = dso_at(symbolizer, dso);

	if (!d || !d->path || !d->opened)
		return NULL;
	if (!d->hinted) {
		d->hinted = true;
		d->hint = advice(symbolizer, d);
	}
	return d->hint;
}

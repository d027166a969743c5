/* SPDX-License-Identifier: MIT */
/* One address at one time -> frame. */
#include "profile/load.h"

#include <stdio.h>
#include <string.h>

/*
 * Files that are the interpreter itself (or our hook in it): their frames
 * between Python frames are machinery. Each with all that its basename must
 * begin with and contain.
 */
static const struct {
	const char *begins, *contains;
} interpreter_files[] = {
	{ "libpython3", ".so" }, /* a shared CPython */
	{ "python3", "" },	 /* a static one: python3, python3.13t, ... */
	{ "_tickmap", ".so" },	 /* our extension module */
};

bool tickmap_frames_is_interpreter(const char *dso_path)
{
	const char *slash = strrchr(dso_path, '/');
	const char *base = slash ? slash + 1 : dso_path;

	for (size_t i = 0;
	     i < sizeof(interpreter_files) / sizeof(*interpreter_files); i++) {
		const char *begins = interpreter_files[i].begins;
		if (!strncmp(base, begins, strlen(begins)) &&
		    strstr(base, interpreter_files[i].contains))
			return true;
	}
	return false;
}

static tickmap_str intern(struct tickmap_loader *loader, const char *text)
{
	return tickmap_intern_cstr(loader->profile->strings, text);
}

static uint8_t reason_of(enum tickmap_symbol_reason reason)
{
	switch (reason) {
	case TICKMAP_SYMBOL_FOUND:
		return TICKMAP_RESOLVED;
	case TICKMAP_SYMBOL_FILE_MISSING:
		return TICKMAP_UNRESOLVED_FILE_MISSING;
	case TICKMAP_SYMBOL_OTHER_BUILD:
		return TICKMAP_UNRESOLVED_OTHER_BUILD;
	case TICKMAP_SYMBOL_STRIPPED:
	case TICKMAP_SYMBOL_NOT_ELF:
		return TICKMAP_UNRESOLVED_STRIPPED;
	case TICKMAP_SYMBOL_NO_FUNCTION:
		return TICKMAP_UNRESOLVED_NO_FUNCTION;
	case TICKMAP_SYMBOL_KERNEL_HIDDEN:
		return TICKMAP_UNRESOLVED_KERNEL;
	}
	return TICKMAP_UNRESOLVED_NO_FUNCTION;
}

/*
 * What is remembered of single addresses, and names that are no more than an
 * address, may not take more memory than what told them: so many for any
 * recording, and a few more for a large one.
 */
enum { ADDRESSES_MAX = 1 << 17, STACKS_AN_ADDRESS = 32, USUAL_LENGTH = 64 };

static bool has_room(const struct tickmap_loader *loader, size_t count)
{
	return count <
	       ADDRESSES_MAX + loader->stacks.all.count / STACKS_AN_ADDRESS;
}

/* Those that are too many share the name of their file. */
static tickmap_str name_place(struct tickmap_loader *loader, const char *where,
			      uint64_t at)
{
	size_t before = tickmap_strings_count(loader->profile->strings);
	char text[256];

	if (has_room(loader, loader->unnamed_places))
		snprintf(text, sizeof(text), "[%s+0x%llx]", where,
			 (unsigned long long)at);
	else
		snprintf(text, sizeof(text), "[%s]", where);
	tickmap_str name = intern(loader, text);
	loader->unnamed_places +=
		tickmap_strings_count(loader->profile->strings) > before;
	return name;
}

/* Around a question to the symbolizer, which may name a place. */
static size_t before_symbol(struct tickmap_loader *loader)
{
	tickmap_symbolizer_brief(loader->symbolizer,
				 !has_room(loader, loader->unnamed_places));
	return tickmap_strings_count(loader->profile->strings);
}

static void after_symbol(struct tickmap_loader *loader,
			 const struct tickmap_symbol *symbol, size_t before)
{
	const struct tickmap_strings *strings = loader->profile->strings;
	size_t length, made = tickmap_strings_count(strings) - before;

	if (symbol->reason == TICKMAP_SYMBOL_FOUND || !made)
		return;
	/* The file's name is in it: a long one counts for several. */
	tickmap_string(strings, symbol->name, &length);
	loader->unnamed_places += made * (1 + length / USUAL_LENGTH);
}

/* A symbol may have an empty name. */
static tickmap_str name_of(struct tickmap_loader *loader,
			   const struct tickmap_symbol *symbol, const char *dso)
{
	return symbol->name ? symbol->name
			    : name_place(loader, dso, symbol->start);
}

uint32_t tickmap_frames_kernel(struct tickmap_loader *loader, uint64_t avma)
{
	uint64_t *slot = tickmap_table_get(&loader->frame_of_kernel, avma);

	if (slot)
		return (uint32_t)(*slot - 1);
	size_t before = before_symbol(loader);
	struct tickmap_symbol symbol =
		tickmap_symbolize_kernel(loader->symbolizer, avma);

	after_symbol(loader, &symbol, before);
	struct tickmap_frame frame = {
		.name = name_of(loader, &symbol, "kernel"),
		.dso = intern(loader, "[kernel]"),
		.kind = TICKMAP_FRAME_KERNEL,
		.reason = symbol.reason == TICKMAP_SYMBOL_FOUND
				  ? TICKMAP_RESOLVED
				  : TICKMAP_UNRESOLVED_KERNEL,
	};
	uint32_t index = tickmap_profile_frame(loader->profile, &frame);
	if (index == TICKMAP_NONE ||
	    !has_room(loader, loader->frame_of_kernel.count))
		return index;
	slot = tickmap_table_put(&loader->frame_of_kernel, avma);
	if (!slot)
		return TICKMAP_NONE;
	*slot = (uint64_t)index + 1;
	return index;
}

static uint32_t frame_of_code(struct tickmap_loader *loader, uint64_t owner)
{
	struct tickmap_code *code = &loader->codes.items[owner];

	if (code->frame != TICKMAP_NONE)
		return code->frame;
	tickmap_jitted_read(loader, code);
	const char *name =
		tickmap_string(loader->profile->strings, code->name, NULL);
	struct tickmap_frame frame = {
		.name = code->name ? code->name : intern(loader, "[jit]"),
		.dso = intern(loader, "[jit]"),
		.file = code->file,
		.line = code->line,
		.kind = !strncmp(name, "py::", 4) ? TICKMAP_FRAME_PYTHON
						  : TICKMAP_FRAME_JIT,
		.code_map = true,
	};
	code->frame = tickmap_profile_frame(loader->profile, &frame);
	return code->frame;
}

static bool note_unnamed(struct tickmap_loader *loader, uint32_t dso)
{
	while (loader->dso_unnamed.count <= dso) {
		uint8_t *flag = tickmap_vec_push(&loader->dso_unnamed);
		if (!flag)
			return false;
		*flag = 0;
	}
	loader->dso_unnamed.items[dso] = 1;
	return true;
}

static uint32_t symbolized(struct tickmap_loader *loader, uint32_t dso,
			   uint64_t file_offset, uint32_t *ret_chain)
{
	size_t before = before_symbol(loader);
	struct tickmap_symbol symbol =
		tickmap_symbolize_file(loader->symbolizer, dso, file_offset);
	const char *path = tickmap_symbolizer_dso_path(loader->symbolizer, dso);
	tickmap_str file = tickmap_symbolizer_dso_name(loader->symbolizer, dso);
	bool named = symbol.reason == TICKMAP_SYMBOL_FOUND;
	struct tickmap_frame frame = {
		.name = name_of(
			loader, &symbol,
			tickmap_string(loader->profile->strings, file, NULL)),
		.dso = file,
		.dso_path = intern(loader, path),
		.kind = named ? TICKMAP_FRAME_NATIVE : TICKMAP_FRAME_UNRESOLVED,
		.reason = reason_of(symbol.reason),
		.interpreter = tickmap_frames_is_interpreter(path),
	};

	after_symbol(loader, &symbol, before);
	*ret_chain = 0;
	if (!named && !note_unnamed(loader, dso))
		return TICKMAP_NONE;
	if (loader->options->inlined &&
	    !tickmap_inlined_find(loader, dso, symbol.svma, &frame, ret_chain))
		return TICKMAP_NONE;
	if (tickmap_symbolizer_is_split(loader->symbolizer, dso) &&
	    !note_unnamed(loader, dso))
		return TICKMAP_NONE;
	return tickmap_profile_frame(loader->profile, &frame);
}

uint32_t tickmap_frames_dso(struct tickmap_loader *loader, uint64_t number)
{
	struct tickmap_loaded_map *map = &loader->maps.items[number];
	const char *path =
		tickmap_string(loader->profile->strings, map->path, NULL);
	uint8_t of_path[20];
	size_t size;

	if (map->dso)
		return map->dso;
	const uint8_t *id = (const uint8_t *)tickmap_string(
		loader->profile->strings, map->build_id, &size);
	if (!size) {
		id = of_path;
		size = tickmap_perfdata_build_id_of(loader->data, path,
						    of_path);
	}
	uint32_t dso = tickmap_symbolizer_file(loader->symbolizer, path,
					       loader->ours ? map->inode : 0,
					       id, size);
	map->dso = dso & TICKMAP_DSO_MASK;
	return dso;
}

static uint32_t frame_of_file(struct tickmap_loader *loader, uint64_t owner,
			      uint64_t avma)
{
	const struct tickmap_loaded_map *map = &loader->maps.items[owner];
	uint32_t dso = tickmap_frames_dso(loader, owner);
	uint64_t offset = avma - map->avma + map->file_offset;
	/* Larger numbers are no real file's: look them up every time. */
	bool cached = offset >> 48 == 0 && dso >> 16 == 0 &&
		      has_room(loader, loader->frame_of_file.count);
	uint64_t *slot = NULL;

	if (cached) {
		slot = tickmap_table_put(&loader->frame_of_file,
					 (uint64_t)dso << 48 | offset);
		if (!slot)
			return TICKMAP_NONE;
		if (*slot) {
			loader->chain = (uint32_t)(*slot >> 32);
			return (uint32_t)*slot - 1;
		}
	}
	uint32_t index = symbolized(loader, dso, offset, &loader->chain);
	if (slot && index != TICKMAP_NONE)
		*slot = (uint64_t)loader->chain << 32 | (index + 1);
	return index;
}

/*
 * A frame for code without a name in generated code. One a mapping (or for
 * what has no mapping one per 16 MiB): a row an address says nothing and there
 * may be millions.
 */
static uint32_t unnamed(struct tickmap_loader *loader, bool generated,
			uint64_t base, enum tickmap_unresolved reason)
{
	struct tickmap_frame frame = {
		.name = name_place(loader, generated ? "jit" : "unknown", base),
		.dso = intern(loader, generated ? "[jit]" : "[unknown]"),
		.kind = TICKMAP_FRAME_UNRESOLVED,
		.reason = (uint8_t)reason,
		.code_map = generated,
	};
	return tickmap_profile_frame(loader->profile, &frame);
}

/*
 * Is there code that may have been at the address instead of the owner, as far
 * as the clocks are known? Not if it has the same name. Code that runs has been
 * loaded: where only one can have been, it was.
 */
static bool is_a_guess(const struct tickmap_loader *loader,
		       const struct tickmap_process *process, uint64_t avma,
		       uint64_t time_ns, struct tickmap_owner owner)
{
	enum { CANDIDATES_MAX = 64 };
	const struct tickmap_code *code = &loader->codes.items[owner.owner];
	uint64_t began = tickmap_profile_image_at(process, time_ns)->since_ns;

	for (unsigned n = 0; owner.certain > time_ns; n++) {
		uint64_t open_ns = owner.certain - owner.placed, until;
		owner = tickmap_timeline_before(process->timeline, owner.placed,
						avma, &until);
		/* It may have ended later by as much as its end is open. */
		if (owner.owner == TICKMAP_NO_OWNER || until <= began ||
		    (until < time_ns && time_ns - until >= open_ns))
			return false;
		const struct tickmap_code *other =
			&loader->codes.items[owner.owner];
		if (other->name != code->name || other->file != code->file ||
		    other->line != code->line || n == CANDIDATES_MAX)
			return true;
	}
	return false;
}

uint32_t tickmap_frames_user(struct tickmap_loader *loader,
			     struct tickmap_process *process, uint64_t avma,
			     uint64_t time_ns,
			     const struct tickmap_owner *owner)
{
	const uint64_t unmapped_mask = ~(uint64_t)0xffffff;
	bool owned = owner->owner != TICKMAP_NO_OWNER;

	loader->chain = 0;
	if (owned && owner->layer == TICKMAP_LAYER_CODE)
		return is_a_guess(loader, process, avma, time_ns, *owner)
			       ? unnamed(loader, true, avma & unmapped_mask,
					 TICKMAP_UNRESOLVED_CLOCK)
			       : frame_of_code(loader, owner->owner);
	if (owned && owner->layer == TICKMAP_LAYER_FILE)
		return frame_of_file(loader, owner->owner, avma);
	bool other_time =
		process->published &&
		tickmap_timeline_elsewhen(process->timeline, time_ns, avma);
	if (!owned)
		return unnamed(loader, other_time, avma & unmapped_mask,
			       other_time ? TICKMAP_UNRESOLVED_OTHER_TIME
					  : TICKMAP_UNRESOLVED_UNMAPPED);
	process->silent |= !other_time && !process->published;
	return unnamed(loader, true, loader->maps.items[owner->owner].avma,
		       other_time	    ? TICKMAP_UNRESOLVED_OTHER_TIME
		       : process->published ? TICKMAP_UNRESOLVED_NOT_IN_MAP
					    : TICKMAP_UNRESOLVED_NO_CODE_MAP);
}

bool tickmap_frames_write_hints(struct tickmap_loader *loader)
{
	struct tickmap_profile *profile = loader->profile;

	for (uint32_t dso = 0; dso < loader->dso_unnamed.count; dso++) {
		const char *hint = loader->dso_unnamed.items[dso]
					   ? tickmap_symbolizer_hint(
						     loader->symbolizer, dso)
					   : NULL;
		tickmap_str text = hint ? intern(loader, hint) : 0;
		bool known = !text;
		for (size_t i = 0; i < profile->hints.count; i++)
			known |= profile->hints.items[i] == text;
		if (known)
			continue;
		tickmap_str *added = tickmap_vec_push(&profile->hints);
		if (!added)
			return false;
		*added = text;
	}
	return true;
}

/* SPDX-License-Identifier: MIT */
/*
 * What perf inject --jit leaves behind: an ELF file for each function, mapped
 * at the time it was published. Where the file is here, at its path, beside the
 * recording or in a folder of code maps, it is code with a name like any other;
 * it is opened when a sample hits it. Where it is not, the dump may be.
 *
 * The file counts by its name and by the size of its one function: its build id
 * is made up anew at each injection by perfs before 7.
 */
#include "object/elf.h"
#include "profile/load.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* "jitted-PID-INDEX.so" */
bool tickmap_map_is_jitted(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *base = slash ? slash + 1 : path;
	size_t length = strlen(base);

	return length > 10 && !strncmp(base, "jitted-", 7) &&
	       strspn(base + 7, "0123456789-") == length - 10 &&
	       !strcmp(base + length - 3, ".so");
}

static bool is_here(const char *folder, size_t length, const char *base,
		    char path[PATH_MAX])
{
	return snprintf(path, PATH_MAX, "%.*s%s%s", (int)length, folder,
			length ? "/" : "", base) < PATH_MAX &&
	       !access(path, R_OK);
}

static bool find_image(const struct tickmap_loader *loader, const char *mapped,
		       char path[PATH_MAX])
{
	const struct tickmap_profile_options *options = loader->options;
	const char *slash = strrchr(mapped, '/');
	const char *base = slash ? slash + 1 : mapped;
	const char *end = strrchr(loader->path, '/');

	for (size_t i = 0; i < options->code_map_dir_count; i++)
		if (is_here(options->code_map_dirs[i],
			    strlen(options->code_map_dirs[i]), base, path))
			return true;
	return is_here(loader->path, end ? (size_t)(end - loader->path) : 0,
		       base, path) ||
	       (*mapped == '/' && is_here("", 0, mapped, path));
}

static bool add_code(struct tickmap_loader *loader,
		     struct tickmap_loaded_map *map, const char *path)
{
	tickmap_str *image = tickmap_vec_push(&loader->images);
	struct tickmap_code *code =
		image && loader->codes.count < TICKMAP_NONE - 1
			? tickmap_vec_push(&loader->codes)
			: NULL;

	if (!code)
		return false;
	*image = tickmap_intern_cstr(loader->profile->strings, path);
	*code = (struct tickmap_code) {
		.frame = TICKMAP_NONE,
		.image = (uint32_t)(loader->images.count - 1),
	};
	map->code = (uint32_t)(loader->codes.count - 1);
	loader->profile->code_loads++;
	return true;
}

bool tickmap_jitted_find(struct tickmap_loader *loader)
{
	char path[PATH_MAX];

	for (size_t i = 0; i < loader->maps.count; i++) {
		struct tickmap_loaded_map *map = &loader->maps.items[i];
		const char *mapped = tickmap_string(loader->profile->strings,
						    map->path, NULL);
		if (map->jitted && find_image(loader, mapped, path) &&
		    !add_code(loader, map, path))
			return false;
	}
	return true;
}

bool tickmap_jitted_complete(const struct tickmap_loader *loader, uint32_t pid)
{
	bool any = false;

	for (size_t i = 0; i < loader->side.count; i++) {
		const struct tickmap_side *e = &loader->side.items[i];
		if (e->kind != TICKMAP_SIDE_MAP || e->pid != pid)
			continue;
		const struct tickmap_loaded_map *map =
			&loader->maps.items[e->map];
		if (map->jitted && map->code == TICKMAP_NONE)
			return false;
		any |= map->jitted;
	}
	return any;
}

static void read_image(struct tickmap_loader *loader, struct tickmap_code *code,
		       struct tickmap_elf *elf)
{
	struct tickmap_strings *strings = loader->profile->strings;
	struct tickmap_symbols *symbols;

	if (tickmap_symbols_load(elf, NULL, "", &symbols, NULL))
		return;
	if (tickmap_symbols_count(symbols)) {
		const struct tickmap_elf_symbol *s =
			tickmap_symbols_at(symbols, 0);
		struct tickmap_elf_section frame =
			tickmap_elf_section(elf, ".eh_frame");
		code->name = tickmap_intern_cstr(strings, s->name);
		if (frame.size && loader->dwarf_stacks) {
			code->eh_frame = tickmap_intern(
				strings, (const char *)frame.bytes, frame.size);
			code->eh_frame_gap = frame.svma - s->svma;
		}
	}
	tickmap_symbols_free(symbols);
}

void tickmap_jitted_read(struct tickmap_loader *loader,
			 struct tickmap_code *code)
{
	struct tickmap_elf *elf;

	if (code->image == TICKMAP_NONE)
		return;
	const char *path =
		tickmap_string(loader->profile->strings,
			       loader->images.items[code->image], NULL);
	code->image = TICKMAP_NONE;
	if (tickmap_elf_open(path, &elf, NULL))
		return;
	read_image(loader, code, elf);
	tickmap_elf_close(elf);
}

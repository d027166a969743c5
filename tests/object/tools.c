/* SPDX-License-Identifier: MIT */
#include "tools.h"

#include "base/vec.h"
#include "object/elf.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void command_text(char *out, size_t size, const char *format,
			 va_list args)
{
	int n = vsnprintf(out, size, format, args);

	if (n < 0 || (size_t)n >= size)
		abort();
}

void must_run(const char *format, ...)
{
	char command[4096];
	va_list args;

	va_start(args, format);
	command_text(command, sizeof(command), format, args);
	va_end(args);
	if (system(command) != 0) {
		fprintf(stderr, "failed: %s\n", command);
		abort();
	}
}

FILE *must_open(const char *format, ...)
{
	char command[4096];
	va_list args;

	va_start(args, format);
	command_text(command, sizeof(command), format, args);
	va_end(args);
	FILE *pipe = popen(command, "r");
	if (!pipe)
		abort();
	return pipe;
}

bool have_tool(const char *name)
{
	char command[256];

	snprintf(command, sizeof(command), "command -v %s >/dev/null 2>&1",
		 name);
	return system(command) == 0;
}

void make_folder(char out[64])
{
	snprintf(out, 64, "/tmp/tickmap-test-XXXXXX");
	if (!mkdtemp(out))
		abort();
}

void remove_folder(const char *folder)
{
	must_run("rm -rf '%s'", folder);
}

void write_all(const char *path, const void *bytes, size_t size)
{
	FILE *file = fopen(path, "wb");

	if (!file || fwrite(bytes, 1, size, file) != size || fclose(file))
		abort();
}

void write_text(const char *path, const char *text)
{
	write_all(path, text, strlen(text));
}

uint8_t *read_all(const char *path, size_t *ret_size)
{
	FILE *file = fopen(path, "rb");
	uint8_t *bytes;
	long size;

	if (!file || fseek(file, 0, SEEK_END) || (size = ftell(file)) < 0 ||
	    fseek(file, 0, SEEK_SET))
		abort();
	bytes = malloc((size_t)size + 1);
	if (!bytes || fread(bytes, 1, (size_t)size, file) != (size_t)size)
		abort();
	fclose(file);
	*ret_size = (size_t)size;
	return bytes;
}

/* ---- readelf ---- */

struct pile {
	TICKMAP_VEC(struct listed) items;
	bool symtab;
};

static void read_listing(struct pile *pile, const char *path)
{
	FILE *pipe = must_open("readelf -sW '%s' 2>/dev/null", path);
	char *line = NULL;
	size_t room = 0;

	while (getline(&line, &room, pipe) > 0) {
		char type[16], bind[16], section[16], size[24];
		unsigned long long svma;
		int at = 0;
		if (strstr(line, "'.symtab'"))
			pile->symtab = true;
		/* 5: 0000000000001139 11 FUNC GLOBAL DEFAULT 14 main */
		if (sscanf(line, " %*d: %llx %23s %15s %15s %*s %15s %n", &svma,
			   size, type, bind, section, &at) < 5 ||
		    !at || strcmp(section, "UND") == 0 ||
		    (strcmp(type, "FUNC") != 0 && strcmp(type, "IFUNC") != 0))
			continue;
		uint64_t bytes = strtoull(size, NULL, 0);
		char *name = line + at;
		name[strcspn(name, "@ \n")] = '\0';
		if (!bytes || !*name)
			continue;
		struct listed *new = tickmap_vec_push(&pile->items);
		if (!new)
			abort();
		*new = (struct listed) { svma, bytes, strdup(name) };
	}
	free(line);
	pclose(pipe);
}

static int by_place(const void *a, const void *b)
{
	const struct listed *x = a, *y = b;

	return x->svma < y->svma ? -1 : x->svma > y->svma;
}

struct listing list_functions(const char *path, const char *debug_path)
{
	struct pile pile = { 0 };

	read_listing(&pile, path);
	if (debug_path && *debug_path)
		read_listing(&pile, debug_path);
	if (pile.items.count)
		qsort(pile.items.items, pile.items.count, sizeof(struct listed),
		      by_place);
	return (struct listing) { pile.items.items, pile.items.count,
				  pile.symtab };
}

void free_listing(struct listing *listing)
{
	for (size_t i = 0; i < listing->count; i++)
		free(listing->items[i].name);
	free(listing->items);
}

bool listing_agrees(const struct listing *listing, uint64_t svma,
		    const char *name, bool *ret_any)
{
	uint64_t start = 0, size = 0;

	*ret_any = false;
	for (size_t i = 0; i < listing->count; i++) {
		const struct listed *s = &listing->items[i];
		if (s->svma > svma)
			break;
		if (svma - s->svma >= s->size)
			continue;
		if (!*ret_any || s->svma > start || s->size < size) {
			start = s->svma;
			size = s->size;
		}
		*ret_any = true;
	}
	for (size_t i = 0; *ret_any && name && i < listing->count; i++) {
		const struct listed *s = &listing->items[i];
		if (s->svma == start && s->size == size &&
		    strcmp(s->name, name) == 0)
			return true;
	}
	return false;
}

void system_debug_file(const char *path, char *out, size_t size)
{
	struct tickmap_elf *elf;
	uint8_t id[20];
	size_t at, id_size = 0;

	*out = '\0';
	if (tickmap_elf_open(path, &elf, NULL) == 0) {
		id_size = tickmap_elf_build_id(elf, id);
		tickmap_elf_close(elf);
	}
	if (!id_size)
		return;
	at = (size_t)snprintf(out, size, "/usr/lib/debug/.build-id/%02x/",
			      id[0]);
	for (size_t i = 1; i < id_size; i++)
		at += (size_t)snprintf(out + at, size - at, "%02x", id[i]);
	snprintf(out + at, size - at, ".debug");
	if (access(out, R_OK) != 0)
		*out = '\0';
}

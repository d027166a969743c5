/* SPDX-License-Identifier: MIT */
/*
 * Which files hold a program's DWARF, and bytes of their sections. A plain
 * section is read through a window; a compressed one has to be unpacked whole,
 * when it is first asked for.
 */
#include "object/dwarf_internal.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

enum {
	WINDOW = 4096,
	UNPACK_FIRST = 64 * 1024,
	TEXT_MAX = 64 * 1024,
};
#define UNPACK_LIMIT (UINT64_C(2) << 30)

static const char *const names[DWARF_SECTIONS] = {
	[DWARF_INFO] = ".debug_info",
	[DWARF_ABBREV] = ".debug_abbrev",
	[DWARF_STR] = ".debug_str",
	[DWARF_LINE] = ".debug_line",
	[DWARF_LINE_STR] = ".debug_line_str",
	[DWARF_STR_OFFSETS] = ".debug_str_offsets",
	[DWARF_ADDR] = ".debug_addr",
	[DWARF_RANGES] = ".debug_ranges",
	[DWARF_RNGLISTS] = ".debug_rnglists",
	[DWARF_ARANGES] = ".debug_aranges",
};

/* ---- Compressed sections ---- */

/* A stated size is believed only as far as bytes come out. */
static bool grow(struct elf_piece *out, uint64_t stated)
{
	uint64_t room = out->size ? 2 * (uint64_t)out->size : UNPACK_FIRST;
	uint8_t *grown;

	if (out->size >= stated)
		return false;
	if (room > stated)
		room = stated;
	grown = realloc(out->owned, (size_t)room);
	if (!grown)
		return false;
	out->owned = grown;
	out->bytes = grown;
	out->size = (size_t)room;
	return true;
}

static bool unpack_zlib(struct tickmap_bytes *in, uint64_t stated,
			struct elf_piece *out)
{
	z_stream z = { 0 };
	size_t left = tickmap_bytes_left(in), done = 0;
	const uint8_t *bytes = tickmap_take(in, left);
	int rc = Z_OK;

	if (!bytes || left > UINT32_MAX || inflateInit(&z) != Z_OK)
		return false;
	/* zlib's own interface lacks the const; it does not write there. */
	memcpy(&z.next_in, &bytes, sizeof(bytes));
	z.avail_in = (uInt)left;
	while (rc == Z_OK && done < stated) {
		if (done == out->size && !grow(out, stated))
			break;
		z.next_out = out->owned + done;
		z.avail_out = (uInt)(out->size - done);
		rc = inflate(&z, Z_NO_FLUSH);
		done = out->size - z.avail_out;
		if (rc == Z_OK && !z.avail_in && z.avail_out)
			break;
	}
	inflateEnd(&z);
	return done == stated;
}

static bool unpack_zstd(struct tickmap_bytes *in, uint64_t stated,
			struct elf_piece *out)
{
	size_t left = tickmap_bytes_left(in);
	ZSTD_inBuffer from = { tickmap_take(in, left), left, 0 };
	ZSTD_outBuffer to = { 0 };
	ZSTD_DStream *z = from.src ? ZSTD_createDStream() : NULL;
	size_t rc = 1;

	while (z && rc && to.pos < stated) {
		if (to.pos == out->size && !grow(out, stated))
			break;
		to.dst = out->owned;
		to.size = out->size;
		size_t before = to.pos;
		rc = ZSTD_decompressStream(z, &to, &from);
		if (ZSTD_isError(rc) ||
		    (to.pos == before && from.pos == from.size))
			break;
	}
	ZSTD_freeDStream(z);
	return to.pos == stated;
}

/* The content behind the header of a compressed section (gABI, Elf64_Chdr), or
 * behind that of GNU's older kind: "ZLIB" and the size, big-endian. */
static bool unpack(const struct tickmap_elf *elf, struct tickmap_bytes b,
		   bool gnu, struct elf_piece *ret_piece)
{
	struct elf_piece out = { 0 };
	uint32_t type = ELFCOMPRESS_ZLIB;
	uint64_t size = 0;
	bool good = false;

	if (gnu) {
		const uint8_t *magic = tickmap_take(&b, 4);
		if (!magic || memcmp(magic, "ZLIB", 4) != 0)
			return false;
		for (int i = 0; i < 8; i++)
			size = size << 8 | tickmap_u8(&b);
	} else {
		type = tickmap_u32(&b);
		if (elf->is_64)
			tickmap_u32(&b);
		size = tickmap_elf_word(elf, &b);
		tickmap_elf_word(elf, &b); /* alignment */
	}
	if (b.failed || !size || size > UNPACK_LIMIT)
		return false;
	if (type == ELFCOMPRESS_ZLIB)
		good = unpack_zlib(&b, size, &out);
	else if (type == 2) /* ELFCOMPRESS_ZSTD, younger than some elf.h */
		good = unpack_zstd(&b, size, &out);
	if (!good) {
		tickmap_elf_piece_free(&out);
		return false;
	}
	*ret_piece = out;
	return true;
}

/* ---- Sections ---- */

static const struct elf_header_of_section *
find_section(struct tickmap_elf *elf, enum dwarf_section section, bool *ret_gnu)
{
	char old[32];
	const struct elf_header_of_section *s =
		tickmap_elf_find_section(elf, names[section]);

	*ret_gnu = false;
	if (s)
		return s;
	*ret_gnu = true;
	snprintf(old, sizeof(old), ".z%s", names[section] + 1);
	return tickmap_elf_find_section(elf, old);
}

static struct dwarf_data *look(struct tickmap_dwarf *dwarf,
			       enum dwarf_section section)
{
	struct dwarf_data *data = &dwarf->data[section];
	struct tickmap_elf *elf = dwarf->elf;
	struct elf_piece packed;
	bool gnu;

	if (data->looked)
		return data;
	data->looked = true;
	const struct elf_header_of_section *s =
		find_section(elf, section, &gnu);
	if (!s || s->type == SHT_NOBITS || s->type == SHT_NULL)
		return data;
	if (!gnu && !(s->flags & SHF_COMPRESSED)) {
		if (s->offset <= elf->size &&
		    s->size <= elf->size - s->offset) {
			data->at = s->offset;
			data->size = s->size;
		}
		return data;
	}
	if (!tickmap_elf_read(elf, s->offset, s->size, &packed))
		return data;
	if (unpack(elf, tickmap_elf_cursor(elf, &packed), gnu, &data->whole))
		data->size = data->whole.size;
	tickmap_elf_piece_free(&packed);
	return data;
}

uint64_t dwarf_size(struct tickmap_dwarf *dwarf, enum dwarf_section section)
{
	return look(dwarf, section)->size;
}

struct tickmap_bytes dwarf_at(struct tickmap_dwarf *dwarf,
			      enum dwarf_section section, uint64_t offset,
			      uint64_t want)
{
	struct dwarf_data *data = look(dwarf, section);
	struct tickmap_bytes b = { .swap = dwarf->elf->swap };

	if (offset >= data->size) {
		b.failed = true;
		return b;
	}
	uint64_t left = data->size - offset;
	if (data->whole.bytes || dwarf->elf->image) {
		const uint8_t *base = data->whole.bytes
					      ? data->whole.bytes
					      : dwarf->elf->image + data->at;
		b.base = base + offset;
		b.size = (size_t)left;
		return b;
	}
	if (want > left)
		want = left;
	if (offset < data->window_at ||
	    offset - data->window_at > data->window.size ||
	    want > data->window.size - (offset - data->window_at)) {
		uint64_t size = want > WINDOW ? want : WINDOW;
		tickmap_elf_piece_free(&data->window);
		if (!tickmap_elf_read(dwarf->elf, data->at + offset,
				      size < left ? size : left,
				      &data->window)) {
			b.failed = true;
			return b;
		}
		data->window_at = offset;
	}
	b.base = data->window.bytes + (offset - data->window_at);
	b.size = data->window.size - (size_t)(offset - data->window_at);
	return b;
}

bool dwarf_keep(struct tickmap_dwarf *dwarf, enum dwarf_section section,
		uint64_t offset, uint64_t size, struct elf_piece *ret_piece)
{
	struct dwarf_data *data = look(dwarf, section);

	if (offset > data->size || size > data->size - offset)
		return false;
	if (!data->whole.bytes)
		return tickmap_elf_read(dwarf->elf, data->at + offset, size,
					ret_piece);
	*ret_piece = (struct elf_piece) { .bytes = data->whole.bytes + offset,
					  .size = (size_t)size };
	return true;
}

const char *dwarf_text(struct tickmap_dwarf *dwarf, enum dwarf_section section,
		       uint64_t offset)
{
	uint64_t key = (uint64_t)section << 56 ^ offset;
	const uint64_t *known = tickmap_table_get(&dwarf->text_at, key);
	const char *text = NULL;
	size_t length = 0;

	if (known)
		return (const char *)(uintptr_t)*known;
	for (uint64_t want = 256; !text && want <= TEXT_MAX; want *= 4) {
		struct tickmap_bytes b = dwarf_at(dwarf, section, offset, want);
		text = tickmap_cstr(&b, &length);
	}
	/* Many offsets into one long string would be many copies. */
	if (!text || length > dwarf->text_budget)
		return NULL;
	dwarf->text_budget -= length;
	text = tickmap_arena_copy(&dwarf->texts, text, length);
	uint64_t *slot = text ? tickmap_table_put(&dwarf->text_at, key) : NULL;
	if (!slot)
		return NULL;
	dwarf->texts_size += length + 1;
	*slot = (uint64_t)(uintptr_t)text;
	return text;
}

/* ---- Files ---- */

static bool has_info(struct tickmap_elf *elf)
{
	bool gnu;
	const struct elf_header_of_section *s =
		find_section(elf, DWARF_INFO, &gnu);

	return s && s->type != SHT_NOBITS && s->size;
}

static struct tickmap_dwarf *make(struct tickmap_elf *elf, bool owns)
{
	struct tickmap_dwarf *dwarf = calloc(1, sizeof(*dwarf));

	if (!dwarf) {
		if (owns)
			tickmap_elf_close(elf);
		return NULL;
	}
	dwarf->elf = elf;
	dwarf->owns_elf = owns;
	dwarf->abbrev_budget = 2 * elf->size + 4096;
	dwarf->range_budget = elf->size + 4096;
	dwarf->line_budget = 4 * elf->size + 4096;
	dwarf->text_budget = 8 * elf->size + 4096;
	return dwarf;
}

/* ---- .gnu_debugaltlink: a file name, and the build id of that file ---- */

static struct tickmap_elf *try_alt(const char *path, const uint8_t *id,
				   size_t id_size)
{
	struct tickmap_elf *elf;

	if (tickmap_elf_open(path, &elf, NULL) < 0)
		return NULL;
	if (elf->build_id_size == id_size &&
	    memcmp(elf->build_id, id, id_size) == 0 && has_info(elf))
		return elf;
	tickmap_elf_close(elf);
	return NULL;
}

/* A relative name is one beside the file that has it. */
static struct tickmap_elf *alt_beside(const struct tickmap_elf *elf,
				      const char *name, const uint8_t *id,
				      size_t id_size)
{
	char link[40], path[4096];
	char *full;
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", elf->fd);
	n = readlink(link, path, sizeof(path) - 1);
	if (n <= 0)
		return NULL;
	path[n] = '\0';
	char *slash = strrchr(path, '/');
	if (!slash ||
	    asprintf(&full, "%.*s/%s", (int)(slash - path), path, name) < 0)
		return NULL;
	struct tickmap_elf *alt = try_alt(full, id, id_size);
	free(full);
	return alt;
}

static struct tickmap_elf *find_alt(struct tickmap_elf *elf,
				    const char *sysroot)
{
	struct tickmap_elf_section s =
		tickmap_elf_section(elf, ".gnu_debugaltlink");
	struct tickmap_bytes b = tickmap_bytes_of(s.bytes, s.size);
	const char *name = tickmap_cstr(&b, NULL);
	size_t id_size = tickmap_bytes_left(&b);
	const uint8_t *id = tickmap_take(&b, id_size);
	struct tickmap_elf *alt = NULL;
	char *path;

	if (!name || !*name || !id || id_size < 2 || id_size > 20)
		return NULL;
	if (*name != '/')
		alt = alt_beside(elf, name, id, id_size);
	else if (asprintf(&path, "%s%s", sysroot, name) >= 0) {
		alt = try_alt(path, id, id_size);
		free(path);
	}
	if (!alt && asprintf(&path, "%s", "/usr/lib/debug/.build-id/") >= 0) {
		char hex[64];
		size_t at = 0;
		free(path);
		for (size_t i = 0; i < id_size; i++)
			at += (size_t)sprintf(hex + at,
					      i == 1 ? "/%02x" : "%02x", id[i]);
		if (asprintf(&path, "%s/usr/lib/debug/.build-id/%s.debug",
			     sysroot, hex) >= 0) {
			alt = try_alt(path, id, id_size);
			free(path);
		}
	}
	return alt;
}

struct tickmap_dwarf *tickmap_dwarf_open(struct tickmap_elf *elf,
					 const char *path, const char *sysroot)
{
	struct tickmap_elf *from = elf, *alt;

	if (!has_info(elf)) {
		from = path ? tickmap_debug_file_find(elf, path, sysroot)
			    : NULL;
		if (!from)
			return NULL;
		if (!has_info(from)) {
			tickmap_elf_close(from);
			return NULL;
		}
	}
	struct tickmap_dwarf *dwarf = make(from, from != elf);
	if (!dwarf)
		return NULL;
	alt = path ? find_alt(from, sysroot) : NULL;
	if (alt)
		dwarf->alt = make(alt, true);
	return dwarf;
}

void tickmap_dwarf_close(struct tickmap_dwarf *dwarf)
{
	if (!dwarf)
		return;
	tickmap_dwarf_close(dwarf->alt);
	for (size_t i = 0; i < dwarf->units.count; i++) {
		tickmap_elf_piece_free(&dwarf->units.items[i].bytes);
		dwarf_index_free(dwarf->units.items[i].index);
	}
	for (size_t i = 0; i < dwarf->abbrevs.count; i++)
		dwarf_abbrevs_free(dwarf->abbrevs.items[i]);
	for (size_t i = 0; i < dwarf->lines.count; i++)
		dwarf_lines_free(dwarf->lines.items[i]);
	for (size_t i = 0; i < DWARF_SECTIONS; i++) {
		tickmap_elf_piece_free(&dwarf->data[i].whole);
		tickmap_elf_piece_free(&dwarf->data[i].window);
	}
	tickmap_vec_free(&dwarf->units);
	tickmap_vec_free(&dwarf->abbrevs);
	tickmap_vec_free(&dwarf->lines);
	tickmap_table_free(&dwarf->abbrevs_by_at);
	tickmap_table_free(&dwarf->lines_by_at);
	tickmap_table_free(&dwarf->text_at);
	tickmap_arena_free(&dwarf->texts);
	free(dwarf->code);
	if (dwarf->owns_elf)
		tickmap_elf_close(dwarf->elf);
	free(dwarf);
}

size_t tickmap_dwarf_memory(const struct tickmap_dwarf *dwarf)
{
	size_t sum =
		dwarf->texts_size +
		dwarf->text_at.capacity * sizeof(struct tickmap_table_slot) +
		dwarf->units.capacity * sizeof(struct dwarf_unit) +
		dwarf->code_count * sizeof(struct dwarf_span);

	for (size_t i = 0; i < dwarf->units.count; i++) {
		const struct dwarf_unit *u = &dwarf->units.items[i];
		sum += (u->bytes.owned ? u->bytes.size : 0) +
		       dwarf_index_memory(u->index);
	}
	for (size_t i = 0; i < dwarf->lines.count; i++)
		sum += dwarf_lines_memory(dwarf->lines.items[i]);
	for (size_t i = 0; i < dwarf->abbrevs.count; i++)
		sum += dwarf->abbrevs.items[i]->items.capacity *
			       sizeof(struct dwarf_abbrev) +
		       dwarf->abbrevs.items[i]->specs.capacity *
			       sizeof(struct dwarf_spec);
	for (size_t i = 0; i < DWARF_SECTIONS; i++)
		sum += dwarf->data[i].whole.size + dwarf->data[i].window.size;
	return sum + (dwarf->alt ? tickmap_dwarf_memory(dwarf->alt) : 0);
}

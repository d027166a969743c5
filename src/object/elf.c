/* SPDX-License-Identifier: MIT */
/*
 * The file header, the segments, the section table, and the bytes behind them.
 * Only what is asked for is read: a library of hundreds of megabytes costs its
 * headers and the sections that somebody wanted.
 */
#include "object/elf_internal.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	HEADER_MIN = 52,		/* of a 32-bit file */
	HEADER_MAX = 64,		/* of a 64-bit one */
	SEGMENTS_LIMIT = 1 << 16,	/* more need PN_XNUM: core files */
	SECTIONS_LIMIT = 1 << 18,	/* -ffunction-sections objects */
	READ_LIMIT = 512 * 1024 * 1024, /* one section */
};

#define HOST_DATA                                                              \
	(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB)

static bool read_fully(int fd, uint8_t *out, size_t size, uint64_t offset)
{
	while (size) {
		ssize_t n = pread(fd, out, size, (off_t)offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		out += n;
		size -= (size_t)n;
		offset += (uint64_t)n;
	}
	return true;
}

bool tickmap_elf_read(const struct tickmap_elf *elf, uint64_t offset,
		      uint64_t size, struct elf_piece *ret_piece)
{
	if (offset > elf->size || size > elf->size - offset ||
	    size > READ_LIMIT)
		return false;

	struct elf_piece piece = { .size = (size_t)size };
	if (elf->image) {
		piece.bytes = elf->image + offset;
	} else {
		piece.owned = malloc(piece.size + 1);
		piece.bytes = piece.owned;
		if (!piece.owned ||
		    !read_fully(elf->fd, piece.owned, piece.size, offset)) {
			free(piece.owned);
			return false;
		}
	}
	*ret_piece = piece;
	return true;
}

bool tickmap_elf_bytes(const struct tickmap_elf *elf, uint64_t file_offset,
		       void *out, size_t size)
{
	struct elf_piece piece;

	if (!tickmap_elf_read(elf, file_offset, size, &piece))
		return false;
	memcpy(out, piece.bytes, size);
	tickmap_elf_piece_free(&piece);
	return true;
}

void tickmap_elf_piece_free(struct elf_piece *piece)
{
	free(piece->owned);
	*piece = (struct elf_piece) { 0 };
}

struct tickmap_bytes tickmap_elf_cursor(const struct tickmap_elf *elf,
					const struct elf_piece *piece)
{
	struct tickmap_bytes b = tickmap_bytes_of(piece->bytes, piece->size);
	b.swap = elf->swap;
	return b;
}

uint64_t tickmap_elf_word(const struct tickmap_elf *elf,
			  struct tickmap_bytes *b)
{
	return elf->is_64 ? tickmap_u64(b) : tickmap_u32(b);
}

const char *tickmap_elf_text(const struct tickmap_elf *elf,
			     const struct elf_piece *table, uint64_t at,
			     uint64_t *budget, size_t *ret_length)
{
	struct tickmap_bytes b = tickmap_elf_cursor(elf, table);

	*ret_length = 0;
	tickmap_seek(&b, at <= b.size ? (size_t)at : b.size);
	size_t left = tickmap_bytes_left(&b);
	if (left > *budget)
		left = (size_t)*budget;
	if (!left)
		return NULL;
	struct tickmap_bytes text = tickmap_sub(&b, left);
	size_t length = 0;
	const char *name = tickmap_cstr(&text, &length);
	*budget -= name ? length : left;
	*ret_length = length;
	return name;
}

uint64_t tickmap_elf_text_budget(const struct elf_piece *symbols,
				 const struct elf_piece *table)
{
	return (uint64_t)8 * table->size + (uint64_t)16 * symbols->size;
}

/* ---- Headers ---- */

static struct elf_segment read_segment(const struct tickmap_elf *elf,
				       struct tickmap_bytes *b)
{
	struct elf_segment s = { .type = tickmap_u32(b) };

	if (elf->is_64)
		s.flags = tickmap_u32(b);
	s.offset = tickmap_elf_word(elf, b);
	s.svma = tickmap_elf_word(elf, b);
	tickmap_elf_word(elf, b); /* physical address */
	s.file_size = tickmap_elf_word(elf, b);
	s.mem_size = tickmap_elf_word(elf, b);
	if (!elf->is_64)
		s.flags = tickmap_u32(b);
	s.align = tickmap_elf_word(elf, b);
	return s;
}

static struct elf_header_of_section read_section(const struct tickmap_elf *elf,
						 struct tickmap_bytes *b)
{
	struct elf_header_of_section s = { .name = tickmap_u32(b) };

	s.type = tickmap_u32(b);
	s.flags = tickmap_elf_word(elf, b);
	s.svma = tickmap_elf_word(elf, b);
	s.offset = tickmap_elf_word(elf, b);
	s.size = tickmap_elf_word(elf, b);
	s.link = tickmap_u32(b);
	s.info = tickmap_u32(b);
	s.align = tickmap_elf_word(elf, b);
	s.entry_size = tickmap_elf_word(elf, b);
	return s;
}

/* Section 0 holds the counts that the file header has no room for. */
static struct elf_header_of_section section_zero(const struct tickmap_elf *elf)
{
	struct elf_header_of_section zero = { 0 };
	struct elf_piece piece;

	if (!elf->section_table.at ||
	    !tickmap_elf_read(elf, elf->section_table.at,
			      elf->section_table.entry_size, &piece))
		return zero;
	struct tickmap_bytes b = tickmap_elf_cursor(elf, &piece);
	zero = read_section(elf, &b);
	if (b.failed)
		zero = (struct elf_header_of_section) { 0 };
	tickmap_elf_piece_free(&piece);
	return zero;
}

static int read_segments(struct tickmap_elf *elf, uint64_t at, uint32_t count,
			 uint16_t entry_size, struct tickmap_error *err)
{
	struct elf_piece piece;

	if (!count)
		return TICKMAP_OK;
	if (entry_size < (elf->is_64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr)))
		return tickmap_fail(err, TICKMAP_E_FORMAT, 0,
				    "program headers are too small");
	if (count > SEGMENTS_LIMIT)
		return tickmap_fail(err, TICKMAP_E_LIMIT, at,
				    "too many program headers");
	if (!tickmap_elf_read(elf, at, (uint64_t)count * entry_size, &piece))
		return tickmap_fail(err, TICKMAP_E_TRUNCATED, at,
				    "program headers lie outside the file");
	if (!tickmap_vec_reserve(&elf->segments, count)) {
		tickmap_elf_piece_free(&piece);
		return tickmap_fail(err, TICKMAP_E_NOMEM, at, "no memory");
	}
	struct tickmap_bytes b = tickmap_elf_cursor(elf, &piece);
	for (uint32_t i = 0; i < count; i++) {
		struct tickmap_bytes entry = tickmap_sub(&b, entry_size);
		elf->segments.items[i] = read_segment(elf, &entry);
	}
	elf->segments.count = count;
	tickmap_elf_piece_free(&piece);
	return TICKMAP_OK;
}

static int read_identity(struct tickmap_elf *elf, struct tickmap_bytes *b,
			 struct tickmap_error *err)
{
	const uint8_t *ident = tickmap_take(b, EI_NIDENT);

	if (!ident || memcmp(ident, ELFMAG, SELFMAG) != 0)
		return tickmap_fail(err, TICKMAP_E_FORMAT, 0,
				    "not an ELF file");
	if ((ident[EI_CLASS] != ELFCLASS32 && ident[EI_CLASS] != ELFCLASS64) ||
	    (ident[EI_DATA] != ELFDATA2LSB && ident[EI_DATA] != ELFDATA2MSB))
		return tickmap_fail(err, TICKMAP_E_FORMAT, EI_CLASS,
				    "an ELF file of an unknown kind");
	elf->is_64 = ident[EI_CLASS] == ELFCLASS64;
	elf->swap = b->swap = ident[EI_DATA] != HOST_DATA;
	return TICKMAP_OK;
}

static int read_header(struct tickmap_elf *elf, struct tickmap_error *err)
{
	struct elf_piece piece;
	uint64_t size = elf->size < HEADER_MAX ? elf->size : HEADER_MAX;

	if (!tickmap_elf_read(elf, 0, size, &piece))
		return tickmap_fail(err, TICKMAP_E_TRUNCATED, 0,
				    "the file cannot be read");
	struct tickmap_bytes b = tickmap_elf_cursor(elf, &piece);
	int rc = read_identity(elf, &b, err);

	tickmap_u16(&b); /* type */
	elf->machine = tickmap_u16(&b);
	tickmap_u32(&b);	   /* version */
	tickmap_elf_word(elf, &b); /* entry point */
	uint64_t segments_at = tickmap_elf_word(elf, &b);
	elf->section_table.at = tickmap_elf_word(elf, &b);
	tickmap_u32(&b); /* flags */
	tickmap_u16(&b); /* header size */
	uint16_t segment_size = tickmap_u16(&b);
	uint32_t segments = tickmap_u16(&b);
	elf->section_table.entry_size = tickmap_u16(&b);
	elf->section_table.count = tickmap_u16(&b);
	elf->section_table.names = tickmap_u16(&b);
	bool failed = b.failed;
	tickmap_elf_piece_free(&piece);
	if (rc < 0)
		return rc;
	if (failed)
		return tickmap_fail(err, TICKMAP_E_TRUNCATED, size,
				    "the ELF header is cut short");

	if (segments == PN_XNUM)
		segments = section_zero(elf).info;
	return read_segments(elf, segments_at, segments, segment_size, err);
}

void tickmap_elf_read_sections(struct tickmap_elf *elf)
{
	uint64_t count = elf->section_table.count;
	uint32_t names = elf->section_table.names;
	uint16_t entry_size = elf->section_table.entry_size;
	struct elf_piece piece;

	if (elf->sections_read)
		return;
	elf->sections_read = true;
	if (!elf->section_table.at ||
	    entry_size < (elf->is_64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr)))
		return;
	if (!count)
		count = section_zero(elf).size;
	if (names == SHN_XINDEX)
		names = section_zero(elf).link;
	if (!count || count > SECTIONS_LIMIT ||
	    !tickmap_elf_read(elf, elf->section_table.at, count * entry_size,
			      &piece))
		return;
	if (tickmap_vec_reserve(&elf->sections, (size_t)count)) {
		struct tickmap_bytes b = tickmap_elf_cursor(elf, &piece);
		for (uint64_t i = 0; i < count; i++) {
			struct tickmap_bytes entry =
				tickmap_sub(&b, entry_size);
			elf->sections.items[i] = read_section(elf, &entry);
		}
		elf->sections.count = (size_t)count;
	}
	tickmap_elf_piece_free(&piece);
	if (names < elf->sections.count)
		tickmap_elf_read_section(elf, &elf->sections.items[names],
					 &elf->section_names);
}

/* ---- Sections ---- */

const char *
tickmap_elf_section_name(const struct tickmap_elf *elf,
			 const struct elf_header_of_section *section)
{
	struct tickmap_bytes b = tickmap_elf_cursor(elf, &elf->section_names);

	tickmap_seek(&b, section->name);
	const char *name = tickmap_cstr(&b, NULL);
	return name ? name : "";
}

const struct elf_header_of_section *
tickmap_elf_find_section(struct tickmap_elf *elf, const char *name)
{
	tickmap_elf_read_sections(elf);
	for (size_t i = 0; i < elf->sections.count; i++) {
		const struct elf_header_of_section *s = &elf->sections.items[i];
		if (s->type != SHT_NULL &&
		    strcmp(tickmap_elf_section_name(elf, s), name) == 0)
			return s;
	}
	return NULL;
}

bool tickmap_elf_read_section(const struct tickmap_elf *elf,
			      const struct elf_header_of_section *section,
			      struct elf_piece *ret_piece)
{
	return section->type != SHT_NULL && section->type != SHT_NOBITS &&
	       !(section->flags & SHF_COMPRESSED) &&
	       tickmap_elf_read(elf, section->offset, section->size, ret_piece);
}

/* Lends bytes that stay until elf is closed; equal questions, equal bytes. */
static struct tickmap_elf_section lend(struct tickmap_elf *elf, uint64_t offset,
				       uint64_t size, uint64_t svma)
{
	struct tickmap_elf_section absent = { 0 };
	struct elf_loaded *loaded = NULL;

	for (size_t i = 0; i < elf->loaded.count && !loaded; i++)
		if (elf->loaded.items[i].offset == offset &&
		    elf->loaded.items[i].piece.size == size)
			loaded = &elf->loaded.items[i];
	if (!loaded) {
		struct elf_piece piece;
		if (!size || !tickmap_elf_read(elf, offset, size, &piece))
			return absent;
		loaded = tickmap_vec_push(&elf->loaded);
		if (!loaded) {
			tickmap_elf_piece_free(&piece);
			return absent;
		}
		*loaded = (struct elf_loaded) { offset, piece };
	}
	return (struct tickmap_elf_section) { loaded->piece.bytes,
					      loaded->piece.size, svma };
}

static const struct elf_segment *segment_of_type(const struct tickmap_elf *elf,
						 uint32_t type)
{
	for (size_t i = 0; i < elf->segments.count; i++)
		if (elf->segments.items[i].type == type)
			return &elf->segments.items[i];
	return NULL;
}

static const struct elf_segment *segment_at(const struct tickmap_elf *elf,
					    uint64_t svma)
{
	for (size_t i = 0; i < elf->segments.count; i++) {
		const struct elf_segment *s = &elf->segments.items[i];
		if (s->type == PT_LOAD && svma >= s->svma &&
		    svma - s->svma < s->file_size)
			return s;
	}
	return NULL;
}

/* The header's second field, "eh_frame_ptr" (LSB Core 5.0, 10.6.2), in the
 * encodings that linkers write: relative to its own place, or absolute. */
static bool eh_frame_address(const struct tickmap_elf *elf,
			     const struct tickmap_elf_section *hdr,
			     uint64_t *ret_svma)
{
	struct tickmap_bytes b = tickmap_bytes_of(hdr->bytes, hdr->size);
	uint64_t value;

	b.swap = elf->swap;
	uint8_t version = tickmap_u8(&b);
	uint8_t encoding = tickmap_u8(&b);
	tickmap_u16(&b); /* encodings of the count and the table */
	uint64_t here = hdr->svma + b.pos;
	switch (encoding & 0x0f) {
	case 0x00: /* a native word */
		value = tickmap_elf_word(elf, &b);
		break;
	case 0x03: /* udata4 */
		value = tickmap_u32(&b);
		break;
	case 0x0b: /* sdata4 */
		value = (uint64_t)(int64_t)(int32_t)tickmap_u32(&b);
		break;
	case 0x04: /* udata8 */
	case 0x0c: /* sdata8 */
		value = tickmap_u64(&b);
		break;
	default:
		return false;
	}
	if ((encoding & 0xf0) == 0x10) /* relative to the field itself */
		value += here;
	else if (encoding & 0xf0)
		return false;
	*ret_svma = value;
	return version == 1 && !b.failed;
}

static struct tickmap_elf_section unwind_by_segment(struct tickmap_elf *elf,
						    bool want_header)
{
	struct tickmap_elf_section hdr = { 0 };
	const struct elf_segment *s = segment_of_type(elf, PT_GNU_EH_FRAME);
	uint64_t svma;

	if (!s)
		return hdr;
	hdr = lend(elf, s->offset, s->file_size, s->svma);
	if (want_header || !hdr.size)
		return hdr;

	struct tickmap_elf_section absent = { 0 };
	if (!eh_frame_address(elf, &hdr, &svma))
		return absent;
	s = segment_at(elf, svma);
	if (!s)
		return absent;
	uint64_t skipped = svma - s->svma;
	if (skipped > UINT64_MAX - s->offset)
		return absent;
	return lend(elf, s->offset + skipped, s->file_size - skipped, svma);
}

struct tickmap_elf_section tickmap_elf_section(struct tickmap_elf *elf,
					       const char *name)
{
	const struct elf_header_of_section *s =
		tickmap_elf_find_section(elf, name);

	if (s && s->type != SHT_NOBITS && !(s->flags & SHF_COMPRESSED))
		return lend(elf, s->offset, s->size, s->svma);
	if (!s && strcmp(name, ".eh_frame_hdr") == 0)
		return unwind_by_segment(elf, true);
	if (!s && strcmp(name, ".eh_frame") == 0)
		return unwind_by_segment(elf, false);
	return (struct tickmap_elf_section) { 0 };
}

/* ---- Open and close ---- */

static int open_common(struct tickmap_elf template,
		       struct tickmap_elf **ret_elf, struct tickmap_error *err)
{
	struct tickmap_elf *elf = malloc(sizeof(*elf));

	if (!elf) {
		if (template.fd >= 0)
			close(template.fd);
		return tickmap_fail(err, TICKMAP_E_NOMEM, 0, "no memory");
	}
	*elf = template;
	int rc = read_header(elf, err);
	if (rc < 0) {
		tickmap_elf_close(elf);
		return rc;
	}
	tickmap_elf_find_build_id(elf);
	*ret_elf = elf;
	return TICKMAP_OK;
}

static int open_owned_fd(int fd, struct tickmap_elf **ret_elf,
			 struct tickmap_error *err)
{
	struct stat st;

	if (fd < 0)
		return tickmap_fail_os(err, errno, "open");
	if (fstat(fd, &st) < 0) {
		int os_errno = errno;
		close(fd);
		return tickmap_fail_os(err, os_errno, "stat");
	}
	if (!S_ISREG(st.st_mode)) {
		close(fd);
		return tickmap_fail(err, TICKMAP_E_UNSUPPORTED, 0,
				    "not a regular file");
	}
	struct tickmap_elf elf = { .fd = fd, .size = (uint64_t)st.st_size };
	return open_common(elf, ret_elf, err);
}

int tickmap_elf_open(const char *path, struct tickmap_elf **ret_elf,
		     struct tickmap_error *err)
{
	/* A fifo in place of the file must not hold us up. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int rc = open_owned_fd(fd, ret_elf, err);

	if (rc < 0)
		tickmap_error_source(err, path);
	return rc;
}

int tickmap_elf_open_fd(int fd, struct tickmap_elf **ret_elf,
			struct tickmap_error *err)
{
	return open_owned_fd(fcntl(fd, F_DUPFD_CLOEXEC, 3), ret_elf, err);
}

int tickmap_elf_open_memory(const void *image, size_t size,
			    struct tickmap_elf **ret_elf,
			    struct tickmap_error *err)
{
	struct tickmap_elf elf = { .fd = -1, .image = image, .size = size };

	if (!image || !size)
		return tickmap_fail(err, TICKMAP_E_TRUNCATED, 0,
				    "an empty image");
	return open_common(elf, ret_elf, err);
}

void tickmap_elf_release_file(struct tickmap_elf *elf)
{
	if (elf->fd >= 0)
		close(elf->fd);
	elf->fd = -1;
	if (!elf->image)
		elf->size = 0;
}

void tickmap_elf_close(struct tickmap_elf *elf)
{
	if (!elf)
		return;
	for (size_t i = 0; i < elf->loaded.count; i++)
		tickmap_elf_piece_free(&elf->loaded.items[i].piece);
	tickmap_vec_free(&elf->loaded);
	tickmap_elf_piece_free(&elf->section_names);
	tickmap_vec_free(&elf->sections);
	tickmap_vec_free(&elf->segments);
	tickmap_elf_release_file(elf);
	free(elf);
}

/* ---- Facts ---- */

uint16_t tickmap_elf_machine(const struct tickmap_elf *elf)
{
	return elf->machine;
}

bool tickmap_elf_is_64(const struct tickmap_elf *elf)
{
	return elf->is_64;
}

static const struct elf_segment *
segment_of_offset(const struct tickmap_elf *elf, uint64_t offset, bool code)
{
	for (size_t i = 0; i < elf->segments.count; i++) {
		const struct elf_segment *s = &elf->segments.items[i];
		if (s->type == PT_LOAD && offset >= s->offset &&
		    offset - s->offset < s->file_size &&
		    (!code || (s->flags & PF_X)))
			return s;
	}
	return NULL;
}

bool tickmap_elf_svma_of_offset(const struct tickmap_elf *elf,
				uint64_t file_offset, uint64_t *ret_svma)
{
	/* Code is what is asked for, should two segments share the byte. */
	const struct elf_segment *s = segment_of_offset(elf, file_offset, true);

	if (!s)
		s = segment_of_offset(elf, file_offset, false);
	if (!s)
		return false;
	*ret_svma = s->svma + (file_offset - s->offset);
	return true;
}

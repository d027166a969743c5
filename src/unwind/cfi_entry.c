/* SPDX-License-Identifier: MIT */
#include "unwind/cfi_entry.h"

/* DWARF exception header encodings (LSB Core 5.0, 10.5.1). */
enum {
	PE_OMIT = 0xff,
	PE_FORMAT = 0x0f,
	PE_RELATION = 0x70,
	PE_INDIRECT = 0x80,

	PE_ABSPTR = 0x00,
	PE_ULEB128 = 0x01,
	PE_UDATA2 = 0x02,
	PE_UDATA4 = 0x03,
	PE_UDATA8 = 0x04,
	PE_SIGNED = 0x08,
	PE_SLEB128 = 0x09,
	PE_SDATA2 = 0x0a,
	PE_SDATA4 = 0x0b,
	PE_SDATA8 = 0x0c,

	PE_PCREL = 0x10,
	PE_DATAREL = 0x30,
	PE_ALIGNED = 0x50,
};

enum {
	EXTENDED_LENGTH = 0xffffffff,
	/* "zPLRSB" is the longest known; a bound keeps a file full of FDEs
	 * that share one huge string from costing quadratic time. */
	AUGMENTATION_MAX = 16,
};

struct tickmap_cfi_entry tickmap_cfi_entry_at(const struct tickmap_cfi *cfi,
					      size_t offset)
{
	struct tickmap_cfi_entry entry = { .kind = TICKMAP_ENTRY_LAST };
	struct tickmap_bytes b =
		tickmap_cfi_bytes(cfi, offset, cfi->eh_frame_size);

	if (!tickmap_bytes_left(&b))
		return entry;
	uint64_t length = tickmap_u32(&b);
	if (length == EXTENDED_LENGTH)
		length = tickmap_u64(&b);
	if (!b.failed && length == 0)
		return entry;
	entry.kind = TICKMAP_ENTRY_BAD;
	if (length > tickmap_bytes_left(&b))
		return entry;
	entry.end = b.pos + (size_t)length;
	/* Four bytes also behind an extended length (LSB, 10.6.1). */
	size_t id_at = b.pos;
	b.size = entry.end;
	uint32_t id = tickmap_u32(&b);
	entry.body = b.pos;
	if (b.failed || id > id_at)
		return entry;
	entry.kind = id ? TICKMAP_ENTRY_FDE : TICKMAP_ENTRY_CIE;
	entry.cie_offset = id_at - id;
	return entry;
}

static uint64_t read_format(struct tickmap_bytes *b, uint8_t format,
			    bool *ret_known)
{
	*ret_known = true;
	switch (format) {
	case PE_ABSPTR:
	case PE_SIGNED:
	case PE_UDATA8:
	case PE_SDATA8:
		return tickmap_u64(b);
	case PE_ULEB128:
		return tickmap_uleb(b);
	case PE_SLEB128:
		return (uint64_t)tickmap_sleb(b);
	case PE_UDATA2:
		return tickmap_u16(b);
	case PE_SDATA2:
		return (uint64_t)(int16_t)tickmap_u16(b);
	case PE_UDATA4:
		return tickmap_u32(b);
	case PE_SDATA4:
		return (uint64_t)(int32_t)tickmap_u32(b);
	default:
		*ret_known = false;
		return 0;
	}
}

bool tickmap_cfi_pointer(struct tickmap_bytes *b, uint64_t at, uint8_t encoding,
			 const uint64_t *data_base, uint64_t *ret_value)
{
	bool known;

	if (encoding == PE_OMIT)
		return false;
	if ((encoding & PE_RELATION) == PE_ALIGNED)
		tickmap_take(b, (size_t)(-(at + b->pos) & 7));
	uint64_t field = at + b->pos;
	uint64_t value = read_format(b, encoding & PE_FORMAT, &known);
	if (!known || b->failed || (encoding & PE_INDIRECT))
		return false;
	switch (encoding & PE_RELATION) {
	case 0:
	case PE_ALIGNED:
		break;
	case PE_PCREL:
		value += field;
		break;
	case PE_DATAREL:
		if (!data_base)
			return false;
		value += *data_base;
		break;
	default:
		return false;
	}
	*ret_value = value;
	return true;
}

/* The letters behind 'z' say what the sized data holds, in their order. */
static bool read_augmentation(struct tickmap_bytes *b, uint64_t at,
			      const char *letters, struct tickmap_cie *cie)
{
	uint64_t unused;
	uint64_t size = tickmap_uleb(b);
	if (size > tickmap_bytes_left(b))
		return false;
	size_t end = b->pos + (size_t)size;

	for (bool known = true; known && *letters; letters++) {
		switch (*letters) {
		case 'R':
			cie->encoding = tickmap_u8(b);
			break;
		case 'L':
			tickmap_u8(b);
			break;
		case 'P':
			/* Its meaning does not matter, only its length. */
			tickmap_cfi_pointer(b, at, tickmap_u8(b), NULL,
					    &unused);
			break;
		case 'S':
			cie->signal_frame = true;
			break;
		case 'B': /* aarch64: the other signing key */
			break;
		default:
			known = false; /* the size says where it ends */
		}
	}
	if (b->failed || b->pos > end)
		return false;
	tickmap_seek(b, end);
	return true;
}

static bool read_cie(const struct tickmap_cfi *cfi, size_t offset,
		     struct tickmap_cie *cie)
{
	struct tickmap_cfi_entry entry = tickmap_cfi_entry_at(cfi, offset);
	size_t length;

	if (entry.kind != TICKMAP_ENTRY_CIE)
		return false;
	*cie = (struct tickmap_cie) { .offset = offset,
				      .program_end = entry.end };
	struct tickmap_bytes b = tickmap_cfi_bytes(cfi, entry.body, entry.end);
	uint8_t version = tickmap_u8(&b);
	if (version != 1 && version != 3 && version != 4)
		return false;
	const char *letters = tickmap_cstr(&b, &length);
	if (!letters || length > AUGMENTATION_MAX)
		return false;
	if (version == 4) {
		uint8_t address_size = tickmap_u8(&b);
		uint8_t segment_size = tickmap_u8(&b);
		if (address_size != sizeof(uint64_t) || segment_size)
			return false;
	}
	cie->code_align = tickmap_uleb(&b);
	cie->data_align = tickmap_sleb(&b);
	uint64_t column = version == 1 ? tickmap_u8(&b) : tickmap_uleb(&b);
	if (b.failed || column != TICKMAP_RIP)
		return false;
	if (*letters == 'z') {
		cie->sized_augmentation = true;
		if (!read_augmentation(&b, cfi->eh_frame_at, letters + 1, cie))
			return false;
	} else if (*letters) {
		return false; /* nothing says where the program starts */
	}
	cie->program = b.pos;
	return true;
}

enum tickmap_cfi_result
tickmap_cfi_read_fde(const struct tickmap_cfi *cfi,
		     const struct tickmap_cfi_entry *entry,
		     struct tickmap_fde *fde)
{
	struct tickmap_bytes b =
		tickmap_cfi_bytes(cfi, entry->body, entry->end);

	if (fde->cie.offset != entry->cie_offset &&
	    !read_cie(cfi, entry->cie_offset, &fde->cie)) {
		fde->cie.offset = SIZE_MAX;
		return TICKMAP_CFI_BAD;
	}
	bool known = tickmap_cfi_pointer(&b, cfi->eh_frame_at,
					 fde->cie.encoding, NULL, &fde->start);
	if (!known)
		return b.failed ? TICKMAP_CFI_BAD : TICKMAP_CFI_NONE;
	/* A size: the same width, but neither signed nor relative. */
	uint8_t width = fde->cie.encoding & (PE_FORMAT & ~PE_SIGNED);
	uint64_t size = read_format(&b, width, &known);
	fde->end =
		size > UINT64_MAX - fde->start ? UINT64_MAX : fde->start + size;
	if (fde->cie.sized_augmentation) {
		uint64_t skip = tickmap_uleb(&b);
		if (skip > tickmap_bytes_left(&b))
			return TICKMAP_CFI_BAD;
		tickmap_take(&b, (size_t)skip);
	}
	fde->program = b.pos;
	fde->program_end = entry->end;
	return b.failed ? TICKMAP_CFI_BAD : TICKMAP_CFI_OK;
}

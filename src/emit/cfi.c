/* SPDX-License-Identifier: MIT */
/*
 * The unwinding bytes of a code, of a builder's making or the caller's own:
 * whether they are what the library can pass on, and them fitted to one code.
 */
#include "internal.h"

#include <string.h>

#define MAX_FRAME_SIZE ((size_t)64 << 10)
#define DW_EH_PE_pcrel_sdata4 0x1b

/* A cursor over the caller's bytes that remembers when it ran out of them. */
struct reader {
	const uint8_t *bytes;
	size_t size;
	size_t at;
	bool bad;
};

static uint8_t read_u8(struct reader *in)
{
	if (in->bad || in->at >= in->size) {
		in->bad = true;
		return 0;
	}
	return in->bytes[in->at++];
}

static uint32_t read_u32(struct reader *in)
{
	uint32_t value = 0;

	if (in->bad || in->size - in->at < sizeof(value)) {
		in->bad = true;
		return 0;
	}
	memcpy(&value, in->bytes + in->at, sizeof(value));
	in->at += sizeof(value);
	return value;
}

/* Small numbers only: what does not fit 32 bits is none of ours. */
static uint32_t read_uleb(struct reader *in)
{
	uint32_t value = 0;

	for (unsigned int shift = 0; shift < 32; shift += 7) {
		uint8_t byte = read_u8(in);

		value |= (uint32_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
	in->bad = true;
	return 0;
}

/* The augmentation: 'z', an 'R' of pcrel sdata4, perhaps 'S', 'B' or 'G'. */
static void read_augmentation(struct reader *cie)
{
	uint8_t letters[8] = { 0 };
	size_t count = 0;
	bool has_encoding = false;

	for (;;) {
		uint8_t letter = read_u8(cie);

		if (!letter)
			break;
		if (count < sizeof(letters))
			letters[count] = letter;
		count++;
	}
	if (count > sizeof(letters) || letters[0] != 'z')
		cie->bad = true;
	read_uleb(cie); /* code alignment */
	read_uleb(cie); /* data alignment: its size is that of a ULEB */
	if (cie->size && cie->bytes[8] == 1)
		read_u8(cie);
	else
		read_uleb(cie);
	read_uleb(cie);
	for (size_t i = 1; i < count && !cie->bad; i++) {
		if (letters[i] == 'R')
			has_encoding = read_u8(cie) == DW_EH_PE_pcrel_sdata4;
		else if (!strchr("SBG", letters[i]))
			cie->bad = true;
	}
	if (!has_encoding)
		cie->bad = true;
}

static bool read_cie(struct reader *in)
{
	struct reader cie = { .bytes = in->bytes, .at = 4 };
	uint32_t length = read_u32(in);
	uint8_t version;

	if (in->bad || length > in->size - in->at)
		return false;
	cie.size = in->at + length;
	if (read_u32(&cie))
		return false;
	version = read_u8(&cie);
	if (version != 1 && version != 3)
		return false;
	read_augmentation(&cie);
	in->at = cie.size;
	return !cie.bad;
}

static bool read_fde(struct reader *in, uint32_t *ret_pc_begin)
{
	size_t start = in->at;
	uint32_t length = read_u32(in);
	uint32_t augmentation;
	size_t end;

	if (in->bad || length > in->size - in->at)
		return false;
	end = in->at + length;
	/* Distance from this field back to the CIE, which starts at 0. */
	if (read_u32(in) != start + 4)
		return false;
	*ret_pc_begin = (uint32_t)in->at;
	read_u32(in);
	read_u32(in);
	augmentation = read_uleb(in);
	if (in->bad || in->at > end || augmentation > end - in->at)
		return false;
	in->at = end;
	return true;
}

static int find_raw(const struct tickmap_code *code, struct emit_cfi *ret_cfi)
{
	struct reader in = { .bytes = code->eh_frame,
			     .size = code->eh_frame_size };

	if (in.size > MAX_FRAME_SIZE || code->unwind || !read_cie(&in) ||
	    !read_fde(&in, &ret_cfi->pc_begin))
		return TICKMAP_EMIT_E_ARGUMENT;
	/* A terminator, or padding. */
	for (size_t i = in.at; i < in.size; i++) {
		if (in.bytes[i])
			return TICKMAP_EMIT_E_ARGUMENT;
	}
	ret_cfi->bytes = in.bytes;
	ret_cfi->size = in.at;
	ret_cfi->is_built = false;
	return TICKMAP_EMIT_OK;
}

int tickmap_emit_find_cfi(const struct tickmap_code *code,
			  struct emit_cfi *ret_cfi)
{
	const struct tickmap_unwind *unwind = code->unwind;

	memset(ret_cfi, 0, sizeof(*ret_cfi));
	if (code->eh_frame)
		return find_raw(code, ret_cfi);
	if (!unwind || !unwind->frame_size)
		return TICKMAP_EMIT_OK;
	/* pc-begin (4), range (4) and the augmentation size (1) lie in it; the
	 * FDE's length and CIE pointer (8) lie before. */
	if (unwind->frame_size > sizeof(unwind->frame) ||
	    unwind->pc_begin < 8 || unwind->frame_size < 9 ||
	    unwind->pc_begin > unwind->frame_size - 9)
		return TICKMAP_EMIT_E_ARGUMENT;
	ret_cfi->bytes = unwind->frame;
	ret_cfi->size = unwind->frame_size;
	ret_cfi->pc_begin = unwind->pc_begin;
	ret_cfi->is_built = true;
	return TICKMAP_EMIT_OK;
}

static void set_i32(uint8_t *at, int64_t value)
{
	int32_t narrow = (int32_t)value;

	memcpy(at, &narrow, sizeof(narrow));
}

void tickmap_emit_fit_cfi(uint8_t *frame, const struct emit_cfi *cfi,
			  uint64_t code_size, uint64_t index)
{
	int64_t frame_at = (int64_t)((code_size + 7) & ~UINT64_C(7));
	uint8_t *pc_begin = frame + cfi->pc_begin;
	uint32_t range = (uint32_t)code_size;
	uint32_t marker = (uint32_t)index;

	set_i32(pc_begin, -(frame_at + cfi->pc_begin));
	memcpy(pc_begin + 4, &range, sizeof(range));
	if (cfi->is_built && pc_begin[8] == sizeof(marker) &&
	    cfi->size - cfi->pc_begin >= 9 + sizeof(marker))
		memcpy(pc_begin + 9, &marker, sizeof(marker));
}

void tickmap_emit_put_frame_hdr(struct emit_out *out,
				const struct emit_cfi *cfi, uint64_t code_size)
{
	uint8_t hdr[TICKMAP_EH_FRAME_HDR_SIZE] = { 1, 0x1b, 0x03, 0x3b };
	int64_t size = (int64_t)cfi->size;
	int64_t frame_at = (int64_t)((code_size + 7) & ~UINT64_C(7));
	int64_t fde = (int64_t)cfi->pc_begin - 8;
	uint32_t one = 1;

	set_i32(hdr + 4, -(size + 4));
	memcpy(hdr + 8, &one, sizeof(one));
	set_i32(hdr + 12, -(frame_at + size));
	set_i32(hdr + 16, -(size - fde));
	tickmap_emit_put(out, hdr, sizeof(hdr));
}

/* SPDX-License-Identifier: MIT */
#include "unwind/cfi.h"

#include "unwind/cfi_entry.h"
#include "unwind/cfi_program.h"

#include <stdlib.h>

enum {
	HDR_VERSION = 1,
	HDR_ENCODING_OMIT = 0xff,
	HDR_ENCODING_DATAREL_SDATA4 = 0x3b, /* what every linker writes */
	HDR_ROW = 8,
	/* JIT tables hold one: no index pays below this. */
	LINEAR_MAX = 8,
	SAME_START_MAX = 16, /* empty FDEs that share a start with a real one */
};

/* Rules keep places in the section as int32_t. */
static const size_t eh_frame_max = INT32_MAX;

static uint64_t hdr_word(const struct tickmap_cfi *cfi, size_t row, size_t at)
{
	int32_t offset;

	memcpy(&offset, cfi->sorted + row * HDR_ROW + at, sizeof(offset));
	return cfi->hdr_at + (uint64_t)offset;
}

static uint64_t hdr_start(const struct tickmap_cfi *cfi, size_t row)
{
	return hdr_word(cfi, row, 0);
}

/* A table that is out of order would hide functions: checked once, here. */
static bool hdr_in_order(const struct tickmap_cfi *cfi)
{
	for (size_t i = 1; i < cfi->sorted_count; i++) {
		if (hdr_start(cfi, i) < hdr_start(cfi, i - 1))
			return false;
	}
	return true;
}

static void use_hdr(struct tickmap_cfi *cfi)
{
	struct tickmap_bytes b = tickmap_bytes_of(cfi->hdr, cfi->hdr_size);
	uint64_t value, count;

	uint8_t version = tickmap_u8(&b);
	uint8_t frame_encoding = tickmap_u8(&b);
	uint8_t count_encoding = tickmap_u8(&b);
	uint8_t table_encoding = tickmap_u8(&b);
	if (b.failed || version != HDR_VERSION ||
	    table_encoding != HDR_ENCODING_DATAREL_SDATA4)
		return;
	if (frame_encoding != HDR_ENCODING_OMIT)
		tickmap_cfi_pointer(&b, cfi->hdr_at, frame_encoding,
				    &cfi->hdr_at, &value);
	if (!tickmap_cfi_pointer(&b, cfi->hdr_at, count_encoding, &cfi->hdr_at,
				 &count))
		return;
	if (!count || count > tickmap_bytes_left(&b) / HDR_ROW)
		return;
	cfi->sorted_count = (size_t)count;
	cfi->sorted = tickmap_take(&b, cfi->sorted_count * HDR_ROW);
	if (!hdr_in_order(cfi))
		cfi->sorted = NULL;
}

void tickmap_cfi_init(struct tickmap_cfi *cfi)
{
	cfi->sorted = NULL;
	cfi->sorted_count = 0;
	cfi->index = NULL;
	cfi->index_count = 0;
	cfi->indexed = false;
	if (!cfi->eh_frame)
		cfi->eh_frame_size = 0;
	if (cfi->eh_frame_size > eh_frame_max)
		cfi->eh_frame_size = eh_frame_max;
	if (cfi->hdr)
		use_hdr(cfi);
}

void tickmap_cfi_done(struct tickmap_cfi *cfi)
{
	free(cfi->index);
	cfi->index = NULL;
	cfi->index_count = 0;
	cfi->indexed = false;
}

/* The next FDE with a range that can be read; false at the end. */
static bool next_fde(const struct tickmap_cfi *cfi, size_t *offset,
		     struct tickmap_fde *fde, size_t *ret_at)
{
	for (;;) {
		struct tickmap_cfi_entry entry =
			tickmap_cfi_entry_at(cfi, *offset);
		if (entry.kind == TICKMAP_ENTRY_LAST ||
		    entry.kind == TICKMAP_ENTRY_BAD)
			return false;
		*ret_at = *offset;
		*offset = entry.end;
		if (entry.kind == TICKMAP_ENTRY_FDE &&
		    tickmap_cfi_read_fde(cfi, &entry, fde) == TICKMAP_CFI_OK &&
		    fde->start < fde->end)
			return true;
	}
}

static int by_start(const void *a, const void *b)
{
	const struct tickmap_cfi_fde_ref *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->fde_offset < y->fde_offset ? -1
					     : x->fde_offset > y->fde_offset;
}

/*
 * Costs 16 bytes an FDE, and an FDE takes 12 of the section at least: bounded
 * by what the caller holds already. Without memory the linear scan stays.
 */
static void build_index(struct tickmap_cfi *cfi)
{
	struct tickmap_fde fde = { .cie.offset = SIZE_MAX };
	size_t offset = 0, at, count = 0, i = 0;

	cfi->indexed = true;
	while (next_fde(cfi, &offset, &fde, &at))
		count++;
	if (count <= LINEAR_MAX)
		return;
	cfi->index = malloc(count * sizeof(*cfi->index));
	if (!cfi->index)
		return;
	offset = 0;
	while (i < count && next_fde(cfi, &offset, &fde, &at)) {
		cfi->index[i].start = fde.start;
		cfi->index[i++].fde_offset = at;
	}
	cfi->index_count = i;
	qsort(cfi->index, i, sizeof(*cfi->index), by_start);
}

static uint64_t row_start(const struct tickmap_cfi *cfi, size_t row)
{
	return cfi->sorted ? hdr_start(cfi, row) : cfi->index[row].start;
}

static size_t row_fde(const struct tickmap_cfi *cfi, size_t row)
{
	uint64_t offset = cfi->sorted ? hdr_word(cfi, row, 4) - cfi->eh_frame_at
				      : cfi->index[row].fde_offset;
	return offset < cfi->eh_frame_size ? (size_t)offset : SIZE_MAX;
}

/* Rows that start at or below pc; the last of them is the candidate. */
static size_t rows_up_to(const struct tickmap_cfi *cfi, size_t count,
			 uint64_t pc)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (row_start(cfi, middle) <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static enum tickmap_cfi_result find_in_rows(const struct tickmap_cfi *cfi,
					    size_t count, uint64_t pc,
					    bool *ret_lies,
					    struct tickmap_fde *fde)
{
	size_t row = rows_up_to(cfi, count, pc);

	if (!row)
		return TICKMAP_CFI_NONE;
	uint64_t start = row_start(cfi, row - 1);
	for (unsigned i = 0; i < SAME_START_MAX && row > 0; i++) {
		if (row_start(cfi, --row) != start)
			break;
		size_t at = row_fde(cfi, row);
		struct tickmap_cfi_entry entry = tickmap_cfi_entry_at(cfi, at);
		if (entry.kind != TICKMAP_ENTRY_FDE) {
			*ret_lies = true;
			return TICKMAP_CFI_BAD;
		}
		enum tickmap_cfi_result result =
			tickmap_cfi_read_fde(cfi, &entry, fde);
		if (result != TICKMAP_CFI_OK)
			return result;
		if (fde->start != start) {
			*ret_lies = true;
			return TICKMAP_CFI_BAD;
		}
		if (pc < fde->end)
			return TICKMAP_CFI_OK;
	}
	return TICKMAP_CFI_NONE;
}

static enum tickmap_cfi_result scan(const struct tickmap_cfi *cfi, uint64_t pc,
				    struct tickmap_fde *fde)
{
	size_t offset = 0, at;

	while (next_fde(cfi, &offset, fde, &at)) {
		if (pc >= fde->start && pc < fde->end)
			return TICKMAP_CFI_OK;
	}
	return TICKMAP_CFI_NONE;
}

static enum tickmap_cfi_result find_fde(struct tickmap_cfi *cfi, uint64_t pc,
					struct tickmap_fde *fde)
{
	bool lies = false;

	fde->cie.offset = SIZE_MAX;
	if (cfi->sorted) {
		enum tickmap_cfi_result result =
			find_in_rows(cfi, cfi->sorted_count, pc, &lies, fde);
		if (!lies)
			return result;
		cfi->sorted = NULL; /* the records say otherwise: trust them */
	}
	if (!cfi->indexed)
		build_index(cfi);
	if (cfi->index)
		return find_in_rows(cfi, cfi->index_count, pc, &lies, fde);
	return scan(cfi, pc, fde);
}

enum tickmap_cfi_result tickmap_cfi_rule(struct tickmap_cfi *cfi, uint64_t pc,
					 struct tickmap_rule *ret_rule)
{
	struct tickmap_fde fde;
	enum tickmap_cfi_result result = find_fde(cfi, pc, &fde);

	if (result != TICKMAP_CFI_OK)
		return result;
	return tickmap_cfi_run(cfi, &fde, pc, ret_rule);
}

bool tickmap_cfi_function(struct tickmap_cfi *cfi, uint64_t pc,
			  uint64_t *ret_start, uint64_t *ret_end)
{
	struct tickmap_fde fde;

	if (find_fde(cfi, pc, &fde) != TICKMAP_CFI_OK)
		return false;
	*ret_start = fde.start;
	*ret_end = fde.end;
	return true;
}

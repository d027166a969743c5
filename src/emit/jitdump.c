/* SPDX-License-Identifier: MIT */
/*
 * The records of a jitdump, version 1, in the producer's byte order.
 *
 *	header       magic, version, total_size = 40, elf_mach, pad, pid (u32
 *	             each), timestamp, flags (u64 each)
 *	prefix       id, total_size (u32), timestamp (u64); 16 bytes
 *	CODE_LOAD    prefix, pid, tid (u32), vma, code_addr, code_size,
 *	             code_index (u64), name and its NUL, code
 *	CODE_MOVE    prefix, pid, tid, vma, old_code_addr, new_code_addr,
 *	             code_size, code_index
 *	DEBUG_INFO   prefix, code_addr, nr_entry (u64), entries of
 *	             {addr u64, line u32, column u32, file name and its NUL}
 *	UNWINDING    prefix, unwinding_size, eh_frame_hdr_size, mapped_size,
 *	             .eh_frame, .eh_frame_hdr
 *
 * DEBUG_INFO and UNWINDING describe the next CODE_LOAD. They are padded to 8
 * bytes inside their total_size; a CODE_LOAD cannot be, as its code is found
 * at total_size - code_size.
 */
#include "internal.h"

#include <string.h>

enum {
	JIT_CODE_LOAD = 0,
	JIT_CODE_MOVE = 1,
	JIT_CODE_DEBUG_INFO = 2,
	JIT_CODE_CLOSE = 3,
	JIT_CODE_UNWINDING_INFO = 4,
};

#define HEADER_SIZE 40
#define LOAD_FIXED 56
#define MOVE_SIZE 64
#define CLOSE_SIZE 16

static uint64_t round_up(uint64_t value, uint64_t unit)
{
	return (value + unit - 1) / unit * unit;
}

static bool lines_are_sound(const struct tickmap_code *code)
{
	uint64_t offset = 0;

	if (code->line_count && !code->lines)
		return false;
	for (size_t i = 0; i < code->line_count; i++) {
		const struct tickmap_line *line = &code->lines[i];

		if (!line->line || line->offset < offset ||
		    line->offset > code->code_size)
			return false;
		offset = line->offset;
	}
	return true;
}

int tickmap_emit_jitdump_check(const struct emit_code *code)
{
	if (!lines_are_sound(&code->code))
		return TICKMAP_EMIT_E_ARGUMENT;
	if (code->code.code_size > EMIT_MAX_APPEND - EMIT_BUFFER_SIZE)
		return TICKMAP_EMIT_E_TOO_LARGE;
	return TICKMAP_EMIT_OK;
}

void tickmap_emit_jitdump_header(struct emit_out *out, uint32_t machine,
				 uint32_t pid, uint64_t ns)
{
	tickmap_emit_put_u32(out, UINT32_C(0x4A695444));
	tickmap_emit_put_u32(out, 1);
	tickmap_emit_put_u32(out, HEADER_SIZE);
	tickmap_emit_put_u32(out, machine);
	tickmap_emit_put_u32(out, 0);
	tickmap_emit_put_u32(out, pid);
	tickmap_emit_put_u64(out, ns);
	tickmap_emit_put_u64(out, 0);
}

static void put_prefix(struct emit_out *out, uint32_t id, uint64_t total_size,
		       uint64_t ns)
{
	tickmap_emit_put_u32(out, id);
	tickmap_emit_put_u32(out, (uint32_t)total_size);
	tickmap_emit_put_u64(out, ns);
}

/* Pad the record that starts at `start` and state its size. */
static void finish_record(struct emit_out *out, size_t start)
{
	size_t size = out->used - start;
	uint32_t total = (uint32_t)round_up(size, 8);

	tickmap_emit_put_zeros(out, total - size);
	if (!out->full)
		memcpy(out->base + start + 4, &total, sizeof(total));
}

/* The one-byte name FF means "as before" to readers. */
static const char as_before[] = { (char)0xff };

static void put_line(struct emit_out *out, uint64_t addr,
		     const struct tickmap_line *line, const char *file)
{
	size_t length = !file ? 0 : file == as_before ? 1 : strlen(file);

	if (length == 1 && file != as_before && file[0] == as_before[0])
		length = 0;
	tickmap_emit_put_u64(out, addr);
	tickmap_emit_put_u32(out, line->line);
	tickmap_emit_put_u32(out, line->column);
	tickmap_emit_put_text(out, file, length);
	tickmap_emit_put_zeros(out, 1);
}

static bool is_same_file(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

/*
 * perf gives the last entry of a table no bytes at all, so the last line is
 * repeated at the end of the code.
 */
static void put_debug_info(struct emit_out *out,
			   const struct emit_code *emit_code, uint64_t ns)
{
	const struct tickmap_code *code = &emit_code->code;
	size_t start = out->used;
	const struct tickmap_line *last = &code->lines[code->line_count - 1];
	uint64_t end = code->code_size + emit_code->tail_size;
	bool repeat = last->offset < end;
	const char *file = NULL;

	put_prefix(out, JIT_CODE_DEBUG_INFO, 0, ns);
	tickmap_emit_put_u64(out, code->addr);
	tickmap_emit_put_u64(out, code->line_count + (repeat ? 1 : 0));
	for (const struct tickmap_line *line = code->lines; line <= last;
	     line++) {
		const char *before = file;

		file = line->file ? line->file : code->file;
		put_line(out, code->addr + line->offset, line,
			 emit_code->short_names && line != code->lines &&
					 is_same_file(file, before)
				 ? as_before
				 : file);
		if (out->full)
			return;
	}
	if (repeat)
		put_line(out, code->addr + end, last,
			 emit_code->short_names ? as_before : file);
	finish_record(out, start);
}

/*
 * The frame, as it would lie in memory behind the code rounded up to 8 bytes,
 * which is also where perf's image has it: its pc-begin is relative to itself,
 * the table's entries are relative to the header.
 *
 * Where the FDE has four bytes of augmentation data (all of our builders make
 * them; "zR" gives them no meaning and every consumer skips them), they hold
 * the code index: no two images have the same contents, however alike two
 * functions are, and the code stays what really runs.
 */
static void put_unwinding(struct emit_out *out, const struct emit_code *code,
			  uint64_t ns)
{
	const struct emit_cfi *cfi = &code->cfi;
	uint64_t code_size = code->code.code_size + code->tail_size;
	size_t start = out->used;
	size_t frame_at;

	put_prefix(out, JIT_CODE_UNWINDING_INFO, 0, ns);
	tickmap_emit_put_u64(out, cfi->size + TICKMAP_EH_FRAME_HDR_SIZE);
	tickmap_emit_put_u64(out, TICKMAP_EH_FRAME_HDR_SIZE);
	tickmap_emit_put_u64(out, code->code.mapped_size);
	frame_at = out->used;
	tickmap_emit_put(out, cfi->bytes, cfi->size);
	if (!out->full)
		tickmap_emit_fit_cfi(out->base + frame_at, cfi, code_size,
				     code->index);
	tickmap_emit_put_frame_hdr(out, cfi, code_size);
	finish_record(out, start);
}

void tickmap_emit_jitdump_code(struct emit_out *out,
			       const struct emit_code *emit_code,
			       const struct emit_stamp *stamp)
{
	const struct tickmap_code *code = &emit_code->code;
	size_t name_length = code->name_length;
	size_t text_length = name_length ? name_length : 1;
	uint64_t code_size = code->code_size + emit_code->tail_size;

	if (code->line_count)
		put_debug_info(out, emit_code, stamp->ns);
	if (code_size && emit_code->cfi.size)
		put_unwinding(out, emit_code, stamp->ns);

	put_prefix(out, JIT_CODE_LOAD, LOAD_FIXED + text_length + 1 + code_size,
		   stamp->ns);
	tickmap_emit_put_u32(out, stamp->pid);
	tickmap_emit_put_u32(out, stamp->tid);
	tickmap_emit_put_u64(out, code->addr);
	tickmap_emit_put_u64(out, code->addr);
	tickmap_emit_put_u64(out, code_size);
	tickmap_emit_put_u64(out, emit_code->index);
	tickmap_emit_put_text(out, code->name, name_length);
	tickmap_emit_put_zeros(out, 1);
	/* The format has no code without bytes: code_size counts them. */
	if (!code->bytes)
		tickmap_emit_put_zeros(out, (size_t)code->code_size);
}

void tickmap_emit_jitdump_move(struct emit_out *out, uint64_t old_addr,
			       uint64_t new_addr, uint64_t code_size,
			       uint64_t index, const struct emit_stamp *stamp)
{
	put_prefix(out, JIT_CODE_MOVE, MOVE_SIZE, stamp->ns);
	tickmap_emit_put_u32(out, stamp->pid);
	tickmap_emit_put_u32(out, stamp->tid);
	tickmap_emit_put_u64(out, new_addr);
	tickmap_emit_put_u64(out, old_addr);
	tickmap_emit_put_u64(out, new_addr);
	tickmap_emit_put_u64(out, code_size);
	tickmap_emit_put_u64(out, index);
}

void tickmap_emit_jitdump_close(struct emit_out *out, uint64_t ns)
{
	put_prefix(out, JIT_CODE_CLOSE, CLOSE_SIZE, ns);
}

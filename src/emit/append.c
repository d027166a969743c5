/* SPDX-License-Identifier: MIT */
/*
 * From the bytes of one function to the file: one append each, or, where the
 * caller has asked for it, one for many.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "internal.h"

#include <string.h>

struct emit_out tickmap_emit_empty_out(const struct tickmap_emit *emit)
{
	return (struct emit_out) { .base = emit->buffer,
				   .size = EMIT_BUFFER_SIZE };
}

static struct emit_pending *pending_of(struct tickmap_emit *emit,
				       const struct emit_file *file)
{
	return file == &emit->dump ? &emit->dump_pending : &emit->map_pending;
}

static int write_out(struct tickmap_emit *emit, struct emit_file *file,
		     const struct iovec *iov, int count)
{
	int error = tickmap_emit_file_append(file, iov, count);

	return error ? tickmap_emit_latch(emit, TICKMAP_EMIT_E_OS, error) : 0;
}

static int write_pending(struct tickmap_emit *emit, struct emit_file *file)
{
	struct emit_pending *pending = pending_of(emit, file);
	struct iovec iov = { pending->base, pending->used };

	if (!pending->used)
		return TICKMAP_EMIT_OK;
	pending->used = 0;
	return write_out(emit, file, &iov, 1);
}

int tickmap_emit_append_pending(struct tickmap_emit *emit)
{
	int status = write_pending(emit, &emit->dump);

	return status ? status : write_pending(emit, &emit->map);
}

int tickmap_emit_append(struct tickmap_emit *emit, struct emit_file *file,
			const struct emit_out *out,
			const struct emit_code *code)
{
	struct iovec iov[3] = { { out->base, out->used } };
	struct emit_pending *pending = pending_of(emit, file);
	uint64_t total = out->used;
	int count = 1;
	int status;

	if (code && code->code.bytes && code->code.code_size) {
		/* iovec has no const; writev does not write. */
		iov[count].iov_base = (void *)(uintptr_t)code->code.bytes;
		iov[count++].iov_len = (size_t)code->code.code_size;
		total += code->code.code_size;
	}
	if (code && code->tail_size) {
		iov[count].iov_base = (void *)(uintptr_t)&code->index;
		iov[count++].iov_len = code->tail_size;
		total += code->tail_size;
	}
	if (out->full || total > EMIT_MAX_APPEND)
		return TICKMAP_EMIT_E_TOO_LARGE;
	if (!emit->options.batch_size)
		return write_out(emit, file, iov, count);

	if (total > emit->options.batch_size - pending->used) {
		status = write_pending(emit, file);
		if (status)
			return status;
	}
	if (total > emit->options.batch_size)
		return write_out(emit, file, iov, count);
	for (int i = 0; i < count; i++) {
		memcpy(pending->base + pending->used, iov[i].iov_base,
		       iov[i].iov_len);
		pending->used += iov[i].iov_len;
	}
	return TICKMAP_EMIT_OK;
}

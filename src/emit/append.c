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
			const struct iovec *iov, int count)
{
	struct emit_pending *pending = pending_of(emit, file);
	uint64_t total = 0;
	int status;

	for (int i = 0; i < count; i++)
		total += iov[i].iov_len;
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

int tickmap_emit_append_out(struct tickmap_emit *emit, struct emit_file *file,
			    const struct emit_out *out)
{
	struct iovec iov = { out->base, out->used };

	return out->full ? TICKMAP_EMIT_E_TOO_LARGE
			 : tickmap_emit_append(emit, file, &iov, 1);
}

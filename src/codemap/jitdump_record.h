/* SPDX-License-Identifier: MIT */
/*
 * One jitdump record: is this one, and what does it say. Knows nothing of the
 * file around it. Spans given to these functions begin at the record.
 */
#ifndef TICKMAP_CODEMAP_JITDUMP_RECORD_H
#define TICKMAP_CODEMAP_JITDUMP_RECORD_H

#include "base/bytes.h"
#include "codemap/codemap.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	TICKMAP_JIT_LOAD = TICKMAP_RECORD_LOAD,
	TICKMAP_JIT_MOVE = TICKMAP_RECORD_MOVE,
	TICKMAP_JIT_DEBUG_INFO = TICKMAP_RECORD_DEBUG_INFO,
	TICKMAP_JIT_CLOSE = TICKMAP_RECORD_CLOSE,
	TICKMAP_JIT_UNWINDING_INFO = TICKMAP_RECORD_UNWINDING_INFO,
	TICKMAP_JIT_KNOWN, /* ids from here on are not in the format yet */
};

enum {
	TICKMAP_JIT_PREFIX = 16,
	/* Above these a number is taken for damage, not for a record. */
	TICKMAP_JIT_ID_MAX = 0xffff,
	/* Fixed part of a LOAD; Darwin's CPython 3.15 beta made the tid 64
	 * bits wide, packed or aligned. */
	TICKMAP_JIT_LOAD_FIXED = 56,
	TICKMAP_JIT_LOAD_PACKED_TID64 = 60,
	TICKMAP_JIT_LOAD_ALIGNED_TID64 = 64,
	/* Of the others, with the prefix. */
	TICKMAP_JIT_MOVE_FIXED = 64,
	TICKMAP_JIT_DEBUG_FIXED = 32,
	TICKMAP_JIT_UNWINDING_FIXED = 40,
};

/* Bytes of a record, as few words as a call can take without memory. */
struct tickmap_jit_span {
	const uint8_t *at;
	size_t size;
};

static inline struct tickmap_bytes
tickmap_jit_cursor(struct tickmap_jit_span span, bool swap)
{
	struct tickmap_bytes b = tickmap_bytes_of(span.at, span.size);

	b.swap = swap;
	return b;
}

struct tickmap_jit_prefix {
	uint32_t id, size; /* size: of the whole record */
	uint64_t when;
};

/* The first 16 bytes, which must be there. */
static inline struct tickmap_jit_prefix
tickmap_jit_prefix(struct tickmap_jit_span span, bool swap)
{
	struct tickmap_bytes b = tickmap_jit_cursor(span, swap);
	struct tickmap_jit_prefix prefix;

	prefix.id = tickmap_u32(&b);
	prefix.size = tickmap_u32(&b);
	prefix.when = tickmap_u64(&b);
	return prefix;
}

/* The smallest size that a record of this id can have. */
static inline uint32_t tickmap_jit_minimum(uint32_t id)
{
	static const uint8_t minimum[TICKMAP_JIT_KNOWN] = {
		TICKMAP_JIT_LOAD_FIXED + 1,  TICKMAP_JIT_MOVE_FIXED,
		TICKMAP_JIT_DEBUG_FIXED,     TICKMAP_JIT_PREFIX,
		TICKMAP_JIT_UNWINDING_FIXED,
	};

	return id < TICKMAP_JIT_KNOWN ? minimum[id] : TICKMAP_JIT_PREFIX;
}

enum tickmap_jit_verdict {
	TICKMAP_JIT_SOUND,    /* the sizes in it agree with each other */
	TICKMAP_JIT_DOUBTFUL, /* they do not; what follows must speak for it */
	TICKMAP_JIT_WAIT,     /* cannot be said before more bytes are there */
};

/* `span` holds what is there of the record, at least its prefix; `fixed` is the
 * size of a LOAD's fixed part. */
enum tickmap_jit_verdict tickmap_jit_judge(struct tickmap_jit_span span,
					   bool swap,
					   struct tickmap_jit_prefix prefix,
					   uint32_t fixed);

/* Does it give its address twice, as CPython does, if it is laid out so? */
bool tickmap_jit_is_address_twice(struct tickmap_jit_span span, uint32_t fixed);

/* How large a LOAD is that says something else: as its name and code_size make
 * it. Only if its address is given twice, or once and 0, and it has a name. */
enum tickmap_jit_verdict tickmap_jit_implied_size(struct tickmap_jit_span span,
						  bool swap, uint32_t fixed,
						  uint32_t *ret_size);

/* What is odd about a LOAD. */
enum {
	TICKMAP_LOAD_UNTERMINATED = 1 << 0, /* no NUL behind the name */
	TICKMAP_LOAD_GAP = 1 << 1,	    /* bytes between name and code */
	TICKMAP_LOAD_CLIPPED = 1 << 2,	    /* code_size: more than there is */
	TICKMAP_LOAD_NO_BYTES = 1 << 3,	    /* ends behind the name */
	TICKMAP_LOAD_TOO_HIGH = 1 << 4,	    /* ends behind 2^64 */
};

struct tickmap_jit_load {
	uint32_t pid, tid;
	uint64_t avma, size, index;
	uint64_t stated_size; /* size before it was clipped */
	const char *name;
	size_t name_length;
	const uint8_t *code;	   /* NULL: not there, or not whole */
	const uint8_t *code_begin; /* what is there of it */
	size_t code_there;
	unsigned odd;
};

/* `span` holds the record, or its beginning when the file was cut. False: not
 * even the name is there. */
bool tickmap_jit_read_load(struct tickmap_jit_span span, bool swap,
			   struct tickmap_jit_prefix prefix, uint32_t fixed,
			   enum tickmap_jit_verdict verdict,
			   struct tickmap_jit_load *ret_load);

struct tickmap_jit_move {
	uint32_t pid, tid;
	uint64_t old_avma, avma, size, index;
};

void tickmap_jit_read_move(struct tickmap_jit_span span, bool swap,
			   struct tickmap_jit_move *ret_move);

static inline bool tickmap_jit_is_sign_extended(uint64_t avma)
{
	return avma >> 31 == UINT64_MAX >> 31;
}

struct tickmap_jit_debug {
	uint64_t address; /* of the code, as stated */
	uint64_t entry_count;
	uint64_t first, last; /* lowest and highest address of an entry */
	const char *file; /* of the first entry with a line; NULL: unknown */
	size_t file_length;
	uint32_t line;
	bool damaged; /* names in it are none, or do not end where they should
		       */
	struct tickmap_code_lines lines; /* as far as they can be walked */
};

/* `narrow`: addresses have 32 bits. */
void tickmap_jit_read_debug(struct tickmap_jit_span span, bool swap,
			    bool narrow, struct tickmap_jit_debug *ret_debug);

struct tickmap_jit_unwinding {
	uint64_t size, header_size, mapped_size; /* as stated */
	const uint8_t *eh_frame, *eh_frame_hdr;
	size_t eh_frame_size;
	bool header_first;
};

/* Within the record; false: its sizes do not fit. */
bool tickmap_jit_read_unwinding(struct tickmap_jit_span span, bool swap,
				struct tickmap_jit_unwinding *ret_unwinding);

#endif

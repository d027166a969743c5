/* SPDX-License-Identifier: MIT */
#include "codemap/jitdump_record.h"

/* addr, line, discriminator and the NUL of an empty name */
enum { DEBUG_ENTRY_MINIMUM = 17 };

/* Nothing but the number itself speaks for code without bytes: 1 TiB. */
#define SIZE_WITHOUT_BYTES (UINT64_C(1) << 40)

/* Records are padded to 8 at most; one word more does no harm. */
enum { PADDING_MAX = 15 };

/* Fields within bytes that were taken as a whole. */
static inline uint64_t u64_at(const uint8_t *at, bool swap)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return swap ? __builtin_bswap64(value) : value;
}

static inline uint32_t u32_at(const uint8_t *at, bool swap)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return swap ? __builtin_bswap32(value) : value;
}

/* Does the name end exactly where the code begins? */
static inline enum tickmap_jit_verdict
judge_load(struct tickmap_bytes b, uint32_t total, uint32_t fixed)
{
	const uint8_t *head, *name;
	uint64_t code_size;
	size_t room, left;

	if (total <= fixed)
		return TICKMAP_JIT_DOUBTFUL;
	head = tickmap_take(&b, fixed);
	if (!head)
		return TICKMAP_JIT_WAIT;
	/* CPython, the only writer of wide tids, gives the address twice: a
	 * LOAD without code bytes could look like one otherwise. */
	if (fixed != TICKMAP_JIT_LOAD_FIXED &&
	    memcmp(head + fixed - 32, head + fixed - 24, 8) != 0)
		return TICKMAP_JIT_DOUBTFUL;
	code_size = u64_at(head + fixed - 16, b.swap);
	if (code_size > total - fixed - 1)
		return TICKMAP_JIT_DOUBTFUL;
	room = total - fixed - (size_t)code_size;
	left = tickmap_bytes_left(&b);
	/* As soon as one byte says no: the number of a record that is none may
	 * be of gigabytes. */
	name = tickmap_take(&b, room < left ? room : left);
	if (name && memchr(name, 0, room - 1 < left ? room - 1 : left))
		return TICKMAP_JIT_DOUBTFUL;
	if (left < room)
		return TICKMAP_JIT_WAIT;
	return name && !name[room - 1] ? TICKMAP_JIT_SOUND
				       : TICKMAP_JIT_DOUBTFUL;
}

static inline enum tickmap_jit_verdict judge_debug(struct tickmap_bytes b,
						   uint32_t total)
{
	uint64_t count;

	if (b.size < TICKMAP_JIT_DEBUG_FIXED)
		return TICKMAP_JIT_WAIT;
	tickmap_seek(&b, 24);
	count = tickmap_u64(&b);
	return count <= (total - TICKMAP_JIT_DEBUG_FIXED) / DEBUG_ENTRY_MINIMUM
		       ? TICKMAP_JIT_SOUND
		       : TICKMAP_JIT_DOUBTFUL;
}

static inline enum tickmap_jit_verdict judge_unwinding(struct tickmap_bytes b,
						       uint32_t total)
{
	uint64_t size, header_size;
	uint32_t room = total - TICKMAP_JIT_UNWINDING_FIXED;

	if (b.size < TICKMAP_JIT_UNWINDING_FIXED)
		return TICKMAP_JIT_WAIT;
	tickmap_seek(&b, 16);
	size = tickmap_u64(&b);
	header_size = tickmap_u64(&b);
	return size <= room && room - size <= PADDING_MAX && header_size <= size
		       ? TICKMAP_JIT_SOUND
		       : TICKMAP_JIT_DOUBTFUL;
}

enum tickmap_jit_verdict tickmap_jit_judge(struct tickmap_jit_span span,
					   bool swap,
					   struct tickmap_jit_prefix prefix,
					   uint32_t fixed)
{
	struct tickmap_bytes b = tickmap_jit_cursor(span, swap);

	if (prefix.size < tickmap_jit_minimum(prefix.id))
		return TICKMAP_JIT_DOUBTFUL;
	switch (prefix.id) {
	case TICKMAP_JIT_LOAD:
		return judge_load(b, prefix.size, fixed);
	case TICKMAP_JIT_MOVE:
		return prefix.size - TICKMAP_JIT_MOVE_FIXED <= PADDING_MAX
			       ? TICKMAP_JIT_SOUND
			       : TICKMAP_JIT_DOUBTFUL;
	case TICKMAP_JIT_DEBUG_INFO:
		return judge_debug(b, prefix.size);
	case TICKMAP_JIT_UNWINDING_INFO:
		return judge_unwinding(b, prefix.size);
	default:
		/* Sixteen bytes prove little: always ask what follows. */
		return TICKMAP_JIT_DOUBTFUL;
	}
}

bool tickmap_jit_is_address_twice(struct tickmap_jit_span span, uint32_t fixed)
{
	static const uint8_t none[8];

	return span.size >= fixed &&
	       !memcmp(span.at + fixed - 32, span.at + fixed - 24, 8) &&
	       memcmp(span.at + fixed - 32, none, 8) != 0;
}

enum tickmap_jit_verdict tickmap_jit_implied_size(struct tickmap_jit_span span,
						  bool swap, uint32_t fixed,
						  uint32_t *ret_size)
{
	struct tickmap_bytes b = tickmap_jit_cursor(span, swap);
	const uint8_t *head = tickmap_take(&b, fixed);
	uint64_t vma, avma, size;
	size_t length;

	if (!head)
		return TICKMAP_JIT_WAIT;
	vma = u64_at(head + fixed - 32, swap);
	avma = u64_at(head + fixed - 24, swap);
	size = u64_at(head + fixed - 16, swap);
	if (!avma || size > UINT32_MAX / 2 ||
	    (vma != avma && (vma || fixed != TICKMAP_JIT_LOAD_FIXED)))
		return TICKMAP_JIT_DOUBTFUL;
	if (!tickmap_cstr(&b, &length))
		return TICKMAP_JIT_WAIT;
	if (!length || length > UINT32_MAX / 4)
		return TICKMAP_JIT_DOUBTFUL;
	*ret_size = fixed + (uint32_t)length + 1 + (uint32_t)size;
	return TICKMAP_JIT_SOUND;
}

/*
 * The name has no NUL, or the sizes contradict each other. What is left of the
 * record behind the name is what the writer really copied, so that counts; a
 * writer that keeps its code to itself leaves nothing there.
 */
static bool read_odd_load(struct tickmap_bytes b, uint32_t total,
			  struct tickmap_jit_load *load)
{
	struct tickmap_bytes name = b;
	size_t room = total - b.pos;

	load->name = tickmap_cstr(&name, &load->name_length);
	if (load->name && load->stated_size > room - load->name_length - 1) {
		uint64_t there = room - load->name_length - 1;
		if (!there && load->stated_size <= SIZE_WITHOUT_BYTES) {
			load->odd |= TICKMAP_LOAD_NO_BYTES;
			return true;
		}
		load->odd |= TICKMAP_LOAD_CLIPPED;
		load->size = there;
		load->code = tickmap_take(&name, (size_t)there);
		return true;
	}
	if (!load->name && load->stated_size > room) {
		/* Neither a name nor an end of it. */
		load->odd |= TICKMAP_LOAD_UNTERMINATED | TICKMAP_LOAD_CLIPPED;
		load->size = 0;
		load->name = "";
		load->name_length = 0;
		return true;
	}
	room -= (size_t)load->stated_size;
	load->name = (const char *)tickmap_take(&b, room);
	if (!load->name)
		return false;
	load->name_length = strnlen(load->name, room);
	load->odd |= load->name_length == room ? TICKMAP_LOAD_UNTERMINATED
					       : TICKMAP_LOAD_GAP;
	load->code = tickmap_take(&b, (size_t)load->stated_size);
	return true;
}

static void keep_in_space(struct tickmap_jit_load *load)
{
	if (!load->size || load->size - 1 <= UINT64_MAX - load->avma)
		return;
	load->size = UINT64_MAX - load->avma + 1;
	load->odd |= TICKMAP_LOAD_TOO_HIGH;
}

bool tickmap_jit_read_load(struct tickmap_jit_span span, bool swap,
			   struct tickmap_jit_prefix prefix, uint32_t fixed,
			   enum tickmap_jit_verdict verdict,
			   struct tickmap_jit_load *ret_load)
{
	struct tickmap_bytes b = tickmap_jit_cursor(span, swap);
	const uint8_t *head = tickmap_take(&b, fixed);
	struct tickmap_jit_load load = { .odd = 0 };

	if (!head || verdict == TICKMAP_JIT_WAIT)
		return false;
	load.pid = u32_at(head + TICKMAP_JIT_PREFIX, swap);
	/* The tid, then vma: nobody reads that, and LLVM leaves it 0. */
	load.tid = fixed == TICKMAP_JIT_LOAD_FIXED
			   ? u32_at(head + fixed - 36, swap)
			   : (uint32_t)u64_at(head + fixed - 40, swap);
	load.avma = u64_at(head + fixed - 24, swap);
	load.size = load.stated_size = u64_at(head + fixed - 16, swap);
	load.index = u64_at(head + fixed - 8, swap);
	if (verdict != TICKMAP_JIT_SOUND) {
		if (b.size < prefix.size ||
		    !read_odd_load(b, prefix.size, &load))
			return false;
		keep_in_space(&load);
		*ret_load = load;
		return true;
	}
	/* Sound: the name's only NUL is in front of the code. */
	load.name_length = prefix.size - fixed - (size_t)load.size - 1;
	load.name = (const char *)tickmap_take(&b, load.name_length + 1);
	load.code_there = tickmap_bytes_left(&b);
	load.code_begin = b.base + b.pos;
	load.code = tickmap_take(&b, (size_t)load.size);
	keep_in_space(&load);
	*ret_load = load;
	return true;
}

void tickmap_jit_read_move(struct tickmap_jit_span span, bool swap,
			   struct tickmap_jit_move *ret_move)
{
	struct tickmap_bytes b = tickmap_jit_cursor(span, swap);

	tickmap_seek(&b, TICKMAP_JIT_PREFIX);
	ret_move->pid = tickmap_u32(&b);
	ret_move->tid = tickmap_u32(&b);
	tickmap_u64(&b);
	ret_move->old_avma = tickmap_u64(&b);
	ret_move->avma = tickmap_u64(&b);
	ret_move->size = tickmap_u64(&b);
	ret_move->index = tickmap_u64(&b);
}

static const uint8_t *part(const struct tickmap_bytes *b, size_t at)
{
	return b->base + b->pos + at;
}

/* Is it the four bytes that begin an .eh_frame_hdr? */
static bool is_header(const uint8_t *bytes, size_t size)
{
	static const uint8_t forms[] = { 0x02, 0x03, 0x04, 0x0a, 0x0b, 0x0c };

	return size >= 8 && bytes[0] == 1 && bytes[1] != 0xff &&
	       memchr(forms, bytes[1] & 0x0f, sizeof(forms));
}

bool tickmap_jit_read_unwinding(struct tickmap_jit_span span, bool swap,
				struct tickmap_jit_unwinding *ret)
{
	struct tickmap_bytes b = tickmap_jit_cursor(span, swap);
	size_t rest, header;

	tickmap_seek(&b, TICKMAP_JIT_PREFIX);
	ret->size = tickmap_u64(&b);
	ret->header_size = tickmap_u64(&b);
	ret->mapped_size = tickmap_u64(&b);
	if (b.failed || ret->header_size > ret->size ||
	    ret->size > tickmap_bytes_left(&b))
		return false;
	header = (size_t)ret->header_size;
	rest = (size_t)ret->size - header;
	/* The text of the format has the header first, perf and the producers
	 * have it last. */
	ret->header_first = rest && !is_header(part(&b, rest), header) &&
			    is_header(part(&b, 0), header);
	ret->eh_frame_size = rest;
	ret->eh_frame = part(&b, ret->header_first ? header : 0);
	ret->eh_frame_hdr = part(&b, ret->header_first ? 0 : rest);
	return true;
}

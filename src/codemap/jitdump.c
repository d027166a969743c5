/* SPDX-License-Identifier: MIT */
/*
 * The dump as a stream: which bytes are the next record. A record is handed on
 * as soon as it is whole and agrees with itself; its bytes are kept until the
 * next one was seen, because a dump that lost bytes shows it only there.
 *
 * After damage the next record is searched byte by byte (records are not
 * aligned). Whatever the chunks in which a file is fed, the events are the
 * same: nothing is decided before the bytes that decide it are there.
 */
#include "codemap/codemap.h"

#include "codemap/jitdump_emit.h"

#include <stdlib.h>

enum {
	HEADER = 40,
	/* A larger header than that is damage. */
	HEADER_MAX = 64 << 10,
	/* Only a record that agrees with itself may keep us waiting for more
	 * than this. */
	DOUBTFUL_MAX = 1 << 20,
	/* Types of records that may come to be; larger ids are doubted. */
	NEW_ID_MAX = 31,
	/* A LOAD whose size is wrong is not looked for beyond this. */
	MENDED_MAX = 64 << 10,
	/* While scanning, anything but a LOAD is smaller than that. */
	FOUND_MAX = 256 << 20,
	/* So much is moved at once at least. */
	LEAST = 4096,
};

#define MAGIC UINT32_C(0x4a695444)

/*
 * How far from its neighbours a record's time may be when only that speaks for
 * it: 68 s back, 39 hours on, in ns. Clock ticks are not far from ns.
 */
#define TIME_BACK (UINT64_C(1) << 36)
#define TIME_ON (UINT64_C(1) << 47)

struct tickmap_jitdump {
	struct tickmap_jit_emit emit;
	/* What can be looked at: what was fed just now, or the buffer. */
	const uint8_t *view;
	size_t count;
	TICKMAP_VEC(uint8_t) buffer; /* what had to outlive a call */
	/* Offsets in the file. */
	uint64_t base;	   /* of the view */
	uint64_t previous; /* the last record handed on; == at: none is kept */
	uint64_t at;	   /* where the next record should be */
	uint64_t scan;	   /* while scanning: the next place to look at */
	bool has_header, scanning, ended, not_ours;
	bool header_doubted; /* records may begin before its size says */
	bool cut;	     /* at the end: the record at `at` goes beyond it */
	bool head_kept;	     /* of that record */
	uint32_t fixed;	     /* of a LOAD; 0: not known yet */
	uint64_t times[2];   /* of the last two records */
	unsigned time_count;
};

struct tickmap_jitdump *
tickmap_jitdump_new(const struct tickmap_code_handler *handler)
{
	struct tickmap_jitdump *dump = calloc(1, sizeof(*dump));

	if (dump)
		dump->emit.handler = *handler;
	return dump;
}

void tickmap_jitdump_free(struct tickmap_jitdump *dump)
{
	if (!dump)
		return;
	tickmap_jit_emit_free(&dump->emit);
	tickmap_vec_free(&dump->buffer);
	free(dump);
}

const struct tickmap_jitdump_header *
tickmap_jitdump_header(const struct tickmap_jitdump *dump)
{
	return dump->has_header ? &dump->emit.header : NULL;
}

struct tickmap_jitdump_counts
tickmap_jitdump_counts(const struct tickmap_jitdump *dump)
{
	return dump->emit.counts;
}

uint64_t tickmap_jitdump_line_bias(const struct tickmap_jitdump *dump)
{
	return tickmap_jit_emit_bias(&dump->emit);
}

void tickmap_jitdump_assume(struct tickmap_jitdump *dump, uint32_t elf_machine)
{
	dump->emit.assumed_machine = elf_machine;
}

bool tickmap_jitdump_is(const void *bytes, size_t size)
{
	struct tickmap_bytes b = tickmap_bytes_of(bytes, size);
	uint32_t magic = tickmap_u32(&b);

	return magic == MAGIC || magic == __builtin_bswap32(MAGIC);
}

/* Where what was fed ends. */
static uint64_t fed(const struct tickmap_jitdump *dump)
{
	return dump->base + dump->count;
}

/* Up to `size` bytes from there on; `at` must not lie outside the view. */
static struct tickmap_jit_span bytes_at(const struct tickmap_jitdump *dump,
					uint64_t at, size_t size)
{
	size_t pos = (size_t)(at - dump->base);
	size_t left = dump->count - pos;
	struct tickmap_jit_span span = { NULL, size < left ? size : left };

	if (span.size)
		span.at = dump->view + pos;
	return span;
}

static struct tickmap_jit_prefix prefix_of(const struct tickmap_jitdump *dump,
					   struct tickmap_jit_span span)
{
	return tickmap_jit_prefix(span, dump->emit.header.swap);
}

static void find_header_odd(const struct tickmap_jit_emit *emit, uint32_t pad)
{
	const struct tickmap_jitdump_header *header = &emit->header;

	if (header->version != 1)
		tickmap_jit_find(emit, TICKMAP_FOUND_JD003, 4, header->version);
	if (header->size != HEADER)
		tickmap_jit_find(emit, TICKMAP_FOUND_JD004, 8, header->size);
	if (!header->elf_machine)
		tickmap_jit_find(emit, TICKMAP_FOUND_JD005, 12, 0);
	if (pad)
		tickmap_jit_find(emit, TICKMAP_FOUND_JD006, 16, pad);
	if (header->flags & ~UINT64_C(1))
		tickmap_jit_find(emit, TICKMAP_FOUND_JD007, 32, header->flags);
	if (header->flags & 1)
		tickmap_jit_find(emit, TICKMAP_FOUND_JD009, 32, header->flags);
}

/* False: wait for more. */
static bool read_header(struct tickmap_jitdump *dump)
{
	struct tickmap_jitdump_header *header = &dump->emit.header;
	struct tickmap_jit_span span = bytes_at(dump, 0, HEADER);
	struct tickmap_bytes b = tickmap_jit_cursor(span, false);
	uint32_t magic, pad;

	if (b.size < sizeof(magic))
		return false;
	if (!tickmap_jitdump_is(b.base, b.size)) {
		magic = tickmap_u32(&b);
		tickmap_jit_find(&dump->emit, TICKMAP_FOUND_JD001, 0, magic);
		dump->not_ours = true;
		return false;
	}
	if (b.size < HEADER)
		return false;
	magic = tickmap_u32(&b);
	b.swap = header->swap = magic != MAGIC;
	header->version = tickmap_u32(&b);
	header->size = tickmap_u32(&b);
	header->elf_machine = tickmap_u32(&b);
	pad = tickmap_u32(&b);
	header->pid = tickmap_u32(&b);
	header->timestamp = tickmap_u64(&b);
	header->flags = tickmap_u64(&b);
	dump->has_header = true;
	find_header_odd(&dump->emit, pad);
	/* Mono says 8 and writes 40. Of a larger size the first record tells
	 * whether it is true. */
	dump->at = HEADER;
	dump->header_doubted =
		header->size > HEADER && header->size <= HEADER_MAX;
	dump->previous = HEADER - 1;
	return true;
}

static bool is_near(uint64_t when, uint64_t reference)
{
	return when < reference ? reference - when <= TIME_BACK
				: when - reference <= TIME_ON;
}

static bool is_near_last(const struct tickmap_jitdump *dump, uint64_t when)
{
	for (unsigned i = 0; i < dump->time_count; i++)
		if (is_near(when, dump->times[i]))
			return true;
	return !dump->time_count;
}

static bool is_possible(struct tickmap_jit_prefix prefix)
{
	return prefix.id <= TICKMAP_JIT_ID_MAX &&
	       prefix.size >= tickmap_jit_minimum(prefix.id);
}

enum verdict {
	SOUND,
	BROKEN,
	WAIT,
	CUT, /* at the end, instead of WAIT */
};

static enum verdict wait(const struct tickmap_jitdump *dump)
{
	return dump->ended ? CUT : WAIT;
}

/* Is there a record behind one of this size and time? */
static enum verdict judge_next(const struct tickmap_jitdump *dump, uint64_t at,
			       struct tickmap_jit_prefix prefix)
{
	uint64_t left = fed(dump) - at;
	struct tickmap_jit_prefix next;

	if (left < prefix.size)
		return wait(dump);
	left -= prefix.size;
	if (left < TICKMAP_JIT_PREFIX) {
		if (!dump->ended)
			return WAIT;
		return left ? BROKEN : SOUND;
	}
	next = prefix_of(dump,
			 bytes_at(dump, at + prefix.size, TICKMAP_JIT_PREFIX));
	return is_possible(next) && is_near(next.when, prefix.when) ? SOUND
								    : BROKEN;
}

/* Sizes of a LOAD's fixed part. */
static const uint32_t layouts[] = { TICKMAP_JIT_LOAD_FIXED,
				    TICKMAP_JIT_LOAD_PACKED_TID64,
				    TICKMAP_JIT_LOAD_ALIGNED_TID64 };

/* Which LOAD is it that this dump's writer writes? */
static enum tickmap_jit_verdict judge_body(const struct tickmap_jitdump *dump,
					   struct tickmap_jit_span b,
					   struct tickmap_jit_prefix prefix,
					   uint32_t *ret_fixed)
{
	enum tickmap_jit_verdict verdict;

	*ret_fixed = dump->fixed ? dump->fixed : TICKMAP_JIT_LOAD_FIXED;
	verdict = tickmap_jit_judge(b, dump->emit.header.swap, prefix,
				    *ret_fixed);
	if (prefix.id != TICKMAP_JIT_LOAD || dump->fixed)
		return verdict;
	for (unsigned i = 1; i < 3 && verdict == TICKMAP_JIT_DOUBTFUL; i++) {
		verdict = tickmap_jit_judge(b, dump->emit.header.swap, prefix,
					    layouts[i]);
		if (verdict != TICKMAP_JIT_DOUBTFUL ||
		    tickmap_jit_is_address_twice(b, layouts[i]))
			*ret_fixed = layouts[i];
	}
	return verdict;
}

/* Where a record should be: anything that agrees with itself. */
static enum verdict judge_stated(const struct tickmap_jitdump *dump,
				 struct tickmap_jit_place *ret)
{
	struct tickmap_jit_span b =
		bytes_at(dump, dump->at, TICKMAP_JIT_PREFIX);

	if (b.size < TICKMAP_JIT_PREFIX)
		return wait(dump);
	ret->offset = dump->at;
	ret->prefix = prefix_of(dump, b);
	ret->stated_size = ret->prefix.size;
	if (!is_possible(ret->prefix))
		return BROKEN;
	b = bytes_at(dump, dump->at, ret->prefix.size);
	ret->verdict = judge_body(dump, b, ret->prefix, &ret->fixed);
	if (ret->verdict == TICKMAP_JIT_DOUBTFUL) {
		if (ret->prefix.size > DOUBTFUL_MAX ||
		    !is_near_last(dump, ret->prefix.when))
			return BROKEN;
		return judge_next(dump, dump->at, ret->prefix);
	}
	return ret->verdict == TICKMAP_JIT_SOUND && b.size == ret->prefix.size
		       ? SOUND
		       : wait(dump);
}

/* Anywhere: only what agrees with itself, its neighbours and the dump. */
static enum verdict judge_found(const struct tickmap_jitdump *dump, uint64_t at)
{
	struct tickmap_jit_prefix prefix;
	enum tickmap_jit_verdict body;
	enum verdict next;
	uint32_t fixed;
	struct tickmap_jit_span b = bytes_at(dump, at, TICKMAP_JIT_PREFIX);

	if (b.size < TICKMAP_JIT_PREFIX)
		return wait(dump);
	prefix = prefix_of(dump, b);
	if (prefix.id >= TICKMAP_JIT_KNOWN || !is_possible(prefix) ||
	    (prefix.size > FOUND_MAX && prefix.id != TICKMAP_JIT_LOAD) ||
	    !is_near_last(dump, prefix.when))
		return BROKEN;
	if (prefix.id == TICKMAP_JIT_CLOSE && prefix.size != TICKMAP_JIT_PREFIX)
		return BROKEN;
	b = bytes_at(dump, at, prefix.size);
	body = judge_body(dump, b, prefix, &fixed);
	if (body == TICKMAP_JIT_WAIT)
		return wait(dump);
	if (body == TICKMAP_JIT_DOUBTFUL && prefix.id != TICKMAP_JIT_CLOSE)
		return BROKEN;
	next = judge_next(dump, at, prefix);
	/* Between two damaged places a LOAD speaks for itself: its name ends
	 * where its code begins. */
	if (next == BROKEN && prefix.id == TICKMAP_JIT_LOAD)
		return SOUND;
	return next;
}

/* Inside the previous record too: it may have lost its end. */
static uint64_t scan_start(const struct tickmap_jitdump *dump)
{
	return dump->previous < dump->at ? dump->previous + 1 : dump->at + 1;
}

/* A record should be here, and is an odd one. Bytes may have been lost here or
 * before: SOUND if no better one begins up to there. */
static enum verdict judge_between(const struct tickmap_jitdump *dump,
				  uint64_t end)
{
	for (uint64_t at = scan_start(dump); at < end; at++) {
		enum verdict inside =
			at == dump->at ? BROKEN : judge_found(dump, at);
		if (inside == SOUND || inside == WAIT)
			return inside == WAIT ? WAIT : BROKEN;
	}
	return SOUND;
}

/* With that layout of a LOAD. */
static enum verdict judge_size_as(const struct tickmap_jitdump *dump,
				  uint32_t fixed, struct tickmap_jit_place *ret)
{
	struct tickmap_jit_span b = bytes_at(dump, dump->at, MENDED_MAX);
	struct tickmap_jit_prefix prefix = ret->prefix;
	enum tickmap_jit_verdict verdict;
	enum verdict next;

	verdict = tickmap_jit_implied_size(b, dump->emit.header.swap, fixed,
					   &prefix.size);
	if (verdict == TICKMAP_JIT_WAIT && b.size < MENDED_MAX)
		return dump->ended ? BROKEN : WAIT;
	if (verdict != TICKMAP_JIT_SOUND || prefix.size > MENDED_MAX ||
	    prefix.size == ret->stated_size)
		return BROKEN;
	next = judge_next(dump, dump->at, prefix);
	/* A code_size that is none may lead to the beginning of a later
	 * record. */
	if (next == SOUND)
		next = judge_between(dump, dump->at + prefix.size);
	if (next != SOUND)
		return next == WAIT ? WAIT : BROKEN;
	ret->prefix = prefix;
	ret->verdict = verdict;
	ret->fixed = fixed;
	return SOUND;
}

/*
 * A LOAD of which only the size of the record is wrong: where its name and code
 * end, the next record or the end of the file is.
 */
static enum verdict judge_size(const struct tickmap_jitdump *dump,
			       struct tickmap_jit_place *ret)
{
	enum verdict verdict = BROKEN;

	if (ret->prefix.id != TICKMAP_JIT_LOAD ||
	    !is_near_last(dump, ret->prefix.when))
		return BROKEN;
	for (unsigned i = 0; i < 3 && verdict == BROKEN; i++)
		if (!dump->fixed || dump->fixed == layouts[i])
			verdict = judge_size_as(dump, layouts[i], ret);
	return verdict;
}

static enum verdict judge_expected(const struct tickmap_jitdump *dump,
				   struct tickmap_jit_place *ret)
{
	enum verdict stated = judge_stated(dump, ret), mended;

	if (stated == SOUND && ret->prefix.id > NEW_ID_MAX)
		stated = judge_between(dump, dump->at);
	if (stated == SOUND || stated == WAIT ||
	    bytes_at(dump, dump->at, TICKMAP_JIT_PREFIX).size <
		    TICKMAP_JIT_PREFIX)
		return stated;
	mended = judge_size(dump, ret);
	return mended == BROKEN ? stated : mended;
}

/* Records are far apart, as the processor sees it: it is told what comes. */
static void look_ahead(const struct tickmap_jitdump *dump, uint32_t size)
{
	enum { AHEAD = 3072, LINE = 64 };
	size_t from = (size_t)(dump->at - dump->base) + AHEAD;

	if (size > AHEAD || from + size > dump->count)
		return;
	for (uint32_t i = 0; i < size; i += LINE)
		__builtin_prefetch(dump->view + from + i);
}

static void accept(struct tickmap_jitdump *dump,
		   const struct tickmap_jit_place *found)
{
	struct tickmap_jit_prefix prefix = found->prefix;

	look_ahead(dump, prefix.size);
	/* A damaged one does not say how the others are laid out. */
	if (prefix.id == TICKMAP_JIT_LOAD && !dump->fixed &&
	    found->verdict == TICKMAP_JIT_SOUND) {
		dump->fixed = found->fixed;
		if (found->fixed != TICKMAP_JIT_LOAD_FIXED)
			tickmap_jit_find(&dump->emit, TICKMAP_FOUND_JD020,
					 dump->at, found->fixed);
	}
	if (found->stated_size != prefix.size)
		tickmap_jit_find(&dump->emit, TICKMAP_FOUND_JD015, dump->at,
				 found->stated_size);
	tickmap_jit_emit_record(&dump->emit,
				bytes_at(dump, dump->at, prefix.size), found);
	dump->times[1] = dump->times[0];
	dump->times[0] = prefix.when;
	if (dump->time_count < 2)
		dump->time_count++;
	dump->previous = dump->at;
	dump->at += prefix.size;
}

static void start_scan(struct tickmap_jitdump *dump, bool cut)
{
	dump->scanning = true;
	dump->cut = cut;
	dump->scan = scan_start(dump);
}

static void skip_bytes(struct tickmap_jitdump *dump, uint64_t size)
{
	tickmap_jit_find(&dump->emit, TICKMAP_FOUND_JD010, dump->at, size);
	dump->emit.counts.skipped_bytes += size;
}

static void end_scan(struct tickmap_jitdump *dump)
{
	uint64_t found = dump->scan;
	uint64_t record = dump->head_kept ? dump->at : dump->previous;

	if (record == HEADER - 1)
		record = 0;
	if (found < dump->at || dump->head_kept)
		tickmap_jit_find(&dump->emit, TICKMAP_FOUND_JD011, record,
				 found - record);
	else
		skip_bytes(dump, found - dump->at);
	dump->emit.counts.damages++;
	/* What waited for a LOAD belonged to one that is gone. */
	tickmap_jit_emit_forget(&dump->emit);
	dump->scanning = dump->cut = dump->head_kept = false;
	dump->previous = dump->at = found;
}

/* False: no progress without more bytes. */
static bool scan(struct tickmap_jitdump *dump)
{
	for (; dump->scan < fed(dump); dump->scan++) {
		if (dump->scan == dump->at)
			continue;
		switch (judge_found(dump, dump->scan)) {
		case WAIT:
			return false;
		case SOUND:
			end_scan(dump);
			return true;
		default:
			break;
		}
	}
	return false;
}

/* The record goes beyond the end: a LOAD's head is worth keeping. */
static void keep_head(struct tickmap_jitdump *dump)
{
	struct tickmap_jit_span b =
		bytes_at(dump, dump->at, TICKMAP_JIT_PREFIX);
	struct tickmap_jit_prefix prefix;
	uint32_t fixed;

	if (b.size < TICKMAP_JIT_PREFIX)
		return;
	prefix = prefix_of(dump, b);
	if (prefix.id != TICKMAP_JIT_LOAD)
		return;
	b = bytes_at(dump, dump->at, prefix.size);
	judge_body(dump, b, prefix, &fixed);
	dump->head_kept =
		tickmap_jit_emit_cut_load(&dump->emit, b, dump->at, fixed);
}

/* A header that says it is larger: not if a record begins behind the forty
 * bytes that it has. False: wait for more. */
static bool believe_header(struct tickmap_jitdump *dump)
{
	switch (judge_found(dump, HEADER)) {
	case WAIT:
		return false;
	case SOUND:
		tickmap_jit_find(&dump->emit, TICKMAP_FOUND_JD011, 0, HEADER);
		break;
	default:
		dump->at = dump->emit.header.size;
	}
	dump->header_doubted = false;
	return true;
}

static bool step(struct tickmap_jitdump *dump)
{
	struct tickmap_jit_place found;

	if (!dump->has_header)
		return read_header(dump);
	if (dump->header_doubted)
		return believe_header(dump);
	if (dump->scanning)
		return scan(dump);
	if (dump->at > fed(dump)) { /* within a large header */
		if (dump->ended)
			start_scan(dump, true);
		return dump->ended;
	}
	if (dump->ended && dump->at == fed(dump))
		return false;
	switch (judge_expected(dump, &found)) {
	case SOUND:
		accept(dump, &found);
		return true;
	case BROKEN:
		start_scan(dump, false);
		return true;
	case CUT:
		start_scan(dump, true);
		keep_head(dump);
		return true;
	default:
		return false;
	}
}

/* From where on bytes are still needed. */
static uint64_t needed(const struct tickmap_jitdump *dump)
{
	uint64_t keep = dump->previous < dump->at ? dump->previous : dump->at;

	if (!dump->has_header)
		return dump->base;
	/* Before the first record `previous` is none. */
	if (keep < HEADER || dump->header_doubted)
		keep = HEADER;
	if (dump->scanning)
		keep = dump->scan;
	return keep > fed(dump) ? fed(dump) : keep;
}

static void look_at(struct tickmap_jitdump *dump, const uint8_t *bytes,
		    size_t size, uint64_t base)
{
	dump->view = bytes;
	dump->count = size;
	dump->base = base;
	while (step(dump))
		;
}

static bool append(struct tickmap_jitdump *dump, const uint8_t *bytes,
		   size_t size)
{
	if (!size)
		return true;
	if (size > SIZE_MAX - dump->buffer.count ||
	    !tickmap_vec_reserve(&dump->buffer, dump->buffer.count + size))
		return false;
	memcpy(dump->buffer.items + dump->buffer.count, bytes, size);
	dump->buffer.count += size;
	return true;
}

/*
 * What is left over from before is completed from the new bytes until nothing
 * of it is needed any more. Returns how many of the new bytes are done with;
 * SIZE_MAX: out of memory.
 */
static size_t complete(struct tickmap_jitdump *dump, const uint8_t *bytes,
		       size_t size)
{
	uint64_t from = fed(dump);
	size_t taken = 0;

	while (taken < size && dump->buffer.count) {
		/* As much as there is: each byte is moved once or so. */
		size_t more =
			dump->buffer.count < LEAST ? LEAST : dump->buffer.count;
		uint64_t keep;
		if (more > size - taken)
			more = size - taken;
		if (!append(dump, bytes + taken, more))
			return SIZE_MAX;
		taken += more;
		look_at(dump, dump->buffer.items, dump->buffer.count,
			dump->base);
		keep = needed(dump);
		if (keep >= from) {
			dump->buffer.count = 0;
			return (size_t)(keep - from);
		}
	}
	return taken;
}

/* What is done with goes once it is the larger part. */
static void compact(struct tickmap_jitdump *dump)
{
	size_t gone = (size_t)(needed(dump) - dump->base);

	if (!gone || gone < dump->buffer.count - gone)
		return;
	memmove(dump->buffer.items, dump->buffer.items + gone,
		dump->buffer.count - gone);
	dump->buffer.count -= gone;
	dump->base += gone;
	dump->view = dump->buffer.items;
	dump->count = dump->buffer.count;
}

bool tickmap_jitdump_feed(struct tickmap_jitdump *dump, const void *bytes,
			  size_t size)
{
	uint64_t end = fed(dump) + size;
	const uint8_t *at = bytes;
	size_t taken;

	if (dump->not_ours || dump->ended)
		return false;
	if (!size)
		return true;
	taken = complete(dump, at, size);
	if (taken == SIZE_MAX)
		return false;
	if (!dump->buffer.count) {
		look_at(dump, at + taken, size - taken, end - (size - taken));
		taken = (size_t)(needed(dump) - dump->base);
		if (!append(dump, dump->view + taken, dump->count - taken))
			return false;
		dump->base += taken;
		dump->view = dump->buffer.items;
		dump->count = dump->buffer.count;
	} else {
		compact(dump);
	}
	return !dump->not_ours && !dump->emit.no_memory;
}

void tickmap_jitdump_end(struct tickmap_jitdump *dump)
{
	if (dump->ended || dump->not_ours)
		return;
	dump->ended = true;
	while (step(dump))
		;
	if (!dump->has_header) {
		if (!dump->not_ours)
			tickmap_jit_find(&dump->emit, TICKMAP_FOUND_JD002, 0,
					 dump->buffer.count);
		return;
	}
	if (dump->scanning && dump->cut && dump->at <= fed(dump))
		tickmap_jit_find(&dump->emit, TICKMAP_FOUND_JD012, dump->at,
				 fed(dump) - dump->at);
	else if (dump->scanning)
		skip_bytes(dump, fed(dump) - dump->at);
	tickmap_jit_emit_end(&dump->emit);
}

/* SPDX-License-Identifier: MIT */
#include "codemap/jitdump_emit.h"

enum { EM_386 = 3, EM_PPC = 20, EM_ARM = 40 };

/* A dump is begun when its process starts; its first record follows within
 * that: an hour, in ns. */
#define HEADER_TIME_NEAR UINT64_C(3600000000000)

static void hand_on(const struct tickmap_jit_emit *emit,
		    const struct tickmap_code_event *event)
{
	if (emit->handler.code)
		emit->handler.code(emit->handler.context, event);
}

static bool is_shown(const struct tickmap_jit_emit *emit)
{
	return emit->handler.record;
}

static void show(const struct tickmap_jit_emit *emit,
		 const struct tickmap_jit_place *place,
		 struct tickmap_codemap_record *record)
{
	record->id = place->prefix.id;
	record->size = place->prefix.size;
	record->when = place->prefix.when;
	record->offset = place->offset;
	emit->handler.record(emit->handler.context, record);
}

static bool is_32_bit(const struct tickmap_jit_emit *emit)
{
	uint32_t machine = emit->header.elf_machine ? emit->header.elf_machine
						    : emit->assumed_machine;

	return machine == EM_386 || machine == EM_PPC || machine == EM_ARM;
}

/* V8 on i386 widens addresses above 2 GiB with their sign. */
static uint64_t unsigned_avma(struct tickmap_jit_emit *emit, uint64_t avma,
			      uint64_t offset)
{
	if (!is_32_bit(emit) || !tickmap_jit_is_sign_extended(avma))
		return avma;
	if (!emit->said_sign)
		tickmap_jit_find(emit, TICKMAP_FOUND_JD026, offset, avma);
	emit->said_sign = true;
	return avma & UINT32_MAX;
}

static void find_header_time(struct tickmap_jit_emit *emit, uint64_t when)
{
	uint64_t begun = emit->header.timestamp;
	uint64_t apart = begun < when ? when - begun : begun - when;

	if (apart > HEADER_TIME_NEAR)
		tickmap_jit_find(emit, TICKMAP_FOUND_JD008, 24, begun);
	emit->said_header_time = true;
}

static void find_time_odd(struct tickmap_jit_emit *emit, uint64_t when,
			  uint64_t offset)
{
	if (!emit->said_header_time && !(emit->header.flags & 1))
		find_header_time(emit, when);
	if (!when && !emit->said_zero_time) {
		tickmap_jit_find(emit, TICKMAP_FOUND_JD031, offset, 0);
		emit->said_zero_time = true;
	}
	if (when >= emit->latest) {
		emit->latest = when;
		return;
	}
	if (!emit->back_by)
		emit->back_at = offset;
	if (emit->latest - when > emit->back_by)
		emit->back_by = emit->latest - when;
}

/* Where it is kept what an index was; NULL: out of memory. */
static uint64_t *index_place(struct tickmap_jit_emit *emit, uint32_t pid,
			     uint64_t index)
{
	struct tickmap_jit_indexes *all = &emit->indexes;
	size_t count = all->low.count;

	if (pid != emit->header.pid || index >= count + 4)
		return tickmap_table_put(&all->others,
					 index ^ tickmap_mix(pid));
	if (index >= count) {
		/* One that was too far on before is in the table. */
		uint64_t *there = tickmap_table_get(&all->others,
						    index ^ tickmap_mix(pid));
		if (there)
			return there;
		if (!tickmap_vec_reserve(&all->low, (size_t)index + 1))
			return NULL;
		memset(all->low.items + count, 0,
		       ((size_t)index + 1 - count) * sizeof(*all->low.items));
		all->low.count = (size_t)index + 1;
	}
	uint64_t *place = &all->low.items[index];
	uint64_t *there = *place || !all->others.count
				  ? NULL
				  : tickmap_table_get(&all->others,
						      index ^ tickmap_mix(pid));
	return there ? there : place;
}

/* A number for a name and an address; not 0. */
static uint64_t what_is(const struct tickmap_jit_load *load)
{
	const uint64_t odd = UINT64_C(0x9e3779b97f4a7c15);
	uint64_t what = (load->avma ^ load->name_length) * odd, word;
	const char *at = load->name;
	size_t left = load->name_length;

	for (; left >= sizeof(word); at += sizeof(word), left -= sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		what = ((what << 5 | what >> 59) ^ word) * odd;
	}
	word = 0;
	if (left)
		memcpy(&word, at, left);
	return ((what << 5 | what >> 59) ^ word) * odd | 1;
}

static void find_index_odd(struct tickmap_jit_emit *emit,
			   const struct tickmap_jit_load *load, uint64_t offset)
{
	uint64_t what = what_is(load);
	uint64_t *place = index_place(emit, load->pid, load->index);

	if (!place) {
		emit->no_memory = true;
		return;
	}
	if (*place == what)
		tickmap_jit_find(emit, TICKMAP_FOUND_JD028, offset,
				 load->index);
	else if (*place)
		tickmap_jit_find(emit, TICKMAP_FOUND_JD027, offset,
				 load->index);
	*place = what;
}

static void find_load_odd(struct tickmap_jit_emit *emit,
			  const struct tickmap_jit_load *load, uint64_t offset)
{
	if (load->odd & TICKMAP_LOAD_CLIPPED)
		tickmap_jit_find(emit, TICKMAP_FOUND_JD021, offset,
				 load->stated_size);
	if (load->odd & TICKMAP_LOAD_UNTERMINATED)
		tickmap_jit_find(emit, TICKMAP_FOUND_JD022, offset,
				 load->name_length);
	if (load->odd & TICKMAP_LOAD_GAP)
		tickmap_jit_find(emit, TICKMAP_FOUND_JD023, offset,
				 load->name_length);
	if (load->odd & TICKMAP_LOAD_NO_BYTES)
		tickmap_jit_find(emit, TICKMAP_FOUND_JD024, offset, load->size);
	if (load->odd & TICKMAP_LOAD_TOO_HIGH)
		tickmap_jit_find(emit, TICKMAP_FOUND_JD045, offset,
				 load->stated_size);
	if (!load->size)
		tickmap_jit_find(emit, TICKMAP_FOUND_JD025, offset,
				 load->stated_size);
	if (load->pid != emit->header.pid && !emit->said_pid) {
		tickmap_jit_find(emit, TICKMAP_FOUND_JD029, offset, load->pid);
		emit->said_pid = true;
	}
	if (emit->handler.finding)
		find_index_odd(emit, load, offset);
}

/*
 * V8 and LLVM add the size of an ELF header to line addresses, for the layout
 * that perf's files had before 2020. An address beyond the code proves it if
 * functions begin with code + bias or soon behind it, and so do some that begin
 * there exactly; one before that denies it.
 */
enum { BIAS_EXACT = 4 };

static uint64_t line_bias(const struct tickmap_jit_emit *emit)
{
	return is_32_bit(emit) ? 52 : 64;
}

uint64_t tickmap_jit_emit_bias(const struct tickmap_jit_emit *emit)
{
	return emit->bias_proved && emit->bias_likely && !emit->bias_denied
		       ? line_bias(emit)
		       : 0;
}

static void find_line_bias(struct tickmap_jit_emit *emit,
			   const struct tickmap_jit_load *load)
{
	const struct tickmap_jit_debug *debug = &emit->debug;
	uint64_t bias = line_bias(emit);

	if (!debug->lines.count)
		return;
	if (debug->first < load->avma || debug->first - load->avma < bias) {
		emit->bias_denied = true;
		return;
	}
	if (debug->first - load->avma < 2 * bias)
		emit->bias_likely = true;
	emit->bias_exact += debug->first - load->avma == bias;
	if ((debug->last - load->avma > load->size ||
	     emit->bias_exact == BIAS_EXACT) &&
	    !emit->bias_proved) {
		emit->bias_proved = true;
		emit->bias_at = emit->debug_at;
	}
}

static void add_lines(const struct tickmap_jit_emit *emit,
		      struct tickmap_code_event *event)
{
	event->line = 0;
	event->file = NULL;
	event->file_length = 0;
	event->lines.count = 0;
	if (!emit->has_debug)
		return;
	event->line = emit->debug.line;
	event->file = emit->debug.file;
	event->file_length = emit->debug.file_length;
	event->lines = emit->debug.lines;
}

static void add_unwinding(const struct tickmap_jit_emit *emit,
			  struct tickmap_code_event *event)
{
	const struct tickmap_jit_unwinding *u = &emit->unwinding;
	bool has_frame = emit->has_unwinding && u->eh_frame_size;
	bool has_header =
		emit->has_unwinding && u->header_size && !u->header_first;

	event->mapped_size = emit->has_unwinding ? u->mapped_size : 0;
	event->eh_frame = has_frame ? u->eh_frame : NULL;
	event->eh_frame_size = has_frame ? u->eh_frame_size : 0;
	event->eh_frame_hdr = has_header ? u->eh_frame_hdr : NULL;
	event->eh_frame_hdr_size = has_header ? (size_t)u->header_size : 0;
}

/* The event is filled anew each time, but not cleared: it is large. */
static void emit_load(struct tickmap_jit_emit *emit,
		      struct tickmap_jit_load *load, uint64_t when,
		      uint64_t offset)
{
	struct tickmap_code_event *event = &emit->load;

	load->avma = unsigned_avma(emit, load->avma, offset);
	if (emit->has_debug)
		find_line_bias(emit, load);
	find_load_odd(emit, load, offset);
	event->when = when;
	event->pid = load->pid;
	event->tid = load->tid;
	event->avma = load->avma;
	event->size = load->size;
	event->code_index = load->index;
	event->name = load->name;
	event->name_length = load->name_length;
	event->code = load->code;
	event->code_begin = load->code_begin;
	event->code_there = load->code ? 0 : load->code_there;
	event->offset = offset;
	add_lines(emit, event);
	add_unwinding(emit, event);
	emit->counts.loads++;
	emit->counts.recovered += emit->counts.damages > 0;
	hand_on(emit, event);
	emit->has_debug = emit->has_unwinding = false;
}

static void show_load(const struct tickmap_jit_emit *emit,
		      const struct tickmap_jit_place *place, bool cut,
		      const struct tickmap_jit_load *load)
{
	struct tickmap_codemap_record record = {
		.cut = cut,
		.pid = load->pid,
		.tid = load->tid,
		.avma = load->avma,
		.code_size = load->stated_size,
		.code_index = load->index,
		.name = load->name,
		.name_length = load->name_length,
	};

	show(emit, place, &record);
}

static void show_move(const struct tickmap_jit_emit *emit,
		      const struct tickmap_jit_place *place,
		      const struct tickmap_jit_move *move)
{
	struct tickmap_codemap_record record = {
		.pid = move->pid,
		.tid = move->tid,
		.avma = move->avma,
		.old_avma = move->old_avma,
		.code_size = move->size,
		.code_index = move->index,
	};

	show(emit, place, &record);
}

static void show_debug(const struct tickmap_jit_emit *emit,
		       const struct tickmap_jit_place *place)
{
	struct tickmap_codemap_record record = {
		.avma = emit->debug.address,
		.entry_count = emit->debug.entry_count,
		.lines = emit->debug.lines,
	};

	show(emit, place, &record);
}

static void show_unwinding(const struct tickmap_jit_emit *emit,
			   const struct tickmap_jit_place *place)
{
	struct tickmap_codemap_record record = {
		.unwinding_size = emit->unwinding.size,
		.eh_frame_hdr_size = emit->unwinding.header_size,
		.mapped_size = emit->unwinding.mapped_size,
	};

	show(emit, place, &record);
}

static void show_plain(const struct tickmap_jit_emit *emit,
		       const struct tickmap_jit_place *place)
{
	struct tickmap_codemap_record record = { .id = 0 };

	show(emit, place, &record);
}

static void emit_move(struct tickmap_jit_emit *emit,
		      struct tickmap_jit_span span,
		      const struct tickmap_jit_place *place)
{
	struct tickmap_code_event event = { .kind = TICKMAP_CODE_MOVE };
	struct tickmap_jit_move move;

	tickmap_jit_read_move(span, emit->header.swap, &move);
	if (is_shown(emit))
		show_move(emit, place, &move);
	event.when = place->prefix.when;
	event.pid = move.pid;
	event.tid = move.tid;
	event.old_avma = unsigned_avma(emit, move.old_avma, place->offset);
	event.avma = unsigned_avma(emit, move.avma, place->offset);
	event.size = move.size;
	event.code_index = move.index;
	event.name = "";
	event.offset = place->offset;
	if (event.size && event.size - 1 > UINT64_MAX - event.avma) {
		tickmap_jit_find(emit, TICKMAP_FOUND_JD045, place->offset,
				 event.size);
		event.size = UINT64_MAX - event.avma + 1;
	}
	hand_on(emit, &event);
}

static void forget_debug(struct tickmap_jit_emit *emit)
{
	if (emit->has_debug)
		tickmap_jit_find(emit, TICKMAP_FOUND_JD042, emit->debug_at,
				 TICKMAP_JIT_DEBUG_INFO);
	emit->has_debug = false;
}

static void forget_unwinding(struct tickmap_jit_emit *emit)
{
	if (emit->has_unwinding)
		tickmap_jit_find(emit, TICKMAP_FOUND_JD042, emit->unwinding_at,
				 TICKMAP_JIT_UNWINDING_INFO);
	emit->has_unwinding = false;
}

void tickmap_jit_emit_forget(struct tickmap_jit_emit *emit)
{
	forget_debug(emit);
	forget_unwinding(emit);
}

/* The record again, in memory that outlives it. */
static struct tickmap_jit_span keep(struct tickmap_jit_emit *emit,
				    struct tickmap_jit_span span, void *items,
				    size_t *capacity)
{
	uint8_t **copy = items;

	if (span.size > *capacity &&
	    !tickmap_vec_grow(items, capacity, span.size, 1)) {
		emit->no_memory = true;
		span.size = 0;
		return span;
	}
	memcpy(*copy, span.at, span.size);
	span.at = *copy;
	return span;
}

static void keep_debug(struct tickmap_jit_emit *emit,
		       struct tickmap_jit_span span,
		       const struct tickmap_jit_place *place)
{
	forget_debug(emit);
	span = keep(emit, span, &emit->debug_bytes.items,
		    &emit->debug_bytes.capacity);
	if (!span.size)
		return;
	tickmap_jit_read_debug(span, emit->header.swap, is_32_bit(emit),
			       &emit->debug);
	if (is_shown(emit))
		show_debug(emit, place);
	if (emit->debug.damaged)
		tickmap_jit_find(emit, TICKMAP_FOUND_JD040, place->offset,
				 emit->debug.entry_count);
	emit->debug_at = place->offset;
	emit->has_debug = true;
}

/*
 * Data whose header comes first lie as far behind the code as the header is
 * long. An entry of that length that nobody refers to takes its place, so that
 * what follows is where its addresses count from.
 */
static void displace(struct tickmap_jit_unwinding *u, uint8_t *header,
		     bool swap)
{
	/* Common entry, version 1, no augmentation; the rest is no-ops. */
	static const uint8_t entry[] = { 0, 0, 0, 0, 1, 0, 1, 0x78, 16 };
	uint32_t size = (uint32_t)u->header_size;
	uint32_t length = size - 4;

	if (size < 4 + sizeof(entry))
		return;
	if (swap)
		length = __builtin_bswap32(length);
	memset(header, 0, size);
	memcpy(header, &length, 4);
	memcpy(header + 4, entry, sizeof(entry));
	u->eh_frame = header;
	u->eh_frame_size += size;
}

static void keep_unwinding(struct tickmap_jit_emit *emit,
			   struct tickmap_jit_span span,
			   const struct tickmap_jit_place *place)
{
	struct tickmap_jit_unwinding *u = &emit->unwinding;
	bool fits;

	forget_unwinding(emit);
	span = keep(emit, span, &emit->unwinding_bytes.items,
		    &emit->unwinding_bytes.capacity);
	if (!span.size)
		return;
	fits = tickmap_jit_read_unwinding(span, emit->header.swap, u);
	if (is_shown(emit))
		show_unwinding(emit, place);
	if (!fits) {
		tickmap_jit_find(emit, TICKMAP_FOUND_JD043, place->offset,
				 place->prefix.size);
		return;
	}
	if (u->header_first) {
		tickmap_jit_find(emit, TICKMAP_FOUND_JD044, place->offset,
				 u->header_size);
		displace(u,
			 emit->unwinding_bytes.items +
				 (u->eh_frame_hdr - span.at),
			 emit->header.swap);
	}
	if (u->size && !u->header_size)
		tickmap_jit_find(emit, TICKMAP_FOUND_JD046, place->offset,
				 u->size);
	emit->unwinding_at = place->offset;
	emit->has_unwinding = true;
}

static void find_closed(struct tickmap_jit_emit *emit,
			const struct tickmap_jit_place *place)
{
	if (!emit->closed || emit->said_closed)
		return;
	tickmap_jit_find(emit, TICKMAP_FOUND_JD014, place->offset,
			 place->prefix.id);
	emit->said_closed = true;
}

static void emit_close(struct tickmap_jit_emit *emit,
		       const struct tickmap_jit_place *place)
{
	struct tickmap_code_event event = { .kind = TICKMAP_CODE_CLOSE,
					    .when = place->prefix.when,
					    .name = "",
					    .offset = place->offset };

	emit->closed = true;
	if (is_shown(emit))
		show_plain(emit, place);
	hand_on(emit, &event);
}

/* False: it has no name yet. */
static bool read_load(struct tickmap_jit_emit *emit,
		      struct tickmap_jit_span span,
		      const struct tickmap_jit_place *place)
{
	struct tickmap_jit_load load;

	if (!tickmap_jit_read_load(span, emit->header.swap, place->prefix,
				   place->fixed, place->verdict, &load))
		return false;
	emit->counts.records++;
	if (is_shown(emit))
		show_load(emit, place, span.size < place->prefix.size, &load);
	emit_load(emit, &load, place->prefix.when, place->offset);
	return true;
}

static void emit_unknown(struct tickmap_jit_emit *emit,
			 const struct tickmap_jit_place *place)
{
	if (is_shown(emit))
		show_plain(emit, place);
	tickmap_jit_find(emit, TICKMAP_FOUND_JD013, place->offset,
			 place->prefix.id);
}

void tickmap_jit_emit_record(struct tickmap_jit_emit *emit,
			     struct tickmap_jit_span span,
			     const struct tickmap_jit_place *place)
{
	find_time_odd(emit, place->prefix.when, place->offset);
	find_closed(emit, place);
	emit->counts.records += place->prefix.id != TICKMAP_JIT_LOAD;
	switch (place->prefix.id) {
	case TICKMAP_JIT_LOAD:
		read_load(emit, span, place);
		break;
	case TICKMAP_JIT_MOVE:
		emit_move(emit, span, place);
		break;
	case TICKMAP_JIT_DEBUG_INFO:
		keep_debug(emit, span, place);
		break;
	case TICKMAP_JIT_UNWINDING_INFO:
		keep_unwinding(emit, span, place);
		break;
	case TICKMAP_JIT_CLOSE:
		emit_close(emit, place);
		break;
	default:
		emit_unknown(emit, place);
	}
}

bool tickmap_jit_emit_cut_load(struct tickmap_jit_emit *emit,
			       struct tickmap_jit_span span, uint64_t offset,
			       uint32_t fixed)
{
	struct tickmap_jit_place place = { .offset = offset, .fixed = fixed };

	place.prefix = tickmap_jit_prefix(span, emit->header.swap);
	place.verdict =
		tickmap_jit_judge(span, emit->header.swap, place.prefix, fixed);
	return place.verdict == TICKMAP_JIT_SOUND &&
	       read_load(emit, span, &place);
}

void tickmap_jit_emit_end(struct tickmap_jit_emit *emit)
{
	tickmap_jit_emit_forget(emit);
	if (tickmap_jit_emit_bias(emit))
		tickmap_jit_find(emit, TICKMAP_FOUND_JD041, emit->bias_at,
				 line_bias(emit));
	if (emit->back_by)
		tickmap_jit_find(emit, TICKMAP_FOUND_JD030, emit->back_at,
				 emit->back_by);
}

void tickmap_jit_emit_free(struct tickmap_jit_emit *emit)
{
	tickmap_vec_free(&emit->debug_bytes);
	tickmap_vec_free(&emit->unwinding_bytes);
	tickmap_vec_free(&emit->indexes.low);
	tickmap_table_free(&emit->indexes.others);
}

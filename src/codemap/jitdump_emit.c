/* SPDX-License-Identifier: MIT */
#include "codemap/jitdump_emit.h"

enum { EM_386 = 3, EM_PPC = 20, EM_ARM = 40 };

void tickmap_jit_finding(const struct tickmap_jit_emit *emit, const char *id,
			 uint64_t offset, uint64_t value, bool error,
			 const char *what)
{
	struct tickmap_finding finding = { .id = id,
					   .what = what,
					   .offset = offset,
					   .value = value,
					   .error = error };

	if (emit->handler.finding)
		emit->handler.finding(emit->handler.context, &finding);
}

static void hand_on(const struct tickmap_jit_emit *emit,
		    const struct tickmap_code_event *event)
{
	if (emit->handler.code)
		emit->handler.code(emit->handler.context, event);
}

static bool is_32_bit(const struct tickmap_jit_emit *emit)
{
	return emit->elf_machine == EM_386 || emit->elf_machine == EM_PPC ||
	       emit->elf_machine == EM_ARM;
}

/* V8 on i386 widens addresses above 2 GiB with their sign. */
static uint64_t unsigned_avma(struct tickmap_jit_emit *emit, uint64_t avma,
			      uint64_t offset)
{
	if (!is_32_bit(emit) || avma >> 31 != UINT64_MAX >> 31)
		return avma;
	if (!emit->said_sign)
		tickmap_jit_finding(emit, "JD026", offset, avma, false,
				    "32-bit addresses are sign-extended");
	emit->said_sign = true;
	return avma & UINT32_MAX;
}

static void find_time_odd(struct tickmap_jit_emit *emit, uint64_t when,
			  uint64_t offset)
{
	if (!when && !emit->said_zero_time) {
		tickmap_jit_finding(emit, "JD031", offset, 0, false,
				    "record without a time");
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

static void find_index_odd(struct tickmap_jit_emit *emit,
			   const struct tickmap_jit_load *load, uint64_t offset)
{
	uint64_t key = load->index ^ tickmap_mix(load->pid);
	uint64_t what = tickmap_hash(load->name, load->name_length) ^
			tickmap_mix(load->avma);
	uint64_t *place = tickmap_table_put(&emit->indexes, key);

	what |= 1; /* 0: the place is new */
	if (!place) {
		emit->no_memory = true;
		return;
	}
	if (*place == what)
		tickmap_jit_finding(emit, "JD028", offset, load->index, false,
				    "record is written twice");
	else if (*place)
		tickmap_jit_finding(emit, "JD027", offset, load->index, false,
				    "code_index is used again for other code");
	*place = what;
}

static void find_load_odd(struct tickmap_jit_emit *emit,
			  const struct tickmap_jit_load *load, uint64_t offset)
{
	if (load->odd & TICKMAP_LOAD_CLIPPED)
		tickmap_jit_finding(emit, "JD021", offset, load->stated_size,
				    true, "code size exceeds the record");
	if (load->odd & TICKMAP_LOAD_UNTERMINATED)
		tickmap_jit_finding(emit, "JD022", offset, load->name_length,
				    false, "name does not end with a NUL");
	if (load->odd & TICKMAP_LOAD_GAP)
		tickmap_jit_finding(emit, "JD023", offset, load->name_length,
				    false, "bytes between name and code");
	if (load->odd & TICKMAP_LOAD_NO_BYTES)
		tickmap_jit_finding(emit, "JD024", offset, load->size, false,
				    "code bytes are not in the record");
	if (!load->size)
		tickmap_jit_finding(emit, "JD025", offset, load->stated_size,
				    false, "code of size 0");
	if (load->pid != emit->pid && !emit->said_pid) {
		tickmap_jit_finding(emit, "JD029", offset, load->pid, false,
				    "pid is not the header's");
		emit->said_pid = true;
	}
	find_index_odd(emit, load, offset);
}

/*
 * V8 and LLVM add the size of an ELF header to line addresses, for the layout
 * that perf's files had before 2020. An address beyond the code proves it, one
 * before code + bias denies it.
 */
static uint64_t line_bias(const struct tickmap_jit_emit *emit)
{
	return is_32_bit(emit) ? 52 : 64;
}

static void find_line_bias(struct tickmap_jit_emit *emit,
			   const struct tickmap_jit_load *load)
{
	const struct tickmap_jit_debug *debug = &emit->debug;
	uint64_t bias = line_bias(emit);

	if (debug->damaged || !debug->entry_count)
		return;
	if (debug->first < load->avma || debug->first - load->avma < bias) {
		emit->bias_denied = true;
		return;
	}
	if (debug->last - load->avma > load->size && !emit->bias_proved) {
		emit->bias_proved = true;
		emit->bias_at = emit->debug_at;
	}
}

static void emit_load(struct tickmap_jit_emit *emit,
		      struct tickmap_jit_load *load, uint64_t when,
		      uint64_t offset)
{
	struct tickmap_code_event event = { .kind = TICKMAP_CODE_LOAD };

	if (emit->has_debug)
		find_line_bias(emit, load);
	load->avma = unsigned_avma(emit, load->avma, offset);
	find_load_odd(emit, load, offset);
	event.when = when;
	event.pid = load->pid;
	event.tid = load->tid;
	event.avma = load->avma;
	event.size = load->size;
	event.code_index = load->index;
	event.name = load->name;
	event.name_length = load->name_length;
	event.code = load->code;
	event.offset = offset;
	if (emit->has_debug) {
		event.line = emit->debug.line;
		event.file_length = emit->debug.file_length;
		event.file = event.file_length ? emit->debug_file.items : NULL;
	}
	if (emit->has_eh_frame && emit->eh_frame.count) {
		event.eh_frame = emit->eh_frame.items;
		event.eh_frame_size = emit->eh_frame.count;
	}
	hand_on(emit, &event);
	emit->has_debug = emit->has_eh_frame = false;
}

static void emit_move(struct tickmap_jit_emit *emit, struct tickmap_bytes b,
		      uint64_t when, uint64_t offset)
{
	struct tickmap_code_event event = { .kind = TICKMAP_CODE_MOVE };
	struct tickmap_jit_move move;

	tickmap_jit_read_move(b, &move);
	event.when = when;
	event.pid = move.pid;
	event.tid = move.tid;
	event.old_avma = unsigned_avma(emit, move.old_avma, offset);
	event.avma = unsigned_avma(emit, move.avma, offset);
	event.size = move.size;
	event.code_index = move.index;
	event.name = "";
	event.offset = offset;
	hand_on(emit, &event);
}

static void forget_debug(struct tickmap_jit_emit *emit)
{
	if (emit->has_debug)
		tickmap_jit_finding(emit, "JD042", emit->debug_at,
				    TICKMAP_JIT_DEBUG_INFO, false,
				    "no code follows this record");
	emit->has_debug = false;
}

static void forget_eh_frame(struct tickmap_jit_emit *emit)
{
	if (emit->has_eh_frame)
		tickmap_jit_finding(emit, "JD042", emit->eh_frame_at,
				    TICKMAP_JIT_UNWINDING_INFO, false,
				    "no code follows this record");
	emit->has_eh_frame = false;
}

void tickmap_jit_emit_forget(struct tickmap_jit_emit *emit)
{
	forget_debug(emit);
	forget_eh_frame(emit);
}

static void keep_debug(struct tickmap_jit_emit *emit, struct tickmap_bytes b,
		       uint64_t offset)
{
	struct tickmap_jit_debug debug;

	forget_debug(emit);
	tickmap_jit_read_debug(b, &debug);
	if (debug.damaged)
		tickmap_jit_finding(emit, "JD040", offset, debug.entry_count,
				    false,
				    "file names of line entries are damaged");
	if (!tickmap_vec_reserve(&emit->debug_file, debug.file_length)) {
		emit->no_memory = true;
		return;
	}
	if (debug.file_length)
		memcpy(emit->debug_file.items, debug.file, debug.file_length);
	emit->debug = debug;
	emit->debug.file = NULL;
	emit->debug_at = offset;
	emit->has_debug = true;
}

static void keep_unwinding(struct tickmap_jit_emit *emit,
			   struct tickmap_bytes b, uint64_t offset)
{
	const uint8_t *eh_frame;
	size_t size;

	forget_eh_frame(emit);
	if (!tickmap_jit_read_unwinding(b, &eh_frame, &size)) {
		tickmap_jit_finding(
			emit, "JD043", offset, b.size, true,
			"sizes of unwinding data exceed the record");
		return;
	}
	if (!tickmap_vec_reserve(&emit->eh_frame, size)) {
		emit->no_memory = true;
		return;
	}
	if (size)
		memcpy(emit->eh_frame.items, eh_frame, size);
	emit->eh_frame.count = size;
	emit->eh_frame_at = offset;
	emit->has_eh_frame = true;
}

void tickmap_jit_emit_record(struct tickmap_jit_emit *emit,
			     struct tickmap_bytes b, uint64_t offset,
			     uint32_t fixed)
{
	struct tickmap_jit_prefix prefix = tickmap_jit_prefix(b);
	struct tickmap_jit_load load;

	find_time_odd(emit, prefix.when, offset);
	switch (prefix.id) {
	case TICKMAP_JIT_LOAD:
		if (tickmap_jit_read_load(b, fixed, &load))
			emit_load(emit, &load, prefix.when, offset);
		break;
	case TICKMAP_JIT_MOVE:
		emit_move(emit, b, prefix.when, offset);
		break;
	case TICKMAP_JIT_DEBUG_INFO:
		keep_debug(emit, b, offset);
		break;
	case TICKMAP_JIT_UNWINDING_INFO:
		keep_unwinding(emit, b, offset);
		break;
	case TICKMAP_JIT_CLOSE:
		hand_on(emit, &(struct tickmap_code_event) {
				      .kind = TICKMAP_CODE_CLOSE,
				      .when = prefix.when,
				      .name = "",
				      .offset = offset });
		break;
	default:
		tickmap_jit_finding(emit, "JD013", offset, prefix.id, false,
				    "unknown type of record");
	}
}

bool tickmap_jit_emit_cut_load(struct tickmap_jit_emit *emit,
			       struct tickmap_bytes b, uint64_t offset,
			       uint32_t fixed)
{
	struct tickmap_jit_prefix prefix = tickmap_jit_prefix(b);
	struct tickmap_jit_load load;

	if (tickmap_jit_judge(b, fixed) != TICKMAP_JIT_SOUND ||
	    !tickmap_jit_read_load(b, fixed, &load))
		return false;
	emit_load(emit, &load, prefix.when, offset);
	return true;
}

void tickmap_jit_emit_end(struct tickmap_jit_emit *emit)
{
	tickmap_jit_emit_forget(emit);
	if (emit->bias_proved && !emit->bias_denied)
		tickmap_jit_finding(emit, "JD041", emit->bias_at,
				    line_bias(emit), false,
				    "line addresses are too high");
	if (emit->back_by)
		tickmap_jit_finding(emit, "JD030", emit->back_at, emit->back_by,
				    false, "times of records go back");
}

void tickmap_jit_emit_free(struct tickmap_jit_emit *emit)
{
	tickmap_vec_free(&emit->debug_file);
	tickmap_vec_free(&emit->eh_frame);
	tickmap_table_free(&emit->indexes);
}

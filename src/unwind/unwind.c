/* SPDX-License-Identifier: MIT */
#include "unwind/unwind.h"

#include "unwind/x86_64/call.h"
#include "unwind/x86_64/frame.h"
#include "unwind/x86_64/general.h"

#include <stdlib.h>

enum { CACHE_BITS = 13, CACHE_SIZE = 1 << CACHE_BITS };

struct cached {
	uint64_t key; /* of the address space */
	uint64_t at;
	struct tickmap_x86_64_frame frame;
};

enum { SIGNALS_MAX = 8 }; /* nested in one stack */

struct tickmap_unwinder {
	struct tickmap_unwind_stats stats;
	struct cached cache[CACHE_SIZE];
	/* Frames of the last walk that are a signal's trampoline. */
	size_t signals[SIGNALS_MAX];
	unsigned signal_count;
};
_Static_assert(sizeof(struct tickmap_unwinder) < 1 << 20,
	       "one fits into a second level cache");

static const char *const end_text[TICKMAP_END_COUNT] = {
	[TICKMAP_END_COMPLETE] = "reached the thread's first frame",
	[TICKMAP_END_STACK_SHORT] = "stack dump too short",
	[TICKMAP_END_NO_RULE] = "code without unwind table or frame pointer",
	[TICKMAP_END_BAD_RULE] = "unwind table cannot be read",
	[TICKMAP_END_BAD_STACK] = "stack makes no sense",
	[TICKMAP_END_NO_CODE] = "return address outside known code",
	[TICKMAP_END_TOO_DEEP] = "stack too deep",
	[TICKMAP_END_NO_REGISTERS] = "no user registers in the sample",
};

const char *tickmap_unwind_end_text(enum tickmap_unwind_end end)
{
	if ((unsigned)end >= TICKMAP_END_COUNT)
		return "unknown reason";
	return end_text[end];
}

struct tickmap_unwinder *tickmap_unwinder_new(void)
{
	return calloc(1, sizeof(struct tickmap_unwinder));
}

void tickmap_unwinder_free(struct tickmap_unwinder *unwinder)
{
	free(unwinder);
}

struct tickmap_unwind_stats
tickmap_unwinder_stats(const struct tickmap_unwinder *unwinder)
{
	return unwinder->stats;
}

/* Fibonacci hashing: neighbours spread, no mixing rounds needed. */
static struct cached *cache_place(struct tickmap_unwinder *unwinder,
				  uint64_t salt, uint64_t at)
{
	uint64_t hash = (at + salt) * UINT64_C(0x9e3779b97f4a7c15);

	return &unwinder->cache[hash >> (64 - CACHE_BITS)];
}

/* One frame of one walk: where to look, and by what. */
struct walk {
	struct tickmap_unwinder *unwinder;
	const struct tickmap_unwind_space *space;
	uint64_t salt; /* of the space, for the cache's hash */
	struct tickmap_stack stack;
	struct tickmap_x86_64_state state;
	bool exact; /* the pc was interrupted, not a return address */
	bool quick; /* registers that few frames need are not followed */
	/* A return address was guessed (step_without_rule); so many guesses
	 * were wrong before. */
	bool guessed;
	unsigned wrong_guesses;
	size_t guessed_at; /* the frame that had no rule */
};

static enum tickmap_cfi_result
find_rule(const struct tickmap_unwind_module *module, uint64_t at,
	  struct tickmap_rule *rule)
{
	if (!module->cfi)
		return TICKMAP_CFI_NONE;
	return tickmap_cfi_rule(module->cfi, at - module->bias, rule);
}

/* False: no code there. */
static bool make_frame(const struct tickmap_unwind_space *space, uint64_t at,
		       struct tickmap_x86_64_frame *ret_frame)
{
	struct tickmap_unwind_module module = { 0 };
	struct tickmap_rule rule;

	if (!space->find(space->context, at, &module))
		return false;
	*ret_frame = (struct tickmap_x86_64_frame) { 0 };
	switch (find_rule(&module, at, &rule)) {
	case TICKMAP_CFI_OK:
		*ret_frame = tickmap_x86_64_compact(module.cfi, &rule, at);
		break;
	case TICKMAP_CFI_NONE:
		ret_frame->form = module.frame_pointer
					  ? TICKMAP_FORM_FRAME_POINTER
					  : TICKMAP_FORM_NO_RULE;
		break;
	default:
		ret_frame->form = TICKMAP_FORM_BAD_RULE;
	}
	return true;
}

static enum tickmap_step step_by_table(struct walk *walk, uint64_t at,
				       bool *ret_exact)
{
	const struct tickmap_unwind_space *space = walk->space;
	struct tickmap_unwind_module module = { 0 };
	struct tickmap_rule rule;

	walk->unwinder->stats.uncacheable++;
	if (!space->find(space->context, at, &module) ||
	    find_rule(&module, at, &rule) != TICKMAP_CFI_OK)
		return TICKMAP_STEP_BAD_RULE;
	*ret_exact = rule.signal_frame;
	return tickmap_x86_64_general(module.cfi, &rule, &walk->stack,
				      &walk->state);
}

static const struct tickmap_x86_64_frame *lookup(struct walk *walk, uint64_t at)
{
	struct tickmap_unwinder *unwinder = walk->unwinder;
	uint64_t key = walk->space->key;
	struct cached *place = cache_place(unwinder, walk->salt, at);

	if (place->at == at && place->key == key &&
	    place->frame.form != TICKMAP_FORM_NONE) {
		unwinder->stats.cache_hits++;
		return &place->frame;
	}
	unwinder->stats.cache_misses++;
	if (!make_frame(walk->space, at, &place->frame)) {
		/* Not kept: code may appear there without a new key. */
		place->frame.form = TICKMAP_FORM_NONE;
		return NULL;
	}
	place->at = at;
	place->key = key;
	return &place->frame;
}

static enum tickmap_unwind_end end_of(enum tickmap_step step)
{
	switch (step) {
	case TICKMAP_STEP_COMPLETE:
		return TICKMAP_END_COMPLETE;
	case TICKMAP_STEP_ABOVE:
		return TICKMAP_END_STACK_SHORT;
	case TICKMAP_STEP_NO_RULE:
		return TICKMAP_END_NO_RULE;
	case TICKMAP_STEP_BAD_RULE:
		return TICKMAP_END_BAD_RULE;
	default:
		return TICKMAP_END_BAD_STACK;
	}
}

/* A quick walk has come to a frame that needs what it did not follow. */
static bool needs_more(const struct walk *walk,
		       const struct tickmap_x86_64_frame *frame)
{
	if (frame->form == TICKMAP_FORM_GENERAL)
		return true;
	return (frame->form == TICKMAP_FORM_REGISTER ||
		frame->form == TICKMAP_FORM_INDIRECT ||
		frame->form == TICKMAP_FORM_REALIGNED) &&
	       !tickmap_state_knows(&walk->state, frame->cfa_register);
}

/*
 * As many usual frames as there are, all in machine registers: this loop is
 * where the time goes. What it cannot do it leaves as it was.
 */
static size_t quick_frames(struct walk *walk, uint64_t *ips, size_t room)
{
	struct tickmap_x86_64_state *state = &walk->state;
	const struct tickmap_stack stack = walk->stack;
	uint64_t key = walk->space->key, salt = walk->salt;
	struct tickmap_x86_64_quick quick = {
		.pc = state->reg[TICKMAP_RIP],
		.sp = state->reg[TICKMAP_RSP],
		.bp = state->reg[TICKMAP_RBP],
		.knows_bp = tickmap_state_knows(state, TICKMAP_RBP),
	};
	uint64_t at = quick.pc - !walk->exact;
	size_t n = 0;

	for (; n < room; n++) {
		const struct cached *place =
			cache_place(walk->unwinder, salt, at);
		uint64_t pc = quick.pc;
		if (place->at != at || place->key != key ||
		    !tickmap_x86_64_quick_step(&place->frame, &stack, &quick))
			break;
		ips[n] = pc;
		at = quick.pc - 1;
	}
	if (!n)
		return 0;
	walk->unwinder->stats.cache_hits += n;
	walk->exact = false;
	state->reg[TICKMAP_RIP] = quick.pc;
	state->reg[TICKMAP_RSP] = quick.sp;
	state->reg[TICKMAP_RBP] = quick.bp;
	state->known = 1u << TICKMAP_RIP | 1u << TICKMAP_RSP |
		       (uint32_t)quick.knows_bp << TICKMAP_RBP;
	return n;
}

static bool is_code(const struct walk *walk, uint64_t at)
{
	struct tickmap_unwind_module module = { 0 };

	return walk->space->find(walk->space->context, at, &module);
}

static bool is_return_address(const struct walk *walk, uint64_t at)
{
	uint8_t code[TICKMAP_X86_64_CALL_MAX];
	size_t size;

	if (!at || !is_code(walk, at - 1))
		return false;
	size = walk->space->code_before(walk->space->context, at, code,
					sizeof(code));
	return tickmap_x86_64_ends_with_call(code, size);
}

enum { NEAR_WORDS = 4 };

/*
 * Code that nothing describes: by its frame pointer if that leads to code, else
 * by a word near the top of the stack that follows a call. Such a word may be
 * left from an earlier call: the right one is the one from which the walk
 * reaches the thread's first frame.
 */
static enum tickmap_step step_without_rule(struct walk *walk,
					   const struct tickmap_x86_64_frame *f)
{
	unsigned skip = walk->guessed ? 0 : walk->wrong_guesses;
	const struct tickmap_x86_64_state before = walk->state;
	enum tickmap_step result =
		tickmap_x86_64_step(f, &walk->stack, &walk->state);
	uint64_t sp = before.reg[TICKMAP_RSP], word;

	if (!walk->space->code_before)
		return result;
	uint64_t pc = walk->state.reg[TICKMAP_RIP];
	if (result == TICKMAP_STEP_OK && (!pc || is_code(walk, pc - 1)))
		return result;
	for (unsigned i = 0; i < NEAR_WORDS; i++, sp += sizeof(word)) {
		if (tickmap_stack_read(&walk->stack, sp, &word) !=
		    TICKMAP_STEP_OK)
			break;
		if (!is_return_address(walk, word) || skip-- > 0)
			continue;
		walk->guessed = true;
		walk->state = before;
		walk->state.known &= TICKMAP_X86_64_PRESERVED;
		walk->state.known |= 1u << TICKMAP_RSP | 1u << TICKMAP_RIP;
		walk->state.reg[TICKMAP_RSP] = sp + sizeof(word);
		walk->state.reg[TICKMAP_RIP] = word;
		return TICKMAP_STEP_OK;
	}
	/* The psABI's mark of the outermost frame (ld.so's own start). */
	if (result == TICKMAP_STEP_NO_RULE &&
	    tickmap_state_knows(&before, TICKMAP_RBP) &&
	    before.reg[TICKMAP_RBP] == 0)
		return TICKMAP_STEP_COMPLETE;
	return result;
}

static enum tickmap_step
step(struct walk *walk, const struct tickmap_x86_64_frame *frame, uint64_t at)
{
	walk->exact = false;
	if (frame->form == TICKMAP_FORM_GENERAL)
		return step_by_table(walk, at, &walk->exact);
	if (frame->form == TICKMAP_FORM_FRAME_POINTER ||
	    frame->form == TICKMAP_FORM_NO_RULE)
		return step_without_rule(walk, frame);
	return tickmap_x86_64_step(frame, &walk->stack, &walk->state);
}

static void note_signal(struct tickmap_unwinder *unwinder, size_t index)
{
	if (unwinder->signal_count < SIGNALS_MAX)
		unwinder->signals[unwinder->signal_count++] = index;
}

bool tickmap_unwind_is_exact(const struct tickmap_unwinder *unwinder,
			     size_t index)
{
	for (unsigned i = 0; i < unwinder->signal_count; i++) {
		if (unwinder->signals[i] == index ||
		    unwinder->signals[i] + 1 == index)
			return true;
	}
	return false;
}

enum { WALK_AGAIN = TICKMAP_END_COUNT };

/* `ret_end` may also be WALK_AGAIN, without the quick way. */
static size_t walk_frames(struct walk *walk, uint64_t *ips, size_t max,
			  unsigned *ret_end)
{
	const uint64_t *pc = &walk->state.reg[TICKMAP_RIP];
	bool by_frame_pointer = false;

	for (size_t n = 0; n < max; n++) {
		if (walk->quick) {
			size_t done = quick_frames(walk, ips + n, max - n);
			if (done)
				by_frame_pointer = false;
			n += done;
			if (n == max)
				break;
		}
		uint64_t at = *pc - !walk->exact;
		const struct tickmap_x86_64_frame *frame = lookup(walk, at);
		if (!frame && by_frame_pointer) {
			/* That was no frame record. */
			*ret_end = TICKMAP_END_NO_RULE;
			return n;
		}
		ips[n] = *pc;
		if (!frame) {
			*ret_end = TICKMAP_END_NO_CODE;
			return n + 1;
		}
		if (n && walk->quick && needs_more(walk, frame)) {
			*ret_end = WALK_AGAIN;
			return n + 1;
		}
		by_frame_pointer = frame->form == TICKMAP_FORM_FRAME_POINTER;
		if (!walk->guessed)
			walk->guessed_at = n;
		enum tickmap_step result = step(walk, frame, at);
		if (walk->exact)
			note_signal(walk->unwinder, n);
		if (result == TICKMAP_STEP_OK && *pc == 0)
			result = TICKMAP_STEP_COMPLETE;
		if (result != TICKMAP_STEP_OK) {
			*ret_end = end_of(result);
			return n + 1;
		}
	}
	*ret_end = TICKMAP_END_TOO_DEEP;
	return max;
}

size_t tickmap_unwind_walk(struct tickmap_unwinder *unwinder,
			   const struct tickmap_unwind_space *space,
			   const struct tickmap_unwind_input *input,
			   uint64_t *ips, size_t max,
			   enum tickmap_unwind_end *ret_end)
{
	struct walk walk = {
		.unwinder = unwinder,
		.space = space,
		.salt = space->key * UINT64_C(0xc2b2ae3d27d4eb4f),
		.stack = { .bytes = input->stack,
			   .size = input->stack_size,
			   .at = input->stack_at },
	};
	unsigned end = WALK_AGAIN;
	size_t count = 0;

	walk.quick = true;
	for (;;) {
		walk.exact = true;
		walk.guessed = false;
		unwinder->signal_count = 0;
		walk.state.known = TICKMAP_X86_64_ALL;
		memcpy(walk.state.reg, input->regs, sizeof(walk.state.reg));
		count = walk_frames(&walk, ips, max, &end);
		unwinder->stats.frames += count;
		if (end == WALK_AGAIN) {
			walk.quick = false;
			continue;
		}
		if (!walk.guessed || end == TICKMAP_END_COMPLETE)
			break;
		if (++walk.wrong_guesses < NEAR_WORDS)
			continue;
		/* No guess leads anywhere: the frame itself is certain. */
		count = walk.guessed_at + 1;
		end = TICKMAP_END_NO_RULE;
		break;
	}
	*ret_end = (enum tickmap_unwind_end)end;
	return count;
}

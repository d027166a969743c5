/* SPDX-License-Identifier: MIT */
#include "toyjit.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* Slots are used round robin, so that a freed one is not the next one. */
static uint8_t *take_slot(struct toy *toy)
{
	for (size_t i = 0; i < TOY_SLOTS; i++) {
		size_t slot = (toy->next_index + i) % TOY_SLOTS;

		if (toy->taken[slot])
			continue;
		toy->taken[slot] = true;
		return toy->arena + slot * TOY_SLOT_SIZE;
	}
	return NULL;
}

static size_t give_slot(struct toy *toy, const uint8_t *code)
{
	size_t slot = (size_t)(code - toy->arena) / TOY_SLOT_SIZE;

	toy->taken[slot] = false;
	return slot;
}

static int publish(struct toy *toy, const struct toy_function *function)
{
	/* Line 10 up to where the function is on the stack, then 20, 30. */
	const struct tickmap_line lines[] = {
		{ 0, 10, 1, NULL },
		{ function->enter_at, 20, 1, NULL },
		{ function->leave_at, 30, 1, NULL },
	};
	struct tickmap_code code = TICKMAP_CODE_INIT;
	char name[] = "toy_enter";

	if (function->id != TOY_ENTER_ID)
		snprintf(name, sizeof(name), "toy_%02x", function->id);
	code.addr = (uintptr_t)function->code;
	code.bytes = function->code;
	code.code_size = function->size;
	code.name = name;
	code.index = function->index;
	code.file = "/toy/program.toy";
	code.lines = lines;
	code.line_count = 3;
	code.unwind = &function->unwind;
	code.mapped_size = tickmap_emit_mapped_size(&function->unwind);
	return toy->emit ? tickmap_emit_code(toy->emit, &code) : 0;
}

static int install(struct toy *toy, struct toy_function *function,
		   const struct toy_code *code)
{
	struct tickmap_unwind_shape shape = TICKMAP_UNWIND_SHAPE_INIT;
	uint8_t *at = take_slot(toy);
	int status;

	shape.kind = function->frame;
	shape.leave_at = function->leave_at;
	shape.frame_size = toy_frame_size;
	if (function->is_signed)
		shape.flags = toy_signed_flags;
	status = tickmap_unwind_build(&function->unwind, &shape);
	if (status)
		return status;
	if (!at ||
	    tickmap_emit_spacing(code->size, &function->unwind) > TOY_SLOT_SIZE)
		return TICKMAP_EMIT_E_NOMEM;
	memcpy(at, code->bytes, code->size);
	__builtin___clear_cache((char *)at, (char *)at + code->size);
	function->code = at;
	function->size = code->size;
	function->index = ++toy->next_index;
	/* Before it first runs. */
	return publish(toy, function);
}

int toy_compile(struct toy *toy, struct toy_function *function)
{
	struct toy_code code = { .size = 0 };

	toy_put_prologue(&code, function);
	toy_put_push(&code, function->id);
	function->enter_at = code.size;
	toy_put_spin(&code, function->spins);
	if (function->callee)
		toy_put_call(&code, &function->callee->code);
	if (function->probe)
		toy_put_probe(&code, function->probe);
	toy_put_pop(&code);
	function->leave_at = code.size;
	toy_put_epilogue(&code, function);
	return install(toy, function, &code);
}

static int compile_enter(struct toy *toy)
{
	struct toy_function *enter = &toy->enter;
	struct toy_code code = { .size = 0 };

	enter->id = TOY_ENTER_ID;
	enter->frame = TICKMAP_UNWIND_FRAME_POINTER;
	toy_put_prologue(&code, enter);
	toy_put_first_push(&code, enter->id);
	enter->enter_at = code.size;
	toy_put_first_call(&code);
	enter->leave_at = code.size;
	toy_put_epilogue(&code, enter);
	return install(toy, enter, &code);
}

int toy_open(struct toy *toy, struct tickmap_emit *emit)
{
	/* A real JIT would not keep it writable. */
	void *arena = mmap(NULL, TOY_SLOTS * TOY_SLOT_SIZE,
			   PROT_READ | PROT_WRITE | PROT_EXEC,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memset(toy, 0, sizeof(*toy));
	if (arena == MAP_FAILED)
		return TICKMAP_EMIT_E_NOMEM;
	toy->emit = emit;
	toy->arena = arena;
	return compile_enter(toy);
}

int toy_move(struct toy *toy, struct toy_function *function)
{
	uint8_t *from = function->code;
	uint8_t *to = take_slot(toy);

	if (!to)
		return TICKMAP_EMIT_E_NOMEM;
	memcpy(to, from, function->size);
	__builtin___clear_cache((char *)to, (char *)to + function->size);
	function->code = to;
	/* So that the next function takes the slot that has just been left. */
	toy->next_index = give_slot(toy, from) +
			  (toy->next_index / TOY_SLOTS + 1) * TOY_SLOTS;
	return toy->emit ? tickmap_emit_move(toy->emit, (uintptr_t)from,
					     (uintptr_t)to, function->size,
					     function->index)
			 : 0;
}

void toy_free(struct toy *toy, struct toy_function *function)
{
	if (toy->emit)
		tickmap_emit_remove(toy->emit, (uintptr_t)function->code);
	give_slot(toy, function->code);
	function->code = NULL;
}

void toy_close(struct toy *toy)
{
	munmap(toy->arena, TOY_SLOTS * TOY_SLOT_SIZE);
}

void toy_run(const struct toy *toy, const struct toy_function *function)
{
	void (*enter)(const uint8_t *code);

	memcpy(&enter, &toy->enter.code, sizeof(enter));
	enter(function->code);
}

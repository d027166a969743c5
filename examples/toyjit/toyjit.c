/* SPDX-License-Identifier: MIT */
#include "toyjit.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static void name_function(struct toy_function *function)
{
	if (function->id == TOY_ENTER_ID)
		snprintf(function->name, sizeof(function->name), "toy_enter");
	else
		snprintf(function->name, sizeof(function->name), "toy_%02x",
			 function->id);
}

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

static void give_slot(struct toy *toy, const uint8_t *code)
{
	toy->taken[(size_t)(code - toy->arena) / TOY_SLOT_SIZE] = false;
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

	code.addr = (uintptr_t)function->code;
	code.bytes = function->code;
	code.code_size = function->size;
	code.name = function->name;
	code.index = function->index;
	code.file = "/toy/program.toy";
	code.lines = lines;
	code.line_count = 3;
	code.unwind = &function->unwind;
	code.mapped_size = tickmap_emit_mapped_size(&function->unwind);
	return toy->emit ? tickmap_emit_code(toy->emit, &code) : 0;
}

static int install(struct toy *toy, struct toy_function *function,
		   const uint8_t *code)
{
	uint8_t *at = take_slot(toy);

	if (!at || tickmap_emit_spacing(function->size, &function->unwind) >
			   TOY_SLOT_SIZE)
		return TICKMAP_EMIT_E_NOMEM;
	memcpy(at, code, function->size);
	__builtin___clear_cache((char *)at, (char *)at + function->size);
	function->code = at;
	function->index = ++toy->next_index;
	name_function(function);
	/* Before it first runs. */
	return publish(toy, function);
}

int toy_open(struct toy *toy, struct tickmap_emit *emit)
{
	uint8_t code[TOY_MAX_CODE];
	/* A real JIT would not keep it writable. */
	void *arena = mmap(NULL, TOY_SLOTS * TOY_SLOT_SIZE,
			   PROT_READ | PROT_WRITE | PROT_EXEC,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int status;

	memset(toy, 0, sizeof(*toy));
	if (arena == MAP_FAILED)
		return TICKMAP_EMIT_E_NOMEM;
	toy->emit = emit;
	toy->arena = arena;
	toy->enter.id = TOY_ENTER_ID;
	status = toy_assemble_enter(&toy->enter, code);
	return status ? status : install(toy, &toy->enter, code);
}

int toy_compile(struct toy *toy, struct toy_function *function)
{
	uint8_t code[TOY_MAX_CODE];
	int status = toy_assemble(function, code);

	return status ? status : install(toy, function, code);
}

/* To another slot. Nobody may be in the function. */
int toy_move(struct toy *toy, struct toy_function *function)
{
	uint8_t *from = function->code;
	uint8_t *to = take_slot(toy);

	if (!to)
		return TICKMAP_EMIT_E_NOMEM;
	memcpy(to, from, function->size);
	__builtin___clear_cache((char *)to, (char *)to + function->size);
	function->code = to;
	give_slot(toy, from);
	/* So that the next function takes the slot that has just been left. */
	toy->next_index = (size_t)(from - toy->arena) / TOY_SLOT_SIZE +
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

size_t toy_stack_ids(uint64_t true_stack, uint8_t ids[TOY_DEPTH + 1])
{
	size_t count = 0;

	for (; true_stack; true_stack >>= 8)
		ids[count++] = (uint8_t)true_stack;
	return count;
}

/* SPDX-License-Identifier: MIT */
/*
 * GDB's JIT interface: a list of ELF files in this process's memory, and a
 * function that gdb keeps a breakpoint in. The two names are gdb's.
 */
#include "internal.h"

#include <string.h>

enum { JIT_NOACTION = 0, JIT_REGISTER_FN, JIT_UNREGISTER_FN };

struct jit_code_entry {
	struct jit_code_entry *next_entry;
	struct jit_code_entry *prev_entry;
	const char *symfile_addr;
	uint64_t symfile_size;
};

struct jit_descriptor {
	uint32_t version;
	uint32_t action_flag;
	struct jit_code_entry *relevant_entry;
	struct jit_code_entry *first_entry;
};

struct emit_gdb {
	struct jit_code_entry entry;
	size_t size; /* of this block */
	bool is_listed;
	union emit_align elf[];
};

/* Weak: a program with two JITs has one list. */
#define GDB_SEES __attribute__((weak, used, visibility("default")))

extern struct jit_descriptor __jit_debug_descriptor;
void __jit_debug_register_code(void);

GDB_SEES struct jit_descriptor __jit_debug_descriptor = { .version = 1 };

GDB_SEES __attribute__((noinline)) void __jit_debug_register_code(void)
{
	/* Not to be optimized away, nor its calls. */
	__asm__ volatile("" ::: "memory");
}

/* The list is the process's, the handles' own locks are not enough. */
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;

static void tell_gdb(struct jit_code_entry *entry, uint32_t action)
{
	__jit_debug_descriptor.relevant_entry = entry;
	__jit_debug_descriptor.action_flag = action;
	__jit_debug_register_code();
	__jit_debug_descriptor.action_flag = JIT_NOACTION;
	__jit_debug_descriptor.relevant_entry = NULL;
}

int tickmap_emit_gdb_new(const struct tickmap_emit *emit,
			 const struct emit_code *code,
			 struct emit_gdb **ret_gdb)
{
	struct emit_out out = tickmap_emit_empty_out(emit);
	struct emit_gdb *gdb;

	tickmap_emit_gdb_elf(&out, code, emit->options.elf_machine);
	if (out.full)
		return TICKMAP_EMIT_E_TOO_LARGE;
	gdb = tickmap_emit_allocate(emit, sizeof(*gdb) + out.used);
	if (!gdb)
		return TICKMAP_EMIT_E_NOMEM;
	memset(gdb, 0, sizeof(*gdb));
	memcpy(gdb->elf, out.base, out.used);
	gdb->size = sizeof(*gdb) + out.used;
	gdb->entry.symfile_addr = (const char *)gdb->elf;
	gdb->entry.symfile_size = out.used;
	*ret_gdb = gdb;
	return TICKMAP_EMIT_OK;
}

void tickmap_emit_gdb_register(struct emit_gdb *gdb)
{
	struct jit_code_entry *entry = &gdb->entry;

	pthread_mutex_lock(&list_lock);
	/* In this order, a list that is read at any moment has no loose end. */
	entry->next_entry = __jit_debug_descriptor.first_entry;
	if (entry->next_entry)
		entry->next_entry->prev_entry = entry;
	__jit_debug_descriptor.first_entry = entry;
	tell_gdb(entry, JIT_REGISTER_FN);
	gdb->is_listed = true;
	pthread_mutex_unlock(&list_lock);
}

void tickmap_emit_gdb_drop(const struct tickmap_emit *emit,
			   struct emit_gdb *gdb)
{
	struct jit_code_entry *entry;

	if (!gdb)
		return;
	if (gdb->is_listed) {
		entry = &gdb->entry;
		pthread_mutex_lock(&list_lock);
		if (entry->prev_entry)
			entry->prev_entry->next_entry = entry->next_entry;
		else
			__jit_debug_descriptor.first_entry = entry->next_entry;
		if (entry->next_entry)
			entry->next_entry->prev_entry = entry->prev_entry;
		tell_gdb(entry, JIT_UNREGISTER_FN);
		pthread_mutex_unlock(&list_lock);
	}
	tickmap_emit_release(emit, gdb, gdb->size);
}

void tickmap_emit_gdb_after_fork(void)
{
	static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

	/* Another thread of the parent may have held it. */
	memcpy(&list_lock, &fresh, sizeof(list_lock));
}

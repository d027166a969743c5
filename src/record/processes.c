/* SPDX-License-Identifier: MIT */
#include "record/processes.h"

#include "base/strings.h"
#include "base/table.h"
#include "base/vec.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

struct mapping {
	uint32_t module;
	uint64_t avma, file_offset;
	uint64_t bias;	 /* avma - svma */
	bool bias_known; /* the ELF file was asked */
	bool has_table;
};

struct tickmap_processes {
	struct tickmap_modules *modules;
	struct tickmap_table by_pid; /* pid -> index + 1 */
	TICKMAP_VEC(struct tickmap_process *) all;
	TICKMAP_VEC(struct mapping) mappings;
	struct tickmap_strings *frames; /* .eh_frame bytes */
	uint64_t next_key;
};

struct tickmap_processes *tickmap_processes_new(struct tickmap_modules *modules)
{
	struct tickmap_processes *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->modules = modules;
	p->frames = tickmap_strings_new();
	if (!p->frames) {
		free(p);
		return NULL;
	}
	return p;
}

static void release_space(struct tickmap_process *process)
{
	tickmap_segments_free(process->files);
	tickmap_segments_free(process->code);
	tickmap_segments_free(process->anon);
	process->files = process->code = process->anon = NULL;
	tickmap_vec_free(&process->pending);
	process->pending_done = 0;
}

void tickmap_processes_free(struct tickmap_processes *processes)
{
	if (!processes)
		return;
	for (size_t i = 0; i < processes->all.count; i++) {
		release_space(processes->all.items[i]);
		free(processes->all.items[i]);
	}
	tickmap_vec_free(&processes->all);
	tickmap_vec_free(&processes->mappings);
	tickmap_table_free(&processes->by_pid);
	tickmap_strings_free(processes->frames);
	free(processes);
}

size_t tickmap_processes_count(const struct tickmap_processes *processes)
{
	return processes->all.count;
}

struct tickmap_process *
tickmap_processes_at(struct tickmap_processes *processes, size_t index)
{
	return processes->all.items[index];
}

bool tickmap_is_anonymous_path(const char *path)
{
	static const char *const prefixes[] = {
		"//anon",     "[anon",	"[heap]",	   "[stack",
		"/memfd:",    "/SYSV",	"/dev/zero",	   "/anon_hugepage",
		"anon_inode", "[anon:", "/[aio] (deleted)"
	};

	if (!*path)
		return true;
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++) {
		if (!strncmp(path, prefixes[i], strlen(prefixes[i])))
			return true;
	}
	return false;
}

static bool new_space(struct tickmap_processes *processes,
		      struct tickmap_process *process)
{
	release_space(process);
	process->files = tickmap_segments_new();
	process->code = tickmap_segments_new();
	process->anon = tickmap_segments_new();
	process->key = ++processes->next_key;
	process->entered = false;
	process->python = false;
	process->has_code_map = false;
	return process->files && process->code && process->anon;
}

/* Something executable got another content: rules cached for it are void. */
static void space_changed(struct tickmap_processes *processes,
			  struct tickmap_process *process)
{
	process->key = ++processes->next_key;
}

struct tickmap_process *
tickmap_process_find(struct tickmap_processes *processes, pid_t pid)
{
	uint64_t *slot = tickmap_table_get(&processes->by_pid, (uint64_t)pid);
	return slot ? processes->all.items[*slot - 1] : NULL;
}

/* A pid that comes again after its process's end starts from nothing. */
static struct tickmap_process *fresh(struct tickmap_processes *processes,
				     pid_t pid)
{
	uint64_t *slot = tickmap_table_put(&processes->by_pid, (uint64_t)pid);
	struct tickmap_process *process;
	struct tickmap_process **at;

	if (!slot)
		return NULL;
	process = calloc(1, sizeof(*process));
	if (!process)
		return NULL;
	process->pid = pid;
	process->threads = 1;
	at = tickmap_vec_push(&processes->all);
	if (!at || !new_space(processes, process)) {
		if (at)
			processes->all.count--;
		release_space(process);
		free(process);
		return NULL;
	}
	*at = process;
	*slot = processes->all.count;
	return process;
}

struct tickmap_process *tickmap_process_of(struct tickmap_processes *processes,
					   pid_t pid)
{
	struct tickmap_process *process = tickmap_process_find(processes, pid);
	return process ? process : fresh(processes, pid);
}

static void lost_content(void *context, const struct tickmap_segment *part)
{
	(void)part;
	*(bool *)context = true;
}

struct tickmap_process *
tickmap_process_map(struct tickmap_processes *processes,
		    const struct tickmap_mmap_record *mmap)
{
	struct tickmap_process *process =
		tickmap_process_of(processes, (pid_t)mmap->pid);
	bool replaced = false;

	if (!process || !process->files)
		return process;
	if (tickmap_is_anonymous_path(mmap->path)) {
		/* Published code under it lives on: see the one rule. */
		tickmap_segments_clear(process->files, mmap->avma, mmap->size,
				       lost_content, &replaced);
		tickmap_segments_set(process->anon, mmap->avma, mmap->size, 1,
				     NULL, NULL);
	} else {
		struct mapping *m = tickmap_vec_push(&processes->mappings);
		if (!m)
			return NULL;
		*m = (struct mapping) {
			.module = tickmap_modules_of(processes->modules, mmap),
			.avma = mmap->avma,
			.file_offset = mmap->file_offset,
		};
		if (m->module == UINT32_MAX) {
			processes->mappings.count--;
			return NULL;
		}
		const struct tickmap_module *file =
			tickmap_modules_at(processes->modules, m->module);
		if (file->python) {
			process->python = true;
			process->interpreter = file->path;
		}
		tickmap_segments_set(process->files, mmap->avma, mmap->size,
				     processes->mappings.count - 1,
				     lost_content, &replaced);
		tickmap_segments_clear(process->code, mmap->avma, mmap->size,
				       lost_content, &replaced);
		tickmap_segments_clear(process->anon, mmap->avma, mmap->size,
				       lost_content, &replaced);
	}
	if (replaced)
		space_changed(processes, process);
	return process;
}

struct tickmap_process *
tickmap_process_fork(struct tickmap_processes *processes,
		     const struct tickmap_task_record *fork)
{
	struct tickmap_process *parent;
	struct tickmap_process *child;

	if (fork->pid == fork->ppid) { /* a thread */
		parent = tickmap_process_of(processes, (pid_t)fork->pid);
		if (parent)
			parent->threads++;
		return parent;
	}
	parent = tickmap_process_find(processes, (pid_t)fork->ppid);
	child = fresh(processes, (pid_t)fork->pid);
	if (!child)
		return NULL;
	child->started = fork->time_ns;
	if (!parent || !parent->files)
		return child;
	tickmap_process_advance(processes, parent, fork->time_ns);
	release_space(child);
	child->files = tickmap_segments_clone(parent->files);
	child->code = tickmap_segments_clone(parent->code);
	child->anon = tickmap_segments_clone(parent->anon);
	child->entered = true;
	child->python = parent->python;
	child->interpreter = parent->interpreter;
	child->has_code_map = parent->has_code_map;
	return child->files && child->code && child->anon ? child : NULL;
}

void tickmap_process_exit(struct tickmap_processes *processes,
			  const struct tickmap_task_record *exit)
{
	struct tickmap_process *process =
		tickmap_process_find(processes, (pid_t)exit->pid);

	if (!process || (process->threads && --process->threads))
		return;
	process->exited = true;
	release_space(process);
}

struct tickmap_process *
tickmap_process_exec(struct tickmap_processes *processes, pid_t pid,
		     uint64_t time_ns)
{
	struct tickmap_process *process = tickmap_process_of(processes, pid);

	if (!process)
		return NULL;
	if (!process->started)
		process->started = time_ns;
	process->threads = 1;
	process->map_checked = false;
	process->map_file = 0;
	return new_space(processes, process) ? process : NULL;
}

uint32_t tickmap_processes_eh_frame(struct tickmap_processes *processes,
				    const uint8_t *bytes, size_t size)
{
	return tickmap_intern(processes->frames, (const char *)bytes, size);
}

static void put_in_force(struct tickmap_processes *processes,
			 struct tickmap_process *process,
			 const struct tickmap_live_code *code)
{
	bool replaced = false;
	/* The table's place follows from the size that was published, which a
	 * cut segment has lost. */
	uint64_t owner = code->size << 32 | code->eh_frame;

	if (code->moved) {
		const struct tickmap_segment *old =
			tickmap_segments_find(process->code, code->old_avma);
		if (old)
			owner = old->owner;
		tickmap_segments_clear(process->code, code->old_avma,
				       code->size, lost_content, &replaced);
	}
	tickmap_segments_set(process->code, code->avma, code->size, owner,
			     lost_content, &replaced);
	/* Anonymous memory that was walked by frame pointers so far may have
	 * cached such a rule for this very place. */
	if (replaced || process->anon_samples)
		space_changed(processes, process);
}

bool tickmap_process_publish(struct tickmap_processes *processes, pid_t pid,
			     const struct tickmap_live_code *code)
{
	struct tickmap_process *process = tickmap_process_of(processes, pid);

	if (!process)
		return false;
	process->has_code_map = true;
	if (!process->code)
		return true;
	struct tickmap_live_code *at = tickmap_vec_push(&process->pending);
	if (!at)
		return false;
	/* Producers with several threads write slightly out of order. */
	size_t i = process->pending.count - 1;
	while (i > process->pending_done &&
	       process->pending.items[i - 1].when > code->when) {
		process->pending.items[i] = process->pending.items[i - 1];
		i--;
	}
	process->pending.items[i] = *code;
	return true;
}

void tickmap_process_advance(struct tickmap_processes *processes,
			     struct tickmap_process *process, uint64_t time_ns)
{
	while (process->pending_done < process->pending.count &&
	       process->pending.items[process->pending_done].when <= time_ns)
		put_in_force(processes, process,
			     &process->pending.items[process->pending_done++]);
	if (process->pending_done == process->pending.count)
		process->pending.count = process->pending_done = 0;
}

/* The table of a mapped file, its bias worked out at the first question. */
static bool file_module(struct tickmap_processes *processes, pid_t pid,
			struct mapping *m, uint64_t avma,
			struct tickmap_unwind_module *ret_module)
{
	struct tickmap_module *module =
		tickmap_modules_open(processes->modules, m->module, pid);
	uint64_t svma;

	if (!m->bias_known) {
		m->bias_known = true;
		/* Of the byte that runs: a mapping's first page may begin in
		 * the segment before. */
		if (module->elf &&
		    tickmap_elf_svma_of_offset(module->elf,
					       avma - m->avma + m->file_offset,
					       &svma)) {
			m->bias = avma - svma;
			m->has_table = module->has_cfi;
		}
	}
	ret_module->cfi = m->has_table ? &module->cfi : NULL;
	ret_module->bias = m->bias;
	ret_module->frame_pointer = true;
	return true;
}

static void code_module(struct tickmap_process_view *view,
			const struct tickmap_segment *segment,
			struct tickmap_unwind_module *ret_module)
{
	size_t size;
	uint64_t code_size = segment->owner >> 32;
	const char *bytes = tickmap_string(view->processes->frames,
					   (tickmap_str)segment->owner, &size);

	ret_module->bias = 0;
	ret_module->frame_pointer = true;
	ret_module->cfi = NULL;
	if (!size)
		return;
	tickmap_cfi_done(&view->scratch);
	view->scratch = (struct tickmap_cfi) {
		.eh_frame = (const uint8_t *)bytes,
		.eh_frame_size = size,
		.eh_frame_at = segment->origin + ((code_size + 7) & ~7ull),
	};
	tickmap_cfi_init(&view->scratch);
	ret_module->cfi = &view->scratch;
}

bool tickmap_process_find_module(void *context, uint64_t avma,
				 struct tickmap_unwind_module *ret_module)
{
	struct tickmap_process_view *view = context;
	struct tickmap_process *process = view->process;
	const struct tickmap_segment *segment;

	if (!process->files)
		return false;
	segment = tickmap_segments_find(process->code, avma);
	if (segment) {
		code_module(view, segment, ret_module);
		return true;
	}
	segment = tickmap_segments_find(process->files, avma);
	if (segment)
		return file_module(
			view->processes, process->pid,
			&view->processes->mappings.items[segment->owner], avma,
			ret_module);
	segment = tickmap_segments_find(process->anon, avma);
	if (!segment)
		return false;
	view->saw_anon = true;
	*ret_module = (struct tickmap_unwind_module) { .frame_pointer = true };
	return true;
}

bool tickmap_process_knows(struct tickmap_process_view *view, uint64_t avma)
{
	const struct tickmap_process *process = view->process;

	return process->files && (tickmap_segments_find(process->code, avma) ||
				  tickmap_segments_find(process->files, avma) ||
				  tickmap_segments_find(process->anon, avma));
}

size_t tickmap_process_code_before(void *context, uint64_t avma, uint8_t *out,
				   size_t wanted)
{
	const struct tickmap_process_view *view = context;
	struct iovec here = { .iov_base = out, .iov_len = wanted };
	struct iovec there = {
		.iov_base = (void *)(uintptr_t)(avma - wanted),
		.iov_len = wanted,
	};
	uint32_t module;
	uint64_t file_offset;

	if (process_vm_readv(view->process->pid, &here, 1, &there, 1, 0) ==
	    (ssize_t)wanted)
		return wanted;
	/* The process is gone, or not ours to look into: its file is not. */
	if (!tickmap_process_file_of(view->processes, view->process, avma - 1,
				     &module, &file_offset) ||
	    file_offset + 1 < wanted)
		return 0;
	return tickmap_modules_read(view->processes->modules, module,
				    file_offset + 1 - wanted, out, wanted)
		       ? wanted
		       : 0;
}

bool tickmap_process_file_of(struct tickmap_processes *processes,
			     const struct tickmap_process *process,
			     uint64_t avma, uint32_t *ret_module,
			     uint64_t *ret_file_offset)
{
	const struct tickmap_segment *segment =
		process->files ? tickmap_segments_find(process->files, avma)
			       : NULL;

	if (!segment || tickmap_segments_find(process->code, avma))
		return false;
	const struct mapping *m = &processes->mappings.items[segment->owner];
	*ret_module = m->module;
	*ret_file_offset = avma - m->avma + m->file_offset;
	return true;
}

bool tickmap_process_is_anonymous(const struct tickmap_process *process,
				  uint64_t avma)
{
	return process->files && !tickmap_segments_find(process->code, avma) &&
	       !tickmap_segments_find(process->files, avma) &&
	       tickmap_segments_find(process->anon, avma);
}

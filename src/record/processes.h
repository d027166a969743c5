/* SPDX-License-Identifier: MIT */
/*
 * The sampled processes as they are right now: which file, which published code
 * and which anonymous memory is executable where. Follows the kernel's records
 * in time order; the unwinder asks it.
 */
#ifndef TICKMAP_RECORD_PROCESSES_H
#define TICKMAP_RECORD_PROCESSES_H

#include "base/vec.h"
#include "capture/sample.h"
#include "record/modules.h"
#include "timeline/segments.h"
#include "unwind/unwind.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A published function, as far as unwinding needs it. */
struct tickmap_live_code {
	uint64_t when;
	uint64_t avma, size;
	uint32_t eh_frame; /* interned bytes; 0: none */
	bool moved;	   /* old_avma is set */
	uint64_t old_avma;
};

struct tickmap_process {
	pid_t pid;
	uint64_t key;	  /* see tickmap_unwind_space */
	uint64_t started; /* mono_ns; 0: before the recording */
	unsigned threads;
	bool exited;
	bool entered;		 /* its code was seen running since its exec */
	bool python;		 /* maps an interpreter's file */
	const char *interpreter; /* its path; borrowed from the modules */
	bool has_code_map; /* some code map of its own (or its parent's) */
	uint64_t samples;
	uint64_t anon_samples; /* with a leaf or caller in unnamed code */
	struct tickmap_segments *files; /* owner: index of a mapping */
	struct tickmap_segments *code;	/* owner: index of eh_frame bytes */
	struct tickmap_segments *anon;
	/* Published, but stamped later than the records handled so far. */
	TICKMAP_VEC(struct tickmap_live_code) pending;
	size_t pending_done;
	/* Perf map in the folder where perf looks, see follow.c. */
	bool map_checked;
	uint64_t map_skip; /* bytes in it that an earlier process wrote */
	uint32_t map_file; /* follower's number; 0: none */
	uint64_t map_last_try;
};

struct tickmap_processes;

struct tickmap_processes *
tickmap_processes_new(struct tickmap_modules *modules);
void tickmap_processes_free(struct tickmap_processes *processes);

/* Made if unknown. NULL: out of memory. */
struct tickmap_process *tickmap_process_of(struct tickmap_processes *processes,
					   pid_t pid);
/* NULL if unknown. */
struct tickmap_process *
tickmap_process_find(struct tickmap_processes *processes, pid_t pid);

/* The kernel's records. Each returns the process or NULL (no memory). */
struct tickmap_process *
tickmap_process_map(struct tickmap_processes *processes,
		    const struct tickmap_mmap_record *mmap);
struct tickmap_process *
tickmap_process_fork(struct tickmap_processes *processes,
		     const struct tickmap_task_record *fork);
void tickmap_process_exit(struct tickmap_processes *processes,
			  const struct tickmap_task_record *exit);
struct tickmap_process *
tickmap_process_exec(struct tickmap_processes *processes, pid_t pid,
		     uint64_t time_ns);

/* Published code: queued, and in force for samples from `when` on. */
bool tickmap_process_publish(struct tickmap_processes *processes, pid_t pid,
			     const struct tickmap_live_code *code);
/* Bytes of .eh_frame, each different one kept once. 0: out of memory. */
uint32_t tickmap_processes_eh_frame(struct tickmap_processes *processes,
				    const uint8_t *bytes, size_t size);

/* Puts the published code up to this time in force. */
void tickmap_process_advance(struct tickmap_processes *processes,
			     struct tickmap_process *process, uint64_t time_ns);

/* What tickmap_unwind_space.find wants; context: a tickmap_process_view. */
struct tickmap_process_view {
	struct tickmap_processes *processes;
	struct tickmap_process *process;
	struct tickmap_cfi scratch; /* table of the last JIT function */
	bool saw_anon;
};
bool tickmap_process_find_module(void *view, uint64_t avma,
				 struct tickmap_unwind_module *ret_module);

/* tickmap_unwind_space.code_before: reads the live process. */
size_t tickmap_process_code_before(void *view, uint64_t avma, uint8_t *out,
				   size_t wanted);
/* Some executable mapping holds avma. */
bool tickmap_process_knows(struct tickmap_process_view *view, uint64_t avma);

/* Which file holds avma: module index and file offset. */
bool tickmap_process_file_of(struct tickmap_processes *processes,
			     const struct tickmap_process *process,
			     uint64_t avma, uint32_t *ret_module,
			     uint64_t *ret_file_offset);
/* Executable anonymous memory without published code holds avma. */
bool tickmap_process_is_anonymous(const struct tickmap_process *process,
				  uint64_t avma);

/* All of them, for the poll and for the end. */
size_t tickmap_processes_count(const struct tickmap_processes *processes);
struct tickmap_process *
tickmap_processes_at(struct tickmap_processes *processes, size_t index);

/* The mapping is memory that may hold generated code, not a file's. */
bool tickmap_is_anonymous_path(const char *path);

#endif

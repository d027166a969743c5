/* SPDX-License-Identifier: MIT */
/*
 * A whole profile in memory: frames, a tree of call stacks, samples that point
 * into it, and how good the data is. Made from any perf.data, by one pass that
 * puts events in time order, follows processes, and asks the timeline who owned
 * each address.
 */
#ifndef TICKMAP_PROFILE_PROFILE_H
#define TICKMAP_PROFILE_PROFILE_H

#include "base/error.h"
#include "base/strings.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tickmap_perfdata;

enum tickmap_frame_kind {
	TICKMAP_FRAME_PYTHON,	  /* published name begins with "py::" */
	TICKMAP_FRAME_JIT,	  /* any other name out of a code map */
	TICKMAP_FRAME_NATIVE,	  /* in a file, named */
	TICKMAP_FRAME_KERNEL,	  /* named or not */
	TICKMAP_FRAME_UNRESOLVED, /* no name: reason says why */
};

/* Reasons for frames without a name and for addresses without an owner. */
enum tickmap_unresolved {
	TICKMAP_RESOLVED,
	TICKMAP_UNRESOLVED_STRIPPED, /* file without symbols there */
	TICKMAP_UNRESOLVED_FILE_MISSING,
	TICKMAP_UNRESOLVED_OTHER_BUILD,
	TICKMAP_UNRESOLVED_NO_FUNCTION,
	TICKMAP_UNRESOLVED_KERNEL,
	TICKMAP_UNRESOLVED_NO_CODE_MAP, /* executable anonymous memory, and
					   the process published nothing */
	TICKMAP_UNRESOLVED_NOT_IN_MAP,	/* ... published, but not this */
	TICKMAP_UNRESOLVED_OTHER_TIME,	/* published, but for another time */
	TICKMAP_UNRESOLVED_UNMAPPED,	/* no mapping known */
	TICKMAP_UNRESOLVED_CLOCK,	/* published, but the clocks leave open
					   which code was there then */
	TICKMAP_UNRESOLVED_COUNT
};
/* Stable words for JSON: "stripped", "no-code-map", ... */
const char *tickmap_unresolved_word(enum tickmap_unresolved reason);
/* The same for a person. */
const char *tickmap_unresolved_text(enum tickmap_unresolved reason);

struct tickmap_frame {
	tickmap_str name; /* never 0; unnamed: "[LIB+0xOFF]", "[jit+0xADDR]",
			     "[unknown+0xADDR]" */
	tickmap_str dso;  /* "libz.so.1", "[jit]", "[kernel]", "[unknown]" */
	tickmap_str dso_path;
	/* Where the function begins: from a code map's lines, or with `inlined`
	 * of the options from DWARF. 0: unknown. */
	tickmap_str file;
	uint32_t line;
	uint8_t kind;	  /* enum tickmap_frame_kind */
	uint8_t reason;	  /* enum tickmap_unresolved */
	bool inlined;	  /* has no call: it is part of its caller's code */
	bool interpreter; /* in the interpreter's own file, or our hook's */
	bool code_map;	  /* out of a code map or in anonymous executable
			     memory */
};

/* A call stack is a node: its frame, and its caller's node. Node 0 is the root
 * and has no frame. A child's index is greater than its parent's. */
struct tickmap_node {
	uint32_t parent;
	uint32_t frame;
};

struct tickmap_thread {
	uint32_t pid, tid;
	tickmap_str comm;
};

struct tickmap_profile_sample {
	uint64_t time_ns;
	uint64_t avma;	 /* of the leaf */
	uint32_t thread; /* index */
	uint32_t cpu;
	uint32_t node;
	bool jit, jit_resolved;
	uint8_t truncated; /* enum tickmap_unwind_end or the one below; 0:
			      whole */
};

/*
 * Above all of enum tickmap_unwind_end: the kernel was to tell the user part
 * later, and did not; the stack's bytes were recorded, but are of a machine
 * that we cannot unwind.
 */
enum {
	TICKMAP_TRUNCATED_DEFERRED = 14,
	TICKMAP_TRUNCATED_NOT_UNWOUND = 15,
};

struct tickmap_profile {
	struct tickmap_strings *strings;
	TICKMAP_VEC(struct tickmap_frame) frames;
	TICKMAP_VEC(struct tickmap_node) nodes;
	TICKMAP_VEC(struct tickmap_thread) threads;
	TICKMAP_VEC(struct tickmap_profile_sample) samples; /* by time */
	/* Left out on the caller's wish (pid, time). */
	uint64_t filtered;

	/* How good the data is. */
	uint64_t lost;		   /* samples and records the kernel dropped */
	uint64_t truncated;	   /* samples */
	uint64_t truncated_by[16]; /* by enum tickmap_unwind_end */
	uint64_t jit_samples, jit_resolved;
	uint64_t unresolved[TICKMAP_UNRESOLVED_COUNT]; /* frames in samples */
	uint64_t early;		 /* frames resolved only thanks to the slack */
	uint64_t other_events;	 /* samples of events that count no time */
	uint64_t code_loads;	 /* functions published */
	uint64_t dumped_lines;	 /* of perf maps, where a jitdump knew more */
	uint64_t findings_count; /* oddities in code maps */
	TICKMAP_VEC(tickmap_str) findings; /* one text a kind */
	TICKMAP_VEC(tickmap_str) hints;	   /* "install libz1-dbgsym ..." */
	struct {
		const char *domain;    /* "monotonic", "perf", ... */
		const char *method;    /* "same", "offset", "fit", "none" */
		const char *code_maps; /* what stamped these; "" if nothing */
		int64_t offset_ns;
		uint64_t error_ns;
		uint64_t violations;
	} clock;
	bool finished; /* false: the recorder was killed */

	/* What was measured. */
	tickmap_str event;	   /* "cpu-clock", "cycles:u" */
	uint64_t frequency;	   /* Hz; 0: unknown */
	bool kernel_seen;	   /* kernel frames were sampled */
	uint64_t start_ns, end_ns; /* of the recording, else first/last */
	double cpu_seconds;	   /* on CPU, from periods or frequency */
	tickmap_str command;
};

struct tickmap_profile_options {
	const uint32_t *pids; /* NULL: all */
	size_t pid_count;
	const uint32_t *tids;
	size_t tid_count;
	uint64_t from_ns, to_ns; /* [from, to); to 0: open */
	const char *const *code_map_dirs;
	size_t code_map_dir_count;
	/* The recording, if it is open already: read from its start, and again
	 * at its start behind it. NULL: `path` is opened. */
	struct tickmap_perfdata *data;
	/* Reads DWARF: native frames are followed by what is inlined there. */
	bool inlined;
	/* Keeps the address of every frame of every sample: 32 bytes for each
	 * different stack of addresses (which loading needs anyway) and 4 a
	 * sample. */
	bool addresses;
	/* Progress for a person; may be NULL. */
	void (*progress)(void *context, uint64_t done, uint64_t all);
	void *progress_context;
};

int tickmap_profile_load(const char *path,
			 const struct tickmap_profile_options *options,
			 struct tickmap_profile **ret_profile,
			 struct tickmap_error *err);
void tickmap_profile_free(struct tickmap_profile *profile);

/* An empty one, and the two ways to grow it, for readers and tests. */
struct tickmap_profile *tickmap_profile_new(void);
/* Equal frames get one index. UINT32_MAX: out of memory. */
uint32_t tickmap_profile_frame(struct tickmap_profile *profile,
			       const struct tickmap_frame *frame);
uint32_t tickmap_profile_node(struct tickmap_profile *profile, uint32_t parent,
			      uint32_t frame);

/*
 * The addresses of a sample's frames, leaf first: of the leaf the instruction,
 * of callers the return address. Inlined frames have none of their own. The
 * number of all of them comes back, of which at most `room` are written; 0
 * where they were not kept.
 */
size_t tickmap_profile_addresses(const struct tickmap_profile *profile,
				 size_t sample, uint64_t *ret_avmas,
				 size_t room);

/* ---- What the outputs ask ---- */

struct tickmap_function {
	uint32_t frame; /* one that looks like it */
	uint32_t open;	/* while counting: how often it is on the path */
	uint64_t self, total, managed_self;
};

struct tickmap_functions {
	struct tickmap_function *rows; /* sorted: managed_self, self, total,
					  then name; none without samples */
	size_t count;
};

/*
 * The table of functions: frames that share name, dso, file and line are one;
 * inlined copies are another.
 * See the counts' definitions in docs/architecture.md. `samples` may be NULL
 * (all) or hold the indices of some.
 */
int tickmap_profile_functions(const struct tickmap_profile *profile,
			      const uint32_t *samples, size_t sample_count,
			      struct tickmap_functions *ret_functions);
void tickmap_functions_free(struct tickmap_functions *functions);

/* Names shared by different functions (same name and file, other line): text
 * outputs append ":LINE" to these. */
bool tickmap_profile_needs_line(const struct tickmap_profile *profile,
				uint32_t frame);

/* The frame, as a stack shows it, is the interpreter's own machinery below a
 * Python frame: hidden unless asked for. */
bool tickmap_frame_is_folded(const struct tickmap_profile *profile,
			     uint32_t node);

#endif

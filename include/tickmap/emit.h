/* SPDX-License-Identifier: MIT */
/*
 * Publish the code that a runtime generates, so that profilers can name it:
 * jitdump and perf map files, written correctly.
 *
 *	struct tickmap_emit *emit;
 *	struct tickmap_emit_options options = TICKMAP_EMIT_OPTIONS_INIT;
 *	options.sinks = TICKMAP_EMIT_JITDUMP;
 *	if (tickmap_emit_open(&options, &emit) == TICKMAP_EMIT_OK) {
 *		struct tickmap_code code = TICKMAP_CODE_INIT;
 *		code.addr = (uintptr_t)entry;
 *		code.bytes = entry;
 *		code.code_size = length;
 *		code.name = "my_function";
 *		tickmap_emit_code(emit, &code);
 *	}
 *
 * Clock. Every time stamp, the header's included, is CLOCK_MONOTONIC in
 * nanoseconds, unless options.clock says otherwise. perf must then be told
 * `perf record -k 1`; tickmap and samply need nothing.
 *
 * Threads. Every call but open, after_fork and close may come from any thread
 * at any time; records never tear and their stamps never decrease in file
 * order.
 *
 * Failures. The library never prints, exits or starts a thread, and allocates
 * only in tickmap_emit_open and _after_fork. A write that fails half-way is
 * taken back to the last whole record. The first failed write latches: later
 * calls are cheap no-ops that return the same status, so the file never holds
 * half a record followed by others. RLIMIT_FSIZE is looked at before a write,
 * so that reaching it is a failure (EFBIG) and not a SIGXFSZ.
 *
 * Death. Nothing is buffered: whatever ends the process, each function whose
 * tickmap_emit_code has returned is in the file. The one that was being written
 * may be cut where it crosses a page of memory.
 *
 * Fork. A forked child must call tickmap_emit_after_fork before it publishes;
 * until then its calls do nothing and return TICKMAP_EMIT_E_FORKED. The child
 * never touches the parent's file. The library installs no pthread_atfork
 * handler; a runtime calls tickmap_emit_after_fork where it restarts its own
 * state, before the child starts threads. Programs that the child executes
 * inherit nothing.
 *
 * Signals. No call here may be made from a signal handler. No call is a
 * cancellation point.
 */
#ifndef TICKMAP_EMIT_H
#define TICKMAP_EMIT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TICKMAP_EMIT_VERSION_MAJOR 0
#define TICKMAP_EMIT_VERSION_MINOR 1

#ifndef TICKMAP_EMIT_API
#define TICKMAP_EMIT_API __attribute__((visibility("default")))
#endif

enum tickmap_emit_status {
	TICKMAP_EMIT_OK = 0,
	TICKMAP_EMIT_E_ARGUMENT = -1, /* a parameter contradicts this header */
	TICKMAP_EMIT_E_NOMEM = -2,
	TICKMAP_EMIT_E_OS = -3,	       /* tickmap_emit_errno says which */
	TICKMAP_EMIT_E_UNSAFE = -4,    /* a link, a foreign file, a FIFO, ... */
	TICKMAP_EMIT_E_EXISTS = -5,    /* a file is there that we must keep */
	TICKMAP_EMIT_E_FORKED = -6,    /* see "Fork" above */
	TICKMAP_EMIT_E_TOO_LARGE = -7, /* the code would not fit one append:
					  2 GiB, and 4 MiB for all but its
					  bytes: name, lines */
};

/* A static phrase for a status. Any thread, any time. */
TICKMAP_EMIT_API const char *tickmap_emit_strerror(int status);

/* options.sinks */
#define TICKMAP_EMIT_PERF_MAP (UINT32_C(1) << 0) /* DIR/perf-PID.map */
#define TICKMAP_EMIT_JITDUMP (UINT32_C(1) << 1)	 /* DIR/jit-PID.dump */

/* options.flags */

/*
 * Never replace a file that is already there, not even our own user's stale
 * one. The dump then goes to DIR/tickmap-N/jit-PID.dump (N = 1, 2, ...), a
 * name that every consumer finds by its marker mapping; the perf map, whose
 * name is fixed, is refused with TICKMAP_EMIT_E_EXISTS if it is the only sink,
 * and left out (see tickmap_emit_path) if there is a dump as well.
 */
#define TICKMAP_EMIT_KEEP_EXISTING (UINT32_C(1) << 0)

struct tickmap_emit_options {
	size_t size;	      /* sizeof(struct tickmap_emit_options) */
	uint32_t sinks;	      /* TICKMAP_EMIT_PERF_MAP and/or _JITDUMP */
	uint32_t flags;	      /* TICKMAP_EMIT_KEEP_EXISTING */
	const char *dir;      /* NULL: /tmp, where perf looks for perf maps */
	uint32_t elf_machine; /* EM_* of the code; 0: of this process */
	uint32_t reserved;    /* 0 */
	/* Another clock, in ns; NULL: the platform's default (see above).
	 * Called with the lock held: it must not call the library. A clock that
	 * steps back is stamped as if it stood still. */
	uint64_t (*clock)(void *clock_context);
	void *clock_context;
};

#define TICKMAP_EMIT_OPTIONS_INIT                                              \
	{                                                                      \
		sizeof(struct tickmap_emit_options), TICKMAP_EMIT_JITDUMP, 0,  \
			0, 0, 0, 0, 0                                          \
	}

struct tickmap_emit;

/*
 * Create the files and, for a jitdump on Linux, the executable marker mapping
 * by which profilers find it. Files are made with mode 0600, O_EXCL,
 * O_NOFOLLOW and O_CLOEXEC. A stale regular file of our own user is replaced
 * (unlinked first) unless TICKMAP_EMIT_KEEP_EXISTING or another writer of this
 * very process holds it; everything else is refused.
 *
 * On failure *ret_emit is NULL and errno says more for TICKMAP_EMIT_E_OS.
 */
TICKMAP_EMIT_API int
tickmap_emit_open(const struct tickmap_emit_options *options,
		  struct tickmap_emit **ret_emit);

/* One source position; entries sorted by offset, unit: bytes from code.addr. */
struct tickmap_line {
	uint64_t offset;
	uint32_t line;	  /* >= 1 */
	uint32_t column;  /* 0: unknown */
	const char *file; /* NULL: code.file */
};

/*
 * How to find the caller from every byte of the function. Build one with
 * tickmap_unwind_* below; plain data, no pointers of its own, freely copied
 * and shared between all functions with the same layout.
 */
#define TICKMAP_UNWIND_FRAME_BYTES 128
struct tickmap_unwind {
	uint32_t frame_size; /* used bytes of frame; 0: none */
	uint32_t pc_begin;   /* offset of the FDE's pc-begin field in it */
	uint8_t frame[TICKMAP_UNWIND_FRAME_BYTES]; /* .eh_frame: one CIE, one
						      FDE */
};

/*
 * Names. Bytes below 0x20 and 0x7f are written as '?', one for one, in function
 * and file names; all others as they are, so UTF-8 stays. No name at all is
 * written as "?". perf drops perf map lines whose name is shorter than three
 * bytes.
 *
 * Lines. Each holds up to the next; the last one is written once more at the
 * end of the code, as perf ends a line table at its last entry.
 *
 * Index. Unique within the dump: the key by which perf names its image files
 * and by which tickmap_emit_move finds the code. A caller that moves code gives
 * its own indices; a 0 is replaced by one above all that were used so far.
 *
 * Look-alikes. Versions of perf identify the image that they make of each
 * function by its code bytes, or by these and the name (7.2), and may show one
 * of several equal functions for all of them. The library does not change
 * published bytes. A caller with many equal functions (trampolines) can keep
 * them apart by a no-op with a distinct operand behind the last instruction,
 * within code_size. What differs by itself are the unwinding bytes: the FDE's
 * augmentation data, which consumers skip, hold the index.
 */
struct tickmap_code {
	size_t size;	    /* sizeof(struct tickmap_code) */
	uint64_t addr;	    /* where the code runs */
	uint64_t code_size; /* bytes; the length of the function */
	const void *bytes;  /* the code; NULL: zeros stand for it */
	const char *name;   /* any bytes, see below */
	size_t name_length; /* 0: name is NUL-terminated */
	uint64_t index;	    /* 0: the next unused one */
	const char *file;   /* source file or NULL */
	const struct tickmap_line *lines; /* or NULL */
	size_t line_count;
	const struct tickmap_unwind *unwind; /* or NULL */
	uint64_t mapped_size; /* room kept behind the code for its unwinding
				 bytes (see tickmap_emit_spacing); 0: none */
};

#define TICKMAP_CODE_INIT                                                      \
	{                                                                      \
		sizeof(struct tickmap_code), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0   \
	}

/*
 * Announce one function. Call it when its bytes are final and before they
 * first run. All its records reach the file in one append.
 *
 * Nothing in `code` is kept. Returns 0 or a negative status (latched, except
 * TICKMAP_EMIT_E_ARGUMENT and _E_TOO_LARGE, which concern this code only).
 */
TICKMAP_EMIT_API int tickmap_emit_code(struct tickmap_emit *emit,
				       const struct tickmap_code *code);

/*
 * Announce that the code published as `index` now runs at new_addr. A perf map
 * cannot say so: for that sink, publish the code again.
 */
TICKMAP_EMIT_API int tickmap_emit_move(struct tickmap_emit *emit,
				       uint64_t old_addr, uint64_t new_addr,
				       uint64_t code_size, uint64_t index);

/*
 * In a forked child: drop the parent's files and open new ones under this
 * process's own pid. Code inherited from the parent keeps the parent's
 * records: consumers start a child with its parent's code.
 */
TICKMAP_EMIT_API int tickmap_emit_after_fork(struct tickmap_emit *emit);

/*
 * Path of a sink's file, NULL if there is none. Borrowed; valid until close or
 * after_fork.
 */
TICKMAP_EMIT_API const char *tickmap_emit_path(const struct tickmap_emit *emit,
					       uint32_t sink);

/*
 * What open, or after_fork, had to do differently. None of it is a failure.
 */
/* The dump's folder allows no executable mappings (mounted noexec): the dump is
 * complete, but profilers must be told where it is. */
#define TICKMAP_EMIT_STATE_NO_MARKER (UINT32_C(1) << 0)
/* The dump went to DIR/tickmap-N; see TICKMAP_EMIT_KEEP_EXISTING. */
#define TICKMAP_EMIT_STATE_DUMP_BESIDE (UINT32_C(1) << 1)
/* Another writer of this process had the perf map open: lines are appended. */
#define TICKMAP_EMIT_STATE_MAP_SHARED (UINT32_C(1) << 2)
/* The perf map was left out; see TICKMAP_EMIT_KEEP_EXISTING. */
#define TICKMAP_EMIT_STATE_NO_MAP (UINT32_C(1) << 3)
TICKMAP_EMIT_API uint32_t tickmap_emit_state(const struct tickmap_emit *emit);

/* errno of the first failure, 0 if there was none. */
TICKMAP_EMIT_API int tickmap_emit_errno(const struct tickmap_emit *emit);

/*
 * Write the close record, release; the files stay. Accepts NULL. Returns the
 * latched status. In a forked child nothing is written.
 */
TICKMAP_EMIT_API int tickmap_emit_close(struct tickmap_emit *emit);

/*
 * Unwinding information for x86-64 (DWARF call frame information, System V
 * psABI register numbers). All builders return 0 or TICKMAP_EMIT_E_ARGUMENT.
 */

/*
 * A function that keeps a frame pointer:
 *	[push_at]  push rbp        1 byte
 *	[..]       mov rbp, rsp    3 bytes, right behind the push
 *	...
 *	[leave_at] pop rbp | leave 1 byte; rsp is the CFA's again behind it
 *	...        ret
 * Unit: bytes from the function's start. leave_at 0: the frame stays up to the
 * end (a function that never returns, or whose epilogue is not worth it).
 */
TICKMAP_EMIT_API int
tickmap_unwind_frame_pointer(struct tickmap_unwind *ret_unwind,
			     uint32_t push_at, uint32_t leave_at);

/*
 * A function without a frame pointer: from each offset on, the caller's stack
 * pointer is rsp + cfa_offset (8 at the first instruction). Sorted by `at`, no
 * two alike; as many as fit TICKMAP_UNWIND_FRAME_BYTES, which is at least 10.
 */
struct tickmap_unwind_step {
	uint32_t at;
	uint32_t cfa_offset;
};
TICKMAP_EMIT_API int
tickmap_unwind_stack_pointer(struct tickmap_unwind *ret_unwind,
			     const struct tickmap_unwind_step *steps,
			     size_t count);

/*
 * Where the next function may start so that perf's own inject, which lays the
 * unwinding bytes behind the code, never makes two functions overlap: the
 * distance from one function's address to the next, a multiple of 16. Nothing
 * need be stored in that room; it only must not hold other code.
 *
 * A caller that keeps this distance sets code.mapped_size to
 * tickmap_emit_mapped_size(unwind), and perf built with libunwind can unwind
 * through its code. One that does not leaves it 0.
 */
TICKMAP_EMIT_API uint64_t
tickmap_emit_mapped_size(const struct tickmap_unwind *unwind);
TICKMAP_EMIT_API uint64_t
tickmap_emit_spacing(uint64_t code_size, const struct tickmap_unwind *unwind);

#ifdef __cplusplus
}
#endif

#endif

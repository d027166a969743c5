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
 * On macOS it is mach_absolute_time, converted to nanoseconds by the timebase:
 * the clock of samply and of Instruments, which stops while the machine sleeps
 * (CLOCK_MONOTONIC, there, does not). A thread id is the 32-bit field of the
 * record: gettid on Linux, the lower half of pthread_threadid_np on macOS.
 *
 * Threads. Every call but open, before_fork, after_fork and close may come from
 * any thread at any time; records never tear and their stamps never decrease in
 * file order.
 *
 * Failures. The library never prints, exits or starts a thread. It allocates
 * only in tickmap_emit_open and _after_fork, unless TICKMAP_EMIT_GDB or
 * TICKMAP_EMIT_REPUBLISH asks it to remember code. A write that fails half-way
 * is taken back to the last whole record. The first failed write latches: later
 * calls are cheap no-ops that return the same status, so the file never holds
 * half a record followed by others. Where RLIMIT_FSIZE limits the process when
 * a file is opened, it is looked at before each write, so that reaching it is a
 * failure (EFBIG) and not a SIGXFSZ.
 *
 * Death. Nothing is buffered, unless options.batch_size asks for it: whatever
 * ends the process, each function whose tickmap_emit_code has returned is in
 * the file. The one that was being written may be cut where it crosses a page
 * of memory.
 *
 * Fork. A forked child must call tickmap_emit_after_fork before it publishes;
 * until then its calls do nothing and return TICKMAP_EMIT_E_FORKED. The child
 * never touches the parent's file. The library installs no pthread_atfork
 * handler; a runtime calls tickmap_emit_after_fork where it restarts its own
 * state, before the child starts threads. Programs that the child executes
 * inherit nothing.
 *
 * Signals. No call here may be made from a signal handler, except _strerror,
 * _errno, _path and _state, which take no lock. A handler that interrupts a
 * call may do anything else, but it must come back: not by longjmp, and in a
 * child that it has forked it must exec or end, as the call would go on there.
 * No call is a cancellation point; asynchronous cancellation is not for threads
 * that publish.
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
	TICKMAP_EMIT_E_OS = -3,	      /* tickmap_emit_errno says which */
	TICKMAP_EMIT_E_UNSAFE = -4,   /* a link, a foreign file, a FIFO, ...:
					 see tickmap_emit_open */
	TICKMAP_EMIT_E_EXISTS = -5,   /* a file is there that we must keep */
	TICKMAP_EMIT_E_FORKED = -6,   /* see "Fork" above */
	TICKMAP_EMIT_E_TOO_LARGE = -7 /* the code would not fit one append:
					 2 GiB, and 16 MiB for all but the
					 caller's bytes: name, lines, and
					 the zeros that stand for none */
};

/* A static phrase for a status. Any thread, any time. */
TICKMAP_EMIT_API const char *tickmap_emit_strerror(int status);

/* options.sinks */
#define TICKMAP_EMIT_PERF_MAP (UINT32_C(1) << 0) /* DIR/perf-PID.map */
#define TICKMAP_EMIT_JITDUMP (UINT32_C(1) << 1)	 /* DIR/jit-PID.dump */
/*
 * GDB's JIT interface: each function becomes an ELF file in memory with its
 * symbol, lines and unwinding, registered in __jit_debug_descriptor (weak
 * here, so that it is shared with another JIT's in the same program; the list
 * has no lock between the two). It lives until the code is removed, another is
 * published over it, or close. A running gdb stops the process for a moment at
 * each: some milliseconds, and more the more there are (docs/emit.md has the
 * figures; with thousands, rather attach gdb once they are there).
 */
#define TICKMAP_EMIT_GDB (UINT32_C(1) << 2)

/* options.flags */

/*
 * Never replace a file that is already there, not even our own user's stale
 * one. The dump then goes to DIR/tickmap-N/jit-PID.dump (N = 1, 2, ...), a
 * name that every consumer finds by its marker mapping; the perf map, whose
 * name is fixed, is refused with TICKMAP_EMIT_E_EXISTS if it is the only sink,
 * and left out (see tickmap_emit_path) if there is a dump as well.
 */
#define TICKMAP_EMIT_KEEP_EXISTING (UINT32_C(1) << 0)

/*
 * Remember the code that is live (bytes, name, lines, unwinding: a copy of
 * each), so that tickmap_emit_after_fork publishes it once more in the child's
 * files, under the child's pid. For consumers that do not start a child with
 * its parent's code. Code is live until it is removed or another is published
 * over any part of it.
 */
#define TICKMAP_EMIT_REPUBLISH (UINT32_C(1) << 1)

/*
 * Every record's code is followed by TICKMAP_EMIT_TAIL_SIZE bytes that are not
 * the function's, and that no other function's have: see "Look-alikes". The
 * caller keeps that much room behind each function free of other code.
 */
#define TICKMAP_EMIT_UNIQUE_TAIL (UINT32_C(1) << 2)
#define TICKMAP_EMIT_TAIL_SIZE 8

/*
 * With dir NULL, the dump goes to the folder that the environment variable
 * JITDUMPDIR names, if there is one; never in a set-uid program. The perf map
 * stays in /tmp.
 */
#define TICKMAP_EMIT_DIR_FROM_ENV (UINT32_C(1) << 3)

/*
 * A file name that is the same as in the line before is written as FF: smaller
 * dumps, but perf before 6.5 shows that byte as the name.
 */
#define TICKMAP_EMIT_SHORT_NAMES (UINT32_C(1) << 4)

/* The struct may grow at its end; `size` says which one a caller knows. */
struct tickmap_emit_options {
	size_t size;	      /* sizeof(struct tickmap_emit_options) */
	uint32_t sinks;	      /* one or more of the three above */
	uint32_t flags;	      /* TICKMAP_EMIT_KEEP_EXISTING, ... */
	const char *dir;      /* NULL: /tmp, where perf looks for perf maps */
	uint32_t elf_machine; /* EM_* of the code; 0: of this process */
	uint32_t reserved;    /* 0 */
	/* Another clock, in ns; NULL: the platform's default (see above).
	 * Called with the lock held: it must not call the library. A clock that
	 * steps back is stamped as if it stood still. */
	uint64_t (*clock)(void *clock_context);
	void *clock_context;
	/* The dump's name in its folder, where each "%p" stands for the pid;
	 * NULL: "jit-%p.dump", the only form that perf recognises. A file whose
	 * name holds no pid is never replaced. */
	const char *file_name;
	uint32_t mode; /* of the files; 0: 0600; at most 0644 */
	/* 0, or up to how many bytes of records are gathered before they are
	 * written (at most 2 MiB). It gives up what "Death" promises: the last
	 * batch is lost with the process; and readers of a growing file see
	 * it late. tickmap_emit_flush and close write the rest. */
	uint32_t batch_size;
	/* Both or neither; NULL: malloc and free. Not for the mapped buffer. */
	void *(*allocate)(void *allocator_context, size_t size);
	void (*release)(void *allocator_context, void *memory, size_t size);
	void *allocator_context;
};

#define TICKMAP_EMIT_OPTIONS_INIT                                              \
	{                                                                      \
		sizeof(struct tickmap_emit_options), TICKMAP_EMIT_JITDUMP, 0,  \
			0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                        \
	}

struct tickmap_emit;

/*
 * Create the files and, for a jitdump on Linux, the executable marker mapping
 * by which profilers find it. Files are made with mode 0600, O_EXCL,
 * O_NOFOLLOW and O_CLOEXEC. A stale regular file of our own user is replaced
 * (unlinked first); everything else is refused. Not stale, and kept as with
 * TICKMAP_EMIT_KEEP_EXISTING, except that a perf map is appended to: a file
 * that another writer of this very process holds, and a dump or map that was
 * written to since this process started, by a handle closed since or before an
 * exec, which a recorder still needs. Kept as with TICKMAP_EMIT_KEEP_EXISTING
 * are the files of a live writer of the same pid in another container.
 *
 * On failure *ret_emit is NULL and errno says more: for TICKMAP_EMIT_E_OS why
 * the system refused, for TICKMAP_EMIT_E_UNSAFE what has the name: ELOOP a
 * symbolic link, EMLINK a file with a second name, EPERM another user's file,
 * EISDIR a folder, EINVAL a FIFO or a device, EEXIST one that reappears.
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
 * its own indices, below 2^64 - 1; a 0 is replaced by one above all that were
 * used so far.
 *
 * Look-alikes. Versions of perf identify the image that they make of each
 * function by its code bytes, or by these and the name (7.2), and may show one
 * of several equal functions for all of them. The library never changes the
 * code's bytes. With TICKMAP_EMIT_UNIQUE_TAIL the record says that the code is
 * eight bytes longer, and these hold the index, so that no two images have the
 * same build-id. What always differs are the unwinding bytes of our builders:
 * the FDE's augmentation data, which consumers skip, hold the index.
 *
 * Raw unwinding. eh_frame is the caller's own call frame information instead of
 * `unwind`: one CIE and one FDE, addresses encoded pc-relative in 32 bits
 * (DW_EH_PE_pcrel | sdata4), neither personality nor LSDA. The FDE's start and
 * range are written by the library, the rest is passed on as it is. (It is the
 * way to say where other registers are saved, or that the B key signs.)
 */
struct tickmap_code {
	size_t size;	    /* sizeof(struct tickmap_code) */
	uint64_t addr;	    /* where the code runs */
	uint64_t code_size; /* bytes; the length of the function */
	const void *bytes;  /* the code; NULL: zeros stand for it */
	const char *name;   /* any bytes, see "Names"; not NULL */
	size_t name_length; /* 0: name is NUL-terminated */
	uint64_t index;	    /* 0: the next unused one */
	const char *file;   /* source file or NULL */
	const struct tickmap_line *lines; /* or NULL */
	size_t line_count;
	const struct tickmap_unwind *unwind; /* or NULL */
	uint64_t mapped_size; /* room kept behind the code for its unwinding
				 bytes (see tickmap_emit_spacing); 0: none */
	const void *eh_frame; /* or NULL; see "Raw unwinding" */
	size_t eh_frame_size; /* at most 64 KiB */
};

#define TICKMAP_CODE_INIT                                                      \
	{                                                                      \
		sizeof(struct tickmap_code), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  \
			0, 0                                                   \
	}

/*
 * Announce one function. Call it when its bytes are final and before they
 * first run. All its records reach the file in one append.
 *
 * A function of no bytes is not written to a dump: nothing is ever sampled in
 * it, and perf 6.1 may never end over its mapping.
 *
 * Nothing that `code` points to is kept. Returns 0 or a negative status
 * (latched, except TICKMAP_EMIT_E_ARGUMENT, _E_TOO_LARGE and _E_NOMEM, which
 * concern this code only).
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
 * The code at this address is no more: gdb and the table of live code forget
 * it. The files have no way to say so and need none: the next code at its
 * address ends it there.
 */
TICKMAP_EMIT_API int tickmap_emit_remove(struct tickmap_emit *emit,
					 uint64_t addr);

/* Write what options.batch_size holds back. */
TICKMAP_EMIT_API int tickmap_emit_flush(struct tickmap_emit *emit);

/*
 * Before a fork, by the thread that forks: no other thread changes the table
 * of live code until tickmap_emit_after_fork is called, which then is due in
 * the parent as well. Only needed with TICKMAP_EMIT_REPUBLISH or
 * TICKMAP_EMIT_GDB, and only where other threads may publish meanwhile: a child
 * that was forked in the middle of such a change knows nothing of its parent's
 * code.
 */
TICKMAP_EMIT_API int tickmap_emit_before_fork(struct tickmap_emit *emit);

/*
 * In a forked child: drop the parent's files and open new ones under this
 * process's own pid. Code inherited from the parent keeps the parent's
 * records: consumers start a child with its parent's code. With
 * TICKMAP_EMIT_REPUBLISH it is published again, with the same indices.
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
/* Forked in the middle of a change: see tickmap_emit_before_fork. */
#define TICKMAP_EMIT_STATE_LIVE_UNKNOWN (UINT32_C(1) << 4)
TICKMAP_EMIT_API uint32_t tickmap_emit_state(const struct tickmap_emit *emit);

/* errno of the first failure, 0 if there was none. */
TICKMAP_EMIT_API int tickmap_emit_errno(const struct tickmap_emit *emit);

/*
 * Write the close record, release; the files stay. Accepts NULL. Returns the
 * latched status. In a forked child nothing is written.
 */
TICKMAP_EMIT_API int tickmap_emit_close(struct tickmap_emit *emit);

/*
 * Unwinding information (DWARF call frame information). All builders return 0
 * or TICKMAP_EMIT_E_ARGUMENT. Each knows x86-64, aarch64 and riscv64, whatever
 * the machine that it runs on; offsets are bytes from the function's start.
 */

/* shape.kind */
#define TICKMAP_UNWIND_LEAF 0 /* calls nothing, moves no stack pointer */
#define TICKMAP_UNWIND_FRAME_POINTER 1
#define TICKMAP_UNWIND_FIXED 2 /* a frame of a fixed size, no frame pointer */

/* shape.flags */
/* The prologue begins with four more bytes: endbr64, bti c, lpad. */
#define TICKMAP_UNWIND_LANDING_PAD (UINT32_C(1) << 0)
/* aarch64: paciasp before the frame is made, autiasp behind its end. It is a
 * landing pad too, so that LANDING_PAD means a `bti c` of its own. */
#define TICKMAP_UNWIND_SIGNED (UINT32_C(1) << 1)
/* riscv64: the instructions below are two bytes long, not four. */
#define TICKMAP_UNWIND_COMPRESSED (UINT32_C(1) << 2)

/*
 * The prologue starts at enter_at, the epilogue at leave_at (0: none, the frame
 * stays up to the end), and they are, with N for frame_size:
 *
 *		FRAME_POINTER			FIXED
 *	x86-64	push rbp (1 byte)		sub rsp, N
 *		mov rbp, rsp (3)
 *		...				...
 *		pop rbp | leave (1)		add rsp, N
 *		ret				ret
 *
 *	aarch64	stp x29, x30, [sp, -N]!		sub sp, sp, N
 *		mov x29, sp			str x30, [sp, N - 8]
 *		...				...
 *		ldp x29, x30, [sp], N		ldr x30, [sp, N - 8]
 *		ret				add sp, sp, N
 *						ret
 *
 *	riscv64	addi sp, sp, -N			addi sp, sp, -N
 *		sd ra, N-8(sp)			sd ra, N-8(sp)
 *		sd s0, N-16(sp)
 *		addi s0, sp, N
 *		...				...
 *		ld ra, N-8(sp)			ld ra, N-8(sp)
 *		ld s0, N-16(sp)			addi sp, sp, N
 *		addi sp, sp, N			ret
 *		ret
 *
 * N is a multiple of 8 (x86-64; 4 bytes of code up to 127, else 7; FIXED only)
 * or 16 (the others; 0 stands for 16).
 */
struct tickmap_unwind_shape {
	size_t size;	      /* sizeof(struct tickmap_unwind_shape) */
	uint32_t elf_machine; /* EM_*; 0: of this process */
	uint32_t kind;
	uint32_t flags;
	uint32_t enter_at;
	uint32_t leave_at;
	uint32_t frame_size;
};

#define TICKMAP_UNWIND_SHAPE_INIT                                              \
	{                                                                      \
		sizeof(struct tickmap_unwind_shape), 0, 0, 0, 0, 0, 0          \
	}

TICKMAP_EMIT_API int
tickmap_unwind_build(struct tickmap_unwind *ret_unwind,
		     const struct tickmap_unwind_shape *shape);

/*
 * Any other layout, step by step: what holds from offset `at` on, up to the
 * next step. Before the first one a function is as its call has left it.
 * The CFA, the caller's stack pointer behind the call's return, is where all
 * is measured from.
 */
#define TICKMAP_UNWIND_FROM_SP 0
#define TICKMAP_UNWIND_FROM_FP 1 /* rbp, x29, s0 */
struct tickmap_unwind_rule {
	uint32_t at;
	uint32_t cfa_from;   /* CFA = this register + cfa_offset */
	uint32_t cfa_offset; /* x86-64: 8 at the first instruction; else 0 */
	uint32_t saved_fp;   /* the caller's frame pointer lies so many bytes
				below the CFA; 0: it is in its register */
	uint32_t saved_ra;   /* the same of the return address; ignored on
				x86-64, where it is always 8 */
	uint32_t is_signed;  /* aarch64: the return address is, by the A key */
};

/* Sorted by `at`, no two alike; as many as fit TICKMAP_UNWIND_FRAME_BYTES. */
TICKMAP_EMIT_API int
tickmap_unwind_rules(struct tickmap_unwind *ret_unwind, uint32_t elf_machine,
		     const struct tickmap_unwind_rule *rules, size_t count);

/*
 * Shorthands for x86-64.
 *
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

/*
 * What these two compute, for unwinding bytes of any origin: .eh_frame, whose
 * size is frame_size, lies behind the code rounded up to 8, and the library
 * puts a .eh_frame_hdr behind it. With TICKMAP_EMIT_UNIQUE_TAIL the code is
 * TICKMAP_EMIT_TAIL_SIZE longer.
 */
#define TICKMAP_EH_FRAME_HDR_SIZE 20
#define TICKMAP_EMIT_MAPPED_SIZE(frame_size)                                   \
	(((uint64_t)(frame_size) + TICKMAP_EH_FRAME_HDR_SIZE + 15) &           \
	 ~(uint64_t)15)
#define TICKMAP_EMIT_SPACING(code_size, frame_size)                            \
	((((((uint64_t)(code_size) + 7) & ~(uint64_t)7) +                      \
	   TICKMAP_EMIT_MAPPED_SIZE(frame_size)) +                             \
	  15) &                                                                \
	 ~(uint64_t)15)

#ifdef __cplusplus
}
#endif

#endif

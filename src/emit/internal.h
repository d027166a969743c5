/* SPDX-License-Identifier: MIT */
/*
 * What the files of the emit library share. Nothing here is exported.
 *
 * Layers: emit.c (open, fork, close), publish.c (the calls between, lock and
 * latch), write.c (codes to the files) > live.c (the code that is remembered),
 * gdb.c (GDB's list), append.c (what is held back) > jitdump.c, perfmap.c,
 * gdb_elf.c, out.c (bytes of one function) > file.c (safe creation, whole
 * appends) > linux.c, macos.c (what differs between operating systems). cfi.c
 * takes unwinding bytes, frame.c assembles them from the rules of unwind.c and
 * unwind_ARCH.c.
 */
#ifndef TICKMAP_EMIT_INTERNAL_H
#define TICKMAP_EMIT_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <tickmap/emit.h>

/* One write may hold this much (Linux: MAX_RW_COUNT, 2 GiB less a page). */
#define EMIT_MAX_APPEND UINT64_C(0x7ffff000)

/* Everything of one append except the code itself is built in here. */
#define EMIT_BUFFER_SIZE ((size_t)16 << 20)

/* Room for records that are held back, for each file. */
#define EMIT_MAX_BATCH ((size_t)2 << 20)

#define EMIT_EM_X86_64 62
#define EMIT_EM_AARCH64 183
#define EMIT_EM_RISCV 243

/* Paths with their NUL; PATH_MAX is not there in strict C. */
#define EMIT_PATH_SIZE 4096
#define EMIT_NAME_SIZE 256

/* Bytes of a record under construction; one that is too long is latched. */
struct emit_out {
	uint8_t *base;
	size_t size;
	size_t used;
	bool full;
};

void tickmap_emit_put(struct emit_out *out, const void *bytes, size_t size);
void tickmap_emit_put_zeros(struct emit_out *out, size_t size);
void tickmap_emit_put_u32(struct emit_out *out, uint32_t value);
void tickmap_emit_put_u64(struct emit_out *out, uint64_t value);
/* Text that cannot end or inject a line or a record. */
void tickmap_emit_put_text(struct emit_out *out, const char *text,
			   size_t length);

/* A file that is only ever appended to, in whole records. */
struct emit_file {
	int fd; /* -1: none */
	bool created;
	bool is_limited; /* there was an RLIMIT_FSIZE when it was opened */
	char path[EMIT_PATH_SIZE];
};

/* Unwinding bytes before they are fitted to a code; size 0: there are none. */
struct emit_cfi {
	const uint8_t *bytes;
	size_t size;
	uint32_t pc_begin; /* where the FDE has the code's address */
	bool is_built;	   /* by us: the FDE has room for an index */
};

/* A code with all that has to be known to write it. */
struct emit_code {
	struct tickmap_code code; /* with its name_length */
	struct emit_cfi cfi;
	uint64_t index;
	uint32_t tid;
	uint32_t tail_size; /* of bytes behind the code, which are `index` */
	bool short_names;
};

/* What an append that is held back waits for. */
struct emit_pending {
	uint8_t *base;
	size_t used;
};

struct emit_live;
struct emit_request;

struct tickmap_emit {
	struct tickmap_emit_options options; /* .dir points to dir below */
	pthread_mutex_t lock;
	struct emit_request *_Atomic requests; /* newest first */
	/* Written under the lock, read as hints by who has not got it. */
	_Atomic uint32_t company; /* 0: no other thread came lately */
	_Atomic uint32_t writer;  /* the thread that last wrote for others */
	/* Written under the lock, once; read by anyone, relaxed: a stale 0
	 * only means that the lock is taken to find out. */
	_Atomic int status;
	_Atomic int os_errno;
	uint32_t state;
	uint32_t pid;
	uint64_t last_ns;
	uint64_t next_index;
	struct emit_file dump;
	struct emit_file map;
	struct emit_pending dump_pending;
	struct emit_pending map_pending;
	void *marker;
	void *region;
	const volatile uint32_t *alive; /* NULL: compare pids */
	uint8_t *buffer;
	/* Live code by address, no two overlapping. */
	struct emit_live **live;
	size_t live_count;
	size_t live_room;
	volatile bool live_changing;
	bool before_fork; /* the lock is held for it */
	const char *map_dir;
	char dir[EMIT_PATH_SIZE];
	char file_name[EMIT_NAME_SIZE];
};

/* emit.c */
bool tickmap_emit_is_forked(const struct tickmap_emit *emit);
int tickmap_emit_latch(struct tickmap_emit *emit, int status, int os_errno);
uint64_t tickmap_emit_now(struct tickmap_emit *emit);
/*
 * Copy a caller's versioned struct, whose first member is its size: at least
 * `least` (its first version), the rest 0; a later version is one of ours if
 * its tail says nothing.
 */
bool tickmap_emit_take_struct(void *ours, const void *theirs, size_t size,
			      size_t least);
void *tickmap_emit_allocate(const struct tickmap_emit *emit, size_t size);
void tickmap_emit_release(const struct tickmap_emit *emit, void *memory,
			  size_t size);

/* append.c: one whole append, or the batch that it joins; latches. */
int tickmap_emit_append(struct tickmap_emit *emit, struct emit_file *file,
			const struct iovec *iov, int count);
int tickmap_emit_append_out(struct tickmap_emit *emit, struct emit_file *file,
			    const struct emit_out *out);
int tickmap_emit_append_pending(struct tickmap_emit *emit);
struct emit_out tickmap_emit_empty_out(const struct tickmap_emit *emit);

/* write.c: to the files, under the lock, what fits one append of each; sets
 * the status of each and returns how many they were. */
#define EMIT_GROUP 8
size_t tickmap_emit_write_codes(struct tickmap_emit *emit,
				struct emit_code **codes, int *statuses,
				size_t count);

/* live.c, all under the lock */
bool tickmap_emit_remembers(const struct tickmap_emit *emit);
/* A copy that is not in the table yet; TICKMAP_EMIT_E_NOMEM, _E_TOO_LARGE. */
int tickmap_emit_live_new(struct tickmap_emit *emit,
			  const struct emit_code *code,
			  struct emit_live **ret_entry);
void tickmap_emit_live_insert(struct tickmap_emit *emit,
			      struct emit_live *entry);
void tickmap_emit_live_drop(struct tickmap_emit *emit, struct emit_live *entry);
void tickmap_emit_live_remove(struct tickmap_emit *emit, uint64_t addr);
int tickmap_emit_live_move(struct tickmap_emit *emit, uint64_t old_addr,
			   uint64_t new_addr, uint64_t index);
int tickmap_emit_live_publish(struct tickmap_emit *emit);
void tickmap_emit_live_clear(struct tickmap_emit *emit);

/* gdb.c */
struct emit_gdb; /* one registered function */
/* TICKMAP_EMIT_E_NOMEM, or _E_TOO_LARGE for the buffer. */
int tickmap_emit_gdb_new(const struct tickmap_emit *emit,
			 const struct emit_code *code,
			 struct emit_gdb **ret_gdb);
void tickmap_emit_gdb_register(struct emit_gdb *entry);
void tickmap_emit_gdb_drop(const struct tickmap_emit *emit,
			   struct emit_gdb *entry);
void tickmap_emit_gdb_after_fork(void);

/* gdb_elf.c: an ELF file with the symbol, lines and unwinding of a code. */
void tickmap_emit_gdb_elf(struct emit_out *out, const struct emit_code *code,
			  uint32_t elf_machine);

/* max_align_t, which C99 does not have. */
union emit_align {
	long double d;
	long long i;
	void *p;
};

enum emit_found {
	EMIT_FOUND_REPLACE, /* replace a stale file of ours */
	EMIT_FOUND_KEEP,    /* E_EXISTS if there is anything of ours */
};

/*
 * Create dir/name. *ret_held: it is there, and another writer of this process
 * holds it, or has written to it since the process started; the status is then
 * TICKMAP_EMIT_E_EXISTS.
 */
int tickmap_emit_file_create(struct emit_file *file, const char *dir,
			     const char *name, mode_t mode,
			     enum emit_found found, bool *ret_held);
/* Open dir/name, which another writer of this process holds, to append. */
int tickmap_emit_file_join(struct emit_file *file, const char *dir,
			   const char *name);
/* Create dir/tickmap-N/name for the first N where that is possible. */
int tickmap_emit_file_create_beside(struct emit_file *file, const char *dir,
				    const char *name, mode_t mode);
/* All or nothing: a piece that got through is cut off again. 0 or errno. */
int tickmap_emit_file_append(struct emit_file *file, const struct iovec *iov,
			     int count);
void tickmap_emit_file_close(struct emit_file *file);
/* Close, and remove it if we made it. */
void tickmap_emit_file_discard(struct emit_file *file);

/* The OS layer (linux.c, macos.c). */
uint64_t tickmap_emit_os_clock(void);
/* When this process started, exec or not, by the wall clock; 0: unknown. */
uint64_t tickmap_emit_os_started(void);
/* When a file was last written to, by the same clock. */
uint64_t tickmap_emit_os_written(const struct stat *st);
/* NULL in programs that run with more rights than their user has. */
const char *tickmap_emit_os_getenv(const char *name);
/* The calling thread's id in the process `pid`, which is the caller's. */
uint32_t tickmap_emit_os_tid(uint32_t pid);
void tickmap_emit_os_init_lock(pthread_mutex_t *lock);
/* A descriptor of a directory for openat and its kin, or -1. */
int tickmap_emit_os_open_dir(int at, const char *path, bool follow);
ssize_t tickmap_emit_os_writev(int fd, const struct iovec *iov, int count);
/* Does a descriptor of this process refer to the file? True when unknown. */
bool tickmap_emit_os_holds(uint64_t dev, uint64_t ino);
/* Do profilers here find a dump by its marker? */
bool tickmap_emit_os_has_marker(void);
/* The executable mapping by which profilers find the dump; NULL + errno. */
void *tickmap_emit_os_map_marker(int fd);
void tickmap_emit_os_unmap_marker(void *marker);
/*
 * `size` bytes whose first word reads 0 in a forked child if *ret_wiped, NULL
 * if there is no memory. buffer_at: where the bytes behind that word begin.
 */
void *tickmap_emit_os_map_region(size_t size, size_t *ret_buffer_at,
				 bool *ret_wiped);
void tickmap_emit_os_unmap_region(void *region, size_t size);

/* Ticks of a clock as nanoseconds: ticks * numer / denom, without overflow
 * before the result itself does. */
uint64_t tickmap_emit_scale_ticks(uint64_t ticks, uint32_t numer,
				  uint32_t denom);

/* EM_* of this process. */
uint32_t tickmap_emit_native_machine(void);
/* Let the processor's other thread run for a moment. */
void tickmap_emit_relax(void);

/* What unwind.c has to know of a machine. Registers by DWARF number. */
#define EMIT_SHAPE_RULES 8
struct emit_arch {
	uint32_t code_align;
	uint32_t fp;
	uint32_t sp;
	uint32_t ra;
	uint32_t entry_offset; /* CFA - sp where a call has just come in */
	uint32_t entry_ra;     /* CFA - where it has put the return address */
	bool can_sign;
	uint32_t flags; /* TICKMAP_UNWIND_* that a shape may have */
	/* The steps of a shape with a frame; 0: there is no such shape. */
	size_t (*shape)(const struct tickmap_unwind_shape *shape,
			struct tickmap_unwind_rule *rules);
};
extern const struct emit_arch tickmap_emit_arch_x86_64;
extern const struct emit_arch tickmap_emit_arch_aarch64;
extern const struct emit_arch tickmap_emit_arch_riscv64;

/* Assembles one CIE and one FDE into a struct tickmap_unwind. */
struct emit_frame {
	struct tickmap_unwind *unwind;
	struct emit_out out;
	size_t entry; /* where the CIE or FDE under construction starts */
	uint32_t code_align;
	uint32_t at; /* code offset of the row under construction */
};

void tickmap_emit_frame_cie(struct emit_frame *frame,
			    struct tickmap_unwind *unwind, uint32_t code_align,
			    int data_align, uint32_t return_register);
void tickmap_emit_frame_fde(struct emit_frame *frame);
int tickmap_emit_frame_end(struct emit_frame *frame);
/* The following rules hold from this code offset on. */
void tickmap_emit_frame_advance(struct emit_frame *frame, uint32_t to);
void tickmap_emit_frame_op(struct emit_frame *frame, uint8_t op);
void tickmap_emit_frame_uleb(struct emit_frame *frame, uint32_t value);

/* jitdump.c */
struct emit_stamp {
	uint64_t ns;
	uint32_t pid;
	uint32_t tid;
};

/* Returns TICKMAP_EMIT_E_ARGUMENT or _E_TOO_LARGE for a code that the format
 * cannot hold. */
int tickmap_emit_jitdump_check(const struct emit_code *code);
void tickmap_emit_jitdump_header(struct emit_out *out, uint32_t machine,
				 uint32_t pid, uint64_t ns);
/* All records of a code but the code bytes and the tail, which end its last. */
void tickmap_emit_jitdump_code(struct emit_out *out,
			       const struct emit_code *emit_code,
			       const struct emit_stamp *stamp);
void tickmap_emit_jitdump_move(struct emit_out *out, uint64_t old_addr,
			       uint64_t new_addr, uint64_t code_size,
			       uint64_t index, const struct emit_stamp *stamp);
void tickmap_emit_jitdump_close(struct emit_out *out, uint64_t ns);

/* cfi.c: TICKMAP_EMIT_E_ARGUMENT for bytes that cannot be passed on. */
int tickmap_emit_find_cfi(const struct tickmap_code *code,
			  struct emit_cfi *ret_cfi);
/* Fit a copy of cfi's bytes to a code that lies, rounded up to 8, before it. */
void tickmap_emit_fit_cfi(uint8_t *frame, const struct emit_cfi *cfi,
			  uint64_t code_size, uint64_t index);
void tickmap_emit_put_frame_hdr(struct emit_out *out,
				const struct emit_cfi *cfi, uint64_t code_size);

/* perfmap.c */
void tickmap_emit_perfmap_line(struct emit_out *out,
			       const struct tickmap_code *code);

#endif

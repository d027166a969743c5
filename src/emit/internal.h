/* SPDX-License-Identifier: MIT */
/*
 * What the files of the emit library share. Nothing here is exported.
 *
 * Layers: emit.c (handle, lock, latch) > jitdump.c, perfmap.c, out.c (bytes of
 * one record) > file.c (safe creation, whole appends) > linux.c (what differs
 * between operating systems). frame.c assembles call frame information from
 * the rules of unwind_ARCH.c.
 */
#ifndef TICKMAP_EMIT_INTERNAL_H
#define TICKMAP_EMIT_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <tickmap/emit.h>

/* One write may hold this much (Linux: MAX_RW_COUNT, 2 GiB less a page). */
#define EMIT_MAX_APPEND UINT64_C(0x7ffff000)

/* Everything of one append except the code itself is built in here. */
#define EMIT_BUFFER_SIZE ((size_t)4 << 20)

/* Paths with their NUL; PATH_MAX is not there in strict C. */
#define EMIT_PATH_SIZE 4096

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
	uint64_t size;	/* bytes that we know to be in it */
	uint64_t limit; /* RLIMIT_FSIZE when it was opened */
	char path[EMIT_PATH_SIZE];
};

enum emit_found {
	EMIT_FOUND_REPLACE, /* replace a stale file of ours */
	EMIT_FOUND_KEEP,    /* E_EXISTS if there is anything of ours */
};

/*
 * Create dir/name. *ret_held: it is there, and held open by another writer of
 * this process; the status is then TICKMAP_EMIT_E_EXISTS.
 */
int tickmap_emit_file_create(struct emit_file *file, const char *dir,
			     const char *name, enum emit_found found,
			     bool *ret_held);
/* Open dir/name, which another writer of this process holds, to append. */
int tickmap_emit_file_join(struct emit_file *file, const char *dir,
			   const char *name);
/* Create dir/tickmap-N/name for the first N where that is possible. */
int tickmap_emit_file_create_beside(struct emit_file *file, const char *dir,
				    const char *name);
/* All or nothing: a piece that got through is cut off again. 0 or errno. */
int tickmap_emit_file_append(struct emit_file *file, const struct iovec *iov,
			     int count);
void tickmap_emit_file_close(struct emit_file *file);
/* Close, and remove it if we made it. */
void tickmap_emit_file_discard(struct emit_file *file);

/* The OS layer (linux.c). */
uint64_t tickmap_emit_os_clock(void);
/* The calling thread's id in the process `pid`, which is the caller's. */
uint32_t tickmap_emit_os_tid(uint32_t pid);
void tickmap_emit_os_init_lock(pthread_mutex_t *lock);
/* A descriptor of a directory for openat and its kin, or -1. */
int tickmap_emit_os_open_dir(int at, const char *path, bool follow);
ssize_t tickmap_emit_os_writev(int fd, const struct iovec *iov, int count);
/* Does a descriptor of this process refer to the file? True when unknown. */
bool tickmap_emit_os_holds(uint64_t dev, uint64_t ino);
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

/* EM_* of this process (unwind_ARCH.c). */
uint32_t tickmap_emit_native_machine(void);

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
int tickmap_emit_jitdump_check(const struct tickmap_code *code);
void tickmap_emit_jitdump_header(struct emit_out *out, uint32_t machine,
				 uint32_t pid, uint64_t ns);
/* All records of a code but the code bytes, which end its last one. */
void tickmap_emit_jitdump_code(struct emit_out *out,
			       const struct tickmap_code *code,
			       size_t name_length, uint64_t index,
			       const struct emit_stamp *stamp);
void tickmap_emit_jitdump_move(struct emit_out *out, uint64_t old_addr,
			       uint64_t new_addr, uint64_t code_size,
			       uint64_t index, const struct emit_stamp *stamp);
void tickmap_emit_jitdump_close(struct emit_out *out, uint64_t ns);
uint64_t tickmap_emit_unwinding_size(const struct tickmap_unwind *unwind);

/* perfmap.c */
void tickmap_emit_perfmap_line(struct emit_out *out,
			       const struct tickmap_code *code,
			       size_t name_length);

#endif

/* SPDX-License-Identifier: MIT */
/* Recordings made up record by record, written by the real writer. */
#ifndef TESTS_PROFILE_RECORDING_H
#define TESTS_PROFILE_RECORDING_H

#include "capture/perfdata.h"
#include "profile/profile.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct recording {
	char dir[64];
	char path[96];
	struct tickmap_perfdata_writer *writer;
};

/* In a new folder. `clockid` -1: perf's own clock. */
void recording_open(struct recording *r, int clockid);
/* The same with an event that does not count time. */
void recording_open_faults(struct recording *r);
void recording_finish(struct recording *r);
/* Finishes if need be and loads; fails the test if that fails. */
struct tickmap_profile *
recording_load(struct recording *r,
	       const struct tickmap_profile_options *options);
/* Removes the folder. */
void recording_remove(struct recording *r);

/* The inode of every file that record_map maps. */
enum { RECORDING_INODE = 12345 };

void record_map(struct recording *r, uint64_t time_ns, uint32_t pid,
		uint64_t avma, uint64_t size, const char *path);
void record_map_of(struct recording *r, uint64_t time_ns, uint32_t pid,
		   uint64_t avma, uint64_t size, const char *path,
		   uint64_t inode);
void record_comm(struct recording *r, uint64_t time_ns, uint32_t pid,
		 uint32_t tid, const char *comm, bool exec);
void record_fork(struct recording *r, uint64_t time_ns, uint32_t pid,
		 uint32_t ppid);
void record_thread(struct recording *r, uint64_t time_ns, uint32_t pid,
		   uint32_t tid);
void record_exit(struct recording *r, uint64_t time_ns, uint32_t pid);
void record_lost(struct recording *r, uint64_t time_ns, uint64_t lost);
/* Leaf first, as the kernel gives them, context markers included. */
void record_chain(struct recording *r, uint64_t time_ns, uint32_t pid,
		  uint32_t tid, const uint64_t *chain, size_t count);
/* The user part of chains that end with -640 and this cookie. */
void record_deferred(struct recording *r, uint64_t time_ns, uint32_t pid,
		     uint32_t tid, uint64_t cookie, const uint64_t *chain,
		     size_t count);
void record_sample(struct recording *r, uint64_t time_ns, uint32_t pid,
		   uint64_t ip);
void record_note(struct recording *r, enum tickmap_note_kind kind, uint32_t pid,
		 uint32_t file_id, uint64_t time_ns, uint64_t value,
		 const void *bytes, size_t size);

/* A jitdump in memory. */
struct dump {
	uint8_t bytes[1 << 16];
	size_t size;
	uint64_t index;
};
void dump_begin(struct dump *dump, uint32_t pid, uint64_t flags);
void dump_load(struct dump *dump, uint64_t time_ns, uint32_t pid, uint64_t avma,
	       uint32_t size, const char *name);
void dump_move(struct dump *dump, uint64_t time_ns, uint32_t pid, uint64_t from,
	       uint64_t to, uint32_t size);

void write_file(const char *dir, const char *name, const void *bytes,
		size_t size);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Between the files that load a profile, in the order of their work:
 *
 *	load.c       one pass over the records: sideband, notes, samples
 *	processes.c  who was which pid when; each with its timeline
 *	codemaps.c   code maps, embedded or out of files, read
 *	mapfiles.c   where the code maps of a foreign recording lie
 *	mapfolder.c  what lies in a folder
 *	maplines.c   which lines of perf maps somebody asks about
 *	align.c      their stamps -> times of the recording
 *	publish.c    what they say into the timelines
 *	jitted.c     perf inject's images of functions, as code maps
 *	chains.c     samples as the file has them -> raw call chains
 *	unwinding.c  a second pass: recorded stacks -> raw call chains
 *	samples.c    samples in time order -> call stacks of frames
 *	frames.c     one address at one time -> frame
 *	inlined.c    the functions that were inlined there
 */
#ifndef TICKMAP_PROFILE_LOAD_H
#define TICKMAP_PROFILE_LOAD_H

#include "base/table.h"
#include "capture/perfdata.h"
#include "clock/clock.h"
#include "codemap/codemap.h"
#include "platform/platform.h"
#include "profile/profile.h"
#include "profile/stacks.h"
#include "symbolize/symbolize.h"
#include "timeline/timeline.h"

/*
 * Code is published a moment after it exists, and a sample may fall between:
 * such a sample still gets the name, and is counted in `early`.
 */
#define TICKMAP_SLACK_NS UINT64_C(1000000)

#define TICKMAP_NONE UINT32_MAX

#define TICKMAP_DSO_MASK ((UINT32_C(1) << 29) - 1)

/* Executable memory as the kernel told it. */
struct tickmap_loaded_map {
	uint64_t avma, size, file_offset;
	uint64_t inode; /* 0: not known */
	tickmap_str path;
	tickmap_str build_id; /* its bytes, where the record has them */
	uint32_t dso : 29;    /* of the symbolizer; 0: not asked yet */
	bool anonymous : 1;
	bool marker : 1; /* of a jitdump: names the dump, holds no code */
	bool jitted : 1; /* a function that perf inject made a file of */
	uint32_t code;	 /* of that file, if it is here, or TICKMAP_NONE */
};
_Static_assert(sizeof(struct tickmap_loaded_map) == 48,
	       "there may be millions");

/* A published function. */
struct tickmap_code {
	tickmap_str name, file;
	uint32_t line;
	uint32_t frame; /* or TICKMAP_NONE */
	uint32_t image; /* perf inject's ELF file of it, not yet read (an index
			   of `images`), or TICKMAP_NONE */
	/* .eh_frame for this function alone, eh_frame_gap behind its start; 0:
	 * none, or nobody has to unwind. */
	tickmap_str eh_frame;
	uint64_t eh_frame_gap;
};

enum tickmap_side_kind {
	TICKMAP_SIDE_MAP,
	TICKMAP_SIDE_COMM,
	TICKMAP_SIDE_FORK,
	TICKMAP_SIDE_EXIT,
};

/* A sideband event. `order` breaks ties of time: that of the file. */
struct tickmap_side {
	uint64_t time_ns; /* 0: was so before the recording began */
	uint32_t order;
	uint32_t pid, tid;
	uint32_t ppid, ptid; /* FORK */
	uint32_t map;	     /* MAP */
	tickmap_str comm;    /* COMM */
	uint8_t kind;	     /* enum tickmap_side_kind */
	bool exec;	     /* COMM; FORK: the child starts empty */
};

struct tickmap_raw_sample {
	uint64_t time_ns;
	uint64_t cpu_ns; /* the time that it stands for; 0: unknown */
	uint64_t avma;
	uint32_t order;
	uint32_t pid, tid, cpu;
	uint32_t stack;
	uint8_t truncated; /* enum tickmap_unwind_end */
	bool unwind;	   /* its stack's bytes are still to be walked */
};

/* The user part of some chains, told later: CALLCHAIN_DEFERRED. */
struct tickmap_deferred {
	uint64_t cookie;
	uint32_t tid;
	uint32_t sample; /* waits for it; or TICKMAP_NONE: is it */
	uint32_t stack;	 /* the user part */
};

/* One place of a chain, ready to be looked up. */
struct tickmap_link {
	uint64_t avma;
	bool kernel;
	bool caller; /* avma is a return address minus one */
};

/* A program in a process: what one exec started. */
struct tickmap_image {
	uint64_t since_ns;
	/* Its first executable anonymous mapping; UINT64_MAX: it has none. */
	uint64_t code_ns;
};

/* One life of a pid. A recording may tell of very many. */
struct tickmap_process {
	uint32_t pid;
	uint32_t older;	 /* the one before of the same pid, or none */
	uint32_t far;	 /* a far older one, or none */
	uint32_t age;	 /* how many are older */
	uint32_t parent; /* whose code it began with, or none */
	uint32_t epoch;
	uint64_t start_ns;		   /* 0: before the recording */
	uint64_t exit_ns;		   /* 0: not seen */
	struct tickmap_timeline *timeline; /* `nothing` until it has events */
	struct tickmap_image first;
	TICKMAP_VEC(struct tickmap_image) images; /* after it, by exec */
	/* Times at which an address may get another owner, sorted later. An
	 * epoch is what lies between two: see samples.c. */
	TICKMAP_VEC(uint64_t) changes;
	uint32_t change;
	uint8_t runtime;    /* the last one that it mapped; 0: none is known */
	bool published : 1; /* it or an ancestor published code */
	bool silent : 1;    /* sampled in generated code, and published none */
	bool marked : 1;    /* a jitdump of it is known */
	bool looked : 1; /* its code maps and its ancestors' were looked for */
	bool pid_looked : 1; /* those of its pid were; known of the newest */
};

/* One of a perf map. */
struct tickmap_map_line {
	uint64_t avma;
	uint32_t size; /* 0: left out */
	tickmap_str name;
};

/* Lines that came together. */
struct tickmap_map_chunk {
	uint64_t when; /* 0: not seen */
	size_t first_line;
};

/* A code map: one file's worth of events. */
struct tickmap_source {
	bool perf_map;
	bool embedded;
	uint32_t pid; /* the process that it belongs to */
	uint32_t file_id;
	uint64_t known_ns; /* a time at which it belonged to that process */
	tickmap_str path;
	tickmap_str marker; /* as mapped by the process; 0: not by a marker */
	struct tickmap_jitdump *dump; /* while it is read */
	struct tickmap_perfmap *map;
	uint64_t chunk_ns; /* of the chunk being read */
	uint32_t header_pid;
	uint64_t header_stamp;
	bool arch_clock;
	bool dead; /* not what its name says: no more is read */
	struct tickmap_feeding *feeding;
	uint64_t first_ns, last_ns; /* oldest and newest stamp */
	uint64_t marker_ns;	    /* when it was mapped; 0: not seen */
	uint32_t process;	    /* of its pid, or TICKMAP_NONE */
	uint64_t image_ns;	    /* when that one's program began, */
	uint64_t code_ns;	    /* and first had memory for code */
	struct tickmap_alignment *alignment;
	bool timeless; /* its stamps say nothing: the order of records does */
	bool moves;    /* it has MOVE records */
	struct tickmap_table said; /* while it is read: by other dumps */
	/* A perf map's. */
	TICKMAP_VEC(struct tickmap_map_line) lines;
	TICKMAP_VEC(struct tickmap_map_chunk) chunks;
	bool any_line;
	bool asked_only; /* others are left out while it is read */
};

struct tickmap_code_record {
	uint64_t when; /* as stamped */
	uint64_t chunk_ns;
	uint64_t earliest, latest; /* when it happened, on our clock */
	uint64_t avma, size, old_avma;
	uint64_t index; /* the producer's number of the code */
	uint32_t source;
	uint32_t code; /* index or TICKMAP_NONE */
	uint32_t pid;
	uint8_t kind; /* enum tickmap_code_kind */
};

struct tickmap_oddity {
	tickmap_str id, what;
	uint64_t count;
	tickmap_str path;
	uint64_t offset;
};

/* Functions inlined at one address, outermost first: chain_frames[first ...].
 * Chain n is chains[n - 1]. */
struct tickmap_chain {
	uint32_t first, count;
};

struct tickmap_loader {
	const struct tickmap_profile_options *options;
	const char *path;
	struct tickmap_perfdata *data;
	struct tickmap_profile *profile;
	struct tickmap_symbolizer *symbolizer;
	bool no_memory; /* latched by callbacks that cannot return it */

	TICKMAP_VEC(struct tickmap_side) side;
	TICKMAP_VEC(struct tickmap_loaded_map) maps;
	TICKMAP_VEC(struct tickmap_raw_sample) raw;
	TICKMAP_VEC(struct tickmap_link) links; /* of the sample at hand */
	struct tickmap_stacks stacks;
	uint32_t order;
	uint8_t next_truncated; /* a note about the next sample */
	bool ours;		/* a note of ours was seen: chains are marked */
	bool timeless;		/* records carry no time */
	bool dwarf_stacks;	/* user stacks wait for an unwinder */
	bool unwindable;	/* and are of this machine's kind */
	TICKMAP_VEC(struct tickmap_deferred) deferred;
	TICKMAP_VEC(tickmap_str) images; /* paths of perf inject's files */
	uint64_t first_ns, last_ns;
	const struct tickmap_perfdata_attr *main_attr;
	bool same_boot; /* recorded since this machine was last started */
	enum tickmap_clock clock;	       /* of the samples */
	struct tickmap_clock_conversion ticks; /* mult 0: unknown */

	TICKMAP_VEC(struct tickmap_process) processes;
	struct tickmap_table process_of_pid; /* pid -> newest index + 1 */
	/* Of what the recording says about processes, only these matter: that
	 * were sampled or published code, and those they were forked from. */
	struct tickmap_table wanted_pids;
	/* By the lowest bits of a pid: one that ends so was mentioned. */
	uint64_t *mentioned_pids;
	/* What a sampled process is that the recording never mentions. */
	struct tickmap_process stranger;
	struct tickmap_timeline *nothing; /* sealed */
	struct tickmap_table no_program;  /* path -> 1, or 2: it is one */

	TICKMAP_VEC(struct tickmap_code) codes;
	TICKMAP_VEC(struct tickmap_code_record) code_records;
	TICKMAP_VEC(struct tickmap_source) sources;
	/* All user addresses of samples, in order; see maplines.c. */
	TICKMAP_VEC(uint64_t) asked;
	struct tickmap_table source_of_note; /* pid << 32 | file_id -> +1 */
	TICKMAP_VEC(struct tickmap_oddity) oddities;

	struct tickmap_table frame_of_kernel; /* avma -> frame */
	size_t unnamed_places; /* that have a name made of their address */
	/* dso << 48 | offset -> chain << 32 | frame + 1 */
	struct tickmap_table frame_of_file;
	TICKMAP_VEC(struct tickmap_chain) chains;
	TICKMAP_VEC(uint32_t) chain_frames;
	uint32_t chain; /* of the frame that was looked up last; 0: none */
	TICKMAP_VEC(uint8_t) dso_unnamed; /* by dso: a frame had no name */
};

/* processes.c: all return false (or TICKMAP_NONE) without memory. */
bool tickmap_profile_processes_build(struct tickmap_loader *loader);
/* The process that had the pid at that time, or its first later one; made if
 * the recording never mentioned it. */
uint32_t tickmap_profile_process_at(struct tickmap_loader *loader, uint32_t pid,
				    uint64_t time_ns);
/* TICKMAP_NONE if the recording never mentioned it, or none of its samples. */
uint32_t tickmap_profile_process_known(const struct tickmap_loader *loader,
				       uint32_t pid, uint64_t time_ns);
/* The same for its samples: what is not known is the stranger. */
struct tickmap_process *
tickmap_profile_process_sampled(struct tickmap_loader *loader, uint32_t pid,
				uint64_t time_ns);
/* False: no record of the recording is of it. */
bool tickmap_profile_pid_mentioned(const struct tickmap_loader *loader,
				   uint32_t pid);
/* Where its events go; NULL: no memory. */
struct tickmap_timeline *
tickmap_profile_process_timeline(struct tickmap_loader *loader,
				 struct tickmap_process *process);
/* When the last program of it began that could have generated code. */
uint64_t tickmap_profile_process_code_ns(const struct tickmap_process *process);
/* The program that ran in it at that time; the first one, if none did yet. */
const struct tickmap_image *
tickmap_profile_image_at(const struct tickmap_process *process,
			 uint64_t time_ns);
/* The next program, behind that time; or NULL. */
const struct tickmap_image *
tickmap_profile_image_after(const struct tickmap_process *process,
			    uint64_t time_ns);
/* Addresses may have other owners from that time on. */
bool tickmap_profile_process_changed(struct tickmap_process *process,
				     uint64_t when);
/* Before more is published, or for the last time. */
bool tickmap_profile_processes_seal(struct tickmap_loader *loader, bool last);
void tickmap_profile_processes_free(struct tickmap_loader *loader);
bool tickmap_map_is_anonymous(const char *path);
/* Opens it. */
bool tickmap_map_is_no_program(const char *path);

/* codemaps.c */
bool tickmap_codemaps_note(struct tickmap_loader *loader,
			   const struct tickmap_note *note);
/* Reads an opened file to its end. */
bool tickmap_codemaps_file(struct tickmap_loader *loader, int fd,
			   const char *path, uint32_t pid, uint64_t known_ns,
			   bool perf_map);
/* No more input. */
void tickmap_codemaps_end(struct tickmap_loader *loader);
bool tickmap_codemaps_finding(struct tickmap_loader *loader, const char *id,
			      const char *what, tickmap_str path,
			      uint64_t offset);
bool tickmap_codemaps_write_findings(struct tickmap_loader *loader);
void tickmap_codemaps_free(struct tickmap_loader *loader);

/* align.c: fills in when each code record happened. Behind the end of all
 * reading, before the publishing. */
bool tickmap_codemaps_align(struct tickmap_loader *loader);
bool tickmap_align_read_conversion(struct tickmap_loader *loader,
				   struct tickmap_bytes body);

/* publish.c: everything read goes to the timelines. */
bool tickmap_codemaps_publish(struct tickmap_loader *loader);

/* mapfiles.c */
bool tickmap_mapfiles_find(struct tickmap_loader *loader);

/* maplines.c */
/* All samples are known, and a perf map's file is going to be read. */
bool tickmap_maplines_begin(struct tickmap_loader *loader,
			    struct tickmap_source *source);
bool tickmap_maplines_add(struct tickmap_loader *loader,
			  struct tickmap_source *source,
			  const struct tickmap_code_event *event);
/* Of lines that count from one time on, those stay that a sample can hit; the
 * others get size 0. */
bool tickmap_maplines_choose(struct tickmap_loader *loader,
			     struct tickmap_map_line *lines, size_t count);

/* boot.c */
bool tickmap_boot_is_ours(const struct tickmap_loader *loader);

/* jitted.c */
bool tickmap_jitted_find(struct tickmap_loader *loader);
/* Name and unwind table out of the code's image. */
void tickmap_jitted_read(struct tickmap_loader *loader,
			 struct tickmap_code *code);
bool tickmap_map_is_jitted(const char *path);
/* The process has such images, and all of them are here. */
bool tickmap_jitted_complete(const struct tickmap_loader *loader, uint32_t pid);

/* chains.c */
bool tickmap_chains_deferred(struct tickmap_loader *loader,
			     const struct tickmap_perfdata_record *record);
/* Joins what was told later. */
bool tickmap_chains_end(struct tickmap_loader *loader);
/* A stack of the kernel part of `kernel` (a stack) on these user frames. */
uint32_t tickmap_chains_join(struct tickmap_loader *loader, uint32_t pid,
			     struct tickmap_link *user, size_t count,
			     uint32_t kernel);

/* unwinding.c */
bool tickmap_unwinding_run(struct tickmap_loader *loader);

/* samples.c */
bool tickmap_samples_add(struct tickmap_loader *loader,
			 const struct tickmap_perfdata_record *record,
			 const struct tickmap_sample *sample);
bool tickmap_samples_resolve(struct tickmap_loader *loader);
/* A return address that may be the first byte of code: both that byte and the
 * one before it are asked about. */
bool tickmap_samples_may_be_entry(const struct tickmap_loader *loader,
				  const struct tickmap_stack *s);

/* frames.c: TICKMAP_NONE without memory. */
/* The symbolizer's number of the mapped file. */
uint32_t tickmap_frames_dso(struct tickmap_loader *loader, uint64_t map);
/* Fills what other dumps of the process have said. False: out of memory. */
bool tickmap_copies_begin(struct tickmap_loader *loader,
			  struct tickmap_source *source);
bool tickmap_copies_said(struct tickmap_loader *loader,
			 const struct tickmap_source *source,
			 const struct tickmap_code_event *event);

uint32_t tickmap_frames_kernel(struct tickmap_loader *loader, uint64_t avma);
uint32_t tickmap_frames_user(struct tickmap_loader *loader,
			     struct tickmap_process *process, uint64_t avma,
			     uint64_t time_ns,
			     const struct tickmap_owner *owner);
/* inlined.c: what is inlined into the frame at svma, and where the frame's own
 * function is declared. False: no memory. */
bool tickmap_inlined_find(struct tickmap_loader *loader, uint32_t dso,
			  uint64_t svma, struct tickmap_frame *frame,
			  uint32_t *ret_chain);
/* From the chain's first node in, and back. */
uint32_t tickmap_inlined_nodes(struct tickmap_loader *loader, uint32_t node,
			       uint32_t chain);
uint32_t tickmap_inlined_outer(const struct tickmap_loader *loader,
			       uint32_t node, uint32_t chain);

bool tickmap_frames_write_hints(struct tickmap_loader *loader);

/* runtimes.c: what to type so that generated code has names. */
/* The number of the runtime that a mapped file tells of; 0: none. */
uint8_t tickmap_runtime_of(const char *path);
bool tickmap_runtimes_write_hints(struct tickmap_loader *loader);
bool tickmap_frames_is_interpreter(const char *dso_path);

#endif

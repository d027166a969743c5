/* SPDX-License-Identifier: MIT */
/*
 * perf.data, read and written. A recording of ours is a plain one whose samples
 * carry their callchain; what perf has no record for travels in records of the
 * type that perf reserves and ignores (65, once HEADER_EVENT_TYPE), each with
 * the payload described at TICKMAP_NOTE_MAGIC.
 */
#ifndef TICKMAP_CAPTURE_PERFDATA_H
#define TICKMAP_CAPTURE_PERFDATA_H

#include "base/error.h"
#include "capture/sample.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- Our own payload in records of type TICKMAP_RECORD_NOTE ---- */

enum { TICKMAP_RECORD_NOTE = 65, TICKMAP_RECORD_TIME_CONV = 79 };

/* Types below are the kernel's, with a trailer; others are of user space. */
enum { TICKMAP_RECORD_USER_FIRST = 64 };
#define TICKMAP_NOTE_MAGIC UINT32_C(0x706d6b74) /* "tkmp" */

enum tickmap_note_kind {
	/*
	 * The next `size` bytes of a code map file as it grew. A file is
	 * (pid, file_id); its chunks come in file order without gaps.
	 */
	TICKMAP_NOTE_JITDUMP = 1,
	TICKMAP_NOTE_PERF_MAP = 2,
	/* The next sample record's chain is incomplete: value is the reason,
	 * an enum tickmap_unwind_end. */
	TICKMAP_NOTE_TRUNCATED = 3,
	/* One fact of the whole recording as "key=value" text. */
	TICKMAP_NOTE_FACT = 4,
	/* A file that chunks belong to: bytes are its path. */
	TICKMAP_NOTE_CODE_MAP_PATH = 5,
	/*
	 * Names of sampled native functions, so that the file alone names
	 * them elsewhere: value is the number of entries, bytes are the DSO's
	 * path and a NUL, time_ns its inode (0: none), then per entry u64 svma,
	 * u64 size and the raw symbol name with its NUL. DSO
	 * "[kernel.kallsyms]": svma is the address.
	 */
	TICKMAP_NOTE_SYMBOLS = 6,
	/*
	 * Where bytes of a sampled file lie, for the machine that lacks it:
	 * bytes are the DSO's path and a NUL, time_ns its inode, then u64 file
	 * offset, u64 size,
	 * u64 svma.
	 */
	TICKMAP_NOTE_SEGMENT = 7,
};

/*
 * Fixed part of the payload behind the 8-byte event header (all little
 * endian): magic u32, kind u32, pid u32, file_id u32, time_ns u64, value u64,
 * size u32, zero u32; then `size` bytes, then zeros up to a multiple of 8 and
 * to a record of at least 80 bytes, as newer perfs want of this type. time_ns:
 * for chunks of code maps the time (CLOCK_MONOTONIC) at which the chunk's file
 * was last seen *without* these bytes: nothing in them is older.
 */
struct tickmap_note {
	enum tickmap_note_kind kind;
	uint32_t pid;
	uint32_t file_id;
	uint64_t time_ns;
	uint64_t value;
	const uint8_t *bytes;
	size_t size;
};
enum { TICKMAP_NOTE_BYTES_MAX = 60000 }; /* a writer splits longer ones */

/* ---- Writing ---- */

struct tickmap_perfdata_writer;

struct tickmap_perfdata_event {
	const struct perf_event_attr *attr; /* as the samples are laid out */
	const char *name;		    /* "cycles", "cpu-clock:u" */
};

/*
 * Starts a file at `path` (created 0600; whatever is there must have been moved
 * away, else TICKMAP_E_OS with EEXIST). The header says "unfinished" until
 * _finish. Records are compressed with zstd (level 0: stored plain).
 */
int tickmap_perfdata_create(const char *path,
			    const struct tickmap_perfdata_event *event,
			    int zstd_level,
			    struct tickmap_perfdata_writer **ret_writer,
			    struct tickmap_error *err);

/* Appends one record: header and body, size a multiple of 8, < 64 KiB. */
int tickmap_perfdata_write(struct tickmap_perfdata_writer *writer,
			   const void *record, size_t size,
			   struct tickmap_error *err);

/* Appends our payload; longer bytes of chunks become several records. */
int tickmap_perfdata_write_note(struct tickmap_perfdata_writer *writer,
				const struct tickmap_note *note,
				struct tickmap_error *err);

/*
 * Ends a round: everything written so far can be decompressed by a reader even
 * if nothing follows, and is handed to the kernel.
 */
int tickmap_perfdata_round(struct tickmap_perfdata_writer *writer,
			   struct tickmap_error *err);

struct tickmap_perfdata_build_id {
	const char *path;
	uint8_t id[20];
	size_t id_size;
	bool kernel;
};

struct tickmap_perfdata_facts {
	const char *const *command; /* argv of `tickmap record`, for CMDLINE */
	size_t command_count;
	const char *version; /* "tickmap 0.1" */
	uint64_t first_sample_ns, last_sample_ns;
	const struct tickmap_perfdata_build_id *build_ids;
	size_t build_id_count;
};

/*
 * Writes the feature sections (HOSTNAME, OSRELEASE, VERSION, ARCH, NRCPUS,
 * CPUDESC, CMDLINE, EVENT_DESC, SAMPLE_TIME, CLOCKID, CLOCK_DATA, BUILD_ID,
 * COMPRESSED, as far as known), completes the header and closes. Also on
 * failure the writer is gone.
 */
int tickmap_perfdata_finish(struct tickmap_perfdata_writer *writer,
			    const struct tickmap_perfdata_facts *facts,
			    struct tickmap_error *err);

/* Bytes in the file so far. */
uint64_t tickmap_perfdata_bytes(const struct tickmap_perfdata_writer *writer);

/* ---- Reading ---- */

struct tickmap_perfdata;

struct tickmap_perfdata_attr {
	uint32_t type;
	uint64_t config;
	uint64_t flags; /* the attr's bit-field word */
	uint64_t sample_freq_or_period;
	bool use_clockid;
	int32_t clockid;
	bool freq;
	struct tickmap_sample_layout layout;
	char name[64]; /* of EVENT_DESC or made from type and config */
	/* Samples count time or cycles (cycles, cpu-clock, task-clock...). */
	bool counts_time;
};

/*
 * Any recording: a file with a header or as perf writes it to a pipe, a
 * directory (perf record --threads), finished or not, compressed or not, either
 * byte order. "-" is standard input. What is no regular file is first copied to
 * an unnamed file in $TMPDIR (or /tmp).
 */
int tickmap_perfdata_open(const char *path, struct tickmap_perfdata **ret_data,
			  struct tickmap_error *err);
void tickmap_perfdata_close(struct tickmap_perfdata *data);

/* A regular file with all that comes out of `fd` from here on, at its start;
 * gone with the last descriptor. */
int tickmap_perfdata_spool(int fd, int *ret_fd, struct tickmap_error *err);

/* The first record is the next one again. */
void tickmap_perfdata_rewind(struct tickmap_perfdata *data);

/* CLOCK_DATA: what two clocks said at one moment. */
struct tickmap_perfdata_clock {
	int32_t clockid;
	uint64_t wall_ns; /* CLOCK_REALTIME */
	uint64_t clock_ns;
};
bool tickmap_perfdata_clock(const struct tickmap_perfdata *data,
			    struct tickmap_perfdata_clock *ret_clock);

size_t tickmap_perfdata_attr_count(const struct tickmap_perfdata *data);
const struct tickmap_perfdata_attr *
tickmap_perfdata_attr_at(const struct tickmap_perfdata *data, size_t index);

/* Text of a string feature (HOSTNAME, ...) or NULL; borrowed. */
const char *tickmap_perfdata_feature_text(const struct tickmap_perfdata *data,
					  unsigned feature);
/* Build id of a path from BUILD_ID; returns its size, 0 if it is unknown or if
 * two builds stand under the path. */
size_t tickmap_perfdata_build_id_of(const struct tickmap_perfdata *data,
				    const char *path, uint8_t ret_id[20]);
bool tickmap_perfdata_is_finished(const struct tickmap_perfdata *data);

/* Bytes that no record could be made of, so far. */
uint64_t tickmap_perfdata_skipped(const struct tickmap_perfdata *data);

/* One record, in file order. Borrowed until the next call. */
struct tickmap_perfdata_record {
	uint32_t type;
	uint16_t misc;
	const char *file;     /* that it lies in */
	uint64_t offset;      /* in the file (of the compressed record it was
				 in) */
	const uint8_t *bytes; /* whole record */
	size_t size;
	bool swap;
	const struct tickmap_perfdata_attr *attr; /* never NULL */
	struct tickmap_sample_id id; /* trailer, or the sample's own fields */
};

/*
 * 1: *ret_record is the next one; 0: the end; negative: the end, but something
 * could not be read, and *err is the first of it. After damage reading goes on
 * at the next bytes that look like records. An unfinished file ends quietly
 * behind its last whole record.
 */
int tickmap_perfdata_next(struct tickmap_perfdata *data,
			  struct tickmap_perfdata_record *ret_record,
			  struct tickmap_error *err);

/* Decodes a TICKMAP_RECORD_NOTE; TICKMAP_E_NOT_FOUND if it is not ours. */
int tickmap_note_decode(const struct tickmap_perfdata_record *record,
			struct tickmap_note *ret_note);

#endif

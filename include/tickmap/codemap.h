/* SPDX-License-Identifier: MIT */
/*
 * Code maps: jitdump and perf map files in, uniform events out.
 *
 *	static void saw(void *context, const struct tickmap_code_event *event)
 *	{
 *		printf("%.*s\n", (int)event->name_length, event->name);
 *	}
 *	...
 *	struct tickmap_code_handler handler = { .code = saw };
 *	struct tickmap_jitdump *dump = tickmap_jitdump_new(&handler);
 *
 *	while ((n = read(fd, block, sizeof(block))) > 0)
 *		tickmap_jitdump_feed(dump, block, n);
 *	tickmap_jitdump_end(dump);
 *	tickmap_jitdump_free(dump);
 *
 * Both readers are fed with chunks of a file that may still grow; what is not
 * complete yet waits. The events are the same whatever the chunks. Oddities are
 * findings, never failures: reading goes on with all that can be kept, and
 * behind a damaged record at the next one that makes sense.
 *
 * Memory: a reader keeps the record (or line) at hand, and 8 bytes for each
 * function so that repetitions are found; never more than four times what it
 * was fed and a constant.
 *
 * Threads: a reader belongs to one thread at a time; different readers are
 * independent. Nothing here prints, exits or calls the system except for
 * memory. All numbers are in the host's byte order, sizes in bytes.
 */
#ifndef TICKMAP_CODEMAP_H
#define TICKMAP_CODEMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Lines ---- */

/* The line entries of one function, walked by tickmap_code_lines_next. */
struct tickmap_code_lines {
	uint64_t count; /* entries; 0: none are known */
	/* Private. */
	const uint8_t *at, *end;
	const char *last_file;
	size_t last_file_length;
	uint32_t first, stride; /* of damaged entries: how far apart */
	bool swap, narrow, nameless;
};

struct tickmap_code_line {
	uint64_t avma;	  /* from here on; may lie before or behind the code */
	uint32_t line;	  /* 0: none */
	uint32_t column;  /* or the discriminator: producers differ */
	const char *file; /* raw bytes, not terminated; NULL: damaged */
	size_t file_length;
};

/* False behind the last entry, or where the rest is damaged. */
bool tickmap_code_lines_next(struct tickmap_code_lines *lines,
			     struct tickmap_code_line *ret_line);

/* ---- Events ---- */

enum tickmap_code_kind {
	TICKMAP_CODE_LOAD,
	TICKMAP_CODE_MOVE,
	TICKMAP_CODE_CLOSE,
};

/* Everything is borrowed until the handler returns. */
struct tickmap_code_event {
	enum tickmap_code_kind kind;
	uint64_t when;	   /* as stamped by the producer; perf maps: when fed */
	uint32_t pid, tid; /* as the producer wrote them; 0 for perf maps */
	uint64_t avma, size; /* avma + size does not exceed 2^64 */
	uint64_t old_avma;   /* MOVE */
	uint64_t code_index;
	const char *name; /* raw bytes */
	size_t name_length;
	const char *file; /* of the first line entry; NULL: unknown */
	size_t file_length;
	uint32_t line; /* of the first line entry; 0: unknown */
	struct tickmap_code_lines lines;
	/* .eh_frame for this function alone, as if it lay mapped directly
	 * behind the code: avma + align8(size). NULL: none. */
	const uint8_t *eh_frame;
	size_t eh_frame_size;
	/* .eh_frame_hdr; NULL with eh_frame: the producer wrote none that
	 * belongs to these bytes. Alone: use the frame pointer. */
	const uint8_t *eh_frame_hdr;
	size_t eh_frame_hdr_size;
	uint64_t mapped_size; /* of both in memory, as the producer says */
	const uint8_t *code;  /* NULL: not published, or not whole */
	size_t code_there; /* bytes at `code_begin` of code that is not whole */
	const uint8_t *code_begin;
	uint64_t offset; /* of the record in its file */
};

/* ---- Records: what the file holds, for those who show or repair it ---- */

/* Numbers as in a jitdump; others are of a later format. */
enum {
	TICKMAP_RECORD_LOAD,
	TICKMAP_RECORD_MOVE,
	TICKMAP_RECORD_DEBUG_INFO,
	TICKMAP_RECORD_CLOSE,
	TICKMAP_RECORD_UNWINDING_INFO,
};

/* Fields that a kind does not have are 0. Borrowed until the handler returns.
 */
struct tickmap_codemap_record {
	uint32_t id;
	uint64_t offset, size; /* in the file */
	bool cut;	       /* the file ends within it */
	uint64_t when;
	uint32_t pid, tid;
	uint64_t avma, old_avma, code_size, code_index;
	const char *name;
	size_t name_length;
	uint64_t entry_count; /* as stated */
	struct tickmap_code_lines lines;
	uint64_t unwinding_size, eh_frame_hdr_size, mapped_size;
};

/* ---- Findings ---- */

enum tickmap_severity {
	TICKMAP_INFO,	 /* readers cope; nobody loses anything */
	TICKMAP_WARNING, /* some tools lose names, lines or times by it */
	TICKMAP_ERROR,	 /* something was lost, or nearly every tool fails */
};

/* What can be found. Ids (JD...: jitdump, PM...: perf map) never change their
 * meaning; docs/findings.md says more of each. All text is static. */
struct tickmap_finding_kind {
	const char *id;
	enum tickmap_severity severity;
	const char *what;  /* what it is */
	const char *value; /* what the number that goes with it is */
	const char *why;   /* one line: why it matters */
};

/* A place where a file has it. */
struct tickmap_finding {
	const struct tickmap_finding_kind *kind;
	const char *id, *what; /* of its kind */
	uint64_t offset;       /* in the file */
	uint64_t value;	       /* kind->value says what */
	bool error;	       /* its severity is TICKMAP_ERROR */
};

/* All kinds, in the order of their ids. */
const struct tickmap_finding_kind *tickmap_codemap_findings(size_t *ret_count);

/* Members may be NULL. */
struct tickmap_code_handler {
	void *context;
	void (*code)(void *context, const struct tickmap_code_event *event);
	void (*finding)(void *context, const struct tickmap_finding *finding);
	/* Before the event that it makes, if any. */
	void (*record)(void *context,
		       const struct tickmap_codemap_record *record);
};

/* ---- jitdump ---- */

struct tickmap_jitdump_header {
	uint32_t version, size, elf_machine, pid;
	uint64_t timestamp, flags;
	bool swap; /* written in the other byte order */
};

struct tickmap_jitdump_counts {
	uint64_t records, loads;
	uint64_t skipped_bytes; /* in no record */
	uint64_t damages;	/* places where reading was resumed */
	uint64_t recovered;	/* LOADs behind the first of them */
};

/* The handler is copied. NULL: out of memory. */
struct tickmap_jitdump;
struct tickmap_jitdump *
tickmap_jitdump_new(const struct tickmap_code_handler *handler);
void tickmap_jitdump_free(struct tickmap_jitdump *dump);
/* Feed the next bytes of the file. False: out of memory, or no jitdump. */
bool tickmap_jitdump_feed(struct tickmap_jitdump *dump, const void *bytes,
			  size_t size);
/* No more bytes: what is left over becomes a finding. */
void tickmap_jitdump_end(struct tickmap_jitdump *dump);
/* NULL until the header was seen. */
const struct tickmap_jitdump_header *
tickmap_jitdump_header(const struct tickmap_jitdump *dump);
struct tickmap_jitdump_counts
tickmap_jitdump_counts(const struct tickmap_jitdump *dump);
/* By how much all line addresses are too high, as far as was seen: V8 and LLVM
 * add the size of an ELF header. The lines of events and records are as the
 * file has them. */
uint64_t tickmap_jitdump_line_bias(const struct tickmap_jitdump *dump);

/* Does a file that begins like this look like a jitdump? Four bytes do. */
bool tickmap_jitdump_is(const void *bytes, size_t size);

/* ---- perf map ---- */

/*
 * Lines are START SIZE NAME in hex. Kept out: size 0, and what is no entry.
 * Later entries win over earlier ones that they overlap: that is up to whoever
 * takes the events.
 */
struct tickmap_perfmap;
struct tickmap_perfmap *
tickmap_perfmap_new(const struct tickmap_code_handler *handler);
void tickmap_perfmap_free(struct tickmap_perfmap *map);
/* `when`: the time that the events of these bytes get. False: out of memory. */
bool tickmap_perfmap_feed(struct tickmap_perfmap *map, const void *bytes,
			  size_t size, uint64_t when);
void tickmap_perfmap_end(struct tickmap_perfmap *map, uint64_t when);

/* ---- Repair ---- */

enum tickmap_repair_status {
	TICKMAP_REPAIR_DONE = 0,
	TICKMAP_REPAIR_NO_MEMORY = -1,
	TICKMAP_REPAIR_NOT_WRITTEN = -2, /* the sink returned false */
	TICKMAP_REPAIR_NOT_A_MAP = -4,	 /* nothing in it can be read */
};

struct tickmap_repair_counts {
	uint64_t functions, moves, entries; /* written */
	uint64_t sorted;	/* records that were not in the order of time */
	uint64_t renumbered;	/* functions whose code_index was taken */
	uint64_t repeated;	/* left out: the same record once more */
	uint64_t empty;		/* without code: a LOAD got a byte, no MOVE */
	uint64_t filled;	/* bytes of code that were missing: zeros */
	uint64_t unknown;	/* left out: records of a later format */
	uint64_t skipped_bytes; /* left out: in no record */
};

/* Gets the repaired file, piece by piece. False: stop. */
typedef bool (*tickmap_repair_sink)(void *context, const void *bytes,
				    size_t size);

/*
 * A correct jitdump from a damaged one, with all that can be recovered: header,
 * order of time, unique code indexes, names, lines, unwinding data in the order
 * that perf reads, one CLOSE at the end. Repairing the result changes nothing.
 * `elf_machine` goes into a header that has none (EM_..., 0: keep 0).
 * `ret_counts` may be NULL.
 */
enum tickmap_repair_status
tickmap_jitdump_repair(const void *bytes, size_t size, uint32_t elf_machine,
		       tickmap_repair_sink sink, void *context,
		       struct tickmap_repair_counts *ret_counts);

/* A perf map in its plainest form: entries only, numbers without 0x, one blank,
 * one newline. */
enum tickmap_repair_status
tickmap_perfmap_repair(const void *bytes, size_t size, tickmap_repair_sink sink,
		       void *context, struct tickmap_repair_counts *ret_counts);

#ifdef __cplusplus
}
#endif

#endif

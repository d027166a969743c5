/* SPDX-License-Identifier: MIT */
/*
 * Code maps: jitdump and perf map files in, uniform events out. Both readers
 * are fed with chunks of a growing file; what is not complete yet waits.
 * Oddities are findings, never failures: reading goes on with all that can be
 * kept, and after a damaged record at the next one that makes sense.
 */
#ifndef TICKMAP_CODEMAP_CODEMAP_H
#define TICKMAP_CODEMAP_CODEMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
	uint64_t avma, size;
	uint64_t old_avma; /* MOVE */
	uint64_t code_index;
	const char *name; /* raw bytes */
	size_t name_length;
	const char *file; /* of the first line entry; NULL: unknown */
	size_t file_length;
	uint32_t line; /* of the first line entry; 0: unknown */
	/* .eh_frame for this function alone, as if it lay mapped directly
	 * behind the code: avma + align8(size). NULL: none. */
	const uint8_t *eh_frame;
	size_t eh_frame_size;
	const uint8_t *code; /* NULL: not published */
	uint64_t offset;     /* of the record in its file */
};

/*
 * A tolerated oddity. Ids are stable; `!`: always an error. What `value` is:
 *
 * JD001! no jitdump: the magic number    JD002! too short: bytes there
 * JD003 version                          JD004 header size
 * JD005 no ELF machine                   JD006 reserved header field
 * JD007 unknown header flags
 * JD010! no record there: bytes skipped  JD011! record runs into the next one:
 * JD012! last record is cut: bytes there        bytes of it that are there
 * JD013 unknown type of record: its id
 * JD020 64-bit thread ids: size of a LOAD's fixed part
 * JD021! code_size exceeds the record    JD022 name without NUL: its length
 * JD023 bytes between name and code      JD024 code bytes left out
 * JD025 code of size 0                   JD026 sign-extended 32-bit address
 * JD027 code_index of other code         JD028 record written twice: its index
 * JD029 pid is not the header's
 * JD030 times go back: ns at most        JD031 no time
 * JD040 damaged file names of lines: entries
 * JD041 line addresses are too high: by how much
 * JD042 no code behind a line or unwinding record: its id
 * JD043! unwinding sizes exceed the record
 *
 * PM001! no entry: length of the line    PM002 size 0: the address
 * PM003 carriage return                  PM004 last line without a newline
 * PM005! line is too long and was cut    PM006! beyond the address space
 */
struct tickmap_finding {
	const char *id;
	const char *what; /* static text */
	uint64_t offset;
	uint64_t value; /* a number that belongs to it: bytes skipped, ... */
	bool error;	/* something was lost by it */
};

struct tickmap_code_handler {
	void *context;
	void (*code)(void *context, const struct tickmap_code_event *event);
	void (*finding)(void *context, const struct tickmap_finding *finding);
};

struct tickmap_jitdump_header {
	uint32_t version, elf_machine, pid;
	uint64_t timestamp, flags;
	bool swap;
};

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

/*
 * Lines are START SIZE NAME in hex. Kept out: size 0, and what is no entry.
 */
struct tickmap_perfmap;
struct tickmap_perfmap *
tickmap_perfmap_new(const struct tickmap_code_handler *handler);
void tickmap_perfmap_free(struct tickmap_perfmap *map);
/* `when`: the time that the events of these bytes get. */
bool tickmap_perfmap_feed(struct tickmap_perfmap *map, const void *bytes,
			  size_t size, uint64_t when);
void tickmap_perfmap_end(struct tickmap_perfmap *map, uint64_t when);

#endif

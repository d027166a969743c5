/* SPDX-License-Identifier: MIT */
/* All that the readers can find: one table for text, severity and numbers. */
#ifndef TICKMAP_CODEMAP_FINDINGS_H
#define TICKMAP_CODEMAP_FINDINGS_H

#include "codemap/codemap.h"

/* clang-format off */
/* X(id, severity, what, what the value is, why it matters) */
#define TICKMAP_FINDINGS(X) \
	X(JD001, ERROR, "not a jitdump: wrong magic number", "the number", \
	  "no tool reads this file as a jitdump") \
	X(JD002, ERROR, "shorter than a jitdump header", "bytes there", \
	  "there is nothing to read yet; the writer may have been killed") \
	X(JD003, WARNING, "version is not 1", "the version", \
	  "perf inject refuses the whole dump") \
	X(JD004, WARNING, "header size is not 40", "the size", \
	  "perf inject reads no function, or fails on all processes") \
	X(JD005, INFO, "ELF machine is not given", "0", \
	  "code cannot be disassembled without being told the machine") \
	X(JD006, INFO, "reserved header field is not 0", "the field", \
	  "a later format could give it a meaning") \
	X(JD007, WARNING, "unknown header flags", "the flags", \
	  "perf inject refuses the whole dump") \
	X(JD008, INFO, "header time is not of the records' clock", \
	  "the header's time", \
	  "the time the dump was begun cannot be told from it") \
	X(JD009, WARNING, "times are ticks of the CPU's counter", "the flags", \
	  "perf inject refuses the dump unless the recording has TIME_CONV") \
	X(JD010, ERROR, "no record here: bytes skipped", "bytes skipped", \
	  "perf inject and samply lose every function behind this place") \
	X(JD011, ERROR, "record runs into the next one", \
	  "bytes of it that are there", \
	  "part of a record was lost, others lose what follows") \
	X(JD012, WARNING, "last record is cut off", \
	  "bytes of it that are there", \
	  "the writer was killed, or still writes: what comes here is missing") \
	X(JD013, INFO, "unknown type of record", "its id", \
	  "perf warns of each and goes on") \
	X(JD014, INFO, "record behind a CLOSE", "its id", \
	  "samply reads nothing behind a CLOSE") \
	X(JD015, ERROR, "size of the record is wrong", "the stated size", \
	  "perf inject and samply lose every function behind this place") \
	X(JD020, WARNING, "thread ids are 64 bits wide", \
	  "size of a LOAD's fixed part", \
	  "every other reader takes names and addresses from wrong places") \
	X(JD021, ERROR, "code size exceeds the record", "the size", \
	  "perf reads beyond its buffer or crashes") \
	X(JD022, WARNING, "name does not end with a NUL", "its length", \
	  "perf runs on into the code and shows a wrong name") \
	X(JD023, WARNING, "bytes between name and code", "the name's length", \
	  "what they are is not known; readers that trust the name's end fail") \
	X(JD024, WARNING, "code bytes are not in the record", "the code's size", \
	  "perf writes other bytes in their place; nothing to disassemble") \
	X(JD025, WARNING, "code of size 0", "the stated size", \
	  "no sample can fall into it, and perf inject of 6.1 never ends") \
	X(JD026, WARNING, "32-bit addresses are sign-extended", \
	  "the first address", \
	  "other tools do not find code above 2 GiB") \
	X(JD027, WARNING, "code_index is used again for other code", \
	  "the index", \
	  "perf overwrites the first function: both get the last one's name") \
	X(JD028, INFO, "record is written twice", "its index", \
	  "a forked child may have flushed its parent's buffer once more") \
	X(JD029, INFO, "pid is not the header's", "the pid", \
	  "code of a child that kept the dump, or of another pid namespace") \
	X(JD030, WARNING, "times of records go back", "ns at most", \
	  "samply holds back what follows a late record") \
	X(JD031, WARNING, "record without a time", "0", \
	  "which of two functions was at an address when cannot be told") \
	X(JD040, WARNING, "file names of line entries are damaged", "entries", \
	  "perf shows garbage as the source file") \
	X(JD041, WARNING, "line addresses are too high", "by how much", \
	  "other tools show lines of code that much further on") \
	X(JD042, INFO, "no code follows this record", "its id", \
	  "a LOAD was lost, or never written") \
	X(JD043, ERROR, "sizes of unwinding data exceed the record", \
	  "the record's size", \
	  "stacks cannot be unwound through this function") \
	X(JD044, INFO, "unwinding data: .eh_frame_hdr comes first", \
	  "its size", \
	  "perf takes the last bytes for the header and cannot unwind") \
	X(JD045, ERROR, "code exceeds the address space", "the stated size", \
	  "readers that add address and size get a wrong range") \
	X(JD046, WARNING, "unwinding data without .eh_frame_hdr", \
	  "the data's size", \
	  "perf gives these data to all later functions") \
	X(PM001, ERROR, "line is not an entry", "its length", \
	  "a name is lost; some readers refuse the whole map") \
	X(PM002, INFO, "entry of size 0", "the address", \
	  "no sample can fall into it") \
	X(PM003, INFO, "line ends with a carriage return", "0", \
	  "perf shows it as part of the name") \
	X(PM004, INFO, "last line has no newline and may be cut", \
	  "its length", \
	  "the name may be half; perf drops its last character") \
	X(PM005, ERROR, "line is too long and was cut", "bytes kept", \
	  "the end of a name is missing") \
	X(PM006, ERROR, "range exceeds the address space", "the size", \
	  "the entry cannot be right; it was left out") \
	X(PM007, WARNING, "range is too large for a function", "the size", \
	  "it would hide all functions in it: only its first bytes count") \
	X(PM008, INFO, "name is not UTF-8", "its length", \
	  "samply ignores the whole map") \
	X(PM009, INFO, "name of one or two bytes", "its length", \
	  "perf drops the line")
/* clang-format on */

enum tickmap_finding_index {
#define X(id, severity, what, value, why) TICKMAP_FOUND_##id,
	TICKMAP_FINDINGS(X)
#undef X
};

void tickmap_codemap_find(const struct tickmap_code_handler *handler,
			  enum tickmap_finding_index index, uint64_t offset,
			  uint64_t value);

#endif

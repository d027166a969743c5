/* SPDX-License-Identifier: MIT */
/*
 * Numbers of the perf.data format that reader and writer share; they are in no
 * UAPI header. The file:
 *
 *   header (104 bytes)  magic u64, size u64, attr_size u64,
 *                       {attrs, data, event_types} as {offset u64, size u64},
 *                       256 feature bits as 4 u64
 *   attrs               per event: perf_event_attr, ids {offset, size}
 *   data                records
 *   feature table       {offset, size} per set bit, in the order of bits
 *   features
 */
#ifndef TICKMAP_CAPTURE_PERFDATA_FORMAT_H
#define TICKMAP_CAPTURE_PERFDATA_FORMAT_H

#include <stdint.h>

#define PERFDATA_MAGIC UINT64_C(0x32454c4946524550) /* "PERFILE2" */

enum {
	PERFDATA_HEADER_SIZE = 104,
	PERFDATA_PIPE_HEADER_SIZE = 16,
	PERFDATA_FEATURE_BITS = 256,
	PERFDATA_FEATURE_WORDS = 4,
	PERFDATA_SECTION_SIZE = 16,
};

/* Record types of user space. */
enum {
	PERFDATA_RECORD_USER_FIRST = 64,
	PERFDATA_RECORD_HEADER_ATTR = 64,
	PERFDATA_RECORD_TRACING_DATA = 66,
	PERFDATA_RECORD_BUILD_ID = 67,
	PERFDATA_RECORD_FINISHED_ROUND = 68,
	PERFDATA_RECORD_AUXTRACE = 71,
	PERFDATA_RECORD_EVENT_UPDATE = 78,
	PERFDATA_RECORD_HEADER_FEATURE = 80,
	PERFDATA_RECORD_COMPRESSED = 81,
	PERFDATA_RECORD_COMPRESSED2 = 83,
};

/* Of a BUILD_ID record's misc: the id's size is behind its 20 bytes. */
enum { PERFDATA_MISC_BUILD_ID_SIZE = 1 << 15 };

enum {
	PERFDATA_FEATURE_BUILD_ID = 2,
	PERFDATA_FEATURE_HOSTNAME = 3,
	PERFDATA_FEATURE_OSRELEASE = 4,
	PERFDATA_FEATURE_VERSION = 5,
	PERFDATA_FEATURE_ARCH = 6,
	PERFDATA_FEATURE_NRCPUS = 7,
	PERFDATA_FEATURE_CPUDESC = 8,
	PERFDATA_FEATURE_CPUID = 9,
	PERFDATA_FEATURE_CMDLINE = 11,
	PERFDATA_FEATURE_EVENT_DESC = 12,
	PERFDATA_FEATURE_SAMPLE_TIME = 21,
	PERFDATA_FEATURE_CLOCKID = 23,
	PERFDATA_FEATURE_DIR_FORMAT = 24,
	PERFDATA_FEATURE_COMPRESSED = 27,
	PERFDATA_FEATURE_CLOCK_DATA = 29,
};

/* What an EVENT_UPDATE tells. */
enum { PERFDATA_EVENT_UPDATE_NAME = 2 };

enum { PERFDATA_COMPRESSED_ZSTD = 1 };

/* The fixed part of a note behind the record's header. */
enum { PERFDATA_NOTE_FIXED = 40 };

#endif

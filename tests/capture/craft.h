/* SPDX-License-Identifier: MIT */
/* perf.data files that no perf here would write, byte by byte. */
#ifndef TICKMAP_TESTS_CAPTURE_CRAFT_H
#define TICKMAP_TESTS_CAPTURE_CRAFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct craft {
	uint8_t bytes[1 << 18];
	size_t count;
	bool swap; /* the other byte order than ours */
};

void craft_u16(struct craft *c, uint16_t v);
void craft_u32(struct craft *c, uint32_t v);
void craft_u64(struct craft *c, uint64_t v);
void craft_bytes(struct craft *c, const void *bytes, size_t size);
void craft_text(struct craft *c, const char *text, size_t padded);

/* A record's header; its size is filled in by _end. */
size_t craft_record(struct craft *c, uint32_t type, uint16_t misc);
void craft_record_end(struct craft *c, size_t record);

struct craft_attr {
	uint32_t type;
	uint64_t config, sample_type, flags;
	uint32_t size; /* of the attr: 64, 128, 144... */
	uint64_t ids[2];
};

/* Header, attrs and ids; returns where the data size stands. */
size_t craft_begin(struct craft *c, const struct craft_attr *attrs,
		   size_t count);
/* Completes the header: what came since is the data. */
void craft_finish(struct craft *c, size_t data_size_at);

/* Writes it to a new file and returns its path, to be freed. */
char *craft_save(const struct craft *c, const char *name);

#endif

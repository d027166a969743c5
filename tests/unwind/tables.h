/* SPDX-License-Identifier: MIT */
/* Unwind tables for tests, found by other means than the code under test. */
#ifndef TICKMAP_TESTS_UNWIND_TABLES_H
#define TICKMAP_TESTS_UNWIND_TABLES_H

#include "unwind/cfi.h"

/* Copies .eh_frame and .eh_frame_hdr of a file (by libelf). */
struct file_tables {
	uint8_t *eh_frame, *hdr;
	struct tickmap_cfi cfi;
};

bool file_tables_load(struct file_tables *tables, const char *path,
		      bool with_hdr);
void file_tables_free(struct file_tables *tables);

#endif

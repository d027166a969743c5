/* SPDX-License-Identifier: MIT */
/*
 * A folder of real recordings, named by TICKMAP_CORPUS: RUNTIME/CASE/FILE.xz
 * and manifest.tsv. Unpacked by `xz -dc`.
 */
#ifndef TICKMAP_TESTS_CODEMAP_CORPUS_H
#define TICKMAP_TESTS_CODEMAP_CORPUS_H

#include <stddef.h>
#include <stdint.h>

/* NULL: none given. */
const char *corpus_folder(void);

/* malloced and with a NUL behind it; fails the test if it cannot be read. */
uint8_t *corpus_read(const char *path, size_t *ret_size);

/* Calls `each` with every row of the manifest: the case's folder below the
 * corpus, and the cell of the column. Both may be changed. */
void corpus_each_case(const char *column, void *context,
		      void (*each)(void *context, const char *name,
				   char *cell));

#endif

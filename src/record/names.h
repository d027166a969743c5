/* SPDX-License-Identifier: MIT */
/*
 * Which native addresses were sampled, so that their names can travel in the
 * recording: the file alone then names them on another machine. Only distinct
 * addresses are remembered while sampling; symbol tables are read at the end,
 * one file after the other.
 */
#ifndef TICKMAP_RECORD_NAMES_H
#define TICKMAP_RECORD_NAMES_H

#include "capture/perfdata.h"
#include "record/modules.h"
#include "record/processes.h"

#include <stdbool.h>
#include <stdint.h>

struct tickmap_names;

struct tickmap_names *tickmap_names_new(void);
void tickmap_names_free(struct tickmap_names *names);

/* An address of a chain; `caller`: a return address. */
void tickmap_names_want(struct tickmap_names *names,
			struct tickmap_processes *processes,
			const struct tickmap_process *process, uint64_t avma,
			bool caller);
void tickmap_names_want_kernel(struct tickmap_names *names, uint64_t avma,
			       bool caller);

/* Writes the TICKMAP_NOTE_SYMBOLS of everything wanted. */
int tickmap_names_write(struct tickmap_names *names,
			struct tickmap_modules *modules,
			struct tickmap_perfdata_writer *writer,
			struct tickmap_error *err);

/* Build ids of the files that were sampled. Borrowed from names. */
const struct tickmap_perfdata_build_id *
tickmap_names_build_ids(struct tickmap_names *names,
			struct tickmap_modules *modules, size_t *ret_count);

#endif

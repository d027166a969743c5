/* SPDX-License-Identifier: MIT */
#ifndef TICKMAP_CODEMAP_MARKER_H
#define TICKMAP_CODEMAP_MARKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A process maps its jitdump executable so that recorders learn of it. Such a
 * mapping is known by the file's name: "jit-PID.dump"; JavaScriptCore writes
 * "jit-TID-PID.dump" or, in a folder that nobody chose, "jit-TID-PID-XXXXXX".
 * " (deleted)" may follow.
 */
bool tickmap_is_jitdump_path(const char *path);

/* The pid in such a name, of which the first `length` bytes are the path
 * without " (deleted)"; 0: none. */
uint32_t tickmap_jitdump_path_pid(const char *path, size_t length);

#endif

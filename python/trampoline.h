/* SPDX-License-Identifier: MIT */
/*
 * The machine code of one trampoline: a function that calls the evaluator it
 * is given and returns what that returns, so that the evaluator's caller has
 * an address of its own for each Python function. One file per architecture.
 */
#ifndef TICKMAP_PYTHON_TRAMPOLINE_H
#define TICKMAP_PYTHON_TRAMPOLINE_H

#include <stddef.h>
#include <stdint.h>

#include "tickmap/emit.h"

extern const size_t tickmap_trampoline_size;

/*
 * Writes tickmap_trampoline_size bytes. `serial` is put where it is never
 * executed: consumers that make an image per function tell images apart by a
 * hash of the code, and all trampolines do the same.
 */
void tickmap_trampoline_write(uint8_t *at, uint32_t serial);

/* How to unwind through one. */
int tickmap_trampoline_unwind(struct tickmap_unwind *ret_unwind);

#endif

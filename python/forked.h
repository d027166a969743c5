/* SPDX-License-Identifier: MIT */
/*
 * What a forked child has inherited is published in its parent's code map
 * alone. A profiler that follows forks knows it from there; one that is put on
 * the child later does not. So a child publishes what it has inherited anew,
 * under its own pid, at its first Python call: one that only becomes another
 * program makes none.
 *
 * Not where TICKMAP_FOLLOWED is in the environment, as under `tickmap record`,
 * which follows forks: a copy for each child would only cost.
 */
#ifndef TICKMAP_PYTHON_FORKED_H
#define TICKMAP_PYTHON_FORKED_H

/* From now on. Returns 0, or an errno. */
int tickmap_forked_watch(void);

/* The same for what needs the interpreter; a thread that forks may be the only
 * one that is not in a call so deep that it has taken the hook out. Once for
 * each interpreter. Returns 0, or -1 with an exception set. */
int tickmap_forked_watch_interpreter(void);

/* The uncommon way of a call: publish, if this is a child's first one. */
void tickmap_forked_call(void);

#endif

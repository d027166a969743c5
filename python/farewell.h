/* SPDX-License-Identifier: MIT */
/*
 * What is said on stderr, in one line, when a process ends that could not
 * publish all that it should have. Only where the start-up switched us on: a
 * program that did so itself has status().
 */
#ifndef TICKMAP_PYTHON_FAREWELL_H
#define TICKMAP_PYTHON_FAREWELL_H

/* Not of this process's children, which would all say the same. */
void tickmap_farewell_wanted(void);

/* Says it, if it is wanted and there is anything to say. */
void tickmap_farewell(void);

#endif

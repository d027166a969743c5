/* SPDX-License-Identifier: MIT */
/* A program to sample: the test itself, started again with "spin". */
#ifndef TICKMAP_TESTS_CAPTURE_SPIN_H
#define TICKMAP_TESTS_CAPTURE_SPIN_H

#include <stdint.h>
#include <sys/types.h>

/* Runs the program if argv asks for it, else returns. */
void spin_main(int argc, char **argv);

/* Uses that much CPU time in the calling thread. */
void spin_here(long milliseconds);

/* A process that waits for spin_go before it execs. */
struct spin {
	pid_t pid;
	int gate;
};
struct spin spin_prepare(const char *milliseconds);
void spin_go(struct spin *spin);
/* Waits for its end; returns what waitpid says. */
int spin_end(struct spin *spin);

#endif

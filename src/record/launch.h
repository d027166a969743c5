/* SPDX-License-Identifier: MIT */
/*
 * Starts the command that is to be sampled: a child that waits before its exec
 * until the events are open, with an environment in which a Python publishes
 * its functions.
 */
#ifndef TICKMAP_RECORD_LAUNCH_H
#define TICKMAP_RECORD_LAUNCH_H

#include "base/error.h"
#include "record/codemapdir.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct tickmap_python_launch {
	char home[4096]; /* the folder with boot/ and the extensions */
	/* For a person, "" if there is nothing to say. */
	char note[512];
	/* The command, with the interpreter's own switch put in where ours
	 * cannot reach it; borrowed strings and one malloced array. */
	char **argv;
	bool own_switch; /* -X perf_jit was put in: its files are ours */
};

/*
 * Prepares for a command that may be, or may start, a Python: finds our Python
 * home beside this program and looks at the command for isolated mode. argv is
 * NULL-terminated and borrowed.
 */
int tickmap_python_prepare(char **argv, struct tickmap_python_launch *ret,
			   struct tickmap_error *err);
void tickmap_python_done(struct tickmap_python_launch *python);

struct tickmap_child {
	pid_t pid;
	int go;	    /* write end: one byte lets it exec */
	int failed; /* read end: errno of a failed exec */
};

/* `mask`, `sigchld`: the signal mask and the SIGCHLD disposition that the
 * command gets, as ours were. `python` or `dir` may be
 * NULL: the environment is left alone. */
int tickmap_child_start(char **argv, const sigset_t *mask, void (*sigchld)(int),
			const struct tickmap_python_launch *python,
			const struct tickmap_code_map_dir *dir,
			struct tickmap_child *ret_child,
			struct tickmap_error *err);
/* Lets it go; 0, or the errno with which its exec failed. */
int tickmap_child_go(struct tickmap_child *child);
/* Ends a child that never got to go. */
void tickmap_child_cancel(struct tickmap_child *child);

/* The file that execvp would run, searched on PATH: 0, or ENOENT, EACCES. */
int tickmap_command_find(const char *name, char *out, size_t size);

#endif

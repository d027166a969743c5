/* SPDX-License-Identifier: MIT */
#include "spin.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* CPU time, so that a busy machine does not change how much is sampled. */
static void burn(clockid_t clock, long milliseconds)
{
	struct timespec now, start;
	volatile unsigned x = 0;

	clock_gettime(clock, &start);
	do {
		for (unsigned i = 0; i < 20000; i++)
			x = x + i;
		clock_gettime(clock, &now);
	} while ((now.tv_sec - start.tv_sec) * 1000 +
			 (now.tv_nsec - start.tv_nsec) / 1000000 <
		 milliseconds);
}

static void *thread_main(void *milliseconds)
{
	burn(CLOCK_THREAD_CPUTIME_ID, *(long *)milliseconds);
	return NULL;
}

void spin_main(int argc, char **argv)
{
	if (argc < 3 || strcmp(argv[1], "spin"))
		return;
	long milliseconds = strtol(argv[2], NULL, 10);
	pthread_t thread;
	void *code = mmap(NULL, 4096, PROT_READ | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (code == MAP_FAILED ||
	    pthread_create(&thread, NULL, thread_main, &milliseconds))
		_exit(1);
	pid_t child = fork();
	if (child == 0) {
		burn(CLOCK_THREAD_CPUTIME_ID, milliseconds);
		_exit(0);
	}
	burn(CLOCK_THREAD_CPUTIME_ID, milliseconds);
	pthread_join(thread, NULL);
	waitpid(child, NULL, 0);
	_exit(7);
}

void spin_here(long milliseconds)
{
	burn(CLOCK_THREAD_CPUTIME_ID, milliseconds);
}

struct spin spin_prepare(const char *milliseconds)
{
	struct spin spin;
	int gate[2];
	char go;

	if (pipe2(gate, O_CLOEXEC))
		abort();
	spin.pid = fork();
	if (spin.pid < 0)
		abort();
	if (spin.pid == 0) {
		char self[] = "/proc/self/exe", word[] = "spin", ms[16];
		strncpy(ms, milliseconds, sizeof(ms) - 1);
		ms[sizeof(ms) - 1] = '\0';
		char *argv[] = { self, word, ms, NULL };
		close(gate[1]);
		if (read(gate[0], &go, 1) == 1)
			execv(self, argv);
		_exit(127);
	}
	close(gate[0]);
	spin.gate = gate[1];
	return spin;
}

void spin_go(struct spin *spin)
{
	if (write(spin->gate, "x", 1) != 1)
		abort();
}

int spin_end(struct spin *spin)
{
	int status = -1;

	close(spin->gate);
	waitpid(spin->pid, &status, 0);
	return status;
}

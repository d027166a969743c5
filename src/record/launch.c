/* SPDX-License-Identifier: MIT */
#include "record/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

int tickmap_command_find(const char *name, char *out, size_t size)
{
	const char *path = getenv("PATH");
	int found = ENOENT;

	if (strchr(name, '/')) {
		struct stat st;
		snprintf(out, size, "%s", name);
		if (stat(name, &st))
			return errno == EACCES ? EACCES : ENOENT;
		if (S_ISDIR(st.st_mode))
			return EACCES;
		return access(name, X_OK) ? EACCES : 0;
	}
	if (!path)
		path = "/usr/local/bin:/usr/bin:/bin";
	while (*name) {
		size_t length = strcspn(path, ":");
		struct stat st;
		snprintf(out, size, "%.*s%s%s", (int)length, path,
			 length ? "/" : "", name);
		if (!stat(out, &st) && S_ISREG(st.st_mode)) {
			if (!access(out, X_OK))
				return 0;
			found = EACCES;
		}
		if (!path[length])
			break;
		path += length + 1;
	}
	return found;
}

static void set_environment(const struct tickmap_python_launch *python,
			    const struct tickmap_code_map_dir *dir)
{
	const char *old = getenv("PYTHONPATH");
	char path[16384];

	if (!python || !dir || !python->home[0])
		return;
	if (old && *old)
		snprintf(path, sizeof(path), "%s/boot:%s", python->home, old);
	else
		snprintf(path, sizeof(path), "%s/boot", python->home);
	setenv("PYTHONPATH", path, 1);
	setenv("TICKMAP", "jitdump", 1);
	setenv("TICKMAP_DIR", dir->path, 1);
	setenv("TICKMAP_NOTES", dir->notes, 1);
	setenv("TICKMAP_PYTHON_HOME", python->home, 1);
	setenv("TICKMAP_KEEP_EXISTING", "1", 1);
	setenv("TICKMAP_FOLLOWED", "1", 1);
}

static void run_child(char **argv, const sigset_t *mask, void (*sigchld)(int),
		      const struct tickmap_python_launch *python,
		      const struct tickmap_code_map_dir *dir, int go,
		      int failed) __attribute__((noreturn));

static void run_child(char **argv, const sigset_t *mask, void (*sigchld)(int),
		      const struct tickmap_python_launch *python,
		      const struct tickmap_code_map_dir *dir, int go,
		      int failed)
{
	char byte;
	ssize_t n;
	int error;

	set_environment(python, dir);
	do
		n = read(go, &byte, 1);
	while (n < 0 && errno == EINTR);
	if (n != 1)
		_exit(127); /* the recorder gave up */
	signal(SIGCHLD, sigchld == SIG_IGN ? SIG_IGN : SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	signal(SIGQUIT, SIG_DFL);
	sigprocmask(SIG_SETMASK, mask, NULL);
	execvp(argv[0], argv);
	error = errno;
	n = write(failed, &error, sizeof(error));
	(void)n;
	_exit(127);
}

int tickmap_child_start(char **argv, const sigset_t *mask, void (*sigchld)(int),
			const struct tickmap_python_launch *python,
			const struct tickmap_code_map_dir *dir,
			struct tickmap_child *ret_child,
			struct tickmap_error *err)
{
	int go[2], failed[2];
	pid_t pid;

	if (pipe2(go, O_CLOEXEC))
		return tickmap_fail_os(err, errno, "cannot make a pipe");
	if (pipe2(failed, O_CLOEXEC)) {
		close(go[0]);
		close(go[1]);
		return tickmap_fail_os(err, errno, "cannot make a pipe");
	}
	pid = fork();
	if (pid == 0) {
		close(go[1]);
		close(failed[0]);
		run_child(argv, mask, sigchld, python, dir, go[0], failed[1]);
	}
	int error = errno;
	close(go[0]);
	close(failed[1]);
	if (pid < 0) {
		close(go[1]);
		close(failed[0]);
		return tickmap_fail_os(err, error, "cannot start a process");
	}
	*ret_child = (struct tickmap_child) {
		.pid = pid,
		.go = go[1],
		.failed = failed[0],
	};
	return TICKMAP_OK;
}

int tickmap_child_go(struct tickmap_child *child)
{
	int error = 0;
	ssize_t n;

	n = write(child->go, "g", 1);
	close(child->go);
	child->go = -1;
	/* The pipe closes with the exec, or says why there was none. */
	do
		n = read(child->failed, &error, sizeof(error));
	while (n < 0 && errno == EINTR);
	close(child->failed);
	child->failed = -1;
	return n == (ssize_t)sizeof(error) ? error : 0;
}

void tickmap_child_cancel(struct tickmap_child *child)
{
	if (child->go >= 0)
		close(child->go);
	if (child->failed >= 0)
		close(child->failed);
	waitpid(child->pid, NULL, 0);
}

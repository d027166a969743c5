/* SPDX-License-Identifier: MIT */
/*
 * What the command says about Python before it runs: where our extension lies,
 * and whether the interpreter will be told to ignore the environment (-I, -E,
 * -S), so that only its own switch can make it publish its functions.
 */
#include "record/launch.h"

#include "platform/platform.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS_MAX = 512 };

static bool find_home(char *out, size_t size)
{
	static const char *const places[] = {
		"/../lib/tickmap/python", /* installed */
		"/python",		  /* build folder */
		"/../python",
	};
	char dir[3072], boot[4096];

	if (tickmap_platform_self_dir(dir, sizeof(dir)))
		return false;
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		char *real;
		snprintf(boot, sizeof(boot), "%s%s/boot/sitecustomize.py", dir,
			 places[i]);
		if (access(boot, R_OK))
			continue;
		snprintf(boot, sizeof(boot), "%s%s", dir, places[i]);
		real = realpath(boot, NULL);
		if (!real)
			continue;
		snprintf(out, size, "%s", real);
		free(real);
		return true;
	}
	return false;
}

static bool is_python(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	return !strncmp(name, "python", 6) &&
	       (name[6] == '\0' || isdigit((unsigned char)name[6]));
}

/*
 * Splits a script's first line into words: "#!/usr/bin/env -S python3 -I".
 * Returns how many; the words point into `line`.
 */
static size_t read_shebang(const char *path, char *line, size_t size,
			   char **words, size_t max)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = fd < 0 ? -1 : read(fd, line, size - 1);
	size_t count = 0;

	if (fd >= 0)
		close(fd);
	if (n < 3 || line[0] != '#' || line[1] != '!')
		return 0;
	line[n] = '\0';
	line[strcspn(line, "\n")] = '\0';
	char *save = NULL;
	for (char *word = strtok_r(line + 2, " \t", &save); word && count < max;
	     word = strtok_r(NULL, " \t", &save))
		words[count++] = word;
	/* The kernel passes all behind the interpreter as one word; only env -S
	 * splits it, and Python reads "-I -B" as two all the same. */
	if (count >= 2 && strstr(words[0], "/env")) {
		size_t skip = !strcmp(words[1], "-S") ? 2 : 1;
		memmove(words, words + skip, (count - skip) * sizeof(*words));
		count -= skip;
	}
	return count;
}

/* Python's options that take the next word, if nothing is glued to them. */
static bool takes_value(char c)
{
	return c == 'X' || c == 'W';
}

/* Does a Python with these arguments (behind argv[0]) ignore us? */
static bool is_isolated(char **args, bool *ret_has_perf_switch)
{
	*ret_has_perf_switch = false;
	for (; *args && (*args)[0] == '-' && (*args)[1]; args++) {
		const char *word = *args;
		if (word[1] == '-')
			continue; /* --check-hash-based-pycs and friends */
		for (const char *c = word + 1; *c; c++) {
			if (*c == 'I' || *c == 'E' || *c == 'S')
				return true;
			if (*c == 'c' || *c == 'm')
				return false;
			if (!takes_value(*c))
				continue;
			const char *value = c[1] ? c + 1 : args[1];
			if (*c == 'X' && value && !strncmp(value, "perf", 4))
				*ret_has_perf_switch = true;
			if (!c[1] && args[1])
				args++;
			break;
		}
	}
	return false;
}

/* "3.13.0" of an interpreter as major << 16 | minor << 8 | micro; 0: no idea.
 */
static unsigned version_of(const char *interpreter)
{
	int out[2];
	char text[64] = "";
	unsigned major = 0, minor = 0, micro = 0;

	if (pipe2(out, O_CLOEXEC))
		return 0;
	pid_t pid = fork();
	if (pid == 0) {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);
		dup2(out[1], 1);
		dup2(null, 0);
		dup2(null, 2);
		execlp(interpreter, interpreter, "-I", "-S", "-c",
		       "import sys; print('%d.%d.%d ' % sys.version_info[:3])",
		       (char *)NULL);
		_exit(127);
	}
	close(out[1]);
	size_t used = 0;
	for (ssize_t n; pid > 0 && used < sizeof(text) - 1; used += (size_t)n) {
		n = read(out[0], text + used, sizeof(text) - 1 - used);
		if (n <= 0)
			break;
	}
	close(out[0]);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	if (sscanf(text, "%u.%u.%u ", &major, &minor, &micro) != 3)
		return 0;
	return major << 16 | minor << 8 | micro;
}

static int put_own_switch(struct tickmap_python_launch *python, char **words,
			  size_t interpreter_words, char **rest)
{
	static char x[] = "-X", jit[] = "perf_jit", map[] = "perf";
	unsigned version = version_of(words[0]);
	size_t n = 0;

	if (version < (3u << 16 | 12u << 8)) {
		snprintf(python->note, sizeof(python->note),
			 "%s ignores the environment (-I, -E or -S), and this "
			 "version has no perf switch of its own: native frames "
			 "only; run it without that option to see Python names",
			 words[0]);
		return 0;
	}
	python->argv = calloc(WORDS_MAX * 2, sizeof(*python->argv));
	if (!python->argv)
		return -1;
	python->argv[n++] = words[0];
	python->argv[n++] = x;
	python->argv[n++] = version >= (3u << 16 | 13u << 8) ? jit : map;
	for (size_t i = 1; i < interpreter_words; i++)
		python->argv[n++] = words[i];
	while (*rest && n < WORDS_MAX * 2 - 1)
		python->argv[n++] = *rest++;
	python->own_switch = true;
	snprintf(python->note, sizeof(python->note),
		 "%s ignores the environment (-I, -E or -S): using its own "
		 "-X %s",
		 words[0], python->argv[2]);
	return 0;
}

int tickmap_python_prepare(char **argv, struct tickmap_python_launch *ret,
			   struct tickmap_error *err)
{
	char path[4096];
	static char line[512]; /* the new command may point into it */
	char *words[WORDS_MAX];
	size_t count = 0, argc = 0;
	bool has_switch;

	memset(ret, 0, sizeof(*ret));
	if (!find_home(ret->home, sizeof(ret->home)))
		snprintf(ret->note, sizeof(ret->note),
			 "the Python extension is not beside this program: "
			 "Python frames have no names");
	while (argv[argc])
		argc++;
	if (argc > WORDS_MAX ||
	    tickmap_command_find(argv[0], path, sizeof(path)))
		return TICKMAP_OK;

	if (is_python(argv[0])) {
		if (is_isolated(argv + 1, &has_switch) && !has_switch &&
		    put_own_switch(ret, argv, 1, argv + 1))
			goto no_memory;
		return TICKMAP_OK;
	}
	count = read_shebang(path, line, sizeof(line), words, 16);
	if (!count || !is_python(words[0]))
		return TICKMAP_OK;
	words[count] = NULL;
	if (!is_isolated(words + 1, &has_switch) || has_switch)
		return TICKMAP_OK;
	/* Started as the kernel would: interpreter, its words, the script. */
	char *script = strdup(path);
	if (!script)
		goto no_memory;
	char *rest[WORDS_MAX + 2] = { script };
	memcpy(rest + 1, argv + 1, argc * sizeof(*rest));
	if (put_own_switch(ret, words, count, rest))
		goto no_memory;
	return TICKMAP_OK;
no_memory:
	return tickmap_fail(err, TICKMAP_E_NOMEM, 0, "out of memory");
}

void tickmap_python_done(struct tickmap_python_launch *python)
{
	free(python->argv);
	python->argv = NULL;
}

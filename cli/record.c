/* SPDX-License-Identifier: MIT */
/* tickmap record: run a command, or watch running processes, and sample. */
#include "args.h"
#include "cli.h"
#include "platform/platform.h"
#include "record/follow.h"
#include "record/keep.h"
#include "record/launch.h"
#include "record/recorder.h"
#include "refused.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	DEFAULT_HZ = 999,
	PIDS_MAX = 64,
	/* After a signal to us, the command gets this long to end by itself. */
	GRACE_MS = 3000,
	STEP_MS = 100,
	EXIT_NOT_EXECUTABLE = 126,
	EXIT_NOT_FOUND = 127,
};

enum option {
	OPT_FREQUENCY = 1,
	OPT_OUTPUT,
	OPT_PID,
	OPT_DURATION,
	OPT_NO_PYTHON,
	OPT_KEEP,
	OPT_QUIET,
};

static const struct tickmap_option options[] = {
	{ OPT_FREQUENCY, "frequency", 'F', "HZ",
	  "samples a second and busy CPU (default 999)", false },
	{ OPT_OUTPUT, "output", 'o', "FILE",
	  "where the recording goes (default tickmap.data); a file that is "
	  "there is renamed to FILE.old",
	  false },
	{ OPT_PID, "pid", 'p', "PID",
	  "sample a running process instead of a command, until Ctrl-C or its "
	  "end; its code maps are used as far as it publishes some",
	  true },
	{ OPT_DURATION, "duration", 'd', "SECONDS",
	  "stop after this long; a command that still runs is then ended "
	  "with SIGTERM",
	  false },
	{ OPT_NO_PYTHON, "no-python", 0, NULL,
	  "do not load the trampolines that give Python functions names",
	  false },
	{ OPT_KEEP, "keep-code-maps", 0, NULL,
	  "leave the code maps behind, and /tmp/perf-PID.map for perf", false },
	{ OPT_QUIET, "quiet", 'q', NULL, "say nothing but errors", false },
};

static const struct tickmap_command command = {
	.name = "record",
	.operands = "[--] CMD [ARG]...",
	.summary = "Run a command and sample where its CPU time goes.",
	.notes = "The recording is a perf.data file that also carries the code "
		 "maps it saw, so that the file alone is enough on another "
		 "machine.\n\nThe exit code is the command's; 127 or 126 if it "
		 "cannot be run, 4 if the kernel refuses to sample, 2 for "
		 "wrong usage.",
	.options = options,
	.option_count = sizeof(options) / sizeof(*options),
	.operands_end_options = true,
};

struct request {
	uint64_t frequency;
	const char *output;
	pid_t pids[PIDS_MAX];
	size_t pid_count;
	uint64_t duration_ns;
	bool python, keep, quiet;
	char **argv; /* the command; NULL with pids */
};

/* What runs, and what it needs on the way out. */
struct run {
	const struct request *request;
	char **argv0; /* of tickmap itself, for the file */
	int argc0;
	struct tickmap_child child;
	struct tickmap_code_map_dir dir;
	struct tickmap_python_launch python;
	struct tickmap_recorder *recorder;
	sigset_t old_mask;
	void (*old_sigchld)(int);
	int signals; /* signalfd */
	bool ended;  /* the command has, with this status */
	int status;
	int stop_signal; /* that we got; 0: none */
	uint64_t stop_at_ns;
	bool timed_out;
};

static void say(const struct run *run, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void say(const struct run *run, const char *format, ...)
{
	char text[1024];
	va_list args;

	if (run->request->quiet)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	tickmap_cli_say("%s", text);
}

static bool parse_seconds(const char *text, uint64_t *ret_ns)
{
	char *end;
	double seconds = strtod(text, &end);

	if (end == text || *end || !(seconds > 0) || seconds > 1e9)
		return false;
	*ret_ns = (uint64_t)(seconds * 1e9);
	return true;
}

static int parse(int argc, char **argv, struct request *request)
{
	struct tickmap_args args = { &command, argc, argv };
	uint64_t number;

	for (int id; (id = tickmap_args_next(&args)) != TICKMAP_ARGS_END;) {
		switch (id) {
		case OPT_FREQUENCY:
			if (!tickmap_args_number(args.value, 1, 1000000,
						 &request->frequency))
				return tickmap_args_usage(
					&args,
					"-F wants samples a second, "
					"1 to 1000000, not '%s'",
					args.value);
			break;
		case OPT_OUTPUT:
			request->output = args.value;
			break;
		case OPT_PID:
			if (!tickmap_args_number(args.value, 1, INT32_MAX,
						 &number) ||
			    request->pid_count == PIDS_MAX)
				return tickmap_args_usage(
					&args,
					"-p wants a process id, not '%s'",
					args.value);
			request->pids[request->pid_count++] = (pid_t)number;
			break;
		case OPT_DURATION:
			if (!parse_seconds(args.value, &request->duration_ns))
				return tickmap_args_usage(
					&args,
					"--duration wants seconds, not '%s'",
					args.value);
			break;
		case OPT_NO_PYTHON:
			request->python = false;
			break;
		case OPT_KEEP:
			request->keep = true;
			break;
		case OPT_QUIET:
			request->quiet = true;
			break;
		default:
			return -1 - tickmap_args_exit(id);
		}
	}
	if (args.operand_count && request->pid_count)
		return tickmap_args_usage(&args,
					  "give a command or -p PID, not both");
	if (!args.operand_count && !request->pid_count)
		return tickmap_args_usage(
			&args, "what shall run? "
			       "for example: tickmap record -- python3 app.py");
	if (args.operand_count)
		request->argv = args.operands;
	return 0;
}

/* ---- Before the start ---- */

/* 0, or the exit code with the reason said. */
static int check_command(const struct request *request)
{
	char path[4096];
	int error;

	if (!request->argv)
		return 0;
	error = tickmap_command_find(request->argv[0], path, sizeof(path));
	if (!error)
		return 0;
	tickmap_cli_say("%s: %s", request->argv[0],
			error == ENOENT ? "command not found"
					: "not executable");
	return error == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
}

static int check_pids(const struct request *request)
{
	for (size_t i = 0; i < request->pid_count; i++) {
		if (kill(request->pids[i], 0) && errno == ESRCH) {
			tickmap_cli_say("no process %d", (int)request->pids[i]);
			return TICKMAP_EXIT_ENVIRONMENT;
		}
	}
	return 0;
}

static int move_old_away(const char *output, bool *ret_moved)
{
	char old[4096];
	struct stat st;

	if (lstat(output, &st))
		return 0;
	if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode)) {
		tickmap_cli_say("%s: is not a regular file; choose another "
				"with -o FILE",
				output);
		return TICKMAP_EXIT_ENVIRONMENT;
	}
	snprintf(old, sizeof(old), "%s.old", output);
	if (rename(output, old)) {
		tickmap_cli_say("%s: cannot rename to %s: %s", output, old,
				strerror(errno));
		return TICKMAP_EXIT_ENVIRONMENT;
	}
	*ret_moved = true;
	return 0;
}

/* A run that never began leaves the recording that was there. */
static void move_old_back(const char *output)
{
	char old[4096];

	snprintf(old, sizeof(old), "%s.old", output);
	if (rename(old, output))
		tickmap_cli_say("%s: cannot rename back: %s", old,
				strerror(errno));
}

/* Under sudo the recording belongs to the person who typed it. */
static void give_to_sudo_user(const char *output)
{
	const char *uid = getenv("SUDO_UID"), *gid = getenv("SUDO_GID");

	if (geteuid() != 0 || !uid)
		return;
	if (lchown(output, (uid_t)strtoul(uid, NULL, 10),
		   gid ? (gid_t)strtoul(gid, NULL, 10) : (gid_t)-1))
		tickmap_cli_say("%s: cannot give it to uid %s: %s", output, uid,
				strerror(errno));
}

/* ---- While it runs ---- */

static bool is_gone(pid_t pid)
{
	return kill(pid, 0) && errno == ESRCH;
}

static bool all_gone(const struct request *request)
{
	for (size_t i = 0; i < request->pid_count; i++) {
		if (!is_gone(request->pids[i]))
			return false;
	}
	return true;
}

static void on_stop_signal(struct run *run, const struct signalfd_siginfo *info)
{
	int number = (int)info->ssi_signo;

	/* A terminal's Ctrl-C has reached the command as well, and it may have
	 * its own mind about it: a prompt, a graceful end. */
	if (run->child.pid && info->ssi_code == SI_KERNEL && number == SIGINT)
		return;
	if (run->stop_signal && run->child.pid && !run->ended)
		kill(run->child.pid, SIGKILL); /* asked twice: now */
	run->stop_signal = number;
	run->stop_at_ns = tickmap_mono_ns() + GRACE_MS * UINT64_C(1000000);
	if (run->child.pid && !run->ended)
		kill(run->child.pid, number);
}

static void read_signals(struct run *run)
{
	struct signalfd_siginfo info;

	while (read(run->signals, &info, sizeof(info)) ==
	       (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGCHLD) {
			if (run->child.pid &&
			    waitpid(run->child.pid, &run->status, WNOHANG) ==
				    run->child.pid)
				run->ended = true;
		} else {
			on_stop_signal(run, &info);
		}
	}
}

/* Recording is over. */
static bool is_over(struct run *run)
{
	uint64_t now_ns = tickmap_mono_ns();

	if (run->child.pid ? run->ended : all_gone(run->request))
		return true;
	if (!run->stop_at_ns || now_ns < run->stop_at_ns)
		return run->stop_signal && !run->child.pid;
	if (!run->stop_signal)
		run->timed_out = true;
	return true;
}

static int watch(struct run *run, struct tickmap_error *err)
{
	while (!is_over(run)) {
		int status = tickmap_recorder_step(run->recorder, run->signals,
						   STEP_MS, err);
		if (status < 0)
			return status;
		if (status)
			read_signals(run);
	}
	return TICKMAP_OK;
}

/* The command must end for its exit code: asked politely, then not. */
static void end_command(struct run *run)
{
	static const int ladder[] = { SIGTERM, SIGKILL };

	for (size_t i = 0; i < 2 && !run->ended; i++) {
		kill(run->child.pid, ladder[i]);
		for (int ms = 0; ms < GRACE_MS && !run->ended; ms += 10) {
			if (waitpid(run->child.pid, &run->status, WNOHANG) ==
			    run->child.pid)
				run->ended = true;
			else
				usleep(10 * 1000);
		}
	}
}

/* Recording is over, the command is not: it goes on as if alone. */
static void wait_for_command(struct run *run)
{
	tickmap_recorder_stop(run->recorder);
	while (!run->ended && !run->stop_signal) {
		struct pollfd poll_fd = { run->signals, POLLIN, 0 };
		poll(&poll_fd, 1, STEP_MS);
		read_signals(run);
	}
	if (run->stop_signal)
		end_command(run);
}

/* ---- At the end ---- */

static void say_size(char *out, size_t size, uint64_t bytes)
{
	if (bytes < 1000000)
		snprintf(out, size, "%.0f KB", (double)bytes / 1e3);
	else
		snprintf(out, size, "%.1f MB", (double)bytes / 1e6);
}

static void say_result(const struct run *run,
		       const struct tickmap_recorder_result *result)
{
	const struct tickmap_sampler *sampler =
		tickmap_recorder_sampler(run->recorder);
	char size[32];

	say_size(size, sizeof(size), result->bytes);
	say(run,
	    "%" PRIu64 " sample%s (%" PRIu64 " lost, %" PRIu64
	    " truncated) of %s, %" PRIu64 " function%s published, %s in %s",
	    result->samples, result->samples == 1 ? "" : "s", result->lost,
	    result->truncated, tickmap_sampler_event_name(sampler),
	    result->functions, result->functions == 1 ? "" : "s", size,
	    run->request->output);
	if (result->missed_maps)
		say(run, "%" PRIu64 " code maps could not be opened",
		    result->missed_maps);
	if (getenv("TICKMAP_DEBUG"))
		say(run,
		    "late %" PRIu64 ", frames %" PRIu64 ", rule cache misses "
		    "%" PRIu64,
		    result->late, result->unwound_frames, result->cache_misses);
}

/* Lines that the loader in the children left, each once. */
static bool say_notes(const struct run *run)
{
	char line[1024];
	char seen[4096] = "\n";
	FILE *file = fopen(run->dir.notes, "re");
	bool any = false;

	if (!file)
		return false;
	while (fgets(line, sizeof(line), file)) {
		char key[1030];
		line[strcspn(line, "\n")] = '\0';
		for (char *c = line; *c; c++) {
			if ((unsigned char)*c < 0x20)
				*c = '?';
		}
		snprintf(key, sizeof(key), "\n%s\n", line);
		if (!*line || strstr(seen, key))
			continue;
		if (strlen(seen) + strlen(key) < sizeof(seen))
			strcat(seen, key + 1);
		say(run, "%s", line);
		any = true;
	}
	fclose(file);
	return any;
}

static void say_silent(const struct run *run)
{
	struct tickmap_recorder_silent silent[4];
	size_t count = tickmap_recorder_silent(run->recorder, silent, 4);

	for (size_t i = 0; i < count; i++) {
		const char *interpreter = silent[i].interpreter;
		if (run->request->pid_count)
			say(run,
			    "process %d: %s publishes no code map, so its "
			    "Python functions have no names; start it with "
			    "tickmap record -- CMD",
			    (int)silent[i].pid, interpreter);
		else
			say(run,
			    "process %d: %s runs without our extension: its "
			    "environment was cleared (sudo, env -i, -I or -E), "
			    "or it cannot reach our files; its Python "
			    "functions have no names",
			    (int)silent[i].pid, interpreter);
	}
}

/* A publisher that cannot write goes on without a word: the program comes
 * first. We say it. */
static void say_full_folder(const struct run *run)
{
	struct statvfs fs;

	if (!run->dir.path[0] || statvfs(run->dir.path, &fs) || !fs.f_blocks ||
	    fs.f_bavail)
		return;
	say(run,
	    "%s is full: Python functions that were first called after that "
	    "have no names; set TMPDIR to a folder with room",
	    run->dir.path);
}

static void say_refused(void *context, const char *path)
{
	say(context,
	    "%s was there before and stays as it is: perf will not show "
	    "our names for that process",
	    path);
}

static void leave_or_remove(struct run *run)
{
	const struct tickmap_follower *follower =
		tickmap_recorder_follower(run->recorder);
	struct tickmap_error err = { 0 };

	if (!run->dir.path[0])
		return;
	if (!run->request->keep) {
		if (run->python.own_switch)
			tickmap_remove_own_switch_files(follower,
							run->dir.path);
		return;
	}
	int written = tickmap_keep_perf_maps(follower, run->dir.path,
					     say_refused, run, &err);
	if (written < 0)
		tickmap_cli_error(&err, NULL);
	else if (written)
		say(run, "kept %d perf map%s in /tmp and the dumps in %s",
		    written, written == 1 ? "" : "s", run->dir.path);
	if (written)
		tickmap_code_map_dir_leave(&run->dir);
}

static int exit_code(const struct run *run, int failure)
{
	int code = 0;

	if (run->child.pid && run->timed_out)
		code = 0; /* ended by us, as was asked */
	else if (run->child.pid && run->ended)
		code = WIFSIGNALED(run->status) ? 128 + WTERMSIG(run->status)
						: WEXITSTATUS(run->status);
	return failure && !code ? TICKMAP_EXIT_ENVIRONMENT : code;
}

/* "python3 app.py", or "pid 42, 43". */
static void describe(const struct request *request, char *out, size_t size)
{
	size_t used = 0;

	out[0] = '\0';
	for (size_t i = 0; request->argv && request->argv[i] && used < size;
	     i++)
		used += (size_t)snprintf(out + used, size - used, "%s%s",
					 i ? " " : "", request->argv[i]);
	for (size_t i = 0; i < request->pid_count && used < size; i++)
		used += (size_t)snprintf(out + used, size - used, "%s%d",
					 i ? ", " : "pid ",
					 (int)request->pids[i]);
}

static int finish(struct run *run, int failure, struct tickmap_error *err)
{
	struct tickmap_recorder_result result;
	char program[400];
	int status;

	if (failure)
		tickmap_cli_error(err, NULL);
	if (run->child.pid && failure)
		wait_for_command(run);
	else if (run->child.pid)
		end_command(run);
	describe(run->request, program, sizeof(program));
	status = tickmap_recorder_finish(
		run->recorder, (const char *const *)run->argv0,
		(size_t)run->argc0, program, &result, err);
	if (status && !failure)
		tickmap_cli_error(err, NULL);
	give_to_sudo_user(run->request->output);
	say_result(run, &result);
	if (run->request->python && !say_notes(run) && !run->python.note[0])
		say_silent(run);
	say_full_folder(run);
	leave_or_remove(run);
	return exit_code(run, failure ? failure : status);
}

static int open_recorder(struct run *run)
{
	const struct request *request = run->request;
	struct tickmap_recorder_options recording = {
		.output = request->output,
		.frequency = request->frequency,
		.pids = request->pid_count ? request->pids : &run->child.pid,
		.pid_count = request->pid_count ? request->pid_count : 1,
		.launch = !request->pid_count,
	};
	struct tickmap_error err = { 0 };

	if (!tickmap_recorder_open(&recording, &run->recorder, &err))
		return 0;
	return tickmap_refused(&err, request->pid_count ? request->pids[0] : 0);
}

static int start_command(struct run *run)
{
	const struct request *request = run->request;
	struct tickmap_error err = { 0 };
	char **argv = request->argv;
	bool python = request->python;

	if (python && (tickmap_python_prepare(argv, &run->python, &err) ||
		       tickmap_code_map_dir_make(&run->dir, &err))) {
		tickmap_cli_error(&err, NULL);
		return TICKMAP_EXIT_ENVIRONMENT;
	}
	if (run->python.note[0])
		say(run, "%s", run->python.note);
	if (run->python.argv)
		argv = run->python.argv;
	if (!tickmap_child_start(argv, &run->old_mask, run->old_sigchld,
				 python ? &run->python : NULL,
				 python ? &run->dir : NULL, &run->child, &err))
		return 0;
	tickmap_cli_error(&err, NULL);
	return TICKMAP_EXIT_ENVIRONMENT;
}

static int let_go(struct run *run)
{
	int error = tickmap_child_go(&run->child);

	if (!error)
		return 0;
	tickmap_cli_say("%s: %s", run->request->argv[0], strerror(error));
	waitpid(run->child.pid, NULL, 0);
	unlink(run->request->output);
	return error == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
}

/*
 * A recorder that waits for a CPU loses samples: 64 KiB of ring a sample last a
 * tenth of a second. It needs little, so it may go first where it is allowed
 * to; the command, started before, is not touched.
 */
static void be_prompt(void)
{
	if (setpriority(PRIO_PROCESS, 0, -10))
		return; /* without the right: as everybody */
}

static int record(struct run *run)
{
	const struct request *request = run->request;
	struct tickmap_error err = { 0 };
	bool moved = false;
	int code = 0;

	if (request->argv && (code = start_command(run)))
		return code;
	be_prompt();
	code = move_old_away(request->output, &moved);
	if (!code)
		code = open_recorder(run);
	if (code && run->child.pid)
		tickmap_child_cancel(&run->child);
	if (!code && request->argv)
		code = let_go(run);
	if (code) {
		if (moved)
			move_old_back(request->output);
		return code;
	}
	if (request->duration_ns)
		run->stop_at_ns = tickmap_mono_ns() + request->duration_ns;
	int failure = watch(run, &err);
	return finish(run, failure, &err);
}

static int open_signals(struct run *run)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, &run->old_mask);
	/*
	 * An ignored SIGCHLD, inherited, would hide the command's end. A file
	 * size limit is told by write. What a terminal sends to all of us is
	 * the command's business.
	 */
	run->old_sigchld = signal(SIGCHLD, SIG_DFL);
	signal(SIGXFSZ, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	run->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (run->signals >= 0)
		return 0;
	tickmap_cli_say("cannot watch signals: %s", strerror(errno));
	return TICKMAP_EXIT_ENVIRONMENT;
}

int tickmap_cmd_record(int argc, char **argv)
{
	struct request request = {
		.frequency = DEFAULT_HZ,
		.output = TICKMAP_DEFAULT_FILE,
		.python = true,
	};
	struct run run = { .request = &request, .argv0 = argv, .argc0 = argc };
	int code = parse(argc, argv, &request);

	if (code < 0)
		return -1 - code;
	if (!code)
		code = check_command(&request);
	if (!code)
		code = check_pids(&request);
	if (!code)
		code = open_signals(&run);
	if (!code)
		code = record(&run);
	tickmap_recorder_free(run.recorder);
	tickmap_code_map_dir_remove(&run.dir);
	tickmap_python_done(&run.python);
	return code;
}

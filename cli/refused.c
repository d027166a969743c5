/* SPDX-License-Identifier: MIT */
#include "refused.h"

#include "cli.h"
#include "platform/platform.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_RATE "/proc/sys/kernel/perf_event_max_sample_rate"
#define PARANOID "/proc/sys/kernel/perf_event_paranoid"

/* 2: a seccomp filter watches our system calls. */
static int seccomp_mode(void)
{
	FILE *file = fopen("/proc/self/status", "re");
	char line[256];
	int mode = 0;

	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "Seccomp: %d", &mode) == 1)
			break;
	}
	fclose(file);
	return mode;
}

static int foreign_process(pid_t pid)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	return pid && geteuid() != 0 && !stat(path, &st) &&
	       st.st_uid != geteuid();
}

int tickmap_refused(const struct tickmap_error *err, pid_t pid)
{
	char paranoid[32] = "unreadable";
	const char *reason = strerror(err->os_errno);
	if (err->status == TICKMAP_E_LIMIT &&
	    tickmap_read_line(MAX_RATE, paranoid, sizeof(paranoid))) {
		tickmap_cli_say("the kernel samples at most %s times a second "
				"(kernel.perf_event_max_sample_rate); type: "
				"tickmap record -F %s ...   (or raise it with "
				"sudo sysctl)",
				paranoid, paranoid);
		return TICKMAP_EXIT_ENVIRONMENT;
	}
	/* An error with a source is about that file, not about sampling. */
	bool by_permission =
		err->status == TICKMAP_E_OS && !err->source[0] &&
		(err->os_errno == EACCES || err->os_errno == EPERM ||
		 err->os_errno == ENOSYS);

	if (!by_permission) {
		tickmap_cli_error(err, err->source[0]
					       ? "choose another with -o FILE"
					       : NULL);
		return TICKMAP_EXIT_ENVIRONMENT;
	}
	bool readable = tickmap_read_line(PARANOID, paranoid, sizeof(paranoid));
	if (foreign_process(pid))
		tickmap_cli_say("the kernel refuses to sample process %d (%s): "
				"it is another user's; run as that user or "
				"with sudo",
				(int)pid, reason);
	else if (readable && atoi(paranoid) <= 2 && seccomp_mode() == 2)
		tickmap_cli_say("the kernel refuses perf_event_open (%s): a "
				"seccomp filter forbids it here "
				"(kernel.perf_event_paranoid is %s, which "
				"would do); in a container, start it with "
				"--cap-add PERFMON --security-opt "
				"seccomp=unconfined",
				reason, paranoid);
	else if (!readable)
		tickmap_cli_say("the kernel refuses perf_event_open (%s) and "
				"has no setting kernel.perf_event_paranoid: it "
				"is built without perf events, or a sandbox "
				"hides them; run outside of it",
				reason);
	else
		tickmap_cli_say("the kernel refuses to sample (%s): "
				"kernel.perf_event_paranoid is %s; type: sudo "
				"sysctl kernel.perf_event_paranoid=1   (or run "
				"tickmap with sudo)",
				reason, paranoid);
	return TICKMAP_EXIT_ENVIRONMENT;
}

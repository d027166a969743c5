/* SPDX-License-Identifier: MIT */
/* May this machine's kernel symbols name a recording's kernel addresses? */
#include "profile/load.h"

#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

static int64_t now_ns(clockid_t clock)
{
	struct timespec now;

	if (clock_gettime(clock, &now))
		return 0;
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static bool is_feature(const struct tickmap_loader *loader, unsigned feature,
		       const char *text)
{
	const char *recorded =
		tickmap_perfdata_feature_text(loader->data, feature);

	return recorded && !strcmp(recorded, text);
}

/*
 * Addresses of the kernel change at every start. Host and release must be the
 * recorded ones and the file younger than this start; a recording of ours names
 * its boot id instead.
 */
bool tickmap_boot_is_ours(const struct tickmap_loader *loader)
{
	enum { HOSTNAME = 3, OSRELEASE = 4 };
	int64_t boot_ns = now_ns(CLOCK_REALTIME) - now_ns(CLOCK_BOOTTIME);
	struct utsname machine;
	struct stat st;

	return !loader->ours && !uname(&machine) &&
	       is_feature(loader, HOSTNAME, machine.nodename) &&
	       is_feature(loader, OSRELEASE, machine.release) &&
	       !(strcmp(loader->path, "-") ? stat(loader->path, &st)
					   : fstat(STDIN_FILENO, &st)) &&
	       (int64_t)st.st_mtim.tv_sec * 1000000000 > boot_ns;
}

/* SPDX-License-Identifier: MIT */
#include "outfile.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_stdout(const struct tickmap_outfile *file)
{
	return file->stream == stdout;
}

static int fail(struct tickmap_outfile *file, const char *what,
		struct tickmap_error *err)
{
	tickmap_fail_os(err, errno, what);
	tickmap_error_source(err, file->path);
	return TICKMAP_E_OS;
}

static int open_beside(struct tickmap_outfile *file, struct tickmap_error *err)
{
	mode_t mask = umask(0);

	umask(mask);
	if (snprintf(file->temporary, sizeof(file->temporary), "%s.XXXXXX",
		     file->path) >= (int)sizeof(file->temporary)) {
		file->temporary[0] = 0;
		errno = ENAMETOOLONG;
		return fail(file, "cannot write", err);
	}
	int fd = mkstemp(file->temporary);
	if (fd < 0) {
		file->temporary[0] = 0;
		return fail(file, "cannot write", err);
	}
	if (fchmod(fd, 0666 & ~mask) == 0)
		file->stream = fdopen(fd, "w");
	if (!file->stream) {
		int status = fail(file, "cannot write", err);

		close(fd);
		unlink(file->temporary);
		return status;
	}
	return TICKMAP_OK;
}

int tickmap_outfile_open(struct tickmap_outfile *file, const char *path,
			 struct tickmap_error *err)
{
	struct stat st;
	bool exists = stat(path, &st) == 0;

	memset(file, 0, sizeof(*file));
	if (strcmp(path, "-") == 0) {
		snprintf(file->path, sizeof(file->path), "standard output");
		file->stream = stdout;
		return TICKMAP_OK;
	}
	if (!exists || !realpath(path, file->path))
		snprintf(file->path, sizeof(file->path), "%s", path);
	if (!exists || S_ISREG(st.st_mode))
		return open_beside(file, err);
	file->stream = fopen(file->path, "w");
	return file->stream ? TICKMAP_OK : fail(file, "cannot write", err);
}

int tickmap_outfile_commit(struct tickmap_outfile *file,
			   struct tickmap_error *err)
{
	bool good = fflush(file->stream) == 0 && !ferror(file->stream);

	if (is_stdout(file))
		return good ? TICKMAP_OK : fail(file, "cannot write", err);
	int os_errno = errno;
	bool closed = fclose(file->stream) == 0;

	file->stream = NULL;
	if (!good)
		errno = os_errno;
	if (good && closed &&
	    (!file->temporary[0] || rename(file->temporary, file->path) == 0))
		return TICKMAP_OK;
	int status = fail(file, "cannot write", err);
	if (file->temporary[0])
		unlink(file->temporary);
	return status;
}

void tickmap_outfile_drop(struct tickmap_outfile *file)
{
	if (file->stream && !is_stdout(file))
		fclose(file->stream);
	file->stream = NULL;
	if (file->temporary[0])
		unlink(file->temporary);
}

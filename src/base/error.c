/* SPDX-License-Identifier: MIT */
#include "base/error.h"

#include <stdio.h>
#include <string.h>

int tickmap_fail(struct tickmap_error *err, enum tickmap_status status,
		 uint64_t offset, const char *what)
{
	if (err) {
		err->status = status;
		err->os_errno = 0;
		err->offset = offset;
		err->what = what;
	}
	return status;
}

int tickmap_fail_os(struct tickmap_error *err, int os_errno, const char *what)
{
	tickmap_fail(err, TICKMAP_E_OS, 0, what);
	if (err)
		err->os_errno = os_errno;
	return TICKMAP_E_OS;
}

void tickmap_error_source(struct tickmap_error *err, const char *source)
{
	if (!err)
		return;
	size_t length = strlen(source);
	size_t room = sizeof(err->source) - 1;
	if (length > room)
		source += length - room;
	snprintf(err->source, sizeof(err->source), "%s", source);
}

const char *tickmap_error_text(const struct tickmap_error *err, char *out,
			       unsigned long size)
{
	const char *what = err->what ? err->what : "failed";
	const char *source = err->source;
	const char *colon = *source ? ": " : "";

	if (err->status == TICKMAP_E_OS)
		snprintf(out, size, "%s%s%s: %s", source, colon, what,
			 strerror(err->os_errno));
	else if (err->offset)
		snprintf(out, size, "%s%soffset 0x%llx: %s", source, colon,
			 (unsigned long long)err->offset, what);
	else
		snprintf(out, size, "%s%s%s", source, colon, what);
	return out;
}

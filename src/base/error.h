/* SPDX-License-Identifier: MIT */
/* Where and why a call failed. Plain data: no allocation, nothing to free. */
#ifndef TICKMAP_BASE_ERROR_H
#define TICKMAP_BASE_ERROR_H

#include <stdint.h>

/*
 * Every call that can fail returns 0 (or a count) or one of these negative
 * numbers; its last parameter is a struct tickmap_error that may be NULL and is
 * untouched on success.
 */
enum tickmap_status {
	TICKMAP_OK = 0,
	TICKMAP_E_NOMEM = -1,
	TICKMAP_E_OS = -2,	    /* os_errno says which */
	TICKMAP_E_TRUNCATED = -3,   /* the input ends too early */
	TICKMAP_E_FORMAT = -4,	    /* the input contradicts itself */
	TICKMAP_E_UNSUPPORTED = -5, /* well formed, but not for us */
	TICKMAP_E_LIMIT = -6,	    /* larger than a named limit */
	TICKMAP_E_NOT_FOUND = -7,
};

struct tickmap_error {
	enum tickmap_status status;
	int os_errno;	  /* 0 unless status is TICKMAP_E_OS */
	uint64_t offset;  /* byte in `source` where reading stopped */
	const char *what; /* static text: "code size exceeds the record" */
	char source[160]; /* path or label, cut at the front if too long */
};

/* Fill `err` (unless NULL) and return `status`. `what` must be static. */
int tickmap_fail(struct tickmap_error *err, enum tickmap_status status,
		 uint64_t offset, const char *what);

/* The same for a failed system call; `os_errno` is errno's value. */
int tickmap_fail_os(struct tickmap_error *err, int os_errno, const char *what);

/* Name the input once it is known; keeps the end of a long path. */
void tickmap_error_source(struct tickmap_error *err, const char *source);

/*
 * One line for a person: "app.dump: offset 0x1f40: code size exceeds record".
 * Writes at most `size` bytes with the NUL and returns `out`.
 */
const char *tickmap_error_text(const struct tickmap_error *err, char *out,
			       unsigned long size);

#endif

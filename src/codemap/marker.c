/* SPDX-License-Identifier: MIT */
#include "codemap/marker.h"

#include <ctype.h>
#include <string.h>

enum { DUMP_LENGTH = 5, RANDOM_LENGTH = 7 };

static bool ends_in_dump(const char *name, size_t length)
{
	return length > DUMP_LENGTH &&
	       !memcmp(name + length - DUMP_LENGTH, ".dump", DUMP_LENGTH);
}

/* "-XXXXXX", as mkstemp() makes it. */
static bool ends_at_random(const char *name, size_t length)
{
	if (length <= RANDOM_LENGTH || name[length - RANDOM_LENGTH] != '-')
		return false;
	for (size_t i = length - RANDOM_LENGTH + 1; i < length; i++)
		if (!isalnum((unsigned char)name[i]))
			return false;
	return true;
}

/* How much of what follows "jit-" are the numbers; 0: no such name. */
static size_t numbers_in(const char *name, size_t length)
{
	size_t numbers;

	if (ends_in_dump(name, length))
		numbers = length - DUMP_LENGTH;
	else if (ends_at_random(name, length) &&
		 memchr(name, '-', length - RANDOM_LENGTH))
		numbers = length - RANDOM_LENGTH;
	else
		return 0;
	return isdigit((unsigned char)*name) &&
			       strspn(name, "0123456789-") >= numbers
		       ? numbers
		       : 0;
}

static const char *name_in(const char *path, size_t *length)
{
	const char *at = path + *length;

	while (at > path && at[-1] != '/')
		at--;
	*length -= (size_t)(at - path);
	if (*length < 4 || memcmp(at, "jit-", 4) != 0)
		return NULL;
	*length -= 4;
	return at + 4;
}

bool tickmap_is_jitdump_path(const char *path)
{
	static const char deleted[] = " (deleted)";
	size_t length = strlen(path), tail = sizeof(deleted) - 1;

	if (length > tail && !strcmp(path + length - tail, deleted))
		length -= tail;
	const char *name = name_in(path, &length);
	return name && numbers_in(name, length);
}

uint32_t tickmap_jitdump_path_pid(const char *path, size_t length)
{
	const char *name = name_in(path, &length);
	size_t at = name ? numbers_in(name, length) : 0;
	uint64_t pid = 0, place = 1;

	for (; at && isdigit((unsigned char)name[at - 1]) &&
	       place < UINT64_C(10000000000);
	     at--, place *= 10)
		pid += place * (uint64_t)(name[at - 1] - '0');
	return pid <= UINT32_MAX ? (uint32_t)pid : 0;
}

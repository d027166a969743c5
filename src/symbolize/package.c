/* SPDX-License-Identifier: MIT */
/*
 * Which package a file came with, from dpkg's lists: plain text, one path a
 * line, one file a package. Some megabytes are read, once for each hint.
 */
#include "platform/platform.h"
#include "symbolize/internal.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LISTS "/var/lib/dpkg/info"

enum { LIST_LIMIT = 8 * 1024 * 1024 };

static bool lists_path(const char *list, const char *path, size_t length)
{
	for (const char *at = list; (at = strstr(at, path)); at += length)
		if ((at == list || at[-1] == '\n') &&
		    (at[length] == '\n' || !at[length]))
			return true;
	return false;
}

/* "zlib1g:amd64.list" -> "zlib1g" */
static bool package_of_list(const char *list, char *out, size_t size)
{
	size_t length = strlen(list);
	size_t name = strcspn(list, ":");

	if (length < 6 || strcmp(list + length - 5, ".list") != 0)
		return false;
	if (name == length)
		name = length - 5;
	if (name >= size)
		return false;
	memcpy(out, list, name);
	out[name] = '\0';
	return true;
}

static bool search_list(const char *list, const char *path)
{
	char name[512];
	char *text;
	size_t size, length = strlen(path);

	if (snprintf(name, sizeof(name), LISTS "/%s", list) >=
		    (int)sizeof(name) ||
	    tickmap_read_file(name, LIST_LIMIT, &text, &size, NULL) < 0)
		return false;
	bool found = lists_path(text, path, length);
	/* Packages built before /lib became a link to /usr/lib say /lib. */
	if (!found && strncmp(path, "/usr/", 5) == 0)
		found = lists_path(text, path + 4, length - 4);
	free(text);
	return found;
}

bool tickmap_package_of_file(const char *path, char *out, size_t size)
{
	DIR *dir = opendir(LISTS);
	bool found = false;

	if (!dir)
		return false;
	for (struct dirent *e; !found && (e = readdir(dir));)
		found = package_of_list(e->d_name, out, size) &&
			search_list(e->d_name, path);
	closedir(dir);
	return found;
}

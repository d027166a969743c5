/* SPDX-License-Identifier: MIT */
#include "symbolize/internal.h"

#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>

/* The kernel says where it is; how far it goes stands in the list of maps. */
bool tickmap_vdso_image(const void **ret_image, size_t *ret_size)
{
	unsigned long at = getauxval(AT_SYSINFO_EHDR);
	FILE *maps = at ? fopen("/proc/self/maps", "re") : NULL;
	bool found = false;
	char line[512];

	if (!maps)
		return false;
	while (!found && fgets(line, sizeof(line), maps)) {
		unsigned long start, end;
		if (sscanf(line, "%lx-%lx", &start, &end) == 2 && start == at &&
		    end > start && strstr(line, "[vdso]")) {
			*ret_size = end - start;
			found = true;
		}
	}
	fclose(maps);
	memcpy(ret_image, &at, sizeof(*ret_image));
	return found;
}

/* SPDX-License-Identifier: MIT */
/* Any bytes as a name: an answer of bounded length, always. */
#include "symbolize/symbolize.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *raw = malloc(size + 1);
	char *readable;

	if (!raw)
		return 0;
	if (size)
		memcpy(raw, data, size);
	raw[size] = '\0';
	readable = tickmap_demangle(raw);
	if (readable && strlen(readable) > 65536 + strlen("@plt") &&
	    strcmp(readable, raw) != 0)
		abort();
	free(readable);
	free(raw);
	return 0;
}

/* SPDX-License-Identifier: MIT */
/* What docs/howto-jit.md says, called as a runtime would. */
#include "strict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void jit_start(void);
void jit_compiled(const void *entry, size_t size, const char *name);

int main(int argc, char **argv)
{
	static const unsigned char code[] = {
		0x55, 0x48, 0x89, 0xe5, 0x5d, 0xc3
	};
	struct strict_dump dump;
	char path[4096];
	const char *why;

	if (argc != 2)
		return 2;
	jit_compiled(code, sizeof(code), "before the start: nothing happens");
	setenv("JITDUMPDIR", argv[1], 1);
	jit_start();
	jit_compiled(code, sizeof(code), "my_function");
	jit_compiled(code, sizeof(code), "another");
	/* No close: a process that just dies loses nothing. */
	snprintf(path, sizeof(path), "%s/jit-%d.dump", argv[1], getpid());
	why = strict_read_dump(path, false, &dump);
	if (why || dump.code_count != 2 || !dump.codes[1].unwinding ||
	    strcmp(dump.codes[0].name, "my_function")) {
		fprintf(stderr, "%s: %s\n", path, why ? why : "other records");
		return 1;
	}
	strict_free_dump(&dump);
	return 0;
}

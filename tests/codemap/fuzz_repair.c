/* SPDX-License-Identifier: MIT */
/*
 * Any bytes, repaired as a jitdump and as a perf map: a strict reader accepts
 * what comes out, the reader finds nothing to complain of that could have been
 * mended, repairing it once more changes nothing, and no input grows beyond
 * what the missing code that may be made up explains.
 */
#include "../emit/strict.h"
#include "codemap/codemap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct copy {
	uint8_t *bytes;
	size_t size, capacity;
};

static bool take(void *context, const void *bytes, size_t size)
{
	struct copy *copy = context;

	if (copy->size + size > copy->capacity) {
		copy->capacity = 2 * (copy->size + size);
		copy->bytes = realloc(copy->bytes, copy->capacity);
		if (!copy->bytes)
			abort();
	}
	memcpy(copy->bytes + copy->size, bytes, size);
	copy->size += size;
	return true;
}

static void fail(const char *why)
{
	fprintf(stderr, "%s\n", why);
	abort();
}

/* What the strict reader reads. */
static int as_file(const struct copy *copy, char path[64])
{
	int fd = memfd_create("repaired", 0);

	if (fd < 0 || write(fd, copy->bytes, copy->size) != (ssize_t)copy->size)
		fail("no file in memory");
	snprintf(path, 64, "/proc/self/fd/%d", fd);
	return fd;
}

/* It knows the host's byte order and no flags, and has room for so many. */
static void check_strictly(struct copy copy)
{
	static const uint8_t ours[] = { 0x44, 0x54, 0x69, 0x4a };
	struct strict_dump dump;
	char path[64];
	const char *why;
	int fd;

	if (memcmp(copy.bytes, ours, 4) != 0)
		return;
	memset(copy.bytes + 32, 0, 8);
	fd = as_file(&copy, path);
	why = strict_read_dump(path, false, &dump);
	strict_free_dump(&dump);
	close(fd);
	if (why && !strstr(why, "too many"))
		fail(why);
}

static void saw_finding(void *context, const struct tickmap_finding *finding)
{
	/* The machine is not known; the flag is meant; no bytes; a child's or
	 * a namespace's pid; no time. */
	static const char *const meant[] = { "JD005", "JD009", "JD025", "JD029",
					     "JD031" };

	(void)context;
	for (size_t i = 0; i < sizeof(meant) / sizeof(meant[0]); i++)
		if (!strcmp(finding->id, meant[i]))
			return;
	fail(finding->id);
}

static void check_findings(const struct copy *copy)
{
	struct tickmap_code_handler handler = { .finding = saw_finding };
	struct tickmap_jitdump *dump = tickmap_jitdump_new(&handler);

	tickmap_jitdump_feed(dump, copy->bytes, copy->size);
	tickmap_jitdump_end(dump);
	tickmap_jitdump_free(dump);
}

static void check_dump(const uint8_t *data, size_t size)
{
	struct copy once = { 0 }, twice = { 0 };
	struct tickmap_repair_counts counts;

	if (tickmap_jitdump_repair(data, size, 62, take, &once, &counts) !=
	    TICKMAP_REPAIR_DONE)
		goto out;
	if (once.size > 8 * size + counts.filled + 4096)
		fail("grown");
	if (tickmap_jitdump_repair(once.bytes, once.size, 62, take, &twice,
				   &counts) != TICKMAP_REPAIR_DONE)
		fail("the repaired dump is refused");
	if (twice.size != once.size ||
	    memcmp(once.bytes, twice.bytes, once.size) != 0)
		fail("repairing it again changes it");
	if (counts.repeated || counts.renumbered || counts.filled ||
	    counts.sorted || counts.skipped_bytes || counts.unknown)
		fail("there was something left to mend");
	check_findings(&once);
	check_strictly(once);
out:
	free(once.bytes);
	free(twice.bytes);
}

static void check_map(const uint8_t *data, size_t size)
{
	struct copy once = { 0 }, twice = { 0 };
	struct strict_map map;
	char path[64];
	const char *why;
	int fd;

	if (tickmap_perfmap_repair(data, size, take, &once, NULL) !=
		    TICKMAP_REPAIR_DONE ||
	    !once.size)
		goto out;
	if (tickmap_perfmap_repair(once.bytes, once.size, take, &twice, NULL) !=
	    TICKMAP_REPAIR_DONE)
		fail("the repaired map is refused");
	if (twice.size != once.size ||
	    memcmp(once.bytes, twice.bytes, once.size) != 0)
		fail("repairing the map again changes it");
	fd = as_file(&once, path);
	why = strict_read_map(path, false, &map);
	strict_free_map(&map);
	close(fd);
	if (why)
		fail(why);
out:
	free(once.bytes);
	free(twice.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_dump(data, size);
	check_map(data, size);
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * Real recordings of real runtimes, in the folder that TICKMAP_CORPUS names:
 * RUNTIME/CASE with perf.data.xz, the code maps and, per sample, what an
 * independent replay of the dump found at the leaf (script.own.tsv.xz). For
 * perf maps the second opinion is the last line that holds the address, looked
 * for line by line.
 */
#include "profile/profile.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

struct tally {
	unsigned equal, different, left_out;
};

static void unpack(const char *from, const char *name, const char *to)
{
	char command[2048];

	snprintf(command, sizeof(command), "xz -dc '%s/%s' > '%s/%.*s'", from,
		 name, to, (int)(strlen(name) - 3), name);
	assert_int_equal(system(command), 0);
}

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), tail = strlen(end);

	return length >= tail && !strcmp(text + length - tail, end);
}

/* The name of the perf map in it; false: there is no recording. */
static bool unpack_case(const char *from, const char *to, bool *ret_own,
			char map[64])
{
	bool data = false;
	DIR *dir = opendir(from);

	assert_non_null(dir);
	*ret_own = false;
	*map = '\0';
	for (struct dirent *e; (e = readdir(dir));) {
		bool own = !strcmp(e->d_name, "script.own.tsv.xz");
		bool is_map = ends_with(e->d_name, ".map.xz");
		if (!own && !is_map && strcmp(e->d_name, "perf.data.xz") != 0 &&
		    !ends_with(e->d_name, ".dump.xz"))
			continue;
		unpack(from, e->d_name, to);
		*ret_own |= own;
		data |= !strcmp(e->d_name, "perf.data.xz");
		if (is_map)
			snprintf(map, 64, "%.*s", (int)(strlen(e->d_name) - 3),
				 e->d_name);
	}
	closedir(dir);
	return data;
}

static const struct tickmap_frame *leaf_of(const struct tickmap_profile *p,
					   size_t sample)
{
	uint32_t node = p->samples.items[sample].node;

	return &p->frames.items[p->nodes.items[node].frame];
}

static bool is_published(const struct tickmap_frame *f)
{
	return f->kind == TICKMAP_FRAME_PYTHON || f->kind == TICKMAP_FRAME_JIT;
}

/* The sample of that time, thread and address, or -1. */
static long find_sample(const struct tickmap_profile *p, uint64_t time_ns,
			uint32_t tid, uint64_t ip)
{
	size_t low = 0, high = p->samples.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (p->samples.items[middle].time_ns < time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	for (;
	     low < p->samples.count && p->samples.items[low].time_ns == time_ns;
	     low++) {
		const struct tickmap_profile_sample *s = &p->samples.items[low];
		if (s->avma == ip && p->threads.items[s->thread].tid == tid)
			return (long)low;
	}
	return -1;
}

static const char *name_of(const struct tickmap_profile *p,
			   const struct tickmap_frame *f)
{
	return tickmap_string(p->strings, f->name, NULL);
}

static void compare_row(const struct tickmap_profile *p, char *row,
			bool has_map, struct tally *tally)
{
	char *fields[6] = { 0 };
	size_t count = 0;

	row[strcspn(row, "\n")] = '\0';
	for (char *at = row; at && count < 6;)
		fields[count++] = strsep(&at, "\t");
	if (count < 6 || *row == '#')
		return;
	long sample = find_sample(p, strtoull(fields[0], NULL, 10),
				  (uint32_t)strtoul(fields[2], NULL, 10),
				  strtoull(fields[3], NULL, 16));
	if (sample < 0) {
		print_error("no sample at %s\n", fields[0]);
		tally->different++;
		return;
	}
	const struct tickmap_frame *f = leaf_of(p, (size_t)sample);
	bool hit = !strcmp(fields[5], "hit");
	/* Before its load: we may say it within the slack. In a perf map:
	 * the replay did not look there. A 32-bit node writes addresses with
	 * their sign extended: the replay took them as they are. */
	if (!strcmp(fields[5], "later") || (!hit && has_map) ||
	    (!hit && p->samples.items[sample].avma >> 31 == 1 &&
	     is_published(f))) {
		tally->left_out++;
		return;
	}
	bool equal = hit ? is_published(f) && !strcmp(name_of(p, f), fields[4])
			 : !is_published(f);
	if (!equal && tally->different < 3)
		print_error("%s %s: %s, we say %s\n", fields[0], fields[5],
			    fields[4], name_of(p, f));
	tally->equal += equal;
	tally->different += !equal;
}

static void compare_with_replay(const struct tickmap_profile *p,
				const char *dir, bool has_map,
				struct tally *tally)
{
	char path[512], *line = NULL;
	size_t room = 0;

	snprintf(path, sizeof(path), "%s/script.own.tsv", dir);
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	while (getline(&line, &room, file) > 0)
		compare_row(p, line, has_map, tally);
	free(line);
	fclose(file);
}

/* The last line that holds the address: its name, in `name`. */
static bool look_in_map(FILE *map, uint64_t avma, char *name, size_t size)
{
	char *line = NULL;
	size_t room = 0;
	bool found = false;

	rewind(map);
	while (getline(&line, &room, map) > 0) {
		char *at;
		uint64_t start = strtoull(line, &at, 16);
		uint64_t length = strtoull(at, &at, 16);
		if (*at != ' ' || avma - start >= length)
			continue;
		at[strcspn(at, "\n")] = '\0';
		snprintf(name, size, "%s", at + 1);
		found = true;
	}
	free(line);
	return found;
}

static void compare_with_map(const struct tickmap_profile *p, const char *dir,
			     const char *name, struct tally *tally)
{
	char path[512], expected[16384];
	uint32_t pid = (uint32_t)strtoul(name + strlen("perf-"), NULL, 10);

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	FILE *map = fopen(path, "r");
	assert_non_null(map);
	for (size_t i = 0; i < p->samples.count; i++) {
		const struct tickmap_profile_sample *s = &p->samples.items[i];
		const struct tickmap_frame *f = leaf_of(p, i);
		if (p->threads.items[s->thread].pid != pid ||
		    f->kind == TICKMAP_FRAME_KERNEL) {
			tally->left_out++;
			continue;
		}
		bool found =
			look_in_map(map, s->avma, expected, sizeof(expected));
		bool equal = is_published(f) == found &&
			     (!found || !strcmp(expected, name_of(p, f)));
		if (!equal && tally->different < 3)
			print_error("%llx: map %s, we say %s\n",
				    (unsigned long long)s->avma,
				    found ? expected : "-", name_of(p, f));
		tally->equal += equal;
		tally->different += !equal;
	}
	fclose(map);
}

static void remove_all(const char *dir)
{
	char command[512];

	snprintf(command, sizeof(command), "rm -r '%s'", dir);
	assert_int_equal(system(command), 0);
}

static void run_case(const char *from, const char *label, struct tally *all)
{
	char dir[] = "/tmp/tickmap-corpus-XXXXXX", path[64], map[64];
	struct tally tally = { 0 };
	struct tickmap_profile *p = NULL;
	bool own;

	assert_non_null(mkdtemp(dir));
	if (unpack_case(from, dir, &own, map)) {
		snprintf(path, sizeof(path), "%s/perf.data", dir);
		assert_int_equal(tickmap_profile_load(path, NULL, &p, NULL), 0);
		if (own)
			compare_with_replay(p, dir, *map, &tally);
		else if (*map)
			compare_with_map(p, dir, map, &tally);
		print_message("%-34s %5u of %5u leaves equal, %5u left out; "
			      "jit %llu of %llu\n",
			      label, tally.equal, tally.equal + tally.different,
			      tally.left_out,
			      (unsigned long long)p->jit_resolved,
			      (unsigned long long)p->jit_samples);
		tickmap_profile_free(p);
	}
	remove_all(dir);
	all->equal += tally.equal;
	all->different += tally.different;
	all->left_out += tally.left_out;
}

static bool is_dir(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

static void each_case(const char *corpus, const char *runtime,
		      struct tally *all)
{
	char folder[512], label[800], path[1400];

	snprintf(folder, sizeof(folder), "%s/%s", corpus, runtime);
	DIR *cases = is_dir(folder) ? opendir(folder) : NULL;
	for (struct dirent *c; cases && (c = readdir(cases));) {
		snprintf(label, sizeof(label), "%s/%s", runtime, c->d_name);
		snprintf(path, sizeof(path), "%s/%s", corpus, label);
		if (c->d_name[0] != '.' && is_dir(path))
			run_case(path, label, all);
	}
	if (cases)
		closedir(cases);
}

static void real_recordings_get_the_names_of_an_independent_replay(void **state)
{
	const char *corpus = getenv("TICKMAP_CORPUS");
	struct tally all = { 0 };

	(void)state;
	if (!corpus) {
		print_message("TICKMAP_CORPUS does not name a folder of real "
			      "recordings\n");
		skip();
	}
	DIR *runtimes = opendir(corpus);
	assert_non_null(runtimes);
	for (struct dirent *r; (r = readdir(runtimes));)
		if (r->d_name[0] != '.')
			each_case(corpus, r->d_name, &all);
	closedir(runtimes);
	print_message("%u of %u leaves equal, %u left out\n", all.equal,
		      all.equal + all.different, all.left_out);
	assert_true(all.equal > 0);
	assert_int_equal(all.different, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			real_recordings_get_the_names_of_an_independent_replay),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

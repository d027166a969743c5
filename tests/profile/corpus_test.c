/* SPDX-License-Identifier: MIT */
/*
 * Real recordings of real runtimes, in the folder that TICKMAP_CORPUS names:
 * RUNTIME/CASE with perf.data.xz, the code maps and, sample by sample, what
 * others say:
 *
 *	script.*-inject.tsv.xz  perf with the dump injected: every frame in it
 *	script.plain.tsv.xz     perf with the perf map: every frame in it
 *	script.own.tsv.xz       an independent replay of the dump: the leaf
 *	the map itself          the last line that holds the leaf
 */
#include "codemap/codemap.h"
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

#define SCRIPTS_MAX 8

struct files {
	bool data, own;
	char map[64];
	char scripts[SCRIPTS_MAX][64], dumps[SCRIPTS_MAX][64];
	unsigned script_count, dump_count;
	bool injected;
};

static void unpack_case(const char *from, const char *to, struct files *files)
{
	DIR *dir = opendir(from);

	assert_non_null(dir);
	memset(files, 0, sizeof(*files));
	for (struct dirent *e; (e = readdir(dir));) {
		const char *name = e->d_name;
		if (!ends_with(name, ".xz"))
			continue;
		unpack(from, name, to);
		files->own |= !strcmp(name, "script.own.tsv.xz");
		files->data |= !strcmp(name, "perf.data.xz");
		files->injected |= ends_with(name, "-inject.tsv.xz");
		if (ends_with(name, ".map.xz"))
			snprintf(files->map, sizeof(files->map), "%.*s",
				 (int)(strlen(name) - 3), name);
		if (ends_with(name, ".dump.xz") &&
		    files->dump_count < SCRIPTS_MAX)
			snprintf(files->dumps[files->dump_count++], 64, "%.*s",
				 (int)(strlen(name) - 3), name);
		if (!strncmp(name, "script.", 7) &&
		    strcmp(name, "script.own.tsv.xz") != 0 &&
		    files->script_count < SCRIPTS_MAX)
			snprintf(files->scripts[files->script_count++], 64,
				 "%.*s", (int)(strlen(name) - 3), name);
	}
	closedir(dir);
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

/* ---- The map itself ---- */

struct line {
	uint64_t start, size;
	char *name;
	bool doubted; /* another line has some of its addresses */
};

struct map {
	struct line *lines;
	size_t count;
	uint64_t *loads; /* of dumps: where they begin */
	size_t load_count;
};

static void doubt_overlaps(struct map *map)
{
	for (size_t i = 0; i < map->count; i++) {
		struct line *a = &map->lines[i];
		for (size_t j = i + 1; j < map->count; j++) {
			struct line *b = &map->lines[j];
			if (a->start - b->start >= b->size &&
			    b->start - a->start >= a->size)
				continue;
			a->doubted |= strcmp(a->name, b->name) != 0;
			b->doubted |= strcmp(a->name, b->name) != 0;
		}
	}
}

static void read_map(const char *dir, const char *name, struct map *map)
{
	char path[512], *line = NULL;
	size_t room = 0, space = 0;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	for (ssize_t n; (n = getline(&line, &room, file)) > 0;) {
		char *at;
		uint64_t start = strtoull(line, &at, 16);
		uint64_t size = at == line ? 0 : strtoull(at, &at, 16);
		/* A last line without its end was cut. */
		if (!size || *at != ' ' || line[n - 1] != '\n')
			continue;
		line[n - 1] = '\0';
		if (map->count == space) {
			space = space ? 2 * space : 1024;
			map->lines = realloc(map->lines,
					     space * sizeof(*map->lines));
			assert_non_null(map->lines);
		}
		map->lines[map->count++] = (struct line) {
			.start = start, .size = size, .name = strdup(at + 1)
		};
	}
	free(line);
	fclose(file);
	doubt_overlaps(map);
}

static void free_map(struct map *map)
{
	for (size_t i = 0; i < map->count; i++)
		free(map->lines[i].name);
	free(map->lines);
	free(map->loads);
}

/* The last line that holds the address. */
static const struct line *line_at(const struct map *map, uint64_t avma)
{
	for (size_t i = map->count; i-- > 0;)
		if (avma - map->lines[i].start < map->lines[i].size)
			return &map->lines[i];
	return NULL;
}

/* Some line of that name shares addresses with another one: perf keeps one of
 * them by its own rules. */
static bool is_doubted(const struct map *map, const char *name)
{
	for (size_t i = 0; i < map->count; i++)
		if (map->lines[i].doubted && !strcmp(map->lines[i].name, name))
			return true;
	return false;
}

static bool begins_code(const struct map *map, uint64_t avma)
{
	for (size_t i = 0; i < map->count; i++)
		if (map->lines[i].start == avma)
			return true;
	for (size_t i = 0; i < map->load_count; i++)
		if (map->loads[i] == avma)
			return true;
	return false;
}

static void saw_code(void *context, const struct tickmap_code_event *event)
{
	struct map *map = context;

	map->loads = realloc(map->loads,
			     (map->load_count + 1) * sizeof(*map->loads));
	assert_non_null(map->loads);
	map->loads[map->load_count++] = event->avma;
}

static void saw_finding(void *context, const struct tickmap_finding *finding)
{
	(void)context;
	(void)finding;
}

/* Only where functions begin. */
static void read_dump(const char *dir, const char *name, struct map *map)
{
	struct tickmap_code_handler handler = { .context = map,
						.code = saw_code,
						.finding = saw_finding };
	struct tickmap_jitdump *dump = tickmap_jitdump_new(&handler);
	static char block[1 << 16];
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	FILE *file = fopen(path, "r");
	assert_true(file && dump);
	for (size_t n; (n = fread(block, 1, sizeof(block), file)) > 0;)
		tickmap_jitdump_feed(dump, block, n);
	tickmap_jitdump_end(dump);
	tickmap_jitdump_free(dump);
	fclose(file);
}

/* ---- The replay ---- */

static void compare_row(const struct tickmap_profile *p, char *row,
			const struct map *map, struct tally *tally)
{
	char *fields[6] = { 0 };
	size_t count = 0;

	row[strcspn(row, "\n")] = '\0';
	for (char *at = row; at && count < 6;)
		fields[count++] = strsep(&at, "\t");
	if (count < 6 || *row == '#')
		return;
	uint64_t avma = strtoull(fields[3], NULL, 16);
	long sample = find_sample(p, strtoull(fields[0], NULL, 10),
				  (uint32_t)strtoul(fields[2], NULL, 10), avma);
	if (sample < 0) {
		print_error("no sample at %s\n", fields[0]);
		tally->different++;
		return;
	}
	const struct tickmap_frame *f = leaf_of(p, (size_t)sample);
	bool hit = !strcmp(fields[5], "hit");
	/* The replay did not look into the map. */
	const struct line *line = hit || f->kind == TICKMAP_FRAME_KERNEL
					  ? NULL
					  : line_at(map, avma);
	/* Before its load: we may say it within the slack. A 32-bit node
	 * writes addresses with their sign extended: the replay took them as
	 * they are. */
	bool later = !strcmp(fields[5], "later");
	bool other_clock = strcmp(p->clock.method, "same") != 0;
	if ((later && !other_clock) || (line && line->doubted) ||
	    (!hit && avma >> 31 == 1 && is_published(f))) {
		tally->left_out++;
		return;
	}
	/* Of another clock the replay knows nothing. */
	if (f->reason == TICKMAP_UNRESOLVED_CLOCK) {
		tally->left_out++;
		return;
	}
	const char *expected = hit || later ? fields[4]
			       : line	    ? line->name
					    : NULL;
	bool equal =
		expected ? is_published(f) && !strcmp(name_of(p, f), expected)
			 : !is_published(f);
	if (!equal && tally->different < 3)
		print_error("%s %s: %s, we say %s\n", fields[0], fields[5],
			    fields[4], name_of(p, f));
	tally->equal += equal;
	tally->different += !equal;
}

static void compare_with_replay(const struct tickmap_profile *p,
				const char *dir, const struct map *map,
				struct tally *tally)
{
	char path[512], *line = NULL;
	size_t room = 0;

	snprintf(path, sizeof(path), "%s/script.own.tsv", dir);
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	while (getline(&line, &room, file) > 0)
		compare_row(p, line, map, tally);
	free(line);
	fclose(file);
}

static void compare_with_map(const struct tickmap_profile *p,
			     const struct map *map, uint32_t pid,
			     struct tally *tally)
{
	for (size_t i = 0; i < p->samples.count; i++) {
		const struct tickmap_profile_sample *s = &p->samples.items[i];
		const struct tickmap_frame *f = leaf_of(p, i);
		if (p->threads.items[s->thread].pid != pid ||
		    f->kind == TICKMAP_FRAME_KERNEL) {
			tally->left_out++;
			continue;
		}
		const struct line *line = line_at(map, s->avma);
		bool equal = is_published(f) == !!line &&
			     (!line || !strcmp(line->name, name_of(p, f)));
		if (!equal && tally->different < 3)
			print_error("%llx: map %s, we say %s\n",
				    (unsigned long long)s->avma,
				    line ? line->name : "-", name_of(p, f));
		tally->equal += equal;
		tally->different += !equal;
	}
}

/* ---- perf ---- */

/* Tabs and newlines are written out in the files. */
static void write_out(const char *name, char *out, size_t size)
{
	size_t at = 0;

	for (; *name && at + 3 < size; name++) {
		const char *plain = "\t\n\r", *code = "tnr";
		const char *is = strchr(plain, *name);
		if (is)
			out[at++] = '\\';
		out[at++] = is ? code[is - plain] : *name;
	}
	out[at] = '\0';
}

static const char *java_type(const char *at, char *out, size_t size)
{
	static const char codes[] = "BCDFIJSZV";
	static const char *const words[] = { "byte",  "char",	 "double",
					     "float", "int",	 "long",
					     "short", "boolean", "void" };
	size_t length = strlen(out);

	at += strspn(at, "[");
	const char *code = *at ? strchr(codes, *at) : NULL;
	if (code) {
		snprintf(out + length, size - length, "%s",
			 words[code - codes]);
		at++;
	} else if (*at == 'L') {
		for (at++; *at && *at != ';' && length + 2 < size; at++)
			out[length++] = *at == '/' ? '.' : *at;
		out[length] = '\0';
		at += *at == ';';
	}
	return at;
}

/* "LWl;hot(I[J)V" as perf writes it: "Wl.hot(int, long[])", without the
 * brackets, which perf does not write for arrays of objects. */
static void demangle_java(const char *name, char *out, size_t size)
{
	const char *at = name;

	*out = '\0';
	if (*name != 'L' || !strchr(name, ';') || !strchr(name, '('))
		return;
	at = java_type(at, out, size);
	size_t length = strlen(out), left = strcspn(at, "(");
	snprintf(out + length, size - length, ".%.*s(", (int)left, at);
	at += left + 1;
	for (bool first = true; *at && *at != ')'; first = false) {
		length = strlen(out);
		if (!first)
			snprintf(out + length, size - length, ", ");
		const char *next = java_type(at, out, size);
		if (next == at)
			break;
		at = next;
	}
	length = strlen(out);
	snprintf(out + length, size - length, ")");
}

static bool same_name(const char *ours, const char *theirs)
{
	char text[16384];

	write_out(ours, text, sizeof(text));
	if (!strcmp(text, theirs))
		return true;
	demangle_java(ours, text, sizeof(text));
	const char *at = text;
	for (; *at && *theirs; theirs++)
		if (*theirs != '[' && *theirs != ']' && *at++ != *theirs)
			return false;
	return !*at && !theirs[strspn(theirs, "[]")];
}

/* The next node with that name from `node` on towards the root; 0: none. */
static uint32_t find_name(const struct tickmap_profile *p, uint32_t node,
			  const char *name)
{
	for (; node; node = p->nodes.items[node].parent) {
		const struct tickmap_frame *f =
			&p->frames.items[p->nodes.items[node].frame];
		if (is_published(f) && same_name(name_of(p, f), name))
			return node;
	}
	return 0;
}

/* The first frame's name and those of its callers, in their order. */
static void compare_frames(const struct tickmap_profile *p, size_t sample,
			   char *frames, const struct map *map,
			   struct tally *tally)
{
	uint32_t node = p->samples.items[sample].node;
	bool leaf = true;

	for (char *frame; (frame = strsep(&frames, "\t")); leaf = false) {
		char *dso = strrchr(frame, '|'), *name;
		uint64_t ip = strtoull(frame, &name, 16);
		if (!dso || *name != ' ' ||
		    (strcmp(dso, "|jitted") != 0 &&
		     strncmp(dso, "|perf-", 6) != 0))
			continue;
		*dso = '\0';
		name++;
		if (!strcmp(name, "[unknown]"))
			continue;
		uint32_t found = find_name(p, node, name);
		/* perf looks return addresses up as they are: one that is the
		 * first byte of a function is that of the call before. */
		bool left_out = is_doubted(map, name) ||
				(!leaf && (ip == 0x80 || begins_code(map, ip)));
		if (found && (!leaf || found == node)) {
			tally->equal++;
			node = p->nodes.items[found].parent;
		} else if (left_out) {
			tally->left_out++;
		} else {
			if (tally->different++ < 3)
				print_error("perf says %s at %llx\n", name,
					    (unsigned long long)ip);
			return;
		}
	}
}

static long sample_at(const struct tickmap_profile *p, const char *seconds,
		      uint32_t tid)
{
	char *at;
	uint64_t ns = strtoull(seconds, &at, 10) * UINT64_C(1000000000);

	ns += *at == '.' ? strtoull(at + 1, NULL, 10) : 0;
	for (size_t low = 0, high = p->samples.count;;) {
		while (low < high) {
			size_t middle = low + (high - low) / 2;
			if (p->samples.items[middle].time_ns < ns)
				low = middle + 1;
			else
				high = middle;
		}
		for (; low < p->samples.count &&
		       p->samples.items[low].time_ns == ns;
		     low++)
			if (p->threads.items[p->samples.items[low].thread]
				    .tid == tid)
				return (long)low;
		return -1;
	}
}

static void compare_with_perf(const struct tickmap_profile *p, const char *dir,
			      const char *name, const struct map *map,
			      struct tally *tally)
{
	char path[512], *line = NULL;
	size_t room = 0;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	while (getline(&line, &room, file) > 0) {
		char *at = line;
		line[strcspn(line, "\n")] = '\0';
		const char *seconds = strsep(&at, "\t");
		const char *pid = strsep(&at, "\t");
		const char *tid = strsep(&at, "\t");
		if (*line == '#' || !pid || !tid || !at)
			continue;
		long sample =
			sample_at(p, seconds, (uint32_t)strtoul(tid, NULL, 10));
		if (sample < 0) {
			print_error("no sample at %s\n", seconds);
			tally->different++;
			continue;
		}
		compare_frames(p, (size_t)sample, at, map, tally);
	}
	free(line);
	fclose(file);
}

static void remove_all(const char *dir)
{
	char command[512];

	snprintf(command, sizeof(command), "rm -r '%s'", dir);
	assert_int_equal(system(command), 0);
}

static void add(struct tally *sum, const struct tally *tally, const char *label,
		const char *oracle)
{
	print_message("%-34s %-24s %6u of %6u equal, %5u left out\n", label,
		      oracle, tally->equal, tally->equal + tally->different,
		      tally->left_out);
	sum->equal += tally->equal;
	sum->different += tally->different;
	sum->left_out += tally->left_out;
}

static void check_clock(const struct tickmap_profile *p, const char *label)
{
	print_message(
		"%-34s clock %s, %s; jit %llu of %llu, `clock` %llu\n", label,
		p->clock.domain, p->clock.method,
		(unsigned long long)p->jit_resolved,
		(unsigned long long)p->jit_samples,
		(unsigned long long)p->unresolved[TICKMAP_UNRESOLVED_CLOCK]);
	/* Only where clocks differ may they be to blame. */
	if (!strcmp(p->clock.method, "same"))
		assert_int_equal(p->unresolved[TICKMAP_UNRESOLVED_CLOCK], 0);
	if (!strcmp(p->clock.domain, "monotonic"))
		assert_string_equal(p->clock.method, "same");
}

static void run_oracles(const struct tickmap_profile *p, const char *dir,
			const struct files *files, const char *label,
			struct tally *all)
{
	struct map map = { 0 };
	struct tally tally = { 0 };

	if (*files->map)
		read_map(dir, files->map, &map);
	for (unsigned i = 0; i < files->dump_count; i++)
		read_dump(dir, files->dumps[i], &map);
	if (files->own) {
		compare_with_replay(p, dir, &map, &tally);
		add(all, &tally, label, "replay");
	} else if (*files->map) {
		compare_with_map(p, &map,
				 (uint32_t)strtoul(files->map + 5, NULL, 10),
				 &tally);
		add(all, &tally, label, "map");
	}
	for (unsigned i = 0; i < files->script_count; i++) {
		tally = (struct tally) { 0 };
		/* Without the dump injected perf says less. */
		if (files->injected &&
		    !strcmp(files->scripts[i], "script.plain.tsv"))
			continue;
		compare_with_perf(p, dir, files->scripts[i], &map, &tally);
		add(all, &tally, label, files->scripts[i]);
	}
	free_map(&map);
}

static void run_case(const char *from, const char *label, struct tally *all)
{
	char dir[] = "/tmp/tickmap-corpus-XXXXXX", path[64];
	struct tickmap_profile *p = NULL;
	struct files files;

	assert_non_null(mkdtemp(dir));
	unpack_case(from, dir, &files);
	if (files.data) {
		snprintf(path, sizeof(path), "%s/perf.data", dir);
		assert_int_equal(tickmap_profile_load(path, NULL, &p, NULL), 0);
		check_clock(p, label);
		run_oracles(p, dir, &files, label, all);
		tickmap_profile_free(p);
	} else {
		print_message("%-34s has no recording\n", label);
	}
	remove_all(dir);
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

static void real_recordings_get_the_names_that_others_give(void **state)
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
	print_message("%u of %u names equal, %u left out\n", all.equal,
		      all.equal + all.different, all.left_out);
	assert_true(all.equal > 0);
	assert_int_equal(all.different, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			real_recordings_get_the_names_that_others_give),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

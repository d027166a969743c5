/* SPDX-License-Identifier: MIT */
/*
 * Where the code maps of a foreign recording lie. By name, in this order:
 * folders that the user names, the recording's own folder, then where the
 * process had them: a dump's marker says the path, a perf map lies in /tmp.
 *
 * Everybody may write to /tmp, and pids come again. A perf map is taken from
 * there only if it is a regular file of this user or root, changed after its
 * process started and, if that is over, not after its end.
 */
#include "profile/load.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TMP_DIR "/tmp"
/* A file's time is taken from a coarser clock, and the recording's own file is
 * closed some time after its last record. */
#define FILE_TIME_SLACK_NS INT64_C(2000000000)

struct finder {
	struct tickmap_loader *loader;
	char beside[PATH_MAX];
	bool beside_is_tmp;
	int64_t end_wall_ns;	      /* of the recording, by its file's time */
	struct tickmap_table carried; /* pids with embedded code maps */
};

static int64_t mtime_ns(const struct stat *st)
{
	return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

static bool same_folder(const char *a, const char *b)
{
	struct stat x, y;

	return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev &&
	       x.st_ino == y.st_ino;
}

static void init(struct finder *finder, struct tickmap_loader *loader)
{
	const char *slash = strrchr(loader->path, '/');
	struct stat st;

	*finder = (struct finder) { .loader = loader };
	if (!slash)
		strcpy(finder->beside, ".");
	else
		snprintf(
			finder->beside, sizeof(finder->beside), "%.*s",
			(int)(slash == loader->path ? 1 : slash - loader->path),
			loader->path);
	finder->beside_is_tmp = same_folder(finder->beside, TMP_DIR);
	if (!stat(loader->path, &st))
		finder->end_wall_ns = mtime_ns(&st);
}

/* Is it this process's, as far as times tell? */
static bool fits_life(const struct finder *finder,
		      const struct tickmap_process *process,
		      const struct stat *st)
{
	int64_t end = (int64_t)finder->loader->last_ns;
	int64_t file = mtime_ns(st);

	if (process->start_ns &&
	    file < finder->end_wall_ns - (end - (int64_t)process->start_ns) -
			    FILE_TIME_SLACK_NS)
		return false;
	return !process->exit_ns ||
	       file <= finder->end_wall_ns - (end - (int64_t)process->exit_ns) +
			       FILE_TIME_SLACK_NS;
}

/* A descriptor, or -1. `strict`: the folder is everybody's. */
static int open_map(const struct finder *finder, const char *path,
		    const struct tickmap_process *process, bool strict)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY |
				    (strict ? O_NOFOLLOW : 0));
	struct stat st;

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) ||
	    (strict && st.st_uid != geteuid() && st.st_uid != 0) ||
	    (strict && !fits_life(finder, process, &st))) {
		close(fd);
		return -1;
	}
	return fd;
}

static int open_in(const struct finder *finder, const char *dir,
		   const char *name, const struct tickmap_process *process,
		   bool strict, char path[PATH_MAX])
{
	int length = snprintf(path, PATH_MAX, "%s/%s", dir, name);

	if (length < 0 || length >= PATH_MAX)
		return -1;
	return open_map(finder, path, process, strict);
}

/* By name in the user's folders and beside the recording. */
static int open_near(const struct finder *finder, const char *name,
		     const struct tickmap_process *process, char path[PATH_MAX])
{
	const struct tickmap_profile_options *options = finder->loader->options;
	int fd = -1;

	for (size_t i = 0; fd < 0 && i < options->code_map_dir_count; i++)
		fd = open_in(finder, options->code_map_dirs[i], name, process,
			     false, path);
	return fd >= 0 ? fd
		       : open_in(finder, finder->beside, name, process,
				 finder->beside_is_tmp, path);
}

static bool read_opened(struct finder *finder, int fd, const char *path,
			uint32_t pid, uint64_t known_ns, bool perf_map)
{
	bool good = tickmap_codemaps_file(finder->loader, fd, path, pid,
					  known_ns, perf_map);

	close(fd);
	return good;
}

static bool is_repeated(const struct tickmap_loader *loader, size_t event)
{
	const struct tickmap_side *e = &loader->side.items[event];
	tickmap_str path = loader->maps.items[e->map].path;

	for (size_t i = 0; i < loader->sources.count; i++) {
		const struct tickmap_source *s = &loader->sources.items[i];
		if (!s->perf_map && s->pid == e->pid && s->marker == path)
			return true;
	}
	return false;
}

static bool find_marked(struct finder *finder, size_t event)
{
	struct tickmap_loader *loader = finder->loader;
	const struct tickmap_side *e = &loader->side.items[event];
	tickmap_str marker = loader->maps.items[e->map].path;
	const char *marked =
		tickmap_string(loader->profile->strings, marker, NULL);
	const char *slash = strrchr(marked, '/');
	uint32_t index =
		tickmap_profile_process_known(loader, e->pid, e->time_ns);
	char path[PATH_MAX];

	if (is_repeated(loader, event) || index == TICKMAP_NONE)
		return true;
	const struct tickmap_process *process = &loader->processes.items[index];
	int fd = open_near(finder, slash ? slash + 1 : marked, process, path);
	if (fd < 0 && marked[0] == '/') {
		snprintf(path, sizeof(path), "%s", marked);
		fd = open_map(finder, path, process, true);
	}
	if (fd < 0)
		return tickmap_codemaps_finding(loader, "CM002",
						"a jitdump that a process "
						"wrote is not here",
						marker, 0);
	size_t sources = loader->sources.count;
	bool good = read_opened(finder, fd, path, e->pid, e->time_ns, false);
	if (loader->sources.count > sources)
		loader->sources.items[sources].marker = marker;
	return good;
}

static bool find_by_pid(struct finder *finder,
			const struct tickmap_process *process, bool has_dump)
{
	uint64_t known = tickmap_profile_process_code_ns(process);
	char name[32], path[PATH_MAX];
	int fd;

	/* Some runtimes write a dump without a marker. */
	snprintf(name, sizeof(name), "jit-%u.dump", process->pid);
	fd = has_dump ? -1 : open_near(finder, name, process, path);
	if (fd >= 0 &&
	    !read_opened(finder, fd, path, process->pid, known, false))
		return false;
	snprintf(name, sizeof(name), "perf-%u.map", process->pid);
	fd = open_near(finder, name, process, path);
	if (fd < 0)
		fd = open_in(finder, TMP_DIR, name, process, true, path);
	return fd < 0 ||
	       read_opened(finder, fd, path, process->pid, known, true);
}

bool tickmap_mapfiles_find(struct tickmap_loader *loader)
{
	struct finder finder;
	struct tickmap_table with_source = { 0 }; /* pid -> has a dump */
	bool good = true;

	init(&finder, loader);
	/* What a recording carries is complete: nothing else is looked for. */
	for (size_t i = 0; i < loader->sources.count; i++)
		good = good && tickmap_table_put(&finder.carried,
						 loader->sources.items[i].pid);
	/* So are perf inject's images of all functions. */
	for (size_t i = 0; good && i < loader->processes.count; i++)
		if (loader->images.count &&
		    tickmap_jitted_complete(loader,
					    loader->processes.items[i].pid))
			good = tickmap_table_put(
				&finder.carried,
				loader->processes.items[i].pid);
	for (size_t i = 0; good && i < loader->side.count; i++) {
		const struct tickmap_side *e = &loader->side.items[i];
		if (e->kind == TICKMAP_SIDE_MAP &&
		    loader->maps.items[e->map].marker &&
		    !tickmap_table_get(&finder.carried, e->pid))
			good = find_marked(&finder, i);
	}
	for (size_t i = 0; good && i < loader->sources.count; i++)
		good = tickmap_table_put(&with_source,
					 loader->sources.items[i].pid);
	/* Only processes that were sampled. */
	for (size_t i = 1; good && i < loader->stacks.all.count; i++) {
		const struct tickmap_stack *s = &loader->stacks.all.items[i];
		if (s->kind != TICKMAP_STACK_PROCESS)
			continue;
		uint32_t pid = (uint32_t)s->avma;
		uint32_t index =
			tickmap_profile_process_known(loader, pid, UINT64_MAX);
		if (index == TICKMAP_NONE ||
		    tickmap_table_get(&finder.carried, pid))
			continue;
		good = find_by_pid(&finder, &loader->processes.items[index],
				   tickmap_table_get(&with_source, pid));
	}
	tickmap_table_free(&with_source);
	tickmap_table_free(&finder.carried);
	return good;
}

/* SPDX-License-Identifier: MIT */
/*
 * Where the code maps of a foreign recording lie, in this order: folders that
 * the user names (with all below them), the recording's own folder, what a
 * process that still lives has open or sees at that path, and where the process
 * had them: a dump's marker says the path, a perf map lies in /tmp.
 *
 * In folders a dump is known by its magic; which one is a marker's is said by
 * the end of its path, else by the pid in its header. Other dumps with the pid
 * of a sampled process are its, too, unless their times say that they are not.
 *
 * Everybody may write to /tmp, and pids come again. There a file counts only if
 * it is a regular one of this user, root or the recording's owner, changed
 * after its process started and, if that is over, not after its end. A process
 * maps its marker when it makes the file: nothing older can be at that path.
 */
#include "codemap/marker.h"
#include "profile/load.h"
#include "profile/mapfolder.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TMP_DIR "/tmp"
#define DELETED " (deleted)"
/* A file's time is taken from a coarser clock, and the recording's own file is
 * closed some time after its last record. */
#define FILE_TIME_SLACK_NS INT64_C(2000000000)
#define STAMP_SLACK_NS UINT64_C(1000000000)

enum { DEPTH = 8 };

struct finder {
	struct tickmap_loader *loader;
	char beside[PATH_MAX];
	int64_t end_wall_ns; /* of the recording, by its file's time */
	uid_t owner;	     /* of the recording */
	bool same_boot;
	struct tickmap_map_folder near; /* named folders first */
	struct tickmap_table carried;	/* pids with embedded code maps */
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

static bool init(struct finder *finder, struct tickmap_loader *loader)
{
	const struct tickmap_profile_options *options = loader->options;
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
	if (!stat(loader->path, &st)) {
		finder->end_wall_ns = mtime_ns(&st);
		finder->owner = st.st_uid;
	}
	finder->same_boot = loader->same_boot || tickmap_boot_is_ours(loader);
	for (size_t i = 0; i < options->code_map_dir_count; i++)
		if (!tickmap_map_folder_scan(&finder->near,
					     options->code_map_dirs[i], DEPTH,
					     false))
			return false;
	return tickmap_map_folder_scan(&finder->near, finder->beside, 0,
				       same_folder(finder->beside, TMP_DIR));
}

/* ---- Is it this process's? ---- */

static bool reject(struct finder *finder, const char *path, const char *id,
		   const char *what)
{
	tickmap_codemaps_finding(
		finder->loader, id, what,
		tickmap_intern_cstr(finder->loader->profile->strings, path), 0);
	return false;
}

static int64_t wall_of(const struct finder *finder, uint64_t time_ns)
{
	return finder->end_wall_ns -
	       (int64_t)(finder->loader->last_ns - time_ns);
}

/* As far as the times of files tell. */
static bool fits_life(struct finder *finder,
		      const struct tickmap_process *process,
		      const struct stat *st, const char *path)
{
	int64_t file = mtime_ns(st);

	if (process->start_ns &&
	    file < wall_of(finder, process->start_ns) - FILE_TIME_SLACK_NS)
		return reject(finder, path, "CM003",
			      "a code map is older than its process and was "
			      "not used");
	if (process->exit_ns &&
	    file > wall_of(finder, process->exit_ns) + FILE_TIME_SLACK_NS)
		return reject(finder, path, "CM004",
			      "a code map was changed after its process had "
			      "ended and was not used");
	return true;
}

static bool is_trusted(struct finder *finder, const struct stat *st,
		       const char *path)
{
	return st->st_uid == geteuid() || st->st_uid == 0 ||
	       st->st_uid == finder->owner ||
	       reject(finder, path, "CM005",
		      "a code map belongs to another user and was not used");
}

/* By the stamps: 1 it is, -1 it is not, 0 they do not say. */
static int fits_stamps(const struct finder *finder,
		       const struct tickmap_process *process,
		       const struct tickmap_map_file *file)
{
	const struct tickmap_loader *loader = finder->loader;
	uint64_t end = process->exit_ns ? process->exit_ns : loader->last_ns;

	if (loader->clock != TICKMAP_CLOCK_MONOTONIC || file->arch_clock ||
	    !file->stamp || !end)
		return 0;
	return file->stamp + STAMP_SLACK_NS < process->start_ns ||
			       file->stamp > end + STAMP_SLACK_NS
		       ? -1
		       : 1;
}

/* A descriptor, or -1. `strict`: the folder is everybody's. */
static int open_map(struct finder *finder, const char *path,
		    const struct tickmap_process *process, bool strict)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY |
				    (strict ? O_NOFOLLOW : 0));
	struct tickmap_map_file file = { 0 };
	struct stat st;

	if (fd < 0)
		return -1;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) &&
	    (!strict || (is_trusted(finder, &st, path) &&
			 ((tickmap_map_file_peek(fd, &file) &&
			   fits_stamps(finder, process, &file) > 0) ||
			  fits_life(finder, process, &st, path)))))
		return fd;
	close(fd);
	return -1;
}

static bool read_opened(struct finder *finder, int fd, const char *path,
			uint32_t pid, uint64_t known_ns, bool perf_map,
			tickmap_str marker)
{
	struct tickmap_loader *loader = finder->loader;
	size_t sources = loader->sources.count;
	bool good = tickmap_codemaps_file(loader, fd, path, pid, known_ns,
					  perf_map);

	close(fd);
	if (loader->sources.count > sources)
		loader->sources.items[sources].marker = marker;
	return good;
}

/* ---- By a dump's marker ---- */

/* How many parts of the paths are equal, from their ends. */
static unsigned common_end(const char *a, const char *b, size_t b_length)
{
	size_t i = strlen(a), j = b_length;
	unsigned parts = 0;

	while (i && j && a[i - 1] == b[j - 1]) {
		i--;
		j--;
		parts += a[i] == '/';
	}
	return parts + ((!i || a[i - 1] == '/') && !j);
}

/* The best dump of the folders for a marker, or NULL. */
static struct tickmap_map_file *
near_marker(struct finder *finder, const struct tickmap_process *process,
	    const char *marked, size_t length)
{
	struct tickmap_map_file *best = NULL;
	uint32_t inner = tickmap_jitdump_path_pid(marked, length);
	unsigned best_score = 0;

	for (size_t i = 0; i < finder->near.files.count; i++) {
		struct tickmap_map_file *f = &finder->near.files.items[i];
		bool by_pid = f->pid == process->pid || f->pid == inner;
		unsigned end = common_end(f->path, marked, length);
		int stamps = fits_stamps(finder, process, f);
		if (f->perf_map || f->used || (!end && !by_pid) ||
		    (!end && stamps < 0))
			continue;
		unsigned score = (end < 64 ? end : 64) * 8 +
				 (unsigned)(stamps + 1) * 2 + by_pid;
		if (score <= best_score && best)
			continue;
		best = f;
		best_score = score;
	}
	return best;
}

/* Open files of a process: the one with that inode. */
static int open_descriptor(uint32_t pid, uint64_t inode)
{
	char folder[64], path[400];
	struct stat st;
	int fd = -1;

	snprintf(folder, sizeof(folder), "/proc/%u/fd", pid);
	DIR *dir = inode ? opendir(folder) : NULL;
	for (struct dirent *e; dir && fd < 0 && (e = readdir(dir));) {
		snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
		if (!stat(path, &st) && S_ISREG(st.st_mode) &&
		    st.st_ino == inode)
			fd = open(path,
				  O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	}
	if (dir)
		closedir(dir);
	return fd;
}

static bool still_lives(const struct finder *finder,
			const struct tickmap_process *process)
{
	return finder->same_boot && !process->exit_ns &&
	       tickmap_process_start_ns((pid_t)process->pid);
}

static int open_if_inode(const char *path, uint64_t inode)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 || (!fstat(fd, &st) && S_ISREG(st.st_mode) && inode &&
		       st.st_ino == inode))
		return fd;
	close(fd);
	return -1;
}

/* What the process still sees: under its root, mapped, or open. */
static int open_live(const struct tickmap_process *process,
		     const struct tickmap_loaded_map *map, const char *marked,
		     size_t length)
{
	char path[PATH_MAX];
	int fd = -1;

	if (snprintf(path, sizeof(path), "/proc/%u/root%.*s", process->pid,
		     (int)length, marked) < (int)sizeof(path))
		fd = open_if_inode(path, map->inode);
	if (fd < 0) {
		snprintf(path, sizeof(path), "/proc/%u/map_files/%llx-%llx",
			 process->pid, (unsigned long long)map->avma,
			 (unsigned long long)(map->avma + map->size));
		fd = open_if_inode(path, map->inode);
	}
	return fd >= 0 ? fd : open_descriptor(process->pid, map->inode);
}

/* Everybody may write there: what was put there later may be anybody's. */
static bool is_everybodys(const char *path, size_t length)
{
	char folder[PATH_MAX];
	struct stat st;

	while (length && path[length - 1] != '/')
		length--;
	if (!length || length >= sizeof(folder))
		return true;
	snprintf(folder, sizeof(folder), "%.*s", (int)length, path);
	return stat(folder, &st) || (st.st_mode & S_IWOTH);
}

static bool is_used(const struct finder *finder, int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return false;
	for (size_t i = 0; i < finder->near.files.count; i++) {
		const struct tickmap_map_file *f = &finder->near.files.items[i];
		if (f->used && f->device == st.st_dev && f->inode == st.st_ino)
			return true;
	}
	return false;
}

/* A file is read once, whatever names lead to it. */
static bool use(struct finder *finder, int fd, const char *path)
{
	struct stat st;
	bool known = false;

	if (fstat(fd, &st))
		return true;
	for (size_t i = 0; i < finder->near.files.count; i++) {
		struct tickmap_map_file *f = &finder->near.files.items[i];
		if (f->device == st.st_dev && f->inode == st.st_ino)
			f->used = known = true;
	}
	if (known)
		return true;
	struct tickmap_map_file *f = tickmap_vec_push(&finder->near.files);
	if (!f)
		return false;
	*f = (struct tickmap_map_file) { .path = strdup(path),
					 .device = st.st_dev,
					 .inode = st.st_ino,
					 .used = true };
	return f->path;
}

static int open_marked(struct finder *finder,
		       const struct tickmap_process *process,
		       const struct tickmap_loaded_map *map, const char *marked,
		       char path[PATH_MAX])
{
	size_t length = strlen(marked), tail = strlen(DELETED);
	bool deleted =
		length > tail && !strcmp(marked + length - tail, DELETED);
	struct tickmap_map_file *near;
	int fd = -1;

	length -= deleted ? tail : 0;
	near = near_marker(finder, process, marked, length);
	if (near) {
		snprintf(path, PATH_MAX, "%s", near->path);
		fd = open_map(finder, path, process, near->strict);
	}
	snprintf(path, PATH_MAX, "%.*s", (int)length, marked);
	if (fd >= 0) {
		snprintf(path, PATH_MAX, "%s", near->path);
		return fd;
	}
	if (still_lives(finder, process))
		fd = open_live(process, map, marked, length);
	if (fd < 0 && !deleted && marked[0] == '/')
		fd = open_map(finder, path, process,
			      is_everybodys(marked, length));
	if (fd >= 0 && is_used(finder, fd)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* The same marker mapped again by the same process. */
static bool is_repeated(const struct tickmap_loader *loader, size_t event,
			uint32_t process)
{
	const struct tickmap_side *e = &loader->side.items[event];
	tickmap_str path = loader->maps.items[e->map].path;

	for (size_t i = 0; i < loader->sources.count; i++) {
		const struct tickmap_source *s = &loader->sources.items[i];
		if (!s->perf_map && s->pid == e->pid && s->marker == path &&
		    tickmap_profile_process_known(loader, s->pid,
						  s->known_ns) == process)
			return true;
	}
	return false;
}

static bool find_marked(struct finder *finder, size_t event)
{
	struct tickmap_loader *loader = finder->loader;
	const struct tickmap_side *e = &loader->side.items[event];
	const struct tickmap_loaded_map *map = &loader->maps.items[e->map];
	tickmap_str marker = map->path;
	const char *marked =
		tickmap_string(loader->profile->strings, marker, NULL);
	uint32_t index =
		tickmap_profile_process_known(loader, e->pid, e->time_ns);
	char path[PATH_MAX];

	if (index == TICKMAP_NONE || is_repeated(loader, event, index))
		return true;
	int fd = open_marked(finder, &loader->processes.items[index], map,
			     marked, path);
	if (fd < 0)
		return tickmap_codemaps_finding(
			loader, "CM002",
			"a jitdump that a process wrote is not here: say where "
			"with --code-maps DIR",
			marker, 0);
	if (!use(finder, fd, path)) {
		close(fd);
		return false;
	}
	return read_opened(finder, fd, path, e->pid, e->time_ns, false, marker);
}

/* ---- By pid ---- */

static const char not_of_its_life[] =
	"the times of a jitdump are not of its process's life: it was not used";

/* Dumps with the process's pid that no marker led to: of runtimes that map
 * none, of a second dump, of a recording that began later. */
static bool find_dumps(struct finder *finder,
		       const struct tickmap_process *process, uint32_t inner,
		       bool *has_dump)
{
	uint64_t known = tickmap_profile_process_code_ns(process);
	bool good = true;

	for (size_t i = 0; good && i < finder->near.files.count; i++) {
		struct tickmap_map_file *f = &finder->near.files.items[i];
		if (f->perf_map || f->used ||
		    (f->pid != process->pid && f->pid != inner))
			continue;
		int stamps = fits_stamps(finder, process, f);
		if (stamps < 0) {
			reject(finder, f->path, "CM006", not_of_its_life);
			continue;
		}
		if (*has_dump && !stamps)
			continue;
		int fd = open_map(finder, f->path, process, f->strict);
		if (fd < 0)
			continue;
		if (!use(finder, fd, f->path)) {
			close(fd);
			return false;
		}
		*has_dump = true;
		good = read_opened(finder, fd, f->path, process->pid, known,
				   false, 0);
	}
	return good;
}

/* Only its name says that it is this process's: its times must not deny it. */
static int open_nameless(struct finder *finder, const char *path,
			 const struct tickmap_process *process)
{
	int fd = open_map(finder, path, process, true);
	struct tickmap_map_file file = { 0 };

	if (fd < 0 || !tickmap_map_file_peek(fd, &file) ||
	    fits_stamps(finder, process, &file) >= 0)
		return fd;
	reject(finder, path, "CM006", not_of_its_life);
	close(fd);
	return -1;
}

static bool find_by_pid(struct finder *finder,
			const struct tickmap_process *process, bool has_dump)
{
	uint64_t known = tickmap_profile_process_code_ns(process);
	bool lives = still_lives(finder, process);
	uint32_t inner =
		lives ? (uint32_t)tickmap_process_inner_pid((pid_t)process->pid)
		      : process->pid;
	char path[PATH_MAX];
	int fd = -1;

	if (!find_dumps(finder, process, inner, &has_dump))
		return false;
	snprintf(path, sizeof(path), TMP_DIR "/jit-%u.dump", process->pid);
	if (!has_dump)
		fd = open_nameless(finder, path, process);
	if (fd >= 0 &&
	    !read_opened(finder, fd, path, process->pid, known, false, 0))
		return false;
	fd = -1;
	for (size_t i = 0; fd < 0 && i < finder->near.files.count; i++) {
		const struct tickmap_map_file *f = &finder->near.files.items[i];
		if (!f->perf_map || (f->pid != process->pid && f->pid != inner))
			continue;
		snprintf(path, sizeof(path), "%s", f->path);
		fd = open_map(finder, path, process, f->strict);
	}
	if (fd < 0 && lives) {
		snprintf(path, sizeof(path), "/proc/%u/root/tmp/perf-%u.map",
			 process->pid, inner);
		fd = open_map(finder, path, process, true);
	}
	if (fd < 0) {
		snprintf(path, sizeof(path), TMP_DIR "/perf-%u.map",
			 process->pid);
		fd = open_map(finder, path, process, true);
	}
	return fd < 0 ||
	       read_opened(finder, fd, path, process->pid, known, true, 0);
}

static bool find_all_marked(struct finder *finder)
{
	struct tickmap_loader *loader = finder->loader;

	/* The last one first: of two processes with one pid the later one
	 * wrote what is there now. */
	for (size_t i = loader->side.count; i-- > 0;) {
		const struct tickmap_side *e = &loader->side.items[i];
		if (e->kind == TICKMAP_SIDE_MAP &&
		    loader->maps.items[e->map].marker &&
		    !tickmap_table_get(&finder->carried, e->pid) &&
		    !find_marked(finder, i))
			return false;
	}
	return true;
}

static bool find_with_parents(struct finder *finder, uint32_t pid,
			      const struct tickmap_table *with_source)
{
	struct tickmap_loader *loader = finder->loader;
	uint32_t index = tickmap_profile_process_known(loader, pid, UINT64_MAX);
	struct tickmap_process stranger = loader->stranger;
	bool good = true;

	if (index == TICKMAP_NONE) {
		stranger.pid = pid;
		return tickmap_table_get(&finder->carried, pid) ||
		       find_by_pid(finder, &stranger,
				   tickmap_table_get(with_source, pid));
	}

	/* All above one that was looked at was, too. */
	while (good && index != TICKMAP_NONE &&
	       !loader->processes.items[index].looked) {
		struct tickmap_process *process =
			&loader->processes.items[index];
		struct tickmap_process *newest =
			&loader->processes.items[tickmap_profile_process_known(
				loader, process->pid, UINT64_MAX)];
		bool skip = newest->pid_looked ||
			    tickmap_table_get(&finder->carried, process->pid);
		process->looked = newest->pid_looked = true;
		good = skip || find_by_pid(finder, process,
					   tickmap_table_get(with_source,
							     process->pid));
		index = process->parent;
	}
	return good;
}

bool tickmap_mapfiles_find(struct tickmap_loader *loader)
{
	struct finder finder;
	struct tickmap_table with_source = { 0 }; /* pid -> has a dump */
	bool good = init(&finder, loader);

	/* What a recording carries is complete: nothing else is looked for. */
	for (size_t i = 0; good && i < loader->sources.count; i++)
		good = tickmap_table_put(&finder.carried,
					 loader->sources.items[i].pid);
	/* So are perf inject's images of all functions. */
	for (size_t i = 0; good && i < loader->processes.count; i++)
		if (loader->images.count &&
		    tickmap_jitted_complete(loader,
					    loader->processes.items[i].pid))
			good = tickmap_table_put(
				&finder.carried,
				loader->processes.items[i].pid);
	good = good && find_all_marked(&finder);
	for (size_t i = 0; good && i < loader->sources.count; i++)
		good = tickmap_table_put(&with_source,
					 loader->sources.items[i].pid);
	/* Only processes that were sampled, and whose code they inherited. */
	for (size_t i = 1; good && i < loader->stacks.all.count; i++) {
		const struct tickmap_stack *s = &loader->stacks.all.items[i];
		if (s->kind != TICKMAP_STACK_PROCESS)
			continue;
		uint32_t pid = (uint32_t)s->avma;
		good = find_with_parents(&finder, pid, &with_source);
	}
	tickmap_table_free(&with_source);
	tickmap_table_free(&finder.carried);
	tickmap_map_folder_free(&finder.near);
	return good;
}

/* SPDX-License-Identifier: MIT */
/* Sideband events in time order -> processes, each with its timeline. */
#include "profile/load.h"

#include "codemap/marker.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Executable memory that is no file's code, whatever name the kernel shows: a
 * JIT's memory. Code published there stays when such a mapping is (re)made.
 */
static const char *const anonymous_prefixes[] = {
	"//anon",  "[anon:", "[anon_shmem:", "[heap]",	   "[stack",
	"/memfd:", "/dev/",  "/SYSV",	     "/anon_huge", "anon_inode:",
};

static bool begins_with_one_of(const char *path, const char *const *prefixes,
			       size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!strncmp(path, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

/* A file that its user removed at once so that nobody sees it: libffi's and
 * other people's writable code. Libraries are removed, too, by upgrades. */
static bool is_removed_scratch(const char *path)
{
	static const char *const folders[] = { "/tmp/", "/var/tmp/", "/run/" };
	static const char deleted[] = " (deleted)";
	size_t length = strlen(path), tail = sizeof(deleted) - 1;

	return length > tail && !strcmp(path + length - tail, deleted) &&
	       begins_with_one_of(path, folders,
				  sizeof(folders) / sizeof(*folders)) &&
	       !strstr(path, ".so") && !tickmap_is_jitdump_path(path);
}

bool tickmap_map_is_anonymous(const char *path)
{
	return !*path ||
	       begins_with_one_of(path, anonymous_prefixes,
				  sizeof(anonymous_prefixes) /
					  sizeof(*anonymous_prefixes)) ||
	       is_removed_scratch(path);
}

/* A file that is here and that no loader would map: neither ELF nor PE (Wine,
 * .NET) nor an archive with libraries in it (Android). */
bool tickmap_map_is_no_program(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	char magic[4];
	bool no_program;

	if (fd < 0)
		return false;
	no_program = !fstat(fd, &st) && S_ISREG(st.st_mode) &&
		     pread(fd, magic, sizeof(magic), 0) == sizeof(magic) &&
		     memcmp(magic, "\177ELF", 4) != 0 &&
		     memcmp(magic, "MZ", 2) != 0 && memcmp(magic, "PK", 2) != 0;
	close(fd);
	return no_program;
}

bool tickmap_profile_process_changed(struct tickmap_process *process,
				     uint64_t when)
{
	size_t count = process->changes.count;

	if (count && process->changes.items[count - 1] == when)
		return true;
	uint64_t *change = tickmap_vec_push(&process->changes);
	if (change)
		*change = when;
	return change;
}

static struct tickmap_image begin_image(uint64_t since_ns)
{
	return (struct tickmap_image) { .since_ns = since_ns,
					.code_ns = UINT64_MAX };
}

static bool add_image(struct tickmap_process *process, uint64_t since_ns)
{
	struct tickmap_image *image = tickmap_vec_push(&process->images);

	if (image)
		*image = begin_image(since_ns);
	return image;
}

static struct tickmap_image *newest_image(struct tickmap_process *process)
{
	return process->images.count
		       ? &process->images.items[process->images.count - 1]
		       : &process->first;
}

/*
 * So that of many lives of one pid an old one is found in few steps: of two
 * skips one after the other that are as long as each other, the next life's
 * skips both.
 */
static void set_older(const struct tickmap_process *all,
		      struct tickmap_process *p, uint32_t older)
{
	p->older = p->far = older;
	if (older == TICKMAP_NONE)
		return;
	p->age = all[older].age + 1;
	uint32_t far = all[older].far;
	uint32_t farther = far == TICKMAP_NONE ? far : all[far].far;
	if (farther != TICKMAP_NONE &&
	    all[older].age - all[far].age == all[far].age - all[farther].age)
		p->far = farther;
}

/* A new life of this pid. */
static uint32_t start(struct tickmap_loader *loader, uint32_t pid,
		      uint64_t start_ns)
{
	uint64_t *newest = tickmap_table_put(&loader->process_of_pid, pid);

	if (!newest || loader->processes.count >= UINT32_MAX - 1)
		return TICKMAP_NONE;
	struct tickmap_process *p = tickmap_vec_push(&loader->processes);
	if (!p)
		return TICKMAP_NONE;
	*p = (struct tickmap_process) {
		.pid = pid,
		.parent = TICKMAP_NONE,
		.start_ns = start_ns,
		.timeline = loader->nothing,
		.first = begin_image(start_ns),
	};
	set_older(loader->processes.items, p,
		  *newest ? (uint32_t)(*newest - 1) : TICKMAP_NONE);
	*newest = loader->processes.count;
	return (uint32_t)(*newest - 1);
}

uint32_t tickmap_profile_process_known(const struct tickmap_loader *loader,
				       uint32_t pid, uint64_t time_ns)
{
	const struct tickmap_process *all = loader->processes.items;
	const uint64_t *newest =
		tickmap_table_get(&loader->process_of_pid, pid);
	uint32_t index = newest ? (uint32_t)(*newest - 1) : TICKMAP_NONE;

	while (index != TICKMAP_NONE) {
		const struct tickmap_process *p = &all[index];
		if (p->start_ns <= time_ns || p->older == TICKMAP_NONE)
			return index;
		index = all[p->far].start_ns > time_ns ? p->far : p->older;
	}
	return TICKMAP_NONE;
}

uint32_t tickmap_profile_process_at(struct tickmap_loader *loader, uint32_t pid,
				    uint64_t time_ns)
{
	uint32_t known = tickmap_profile_process_known(loader, pid, time_ns);

	return known != TICKMAP_NONE ? known : start(loader, pid, 0);
}

static bool ended_program(struct tickmap_process *process, uint64_t when)
{
	return tickmap_profile_process_changed(process, when) &&
	       tickmap_timeline_exec(process->timeline, when);
}

/* What came before there was a timeline: first of all the fork, then what ended
 * each program. */
static bool catch_up(struct tickmap_loader *loader,
		     struct tickmap_process *process)
{
	if (process->parent != TICKMAP_NONE &&
	    !tickmap_timeline_fork(
		    process->timeline, process->start_ns,
		    loader->processes.items[process->parent].timeline))
		return false;
	for (size_t i = 0; i < process->images.count; i++)
		if (!ended_program(process, process->images.items[i].since_ns))
			return false;
	return true;
}

struct tickmap_timeline *
tickmap_profile_process_timeline(struct tickmap_loader *loader,
				 struct tickmap_process *process)
{
	struct tickmap_process *all = loader->processes.items;
	struct tickmap_process *p = process;
	size_t made = 0;

	/* Its ancestors may get something to inherit, too. */
	for (; p->timeline == loader->nothing; p = &all[p->parent], made++) {
		p->timeline = tickmap_timeline_new();
		if (!p->timeline)
			return NULL;
		if (p->parent == TICKMAP_NONE) {
			made++;
			break;
		}
	}
	for (p = process; made--; p = &all[p->parent])
		if (!catch_up(loader, p))
			return NULL;
	return process->timeline;
}

struct tickmap_process *
tickmap_profile_process_sampled(struct tickmap_loader *loader, uint32_t pid,
				uint64_t time_ns)
{
	uint32_t known = tickmap_profile_process_known(loader, pid, time_ns);

	return known != TICKMAP_NONE ? &loader->processes.items[known]
				     : &loader->stranger;
}

static bool apply_fork(struct tickmap_loader *loader,
		       const struct tickmap_side *e)
{
	if (e->pid == e->ppid)
		return true; /* a thread */
	uint32_t known =
		tickmap_profile_process_known(loader, e->pid, e->time_ns);
	/* What perf says about processes that were there before has no time
	 * and may come behind other news of them. */
	if (known != TICKMAP_NONE && !e->time_ns)
		return true;
	uint32_t parent =
		tickmap_profile_process_at(loader, e->ppid, e->time_ns);
	uint32_t child = parent == TICKMAP_NONE
				 ? TICKMAP_NONE
				 : start(loader, e->pid, e->time_ns);
	if (child == TICKMAP_NONE)
		return false;
	if (e->exec)
		return true;
	loader->processes.items[child].parent = parent;
	return true;
}

static bool apply_map(struct tickmap_loader *loader,
		      const struct tickmap_side *e)
{
	const struct tickmap_loaded_map *map = &loader->maps.items[e->map];
	uint32_t index = tickmap_profile_process_at(loader, e->pid, e->time_ns);

	if (index == TICKMAP_NONE)
		return false;
	struct tickmap_process *p = &loader->processes.items[index];
	p->marked |= map->marker;
	/* An image that is not here would only hide what a dump says. */
	if (map->marker || (map->jitted && map->code == TICKMAP_NONE))
		return true;
	uint8_t runtime = tickmap_runtime_of(
		tickmap_string(loader->profile->strings, map->path, NULL));
	p->runtime = runtime ? runtime : p->runtime;
	if (!tickmap_profile_process_timeline(loader, p))
		return false;
	if (map->jitted) {
		p->published = true;
		return tickmap_profile_process_changed(p, e->time_ns) &&
		       tickmap_timeline_load(p->timeline, TICKMAP_LAYER_CODE,
					     e->time_ns, map->avma, map->size,
					     map->code);
	}
	struct tickmap_image *image = newest_image(p);
	if (map->anonymous && image->code_ns == UINT64_MAX)
		image->code_ns = e->time_ns;
	return tickmap_profile_process_changed(p, e->time_ns) &&
	       tickmap_timeline_load(p->timeline,
				     map->anonymous ? TICKMAP_LAYER_ANON
						    : TICKMAP_LAYER_FILE,
				     e->time_ns, map->avma, map->size, e->map);
}

static bool apply(struct tickmap_loader *loader, const struct tickmap_side *e)
{
	uint32_t index;
	struct tickmap_process *p;

	switch (e->kind) {
	case TICKMAP_SIDE_FORK:
		return apply_fork(loader, e);
	case TICKMAP_SIDE_MAP:
		return apply_map(loader, e);
	case TICKMAP_SIDE_EXIT:
		index = tickmap_profile_process_at(loader, e->pid, e->time_ns);
		if (index != TICKMAP_NONE && e->pid == e->tid)
			loader->processes.items[index].exit_ns = e->time_ns;
		return index != TICKMAP_NONE;
	default:
		index = tickmap_profile_process_at(loader, e->pid, e->time_ns);
		if (index == TICKMAP_NONE || !e->exec)
			return index != TICKMAP_NONE;
		p = &loader->processes.items[index];
		return add_image(p, e->time_ns) &&
		       (p->timeline == loader->nothing ||
			ended_program(p, e->time_ns));
	}
}

static int by_time(const void *a, const void *b)
{
	const struct tickmap_side *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return (x->order > y->order) - (x->order < y->order);
}

static bool is_sorted(const struct tickmap_loader *loader)
{
	for (size_t i = 1; i < loader->side.count; i++)
		if (by_time(&loader->side.items[i - 1],
			    &loader->side.items[i]) > 0)
			return false;
	return true;
}

/* ---- Whom a report can be about ---- */

enum { MENTIONED = 1 << 22 }; /* no pid of Linux is larger */

static void mention(struct tickmap_loader *loader, uint32_t pid)
{
	uint32_t bit = pid % MENTIONED;

	loader->mentioned_pids[bit / 64] |= UINT64_C(1) << bit % 64;
}

bool tickmap_profile_pid_mentioned(const struct tickmap_loader *loader,
				   uint32_t pid)
{
	uint32_t bit = pid % MENTIONED;

	return loader->mentioned_pids[bit / 64] >> bit % 64 & 1;
}

static bool want(struct tickmap_loader *loader, uint32_t pid)
{
	return tickmap_table_put(&loader->wanted_pids, pid);
}

static bool is_wanted(const struct tickmap_loader *loader, uint32_t pid)
{
	return tickmap_table_get(&loader->wanted_pids, pid);
}

static bool want_sampled(struct tickmap_loader *loader)
{
	for (size_t i = 1; i < loader->stacks.all.count; i++) {
		const struct tickmap_stack *s = &loader->stacks.all.items[i];
		if (s->kind != TICKMAP_STACK_PROCESS)
			continue;
		uint32_t pid = (uint32_t)s->avma;
		/* Of a stranger nothing is known, and nothing is kept. */
		if (tickmap_profile_pid_mentioned(loader, pid) &&
		    !want(loader, pid))
			return false;
	}
	return true;
}

/* The latest first, so that a parent is wanted before its own fork comes. */
static bool want_publishers_and_parents(struct tickmap_loader *loader)
{
	for (size_t i = 0; i < loader->sources.count; i++)
		if (!want(loader, loader->sources.items[i].pid))
			return false;
	for (size_t i = loader->side.count; i-- > 0;) {
		const struct tickmap_side *e = &loader->side.items[i];
		if (e->kind == TICKMAP_SIDE_MAP &&
		    (loader->maps.items[e->map].marker ||
		     loader->maps.items[e->map].jitted) &&
		    !want(loader, e->pid))
			return false;
		if (e->kind == TICKMAP_SIDE_FORK && e->pid != e->ppid &&
		    is_wanted(loader, e->pid) && !want(loader, e->ppid))
			return false;
	}
	return true;
}

static bool find_wanted(struct tickmap_loader *loader)
{
	loader->mentioned_pids = calloc(MENTIONED / 8, 1);
	if (!loader->mentioned_pids)
		return false;
	for (size_t i = 0; i < loader->side.count; i++) {
		mention(loader, loader->side.items[i].pid);
		mention(loader, loader->side.items[i].ppid);
	}
	return want_sampled(loader) && want_publishers_and_parents(loader);
}

static bool make_stranger(struct tickmap_loader *loader)
{
	loader->nothing = tickmap_timeline_new();
	loader->stranger = (struct tickmap_process) {
		.older = TICKMAP_NONE,
		.parent = TICKMAP_NONE,
		.timeline = loader->nothing,
		.first = begin_image(0),
	};
	return loader->nothing && tickmap_timeline_close(loader->nothing);
}

bool tickmap_profile_processes_build(struct tickmap_loader *loader)
{
	bool good;

	/* Most are in order, and sorting takes as much memory again. */
	if (!is_sorted(loader))
		qsort(loader->side.items, loader->side.count,
		      sizeof(*loader->side.items), by_time);
	good = make_stranger(loader) && find_wanted(loader);
	for (size_t i = 0; good && i < loader->side.count; i++)
		good = !is_wanted(loader, loader->side.items[i].pid) ||
		       apply(loader, &loader->side.items[i]);
	tickmap_table_free(&loader->wanted_pids);
	tickmap_vec_fit(&loader->processes);
	return good;
}

const struct tickmap_image *
tickmap_profile_image_at(const struct tickmap_process *process,
			 uint64_t time_ns)
{
	size_t low = 0, high = process->images.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (process->images.items[middle].since_ns <= time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? &process->images.items[low - 1] : &process->first;
}

const struct tickmap_image *
tickmap_profile_image_after(const struct tickmap_process *process,
			    uint64_t time_ns)
{
	const struct tickmap_image *image =
		tickmap_profile_image_at(process, time_ns);
	const struct tickmap_image *next =
		image == &process->first ? process->images.items : image + 1;
	const struct tickmap_image *end =
		process->images.items + process->images.count;

	return image->since_ns > time_ns ? image : next < end ? next : NULL;
}

uint64_t tickmap_profile_process_code_ns(const struct tickmap_process *process)
{
	const struct tickmap_image *first = &process->first;
	size_t count = process->images.count;

	for (size_t i = count; i-- > 0;)
		if (process->images.items[i].code_ns != UINT64_MAX)
			return process->images.items[i].since_ns;
	return count && first->code_ns == UINT64_MAX
		       ? process->images.items[count - 1].since_ns
		       : first->since_ns;
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x, y;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return (x > y) - (x < y);
}

static bool inherits(const struct tickmap_loader *loader,
		     const struct tickmap_process *process)
{
	return process->timeline == loader->nothing &&
	       process->parent != TICKMAP_NONE &&
	       loader->processes.items[process->parent].timeline !=
		       loader->nothing;
}

/* A process always comes behind its parent in the table. */
bool tickmap_profile_processes_seal(struct tickmap_loader *loader, bool last)
{
	for (size_t i = 0; i < loader->processes.count; i++) {
		struct tickmap_process *p = &loader->processes.items[i];
		if (p->changes.count)
			qsort(p->changes.items, p->changes.count,
			      sizeof(*p->changes.items), compare_u64);
		if (inherits(loader, p) &&
		    !tickmap_profile_process_timeline(loader, p))
			return false;
		if (p->timeline != loader->nothing &&
		    (last ? !tickmap_timeline_close(p->timeline)
			  : !tickmap_timeline_seal(p->timeline)))
			return false;
	}
	return true;
}

void tickmap_profile_processes_free(struct tickmap_loader *loader)
{
	for (size_t i = loader->processes.count; i-- > 0;) {
		struct tickmap_process *p = &loader->processes.items[i];
		if (p->timeline != loader->nothing)
			tickmap_timeline_free(p->timeline);
		tickmap_vec_free(&p->images);
		tickmap_vec_free(&p->changes);
	}
	tickmap_timeline_free(loader->nothing);
	loader->nothing = NULL;
	tickmap_table_free(&loader->wanted_pids);
	free(loader->mentioned_pids);
	loader->mentioned_pids = NULL;
	tickmap_vec_free(&loader->processes);
	tickmap_table_free(&loader->process_of_pid);
}

/* SPDX-License-Identifier: MIT */
/*
 * Opening walks a ladder: what to count, whose code, how large a ring. Whatever
 * the kernel refuses makes the next rung, and what it said last is reported.
 * An event of a thread outputs to the ring of its CPU, which is mapped through
 * the first event of that CPU.
 */
#include "capture/sampler.h"

#include "base/vec.h"
#include "capture/ring.h"
#include "platform/platform.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Where the time is, which follows from the sample type. */
enum {
	SAMPLE_TYPE = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
		      PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD |
		      PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER |
		      PERF_SAMPLE_STACK_USER,
	SAMPLE_TIME_AT = 8 + 8 + 8, /* header, IP, TID */
	TRAILER_SIZE = 8 + 8 + 8,   /* TID, TIME, CPU */
	TRAILER_TIME_FROM_END = 8 + 8,
};

enum {
	RING_DEFAULT = 512 * 1024, /* what perf_event_mlock_kb allows a CPU */
	RING_MIN = 32 * 1024,
	RING_SAMPLES = 12,  /* of full size, that a ring must have room for */
	SAMPLE_REST = 2048, /* of a sample beside the stack: 127 kernel frames,
			       registers, the fixed fields */
	STACK_MAX = 65528,
};

/* General purpose registers, without those that say nothing of a stack. */
#if defined(__x86_64__)
#define REGS_USER UINT64_C(0xff0fff)
#elif defined(__aarch64__)
#define REGS_USER ((UINT64_C(1) << 33) - 1)
#elif defined(__riscv)
#define REGS_USER ((UINT64_C(1) << 32) - 1)
#else
#define REGS_USER UINT64_C(0) /* the kernel will refuse it */
#endif

struct rung {
	uint32_t type;
	uint64_t config;
	bool kernel;
	const char *name;
	const char *refused;
};

static const struct rung ladder[] = {
	{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, true, "cycles",
	  "cannot sample cycles of kernel and user code" },
	{ PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, true, "cpu-clock",
	  "cannot sample cpu-clock of kernel and user code" },
	{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, false, "cycles:u",
	  "cannot sample cycles of user code" },
	{ PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, false, "cpu-clock:u",
	  "cannot sample cpu-clock of user code" },
};

struct cpu {
	unsigned number;
	struct tickmap_ring ring;
	size_t polled; /* the task whose event is polled for this ring */
	/* The next record, valid while it is pending. */
	struct perf_event_header next;
	uint64_t next_time_ns;
	bool pending;
};

struct tickmap_sampler {
	struct perf_event_attr attr;
	const struct rung *rung;
	size_t ring_size; /* of one CPU */
	TICKMAP_VEC(pid_t) tasks;
	TICKMAP_VEC(struct cpu) cpus;
	int *fds; /* [cpu][task], -1 where there is none */
	struct pollfd *polls;
	uint64_t handed_over_ns;
	uint64_t late;
	uint8_t bounce[TICKMAP_RING_RECORD_MAX];
};

static int event_open(struct perf_event_attr *attr, pid_t task, unsigned cpu)
{
	return (int)syscall(SYS_perf_event_open, attr, task, (int)cpu, -1,
			    PERF_FLAG_FD_CLOEXEC);
}

static int *fd_of(struct tickmap_sampler *s, size_t cpu, size_t task)
{
	return &s->fds[cpu * s->tasks.count + task];
}

/* ---- What to sample ---- */

static int no_memory(struct tickmap_error *err)
{
	return tickmap_fail(err, TICKMAP_E_NOMEM, 0, "out of memory");
}

static int add_task(struct tickmap_sampler *s, pid_t task,
		    struct tickmap_error *err)
{
	pid_t *slot = tickmap_vec_push(&s->tasks);

	if (!slot)
		return no_memory(err);
	*slot = task;
	return TICKMAP_OK;
}

/* All threads of a process; new ones inherit. */
static int add_process(struct tickmap_sampler *s, pid_t pid,
		       struct tickmap_error *err)
{
	char path[64];
	size_t before = s->tasks.count;
	int status = TICKMAP_OK;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	DIR *dir = opendir(path);
	if (!dir)
		return add_task(s, pid, err);
	for (struct dirent *e; !status && (e = readdir(dir));) {
		long task = strtol(e->d_name, NULL, 10);
		if (task > 0)
			status = add_task(s, (pid_t)task, err);
	}
	closedir(dir);
	if (!status && s->tasks.count == before)
		return add_task(s, pid, err);
	return status;
}

static int add_cpu(struct tickmap_sampler *s, unsigned number,
		   struct tickmap_error *err)
{
	struct cpu *cpu = tickmap_vec_push(&s->cpus);

	if (!cpu)
		return no_memory(err);
	memset(cpu, 0, sizeof(*cpu));
	cpu->number = number;
	return TICKMAP_OK;
}

/* The kernel's list, "0-3,8": not the CPUs that we ourselves may run on. */
static int add_online_cpus(struct tickmap_sampler *s, struct tickmap_error *err)
{
	char list[4096];
	long count = sysconf(_SC_NPROCESSORS_ONLN);
	int status = TICKMAP_OK;

	if (!tickmap_read_line("/sys/devices/system/cpu/online", list,
			       sizeof(list)) ||
	    !*list)
		snprintf(list, sizeof(list), "0-%ld",
			 count > 0 ? count - 1 : 0);
	for (char *at = list; !status && *at;) {
		char *end;
		unsigned long first = strtoul(at, &end, 10);
		unsigned long last = first;
		if (end == at)
			break;
		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		for (; !status && first <= last && first < 65536; first++)
			status = add_cpu(s, (unsigned)first, err);
		at = *end == ',' ? end + 1 : end;
	}
	if (!status && !s->cpus.count)
		return add_cpu(s, 0, err);
	return status;
}

static int check_frequency(uint64_t frequency, struct tickmap_error *err)
{
	char line[64];

	if (!frequency)
		return tickmap_fail(err, TICKMAP_E_LIMIT, 0,
				    "sampling frequency must be at least 1 Hz");
	if (tickmap_read_line("/proc/sys/kernel/perf_event_max_sample_rate",
			      line, sizeof(line)) &&
	    frequency > strtoull(line, NULL, 10))
		return tickmap_fail(err, TICKMAP_E_LIMIT, 0,
				    "sampling frequency is above "
				    "/proc/sys/kernel/"
				    "perf_event_max_sample_rate");
	return TICKMAP_OK;
}

/* Every thread costs a file descriptor a CPU. */
static void raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) ||
	    limit.rlim_cur == limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* ---- Opening ---- */

static void fill_attr(struct perf_event_attr *attr, const struct rung *rung,
		      const struct tickmap_sampler_options *options,
		      size_t ring_size)
{
	size_t room = ring_size / RING_SAMPLES - SAMPLE_REST;
	size_t stack = options->stack_bytes;

	if (stack > room)
		stack = room;
	if (stack > STACK_MAX)
		stack = STACK_MAX;

	memset(attr, 0, sizeof(*attr));
	attr->size = sizeof(*attr);
	attr->type = rung->type;
	attr->config = rung->config;
	attr->freq = 1;
	attr->sample_freq = options->frequency;
	attr->sample_type = SAMPLE_TYPE;
	attr->sample_regs_user = REGS_USER;
	attr->sample_stack_user = (uint32_t)(stack & ~(size_t)7);
	if (!attr->sample_stack_user)
		attr->sample_stack_user = 8; /* 0 is refused */
	attr->disabled = 1;
	attr->enable_on_exec = options->enable_on_exec;
	attr->inherit = 1;
	attr->exclude_kernel = !rung->kernel;
	attr->exclude_hv = !rung->kernel;
	attr->exclude_callchain_kernel = !rung->kernel;
	attr->exclude_callchain_user = 1;
	attr->mmap = 1;
	attr->mmap2 = 1;
	attr->comm = 1;
	attr->comm_exec = 1;
	attr->task = 1;
	attr->sample_id_all = 1;
	attr->use_clockid = 1;
	attr->clockid = CLOCK_MONOTONIC;
	attr->watermark = 1;
	attr->wakeup_watermark = (uint32_t)(ring_size / 4);
}

static void close_events(struct tickmap_sampler *s)
{
	for (size_t c = 0; c < s->cpus.count; c++) {
		tickmap_ring_unmap(&s->cpus.items[c].ring);
		for (size_t t = 0; s->fds && t < s->tasks.count; t++) {
			int *fd = fd_of(s, c, t);
			if (*fd >= 0)
				close(*fd);
			*fd = -1;
		}
	}
}

enum outcome {
	OPENED,
	REFUSED, /* the event: another rung may do */
	NO_ROOM, /* the ring: a smaller one may do */
	HOPELESS,
};

struct attempt {
	enum outcome outcome;
	int os_errno;
	const char *what;
};

static struct attempt open_failed(const struct tickmap_sampler *s, int os_errno)
{
	struct attempt a = { REFUSED, os_errno, s->rung->refused };

	if (os_errno == EMFILE || os_errno == ENFILE) {
		a.outcome = HOPELESS;
		a.what = "one file a thread and CPU is more than RLIMIT_NOFILE"
			 " allows";
	} else if (os_errno == ENOMEM) {
		a.outcome = HOPELESS;
	}
	return a;
}

/* Every task's event on one CPU, all into the ring of the first. */
static struct attempt open_cpu(struct tickmap_sampler *s, size_t c,
			       size_t ring_size)
{
	struct cpu *cpu = &s->cpus.items[c];

	for (size_t t = 0; t < s->tasks.count; t++) {
		int *fd = fd_of(s, c, t);
		*fd = event_open(&s->attr, s->tasks.items[t], cpu->number);
		if (*fd < 0 && errno == ESRCH)
			continue; /* the thread has ended */
		if (*fd < 0 && errno == ENODEV && s->cpus.count > 1)
			break; /* the CPU has gone offline */
		if (*fd < 0)
			return open_failed(s, errno);
		if (!cpu->ring.meta) {
			int failed =
				tickmap_ring_map(&cpu->ring, *fd, ring_size);
			cpu->polled = t;
			if (failed)
				return (struct attempt) {
					NO_ROOM, failed,
					"cannot map a ring buffer within "
					"perf_event_mlock_kb and RLIMIT_MEMLOCK"
				};
		} else if (ioctl(*fd, PERF_EVENT_IOC_SET_OUTPUT,
				 *fd_of(s, c, cpu->polled))) {
			return (struct attempt) {
				HOPELESS, errno,
				"cannot join the events of a CPU"
			};
		}
	}
	return (struct attempt) { OPENED, 0, NULL };
}

static struct attempt open_all(struct tickmap_sampler *s, size_t ring_size)
{
	struct attempt a = { OPENED, 0, NULL };
	bool any = false;

	for (size_t c = 0; c < s->cpus.count && a.outcome == OPENED; c++) {
		a = open_cpu(s, c, ring_size);
		any |= s->cpus.items[c].ring.meta != NULL;
	}
	if (a.outcome == OPENED && !any)
		a = (struct attempt) { HOPELESS, ESRCH, "no thread to sample" };
	if (a.outcome != OPENED)
		close_events(s);
	return a;
}

static size_t ring_size_of(size_t wanted, size_t cpus)
{
	size_t each = wanted ? wanted / cpus : RING_DEFAULT;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t size = RING_MIN > page ? RING_MIN : page;

	while (size <= each / 2 && size < (size_t)1 << 30)
		size *= 2;
	return size;
}

static int walk_ladder(struct tickmap_sampler *s,
		       const struct tickmap_sampler_options *options,
		       struct tickmap_error *err)
{
	struct attempt a = { HOPELESS, EINVAL, "nothing to sample" };

	for (size_t i = 0; i < sizeof(ladder) / sizeof(*ladder); i++) {
		size_t size = ring_size_of(options->ring_bytes, s->cpus.count);
		s->rung = &ladder[i];
		for (; size >= RING_MIN; size /= 2) {
			fill_attr(&s->attr, s->rung, options, size);
			s->ring_size = size;
			a = open_all(s, size);
			if (a.outcome != NO_ROOM)
				break;
		}
		if (a.outcome != REFUSED)
			break;
	}
	if (a.outcome == OPENED)
		return TICKMAP_OK;
	return tickmap_fail_os(err, a.os_errno, a.what);
}

/* A CPU that went offline in between has no ring and is forgotten. */
static void drop_cpus_without_ring(struct tickmap_sampler *s)
{
	size_t kept = 0;

	for (size_t c = 0; c < s->cpus.count; c++) {
		if (!s->cpus.items[c].ring.meta)
			continue;
		if (kept != c) {
			s->cpus.items[kept] = s->cpus.items[c];
			memcpy(fd_of(s, kept, 0), fd_of(s, c, 0),
			       s->tasks.count * sizeof(*s->fds));
		}
		kept++;
	}
	s->cpus.count = kept;
}

static int prepare(struct tickmap_sampler *s,
		   const struct tickmap_sampler_options *options,
		   struct tickmap_error *err)
{
	int status = check_frequency(options->frequency, err);

	for (size_t i = 0; !status && i < options->pid_count; i++)
		status = add_process(s, options->pids[i], err);
	if (!status)
		status = add_online_cpus(s, err);
	if (status)
		return status;
	size_t count = s->cpus.count * s->tasks.count;
	s->fds = calloc(count + 1, sizeof(*s->fds));
	s->polls = calloc(s->cpus.count + 1, sizeof(*s->polls));
	if (!s->fds || !s->polls)
		return no_memory(err);
	for (size_t i = 0; i < count; i++)
		s->fds[i] = -1;
	return TICKMAP_OK;
}

int tickmap_sampler_open(const struct tickmap_sampler_options *options,
			 struct tickmap_sampler **ret_sampler,
			 struct tickmap_error *err)
{
	struct tickmap_sampler *s = calloc(1, sizeof(*s));

	if (!s)
		return no_memory(err);
	int status = prepare(s, options, err);
	if (!status) {
		raise_file_limit();
		status = walk_ladder(s, options, err);
	}
	if (status) {
		tickmap_sampler_close(s);
		return status;
	}
	drop_cpus_without_ring(s);
	*ret_sampler = s;
	return TICKMAP_OK;
}

void tickmap_sampler_close(struct tickmap_sampler *s)
{
	if (!s)
		return;
	close_events(s);
	tickmap_vec_free(&s->tasks);
	tickmap_vec_free(&s->cpus);
	free(s->fds);
	free(s->polls);
	free(s);
}

void tickmap_sampler_release_rings(struct tickmap_sampler *s)
{
	close_events(s);
}

/* ---- Running ---- */

static int all_events(struct tickmap_sampler *s, unsigned long request)
{
	for (size_t c = 0; c < s->cpus.count; c++) {
		for (size_t t = 0; t < s->tasks.count; t++) {
			int fd = *fd_of(s, c, t);
			if (fd >= 0 && ioctl(fd, request, 0))
				return TICKMAP_E_OS;
		}
	}
	return TICKMAP_OK;
}

int tickmap_sampler_enable(struct tickmap_sampler *s)
{
	return all_events(s, PERF_EVENT_IOC_ENABLE);
}

int tickmap_sampler_disable(struct tickmap_sampler *s)
{
	return all_events(s, PERF_EVENT_IOC_DISABLE);
}

const struct perf_event_attr *
tickmap_sampler_attr(const struct tickmap_sampler *s)
{
	return &s->attr;
}

const char *tickmap_sampler_event_name(const struct tickmap_sampler *s)
{
	return s->rung->name;
}

bool tickmap_sampler_sees_kernel(const struct tickmap_sampler *s)
{
	return s->rung->kernel;
}

size_t tickmap_sampler_ring_bytes(const struct tickmap_sampler *s)
{
	return s->cpus.count * s->ring_size;
}

unsigned tickmap_sampler_cpu_count(const struct tickmap_sampler *s)
{
	return (unsigned)s->cpus.count;
}

uint64_t tickmap_sampler_late_count(const struct tickmap_sampler *s)
{
	return s->late;
}

/* The polled task has ended with all its children: any other event of the CPU
 * wakes for the same ring. */
static void poll_next_task(struct tickmap_sampler *s, size_t c)
{
	struct cpu *cpu = &s->cpus.items[c];

	do
		cpu->polled++;
	while (cpu->polled < s->tasks.count && *fd_of(s, c, cpu->polled) < 0);
}

int tickmap_sampler_wait(struct tickmap_sampler *s, int extra_fd,
			 int timeout_ms, struct tickmap_error *err)
{
	size_t cpus = s->cpus.count;

	for (size_t c = 0; c < cpus; c++) {
		size_t t = s->cpus.items[c].polled;
		s->polls[c].fd = t < s->tasks.count ? *fd_of(s, c, t) : -1;
		s->polls[c].events = POLLIN;
		s->polls[c].revents = 0;
	}
	s->polls[cpus].fd = extra_fd;
	s->polls[cpus].events = POLLIN;
	s->polls[cpus].revents = 0;
	if (poll(s->polls, (nfds_t)(cpus + 1), timeout_ms) < 0)
		return errno == EINTR
			       ? 0
			       : tickmap_fail_os(err, errno,
						 "cannot wait for samples");
	for (size_t c = 0; c < cpus; c++)
		if (s->polls[c].revents & (POLLHUP | POLLERR | POLLNVAL))
			poll_next_task(s, c);
	return s->polls[cpus].revents != 0;
}

/* ---- Draining ---- */

/* Finds out what the ring's next record is and when it happened. */
static void look_at_next(struct cpu *cpu)
{
	size_t time_at = SAMPLE_TIME_AT;

	cpu->pending = tickmap_ring_peek(&cpu->ring, &cpu->next);
	cpu->next_time_ns = 0;
	if (!cpu->pending)
		return;
	if (cpu->next.type != PERF_RECORD_SAMPLE) {
		if (cpu->next.size < sizeof(cpu->next) + TRAILER_SIZE)
			return;
		time_at = cpu->next.size - TRAILER_TIME_FROM_END;
	}
	if (cpu->next.size >= time_at + 8)
		cpu->next_time_ns = tickmap_ring_u64(&cpu->ring, time_at);
}

static struct cpu *oldest(struct tickmap_sampler *s)
{
	struct cpu *best = NULL;

	for (size_t c = 0; c < s->cpus.count; c++) {
		struct cpu *cpu = &s->cpus.items[c];
		if (cpu->pending &&
		    (!best || cpu->next_time_ns < best->next_time_ns))
			best = cpu;
	}
	return best;
}

static int hand_over(struct tickmap_sampler *s, struct cpu *cpu,
		     int (*handler)(void *context,
				    const struct tickmap_raw_record *),
		     void *context)
{
	struct tickmap_raw_record record = {
		.type = cpu->next.type,
		.misc = cpu->next.misc,
		.size = cpu->next.size,
		.time_ns = cpu->next_time_ns,
		.cpu = cpu->number,
	};

	if (record.time_ns >= s->handed_over_ns)
		s->handed_over_ns = record.time_ns;
	else if (record.time_ns)
		s->late++;
	record.bytes = tickmap_ring_record(&cpu->ring, record.size, s->bounce);
	int status = handler(context, &record);
	tickmap_ring_consume(&cpu->ring, record.size);
	look_at_next(cpu);
	return status;
}

int tickmap_sampler_drain(struct tickmap_sampler *s, uint64_t until_ns,
			  int (*handler)(void *context,
					 const struct tickmap_raw_record *),
			  void *context)
{
	/* What arrives from here on waits for the next call: a busy producer
	 * must not keep us. */
	for (size_t c = 0; c < s->cpus.count; c++) {
		if (!s->cpus.items[c].ring.meta)
			return TICKMAP_OK; /* the rings were released */
		tickmap_ring_look(&s->cpus.items[c].ring);
		look_at_next(&s->cpus.items[c]);
	}
	for (struct cpu *cpu; (cpu = oldest(s));) {
		if (cpu->next_time_ns > until_ns)
			break;
		int status = hand_over(s, cpu, handler, context);
		if (status)
			return status;
	}
	return TICKMAP_OK;
}

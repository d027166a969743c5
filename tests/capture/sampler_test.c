/* SPDX-License-Identifier: MIT */
#include "capture/sample.h"
#include "capture/sampler.h"
#include "platform/platform.h"
#include "spin.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
/* cmocka wants the above first */
#include <cmocka.h>

/* Like assert_true, but also right in a fork of the test. */
static bool in_fork;
#define require(condition)                                                     \
	do {                                                                   \
		if (!(condition)) {                                            \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__,     \
				#condition);                                   \
			if (in_fork)                                           \
				_exit(1);                                      \
			fail();                                                \
		}                                                              \
	} while (0)

struct seen {
	struct tickmap_sample_layout layout;
	uint64_t last_ns, out_of_order;
	unsigned samples, with_stack, with_regs, with_anon_exec;
	unsigned comm_exec, mmap, fork, exit, lost;
	uint64_t lost_samples;
	pid_t pid, other_pid, other_tid;
	unsigned samples_of_child, samples_of_thread;
	uint64_t cpus;
	unsigned stop_after;
};

static struct tickmap_sample_layout
layout_of(const struct perf_event_attr *attr)
{
	return (struct tickmap_sample_layout) {
		.sample_type = attr->sample_type,
		.read_format = attr->read_format,
		.regs_user = attr->sample_regs_user,
		.regs_intr = attr->sample_regs_intr,
		.branch_sample_type = attr->branch_sample_type,
		.sample_id_all = attr->sample_id_all,
	};
}

static void see_sample(struct seen *seen, const struct tickmap_raw_record *r,
		       struct tickmap_bytes *body)
{
	struct tickmap_sample sample;
	struct tickmap_error err = { 0 };

	require(tickmap_sample_decode(&seen->layout, body, &sample, &err) == 0);
	require(sample.time_ns == r->time_ns);
	require(body->pos == body->size);
	seen->samples++;
	seen->cpus |= UINT64_C(1) << (sample.cpu & 63);
	require(sample.cpu == r->cpu);
	if (sample.regs_abi) {
		seen->with_regs++;
		/* The stack begins where the stack pointer points. */
		require(sample.regs[7] != 0);
	}
	seen->with_stack += sample.stack_size > 0;
	if ((pid_t)sample.pid != seen->pid)
		seen->samples_of_child++;
	else if (sample.tid != sample.pid)
		seen->samples_of_thread++;
}

static void see_mmap(struct seen *seen, const struct tickmap_raw_record *r,
		     struct tickmap_bytes *body)
{
	struct tickmap_mmap_record mmap;

	require(tickmap_mmap_decode(body, r->type, r->misc, &mmap) == 0);
	require(mmap.prot & PROT_EXEC);
	seen->mmap++;
	seen->with_anon_exec += !strncmp(mmap.path, "//anon", 6);
}

static int see(void *context, const struct tickmap_raw_record *r)
{
	struct seen *seen = context;
	struct tickmap_bytes body = tickmap_bytes_of(r->bytes + 8, r->size - 8);
	struct tickmap_sample_id id;
	struct tickmap_comm_record comm;
	struct tickmap_task_record task;

	if (r->time_ns < seen->last_ns)
		seen->out_of_order++;
	else
		seen->last_ns = r->time_ns;
	if (r->type != PERF_RECORD_SAMPLE) {
		require(tickmap_sample_id_decode(&seen->layout, r->bytes,
						 r->size, false, &id) == 0);
		require(id.time_ns == r->time_ns);
	}
	switch (r->type) {
	case PERF_RECORD_SAMPLE:
		see_sample(seen, r, &body);
		break;
	case PERF_RECORD_MMAP2:
		see_mmap(seen, r, &body);
		break;
	case PERF_RECORD_COMM:
		require(tickmap_comm_decode(&body, r->misc, &comm) == 0);
		seen->comm_exec += comm.exec;
		break;
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		require(tickmap_task_decode(&body, &task) == 0);
		/* The kernel reads the clock twice for these. */
		require(task.time_ns - r->time_ns + 1000000 < 2000000);
		if (r->type == PERF_RECORD_FORK)
			seen->fork++;
		else
			seen->exit++;
		break;
	case PERF_RECORD_LOST:
		tickmap_u64(&body);
		seen->lost++;
		seen->lost_samples += tickmap_u64(&body);
		break;
	default:
		break;
	}
	if (seen->stop_after && !--seen->stop_after)
		return 42;
	return 0;
}

static struct tickmap_sampler_options options_for(const pid_t *pid)
{
	return (struct tickmap_sampler_options) {
		.frequency = 999,
		.pids = pid,
		.pid_count = 1,
		.enable_on_exec = true,
		.stack_bytes = 16384,
		.ring_bytes = 2 << 20,
	};
}

static struct tickmap_sampler *
must_open(const struct tickmap_sampler_options *options)
{
	struct tickmap_sampler *sampler = NULL;
	struct tickmap_error err = { 0 };
	char text[256];

	if (tickmap_sampler_open(options, &sampler, &err)) {
		print_error("%s\n",
			    tickmap_error_text(&err, text, sizeof(text)));
		fail();
	}
	return sampler;
}

/* Drains until the process has ended. */
static void watch(struct tickmap_sampler *sampler, struct spin *spin,
		  struct seen *seen)
{
	int pidfd = (int)syscall(SYS_pidfd_open, spin->pid, 0);

	assert_true(pidfd >= 0);
	seen->pid = spin->pid;
	seen->layout = layout_of(tickmap_sampler_attr(sampler));
	for (int over = 0; !over;) {
		over = tickmap_sampler_wait(sampler, pidfd, 50, NULL);
		assert_true(over >= 0);
		uint64_t until =
			over ? UINT64_MAX : tickmap_mono_ns() - 20000000;
		assert_int_equal(
			tickmap_sampler_drain(sampler, until, see, seen), 0);
	}
	close(pidfd);
}

static void
a_launched_program_is_sampled_with_its_threads_and_children(void **state)
{
	struct spin spin = spin_prepare("200");
	struct tickmap_sampler_options options = options_for(&spin.pid);
	struct tickmap_sampler *sampler = must_open(&options);
	struct seen seen = { 0 };
	(void)state;

	spin_go(&spin);
	watch(sampler, &spin, &seen);
	assert_int_equal(WEXITSTATUS(spin_end(&spin)), 7);

	/* 200 ms of CPU time each for the program, its thread and its child,
	 * 999 times a second. */
	assert_in_range(seen.samples, 300, 1200);
	assert_in_range(seen.samples_of_thread, 80, 400);
	assert_in_range(seen.samples_of_child, 80, 400);
	assert_true(seen.with_stack > seen.samples * 9 / 10);
	assert_true(seen.with_regs > seen.samples * 9 / 10);
	assert_int_equal(seen.comm_exec, 1);
	assert_true(seen.mmap >= 4); /* program, ld.so, libc, vdso */
	assert_true(seen.with_anon_exec >= 1);
	assert_int_equal(seen.fork, 2);
	assert_int_equal(seen.exit, 3);
	/* A busy machine may keep us away for longer than a ring lasts. */
	assert_true(seen.lost <= seen.samples / 20);
	/* With 20 ms of patience nothing comes too late. */
	assert_int_equal(seen.out_of_order,
			 tickmap_sampler_late_count(sampler));
	assert_true(seen.out_of_order <= 2);
	tickmap_sampler_close(sampler);
}

static void a_running_process_is_attached_with_all_threads(void **state)
{
	struct spin spin = spin_prepare("300");
	struct tickmap_sampler_options options = options_for(&spin.pid);
	struct seen seen = { 0 };
	char path[64];
	(void)state;

	spin_go(&spin);
	/* Until the second thread is there. */
	snprintf(path, sizeof(path), "/proc/%d/status", (int)spin.pid);
	for (int tries = 0; tries < 500; tries++) {
		char *text;
		size_t size;
		assert_int_equal(
			tickmap_read_file(path, 65536, &text, &size, NULL), 0);
		bool two = strstr(text, "Threads:\t2") != NULL;
		free(text);
		if (two)
			break;
		usleep(1000);
	}
	options.enable_on_exec = false;
	struct tickmap_sampler *sampler = must_open(&options);
	assert_int_equal(tickmap_sampler_enable(sampler), 0);
	watch(sampler, &spin, &seen);
	assert_int_equal(WEXITSTATUS(spin_end(&spin)), 7);
	assert_true(seen.samples > 150);
	assert_in_range(seen.samples_of_thread, 60, 500);
	tickmap_sampler_close(sampler);
}

/* Events of ended tasks are always "readable"; polling them would spin. */
static void waiting_for_ended_tasks_lasts_its_time(void **state)
{
	struct spin spin = spin_prepare("20");
	struct tickmap_sampler_options options = options_for(&spin.pid);
	struct seen seen = { .pid = spin.pid };
	(void)state;

	struct tickmap_sampler *sampler = must_open(&options);
	seen.layout = layout_of(tickmap_sampler_attr(sampler));
	spin_go(&spin);
	spin_end(&spin);
	assert_int_equal(tickmap_sampler_drain(sampler, UINT64_MAX, see, &seen),
			 0);
	tickmap_sampler_wait(sampler, -1, 200, NULL);
	tickmap_sampler_wait(sampler, -1, 200, NULL);
	uint64_t before = tickmap_mono_ns();
	assert_int_equal(tickmap_sampler_wait(sampler, -1, 200, NULL), 0);
	assert_true(tickmap_mono_ns() - before > 190000000);
	unsigned samples = seen.samples;
	tickmap_sampler_release_rings(sampler);
	assert_int_equal(tickmap_sampler_drain(sampler, UINT64_MAX, see, &seen),
			 0);
	assert_int_equal(tickmap_sampler_wait(sampler, -1, 0, NULL), 0);
	assert_int_equal(seen.samples, samples);
	assert_true(tickmap_sampler_attr(sampler)->use_clockid);
	assert_true(tickmap_sampler_ring_bytes(sampler) > 0);
	tickmap_sampler_close(sampler);
}

static void a_disabled_sampler_hands_over_nothing_new(void **state)
{
	pid_t self = getpid();
	struct tickmap_sampler_options options = options_for(&self);
	struct seen seen = { .pid = self };
	(void)state;

	options.enable_on_exec = false;
	struct tickmap_sampler *sampler = must_open(&options);
	seen.layout = layout_of(tickmap_sampler_attr(sampler));
	assert_int_equal(tickmap_sampler_enable(sampler), 0);
	spin_here(100);
	assert_int_equal(tickmap_sampler_disable(sampler), 0);
	assert_int_equal(tickmap_sampler_drain(sampler, UINT64_MAX, see, &seen),
			 0);
	unsigned before = seen.samples;
	assert_true(before > 5);
	spin_here(20);
	assert_int_equal(tickmap_sampler_drain(sampler, UINT64_MAX, see, &seen),
			 0);
	assert_int_equal(seen.samples, before);
	tickmap_sampler_close(sampler);
}

static void drain_stops_at_the_time_and_at_the_handlers_word(void **state)
{
	struct spin spin = spin_prepare("100");
	struct tickmap_sampler_options options = options_for(&spin.pid);
	struct tickmap_sampler *sampler = must_open(&options);
	struct seen seen = { .pid = spin.pid };
	(void)state;

	seen.layout = layout_of(tickmap_sampler_attr(sampler));
	uint64_t before = tickmap_mono_ns();
	spin_go(&spin);
	spin_end(&spin);
	assert_int_equal(tickmap_sampler_drain(sampler, before, see, &seen), 0);
	assert_int_equal(seen.last_ns, 0);
	seen.stop_after = 3;
	assert_int_equal(tickmap_sampler_drain(sampler, UINT64_MAX, see, &seen),
			 42);
	uint64_t third = seen.last_ns;
	assert_true(third > before);
	assert_int_equal(tickmap_sampler_drain(sampler, UINT64_MAX, see, &seen),
			 0);
	assert_true(seen.last_ns > third);
	assert_int_equal(seen.out_of_order, 0);
	tickmap_sampler_close(sampler);
}

static void a_tiny_ring_loses_samples_and_counts_them(void **state)
{
	struct spin spin = spin_prepare("200");
	struct tickmap_sampler_options options = options_for(&spin.pid);
	struct seen seen = { .pid = spin.pid };
	(void)state;

	options.ring_bytes = 1;
	options.frequency = 2000;
	struct tickmap_sampler *sampler = must_open(&options);
	const struct perf_event_attr *attr = tickmap_sampler_attr(sampler);
	size_t ring = tickmap_sampler_ring_bytes(sampler) /
		      tickmap_sampler_cpu_count(sampler);
	assert_true(attr->sample_stack_user * 12 < ring);
	seen.layout = layout_of(attr);
	spin_go(&spin);
	spin_end(&spin);
	/* Full and wrapped, then room again: LOST is written with the next
	 * record that finds room. */
	assert_int_equal(tickmap_sampler_drain(sampler, UINT64_MAX, see, &seen),
			 0);
	assert_true(seen.samples > 10);
	assert_true(seen.samples < 200);
	tickmap_sampler_close(sampler);
}

/* The loss shows only behind new room, so somebody must drain once. */
static void losses_are_told_as_soon_as_there_is_room(void **state)
{
	pid_t self = getpid();
	struct tickmap_sampler_options options = options_for(&self);
	struct seen seen = { .pid = self };
	(void)state;

	options.enable_on_exec = false;
	options.ring_bytes = 1;
	options.frequency = 2000;
	struct tickmap_sampler *sampler = must_open(&options);
	seen.layout = layout_of(tickmap_sampler_attr(sampler));
	assert_int_equal(tickmap_sampler_enable(sampler), 0);
	/* 600 samples' time for rings of about 12 each; on which CPUs is not
	 * ours to say, so that one may have its room for long. */
	for (int i = 0; i < 20 && !seen.lost; i++) {
		spin_here(300);
		assert_int_equal(
			tickmap_sampler_drain(sampler, UINT64_MAX, see, &seen),
			0);
	}
	assert_true(seen.lost >= 1);
	assert_true(seen.lost_samples > 10);
	tickmap_sampler_close(sampler);
}

static void every_cpu_gets_an_event_whatever_our_own_affinity(void **state)
{
	cpu_set_t before, one;
	pid_t self = getpid();
	struct tickmap_sampler_options options = options_for(&self);
	(void)state;

	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	CPU_ZERO(&one);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &before) && !CPU_COUNT(&one))
			CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	struct tickmap_sampler *sampler = must_open(&options);
	assert_int_equal(tickmap_sampler_cpu_count(sampler),
			 sysconf(_SC_NPROCESSORS_ONLN));
	tickmap_sampler_close(sampler);
	sched_setaffinity(0, sizeof(before), &before);
}

static void a_frequency_above_the_kernels_limit_is_refused(void **state)
{
	pid_t self = getpid();
	struct tickmap_sampler_options options = options_for(&self);
	struct tickmap_sampler *sampler = NULL;
	struct tickmap_error err = { 0 };
	(void)state;

	options.frequency = 100000000;
	assert_int_equal(tickmap_sampler_open(&options, &sampler, &err),
			 TICKMAP_E_LIMIT);
	assert_non_null(strstr(err.what, "perf_event_max_sample_rate"));
	options.frequency = 0;
	assert_int_equal(tickmap_sampler_open(&options, &sampler, &err),
			 TICKMAP_E_LIMIT);
	assert_null(sampler);
}

static void a_process_that_is_gone_is_said_so(void **state)
{
	struct spin spin = spin_prepare("1");
	struct tickmap_sampler_options options = options_for(&spin.pid);
	struct tickmap_sampler *sampler = NULL;
	struct tickmap_error err = { 0 };
	(void)state;

	spin_end(&spin);
	assert_int_equal(tickmap_sampler_open(&options, &sampler, &err),
			 TICKMAP_E_OS);
	assert_int_equal(err.os_errno, ESRCH);
}

/* ---- Under restrictions, each in a process of its own ---- */

enum { SKIPPED = 77 };

/* Runs the body in a fork: its limits must not outlive it. */
static void apart(void (*body)(void))
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		in_fork = true;
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == SKIPPED) {
		print_message("skipped: needs root to become someone else\n");
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void record_within_limits(bool sees_kernel)
{
	struct spin spin = spin_prepare("100");
	struct tickmap_sampler_options options = options_for(&spin.pid);
	struct tickmap_sampler *sampler = NULL;
	struct tickmap_error err = { 0 };
	struct seen seen = { .pid = spin.pid };
	char text[256];

	options.ring_bytes = 16 << 20;
	if (tickmap_sampler_open(&options, &sampler, &err)) {
		fprintf(stderr, "%s\n",
			tickmap_error_text(&err, text, sizeof(text)));
		_exit(1);
	}
	require(tickmap_sampler_sees_kernel(sampler) == sees_kernel);
	require(!strstr(tickmap_sampler_event_name(sampler), ":u") ==
		sees_kernel);
	seen.layout = layout_of(tickmap_sampler_attr(sampler));
	spin_go(&spin);
	spin_end(&spin);
	require(tickmap_sampler_drain(sampler, UINT64_MAX, see, &seen) == 0);
	/* perf_event_mlock_kb's default has room for 512 KiB a CPU, which hold
	 * 31 samples of this size each: nobody drained in between. */
	require(tickmap_sampler_ring_bytes(sampler) /
			tickmap_sampler_cpu_count(sampler) >=
		512 * 1024);
	require(seen.samples > 20);
	tickmap_sampler_close(sampler);
}

static bool paranoid_above_1(void)
{
	char line[32];

	return tickmap_read_line("/proc/sys/kernel/perf_event_paranoid", line,
				 sizeof(line)) &&
	       strtol(line, NULL, 10) > 1;
}

static void body_unprivileged(void)
{
	struct rlimit memlock = { 65536, 65536 };

	if (geteuid())
		_exit(SKIPPED);
	require(!setrlimit(RLIMIT_MEMLOCK, &memlock));
	/* Nobody's quota for rings, which others may use at this moment, is
	 * not ours. */
	require(!setresgid(65533, 65533, 65533));
	require(!setresuid(65533, 65533, 65533));
	/* Changing the uid made us undumpable, and so unsampleable. */
	require(!prctl(PR_SET_DUMPABLE, 1));
	record_within_limits(!paranoid_above_1());
}

static void anyone_may_sample_their_own_user_code(void **state)
{
	(void)state;
	apart(body_unprivileged);
}

static void body_few_files(void)
{
	struct rlimit files = { 64, 64 };

	require(!setrlimit(RLIMIT_NOFILE, &files));
	record_within_limits(geteuid() == 0 || !paranoid_above_1());
}

static void sixty_four_files_are_enough_to_launch(void **state)
{
	(void)state;
	if (sysconf(_SC_NPROCESSORS_ONLN) > 40)
		skip();
	apart(body_few_files);
}

static void body_no_files(void)
{
	pid_t self = getpid();
	struct tickmap_sampler_options options = options_for(&self);
	struct tickmap_sampler *sampler = NULL;
	struct tickmap_error err = { 0 };
	int last = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct rlimit files = { (rlim_t)last + 2, (rlim_t)last + 2 };

	/* Room for one file: /proc/self/task can be listed, the second event
	 * (or a second CPU's) cannot be opened. */
	require(!setrlimit(RLIMIT_NOFILE, &files));
	options.enable_on_exec = false;
	int status = tickmap_sampler_open(&options, &sampler, &err);
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2) {
		require(status == 0);
		return;
	}
	require(status == TICKMAP_E_OS);
	require(err.os_errno == EMFILE);
	require(strstr(err.what, "RLIMIT_NOFILE"));
}

static void too_few_files_are_named_as_the_reason(void **state)
{
	(void)state;
	apart(body_no_files);
}

static void refuse_perf_event_open(unsigned os_errno)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | os_errno),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { 4, filter };
	pid_t self = getpid();
	struct tickmap_sampler_options options = options_for(&self);
	struct tickmap_sampler *sampler = NULL;
	struct tickmap_error err = { 0 };

	require(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	require(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
	require(tickmap_sampler_open(&options, &sampler, &err) == TICKMAP_E_OS);
	require(err.os_errno == (int)os_errno);
	require(strstr(err.what, "cpu-clock of user code"));
}

static void body_eperm(void)
{
	refuse_perf_event_open(EPERM);
}

static void body_eacces(void)
{
	refuse_perf_event_open(EACCES);
}

static void body_enosys(void)
{
	refuse_perf_event_open(ENOSYS);
}

static void a_kernel_that_refuses_is_quoted(void **state)
{
	(void)state;
	apart(body_eperm);
	apart(body_eacces);
	apart(body_enosys);
}

/* Can this machine sample at all? Not in every container. */
static bool may_sample(void)
{
	pid_t self = getpid();
	struct tickmap_sampler_options options = options_for(&self);
	struct tickmap_sampler *sampler = NULL;
	struct tickmap_error err = { 0 };
	char text[256];

	if (!tickmap_sampler_open(&options, &sampler, &err)) {
		tickmap_sampler_close(sampler);
		return true;
	}
	fprintf(stderr, "skipped: %s\n",
		tickmap_error_text(&err, text, sizeof(text)));
	return err.os_errno != EACCES && err.os_errno != EPERM &&
	       err.os_errno != ENOSYS;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_launched_program_is_sampled_with_its_threads_and_children),
		cmocka_unit_test(
			a_running_process_is_attached_with_all_threads),
		cmocka_unit_test(waiting_for_ended_tasks_lasts_its_time),
		cmocka_unit_test(a_disabled_sampler_hands_over_nothing_new),
		cmocka_unit_test(
			drain_stops_at_the_time_and_at_the_handlers_word),
		cmocka_unit_test(a_tiny_ring_loses_samples_and_counts_them),
		cmocka_unit_test(losses_are_told_as_soon_as_there_is_room),
		cmocka_unit_test(
			every_cpu_gets_an_event_whatever_our_own_affinity),
		cmocka_unit_test(
			a_frequency_above_the_kernels_limit_is_refused),
		cmocka_unit_test(a_process_that_is_gone_is_said_so),
		cmocka_unit_test(anyone_may_sample_their_own_user_code),
		cmocka_unit_test(sixty_four_files_are_enough_to_launch),
		cmocka_unit_test(too_few_files_are_named_as_the_reason),
		cmocka_unit_test(a_kernel_that_refuses_is_quoted),
	};

	spin_main(argc, argv);
	if (!may_sample())
		return SKIPPED;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

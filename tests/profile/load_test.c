/* SPDX-License-Identifier: MIT */
/* The loader on recordings made up record by record. */
#include "recording.h"

#include "profile/load.h"
#include "unwind/unwind.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define MS UINT64_C(1000000)
#define START (UINT64_C(100) * 1000 * MS) /* of the recording */
#define JIT UINT64_C(0x7f0000000000)
#define PID 4194001u /* above any real pid's range by default */
#define PARENT 4194000u /* of no process, and so with no map of its own */

static const char *text(const struct tickmap_profile *p, tickmap_str id)
{
	return tickmap_string(p->strings, id, NULL);
}

static const struct tickmap_frame *leaf(const struct tickmap_profile *p,
					size_t sample)
{
	assert_true(sample < p->samples.count);
	uint32_t node = p->samples.items[sample].node;
	assert_true(node);
	return &p->frames.items[p->nodes.items[node].frame];
}

static const char *leaf_name(const struct tickmap_profile *p, size_t sample)
{
	return text(p, leaf(p, sample)->name);
}

static bool has_finding(const struct tickmap_profile *p, const char *id)
{
	for (size_t i = 0; i < p->findings.count; i++)
		if (!strncmp(text(p, p->findings.items[i]), id, strlen(id)))
			return true;
	return false;
}

static void begin_process(struct recording *r, uint32_t pid)
{
	record_comm(r, 0, pid, pid, "prog", true);
	record_map(r, 0, pid, JIT, 0x100000, "//anon");
}

static void embed(struct recording *r, uint32_t pid, const struct dump *dump)
{
	record_note(r, TICKMAP_NOTE_JITDUMP, pid, pid, 0, 0, dump->bytes,
		    dump->size);
}

static void done(struct recording *r, struct tickmap_profile *p)
{
	tickmap_profile_free(p);
	recording_remove(r);
}

static void a_reused_address_names_the_code_that_was_there_then(void **state)
{
	static struct dump dump;
	struct recording r;

	(void)state;
	recording_open(&r, CLOCK_MONOTONIC);
	begin_process(&r, PID);
	dump_begin(&dump, PID, 0);
	dump_load(&dump, START, PID, JIT, 64, "old");
	dump_load(&dump, START + 100 * MS, PID, JIT + 16, 16, "new");
	embed(&r, PID, &dump);
	record_sample(&r, START + 50 * MS, PID, JIT + 20);
	record_sample(&r, START + 150 * MS, PID, JIT + 20);
	record_sample(&r, START + 151 * MS, PID, JIT + 40);
	record_sample(&r, START + 152 * MS, PID, JIT + 64);

	struct tickmap_profile *p = recording_load(&r, NULL);
	assert_int_equal(p->samples.count, 4);
	assert_string_equal(leaf_name(p, 0), "old");
	assert_string_equal(leaf_name(p, 1), "new");
	assert_string_equal(leaf_name(p, 2), "old");
	assert_int_equal(leaf(p, 3)->reason, TICKMAP_UNRESOLVED_NOT_IN_MAP);
	assert_string_equal(leaf_name(p, 3), "[jit+0x7f0000000000]");
	assert_string_equal(text(p, leaf(p, 0)->dso), "[jit]");
	assert_int_equal(p->jit_samples, 4);
	assert_int_equal(p->jit_resolved, 3);
	assert_int_equal(p->unresolved[TICKMAP_UNRESOLVED_NOT_IN_MAP], 1);
	assert_int_equal(p->code_loads, 2);
	assert_string_equal(p->clock.domain, "monotonic");
	assert_string_equal(p->clock.method, "same");
	assert_int_equal(p->samples.items[1].cpu, 3);
	assert_true(p->cpu_seconds > 0.0039 && p->cpu_seconds < 0.0041);
	done(&r, p);
}

static void moved_code_keeps_its_name(void **state)
{
	static struct dump dump;
	struct recording r;

	(void)state;
	recording_open(&r, CLOCK_MONOTONIC);
	begin_process(&r, PID);
	dump_begin(&dump, PID, 0);
	dump_load(&dump, START, PID, JIT, 64, "f");
	dump_move(&dump, START + 10 * MS, PID, JIT, JIT + 0x1000, 64);
	embed(&r, PID, &dump);
	record_sample(&r, START + 5 * MS, PID, JIT + 8);
	record_sample(&r, START + 15 * MS, PID, JIT + 0x1008);
	record_sample(&r, START + 15 * MS, PID, JIT + 8);

	struct tickmap_profile *p = recording_load(&r, NULL);
	assert_string_equal(leaf_name(p, 0), "f");
	assert_string_equal(leaf_name(p, 1), "f");
	assert_int_equal(leaf(p, 2)->reason, TICKMAP_UNRESOLVED_OTHER_TIME);
	done(&r, p);
}

static void a_child_starts_with_its_parents_code_and_no_more(void **state)
{
	static struct dump dump;
	struct recording r;

	(void)state;
	recording_open(&r, CLOCK_MONOTONIC);
	begin_process(&r, PID);
	dump_begin(&dump, PID, 0);
	dump_load(&dump, START, PID, JIT, 64, "before");
	dump_load(&dump, START + 100 * MS, PID, JIT + 64, 64, "after");
	/* The child kept the dump open and wrote into it. */
	dump_load(&dump, START + 120 * MS, PID + 1, JIT + 128, 64, "childs");
	embed(&r, PID, &dump);
	record_fork(&r, START + 50 * MS, PID + 1, PID);
	record_sample(&r, START + 150 * MS, PID + 1, JIT);
	record_sample(&r, START + 151 * MS, PID + 1, JIT + 64);
	record_sample(&r, START + 152 * MS, PID + 1, JIT + 128);
	record_sample(&r, START + 153 * MS, PID, JIT + 64);
	record_sample(&r, START + 154 * MS, PID, JIT + 128);

	struct tickmap_profile *p = recording_load(&r, NULL);
	assert_string_equal(leaf_name(p, 0), "before");
	assert_int_equal(leaf(p, 1)->kind, TICKMAP_FRAME_UNRESOLVED);
	assert_int_equal(leaf(p, 1)->reason, TICKMAP_UNRESOLVED_NOT_IN_MAP);
	assert_string_equal(leaf_name(p, 2), "childs");
	assert_string_equal(leaf_name(p, 3), "after");
	assert_int_equal(leaf(p, 4)->kind, TICKMAP_FRAME_UNRESOLVED);
	assert_string_equal(text(p, p->threads.items[0].comm), "prog");
	done(&r, p);
}

static void exec_forgets_everything(void **state)
{
	static struct dump dump;
	struct recording r;

	(void)state;
	recording_open(&r, CLOCK_MONOTONIC);
	begin_process(&r, PID);
	dump_begin(&dump, PID, 0);
	dump_load(&dump, START, PID, JIT, 64, "f");
	embed(&r, PID, &dump);
	record_sample(&r, START + 50 * MS, PID, JIT);
	record_comm(&r, START + 60 * MS, PID, PID, "other", true);
	record_sample(&r, START + 70 * MS, PID, JIT);

	struct tickmap_profile *p = recording_load(&r, NULL);
	assert_string_equal(leaf_name(p, 0), "f");
	assert_int_equal(leaf(p, 1)->kind, TICKMAP_FRAME_UNRESOLVED);
	const struct tickmap_thread *threads = p->threads.items;
	assert_string_equal(text(p, threads[p->samples.items[0].thread].comm),
			    "prog");
	assert_string_equal(text(p, threads[p->samples.items[1].thread].comm),
			    "other");
	done(&r, p);
}

static void a_pid_that_comes_again_is_another_process(void **state)
{
	static struct dump dump;
	struct recording r;

	(void)state;
	recording_open(&r, CLOCK_MONOTONIC);
	begin_process(&r, PID);
	dump_begin(&dump, PID, 0);
	dump_load(&dump, START, PID, JIT, 64, "first");
	embed(&r, PID, &dump);
	record_sample(&r, START + 1 * MS, PID, JIT);
	record_exit(&r, START + 2 * MS, PID);
	record_fork(&r, START + 10 * MS, PID, PARENT);
	record_map(&r, START + 11 * MS, PID, JIT, 0x1000, "//anon");
	record_sample(&r, START + 12 * MS, PID, JIT);
	dump_begin(&dump, PID, 0);
	dump_load(&dump, START + 15 * MS, PID, JIT, 64, "second");
	record_note(&r, TICKMAP_NOTE_JITDUMP, PID, 77, START + 12 * MS, 0,
		    dump.bytes, dump.size);
	record_sample(&r, START + 20 * MS, PID, JIT);

	struct tickmap_profile *p = recording_load(&r, NULL);
	assert_string_equal(leaf_name(p, 0), "first");
	assert_int_equal(leaf(p, 1)->kind, TICKMAP_FRAME_UNRESOLVED);
	assert_string_equal(leaf_name(p, 2), "second");
	done(&r, p);
}

static void code_published_a_moment_later_counts_as_early(void **state)
{
	static struct dump dump;
	struct recording r;

	(void)state;
	recording_open(&r, CLOCK_MONOTONIC);
	begin_process(&r, PID);
	dump_begin(&dump, PID, 0);
	dump_load(&dump, START + 10 * MS, PID, JIT, 64, "f");
	embed(&r, PID, &dump);
	record_sample(&r, START + 8 * MS, PID, JIT);
	record_sample(&r, START + 10 * MS - 900000, PID, JIT);
	record_sample(&r, START + 11 * MS, PID, JIT);

	struct tickmap_profile *p = recording_load(&r, NULL);
	assert_int_equal(leaf(p, 0)->reason, TICKMAP_UNRESOLVED_OTHER_TIME);
	assert_string_equal(leaf_name(p, 1), "f");
	assert_string_equal(leaf_name(p, 2), "f");
	assert_int_equal(p->early, 1);
	assert_int_equal(p->clock.violations, 1);
	assert_int_equal(p->unresolved[TICKMAP_UNRESOLVED_OTHER_TIME], 1);
	done(&r, p);
}

static void a_truncation_note_marks_the_next_sample_only(void **state)
{
	struct recording r;

	(void)state;
	recording_open(&r, CLOCK_MONOTONIC);
	begin_process(&r, PID);
	record_sample(&r, START, PID, JIT);
	record_note(&r, TICKMAP_NOTE_TRUNCATED, 0, 0, 0,
		    TICKMAP_END_STACK_SHORT, NULL, 0);
	record_sample(&r, START + 1, PID, JIT);
	record_sample(&r, START + 2, PID, JIT);

	struct tickmap_profile *p = recording_load(&r, NULL);
	assert_int_equal(p->truncated, 1);
	assert_int_equal(p->truncated_by[TICKMAP_END_STACK_SHORT], 1);
	assert_int_equal(p->samples.items[0].truncated, 0);
	assert_int_equal(p->samples.items[1].truncated,
			 TICKMAP_END_STACK_SHORT);
	assert_int_equal(p->samples.items[2].truncated, 0);
	assert_int_equal(leaf(p, 0)->reason, TICKMAP_UNRESOLVED_NO_CODE_MAP);
	done(&r, p);
}

static void filters_leave_out_and_say_how_many(void **state)
{
	struct recording r;
	const uint32_t second = PID + 1, thread = PID + 2;

	(void)state;
	recording_open(&r, CLOCK_MONOTONIC);
	begin_process(&r, PID);
	begin_process(&r, PID + 1);
	record_thread(&r, START, PID, PID + 2);
	for (uint64_t i = 0; i < 10; i++) {
		const uint64_t chain[] = { (uint64_t)PERF_CONTEXT_USER, JIT };
		record_chain(&r, START + i * MS, i % 2 ? PID : PID + 1,
			     i % 2 ? PID + 2 : PID + 1, chain, 2);
	}
	record_lost(&r, START, 5);
	recording_finish(&r);

	struct tickmap_profile_options by_pid = { .pids = &second,
						  .pid_count = 1 };
	struct tickmap_profile *p = recording_load(&r, &by_pid);
	assert_int_equal(p->samples.count, 5);
	assert_int_equal(p->filtered, 5);
	assert_int_equal(p->jit_samples, 5);
	assert_int_equal(p->lost, 5);
	tickmap_profile_free(p);

	struct tickmap_profile_options by_tid = { .tids = &thread,
						  .tid_count = 1 };
	p = recording_load(&r, &by_tid);
	assert_int_equal(p->samples.count, 5);
	assert_int_equal(p->threads.count, 1);
	assert_int_equal(p->threads.items[0].tid, PID + 2);
	assert_string_equal(text(p, p->threads.items[0].comm), "prog");
	tickmap_profile_free(p);

	struct tickmap_profile_options by_time = { .from_ns = START + 2 * MS,
						   .to_ns = START + 5 * MS };
	p = recording_load(&r, &by_time);
	assert_int_equal(p->samples.count, 3);
	assert_int_equal(p->filtered, 7);
	done(&r, p);
}

static void only_a_files_mapping_hides_code(void **state)
{
	static struct dump dump;
	struct recording r;

	(void)state;
	recording_open(&r, CLOCK_MONOTONIC);
	begin_process(&r, PID);
	dump_begin(&dump, PID, 0);
	dump_load(&dump, START, PID, JIT, 64, "f");
	embed(&r, PID, &dump);
	record_map(&r, START + 10 * MS, PID, JIT, 0x1000,
		   "/memfd:doublemapper (deleted)");
	record_sample(&r, START + 15 * MS, PID, JIT);
	record_map(&r, START + 20 * MS, PID, JIT, 0x1000,
		   "/dev/zero (deleted)");
	record_sample(&r, START + 25 * MS, PID, JIT);
	record_map(&r, START + 30 * MS, PID, JIT, 0x1000, "/no/such/lib.so");
	record_sample(&r, START + 35 * MS, PID, JIT);

	struct tickmap_profile *p = recording_load(&r, NULL);
	assert_string_equal(leaf_name(p, 0), "f");
	assert_string_equal(leaf_name(p, 1), "f");
	assert_int_equal(leaf(p, 2)->reason, TICKMAP_UNRESOLVED_FILE_MISSING);
	assert_string_equal(text(p, leaf(p, 2)->dso), "lib.so");
	assert_int_equal(p->jit_samples, 2);
	done(&r, p);
}

static void records_may_come_in_any_order(void **state)
{
	static struct dump dump;
	struct recording r;

	(void)state;
	recording_open(&r, CLOCK_MONOTONIC);
	record_sample(&r, START + 150 * MS, PID, JIT);
	record_sample(&r, START + 50 * MS, PID, JIT);
	record_sample(&r, START + 120 * MS, PID + 1, JIT);
	record_fork(&r, START + 110 * MS, PID + 1, PID);
	dump_begin(&dump, PID, 0);
	dump_load(&dump, START + 100 * MS, PID, JIT, 64, "new");
	dump_load(&dump, START, PID, JIT, 64, "old");
	embed(&r, PID, &dump);
	begin_process(&r, PID);

	struct tickmap_profile *p = recording_load(&r, NULL);
	assert_int_equal(p->samples.items[0].time_ns, START + 50 * MS);
	assert_string_equal(leaf_name(p, 0), "old");
	assert_string_equal(leaf_name(p, 1), "new");
	assert_string_equal(leaf_name(p, 2), "new");
	assert_int_equal(p->threads.items[p->samples.items[1].thread].pid,
			 PID + 1);
	done(&r, p);
}

static void callers_are_looked_up_one_byte_earlier(void **state)
{
	static struct dump dump;
	struct recording r;
	/* A kernel part, then a user part whose first address ran itself. */
	const uint64_t chain[] = {
		(uint64_t)PERF_CONTEXT_KERNEL,
		UINT64_C(0xffffffff81000010),
		(uint64_t)PERF_CONTEXT_USER,
		JIT + 64,
		JIT + 64,
		JIT + 64,
	};

	(void)state;
	recording_open(&r, CLOCK_MONOTONIC);
	begin_process(&r, PID);
	dump_begin(&dump, PID, 0);
	dump_load(&dump, START, PID, JIT, 64, "py::first:/a.py");
	dump_load(&dump, START, PID, JIT + 64, 64, "second");
	embed(&r, PID, &dump);
	record_chain(&r, START + MS, PID, PID, chain, 6);

	struct tickmap_profile *p = recording_load(&r, NULL);
	assert_int_equal(leaf(p, 0)->kind, TICKMAP_FRAME_KERNEL);
	assert_string_equal(text(p, leaf(p, 0)->dso), "[kernel]");
	assert_true(p->kernel_seen);
	assert_int_equal(p->samples.items[0].avma, chain[1]);
	uint32_t node = p->nodes.items[p->samples.items[0].node].parent;
	const struct tickmap_frame *f =
		&p->frames.items[p->nodes.items[node].frame];
	assert_string_equal(text(p, f->name), "second");
	assert_int_equal(f->kind, TICKMAP_FRAME_JIT);
	node = p->nodes.items[node].parent;
	f = &p->frames.items[p->nodes.items[node].frame];
	assert_string_equal(text(p, f->name), "py::first:/a.py");
	assert_int_equal(f->kind, TICKMAP_FRAME_PYTHON);
	/* The first frame was made up: nobody called from there. */
	node = p->nodes.items[node].parent;
	f = &p->frames.items[p->nodes.items[node].frame];
	assert_string_equal(text(p, f->name), "second");
	assert_int_equal(p->nodes.items[node].parent, 0);
	done(&r, p);
}

static void a_dump_wins_over_a_perf_map(void **state)
{
	static struct dump dump;
	static const char map[] = "7f0000000010 10 in map\n"
				  "7f0000000100 20 only in map\n";
	struct recording r;

	(void)state;
	recording_open(&r, CLOCK_MONOTONIC);
	begin_process(&r, PID);
	dump_begin(&dump, PID, 0);
	dump_load(&dump, START, PID, JIT, 64, "in dump");
	embed(&r, PID, &dump);
	record_note(&r, TICKMAP_NOTE_PERF_MAP, PID, 99, START + 10 * MS, 0, map,
		    sizeof(map) - 1);
	record_sample(&r, START + 20 * MS, PID, JIT + 0x18);
	record_sample(&r, START + 20 * MS, PID, JIT + 0x118);
	record_sample(&r, START + 5 * MS, PID, JIT + 0x118);

	struct tickmap_profile *p = recording_load(&r, NULL);
	assert_int_equal(leaf(p, 0)->reason, TICKMAP_UNRESOLVED_OTHER_TIME);
	assert_string_equal(leaf_name(p, 1), "in dump");
	assert_string_equal(leaf_name(p, 2), "only in map");
	done(&r, p);
}

static void a_dump_is_found_beside_the_recording(void **state)
{
	static struct dump dump;
	struct recording r;
	char marker[96], name[64];

	(void)state;
	recording_open(&r, CLOCK_MONOTONIC);
	begin_process(&r, PID);
	snprintf(name, sizeof(name), "jit-%u.dump", PID);
	snprintf(marker, sizeof(marker), "/gone/%s", name);
	record_map(&r, START, PID, JIT - 0x1000, 0x1000, marker);
	record_map(&r, START, PID + 1, JIT - 0x1000, 0x1000,
		   "/gone/jit-1.dump");
	record_sample(&r, START + 5 * MS, PID, JIT);
	record_sample(&r, START + 6 * MS, PID, JIT - 0x1000);
	dump_begin(&dump, 7 /* in its own pid namespace */, 0);
	dump_load(&dump, START + MS, 7, JIT, 64, "f");
	write_file(r.dir, name, dump.bytes, dump.size);

	struct tickmap_profile *p = recording_load(&r, NULL);
	assert_string_equal(leaf_name(p, 0), "f");
	assert_int_equal(leaf(p, 1)->reason, TICKMAP_UNRESOLVED_UNMAPPED);
	assert_true(has_finding(p, "CM002"));
	done(&r, p);
}

static void load_with_tmp_map(struct recording *r, time_t mtime, bool by_link,
			      struct tickmap_profile **ret)
{
	static const char map[] = "7f0000000000 40 f\n";
	struct timespec times[2] = { { .tv_sec = mtime }, { .tv_sec = mtime } };
	char name[64], path[96];

	snprintf(name, sizeof(name), "perf-%u.map", PID);
	snprintf(path, sizeof(path), "/tmp/%s", name);
	if (by_link) {
		char target[128];
		snprintf(target, sizeof(target), "%s/elsewhere", r->dir);
		write_file(r->dir, "elsewhere", map, sizeof(map) - 1);
		assert_int_equal(symlink(target, path), 0);
	} else {
		write_file("/tmp", name, map, sizeof(map) - 1);
		assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
	}
	*ret = recording_load(r, NULL);
	unlink(path);
}

static void a_perf_map_of_an_earlier_process_is_not_used(void **state)
{
	struct recording r;
	struct tickmap_profile *p;
	time_t now = time(NULL);

	(void)state;
	recording_open(&r, CLOCK_MONOTONIC);
	record_fork(&r, START, PID, PARENT);
	record_map(&r, START + MS, PID, JIT, 0x1000, "//anon");
	record_sample(&r, START + 20000 * MS, PID, JIT);
	recording_finish(&r);

	load_with_tmp_map(&r, now, false, &p);
	assert_string_equal(leaf_name(p, 0), "f");
	tickmap_profile_free(p);
	load_with_tmp_map(&r, now - 3600, false, &p);
	assert_int_equal(leaf(p, 0)->reason, TICKMAP_UNRESOLVED_NO_CODE_MAP);
	tickmap_profile_free(p);
	load_with_tmp_map(&r, now, true, &p);
	assert_int_equal(leaf(p, 0)->reason, TICKMAP_UNRESOLVED_NO_CODE_MAP);
	done(&r, p);
}

static void a_perf_map_in_a_named_folder_is_used(void **state)
{
	static const char map[] = "7f0000000000 40 f\n";
	struct recording r, other;
	char name[64];

	(void)state;
	recording_open(&other, CLOCK_MONOTONIC);
	recording_finish(&other);
	snprintf(name, sizeof(name), "perf-%u.map", PID);
	write_file(other.dir, name, map, sizeof(map) - 1);

	recording_open(&r, -1);
	begin_process(&r, PID);
	record_sample(&r, START, PID, JIT);
	const char *dirs[] = { other.dir };
	struct tickmap_profile_options options = { .code_map_dirs = dirs,
						   .code_map_dir_count = 1 };
	struct tickmap_profile *p = recording_load(&r, &options);
	assert_string_equal(leaf_name(p, 0), "f");
	assert_string_equal(p->clock.domain, "perf");
	assert_string_equal(p->clock.method, "none");
	recording_remove(&other);
	done(&r, p);
}

static void ticks_of_the_cpu_are_said_and_ignored(void **state)
{
	static struct dump dump;
	struct recording r;

	(void)state;
	recording_open(&r, CLOCK_MONOTONIC);
	begin_process(&r, PID);
	dump_begin(&dump, PID, 1);
	dump_load(&dump, START * 3, PID, JIT, 64, "f");
	embed(&r, PID, &dump);
	record_sample(&r, START, PID, JIT);

	struct tickmap_profile *p = recording_load(&r, NULL);
	assert_string_equal(leaf_name(p, 0), "f");
	assert_string_equal(p->clock.method, "none");
	assert_true(has_finding(p, "CK001"));
	done(&r, p);
}

static void other_events_are_counted_apart(void **state)
{
	struct recording r;

	(void)state;
	recording_open_faults(&r);
	begin_process(&r, PID);
	record_sample(&r, START, PID, JIT);
	record_sample(&r, START + MS, PID, JIT);

	struct tickmap_profile *p = recording_load(&r, NULL);
	assert_int_equal(p->samples.count, 0);
	assert_int_equal(p->other_events, 2);
	done(&r, p);
}

static void names_that_a_recording_carries_are_used(void **state)
{
	struct recording r;
	uint8_t bytes[64] = "/no/such/lib.so";
	size_t at = strlen((const char *)bytes) + 1;
	const uint64_t svma = 0x100, size = 0x40;

	(void)state;
	recording_open(&r, CLOCK_MONOTONIC);
	memcpy(bytes + at, &svma, 8);
	memcpy(bytes + at + 8, &size, 8);
	memcpy(bytes + at + 16, "_Z3foov", 8);
	record_note(&r, TICKMAP_NOTE_SYMBOLS, 0, 0, RECORDING_INODE, 1, bytes,
		    at + 24);
	/* Another file that was at the same path: not this one's names. */
	memcpy(bytes + at + 16, "_Z3barv", 8);
	record_note(&r, TICKMAP_NOTE_SYMBOLS, 0, 0, RECORDING_INODE + 1, 1,
		    bytes, at + 24);
	record_map(&r, 0, PID, JIT, 0x1000, "/no/such/lib.so");
	record_sample(&r, START, PID, JIT + 0x110);
	record_sample(&r, START + MS, PID, JIT + 0x200);

	struct tickmap_profile *p = recording_load(&r, NULL);
	assert_string_equal(leaf_name(p, 0), "foo()");
	assert_int_equal(leaf(p, 0)->kind, TICKMAP_FRAME_NATIVE);
	assert_int_equal(leaf(p, 1)->kind, TICKMAP_FRAME_UNRESOLVED);
	assert_int_equal(p->jit_samples, 0);
	done(&r, p);
}

static void a_killed_recording_keeps_what_it_wrote(void **state)
{
	struct recording r;
	char killed[128], bytes[1 << 14];

	(void)state;
	recording_open(&r, CLOCK_MONOTONIC);
	begin_process(&r, PID);
	record_sample(&r, START, PID, JIT);
	assert_int_equal(tickmap_perfdata_round(r.writer, NULL), 0);
	int fd = open(r.path, O_RDONLY | O_CLOEXEC);
	ssize_t size = read(fd, bytes, sizeof(bytes));
	close(fd);
	assert_true(size > 0 && (size_t)size < sizeof(bytes));
	write_file(r.dir, "killed", bytes, (size_t)size);
	recording_finish(&r);
	snprintf(killed, sizeof(killed), "%s/killed", r.dir);

	struct tickmap_profile *p = NULL;
	assert_int_equal(tickmap_profile_load(killed, NULL, &p, NULL), 0);
	assert_int_equal(p->samples.count, 1);
	assert_false(p->finished);
	done(&r, p);
}

static void the_interpreters_own_files_are_known(void **state)
{
	(void)state;
	assert_true(tickmap_frames_is_interpreter("/usr/bin/python3.11"));
	assert_true(tickmap_frames_is_interpreter(
		"/usr/lib/libpython3.13t.so.1.0"));
	assert_true(tickmap_frames_is_interpreter(
		"/x/_tickmap.cpython-311-x86_64-linux-gnu.so"));
	assert_false(tickmap_frames_is_interpreter("/usr/lib/libz.so.1"));
	assert_false(tickmap_frames_is_interpreter("/python3/lib.so"));
	assert_false(tickmap_frames_is_interpreter("_tickmap.py"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_reused_address_names_the_code_that_was_there_then),
		cmocka_unit_test(moved_code_keeps_its_name),
		cmocka_unit_test(
			a_child_starts_with_its_parents_code_and_no_more),
		cmocka_unit_test(exec_forgets_everything),
		cmocka_unit_test(a_pid_that_comes_again_is_another_process),
		cmocka_unit_test(code_published_a_moment_later_counts_as_early),
		cmocka_unit_test(a_truncation_note_marks_the_next_sample_only),
		cmocka_unit_test(filters_leave_out_and_say_how_many),
		cmocka_unit_test(only_a_files_mapping_hides_code),
		cmocka_unit_test(records_may_come_in_any_order),
		cmocka_unit_test(callers_are_looked_up_one_byte_earlier),
		cmocka_unit_test(a_dump_wins_over_a_perf_map),
		cmocka_unit_test(a_dump_is_found_beside_the_recording),
		cmocka_unit_test(a_perf_map_of_an_earlier_process_is_not_used),
		cmocka_unit_test(a_perf_map_in_a_named_folder_is_used),
		cmocka_unit_test(ticks_of_the_cpu_are_said_and_ignored),
		cmocka_unit_test(other_events_are_counted_apart),
		cmocka_unit_test(names_that_a_recording_carries_are_used),
		cmocka_unit_test(a_killed_recording_keeps_what_it_wrote),
		cmocka_unit_test(the_interpreters_own_files_are_known),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

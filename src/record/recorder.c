/* SPDX-License-Identifier: MIT */
#include "record/recorder.h"

#include "base/table.h"
#include "base/vec.h"
#include "capture/perfdata.h"
#include "capture/procmaps.h"
#include "codemap/marker.h"
#include "platform/platform.h"
#include "record/attach.h"
#include "record/follow.h"
#include "record/names.h"
#include "record/processes.h"
#include "unwind/unwind.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	/* Of all CPUs together: a busy CPU fills 64 KiB with each sample. */
	RING_BYTES = 16 * 1024 * 1024,
	RING_BYTES_A_CPU = 2 * 1024 * 1024, /* at least, where there are many */
	STACK_BYTES = 65528,		    /* the kernel's limit */
	ZSTD_LEVEL = 3,
	CHAIN_MAX = 7800, /* entries of a record below 64 KiB */
	/*
	 * A record gets its time before it becomes visible in its ring; other
	 * rings' records younger than this wait for the next look.
	 */
	HOLD_NS = 2 * 1000 * 1000,
	ROUND_NS = 250 * 1000 * 1000,
};

struct tickmap_recorder {
	struct tickmap_sampler *sampler;
	struct tickmap_perfdata_writer *writer;
	struct tickmap_modules *modules;
	struct tickmap_processes *processes;
	struct tickmap_follower *follower;
	struct tickmap_unwinder *unwinder;
	struct tickmap_names *names;
	struct tickmap_sample_layout layout;
	uint64_t last_round_ns, start_ns;
	uint64_t first_sample_ns, last_sample_ns;
	uint64_t samples, lost, truncated;
	struct tickmap_error *err; /* of the running step */
	uint64_t chain[CHAIN_MAX];
	uint64_t record[CHAIN_MAX + 16];
};

/* What the samples of the file hold: the kernel's own, with the walked chain
 * instead of registers and stack. */
static struct perf_event_attr file_attr(const struct perf_event_attr *kernel)
{
	struct perf_event_attr attr = *kernel;

	attr.size = PERF_ATTR_SIZE_VER7;
	attr.sample_type &=
		~(uint64_t)(PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER);
	attr.sample_regs_user = 0;
	attr.sample_stack_user = 0;
	attr.exclude_callchain_user = 0;
	attr.enable_on_exec = 0;
	return attr;
}

static struct tickmap_sample_layout
layout_of(const struct perf_event_attr *attr)
{
	struct tickmap_sample_layout layout = {
		.sample_type = attr->sample_type,
		.read_format = attr->read_format,
		.regs_user = attr->sample_regs_user,
		.regs_intr = attr->sample_regs_intr,
		.branch_sample_type = attr->branch_sample_type,
		.sample_id_all = attr->sample_id_all,
	};
	return layout;
}

void tickmap_recorder_free(struct tickmap_recorder *recorder)
{
	if (!recorder)
		return;
	if (recorder->writer)
		tickmap_perfdata_finish(recorder->writer, NULL, NULL);
	tickmap_sampler_close(recorder->sampler);
	tickmap_follower_free(recorder->follower);
	tickmap_names_free(recorder->names);
	tickmap_processes_free(recorder->processes);
	tickmap_modules_free(recorder->modules);
	tickmap_unwinder_free(recorder->unwinder);
	free(recorder);
}

static int write_fact(struct tickmap_recorder *r, const char *key,
		      const char *value, struct tickmap_error *err)
{
	char text[512];
	struct tickmap_note note = { .kind = TICKMAP_NOTE_FACT };

	note.size = (size_t)snprintf(text, sizeof(text), "%s=%s", key, value);
	if (note.size >= sizeof(text))
		note.size = sizeof(text) - 1;
	note.bytes = (const uint8_t *)text;
	return tickmap_perfdata_write_note(r->writer, &note, err);
}

static int write_number(struct tickmap_recorder *r, const char *key,
			uint64_t value, struct tickmap_error *err)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	return write_fact(r, key, text, err);
}

static int attach_all(struct tickmap_recorder *r,
		      const struct tickmap_recorder_options *options,
		      struct tickmap_error *err)
{
	int status = TICKMAP_OK;

	if (tickmap_sampler_sees_kernel(r->sampler))
		status = tickmap_attach_kernel(r->writer, err);
	for (size_t i = 0;
	     !status && !options->launch && i < options->pid_count; i++)
		status = tickmap_attach_process(options->pids[i], r->processes,
						r->follower, r->writer, err);
	return status;
}

static int begin_file(struct tickmap_recorder *r,
		      const struct tickmap_recorder_options *options,
		      struct tickmap_error *err)
{
	const struct perf_event_attr *kernel = tickmap_sampler_attr(r->sampler);
	struct perf_event_attr attr = file_attr(kernel);
	struct tickmap_perfdata_event event = {
		.attr = &attr,
		.name = tickmap_sampler_event_name(r->sampler),
	};
	char boot[64] = "";
	int status = tickmap_perfdata_create(options->output, &event,
					     ZSTD_LEVEL, &r->writer, err);

	if (status)
		return status;
	r->layout = layout_of(kernel);
	r->start_ns = r->last_round_ns = tickmap_mono_ns();
	status = write_number(r, "start_ns", r->start_ns, err);
	if (!status && tickmap_read_line("/proc/sys/kernel/random/boot_id",
					 boot, sizeof(boot)))
		status = write_fact(r, "boot_id", boot, err);
	return status;
}

int tickmap_recorder_open(const struct tickmap_recorder_options *options,
			  struct tickmap_recorder **ret_recorder,
			  struct tickmap_error *err)
{
	struct tickmap_sampler_options sampling = {
		.frequency = options->frequency,
		.pids = options->pids,
		.pid_count = options->pid_count,
		.enable_on_exec = options->launch,
		.stack_bytes = STACK_BYTES,
		.ring_bytes = RING_BYTES,
	};
	struct tickmap_recorder *r = calloc(1, sizeof(*r));
	size_t cpus = (size_t)sysconf(_SC_NPROCESSORS_ONLN);
	int status;

	if (sampling.ring_bytes < cpus * RING_BYTES_A_CPU)
		sampling.ring_bytes = cpus * RING_BYTES_A_CPU;
	if (!r)
		return tickmap_fail(err, TICKMAP_E_NOMEM, 0, "out of memory");
	status = tickmap_sampler_open(&sampling, &r->sampler, err);
	if (status)
		goto fail;
	status = begin_file(r, options, err);
	if (status)
		goto fail;
	r->modules = tickmap_modules_new();
	r->unwinder = tickmap_unwinder_new();
	r->names = tickmap_names_new();
	r->processes = r->modules ? tickmap_processes_new(r->modules) : NULL;
	r->follower = r->processes
			      ? tickmap_follower_new(r->processes, r->writer)
			      : NULL;
	if (!r->follower || !r->unwinder || !r->names) {
		status = tickmap_fail(err, TICKMAP_E_NOMEM, 0, "out of memory");
		goto fail;
	}
	/* Sampling first, so that no mapping falls between the two. */
	if (!options->launch)
		status = tickmap_sampler_enable(r->sampler);
	if (!status)
		status = attach_all(r, options, err);
	if (!status)
		status = tickmap_perfdata_round(r->writer, err);
	if (status)
		goto fail;
	*ret_recorder = r;
	return TICKMAP_OK;
fail:
	tickmap_recorder_free(r);
	return status;
}

/* ---- Samples ---- */

/* Walks the user part behind the `used` entries of the chain. */
static size_t walk_user(struct tickmap_recorder *r,
			struct tickmap_process *process,
			const struct tickmap_sample *sample, size_t used,
			enum tickmap_unwind_end *ret_end)
{
	struct tickmap_process_view view = { .processes = r->processes,
					     .process = process };
	struct tickmap_unwind_space space = {
		.key = process->key,
		.context = &view,
		.find = tickmap_process_find_module,
		.code_before = tickmap_process_code_before,
	};
	struct tickmap_unwind_input input = {
		.stack = sample->stack,
		.stack_size = sample->stack_size,
	};

	if (!sample->regs_abi) {
		/* Kernel threads, and tasks that are past their end. */
		*ret_end = TICKMAP_END_COMPLETE;
		return used;
	}
	if (!tickmap_unwind_regs_from_perf(sample->regs_abi, sample->regs_mask,
					   sample->regs, input.regs)) {
		*ret_end = TICKMAP_END_NO_REGISTERS;
		return used;
	}
	/*
	 * Inside an exec the registers are still those with which the old image
	 * asked for it: a place that the new one does not have.
	 */
	if (!process->entered && used &&
	    !tickmap_process_knows(&view, input.regs[TICKMAP_RIP])) {
		*ret_end = TICKMAP_END_COMPLETE;
		return used;
	}
	process->entered = true;
	input.stack_at = input.regs[TICKMAP_RSP];
	r->chain[used++] = PERF_CONTEXT_USER;
	size_t walked =
		tickmap_unwind_walk(r->unwinder, &space, &input,
				    r->chain + used, CHAIN_MAX - used, ret_end);
	tickmap_cfi_done(&view.scratch);
	if (view.saw_anon)
		process->anon_samples++;
	for (size_t i = 0; i < walked; i++) {
		/* Readers look one byte before a caller's address, for the
		 * call. These did not call. */
		if (i && tickmap_unwind_is_exact(r->unwinder, i))
			r->chain[used + i]++;
		tickmap_names_want(r->names, r->processes, process,
				   r->chain[used + i], i > 0);
	}
	return used + walked;
}

static size_t copy_kernel_part(struct tickmap_recorder *r,
			       const struct tickmap_sample *sample)
{
	size_t used = 0;

	for (size_t i = 0; i < sample->chain_count && used < CHAIN_MAX / 2;
	     i++) {
		uint64_t ip = tickmap_sample_chain_at(sample, i);
		if (ip == PERF_CONTEXT_USER)
			break;
		r->chain[used++] = ip;
		if (ip < (uint64_t)PERF_CONTEXT_MAX)
			tickmap_names_want_kernel(r->names, ip, used > 2);
	}
	return used;
}

static int write_sample(struct tickmap_recorder *r,
			const struct tickmap_raw_record *raw,
			const struct tickmap_sample *sample, size_t chain_count)
{
	struct perf_event_header header = {
		.type = PERF_RECORD_SAMPLE,
		.misc = raw->misc,
	};
	uint64_t *at = r->record + 1;

	*at++ = sample->ip;
	*at++ = (uint64_t)sample->tid << 32 | sample->pid;
	*at++ = sample->time_ns;
	*at++ = sample->cpu;
	*at++ = sample->period;
	*at++ = chain_count;
	memcpy(at, r->chain, chain_count * sizeof(*at));
	at += chain_count;
	header.size = (uint16_t)((at - r->record) * 8);
	memcpy(r->record, &header, sizeof(header));
	return tickmap_perfdata_write(r->writer, r->record, header.size,
				      r->err);
}

static int write_truncated(struct tickmap_recorder *r, uint64_t time_ns,
			   enum tickmap_unwind_end end)
{
	struct tickmap_note note = {
		.kind = TICKMAP_NOTE_TRUNCATED,
		.time_ns = time_ns,
		.value = end,
	};

	r->truncated++;
	return tickmap_perfdata_write_note(r->writer, &note, r->err);
}

static int on_sample(struct tickmap_recorder *r,
		     const struct tickmap_raw_record *raw)
{
	struct tickmap_bytes body = tickmap_bytes_of(raw->bytes, raw->size);
	struct tickmap_sample sample;
	struct tickmap_process *process;
	enum tickmap_unwind_end end = TICKMAP_END_COMPLETE;
	int status;

	tickmap_take(&body, sizeof(struct perf_event_header));
	status = tickmap_sample_decode(&r->layout, &body, &sample, r->err);
	if (status)
		return status;
	process = tickmap_process_of(r->processes, (pid_t)sample.pid);
	if (!process)
		return tickmap_fail(r->err, TICKMAP_E_NOMEM, 0,
				    "out of memory");
	process->samples++;
	tickmap_process_advance(r->processes, process, sample.time_ns);

	size_t used = copy_kernel_part(r, &sample);
	used = walk_user(r, process, &sample, used, &end);
	if (end != TICKMAP_END_COMPLETE)
		status = write_truncated(r, sample.time_ns, end);
	if (!status)
		status = write_sample(r, raw, &sample, used);
	if (!r->samples++)
		r->first_sample_ns = sample.time_ns;
	r->last_sample_ns = sample.time_ns;
	return status;
}

/* ---- The other records ---- */

static struct tickmap_bytes body_of(const struct tickmap_raw_record *raw)
{
	struct tickmap_bytes body = tickmap_bytes_of(raw->bytes, raw->size);

	tickmap_take(&body, sizeof(struct perf_event_header));
	return body;
}

static int on_mmap(struct tickmap_recorder *r,
		   const struct tickmap_raw_record *raw)
{
	struct tickmap_bytes body = body_of(raw);
	struct tickmap_mmap_record mmap;

	if (tickmap_mmap_decode(&body, raw->type, raw->misc, &mmap))
		return TICKMAP_OK;
	if (raw->misc & PERF_RECORD_MISC_MMAP_DATA)
		return TICKMAP_OK;
	if (!tickmap_process_map(r->processes, &mmap))
		return tickmap_fail(r->err, TICKMAP_E_NOMEM, 0,
				    "out of memory");
	if (tickmap_is_jitdump_path(mmap.path))
		return tickmap_follow_marker(r->follower, &mmap, r->err);
	return TICKMAP_OK;
}

static int on_comm(struct tickmap_recorder *r,
		   const struct tickmap_raw_record *raw)
{
	struct tickmap_bytes body = body_of(raw);
	struct tickmap_comm_record comm;
	struct tickmap_process *process;
	int status;

	if (tickmap_comm_decode(&body, raw->misc, &comm) || !comm.exec)
		return TICKMAP_OK;
	/* The old image's last functions, before its maps are forgotten. */
	status = tickmap_follow_end(r->follower, (pid_t)comm.pid, r->err);
	if (status)
		return status;
	process = tickmap_process_exec(r->processes, (pid_t)comm.pid,
				       raw->time_ns);
	if (!process)
		return tickmap_fail(r->err, TICKMAP_E_NOMEM, 0,
				    "out of memory");
	tickmap_follow_birth(r->follower, process);
	return TICKMAP_OK;
}

static int on_task(struct tickmap_recorder *r,
		   const struct tickmap_raw_record *raw)
{
	struct tickmap_bytes body = body_of(raw);
	struct tickmap_task_record task;
	struct tickmap_process *process;

	if (tickmap_task_decode(&body, &task))
		return TICKMAP_OK;
	if (raw->type == PERF_RECORD_FORK) {
		process = tickmap_process_fork(r->processes, &task);
		if (!process)
			return tickmap_fail(r->err, TICKMAP_E_NOMEM, 0,
					    "out of memory");
		if (task.pid != task.ppid)
			tickmap_follow_birth(r->follower, process);
		return TICKMAP_OK;
	}
	tickmap_process_exit(r->processes, &task);
	process = tickmap_process_find(r->processes, (pid_t)task.pid);
	/* A map that was in its writer's buffer until now. */
	if (process && process->exited && process->anon_samples)
		tickmap_follow_perf_map(r->follower, process, 0);
	if (process && process->exited)
		return tickmap_follow_end(r->follower, process->pid, r->err);
	return TICKMAP_OK;
}

static void on_lost(struct tickmap_recorder *r,
		    const struct tickmap_raw_record *raw)
{
	struct tickmap_bytes body = body_of(raw);

	if (raw->type == PERF_RECORD_LOST)
		tickmap_u64(&body); /* the event's id */
	r->lost += tickmap_u64(&body);
}

static int on_record(void *context, const struct tickmap_raw_record *raw)
{
	struct tickmap_recorder *r = context;
	int status = TICKMAP_OK;

	switch (raw->type) {
	case PERF_RECORD_SAMPLE:
		return on_sample(r, raw);
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		status = on_mmap(r, raw);
		break;
	case PERF_RECORD_COMM:
		status = on_comm(r, raw);
		break;
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		status = on_task(r, raw);
		break;
	case PERF_RECORD_LOST:
	case PERF_RECORD_LOST_SAMPLES:
		on_lost(r, raw);
		break;
	default:
		break;
	}
	if (status)
		return status;
	return tickmap_perfdata_write(r->writer, raw->bytes, raw->size, r->err);
}

/* ---- Rounds ---- */

static void look_for_perf_maps(struct tickmap_recorder *r, uint64_t now_ns)
{
	for (size_t i = 0; i < tickmap_processes_count(r->processes); i++) {
		struct tickmap_process *process =
			tickmap_processes_at(r->processes, i);
		if (!process->exited && process->anon_samples)
			tickmap_follow_perf_map(r->follower, process, now_ns);
	}
}

/*
 * Code maps first, then the records up to a moment before: whatever such a
 * record ran had been published by then.
 */
static int handle_until(struct tickmap_recorder *r, uint64_t until_ns,
			struct tickmap_error *err)
{
	uint64_t now_ns = tickmap_mono_ns();
	int status;

	r->err = err;
	look_for_perf_maps(r, now_ns);
	status = tickmap_follow_poll(r->follower, now_ns, err);
	if (!status)
		status = tickmap_sampler_drain(r->sampler, until_ns, on_record,
					       r);
	if (status)
		return status;
	if (now_ns - r->last_round_ns < ROUND_NS)
		return TICKMAP_OK;
	r->last_round_ns = now_ns;
	return tickmap_perfdata_round(r->writer, err);
}

int tickmap_recorder_step(struct tickmap_recorder *recorder, int extra_fd,
			  int timeout_ms, struct tickmap_error *err)
{
	int ready = tickmap_sampler_wait(recorder->sampler, extra_fd,
					 timeout_ms, err);

	if (ready < 0)
		return ready;
	int status = handle_until(recorder, tickmap_mono_ns() - HOLD_NS, err);
	return status ? status : ready;
}

void tickmap_recorder_stop(struct tickmap_recorder *recorder)
{
	tickmap_sampler_disable(recorder->sampler);
	tickmap_sampler_release_rings(recorder->sampler);
}

int tickmap_recorder_finish(struct tickmap_recorder *recorder,
			    const char *const *command, size_t command_count,
			    const char *program,
			    struct tickmap_recorder_result *ret_result,
			    struct tickmap_error *err)
{
	struct tickmap_recorder *r = recorder;
	struct tickmap_unwind_stats stats;
	struct tickmap_perfdata_facts facts = {
		.command = command,
		.command_count = command_count,
		.version = "tickmap " TICKMAP_VERSION,
	};
	int status;

	tickmap_sampler_disable(r->sampler);
	status = handle_until(r, UINT64_MAX, err);
	if (!status)
		status = write_number(r, "end_ns", tickmap_mono_ns(), err);
	if (!status)
		status = write_fact(r, "command", program, err);
	if (!status)
		status = tickmap_perfdata_round(r->writer, err);
	/* The rings are not needed any more: their memory goes before the
	 * symbol tables come. */
	tickmap_sampler_release_rings(r->sampler);
	if (!status)
		status = tickmap_names_write(r->names, r->modules, r->writer,
					     err);
	facts.first_sample_ns = r->first_sample_ns;
	facts.last_sample_ns = r->last_sample_ns;
	facts.build_ids = tickmap_names_build_ids(r->names, r->modules,
						  &facts.build_id_count);
	stats = tickmap_unwinder_stats(r->unwinder);
	*ret_result = (struct tickmap_recorder_result) {
		.samples = r->samples,
		.lost = r->lost,
		.truncated = r->truncated,
		.functions = tickmap_follower_functions(r->follower),
		.late = tickmap_sampler_late_count(r->sampler),
		.missed_maps = tickmap_follower_missed(r->follower),
		.unwound_frames = stats.frames,
		.cache_misses = stats.cache_misses,
		.bytes = tickmap_perfdata_bytes(r->writer),
	};
	int finished = tickmap_perfdata_finish(r->writer, &facts, err);
	r->writer = NULL;
	return status ? status : finished;
}

const struct tickmap_sampler *
tickmap_recorder_sampler(const struct tickmap_recorder *recorder)
{
	return recorder->sampler;
}

const struct tickmap_follower *
tickmap_recorder_follower(const struct tickmap_recorder *recorder)
{
	return recorder->follower;
}

size_t tickmap_recorder_silent(const struct tickmap_recorder *recorder,
			       struct tickmap_recorder_silent *ret_silent,
			       size_t max)
{
	enum { WORTH_A_WORD = 20 }; /* samples: shorter lives show nothing */
	size_t count = 0;

	for (size_t i = 0;
	     i < tickmap_processes_count(recorder->processes) && count < max;
	     i++) {
		struct tickmap_process *p =
			tickmap_processes_at(recorder->processes, i);
		if (!p->python || p->has_code_map || p->samples < WORTH_A_WORD)
			continue;
		ret_silent[count++] = (struct tickmap_recorder_silent) {
			.pid = p->pid,
			.samples = p->samples,
			.interpreter = p->interpreter,
		};
	}
	return count;
}

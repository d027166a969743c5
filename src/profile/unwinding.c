/* SPDX-License-Identifier: MIT */
/*
 * Stacks that were recorded as bytes (perf record --call-graph dwarf). They are
 * too many to be kept, so the file is read once more when it is known who owned
 * each address: mapped files and published code have the tables, and all else
 * may keep a frame pointer.
 */
#include "profile/load.h"
#include "unwind/unwind.h"

#include <linux/perf_event.h>

enum { FRAMES_MAX = 2048 };

struct unwinding {
	struct tickmap_loader *loader;
	struct tickmap_unwinder *unwinder;
	const struct tickmap_process *process;
	uint64_t time_ns;
	struct tickmap_cfi code_table; /* of the JIT function asked for last */
	uint64_t ips[FRAMES_MAX];
};

static void file_module(struct unwinding *u, const struct tickmap_owner *owner,
			uint64_t avma, struct tickmap_unwind_module *module)
{
	const struct tickmap_loaded_map *map =
		&u->loader->maps.items[owner->owner];
	uint64_t svma = 0;

	module->cfi = tickmap_symbolizer_cfi(
		u->loader->symbolizer,
		tickmap_frames_dso(u->loader, owner->owner),
		avma - map->avma + map->file_offset, &svma);
	module->bias = avma - svma;
}

static void code_module(struct unwinding *u, const struct tickmap_owner *owner,
			struct tickmap_unwind_module *module)
{
	struct tickmap_code *code = &u->loader->codes.items[owner->owner];
	const char *bytes;
	size_t size;

	tickmap_jitted_read(u->loader, code);
	bytes = tickmap_string(u->loader->profile->strings, code->eh_frame,
			       &size);
	if (!size)
		return;
	tickmap_cfi_done(&u->code_table);
	u->code_table = (struct tickmap_cfi) {
		.eh_frame = (const uint8_t *)bytes,
		.eh_frame_size = size,
		.eh_frame_at = owner->start + code->eh_frame_gap,
	};
	tickmap_cfi_init(&u->code_table);
	module->cfi = &u->code_table;
}

static bool find_module(void *context, uint64_t avma,
			struct tickmap_unwind_module *ret_module)
{
	struct unwinding *u = context;
	struct tickmap_owner owner = tickmap_timeline_find(
		u->process->timeline, u->time_ns, avma, TICKMAP_SLACK_NS);

	if (owner.owner == TICKMAP_NO_OWNER)
		return false;
	*ret_module = (struct tickmap_unwind_module) { .frame_pointer = true };
	if (owner.layer == TICKMAP_LAYER_FILE)
		file_module(u, &owner, avma, ret_module);
	else if (owner.layer == TICKMAP_LAYER_CODE)
		code_module(u, &owner, ret_module);
	return true;
}

static size_t code_before(void *context, uint64_t avma, uint8_t *out,
			  size_t wanted)
{
	struct unwinding *u = context;
	struct tickmap_owner owner = tickmap_timeline_find(
		u->process->timeline, u->time_ns, avma - 1, TICKMAP_SLACK_NS);

	if (owner.owner == TICKMAP_NO_OWNER ||
	    owner.layer != TICKMAP_LAYER_FILE)
		return 0;
	const struct tickmap_loaded_map *map =
		&u->loader->maps.items[owner.owner];
	uint64_t end = avma - map->avma + map->file_offset;
	return end >= wanted && tickmap_symbolizer_read(
					u->loader->symbolizer,
					tickmap_frames_dso(u->loader,
							   owner.owner),
					end - wanted, out, wanted)
		       ? wanted
		       : 0;
}

/* Names what lies between two changes of who owns what. */
static uint64_t key_at(const struct unwinding *u)
{
	/* The stranger's is what is behind all numbers. */
	size_t process =
		u->process == &u->loader->stranger
			? u->loader->processes.count
			: (size_t)(u->process - u->loader->processes.items);
	const uint64_t *changes = u->process->changes.items;
	size_t low = 0, high = u->process->changes.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (changes[middle] <= u->time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return ((uint64_t)process << 32 | (uint32_t)low) + 1;
}

static size_t links_of(struct unwinding *u, size_t count)
{
	struct tickmap_link *links = u->loader->links.items;

	for (size_t i = 0; i < count; i++) {
		bool exact = !i || tickmap_unwind_is_exact(u->unwinder, i);
		links[i] = (struct tickmap_link) {
			.avma = u->ips[i] - (!exact && u->ips[i]),
			.caller = !exact && u->ips[i],
		};
	}
	return count;
}

static bool unwind(struct unwinding *u, const struct tickmap_sample *sample,
		   struct tickmap_raw_sample *raw)
{
	struct tickmap_loader *loader = u->loader;
	struct tickmap_unwind_input input = {
		.stack = sample->stack,
		.stack_size = sample->stack_size,
	};
	enum tickmap_unwind_end end;

	if (!tickmap_unwind_regs_from_perf(sample->regs_abi, sample->regs_mask,
					   sample->regs, input.regs)) {
		raw->truncated = TICKMAP_END_NO_REGISTERS;
		return true;
	}
	u->time_ns = loader->timeless ? UINT64_MAX - TICKMAP_SLACK_NS - 1
				      : raw->time_ns;
	u->process =
		tickmap_profile_process_sampled(loader, raw->pid, u->time_ns);
	input.stack_at = input.regs[TICKMAP_RSP];
	struct tickmap_unwind_space space = {
		.key = key_at(u),
		.context = u,
		.find = find_module,
		.code_before = code_before,
	};
	size_t count = tickmap_unwind_walk(u->unwinder, &space, &input, u->ips,
					   FRAMES_MAX, &end);
	raw->truncated = (uint8_t)end;
	raw->stack = tickmap_chains_join(loader, raw->pid, loader->links.items,
					 links_of(u, count), raw->stack);
	return raw->stack != TICKMAP_NONE;
}

/* The samples of the first pass, in the same order. */
static bool read_again(struct unwinding *u)
{
	struct tickmap_loader *loader = u->loader;
	struct tickmap_perfdata_record r;
	struct tickmap_sample sample;
	size_t index = 0;
	bool good = true;

	tickmap_perfdata_rewind(loader->data);
	while (good && index < loader->raw.count &&
	       tickmap_perfdata_next(loader->data, &r, NULL) > 0) {
		if (r.type != PERF_RECORD_SAMPLE || !r.attr->counts_time)
			continue;
		struct tickmap_bytes body = tickmap_bytes_of(r.bytes, r.size);
		body.swap = r.swap;
		tickmap_take(&body, sizeof(struct perf_event_header));
		if (tickmap_sample_decode(&r.attr->layout, &body, &sample,
					  NULL) < 0)
			continue;
		struct tickmap_raw_sample *raw = &loader->raw.items[index++];
		/* The file may have changed under us. */
		if (raw->unwind && raw->time_ns == sample.time_ns &&
		    raw->tid == sample.tid)
			good = unwind(u, &sample, raw);
	}
	return good;
}

bool tickmap_unwinding_run(struct tickmap_loader *loader)
{
	bool good = false;

	if (!loader->dwarf_stacks || !loader->unwindable)
		return true;
	struct unwinding *u = calloc(1, sizeof(*u));
	if (!u)
		return false;
	u->loader = loader;
	u->unwinder = tickmap_unwinder_new();
	if (u->unwinder && tickmap_vec_reserve(&loader->links, FRAMES_MAX))
		good = read_again(u);
	tickmap_cfi_done(&u->code_table);
	tickmap_unwinder_free(u->unwinder);
	free(u);
	return good;
}

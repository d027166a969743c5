/* SPDX-License-Identifier: MIT */
/* The events of a perf.data file, and which record belongs to which. */
#include "capture/perfdata_internal.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
	ATTR_MIN = 64, /* PERF_ATTR_SIZE_VER0 */
	ATTR_MAX = 1 << 16,
	ATTRS_MAX = 65536,
	IDS_MAX = 1 << 22,
};

/* Bits of the attr's flag word, in the order of their declaration. */
enum {
	FLAG_EXCLUDE_KERNEL = 5,
	FLAG_FREQ = 10,
	FLAG_SAMPLE_ID_ALL = 18,
	FLAG_USE_CLOCKID = 25,
};

static uint64_t reverse_bits(uint64_t v)
{
	uint64_t reversed = 0;

	for (unsigned i = 0; i < 64; i++)
		reversed |= (v >> i & 1) << (63 - i);
	return reversed;
}

/* Compilers of big-endian machines lay bit-fields out from the top. */
static uint64_t flags_of(uint64_t word, bool swap)
{
	bool host_is_big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;

	return host_is_big != swap ? reverse_bits(word) : word;
}

static const char *hardware_name(uint64_t config)
{
	static const char *const names[] = {
		"cycles",
		"instructions",
		"cache-references",
		"cache-misses",
		"branches",
		"branch-misses",
		"bus-cycles",
		"stalled-cycles-frontend",
		"stalled-cycles-backend",
		"ref-cycles",
	};

	/* The upper half chooses a PMU on machines that have several. */
	config &= UINT32_MAX;
	return config < sizeof(names) / sizeof(*names) ? names[config] : NULL;
}

static const char *software_name(uint64_t config)
{
	static const char *const names[] = {
		"cpu-clock",	    "task-clock",
		"page-faults",	    "context-switches",
		"cpu-migrations",   "minor-faults",
		"major-faults",	    "alignment-faults",
		"emulation-faults", "dummy",
		"bpf-output",	    "cgroup-switches",
	};

	return config < sizeof(names) / sizeof(*names) ? names[config] : NULL;
}

static void make_name(struct tickmap_perfdata_attr *attr)
{
	const char *name = NULL;
	const char *suffix = attr->flags >> FLAG_EXCLUDE_KERNEL & 1 ? ":u" : "";

	if (attr->type == PERF_TYPE_HARDWARE)
		name = hardware_name(attr->config);
	else if (attr->type == PERF_TYPE_SOFTWARE)
		name = software_name(attr->config);
	if (name)
		snprintf(attr->name, sizeof(attr->name), "%s%s", name, suffix);
	else
		snprintf(attr->name, sizeof(attr->name),
			 "type %u config 0x%llx", attr->type,
			 (unsigned long long)attr->config);
}

static bool counts_time(const struct tickmap_perfdata_attr *attr)
{
	uint64_t config = attr->config & UINT32_MAX;

	if (attr->type == PERF_TYPE_HARDWARE)
		return config == PERF_COUNT_HW_CPU_CYCLES ||
		       config == PERF_COUNT_HW_REF_CPU_CYCLES ||
		       config == PERF_COUNT_HW_BUS_CYCLES;
	if (attr->type == PERF_TYPE_SOFTWARE)
		return attr->config == PERF_COUNT_SW_CPU_CLOCK ||
		       attr->config == PERF_COUNT_SW_TASK_CLOCK;
	return false;
}

/*
 * "cycles", "cycles:P", "cpu_core/cycles/", "armv8_pmuv3_0/cpu_cycles/u",
 * "cpu_atom/CPU_CLK_UNHALTED.CORE/": in whichever words the maker of the CPU
 * counts its cycles.
 */
static bool names_cycles(const char *name)
{
	static const char *const words[] = {
		"cycles",
		"cpu-cycles",
		"cpu_cycles",
		"ref-cycles",
		"bus-cycles",
		"cpu_clk_unhalted",
		"ls_not_halted_cyc",
		"pm_cyc",
		"pm_run_cyc",
	};
	const char *slash = strchr(name, '/');
	const char *word = slash ? slash + 1 : name;
	size_t length = strcspn(word, ":/,.");

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (strlen(words[i]) == length &&
		    !strncasecmp(word, words[i], length))
			return true;
	return false;
}

void tickmap_perfdata_name_attr(struct tickmap_perfdata_attr *attr,
				const char *name)
{
	snprintf(attr->name, sizeof(attr->name), "%s", name);
	if (attr->type != PERF_TYPE_SOFTWARE &&
	    attr->type != PERF_TYPE_TRACEPOINT && names_cycles(name))
		attr->counts_time = true;
}

/* Fields that the file's attr is too short for are zero. */
static void decode_attr(struct tickmap_bytes *b,
			struct tickmap_perfdata_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->type = tickmap_u32(b);
	tickmap_u32(b); /* size: the header's counts */
	attr->config = tickmap_u64(b);
	attr->sample_freq_or_period = tickmap_u64(b);
	attr->layout.sample_type = tickmap_u64(b);
	attr->layout.read_format = tickmap_u64(b);
	attr->flags = flags_of(tickmap_u64(b), b->swap);
	tickmap_take(b, 24); /* wakeup, breakpoint or config1, config2 */
	attr->layout.branch_sample_type = tickmap_u64(b);
	attr->layout.regs_user = tickmap_u64(b);
	tickmap_u32(b); /* sample_stack_user: samples tell their own */
	attr->clockid = (int32_t)tickmap_u32(b);
	attr->layout.regs_intr = tickmap_u64(b);

	attr->freq = attr->flags >> FLAG_FREQ & 1;
	attr->use_clockid = attr->flags >> FLAG_USE_CLOCKID & 1;
	attr->layout.sample_id_all = attr->flags >> FLAG_SAMPLE_ID_ALL & 1;
	attr->counts_time = counts_time(attr);
	make_name(attr);
}

static int add_id(struct tickmap_perfdata *d, uint64_t id, size_t attr,
		  struct tickmap_error *err)
{
	uint64_t *slot = tickmap_table_put(&d->attr_of_id, id);

	if (!slot)
		return tickmap_fail(err, TICKMAP_E_NOMEM, 0, "out of memory");
	*slot = attr + 1;
	return TICKMAP_OK;
}

/* What cannot be had of them is noted: most records are the first event's. */
static int read_ids(struct tickmap_perfdata *d, struct perfdata_section ids,
		    size_t attr, struct tickmap_error *err)
{
	uint64_t at = ids.offset, left = ids.size / 8;
	uint64_t file_size = d->stream->file_size;

	if (ids.offset > file_size || ids.size > file_size - ids.offset) {
		tickmap_perfdata_note(d, TICKMAP_E_FORMAT, ids.offset,
				      "event ids lie outside the file");
		return TICKMAP_OK;
	}
	if (left > IDS_MAX - d->id_count)
		return tickmap_fail(err, TICKMAP_E_LIMIT, ids.offset,
				    "more event ids than we read");
	d->id_count += left;
	while (left) {
		const uint8_t *bytes;
		size_t size, want = left < 4096 ? (size_t)left : 4096;
		int status = tickmap_perfdata_view(d, at, want * 8, &bytes,
						   &size, err);
		if (status)
			return status;
		struct tickmap_bytes b = tickmap_bytes_of(bytes, size);
		b.swap = d->swap;
		for (size_t i = 0; i < want && !status; i++)
			status = add_id(d, tickmap_u64(&b), attr, err);
		if (status)
			return status;
		if (b.failed)
			return tickmap_fail(err, TICKMAP_E_TRUNCATED, at,
					    "file ends inside its event ids");
		at += want * 8;
		left -= want;
	}
	return TICKMAP_OK;
}

int tickmap_perfdata_add_attr(struct tickmap_perfdata *d,
			      struct tickmap_bytes *b, size_t size,
			      struct tickmap_error *err)
{
	if (d->attrs.count >= ATTRS_MAX)
		return tickmap_fail(err, TICKMAP_E_LIMIT, d->at,
				    "more events than we read");
	struct tickmap_perfdata_attr *attr = tickmap_vec_push(&d->attrs);
	if (!attr)
		return tickmap_fail(err, TICKMAP_E_NOMEM, 0, "out of memory");
	struct tickmap_bytes fields = tickmap_sub(b, size);
	int status = TICKMAP_OK;

	decode_attr(&fields, attr);
	while (!status && tickmap_bytes_left(b) >= 8) {
		if (++d->id_count > IDS_MAX)
			return tickmap_fail(err, TICKMAP_E_LIMIT, d->at,
					    "more event ids than we read");
		status = add_id(d, tickmap_u64(b), d->attrs.count - 1, err);
	}
	return status;
}

/* All events of a file agree on where the id is, or nobody could read it. */
void tickmap_perfdata_attrs_end(struct tickmap_perfdata *d)
{
	uint64_t type = d->attrs.items[0].layout.sample_type;
	uint64_t before = type & (PERF_SAMPLE_IP | PERF_SAMPLE_TID |
				  PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR);
	uint64_t behind = type & (PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU);

	if (d->attrs.count < 2)
		return;
	if (type & PERF_SAMPLE_IDENTIFIER) {
		d->id_at = 8;
		d->id_from_end = 8;
	} else if (type & PERF_SAMPLE_ID) {
		d->id_at = 8 + 8 * (size_t)__builtin_popcountll(before);
		d->id_from_end = 8 + 8 * (size_t)__builtin_popcountll(behind);
	}
}

static int check_section(const struct tickmap_perfdata *d,
			 struct tickmap_error *err)
{
	if (d->attr_entry_size < ATTR_MIN + PERFDATA_SECTION_SIZE ||
	    d->attr_entry_size > ATTR_MAX)
		return tickmap_fail(err, TICKMAP_E_FORMAT, 16,
				    "size of an event's attr is impossible");
	if (d->attrs_section.size < d->attr_entry_size)
		return tickmap_fail(err, TICKMAP_E_FORMAT, 24,
				    "file names no event");
	if (d->attrs_section.size / d->attr_entry_size > ATTRS_MAX)
		return tickmap_fail(err, TICKMAP_E_LIMIT, 24,
				    "more events than we read");
	return TICKMAP_OK;
}

static int read_attr(struct tickmap_perfdata *d, uint64_t at,
		     struct perfdata_section *ret_ids,
		     struct tickmap_error *err)
{
	size_t entry_size = (size_t)d->attr_entry_size;
	const uint8_t *bytes;
	size_t size;
	int status =
		tickmap_perfdata_view(d, at, entry_size, &bytes, &size, err);

	if (status)
		return status;
	if (size < entry_size)
		return tickmap_fail(err, TICKMAP_E_TRUNCATED, at,
				    "file ends inside its events");
	struct tickmap_perfdata_attr *attr = tickmap_vec_push(&d->attrs);
	if (!attr)
		return tickmap_fail(err, TICKMAP_E_NOMEM, 0, "out of memory");
	struct tickmap_bytes b = tickmap_bytes_of(bytes, size);
	b.swap = d->swap;
	struct tickmap_bytes fields =
		tickmap_sub(&b, entry_size - PERFDATA_SECTION_SIZE);
	decode_attr(&fields, attr);
	ret_ids->offset = tickmap_u64(&b);
	ret_ids->size = tickmap_u64(&b);
	return TICKMAP_OK;
}

int tickmap_perfdata_read_attrs(struct tickmap_perfdata *d,
				struct tickmap_error *err)
{
	int status = check_section(d, err);

	if (status)
		return status;
	uint64_t count = d->attrs_section.size / d->attr_entry_size;
	for (uint64_t i = 0; i < count; i++) {
		struct perfdata_section ids = { 0, 0 };
		status = read_attr(
			d, d->attrs_section.offset + i * d->attr_entry_size,
			&ids, err);
		if (!status && count > 1)
			status = read_ids(d, ids, (size_t)i, err);
		if (status)
			return status;
	}
	tickmap_perfdata_attrs_end(d);
	return TICKMAP_OK;
}

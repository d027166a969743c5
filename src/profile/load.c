/* SPDX-License-Identifier: MIT */
/* A perf.data into a profile: one pass over its records, then see load.h. */
#include "profile/load.h"

#include "codemap/marker.h"
#include "profile/internal.h"

#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { RECORD_CALLCHAIN_DEFERRED = 22 }; /* newer than our headers */

static struct tickmap_bytes body_of(const struct tickmap_perfdata_record *r)
{
	struct tickmap_bytes body = tickmap_bytes_of(r->bytes, r->size);

	body.swap = r->swap;
	tickmap_take(&body, sizeof(struct perf_event_header));
	return body;
}

/* Records without a time, and those that perf makes up itself (0 or all ones),
 * tell what was so before. */
static uint64_t time_of(const struct tickmap_perfdata_record *r)
{
	return r->id.time_ns == UINT64_MAX ? 0 : r->id.time_ns;
}

static struct tickmap_side *add_side(struct tickmap_loader *loader,
				     const struct tickmap_perfdata_record *r,
				     enum tickmap_side_kind kind)
{
	struct tickmap_side *side = tickmap_vec_push(&loader->side);

	if (side)
		*side = (struct tickmap_side) {
			.time_ns = time_of(r),
			.order = loader->order,
			.kind = (uint8_t)kind,
		};
	return side;
}

static bool is_code_mapping(const struct tickmap_perfdata_record *r,
			    const struct tickmap_mmap_record *mmap)
{
	unsigned mode = r->misc & PERF_RECORD_MISC_CPUMODE_MASK;

	if (mode == PERF_RECORD_MISC_KERNEL ||
	    mode == PERF_RECORD_MISC_GUEST_KERNEL || mmap->pid == UINT32_MAX ||
	    (r->misc & PERF_RECORD_MISC_MMAP_DATA))
		return false;
	/* perf inject writes a file's mode where the protection stands. */
	return r->type == PERF_RECORD_MMAP || (mmap->prot & PROT_EXEC) ||
	       mmap->prot > (PROT_READ | PROT_WRITE | PROT_EXEC);
}

/* Asked once a path. */
static bool is_no_program(struct tickmap_loader *loader, tickmap_str path)
{
	enum { NO_PROGRAM = 1, PROGRAM = 2 };
	uint64_t *known = tickmap_table_put(&loader->no_program, path);

	if (known && !*known)
		*known = tickmap_map_is_no_program(tickmap_string(
				 loader->profile->strings, path, NULL))
				 ? NO_PROGRAM
				 : PROGRAM;
	return known && *known == NO_PROGRAM;
}

/* The kernel writes no longer ones; they are looked at once an address. */
enum { PATH_LENGTH_MAX = 4095, COMM_LENGTH_MAX = 255 };

static tickmap_str intern_short(struct tickmap_loader *loader, const char *text,
				size_t most)
{
	return tickmap_intern(loader->profile->strings, text,
			      strnlen(text, most));
}

static bool read_mmap(struct tickmap_loader *loader,
		      const struct tickmap_perfdata_record *r)
{
	struct tickmap_bytes body = body_of(r);
	struct tickmap_mmap_record m;

	if (tickmap_mmap_decode(&body, r->type, r->misc, &m) < 0 ||
	    !is_code_mapping(r, &m))
		return true;
	struct tickmap_loaded_map *map = tickmap_vec_push(&loader->maps);
	struct tickmap_side *side =
		map ? add_side(loader, r, TICKMAP_SIDE_MAP) : NULL;
	if (!side)
		return false;
	side->pid = m.pid;
	side->tid = m.tid;
	side->map = (uint32_t)(loader->maps.count - 1);
	*map = (struct tickmap_loaded_map) {
		.avma = m.avma,
		.size = m.size,
		.file_offset = m.file_offset,
		.inode = m.ino,
		.path = intern_short(loader, m.path, PATH_LENGTH_MAX),
		.anonymous = tickmap_map_is_anonymous(m.path),
		.marker = tickmap_is_jitdump_path(m.path),
		.jitted = tickmap_map_is_jitted(m.path),
		.code = TICKMAP_NONE,
	};
	if (map->anonymous || map->marker || map->jitted)
		return true;
	map->anonymous = is_no_program(loader, map->path);
	if (map->anonymous)
		return true;
	if (m.build_id_size)
		map->build_id = tickmap_intern(loader->profile->strings,
					       (const char *)m.build_id,
					       m.build_id_size);
	return true;
}

static bool read_comm(struct tickmap_loader *loader,
		      const struct tickmap_perfdata_record *r)
{
	struct tickmap_bytes body = body_of(r);
	struct tickmap_comm_record c;

	if (tickmap_comm_decode(&body, r->misc, &c) < 0)
		return true;
	struct tickmap_side *side = add_side(loader, r, TICKMAP_SIDE_COMM);
	if (!side)
		return false;
	side->pid = c.pid;
	side->tid = c.tid;
	side->comm = intern_short(loader, c.comm, COMM_LENGTH_MAX);
	side->exec = c.exec;
	return true;
}

static bool read_task(struct tickmap_loader *loader,
		      const struct tickmap_perfdata_record *r)
{
	struct tickmap_bytes body = body_of(r);
	struct tickmap_task_record t;

	if (tickmap_task_decode(&body, &t) < 0)
		return true;
	struct tickmap_side *side =
		add_side(loader, r,
			 r->type == PERF_RECORD_FORK ? TICKMAP_SIDE_FORK
						     : TICKMAP_SIDE_EXIT);
	if (!side)
		return false;
	if (!side->time_ns && t.time_ns != UINT64_MAX)
		side->time_ns = t.time_ns;
	side->pid = t.pid;
	side->tid = t.tid;
	side->ppid = t.ppid;
	side->ptid = t.ptid;
	side->exec = r->misc & PERF_RECORD_MISC_FORK_EXEC;
	return true;
}

static void read_lost(struct tickmap_loader *loader,
		      const struct tickmap_perfdata_record *r)
{
	struct tickmap_bytes body = body_of(r);

	if (r->type == PERF_RECORD_LOST)
		tickmap_u64(&body); /* id */
	loader->profile->lost += tickmap_u64(&body);
}

static bool read_sample(struct tickmap_loader *loader,
			const struct tickmap_perfdata_record *r)
{
	struct tickmap_bytes body = body_of(r);
	struct tickmap_sample sample;
	bool good = true;

	if (tickmap_sample_decode(&r->attr->layout, &body, &sample, NULL) < 0)
		good = tickmap_codemaps_finding(
			loader, "PD002", "a sample that cannot be read", 0, 0);
	else if (!r->attr->counts_time)
		loader->profile->other_events++;
	else if (!(r->attr->layout.sample_type &
		   (PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN)))
		good = tickmap_codemaps_finding(
			loader, "PD004", "a sample without an address", 0, 0);
	else
		good = tickmap_samples_add(loader, r, &sample);
	loader->next_truncated = 0;
	return good;
}

/* ---- Notes ---- */

static void read_symbols(struct tickmap_loader *loader,
			 const struct tickmap_note *note)
{
	struct tickmap_bytes b = tickmap_bytes_of(note->bytes, note->size);
	const char *path = tickmap_cstr(&b, NULL);
	char identity[4200];

	if (path)
		tickmap_symbolizer_identity(path, note->time_ns, identity,
					    sizeof(identity));
	b.swap = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
	for (uint64_t i = 0; path && i < note->value; i++) {
		uint64_t svma = tickmap_u64(&b);
		uint64_t size = tickmap_u64(&b);
		const char *name = tickmap_cstr(&b, NULL);
		if (!name)
			return;
		if (!tickmap_symbolizer_know(loader->symbolizer, identity, svma,
					     size, name))
			loader->no_memory = true;
	}
}

static bool is_key(const char *text, size_t length, const char *key)
{
	return length == strlen(key) && !memcmp(text, key, length);
}

/* Text of digits, as far as they go. */
static uint64_t number(const char *text, size_t length)
{
	uint64_t value = 0;

	for (; length && *text >= '0' && *text <= '9'; text++, length--)
		value = value * 10 + (uint64_t)(*text - '0');
	return value;
}

static bool is_this_boot(const char *id, size_t length)
{
	char now[64];

	return tickmap_read_line("/proc/sys/kernel/random/boot_id", now,
				 sizeof(now)) &&
	       is_key(id, length, now);
}

static void read_fact(struct tickmap_loader *loader,
		      const struct tickmap_note *note)
{
	struct tickmap_profile *profile = loader->profile;
	const char *key = (const char *)note->bytes;
	const char *equals = note->size ? memchr(key, '=', note->size) : NULL;

	if (!equals)
		return;
	size_t key_length = (size_t)(equals - key);
	const char *value = equals + 1;
	size_t length = strnlen(value, note->size - key_length - 1);
	if (is_key(key, key_length, "command"))
		profile->command =
			tickmap_intern(profile->strings, value, length);
	else if (is_key(key, key_length, "boot_id"))
		loader->same_boot = is_this_boot(value, length);
	else if (is_key(key, key_length, "start_ns"))
		profile->start_ns = number(value, length);
	else if (is_key(key, key_length, "end_ns"))
		profile->end_ns = number(value, length);
	else if (is_key(key, key_length, "lost"))
		profile->lost += number(value, length);
}

static void read_segment(struct tickmap_loader *loader,
			 const struct tickmap_note *note)
{
	struct tickmap_bytes b = tickmap_bytes_of(note->bytes, note->size);
	const char *path = tickmap_cstr(&b, NULL);

	b.swap = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
	uint64_t file_offset = tickmap_u64(&b);
	uint64_t size = tickmap_u64(&b);
	uint64_t svma = tickmap_u64(&b);
	char identity[4200];

	if (b.failed)
		return;
	tickmap_symbolizer_identity(path, note->time_ns, identity,
				    sizeof(identity));
	if (!tickmap_symbolizer_know_segment(loader->symbolizer, identity,
					     file_offset, size, svma))
		loader->no_memory = true;
}

static bool read_note(struct tickmap_loader *loader,
		      const struct tickmap_perfdata_record *r)
{
	struct tickmap_note note;

	if (tickmap_note_decode(r, &note) < 0)
		return true;
	loader->ours = true;
	switch (note.kind) {
	case TICKMAP_NOTE_JITDUMP:
	case TICKMAP_NOTE_PERF_MAP:
	case TICKMAP_NOTE_CODE_MAP_PATH:
		return tickmap_codemaps_note(loader, &note);
	case TICKMAP_NOTE_TRUNCATED:
		loader->next_truncated = note.value < UINT8_MAX
						 ? (uint8_t)note.value
						 : UINT8_MAX;
		return true;
	case TICKMAP_NOTE_FACT:
		read_fact(loader, &note);
		return true;
	case TICKMAP_NOTE_SYMBOLS:
		read_symbols(loader, &note);
		return !loader->no_memory;
	case TICKMAP_NOTE_SEGMENT:
		read_segment(loader, &note);
		return !loader->no_memory;
	}
	return true;
}

/* ---- The pass ---- */

static void note_time(struct tickmap_loader *loader,
		      const struct tickmap_perfdata_record *r)
{
	uint64_t time_ns = time_of(r);

	if (!time_ns)
		return;
	if (!loader->first_ns || time_ns < loader->first_ns)
		loader->first_ns = time_ns;
	if (time_ns > loader->last_ns)
		loader->last_ns = time_ns;
}

static bool read_record(struct tickmap_loader *loader,
			const struct tickmap_perfdata_record *r)
{
	if (r->type < TICKMAP_RECORD_USER_FIRST)
		note_time(loader, r);
	loader->order++;
	switch (r->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		return read_mmap(loader, r);
	case PERF_RECORD_COMM:
		return read_comm(loader, r);
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		return read_task(loader, r);
	case PERF_RECORD_LOST:
	case PERF_RECORD_LOST_SAMPLES:
		read_lost(loader, r);
		return true;
	case PERF_RECORD_SAMPLE:
		return read_sample(loader, r);
	case RECORD_CALLCHAIN_DEFERRED:
		return tickmap_chains_deferred(loader, r);
	case TICKMAP_RECORD_NOTE:
		return read_note(loader, r);
	case TICKMAP_RECORD_TIME_CONV:
		return tickmap_align_read_conversion(loader, body_of(r));
	default:
		return true;
	}
}

static void tell_progress(const struct tickmap_loader *loader, uint64_t done,
			  uint64_t all)
{
	if (loader->options->progress)
		loader->options->progress(loader->options->progress_context,
					  done < all ? done : all, all);
}

static bool read_all(struct tickmap_loader *loader)
{
	enum { RECORDS_A_REPORT = 4096 };
	struct tickmap_perfdata_record record;
	struct tickmap_error err = { 0 };
	struct stat st;
	uint64_t all = stat(loader->path, &st) ? 0 : (uint64_t)st.st_size;
	int more;

	while ((more = tickmap_perfdata_next(loader->data, &record, &err)) >
	       0) {
		if (!read_record(loader, &record))
			return false;
		if (loader->order % RECORDS_A_REPORT == 0)
			tell_progress(loader, record.offset, all);
	}
	tell_progress(loader, all, all);
	/* What was read before is worth showing. */
	if (more < 0) {
		loader->profile->finished &= err.status != TICKMAP_E_TRUNCATED;
		return err.status != TICKMAP_E_NOMEM &&
		       tickmap_codemaps_finding(
			       loader, "PD001",
			       err.what ? err.what
					: "a part of the recording cannot "
					  "be read",
			       tickmap_intern_cstr(loader->profile->strings,
						   err.source),
			       err.offset);
	}
	return true;
}

/* ---- What was measured ---- */

static void describe_event(struct tickmap_loader *loader)
{
	enum { CMDLINE = 11 };
	struct tickmap_profile *profile = loader->profile;
	size_t count = tickmap_perfdata_attr_count(loader->data);
	const struct tickmap_perfdata_attr *attr = NULL;

	for (size_t i = 0; !attr && i < count; i++) {
		attr = tickmap_perfdata_attr_at(loader->data, i);
		if (!attr->counts_time)
			attr = NULL;
	}
	loader->main_attr = attr;
	if (!attr && count)
		attr = tickmap_perfdata_attr_at(loader->data, 0);
	loader->clock =
		attr ? tickmap_clock_of_attr(attr->use_clockid, attr->clockid)
		     : TICKMAP_CLOCK_PERF;
	profile->clock.domain = tickmap_clock_name(loader->clock);
	profile->clock.method =
		loader->clock == TICKMAP_CLOCK_MONOTONIC ? "same" : "none";
	profile->finished = tickmap_perfdata_is_finished(loader->data);
	const char *command =
		tickmap_perfdata_feature_text(loader->data, CMDLINE);
	if (command)
		profile->command =
			tickmap_intern_cstr(profile->strings, command);
	if (!attr)
		return;
	profile->event = tickmap_intern_cstr(profile->strings, attr->name);
	profile->frequency = attr->freq ? attr->sample_freq_or_period : 0;
	loader->timeless = !(attr->layout.sample_type & PERF_SAMPLE_TIME);
}

static bool count_unresolved(struct tickmap_profile *profile)
{
	uint64_t *weights = tickmap_profile_weights(profile, NULL, 0);

	if (!weights)
		return false;
	for (size_t n = 1; n < profile->nodes.count; n++) {
		uint32_t frame = profile->nodes.items[n].frame;
		profile->unresolved[profile->frames.items[frame].reason] +=
			weights[n];
	}
	profile->unresolved[TICKMAP_RESOLVED] = 0;
	free(weights);
	return true;
}

static bool conclude(struct tickmap_loader *loader)
{
	struct tickmap_profile *profile = loader->profile;

	if (!profile->start_ns)
		profile->start_ns = loader->first_ns;
	if (!profile->end_ns)
		profile->end_ns = loader->last_ns;
	if (loader->dwarf_stacks && !loader->unwindable &&
	    !tickmap_codemaps_finding(loader, "PD003",
				      "stacks were recorded on a machine of "
				      "another kind: only their leaves are "
				      "used",
				      0, 0))
		return false;
	return count_unresolved(profile) &&
	       tickmap_frames_write_hints(loader) &&
	       tickmap_codemaps_write_findings(loader) &&
	       !tickmap_strings_failed(profile->strings);
}

/* Registers have the numbers that our unwinder knows. */
static bool is_of_this_kind(const struct tickmap_loader *loader)
{
	enum { ARCH = 6 };
	const char *arch = tickmap_perfdata_feature_text(loader->data, ARCH);

	return !arch || !strcmp(arch, "x86_64");
}

/* Of the sideband, what says what threads are called. */
static void keep_names(struct tickmap_loader *loader)
{
	size_t kept = 0;

	for (size_t i = 0; i < loader->side.count; i++) {
		const struct tickmap_side *e = &loader->side.items[i];
		if (e->kind == TICKMAP_SIDE_COMM ||
		    e->kind == TICKMAP_SIDE_FORK)
			loader->side.items[kept++] = *e;
	}
	loader->side.count = kept;
	if (kept)
		tickmap_vec_fit(&loader->side);
	else
		tickmap_vec_free(&loader->side);
}

/* Gives back what only the making of stacks and timelines wanted. */
static bool all_is_known(struct tickmap_loader *loader)
{
	tickmap_stacks_end(&loader->stacks);
	tickmap_vec_free(&loader->code_records);
	tickmap_vec_free(&loader->deferred);
	tickmap_vec_free(&loader->links);
	keep_names(loader);
	return true;
}

/* The same for what only the resolving of samples wanted. */
static bool all_is_resolved(struct tickmap_loader *loader)
{
	if (!loader->options->addresses)
		tickmap_stacks_free(&loader->stacks);
	tickmap_profile_processes_free(loader);
	tickmap_vec_free(&loader->raw);
	return true;
}

static bool load(struct tickmap_loader *loader)
{
	loader->profile = tickmap_profile_new();
	if (!loader->profile)
		return false;
	loader->symbolizer = tickmap_symbolizer_new(loader->profile->strings);
	if (!loader->symbolizer)
		return false;
	describe_event(loader);
	if (!read_all(loader))
		return false;
	tickmap_symbolizer_kernel_is_ours(loader->symbolizer,
					  loader->same_boot ||
						  tickmap_boot_is_ours(loader));
	loader->unwindable = is_of_this_kind(loader);
	return tickmap_chains_end(loader) && tickmap_jitted_find(loader) &&
	       tickmap_profile_processes_build(loader) &&
	       tickmap_mapfiles_find(loader) &&
	       tickmap_codemaps_publish(loader) &&
	       tickmap_profile_processes_seal(loader, true) &&
	       tickmap_unwinding_run(loader) && all_is_known(loader) &&
	       tickmap_samples_resolve(loader) &&
	       tickmap_runtimes_write_hints(loader) &&
	       all_is_resolved(loader) && conclude(loader);
}

static void release(struct tickmap_loader *loader)
{
	tickmap_codemaps_free(loader);
	tickmap_profile_processes_free(loader);
	tickmap_stacks_free(&loader->stacks);
	tickmap_symbolizer_free(loader->symbolizer);
	tickmap_table_free(&loader->frame_of_kernel);
	tickmap_table_free(&loader->frame_of_file);
	tickmap_table_free(&loader->no_program);
	tickmap_vec_free(&loader->chains);
	tickmap_vec_free(&loader->chain_frames);
	tickmap_vec_free(&loader->dso_unnamed);
	tickmap_vec_free(&loader->side);
	tickmap_vec_free(&loader->maps);
	tickmap_vec_free(&loader->raw);
	tickmap_vec_free(&loader->links);
	tickmap_vec_free(&loader->deferred);
	tickmap_vec_free(&loader->images);
	if (loader->options->data)
		tickmap_perfdata_rewind(loader->data);
	else
		tickmap_perfdata_close(loader->data);
}

int tickmap_profile_load(const char *path,
			 const struct tickmap_profile_options *options,
			 struct tickmap_profile **ret_profile,
			 struct tickmap_error *err)
{
	static const struct tickmap_profile_options all = { 0 };
	struct tickmap_loader loader = {
		.options = options ? options : &all,
		.path = path,
	};
	int status = TICKMAP_OK;

	loader.data = loader.options->data;
	if (loader.data)
		tickmap_perfdata_rewind(loader.data);
	else
		status = tickmap_perfdata_open(path, &loader.data, err);
	if (status < 0)
		return status;
	bool good = load(&loader);
	if (good && loader.options->addresses)
		tickmap_profile_keep_stacks(loader.profile, &loader.stacks);
	release(&loader);
	if (!good) {
		tickmap_profile_free(loader.profile);
		return tickmap_fail(err, TICKMAP_E_NOMEM, 0, "out of memory");
	}
	*ret_profile = loader.profile;
	return TICKMAP_OK;
}

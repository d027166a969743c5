/* SPDX-License-Identifier: MIT */
#include "capture/perfdata_features.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

struct section {
	unsigned bit;
	size_t start, end; /* in bytes */
};

struct maker {
	const struct tickmap_perfdata_features_input *input;
	TICKMAP_VEC(uint8_t) bytes;
	struct section sections[16];
	size_t section_count;
	bool failed;
};

static void put(struct maker *m, const void *bytes, size_t size)
{
	if (m->failed || !size)
		return;
	if (!tickmap_vec_reserve(&m->bytes, m->bytes.count + size)) {
		m->failed = true;
		return;
	}
	memcpy(m->bytes.items + m->bytes.count, bytes, size);
	m->bytes.count += size;
}

static void put_u32(struct maker *m, uint32_t v)
{
	put(m, &v, sizeof(v));
}

static void put_u64(struct maker *m, uint64_t v)
{
	put(m, &v, sizeof(v));
}

static void put_zeros(struct maker *m, size_t size)
{
	static const uint8_t zeros[64];

	for (; size > sizeof(zeros); size -= sizeof(zeros))
		put(m, zeros, sizeof(zeros));
	put(m, zeros, size);
}

static size_t padding_to_64(size_t size)
{
	return (64 - size % 64) % 64;
}

/* perf's strings: the padded length, then the text and its padding. */
static void put_string(struct maker *m, const char *text)
{
	size_t size = strlen(text) + 1;
	size_t padding = padding_to_64(size);

	put_u32(m, (uint32_t)(size + padding));
	put(m, text, size);
	put_zeros(m, padding);
}

static void begin(struct maker *m, unsigned bit)
{
	struct section *section = &m->sections[m->section_count++];

	section->bit = bit;
	section->start = m->bytes.count;
}

static void end(struct maker *m)
{
	m->sections[m->section_count - 1].end = m->bytes.count;
}

static void put_text(struct maker *m, unsigned bit, const char *text)
{
	if (!text || !*text)
		return;
	begin(m, bit);
	put_string(m, text);
	end(m);
}

static void put_build_id(struct maker *m,
			 const struct tickmap_perfdata_build_id *id)
{
	size_t path_size = strlen(id->path) + 1;
	size_t padding = padding_to_64(path_size);
	size_t size =
		sizeof(struct perf_event_header) + 4 + 24 + path_size + padding;
	struct perf_event_header header = {
		.type = PERFDATA_RECORD_BUILD_ID,
		.misc = (uint16_t)(PERFDATA_MISC_BUILD_ID_SIZE |
				   (id->kernel ? PERF_RECORD_MISC_KERNEL
					       : PERF_RECORD_MISC_USER)),
		.size = (uint16_t)size,
	};
	uint8_t padded[24] = { 0 };

	if (size > UINT16_MAX || !id->id_size || id->id_size > 20)
		return;
	memcpy(padded, id->id, id->id_size);
	padded[20] = (uint8_t)id->id_size;
	put(m, &header, sizeof(header));
	put_u32(m, UINT32_MAX); /* pid -1: this machine, no guest of it */
	put(m, padded, sizeof(padded));
	put(m, id->path, path_size);
	put_zeros(m, padding);
}

static void put_build_ids(struct maker *m)
{
	const struct tickmap_perfdata_facts *facts = m->input->facts;

	if (!facts || !facts->build_id_count)
		return;
	begin(m, PERFDATA_FEATURE_BUILD_ID);
	for (size_t i = 0; i < facts->build_id_count; i++)
		put_build_id(m, &facts->build_ids[i]);
	end(m);
}

static void put_cpu_count(struct maker *m)
{
	begin(m, PERFDATA_FEATURE_NRCPUS);
	put_u32(m, (uint32_t)sysconf(_SC_NPROCESSORS_CONF));
	put_u32(m, (uint32_t)sysconf(_SC_NPROCESSORS_ONLN));
	end(m);
}

static void put_cpu_description(struct maker *m)
{
	char line[256];
	FILE *file = fopen("/proc/cpuinfo", "re");

	if (!file)
		return;
	while (fgets(line, sizeof(line), file)) {
		const char *value = strstr(line, ": ");
		if (strncmp(line, "model name", 10) || !value)
			continue;
		line[strcspn(line, "\n")] = '\0';
		put_text(m, PERFDATA_FEATURE_CPUDESC, value + 2);
		break;
	}
	fclose(file);
}

static void put_command(struct maker *m)
{
	const struct tickmap_perfdata_facts *facts = m->input->facts;

	if (!facts || !facts->command_count)
		return;
	begin(m, PERFDATA_FEATURE_CMDLINE);
	put_u32(m, (uint32_t)facts->command_count);
	for (size_t i = 0; i < facts->command_count; i++)
		put_string(m, facts->command[i]);
	end(m);
}

static void put_event(struct maker *m)
{
	begin(m, PERFDATA_FEATURE_EVENT_DESC);
	put_u32(m, 1);
	put_u32(m, m->input->attr->size);
	put(m, m->input->attr, m->input->attr->size);
	put_u32(m, 0); /* ids */
	put_string(m, m->input->event_name);
	end(m);
}

static void put_times(struct maker *m)
{
	const struct tickmap_perfdata_facts *facts = m->input->facts;

	if (!facts || !facts->last_sample_ns)
		return;
	begin(m, PERFDATA_FEATURE_SAMPLE_TIME);
	put_u64(m, facts->first_sample_ns);
	put_u64(m, facts->last_sample_ns);
	end(m);
}

static void put_clock_resolution(struct maker *m)
{
	struct timespec resolution;

	if (!m->input->attr->use_clockid ||
	    clock_getres(m->input->attr->clockid, &resolution))
		return;
	begin(m, PERFDATA_FEATURE_CLOCKID);
	put_u64(m, (uint64_t)resolution.tv_sec * 1000000000 +
			   (uint64_t)resolution.tv_nsec);
	end(m);
}

static void put_compression(struct maker *m)
{
	if (!m->input->zstd_level)
		return;
	begin(m, PERFDATA_FEATURE_COMPRESSED);
	put_u32(m, 1); /* version */
	put_u32(m, PERFDATA_COMPRESSED_ZSTD);
	put_u32(m, m->input->zstd_level);
	put_u32(m, m->input->zstd_ratio);
	put_u32(m, m->input->decompressed_max);
	end(m);
}

static void put_clock_data(struct maker *m)
{
	if (!m->input->attr->use_clockid)
		return;
	begin(m, PERFDATA_FEATURE_CLOCK_DATA);
	put_u32(m, 1); /* version */
	put_u32(m, (uint32_t)m->input->attr->clockid);
	put_u64(m, m->input->wall_ns);
	put_u64(m, m->input->clock_ns);
	end(m);
}

/* In the order of their bits, which the table follows. */
static void put_all(struct maker *m)
{
	const struct tickmap_perfdata_facts *facts = m->input->facts;
	struct utsname uts;
	bool named = !uname(&uts);

	put_build_ids(m);
	if (named) {
		put_text(m, PERFDATA_FEATURE_HOSTNAME, uts.nodename);
		put_text(m, PERFDATA_FEATURE_OSRELEASE, uts.release);
	}
	put_text(m, PERFDATA_FEATURE_VERSION, facts ? facts->version : NULL);
	if (named)
		put_text(m, PERFDATA_FEATURE_ARCH, uts.machine);
	put_cpu_count(m);
	put_cpu_description(m);
	put_command(m);
	put_event(m);
	put_times(m);
	put_clock_resolution(m);
	put_compression(m);
	put_clock_data(m);
}

int tickmap_perfdata_features_make(
	const struct tickmap_perfdata_features_input *input, uint64_t offset,
	struct tickmap_perfdata_features *ret_features)
{
	struct maker sections = { .input = input };
	struct maker whole = { 0 };

	memset(ret_features, 0, sizeof(*ret_features));
	put_all(&sections);
	uint64_t at = offset + sections.section_count * PERFDATA_SECTION_SIZE;
	for (size_t i = 0; i < sections.section_count; i++) {
		const struct section *section = &sections.sections[i];
		ret_features->bits[section->bit / 64] |= UINT64_C(1)
							 << section->bit % 64;
		put_u64(&whole, at + section->start);
		put_u64(&whole, section->end - section->start);
	}
	put(&whole, sections.bytes.items, sections.bytes.count);
	bool failed = sections.failed || whole.failed;
	tickmap_vec_free(&sections.bytes);
	ret_features->bytes.items = whole.bytes.items;
	ret_features->bytes.count = whole.bytes.count;
	ret_features->bytes.capacity = whole.bytes.capacity;
	return failed ? TICKMAP_E_NOMEM : TICKMAP_OK;
}

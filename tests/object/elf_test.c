/* SPDX-License-Identifier: MIT */
/* Opening files: against readelf, and for files that change or are no ELF. */
#include "object/elf.h"
#include "tools.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const files[] = {
	"/usr/lib/x86_64-linux-gnu/libc.so.6",
	"/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
	"/usr/lib/x86_64-linux-gnu/libz.so.1",
	"/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
	"/usr/lib/aarch64-linux-gnu/libc.so.6",
	"/usr/bin/python3",
	"/usr/bin/readelf",
	"/proc/self/exe",
};

enum { FILES = sizeof(files) / sizeof(*files) };

/* /proc/self/exe is another program for every tool. */
static const char *at(size_t i, char *room, size_t size)
{
	ssize_t n = readlink(files[i], room, size - 1);

	if (n <= 0 || strcmp(files[i], "/proc/self/exe") != 0)
		return files[i];
	room[n] = '\0';
	return room;
}

static void test_build_ids_are_those_of_readelf(void **state)
{
	unsigned same = 0, all = 0;
	char room[4096];

	(void)state;
	for (size_t i = 0; i < FILES; i++) {
		const char *path = at(i, room, sizeof(room));
		struct tickmap_elf *elf;
		char line[512], expected[64] = "", ours[64] = "";
		uint8_t id[20];
		if (tickmap_elf_open(path, &elf, NULL) < 0)
			continue;
		FILE *pipe = must_open("readelf -nW '%s' 2>/dev/null", path);
		while (fgets(line, sizeof(line), pipe))
			if (strstr(line, "Build ID: "))
				sscanf(strstr(line, "Build ID: "),
				       "Build ID: %40s", expected);
		pclose(pipe);
		size_t size = tickmap_elf_build_id(elf, id);
		for (size_t k = 0; k < size; k++)
			snprintf(ours + 2 * k, 3, "%02x", id[k]);
		assert_string_equal(ours, expected);
		same++, all++;
		tickmap_elf_close(elf);
	}
	print_message("build ids: %u of %u\n", same, all);
	assert_true(all > 0);
}

static void test_sections_are_those_of_readelf(void **state)
{
	unsigned same = 0, all = 0;
	char room[4096];

	(void)state;
	for (size_t i = 0; i < FILES; i++) {
		const char *path = at(i, room, sizeof(room));
		struct tickmap_elf *elf;
		char line[512];
		if (tickmap_elf_open(path, &elf, NULL) < 0)
			continue;
		size_t size;
		uint8_t *bytes = read_all(path, &size);
		FILE *pipe = must_open("readelf -SW '%s'", path);
		while (fgets(line, sizeof(line), pipe)) {
			char name[64], type[32];
			unsigned long long svma, offset, length;
			char *from = strchr(line, ']');
			if (!from ||
			    sscanf(from + 1, " %63s %31s %llx %llx %llx", name,
				   type, &svma, &offset, &length) != 5 ||
			    *name != '.' || !length)
				continue;
			struct tickmap_elf_section s =
				tickmap_elf_section(elf, name);
			all++;
			if (strcmp(type, "NOBITS") == 0) {
				same += s.size == 0;
				continue;
			}
			same += s.size == length && s.svma == svma &&
				!memcmp(s.bytes, bytes + offset, length);
		}
		pclose(pipe);
		free(bytes);
		tickmap_elf_close(elf);
	}
	print_message("sections: %u of %u\n", same, all);
	assert_true(all > 100);
	assert_int_equal(same, all);
}

static void test_every_byte_of_a_segment_has_its_svma(void **state)
{
	unsigned same = 0, all = 0;
	char room[4096];

	(void)state;
	for (size_t i = 0; i < FILES; i++) {
		const char *path = at(i, room, sizeof(room));
		struct tickmap_elf *elf;
		char line[512];
		if (tickmap_elf_open(path, &elf, NULL) < 0)
			continue;
		FILE *pipe = must_open("readelf -lW '%s'", path);
		while (fgets(line, sizeof(line), pipe)) {
			unsigned long long offset, svma, size, got = 0;
			if (sscanf(line, " LOAD %llx %llx %*x %llx", &offset,
				   &svma, &size) != 3 ||
			    !size)
				continue;
			unsigned long long probes[] = { 0, size / 2, size - 1 };
			for (size_t k = 0; k < 3; k++) {
				uint64_t ret;
				all++;
				if (!tickmap_elf_svma_of_offset(
					    elf, offset + probes[k], &ret))
					continue;
				got = ret;
				same += got == svma + probes[k];
			}
		}
		pclose(pipe);
		uint64_t ret;
		assert_false(tickmap_elf_svma_of_offset(elf, UINT64_MAX, &ret));
		tickmap_elf_close(elf);
	}
	print_message("segments: %u of %u\n", same, all);
	assert_true(all > 10);
	assert_int_equal(same, all);
}

static void test_unwind_tables_are_found_without_a_section_table(void **state)
{
	static const char *const names[] = { ".eh_frame_hdr", ".eh_frame" };
	struct tickmap_elf *whole, *bare;
	char folder[64], path[128];
	size_t size;

	(void)state;
	uint8_t *bytes = read_all("/proc/self/exe", &size);
	Elf64_Ehdr header;
	memcpy(&header, bytes, sizeof(header));
	header.e_shoff = 0;
	header.e_shnum = header.e_shstrndx = 0;
	memcpy(bytes, &header, sizeof(header));
	make_folder(folder);
	snprintf(path, sizeof(path), "%s/bare", folder);
	write_all(path, bytes, size);
	free(bytes);

	assert_int_equal(tickmap_elf_open("/proc/self/exe", &whole, NULL), 0);
	assert_int_equal(tickmap_elf_open(path, &bare, NULL), 0);
	for (size_t i = 0; i < 2; i++) {
		struct tickmap_elf_section a =
			tickmap_elf_section(whole, names[i]);
		struct tickmap_elf_section b =
			tickmap_elf_section(bare, names[i]);
		assert_true(a.size > 0);
		assert_true(b.size >= a.size);
		assert_int_equal(a.svma, b.svma);
		assert_memory_equal(a.bytes, b.bytes, a.size);
	}
	assert_int_equal(tickmap_elf_section(bare, ".text").size, 0);
	uint8_t a[20], b[20];
	assert_int_equal(tickmap_elf_build_id(whole, a),
			 tickmap_elf_build_id(bare, b));
	tickmap_elf_close(whole);
	tickmap_elf_close(bare);
	remove_folder(folder);
}

static void test_what_is_no_elf_file_is_refused_with_a_reason(void **state)
{
	static const struct {
		const char *path;
		enum tickmap_status status;
	} cases[] = {
		{ "/nowhere/at/all", TICKMAP_E_OS },
		{ "/dev/null", TICKMAP_E_UNSUPPORTED },
		{ "/tmp", TICKMAP_E_UNSUPPORTED },
		{ "/etc/passwd", TICKMAP_E_FORMAT },
	};
	struct tickmap_elf *elf;
	char folder[64], path[128];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct tickmap_error err = { 0 };
		assert_int_equal(tickmap_elf_open(cases[i].path, &elf, &err),
				 cases[i].status);
		assert_string_equal(err.source, cases[i].path);
		assert_non_null(err.what);
	}
	make_folder(folder);
	snprintf(path, sizeof(path), "%s/fifo", folder);
	must_run("mkfifo '%s'", path);
	assert_int_equal(tickmap_elf_open(path, &elf, NULL),
			 TICKMAP_E_UNSUPPORTED);
	snprintf(path, sizeof(path), "%s/empty", folder);
	write_text(path, "");
	assert_true(tickmap_elf_open(path, &elf, NULL) < 0);
	write_text(path, "\177ELF\2\1\1");
	assert_true(tickmap_elf_open(path, &elf, NULL) < 0);
	remove_folder(folder);
}

static void test_both_byte_orders_and_both_widths_open(void **state)
{
	static const struct {
		const char *format;
		bool is_64;
	} cases[] = {
		{ "elf32-little", false },
		{ "elf32-big", false },
		{ "elf64-little", true },
		{ "elf64-big", true },
	};
	static const char text[] = "four score and seven\n";
	char folder[64], path[128];

	(void)state;
	if (!have_tool("objcopy"))
		skip();
	make_folder(folder);
	snprintf(path, sizeof(path), "%s/data", folder);
	write_text(path, text);
	for (size_t i = 0; i < 4; i++) {
		struct tickmap_elf *elf;
		must_run("objcopy -I binary -O %s '%s/data' '%s/%s'",
			 cases[i].format, folder, folder, cases[i].format);
		snprintf(path, sizeof(path), "%s/%s", folder, cases[i].format);
		assert_int_equal(tickmap_elf_open(path, &elf, NULL), 0);
		assert_int_equal(tickmap_elf_is_64(elf), cases[i].is_64);
		struct tickmap_elf_section s =
			tickmap_elf_section(elf, ".data");
		assert_int_equal(s.size, strlen(text));
		assert_memory_equal(s.bytes, text, s.size);
		tickmap_elf_close(elf);
	}
	remove_folder(folder);
}

static void test_a_file_that_shrinks_loses_sections_and_no_more(void **state)
{
	struct tickmap_elf *elf;
	char folder[64], path[128];
	size_t size;

	(void)state;
	uint8_t *bytes = read_all("/proc/self/exe", &size);
	make_folder(folder);
	snprintf(path, sizeof(path), "%s/shrinks", folder);
	write_all(path, bytes, size);
	free(bytes);
	assert_int_equal(tickmap_elf_open(path, &elf, NULL), 0);
	struct tickmap_elf_section text = tickmap_elf_section(elf, ".text");
	assert_true(text.size > 0);
	assert_int_equal(truncate(path, 4096), 0);
	assert_int_equal(tickmap_elf_section(elf, ".eh_frame").size, 0);
	struct tickmap_elf_section again = tickmap_elf_section(elf, ".text");
	assert_ptr_equal(again.bytes, text.bytes);
	tickmap_elf_close(elf);
	remove_folder(folder);
}

static void test_lent_sections_outlive_the_descriptor(void **state)
{
	struct tickmap_elf *elf;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(tickmap_elf_open_fd(fd, &elf, NULL), 0);
	close(fd);
	struct tickmap_elf_section hdr =
		tickmap_elf_section(elf, ".eh_frame_hdr");
	assert_true(hdr.size > 0);
	tickmap_elf_release_file(elf);
	struct tickmap_elf_section again =
		tickmap_elf_section(elf, ".eh_frame_hdr");
	assert_ptr_equal(again.bytes, hdr.bytes);
	assert_int_equal(tickmap_elf_section(elf, ".text").size, 0);
	tickmap_elf_close(elf);
}

static long peak_kib(void)
{
	FILE *status = fopen("/proc/self/status", "r");
	char line[256];
	long kib = -1;

	while (status && fgets(line, sizeof(line), status))
		sscanf(line, "VmHWM: %ld", &kib);
	if (status)
		fclose(status);
	return kib;
}

static void test_a_huge_file_costs_what_is_asked_of_it(void **state)
{
	struct tickmap_elf *elf;
	char folder[64], path[128];

	(void)state;
	make_folder(folder);
	snprintf(path, sizeof(path), "%s/huge", folder);
	/* A section of 64 MiB, before the section table. */
	must_run("truncate -s 64M '%s/fill' && objcopy --add-section "
		 ".fill='%s/fill' /proc/%d/exe '%s' && rm '%s/fill'",
		 folder, folder, getpid(), path, folder);
	long before = peak_kib();
	assert_int_equal(tickmap_elf_open(path, &elf, NULL), 0);
	assert_true(tickmap_elf_section(elf, ".eh_frame").size > 0);
	long after = peak_kib();
	assert_int_equal(tickmap_elf_section(elf, ".fill").size, 64 << 20);
	long whole = peak_kib();
	print_message("peak grew by %ld KiB, then by %ld\n", after - before,
		      whole - after);
	assert_true(after - before < 2048);
	assert_true(whole - after > 60000); /* or we measured nothing */
	tickmap_elf_close(elf);
	remove_folder(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_huge_file_costs_what_is_asked_of_it),
		cmocka_unit_test(test_build_ids_are_those_of_readelf),
		cmocka_unit_test(test_sections_are_those_of_readelf),
		cmocka_unit_test(test_every_byte_of_a_segment_has_its_svma),
		cmocka_unit_test(
			test_unwind_tables_are_found_without_a_section_table),
		cmocka_unit_test(
			test_what_is_no_elf_file_is_refused_with_a_reason),
		cmocka_unit_test(test_both_byte_orders_and_both_widths_open),
		cmocka_unit_test(
			test_a_file_that_shrinks_loses_sections_and_no_more),
		cmocka_unit_test(test_lent_sections_outlive_the_descriptor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Address in a file -> name, or the reason why there is none. */
#include "../object/tools.h"
#include "object/elf.h"
#include "symbolize/symbolize.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <time.h>
#include <unistd.h>

struct fixture {
	struct tickmap_strings *strings;
	struct tickmap_symbolizer *symbolizer;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->strings = tickmap_strings_new();
	f->symbolizer = tickmap_symbolizer_new(f->strings);
	*state = f;
	return f->strings && f->symbolizer ? 0 : -1;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	tickmap_symbolizer_free(f->symbolizer);
	tickmap_strings_free(f->strings);
	free(f);
	return 0;
}

static const char *text(const struct fixture *f, tickmap_str id)
{
	return tickmap_string(f->strings, id, NULL);
}

static uint32_t dso_of(struct fixture *f, const char *path)
{
	return tickmap_symbolizer_dso(f->symbolizer, path, NULL, 0);
}

/* ---- This very process ---- */

static struct tickmap_symbol ask_here(struct fixture *f, const void *address)
{
	Dl_info info;
	struct link_map *map;
	uint64_t offset = 0;
	struct tickmap_elf *elf;
	char path[4096];

	assert_true(dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP));
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	assert_true(n > 0);
	path[n] = '\0';
	if (*map->l_name)
		snprintf(path, sizeof(path), "%s", map->l_name);
	/* svma -> file offset, by the naive way round. */
	uint64_t svma = (uint64_t)(uintptr_t)address - map->l_addr;
	assert_int_equal(tickmap_elf_open(path, &elf, NULL), 0);
	uint64_t got;
	while (!tickmap_elf_svma_of_offset(elf, offset, &got) || got != svma)
		offset++;
	tickmap_elf_close(elf);
	struct tickmap_symbol s =
		tickmap_symbolize_file(f->symbolizer, dso_of(f, path), offset);
	assert_int_equal(s.svma, svma);
	return s;
}

static void test_functions_of_this_process_have_their_names(void **state)
{
	struct fixture *f = *state;
	struct tickmap_symbol s = ask_here(f, (const char *)set_up + 3);

	assert_int_equal(s.reason, TICKMAP_SYMBOL_FOUND);
	assert_string_equal(text(f, s.name), "set_up");
	assert_string_equal(text(f, s.raw_name), "set_up");
	assert_int_equal(s.svma - s.start, 3);
	assert_true(s.size > 3);

	s = ask_here(f, (const char *)dlsym(RTLD_DEFAULT, "qsort") + 1);
	assert_int_equal(s.reason, TICKMAP_SYMBOL_FOUND);
	assert_string_equal(text(f, s.name), "qsort");
	s = ask_here(f, (const char *)dlsym(RTLD_DEFAULT, "fgets") + 1);
	assert_string_equal(text(f, s.name), "fgets");
}

static void test_the_vdso_has_the_names_that_the_loader_knows(void **state)
{
	struct fixture *f = *state;
	uintptr_t at = getauxval(AT_SYSINFO_EHDR);
	void *vdso =
		at ? dlopen("linux-vdso.so.1", RTLD_NOW | RTLD_NOLOAD) : NULL;

	if (!vdso)
		skip();
	const char *address = dlsym(vdso, "__vdso_clock_gettime");
	if (!address)
		skip();
	uint32_t dso = dso_of(f, "[vdso]");
	struct tickmap_symbol s = tickmap_symbolize_file(
		f->symbolizer, dso, (uintptr_t)address + 1 - at);
	assert_int_equal(s.reason, TICKMAP_SYMBOL_FOUND);
	assert_non_null(strstr(text(f, s.name), "clock_gettime"));
	assert_int_equal(s.start + at, (uintptr_t)address);
	assert_string_equal(
		text(f, tickmap_symbolizer_dso_name(f->symbolizer, dso)),
		"[vdso]");
	/* Its ELF header is no function. */
	s = tickmap_symbolize_file(f->symbolizer, dso, 4);
	assert_int_equal(s.reason, TICKMAP_SYMBOL_STRIPPED);
	assert_string_equal(text(f, s.name), "[vdso+0x4]");
	dlclose(vdso);
}

/* ---- A library made for the test ---- */

static const char source[] =
	"#include <cstdio>\n"
	"namespace deep { __attribute__((noinline)) int hidden(int x)\n"
	"{ return x * 3 + FACTOR; } }\n"
	"static __attribute__((noinline)) int inner(int x)\n"
	"{ std::puts(\"x\"); return x ^ 5; }\n"
	"namespace api { int outer(int x)\n"
	"{ return deep::hidden(x) + inner(x); } }\n"
	"extern \"C\" int plain(int x) { return api::outer(x) + 1; }\n";

struct library {
	char folder[64];
	char full[128], stripped[128];
	struct listing listing;
};

static void build(struct library *library, const char *flags)
{
	char path[128];

	if (!have_tool("c++") || !have_tool("strip"))
		skip();
	make_folder(library->folder);
	snprintf(path, sizeof(path), "%s/t.cc", library->folder);
	write_text(path, source);
	snprintf(path, sizeof(path), "%s/map", library->folder);
	write_text(path, "{ global: plain; extern \"C++\" { api::*; }; "
			 "local: *; };\n");
	must_run("cd '%s' && c++ -O1 -fPIC -shared -Wl,--build-id "
		 "-Wl,--version-script=map %s -o libfull.so t.cc && "
		 "strip -o libbare.so libfull.so",
		 library->folder, flags);
	snprintf(library->full, sizeof(library->full), "%s/libfull.so",
		 library->folder);
	snprintf(library->stripped, sizeof(library->stripped), "%s/libbare.so",
		 library->folder);
	library->listing = list_functions(library->full, NULL);
}

static void destroy(struct library *library)
{
	remove_folder(library->folder);
	free_listing(&library->listing);
}

static const struct listed *listed(const struct library *library,
				   const char *part)
{
	for (size_t i = 0; i < library->listing.count; i++)
		if (strstr(library->listing.items[i].name, part))
			return &library->listing.items[i];
	fail();
	return NULL;
}

/* In such small libraries offset and svma of code are one. */
static struct tickmap_symbol ask(struct fixture *f, const char *path,
				 uint64_t offset)
{
	struct tickmap_symbol s =
		tickmap_symbolize_file(f->symbolizer, dso_of(f, path), offset);

	assert_int_equal(s.svma, offset);
	return s;
}

static void test_cpp_functions_are_readable_and_keep_the_raw_name(void **state)
{
	struct fixture *f = *state;
	struct library library;

	build(&library, "-DFACTOR=1");
	const struct listed *hidden = listed(&library, "hidden");
	struct tickmap_symbol s = ask(f, library.full, hidden->svma + 1);
	assert_int_equal(s.reason, TICKMAP_SYMBOL_FOUND);
	assert_string_equal(text(f, s.name), "deep::hidden(int)");
	assert_string_equal(text(f, s.raw_name), "_ZN4deep6hiddenEi");
	assert_int_equal(s.start, hidden->svma);
	assert_int_equal(s.size, hidden->size);
	/* Asked again, told again. */
	struct tickmap_symbol again =
		ask(f, library.full, hidden->svma + hidden->size - 1);
	assert_int_equal(again.name, s.name);
	assert_int_equal(again.raw_name, s.raw_name);
	destroy(&library);
}

static void
test_stripped_libraries_name_exports_and_number_the_rest(void **state)
{
	struct fixture *f = *state;
	struct library library;
	unsigned exported = 0, inner = 0;

	build(&library, "-DFACTOR=1");
	for (size_t i = 0; i < library.listing.count; i++) {
		const struct listed *l = &library.listing.items[i];
		bool is_exported = !strcmp(l->name, "plain") ||
				   !strcmp(l->name, "_ZN3api5outerEi");
		if (!is_exported && !strstr(l->name, "inner") &&
		    !strstr(l->name, "hidden"))
			continue; /* the compiler's own have no unwind table */
		for (uint64_t at = l->svma; at < l->svma + l->size; at++) {
			struct tickmap_symbol s = ask(f, library.stripped, at);
			char expected[64];
			snprintf(expected, sizeof(expected),
				 "[libbare.so+0x%llx]",
				 (unsigned long long)l->svma);
			assert_int_equal(s.start, l->svma);
			assert_int_equal(s.size, l->size);
			assert_int_equal(s.reason,
					 is_exported ? TICKMAP_SYMBOL_FOUND
						     : TICKMAP_SYMBOL_STRIPPED);
			if (is_exported)
				assert_string_equal(text(f, s.raw_name),
						    l->name);
			else
				assert_string_equal(text(f, s.name), expected);
		}
		exported += is_exported;
		inner += !is_exported;
	}
	print_message("%u exported, %u inner functions\n", exported, inner);
	assert_int_equal(exported, 4); /* two, each in both tables */
	assert_int_equal(inner, 2);
	const char *hint = tickmap_symbolizer_hint(f->symbolizer,
						   dso_of(f, library.stripped));
	assert_non_null(hint);
	assert_non_null(strstr(hint, "libbare.so: no symbols"));
	assert_null(strchr(hint, '\n'));
	assert_null(tickmap_symbolizer_hint(f->symbolizer,
					    dso_of(f, library.full)));
	destroy(&library);
}

static void
test_exports_without_a_size_reach_as_far_as_unwind_tables_say(void **state)
{
	struct fixture *f = *state;
	char folder[64], path[128];

	if (!have_tool("cc"))
		skip();
	make_folder(folder);
	snprintf(path, sizeof(path), "%s/a.s", folder);
	write_text(path, ".text\n.globl first\n.type first, @function\n"
			 ".fill 16\nfirst: .cfi_startproc\n.fill 24\n"
			 ".cfi_endproc\n.fill 8\n"
			 "secret: .cfi_startproc\n.fill 8\n.cfi_endproc\n");
	must_run("cd '%s' && cc -shared -nostdlib -s -o a.so a.s", folder);
	snprintf(path, sizeof(path), "%s/a.so", folder);
	struct tickmap_elf *elf;
	assert_int_equal(tickmap_elf_open(path, &elf, NULL), 0);
	uint64_t base = tickmap_elf_section(elf, ".text").svma;
	tickmap_elf_close(elf);

	for (unsigned at = 0; at < 56; at++) {
		struct tickmap_symbol s = ask(f, path, base + at);
		char expected[64] = "first";
		if (at < 16 || (at >= 40 && at < 48))
			snprintf(expected, sizeof(expected), "[a.so+0x%llx]",
				 (unsigned long long)base + at);
		else if (at >= 48)
			snprintf(expected, sizeof(expected), "[a.so+0x%llx]",
				 (unsigned long long)base + 48);
		assert_string_equal(text(f, s.name), expected);
	}
	remove_folder(folder);
}

static void test_a_file_of_another_build_gives_no_names(void **state)
{
	struct fixture *f = *state;
	struct library library, other;
	struct tickmap_elf *elf;
	uint8_t id[20];

	build(&library, "-DFACTOR=1");
	build(&other, "-DFACTOR=2");
	assert_int_equal(tickmap_elf_open(library.full, &elf, NULL), 0);
	size_t size = tickmap_elf_build_id(elf, id);
	tickmap_elf_close(elf);
	uint64_t at = listed(&library, "inner")->svma;

	uint32_t same =
		tickmap_symbolizer_dso(f->symbolizer, library.full, id, size);
	uint32_t changed =
		tickmap_symbolizer_dso(f->symbolizer, other.full, id, size);
	struct tickmap_symbol s =
		tickmap_symbolize_file(f->symbolizer, same, at);
	assert_string_equal(text(f, s.name), "inner(int)");
	s = tickmap_symbolize_file(f->symbolizer, changed, at);
	assert_int_equal(s.reason, TICKMAP_SYMBOL_OTHER_BUILD);
	assert_memory_equal(text(f, s.name), "[libfull.so+0x", 14);
	const char *hint = tickmap_symbolizer_hint(f->symbolizer, changed);
	assert_non_null(strstr(hint, "another build"));

	assert_int_not_equal(same, changed);
	assert_int_not_equal(same, dso_of(f, library.full));
	assert_int_equal(same, tickmap_symbolizer_dso(f->symbolizer,
						      library.full, id, size));
	destroy(&library);
	destroy(&other);
}

/* ---- Files that are not there, and names that a recording carries ---- */

static void test_missing_files_and_other_files_say_so(void **state)
{
	static const struct {
		const char *path, *name, *unnamed;
		enum tickmap_symbol_reason reason;
	} cases[] = {
		{ "/usr/lib/libgone.so.1", "libgone.so.1",
		  "[libgone.so.1+0x1234]", TICKMAP_SYMBOL_FILE_MISSING },
		{ "/usr/lib/libold.so (deleted)", "libold.so",
		  "[libold.so+0x1234]", TICKMAP_SYMBOL_FILE_MISSING },
		{ "/etc/passwd", "passwd", "[passwd+0x1234]",
		  TICKMAP_SYMBOL_NOT_ELF },
		{ "/dev/zero", "zero", "[zero+0x1234]",
		  TICKMAP_SYMBOL_NOT_ELF },
		{ "relative.so", "relative.so", "[relative.so+0x1234]",
		  TICKMAP_SYMBOL_FILE_MISSING },
		{ "", "", "[+0x1234]", TICKMAP_SYMBOL_FILE_MISSING },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint32_t dso = dso_of(f, cases[i].path);
		struct tickmap_symbol s =
			tickmap_symbolize_file(f->symbolizer, dso, 0x1234);
		assert_int_equal(s.reason, cases[i].reason);
		assert_string_equal(text(f, s.name), cases[i].unnamed);
		assert_int_equal(s.raw_name, 0);
		assert_string_equal(text(f, tickmap_symbolizer_dso_name(
						    f->symbolizer, dso)),
				    cases[i].name);
		assert_string_equal(
			tickmap_symbolizer_dso_path(f->symbolizer, dso),
			cases[i].path);
	}
}

static void
test_recorded_names_stand_in_for_what_a_file_cannot_say(void **state)
{
	static const char gone[] = "/opt/app/server (deleted)";
	struct fixture *f = *state;
	struct tickmap_symbol s;

	/* A program whose code lies elsewhere than in its file. */
	assert_true(tickmap_symbolizer_know_segment(f->symbolizer, gone, 0x1000,
						    0x1000, 0x401000));
	assert_true(tickmap_symbolizer_know(f->symbolizer, gone, 0x401100, 0x40,
					    "_ZN3app5serveEv"));
	assert_true(tickmap_symbolizer_know(f->symbolizer, gone, 0x401110, 8,
					    "nested"));
	uint32_t dso = dso_of(f, gone);
	s = tickmap_symbolize_file(f->symbolizer, dso, 0x1104);
	assert_int_equal(s.reason, TICKMAP_SYMBOL_FOUND);
	assert_string_equal(text(f, s.name), "app::serve()");
	assert_int_equal(s.svma, 0x401104);
	assert_int_equal(s.start, 0x401100);
	s = tickmap_symbolize_file(f->symbolizer, dso, 0x1112);
	assert_string_equal(text(f, s.name), "nested");
	s = tickmap_symbolize_file(f->symbolizer, dso, 0x1130);
	assert_string_equal(text(f, s.name), "app::serve()");
	s = tickmap_symbolize_file(f->symbolizer, dso, 0x1140);
	assert_int_equal(s.reason, TICKMAP_SYMBOL_FILE_MISSING);
	assert_string_equal(text(f, s.name), "[server+0x401140]");
}

static void test_a_file_that_answers_is_not_overruled(void **state)
{
	struct fixture *f = *state;
	struct library library;

	build(&library, "-DFACTOR=1");
	const struct listed *plain = listed(&library, "plain");
	const struct listed *inner = listed(&library, "inner");
	assert_true(tickmap_symbolizer_know(f->symbolizer, library.stripped,
					    plain->svma, plain->size, "a_lie"));
	assert_true(tickmap_symbolizer_know(f->symbolizer, library.stripped,
					    inner->svma, inner->size,
					    "_ZL5inneri"));
	struct tickmap_symbol s = ask(f, library.stripped, plain->svma);
	assert_string_equal(text(f, s.name), "plain");
	s = ask(f, library.stripped, inner->svma + 1);
	assert_int_equal(s.reason, TICKMAP_SYMBOL_FOUND);
	assert_string_equal(text(f, s.name), "inner(int)");
	destroy(&library);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(test_functions_of_this_process_have_their_names),
		CASE(test_the_vdso_has_the_names_that_the_loader_knows),
		CASE(test_cpp_functions_are_readable_and_keep_the_raw_name),
		CASE(test_stripped_libraries_name_exports_and_number_the_rest),
		CASE(test_exports_without_a_size_reach_as_far_as_unwind_tables_say),
		CASE(test_a_file_of_another_build_gives_no_names),
		CASE(test_missing_files_and_other_files_say_so),
		CASE(test_recorded_names_stand_in_for_what_a_file_cannot_say),
		CASE(test_a_file_that_answers_is_not_overruled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

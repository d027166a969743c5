/* SPDX-License-Identifier: MIT */
/* Which function holds an address: against other tools, and by small cases. */
#include "object/elf.h"
#include "tools.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct tickmap_symbols *load(const char *path)
{
	struct tickmap_elf *elf;
	struct tickmap_symbols *symbols;

	assert_int_equal(tickmap_elf_open(path, &elf, NULL), 0);
	assert_int_equal(tickmap_symbols_load(elf, path, "", &symbols, NULL),
			 0);
	tickmap_elf_close(elf); /* names are the table's own */
	return symbols;
}

static const char *name_at(const struct tickmap_symbols *symbols, uint64_t svma)
{
	const struct tickmap_elf_symbol *s =
		tickmap_symbols_find(symbols, svma);

	return s ? s->name : NULL;
}

/* ---- Real files ---- */

static const char *const files[] = {
	"/usr/lib/x86_64-linux-gnu/libc.so.6",
	"/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
	"/usr/lib/x86_64-linux-gnu/libz.so.1",
	"/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
	"/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
	"/usr/lib/aarch64-linux-gnu/libc.so.6",
	"/usr/bin/python3.11",
	"/proc/self/exe",
};

enum { FILES = sizeof(files) / sizeof(*files), ASKED = 3000 };

static bool path_of(size_t i, char *path, size_t size)
{
	ssize_t n = readlink(files[i], path, size - 1);

	if (n > 0 && strcmp(files[i], "/proc/self/exe") == 0)
		path[n] = '\0';
	else
		snprintf(path, size, "%s", files[i]);
	return access(path, R_OK) == 0;
}

struct counts {
	unsigned right, asked;
};

static void ask_inside(const struct tickmap_symbols *symbols,
		       const struct listing *listing, struct counts *counts)
{
	size_t step = listing->count / (ASKED / 3) + 1;

	for (size_t i = 0; i < listing->count; i += step) {
		const struct listed *s = &listing->items[i];
		uint64_t probes[] = { s->svma, s->svma + s->size / 2,
				      s->svma + s->size - 1 };
		for (size_t k = 0; k < 3; k++) {
			const char *name = name_at(symbols, probes[k]);
			bool any, same = listing_agrees(listing, probes[k],
							name, &any);
			counts->asked++;
			counts->right += same;
			if (!same)
				print_message("0x%llx: %s, not %s\n",
					      (unsigned long long)probes[k],
					      name ? name : "-", s->name);
		}
	}
}

/* Gaps: bytes behind a function that no function holds. Where .symtab is there,
 * a function without a size may reach over them: only then a name is right. */
static void ask_gaps(const struct tickmap_symbols *symbols,
		     const struct listing *listing, struct counts *counts)
{
	uint64_t covered = 0;

	for (size_t i = 0; i + 1 < listing->count; i++) {
		const struct listed *s = &listing->items[i];
		if (s->svma + s->size > covered)
			covered = s->svma + s->size;
		uint64_t next = s[1].svma;
		if (next <= covered)
			continue;
		uint64_t probes[] = { covered, next - 1 };
		for (size_t k = 0; k < 2; k++) {
			const struct tickmap_elf_symbol *got =
				tickmap_symbols_find(symbols, probes[k]);
			bool other = got && strstr(got->name, "@plt");
			for (size_t n = 0; got && n < listing->count; n++)
				if (listing->items[n].svma == got->svma)
					other = false;
			if (got && !tickmap_symbols_stripped(symbols) &&
			    got->svma >= covered)
				other = true;
			counts->asked++;
			counts->right += !got || other;
			if (got && !other)
				print_message("0x%llx: %s in a gap\n",
					      (unsigned long long)probes[k],
					      got->name);
		}
	}
}

static void test_addresses_in_functions_have_the_names_of_readelf(void **state)
{
	unsigned tried = 0;

	(void)state;
	for (size_t i = 0; i < FILES; i++) {
		char path[4096], debug[128];
		struct counts inside = { 0 }, gaps = { 0 };
		if (!path_of(i, path, sizeof(path)))
			continue;
		system_debug_file(path, debug, sizeof(debug));
		struct listing listing = list_functions(path, debug);
		struct tickmap_symbols *symbols = load(path);
		assert_int_equal(tickmap_symbols_stripped(symbols),
				 !listing.symtab);
		ask_inside(symbols, &listing, &inside);
		ask_gaps(symbols, &listing, &gaps);
		print_message("%s: inside %u of %u, gaps %u of %u\n", path,
			      inside.right, inside.asked, gaps.right,
			      gaps.asked);
		assert_int_equal(inside.right, inside.asked);
		assert_int_equal(gaps.right, gaps.asked);
		tried += inside.asked;
		tickmap_symbols_free(symbols);
		free_listing(&listing);
	}
	assert_true(tried > 1000);
}

static void test_llvm_symbolizer_agrees(void **state)
{
	struct counts counts = { 0 };
	char folder[64];

	(void)state;
	if (!have_tool("llvm-symbolizer"))
		skip();
	make_folder(folder);
	for (size_t i = 0; i < FILES; i++) {
		char path[4096], list[128], line[4096], debug[128];
		if (!path_of(i, path, sizeof(path)))
			continue;
		system_debug_file(path, debug, sizeof(debug));
		struct listing listing = list_functions(path, debug);
		struct tickmap_symbols *symbols = load(path);
		/* By symbols alone: lines of debug info name inlined code. */
		snprintf(list, sizeof(list), "%s/list", folder);
		FILE *file = fopen(list, "w");
		assert_non_null(file);
		size_t step = listing.count / 1000 + 1;
		for (size_t k = 0; k < listing.count; k += step)
			fprintf(file, "0x%llx\n",
				(unsigned long long)(listing.items[k].svma +
						     listing.items[k].size /
							     3));
		fclose(file);
		FILE *pipe = must_open(
			"objcopy -g -R .note.gnu.build-id '%s' '%s/bare' && "
			"llvm-symbolizer --obj='%s/bare' "
			"--no-demangle -a --output-style=GNU "
			"--functions <'%s' 2>/dev/null",
			*debug ? debug : path, folder, folder, list);
		while (fgets(line, sizeof(line), pipe)) {
			unsigned long long svma;
			bool any;
			/* An address, a name, a place. */
			if (sscanf(line, "0x%llx", &svma) != 1 ||
			    !fgets(line, sizeof(line), pipe))
				continue;
			line[strcspn(line, "@\n")] = '\0';
			const char *name = name_at(symbols, svma);
			/* Two names for one function are one answer. */
			bool same = name && (!strcmp(name, line) ||
					     listing_agrees(&listing, svma,
							    line, &any));
			counts.asked++;
			counts.right += same;
			if (!same)
				print_message("0x%llx: %s; llvm-symbolizer: "
					      "%s\n",
					      svma, name ? name : "-", line);
		}
		pclose(pipe);
		tickmap_symbols_free(symbols);
		free_listing(&listing);
	}
	print_message("llvm-symbolizer: %u of %u\n", counts.right,
		      counts.asked);
	assert_true(counts.asked > 1000);
	remove_folder(folder);
	assert_true(counts.right * 1000 >= counts.asked * 999);
}

/* ---- Procedure linkage tables ---- */

static struct counts ask_plt(const char *path)
{
	struct tickmap_symbols *symbols = load(path);
	struct counts counts = { 0 };
	char *line = NULL;
	size_t room = 0;
	FILE *pipe = must_open("objdump -d -j .plt -j .plt.sec -j .plt.got "
			       "'%s' 2>/dev/null",
			       path);

	while (getline(&line, &room, pipe) > 0) {
		unsigned long long svma, target;
		char name[4096], expected[4096];
		/* 0000000000001030 <puts@plt>:, <puts@GLIBC_2.2.5@plt>: */
		if (sscanf(line, "%llx <%4000[^>]>:", &svma, name) != 2)
			continue;
		char *at = strrchr(name, '@');
		if (!at || strcmp(at, "@plt") != 0)
			continue;
		*strchr(name, '@') = '\0';
		counts.asked++;
		/* An indirect function: objdump tells its resolver's place. */
		if (sscanf(line, "%*x <*ABS*+0x%llx@plt>:", &target) == 1 &&
		    name_at(symbols, target))
			snprintf(name, sizeof(name), "%s",
				 name_at(symbols, target));
		snprintf(expected, sizeof(expected), "%.4000s@plt", name);
		const char *first = name_at(symbols, svma);
		const char *inner = name_at(symbols, svma + 7);
		bool same = first && inner && !strcmp(first, expected) &&
			    !strcmp(inner, expected);
		counts.right += same;
		if (!same)
			print_message("0x%llx: %s, not %s\n", svma,
				      first ? first : "-", expected);
	}
	free(line);
	pclose(pipe);
	tickmap_symbols_free(symbols);
	return counts;
}

static void test_linkage_tables_have_the_names_of_objdump(void **state)
{
	unsigned tried = 0;

	(void)state;
	if (!have_tool("objdump"))
		skip();
	for (size_t i = 0; i < FILES; i++) {
		char path[4096];
		if (!path_of(i, path, sizeof(path)))
			continue;
		struct counts counts = ask_plt(path);
		print_message("%s: %u of %u\n", path, counts.right,
			      counts.asked);
		assert_int_equal(counts.right, counts.asked);
		tried += counts.asked;
	}
	assert_true(tried > 100);
}

static void test_linkage_tables_of_every_linker_are_read(void **state)
{
	static const char *const ways[] = {
		"cc -Wl,-z,lazy",
		"cc -Wl,-z,now -fno-plt",
		"cc -fcf-protection=full -Wl,-z,ibtplt -Wl,-z,lazy",
		"cc -static",
		"cc -fuse-ld=gold",
		"clang -fuse-ld=lld",
	};
	unsigned built = 0;
	char folder[64], path[128];

	(void)state;
	make_folder(folder);
	snprintf(path, sizeof(path), "%s/a.c", folder);
	write_text(path, "#include <stdio.h>\n#include <stdlib.h>\n"
			 "int main(void) { void (*f)(void *) = free;\n"
			 "f(malloc(3)); free(0); puts(\"x\");\n"
			 "return printf(\"%d\", rand()); }\n");
	snprintf(path, sizeof(path), "%s/a", folder);
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		char command[512];
		snprintf(command, sizeof(command),
			 "%s -o '%s' '%s.c' 2>/dev/null", ways[i], path, path);
		if (system(command) != 0)
			continue;
		struct counts counts = ask_plt(path);
		print_message("%s: %u of %u\n", ways[i], counts.right,
			      counts.asked);
		assert_int_equal(counts.right, counts.asked);
		built += counts.asked > 0;
	}
	remove_folder(folder);
	assert_true(built >= 1);
}

static void test_linkage_tables_of_aarch64_are_read(void **state)
{
	static const char *const ways[] = {
		"",
		"-mbranch-protection=standard -Wl,-z,force-bti",
	};
	unsigned all = 0;
	char folder[64], path[128], line[512];

	(void)state;
	if (!have_tool("clang") || !have_tool("ld.lld") ||
	    !have_tool("llvm-objdump"))
		skip();
	make_folder(folder);
	snprintf(path, sizeof(path), "%s/a.c", folder);
	write_text(path, "int puts(const char *); int rand(void);\n"
			 "int f(void) { return puts(\"x\") + rand(); }\n");
	snprintf(path, sizeof(path), "%s/a.so", folder);
	for (size_t i = 0; i < 2; i++) {
		must_run("cd '%s' && clang --target=aarch64-linux-gnu "
			 "-fuse-ld=lld -shared -nostdlib -fPIC -O1 %s a.c "
			 "-o a.so",
			 folder, ways[i]);
		struct tickmap_symbols *symbols = load(path);
		FILE *pipe = must_open("llvm-objdump -d '%s'", path);
		while (fgets(line, sizeof(line), pipe)) {
			unsigned long long svma;
			char name[64];
			if (sscanf(line, "%llx <%63[^>]>:", &svma, name) != 2 ||
			    !strstr(name, "@plt"))
				continue;
			assert_string_equal(name_at(symbols, svma), name);
			assert_string_equal(name_at(symbols, svma + 15), name);
			all++;
		}
		pclose(pipe);
		tickmap_symbols_free(symbols);
	}
	remove_folder(folder);
	assert_int_equal(all, 4);
}

/* ---- Small cases, in assembly so that every entry is chosen ---- */

static const char *assembler(void)
{
	return have_tool("cc") ? "cc" : have_tool("gcc") ? "gcc" : NULL;
}

/* Links `text` as a library; its code starts at symbol "base". */
static struct tickmap_symbols *assemble(const char *text, const char *flags,
					uint64_t *ret_base)
{
	struct tickmap_symbols *symbols;
	char folder[64], path[128];
	const char *cc = assembler();
	unsigned long long base = 0;

	if (!cc)
		skip();
	make_folder(folder);
	snprintf(path, sizeof(path), "%s/a.s", folder);
	write_text(path, text);
	must_run("cd '%s' && %s -shared -nostdlib -o a.so a.s %s", folder, cc,
		 flags);
	FILE *pipe = must_open("readelf -SW '%s/a.so' | sed -n 's/.* \\.text  "
			       "*PROGBITS *\\([0-9a-f]*\\).*/\\1/p'",
			       folder);
	assert_int_equal(fscanf(pipe, "%llx", &base), 1);
	pclose(pipe);
	snprintf(path, sizeof(path), "%s/a.so", folder);
	symbols = load(path);
	remove_folder(folder);
	*ret_base = base;
	return symbols;
}

#define FUNCTION(name, size)                                                   \
	".type " name ", @function\n.size " name ", " #size "\n"

static void test_aliases_get_one_name_whatever_their_order(void **state)
{
	static const char *const orders[] = {
		".globl __a, b, _b\n.weak a, longer\n",
		".weak longer, a\n.globl _b, b, __a\n",
	};
	uint64_t base;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		char text[1024];
		snprintf(text, sizeof(text),
			 ".text\n%s%s" FUNCTION("a", 8) FUNCTION("b", 8)
				 FUNCTION("_b", 8) FUNCTION("__a", 8)
					 FUNCTION("local", 8) ".fill 16\n",
			 orders[i],
			 i ? "_b: b: a: __a: local:\n"
			   : "local: a: __a: b: _b:\n");
		struct tickmap_symbols *symbols = assemble(text, "", &base);
		/* Exported, the fewest underscores, and not weak. */
		assert_string_equal(name_at(symbols, base), "b");
		assert_string_equal(name_at(symbols, base + 7), "b");
		assert_null(name_at(symbols, base + 8));
		tickmap_symbols_free(symbols);
	}
}

static void test_versions_are_no_part_of_a_name_and_old_ones_lose(void **state)
{
	static const char script[] = "-Wl,--version-script=/dev/stdin <<'END'\n"
				     "V1 { new; old; };\nV2 { x; } V1;\nEND\n";
	static const char *const stripped[] = { "-s ", "" };
	uint64_t base;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		char flags[256];
		snprintf(flags, sizeof(flags), "%s%s", stripped[i], script);
		struct tickmap_symbols *symbols = assemble(
			".text\n.globl a, b\n" FUNCTION("a", 8) FUNCTION(
				"b", 8) "a: b: .fill 8\n"
					".symver a, old@V1, remove\n"
					".symver b, longer@@V2, remove\n",
			flags, &base);
		assert_string_equal(name_at(symbols, base), "longer");
		assert_int_equal(tickmap_symbols_count(symbols), 1);
		tickmap_symbols_free(symbols);
	}
}

static void test_of_nested_functions_the_innermost_answers(void **state)
{
	static const struct {
		unsigned at;
		const char *name;
	} cases[] = {
		{ 0, "outer" },	  { 7, "outer" },  { 8, "middle" },
		{ 16, "inner" },  { 19, "inner" }, { 20, "middle" },
		{ 31, "middle" }, { 32, "outer" }, { 63, "outer" },
		{ 64, NULL },	  { 72, "after" }, { 80, NULL },
	};
	uint64_t base;

	(void)state;
	struct tickmap_symbols *symbols = assemble(
		".text\n" FUNCTION("outer", 64) FUNCTION("middle", 24)
			FUNCTION("inner", 4) FUNCTION(
				"after", 8) "outer: .fill 8\nmiddle: .fill "
					    "8\ninner: .fill 56\n"
					    "after: .fill 16\n",
		"", &base);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const char *name = name_at(symbols, base + cases[i].at);
		if (cases[i].name)
			assert_string_equal(name, cases[i].name);
		else
			assert_null(name);
	}
	tickmap_symbols_free(symbols);
}

static const char sizeless[] =
	".text\n.globl first, last\n.type first, @function\n"
	".type last, @function\n.type datum, @object\n" FUNCTION(
		"sized",
		16) "first: .fill 8\n"
		    "sized: .fill 8\nlabel: .fill 12\n" /* 8; its end is 24 */
		    "bare: .fill 4\n"			/* 28 */
		    "datum: .fill 8\n"			/* 32 */
		    "last: .fill 8\n";			/* 40 */

static void test_functions_without_a_size_reach_to_the_next_symbol(void **state)
{
	static const struct {
		unsigned at;
		const char *name;
	} cases[] = {
		{ 0, "first" },	 { 7, "first" },  { 8, "sized" },
		{ 16, "sized" }, { 23, "sized" }, { 24, NULL },
		{ 28, "bare" },	 { 31, "bare" },  { 32, NULL },
		{ 39, NULL },	 { 40, "last" },  { 47, "last" },
		{ 48, NULL },
	};
	uint64_t base;

	(void)state;
	struct tickmap_symbols *symbols = assemble(sizeless, "", &base);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const char *name = name_at(symbols, base + cases[i].at);
		if (cases[i].name)
			assert_string_equal(name, cases[i].name);
		else
			assert_null(name);
	}
	tickmap_symbols_free(symbols);
}

static void
test_once_stripped_functions_without_a_size_hold_their_first_byte(void **state)
{
	uint64_t base;

	(void)state;
	struct tickmap_symbols *symbols = assemble(sizeless, "-s", &base);
	assert_true(tickmap_symbols_stripped(symbols));
	assert_string_equal(name_at(symbols, base), "first");
	assert_string_equal(name_at(symbols, base + 40), "last");
	assert_int_equal(tickmap_symbols_find(symbols, base)->size, 0);
	for (unsigned at = 1; at < 48; at++)
		if (at != 40)
			assert_null(name_at(symbols, base + at));
	tickmap_symbols_free(symbols);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_addresses_in_functions_have_the_names_of_readelf),
		cmocka_unit_test(test_llvm_symbolizer_agrees),
		cmocka_unit_test(test_linkage_tables_have_the_names_of_objdump),
		cmocka_unit_test(test_linkage_tables_of_every_linker_are_read),
		cmocka_unit_test(test_linkage_tables_of_aarch64_are_read),
		cmocka_unit_test(
			test_aliases_get_one_name_whatever_their_order),
		cmocka_unit_test(
			test_versions_are_no_part_of_a_name_and_old_ones_lose),
		cmocka_unit_test(
			test_of_nested_functions_the_innermost_answers),
		cmocka_unit_test(
			test_functions_without_a_size_reach_to_the_next_symbol),
		cmocka_unit_test(
			test_once_stripped_functions_without_a_size_hold_their_first_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

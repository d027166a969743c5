/* SPDX-License-Identifier: MIT */
/* Where a stripped library's symbols are looked for, and when they count. */
#include "object/elf.h"
#include "tools.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

static const char source[] =
	"static __attribute__((noinline)) int inner(int x)\n"
	"{ return x * FACTOR; }\n"
	"int outer(int x) { return inner(x) + inner(x + 1); }\n";

/*
 * A folder that stands for the file system's root: the library lies at
 * /opt/app/libt.so, stripped, and libt.debug where a case puts it.
 */
struct scene {
	char root[64];
	char library[128];
	uint64_t inner; /* the inner function's address */
};

static void build(struct scene *scene, const char *flags)
{
	unsigned long long svma = 0;
	char path[128];

	if (!have_tool("cc") || !have_tool("objcopy") || !have_tool("strip"))
		skip();
	make_folder(scene->root);
	snprintf(scene->library, sizeof(scene->library), "%s/opt/app/libt.so",
		 scene->root);
	snprintf(path, sizeof(path), "%s/t.c", scene->root);
	write_text(path, source);
	must_run("cd '%s' && mkdir -p opt/app && cc -O1 -g -DFACTOR=3 -fPIC "
		 "-shared %s -o libt.full t.c && "
		 "objcopy --only-keep-debug libt.full libt.debug && "
		 "strip -o opt/app/libt.so libt.full && "
		 "objcopy --add-gnu-debuglink=libt.debug opt/app/libt.so",
		 scene->root, flags);
	FILE *pipe = must_open("nm '%s/libt.full' | sed -n 's/ t inner$//p'",
			       scene->root);
	assert_int_equal(fscanf(pipe, "%llx", &svma), 1);
	pclose(pipe);
	scene->inner = svma;
}

static bool names_inner(const struct scene *scene)
{
	struct tickmap_elf *elf;
	struct tickmap_symbols *symbols;

	assert_int_equal(tickmap_elf_open(scene->library, &elf, NULL), 0);
	assert_int_equal(tickmap_symbols_load(elf, "/opt/app/libt.so",
					      scene->root, &symbols, NULL),
			 0);
	tickmap_elf_close(elf);
	const struct tickmap_elf_symbol *s =
		tickmap_symbols_find(symbols, scene->inner);
	bool named = s && strcmp(s->name, "inner") == 0;
	assert_true(named || !s);
	assert_int_equal(tickmap_symbols_stripped(symbols), !named);
	tickmap_symbols_free(symbols);
	return named;
}

static void put(const struct scene *scene, const char *folder)
{
	must_run("cd '%s' && mkdir -p '.%s' && cp libt.debug '.%s'",
		 scene->root, folder, folder);
}

static void take_away(const struct scene *scene, const char *folder)
{
	must_run("rm '%s%s/libt.debug'", scene->root, folder);
}

static const char *const folders[] = { "/opt/app", "/opt/app/.debug",
				       "/usr/lib/debug/opt/app" };

static void test_a_linked_debug_file_is_found_in_three_places(void **state)
{
	static const char *const flags[] = { "-Wl,--build-id",
					     "-Wl,--build-id=none" };

	(void)state;
	for (size_t f = 0; f < 2; f++) {
		struct scene scene;
		build(&scene, flags[f]);
		assert_false(names_inner(&scene));
		for (size_t i = 0; i < 3; i++) {
			put(&scene, folders[i]);
			assert_true(names_inner(&scene));
			take_away(&scene, folders[i]);
			assert_false(names_inner(&scene));
		}
		remove_folder(scene.root);
	}
}

static void test_a_debug_file_with_another_checksum_is_refused(void **state)
{
	struct scene scene;

	(void)state;
	build(&scene, "-Wl,--build-id");
	put(&scene, folders[0]);
	assert_true(names_inner(&scene));
	must_run("printf x >>'%s%s/libt.debug'", scene.root, folders[0]);
	assert_false(names_inner(&scene));
	/* A wrong one does not hide a right one. */
	put(&scene, folders[2]);
	assert_true(names_inner(&scene));
	remove_folder(scene.root);
}

/* Where the debug file of this build id belongs. */
static void build_id_path(const struct scene *scene, char out[128])
{
	struct tickmap_elf *elf;
	uint8_t id[20];
	size_t at = (size_t)snprintf(out, 128, "/usr/lib/debug/.build-id/");

	assert_int_equal(tickmap_elf_open(scene->library, &elf, NULL), 0);
	size_t size = tickmap_elf_build_id(elf, id);
	tickmap_elf_close(elf);
	assert_int_equal(size, 20);
	for (size_t i = 0; i < size; i++)
		at += (size_t)snprintf(out + at, 128 - at, "%02x%s", id[i],
				       i ? "" : "/");
	snprintf(out + at, 128 - at, ".debug");
}

static void test_a_debug_file_is_found_by_build_id(void **state)
{
	struct scene scene;
	char path[128];

	(void)state;
	build(&scene, "-Wl,--build-id");
	build_id_path(&scene, path);
	must_run("cd '%s' && mkdir -p \"$(dirname '.%s')\" && "
		 "cp libt.debug '.%s' && objcopy -R .gnu_debuglink '%s'",
		 scene.root, path, path, scene.library);
	assert_true(names_inner(&scene));
	remove_folder(scene.root);
}

static void test_a_debug_file_of_another_build_is_refused(void **state)
{
	struct scene scene;
	char path[128];

	(void)state;
	build(&scene, "-Wl,--build-id");
	build_id_path(&scene, path);
	/* The same functions at the same places, but compiled again. */
	must_run("cd '%s' && mkdir -p \"$(dirname '.%s')\" && "
		 "cc -O1 -g -DFACTOR=5 -fPIC -shared -Wl,--build-id "
		 "-o other.full t.c && "
		 "objcopy --only-keep-debug other.full '.%s'",
		 scene.root, path, path);
	assert_false(names_inner(&scene));
	/* Nor by its link, even with the checksum that the link asks for. */
	must_run("cd '%s' && cp '.%s' opt/app/libt.debug && cd opt/app && "
		 "objcopy -R .gnu_debuglink libt.so && "
		 "objcopy --add-gnu-debuglink=libt.debug libt.so",
		 scene.root, path);
	assert_false(names_inner(&scene));
	remove_folder(scene.root);
}

static void test_a_link_that_leaves_its_folder_is_not_followed(void **state)
{
	struct scene scene;
	static const char name[] = "../x.debug";

	(void)state;
	build(&scene, "-Wl,--build-id=none");
	must_run("cd '%s' && cp libt.debug opt/x.debug", scene.root);
	/* "libt.debug\0\0" and "../x.debug\0\0" have one length. */
	size_t size;
	uint8_t *bytes = read_all(scene.library, &size);
	uint8_t *at = memmem(bytes, size, "libt.debug", 10);
	assert_non_null(at);
	memcpy(at, name, 10);
	write_all(scene.library, bytes, size);
	free(bytes);
	assert_false(names_inner(&scene));
	remove_folder(scene.root);
}

static void test_packed_symbols_within_the_file_are_read(void **state)
{
	struct scene scene;

	(void)state;
#ifndef HAVE_LZMA
	print_message("built without liblzma\n");
	skip();
#endif
	if (!have_tool("xz"))
		skip();
	build(&scene, "-Wl,--build-id");
	must_run("cd '%s' && objcopy -S --keep-symbol=inner libt.debug mini && "
		 "xz mini && objcopy -R .gnu_debuglink --add-section "
		 ".gnu_debugdata=mini.xz opt/app/libt.so",
		 scene.root);
	assert_true(names_inner(&scene));
	/* Cut short it says nothing and harms nothing. */
	must_run("cd '%s' && truncate -s -20 mini.xz && objcopy "
		 "--update-section "
		 ".gnu_debugdata=mini.xz opt/app/libt.so",
		 scene.root);
	assert_false(names_inner(&scene));
	remove_folder(scene.root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_a_linked_debug_file_is_found_in_three_places),
		cmocka_unit_test(
			test_a_debug_file_with_another_checksum_is_refused),
		cmocka_unit_test(test_a_debug_file_is_found_by_build_id),
		cmocka_unit_test(test_a_debug_file_of_another_build_is_refused),
		cmocka_unit_test(
			test_a_link_that_leaves_its_folder_is_not_followed),
		cmocka_unit_test(test_packed_symbols_within_the_file_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Readable names: against c++filt, and for names that are hostile or none. */
#include "../object/tools.h"
#include "symbolize/symbolize.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

static void expect(const char *raw, const char *readable)
{
	char *got = tickmap_demangle(raw);

	assert_non_null(got);
	assert_string_equal(got, readable);
	free(got);
}

static void test_cpp_names_are_readable(void **state)
{
	(void)state;
	expect("_ZN3foo3barEi", "foo::bar(int)");
	expect("_ZNSt6vectorIiSaIiEE9push_backERKi",
	       "std::vector<int, std::allocator<int> >::push_back(int const&)");
	expect("_ZNK1AcvbEv", "A::operator bool() const");
	expect("_ZN1AC2Ev", "A::A()");
	expect("_ZN3fooEv.cold", "foo() [clone .cold]");
	expect("_GLOBAL__I_main", "global constructors keyed to main");
}

static void test_rust_names_are_readable_and_lose_their_hash(void **state)
{
	(void)state;
	/* The old scheme: C++'s, with a hash as the last part. */
	expect("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE",
	       "core::fmt::Formatter::pad");
	expect("_ZN66_$LT$alloc..vec..Vec$LT$T$GT$$u20$as$u20$core..ops..drop.."
	       "Drop$GT$4drop17h54a1d3b76c9e2f80E",
	       "<alloc::vec::Vec<T> as core::ops::drop::Drop>::drop");
	expect("_ZN3std2io5stdio6_print17h0af1b2c3d4e5f697E.llvm."
	       "1234567890123456789",
	       "std::io::stdio::_print");
	/* The v0 scheme. */
	expect("_RNvC6_123foo3bar", "123foo::bar");
	expect("_RNvCs4fqI2P2rA04_11utf8_identsu30____"
	       "7hkackfecea1cbdathfdh9hlq6"
	       "y",
	       "utf8_idents::საჭმელად_გემრიელი_სადილი");
	expect("_RINbNbCskIICzLVDPPb_5alloc5alloc8box_freeDINbNiB4_5boxed5FnBox"
	       "pEp6OutputuEL_ECs1iopQbuBiw2_3std",
	       "alloc::alloc::box_free::<dyn alloc::boxed::FnBox<_, Output = "
	       "()>>");
}

static void test_every_other_name_is_unchanged(void **state)
{
	static const char *const names[] = {
		"",
		"main",
		"_start",
		"_Z",
		"_R",
		"_Zfoo",
		"_Zone_of_interest",
		"_Read_all",
		"_RemoveThing",
		"__Z3foov",
		"Z3foov",
		"_D3foo3barFZv",
		"_ada_main",
		"ns__package__thing",
		"_GLOBAL_OFFSET_TABLE_",
		"foo@plt",
		"[libz.so.1+0x1234]",
		"py::f:/home/x/a.py",
		"LWl;m\303\251thode(I)V",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		expect(names[i], names[i]);
}

static void test_linkage_entries_keep_their_mark(void **state)
{
	(void)state;
	expect("_ZN3foo3barEi@plt", "foo::bar(int)@plt");
	expect("_RNvC6_123foo3bar@plt", "123foo::bar@plt");
	expect("_Zfoo@plt", "_Zfoo@plt");
}

/* All C++ names of a large library, by c++filt and by us. */
static void test_cppfilt_agrees(void **state)
{
	static const char library[] =
		"/usr/lib/x86_64-linux-gnu/libstdc++.so.6";
	unsigned same = 0, all = 0;
	char folder[64], list[128], raw[8192], line[65536];

	(void)state;
	if (!have_tool("c++filt") || !have_tool("nm"))
		skip();
	make_folder(folder);
	snprintf(list, sizeof(list), "%s/list", folder);
	must_run("nm -D --defined-only '%s' 2>/dev/null | "
		 "sed -n 's/^.* \\(_[ZR][^@]*\\).*$/\\1/p' >'%s'",
		 library, list);
	FILE *names = fopen(list, "r");
	FILE *pipe = must_open("c++filt -i <'%s'", list);
	assert_non_null(names);
	while (fgets(raw, sizeof(raw), names) &&
	       fgets(line, sizeof(line), pipe)) {
		raw[strcspn(raw, "\n")] = '\0';
		line[strcspn(line, "\n")] = '\0';
		char *got = tickmap_demangle(raw);
		assert_non_null(got);
		all++;
		same += strcmp(got, line) == 0;
		if (strcmp(got, line) != 0)
			print_message("%s: %s, not %s\n", raw, got, line);
		free(got);
	}
	fclose(names);
	pclose(pipe);
	remove_folder(folder);
	if (!all)
		skip();
	print_message("c++filt: %u of %u\n", same, all);
	assert_true(all > 1000);
	assert_int_equal(same, all);
}

static char *repeat(const char *front, const char *unit, size_t n,
		    const char *back)
{
	size_t size = strlen(unit);
	char *text = malloc(strlen(front) + size * n + strlen(back) + 1);
	char *at = stpcpy(text, front);

	assert_non_null(text);
	for (size_t i = 0; i < n; i++)
		at = stpcpy(at, unit);
	strcpy(at, back);
	return text;
}

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void test_hostile_names_cost_little_and_end(void **state)
{
	static const struct {
		const char *front, *unit, *back;
	} cases[] = {
		{ "_Z1f", "P", "i" },	      /* pointers to pointers to ... */
		{ "_Z1f", "F", "vEv" },	      /* functions of functions */
		{ "_ZN", "1aI", "E" },	      /* templates that never close */
		{ "_Z", "Z1f", "" },	      /* locals of locals */
		{ "_Z1fI", "Li0E", "Evv" },   /* arguments without end */
		{ "_Z1fv", "S_", "" },	      /* the same again and again */
		{ "_RNv", "Nv", "C1a1b" },    /* paths in paths */
		{ "_RMC0", "R", "e" },	      /* references to references */
		{ "_RINvC1a1b", "TTT", "E" }, /* tuples of tuples */
		{ "_ZN1aE", "1", "" },
	};
	static const size_t lengths[] = { 10, 500, 1500, 3900, 60000, 200000 };
	double worst = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		for (size_t k = 0; k < sizeof(lengths) / sizeof(*lengths);
		     k++) {
			char *raw = repeat(cases[i].front, cases[i].unit,
					   lengths[k] / strlen(cases[i].unit),
					   cases[i].back);
			double before = seconds();
			char *got = tickmap_demangle(raw);
			double took = seconds() - before;
			assert_non_null(got);
			assert_true(strlen(got) <= 65536 + 4 ||
				    strcmp(got, raw) == 0);
			if (took > worst)
				worst = took;
			free(got);
			free(raw);
		}
	}
	print_message("the worst took %.3f s\n", worst);
	assert_true(worst < 5);
}

/* Each argument is a pair of the one before: 2^40 ints in 400 bytes. */
static void test_a_name_that_unfolds_without_end_stays_raw(void **state)
{
	char raw[2048] = "_Z1fSt4pairIiiE";
	size_t at = strlen(raw);

	(void)state;
	/* S_ is pair, S0_ pair<int, int>, and each new one the next. */
	for (unsigned i = 0; i < 30; i++) {
		static const char digits[] =
			"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
		at += (size_t)snprintf(raw + at, sizeof(raw) - at,
				       "S_IS%c_S%c_E", digits[i], digits[i]);
	}
	char *got = tickmap_demangle(raw);
	assert_non_null(got);
	assert_string_equal(got, raw);
	free(got);
	/* A few of them are readable: the form is right. */
	raw[strlen("_Z1fSt4pairIiiES_IS0_S0_E")] = '\0';
	got = tickmap_demangle(raw);
	assert_non_null(strstr(got, "std::pair<std::pair<int, int>, "
				    "std::pair<int, int> >"));
	free(got);
}

static void test_long_real_names_are_readable(void **state)
{
	char *raw = repeat("_Z1fI", "N3abcIiE3defE", 150, "Evv");
	char *got = tickmap_demangle(raw);

	(void)state;
	assert_true(strlen(raw) > 1024);
	assert_non_null(got);
	assert_memory_equal(got, "void f<abc<int>::def, ", 20);
	free(got);
	free(raw);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cpp_names_are_readable),
		cmocka_unit_test(
			test_rust_names_are_readable_and_lose_their_hash),
		cmocka_unit_test(test_every_other_name_is_unchanged),
		cmocka_unit_test(test_linkage_entries_keep_their_mark),
		cmocka_unit_test(test_cppfilt_agrees),
		cmocka_unit_test(test_hostile_names_cost_little_and_end),
		cmocka_unit_test(
			test_a_name_that_unfolds_without_end_stays_raw),
		cmocka_unit_test(test_long_real_names_are_readable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#!/bin/sh
# SPDX-License-Identifier: MIT
# The library as others build and link it: the header alone in three languages,
# each source by plain cc, the amalgamated one from each language; out of an
# installation, by pkg-config (shared and static) and by CMake; what the objects
# export and need, and their size.
# usage: library_test.sh SOURCE_ROOT SHARED_OBJECT BUILD_ROOT
set -eu
root=$1 shared=$2 build=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
strict='-Wall -Wextra -Werror -pedantic-errors'
compilers=
for cc in gcc clang; do
	if command -v $cc >/dev/null; then
		compilers="$compilers $cc"
	fi
done
[ -n "$compilers" ] || { echo "skipped: neither gcc nor clang"; exit 77; }

cat >"$work/use.c" <<'EOF'
#include <tickmap/emit.h>
int use(struct tickmap_emit **emit);
int use(struct tickmap_emit **emit)
{
	struct tickmap_emit_options options = TICKMAP_EMIT_OPTIONS_INIT;
	struct tickmap_code code = TICKMAP_CODE_INIT;
	if (tickmap_emit_open(&options, emit))
		return 1;
	return tickmap_emit_code(*emit, &code);
}
EOF
cp "$work/use.c" "$work/use.cc"
cat >"$work/main.c" <<'EOF'
#include <tickmap_emit.h>
int main(void)
{
	struct tickmap_emit_options options = TICKMAP_EMIT_OPTIONS_INIT;
	struct tickmap_code code = TICKMAP_CODE_INIT;
	struct tickmap_emit *emit;
	options.dir = ".";
	code.addr = 4096;
	code.code_size = 16;
	code.name = "function";
	return tickmap_emit_open(&options, &emit) ||
	       tickmap_emit_code(emit, &code) || tickmap_emit_close(emit);
}
EOF
cp "$work/main.c" "$work/main.cc"
sed 's|tickmap_emit.h|tickmap/emit.h|' "$work/main.c" >"$work/installed.c"
"$root/tools/amalgamate" "$work"

# Runs a program that publishes one function, in a folder of its own.
publishes() {
	mkdir "$work/run"
	(cd "$work/run" && "$@")
	[ "$(ls "$work/run" | grep -c '^jit-[0-9]*\.dump$')" = 1 ]
	rm -r "$work/run"
}

for cc in $compilers; do
	for std in c99 c11; do
		$cc -std=$std $strict -I"$root/include" -c "$work/use.c" \
			-o "$work/use.o"
	done
	for std in c++11 c++17; do
		$cc -x c++ -std=$std $strict -I"$root/include" -c \
			"$work/use.cc" -o "$work/use.o"
	done
	for source in "$root"/src/emit/*.c; do
		$cc -std=c11 -Werror -fsyntax-only -I"$root/include" "$source"
	done
	$cc -std=c11 $strict -fsyntax-only "$work/tickmap_emit.c"
	# Who compiles all with a C++ compiler is told what to do.
	$cc -x c++ -fsyntax-only "$work/tickmap_emit.c" 2>"$work/cxx.log" &&
		exit 1
	grep -q "compile tickmap_emit.c as C" "$work/cxx.log"
	for std in c99 gnu17; do
		$cc -std=$std -O2 $strict -c \
			"$work/tickmap_emit.c" -o "$work/all.o"
		$cc -std=$std $strict -I"$work" "$work/main.c" "$work/all.o" \
			-lpthread -o "$work/program"
		publishes "$work/program"
	done
	if $cc -x c++ -std=c++11 -fsyntax-only /dev/null 2>"$work/none"; then
		$cc -x c++ -std=c++11 $strict -I"$work" -c "$work/main.cc" \
			-o "$work/main.o"
		$cc "$work/main.o" "$work/all.o" -lpthread -o "$work/program"
		publishes "$work/program"
	fi
	nm -g --defined-only "$work/all.o" | awk '{ print $3 }' |
		LC_ALL=C sort >"$work/defined.txt"
	diff "$root/tests/emit/exported.txt" "$work/defined.txt"
	nm -u "$work/all.o" | awk '{ print $2 }' >"$work/needed.txt"
	libc=$($cc -print-file-name=libc.so.6)
	if [ -e "$libc" ]; then
		nm -D --defined-only "$libc" |
			awk '{ sub(/@.*/, "", $3); print $3 }' |
			LC_ALL=C sort -u >"$work/libc.txt"
		[ "$(wc -l <"$work/libc.txt")" -gt 1000 ]
		grep -v _GLOBAL_OFFSET_TABLE_ "$work/needed.txt" |
			LC_ALL=C sort -u | LC_ALL=C comm -23 - "$work/libc.txt" \
			>"$work/others.txt"
		if [ -s "$work/others.txt" ]; then
			echo "needed, but not libc's:" && cat "$work/others.txt"
			exit 1
		fi
	fi
	text=$(size "$work/all.o" | awk 'NR == 2 { print $1 }')
	echo "$cc -O2: $text bytes of text," \
		"$(wc -l <"$work/needed.txt") symbols of libc"
	[ "$text" -lt 40960 ]
done

# Out of an installation. What sanitizers have made does not link like this.
cmake_file=$root/src/emit/tickmap-emit.cmake
if ! nm -D "$shared" | grep -q 'U __asan\|U __tsan'; then
	meson install -C "$build" --no-rebuild --quiet --destdir "$work/root"
	PKG_CONFIG_PATH=$(dirname "$(find "$work/root" -name tickmap-emit.pc)")
	export PKG_CONFIG_PATH
	flags=$(pkg-config --define-prefix --cflags --libs tickmap-emit)
	lib=$(pkg-config --define-prefix --variable=libdir tickmap-emit)
	# shellcheck disable=SC2086
	$cc $strict "$work/installed.c" $flags -Wl,-rpath,"$lib" \
		-o "$work/program"
	publishes "$work/program"
	readelf -d "$work/program" | grep -q 'NEEDED.*libtickmap-emit\.so\.0'
	# shellcheck disable=SC2046
	$cc $strict -static "$work/installed.c" -o "$work/program" \
		$(pkg-config --define-prefix --static --cflags --libs \
			tickmap-emit)
	publishes "$work/program"
	cmake_file=$(find "$work/root" -name tickmap-emit.cmake)
	cmp "${cmake_file%/*}/tickmap_emit.c" "$work/tickmap_emit.c"
	cmp "${cmake_file%/*}/tickmap_emit.h" "$work/tickmap_emit.h"
	echo "pkg-config, shared and static: links and runs"
fi
if command -v cmake >/dev/null; then
	cp "$cmake_file" "$work/tickmap-emit.cmake"
	cat >"$work/CMakeLists.txt" <<'EOF'
cmake_minimum_required(VERSION 3.10)
project(my_jit C)
include(tickmap-emit.cmake)
add_executable(my_jit main.c)
target_link_libraries(my_jit PRIVATE tickmap::emit)
add_library(my_plugin SHARED main.c)
target_link_libraries(my_plugin PRIVATE tickmap::emit)
EOF
	cmake -S "$work" -B "$work/cmake" >"$work/cmake.log" 2>&1 &&
		cmake --build "$work/cmake" >>"$work/cmake.log" 2>&1 ||
		{ cat "$work/cmake.log"; exit 1; }
	publishes "$work/cmake/my_jit"
	nm -D --defined-only "$work/cmake/libmy_plugin.so" |
		awk '{ print $3 }' >"$work/plugin.txt"
	grep -q __jit_debug_descriptor "$work/plugin.txt"
	if grep tickmap_ "$work/plugin.txt"; then exit 1; fi
	echo "cmake: links and runs"
fi

nm -D --defined-only "$shared" | awk '{ print $3 }' | LC_ALL=C sort \
	>"$work/exported.txt"
diff "$root/tests/emit/exported.txt" "$work/exported.txt"
LC_ALL=C sort -c "$root/tests/emit/exported.txt"

# Sanitizers bring libraries of their own.
readelf -d "$shared" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
	grep -Ev '^(libc|libpthread|ld-linux.*|lib[a-z]*san)\.so|^libgcc_s' &&
	{ echo "the library needs more than libc"; exit 1; }
echo good

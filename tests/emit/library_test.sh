#!/bin/sh
# SPDX-License-Identifier: MIT
# The library as others build and link it: the header alone in three languages,
# each source by plain cc, all sources as one file, what the shared object
# exports and needs.
# usage: library_test.sh SOURCE_ROOT SHARED_OBJECT
set -eu
root=$1 shared=$2
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
for source in "$root"/src/emit/*.c; do
	echo "#include \"$source\""
done >"$work/all.c"

for cc in $compilers; do
	for std in c99 c11; do
		$cc -std=$std $strict -I"$root/include" -c "$work/use.c" \
			-o "$work/use.o"
	done
	$cc -x c++ -std=c++11 $strict -I"$root/include" -c "$work/use.cc" \
		-o "$work/use.o"
	for source in "$root"/src/emit/*.c; do
		$cc -Werror -c -I"$root/include" "$source" -o "$work/one.o"
		$cc -std=c11 -Werror -fPIC -fvisibility=hidden -c \
			-I"$root/include" "$source" -o "$work/one.o"
	done
	$cc -Werror -c -I"$root/include" "$work/all.c" -o "$work/all.o"
done

nm -D --defined-only "$shared" | awk '{ print $3 }' | LC_ALL=C sort \
	>"$work/exported.txt"
diff "$root/tests/emit/exported.txt" "$work/exported.txt"
LC_ALL=C sort -c "$root/tests/emit/exported.txt"

# Sanitizers bring libraries of their own.
readelf -d "$shared" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
	grep -Ev '^(libc|libpthread|ld-linux.*|lib[a-z]*san)\.so|^libgcc_s' &&
	{ echo "the library needs more than libc"; exit 1; }
echo good

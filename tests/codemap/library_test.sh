#!/bin/sh
# SPDX-License-Identifier: MIT
# The example and a C++ program against the installed header, the shared and the
# static library; the shared one shows what the header declares, and no more.
set -eu
root=$1 shared=$2 static=$3 pc=$4
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
dumps=$root/tests/codemap/dumps

declared=$(sed -n 's/^[a-z].*[ *]\(tickmap_[a-z_]*\)(.*/\1/p; s/^\(tickmap_[a-z_]*\)(.*/\1/p' \
	"$root"/include/tickmap/clock.h "$root"/include/tickmap/codemap.h \
	"$root"/include/tickmap/timeline.h | sort -u)
shown=$(nm -D --defined-only "$shared" | awk '$2 != "A" { print $3 }' | sort)
[ "$declared" = "$shown" ] || {
	printf 'declared:\n%s\nshown:\n%s\n' "$declared" "$shown"
	exit 1
}

flags='-std=c99 -Wall -Wextra -Werror -pedantic'
# The emit library's header beside it: an agent may need both.
cc $flags -I"$root/include" -include tickmap/emit.h \
	-include tickmap/clock.h -include tickmap/timeline.h \
	"$root/examples/read_jitdump.c" "$shared" -Wl,-rpath,"${shared%/*}" \
	-o "$dir/with_shared"
cc $flags -I"$root/include" "$root/examples/read_jitdump.c" "$static" -lm \
	-o "$dir/with_static"
for program in with_shared with_static; do
	"$dir/$program" "$dumps/all_kinds.dump" >"$dir/out" 2>"$dir/err"
	[ ! -s "$dir/err" ]
	grep -qx '7f0000001000 19 first' "$dir/out"
	grep -qx '7f0000001100 19 py::f:/a b/ü.py (app/ü.js:12)' "$dir/out"
	"$dir/$program" "$dumps/fork.dump" >"$dir/out" 2>"$dir/err"
	grep -q 'JD010 at 877' "$dir/err"
	grep -q ' after_2$' "$dir/out"
	! "$dir/$program" /bin/true 2>"$dir/err" || exit 1
	grep -q JD001 "$dir/err"
done
[ -f "$pc/tickmap.pc" ]
grep -q '^Libs:.* -ltickmap' "$pc/tickmap.pc"
if command -v c++ >/dev/null; then
	echo '#include <tickmap/codemap.h>
	int main() { return tickmap_jitdump_is("x", 1); }' >"$dir/x.cc"
	c++ -Wall -Wextra -Werror -I"$root/include" "$dir/x.cc" "$shared" \
		-Wl,-rpath,"${shared%/*}" -o "$dir/x" && "$dir/x"
fi
echo "$(echo "$declared" | wc -l) functions"

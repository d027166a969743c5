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
	"$root"/include/tickmap/recording.h "$root"/include/tickmap/timeline.h |
	sort -u)
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
libs=$(PKG_CONFIG_PATH=$pc pkg-config --static --libs-only-l tickmap)
libs=$(printf '%s' "$libs" | sed 's/-ltickmap//')
cc $flags -I"$root/include" "$root/examples/read_jitdump.c" "$static" $libs \
	-o "$dir/with_static"
cc $flags -I"$root/include" "$root/examples/read_recording.c" "$static" $libs \
	-o "$dir/recording_static"
cc $flags -I"$root/include" "$root/examples/read_recording.c" "$shared" \
	-Wl,-rpath,"${shared%/*}" -o "$dir/recording_shared"
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
for program in recording_shared recording_static; do
	data=$root/tests/capture/perfdata_seeds/pipe.data
	"$dir/$program" "$data" >"$dir/out" 2>"$dir/err"
	grep -q '^7 samples, 7 lost$' "$dir/err"
	grep -q "offset 0x778: record is smaller" "$dir/err" # of the events
	grep -q '^PD001: record is smaller' "$dir/err"	     # of the samples
	grep -q '^prog;.*;\[jit+0x7f0000000000\];\[jit' "$dir/out"
	[ "$(wc -l <"$dir/out")" = 7 ]
	"$dir/$program" - <"$data" 2>/dev/null | cmp - "$dir/out"
	cat "$data" | "$dir/$program" - 2>/dev/null | cmp - "$dir/out"
	! "$dir/$program" /bin/true 2>"$dir/err" || exit 1
	grep -q 'true: .*not a perf.data file' "$dir/err"
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

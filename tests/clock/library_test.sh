#!/bin/sh
# SPDX-License-Identifier: MIT
# The example against the public headers and both libraries: a dump whose clock
# runs 14 ms ahead of the recording's.
set -eu
root=$1 shared=$2 static=$3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

python3 - "$dir/jit-1.dump" <<'END'
import struct
import sys
MS = 1000000
with open(sys.argv[1], "wb") as out:
    out.write(struct.pack("<6I2Q", 0x4A695444, 1, 40, 62, 0, 1, 0, 0))
    for i, (ms, name) in enumerate([(114, b"first"), (214, b"second")]):
        body = struct.pack("<2I4Q", 1, 1, 0x1000, 0x1000, 16, i + 1)
        body += name + b"\0" + b"\xc3" * 16
        out.write(struct.pack("<2IQ", 0, 16 + len(body), ms * MS) + body)
END
flags='-std=c99 -Wall -Wextra -Werror -pedantic'
cc $flags -I"$root/include" "$root/examples/who_was_there.c" "$shared" \
	-Wl,-rpath,"${shared%/*}" -o "$dir/with_shared"
cc $flags -I"$root/include" "$root/examples/who_was_there.c" "$static" -lm \
	-o "$dir/with_static"
ask() { # TIME EXPECTED
	for program in with_shared with_static; do
		"$dir/$program" "$dir/jit-1.dump" 99000000 101000000 0x1008 \
			"$1" 0x1008 >"$dir/out"
		grep -q '^offset: offset -1[3-5][0-9]*, error ' "$dir/out"
		grep -qx "$2" "$dir/out" || {
			cat "$dir/out"
			exit 1
		}
	done
}
ask 98000000 nobody
ask 150000000 first
ask 200000000 'second, perhaps'
ask 205000000 second
echo "4 questions, 2 libraries"

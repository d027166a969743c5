#!/bin/sh
# SPDX-License-Identifier: MIT
# Writes corpus_inline: the smallest programs that have each kind of table. Code
# begins at 0x1000, where fuzz_inline asks.
set -eu
cd "$(dirname "$0")"
mkdir -p corpus_inline
source=$(mktemp --suffix=.c)
trap 'rm -f "$source"' EXIT
cat >"$source" <<'C'
static inline __attribute__((always_inline)) int leaf(int x) { return x * x; }
static inline __attribute__((always_inline)) int mid(int x)
{ if (x & 1) x = leaf(x) ^ 3; return leaf(x + 1); }
int work(int n, int *p) { int s = 0; while (n--) s += mid(p[n]); return s; }
C
make() {
	name=$1
	shift
	"$@" -O2 -fPIC -shared -nostdlib -Wl,-Ttext=0x1000,--build-id=none,-z,noseparate-code,-z,norelro,-z,max-page-size=16 \
		-fno-asynchronous-unwind-tables -o corpus_inline/"$name" "$source"
}
make gcc2 gcc -g -gdwarf-2 -gstrict-dwarf
make gcc4 gcc -g -gdwarf-4
make gcc5 gcc -g -gdwarf-5
make gcc5_64 gcc -g -gdwarf-5 -gdwarf64
make gcc5_z gcc -g -gdwarf-5 -gz=zlib
make gcc5_lto gcc -g -gdwarf-5 -flto
make clang4 clang -g -gdwarf-4
make clang5 clang -g -gdwarf-5
# A table of abbreviations without a single attribute.
for code in 1 2 3 4 5 6 7; do
	printf "\\00$code\\021\\000\\000\\000"
done >"$source"
printf '\000' >>"$source"
objcopy --update-section .debug_abbrev="$source" corpus_inline/gcc5 \
	corpus_inline/no_attributes
chmod -x corpus_inline/*

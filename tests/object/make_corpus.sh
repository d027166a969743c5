#!/bin/sh
# SPDX-License-Identifier: MIT
# Makes the seeds of fuzz_elf again: small ELF files of several shapes.
# make_corpus.sh FOLDER
set -eu
out=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat >a.c <<'END'
int puts(const char *);
int shared(int x) { return x + puts("x"); }
static __attribute__((noinline)) int inner(int x) { return x * 3; }
int outer(int x) { return inner(x) + shared(x); }
END
cat >b.s <<'END'
	.text
	.globl first, last
	.type first, @function
	.type outer, @function
	.type middle, @function
	.size outer, 32
	.size middle, 8
first:	.fill 8
outer:	.fill 8
middle:	.fill 8
label:	.fill 24
last:	.fill 8
END
small="-Os -shared -fPIC -nostdlib -Wl,-z,noseparate-code -Wl,-z,norelro -Wl,--hash-style=sysv"
cc $small -o full.so a.c -Wl,--build-id
strip -o "$out/stripped.so" full.so
cp full.so "$out/full.so"
cc $small -fcf-protection=full -Wl,-z,ibtplt -o "$out/ibt.so" a.c
cc -c b.s
cc $small -o "$out/labels.so" b.o
objcopy --only-keep-debug full.so "$out/keep.debug"
cp "$out/stripped.so" "$out/linked.so"
objcopy --add-gnu-debuglink="$out/keep.debug" "$out/linked.so"
objcopy -S --keep-symbol=inner "$out/keep.debug" mini
xz -0 mini # a small dictionary: replays unpack it thousands of times
objcopy --add-section .gnu_debugdata=mini.xz "$out/stripped.so" "$out/packed.so"
printf 'plain data\n' >data
objcopy -I binary -O elf32-big data "$out/data-32-big"
objcopy -I binary -O elf32-little data "$out/data-32-little"
objcopy -I binary -O elf64-big data "$out/data-64-big"
cp "$out/stripped.so" "$out/no-sections.so"
# e_shoff, e_shnum and e_shstrndx
printf '\0\0\0\0\0\0\0\0' | dd of="$out/no-sections.so" bs=1 seek=40 conv=notrunc status=none
printf '\0\0\0\0' | dd of="$out/no-sections.so" bs=1 seek=60 conv=notrunc status=none

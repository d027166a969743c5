# SPDX-License-Identifier: MIT
"""What other profilers lose: perf maps."""

from form import (
    PID, START, MS, JIT, Recording, Dump, row, recorded,
    sampled, put, backed, lines, MAP_10)


@row
def map_in_memfd(f):
    backed(f, "/memfd:JITCode:QtQml (deleted)", perf_PID_map=MAP_10)


@row
def map_in_dev_zero(f):
    backed(f, "/dev/zero (deleted)", perf_PID_map=MAP_10)


@row
def map_and_dump_disagree(f):
    """The dump has times and wins; what only the map has stays."""
    d = Dump()
    for i in range(5):
        d.load(f"f{i}", START + i * MS)
    put(f, sampled(recorded()), jit_PID_dump=d,
        perf_PID_map=MAP_10.replace(b" f1\n", b" wrong\n"))


@row
def map_only(f):
    """Known from the process's pid alone, after it is gone."""
    r = Recording()
    r.comm()
    r.map("//anon")
    put(f, sampled(r), perf_PID_map=MAP_10)


def only_map(f, content, addresses):
    r = Recording()
    r.comm()
    r.map("//anon")
    for i, at in enumerate(addresses):
        r.sample(START + 500 * MS + i * MS, at)
    put(f, r, perf_PID_map=content)


@row
def map_bad_utf8(f):
    only_map(f, lines(f"{JIT:x} 40 good\n", f"{JIT + 64:x} 40 ".encode() + b"b\xff\xfed\n",
                      f"{JIT + 128:x} 40 after\n"), [JIT + 8, JIT + 72, JIT + 136])


@row
def map_numbers(f):
    only_map(f, lines(f"0x{JIT:x} 40 zero-x\n", f"0X{JIT + 64:X} 0X40 ZERO-X\n",
                      f"\t {JIT + 128:x}\t40\ttabs\n", f"0x{JIT + 192:016x} 0x0000000000000040 padded\n",
                      f"{JIT + 256:x} 40 carriage return\r\n"),
             [JIT + 8 + 64 * i for i in range(5)])


@row
def map_address_reused(f):
    only_map(f, lines(f"{JIT:x} 40 first\n", f"{JIT:x} 40 second\n", f"{JIT:x} 40 last\n"), [JIT + 8])


@row
def map_overlap(f):
    only_map(f, lines(f"{JIT:x} 100 old\n", f"{JIT + 64:x} 40 new\n"),
             [JIT + 8, JIT + 72, JIT + 200])


@row
def map_absurd_sizes(f):
    only_map(f, lines(f"{JIT + 64:x} 40 before\n", f"{JIT + 0x2000:x} 40 far\n",
                      f"{JIT:x} ffffffffffffffff whole\n",
                      f"{JIT + 0x8000:x} 7fffffffff half\n", f"{JIT + 0xB000:x} 40 after\n"),
             [JIT + 72, JIT + 0x2008, JIT + 0x8008, JIT + 0xB008])


@row
def map_two_writers(f):
    """Half a line of one in the line of the other."""
    only_map(f, lines(f"{JIT:x} 40 one\n", f"{JIT + 64:x} 4{JIT + 128:x} 40 torn\n",
                      f"{JIT + 192:x} 40 two\n"), [JIT + 8, JIT + 200])


@row
def map_half_line(f):
    only_map(f, lines(f"{JIT:x} 40 one\n", f"{JIT + 64:x} 40 hal"), [JIT + 8, JIT + 72])


@row
def map_size_zero(f):
    only_map(f, lines(f"{JIT:x} 0 none\n", f"{JIT:x} 40 some\n", f"{JIT + 8:x} 0 none\n"), [JIT + 8])


@row
def map_short_names(f):
    only_map(f, lines(f"{JIT:x} 40 a\n", f"{JIT + 64:x} 40 bc\n"), [JIT + 8, JIT + 72])


@row
def map_forked(f):
    """The child's map lacks what the parent compiled before."""
    r = Recording()
    r.comm()
    r.map("//anon")
    r.fork(PID + 1, START + 100 * MS)
    r.sample(START + 500 * MS, JIT + 8, PID + 1)
    r.sample(START + 501 * MS, JIT + 72, PID + 1)
    put(f, r, perf_PID_map=lines(f"{JIT:x} 40 of the parent\n"),
        **{f"perf_{PID + 1}_map": lines(f"{JIT + 64:x} 40 of the child\n")})

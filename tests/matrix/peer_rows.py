# SPDX-License-Identifier: MIT
"""What other profilers lose: dumps, and the memory that code lies in."""

from form import (
    PID, START, MS, JIT, Recording, Dump, row, recorded,
    ten, sampled, put, simple, backed, MAP_10)


@row
def late_record(f):
    """A second writer thread: one record comes late."""
    d = Dump()
    for i in range(10):
        d.load(f"f{i}", START + (400 if i == 2 else i) * MS)
    simple(f, d)


@row
def partial_overlap(f):
    d = Dump()
    d.load("old", size=256, avma=JIT)
    d.load("new", size=64, avma=JIT + 64, when=START + 10 * MS)
    r = recorded()
    for i, at in enumerate((8, 72, 200)):
        r.sample(START + 500 * MS + i, JIT + at)
    r.sample(START + 5 * MS, JIT + 72)
    simple(f, d, r)


@row
def move_of_stale_address(f):
    """The old address was taken over meanwhile: the index tells."""
    d = Dump()
    d.load("moving", avma=JIT)
    d.load("usurper", avma=JIT, when=START + 10 * MS)
    d.move(JIT, JIT + 0x3000, index=0, when=START + 20 * MS)
    r = recorded()
    r.sample(START + 500 * MS, JIT + 0x3008)
    r.sample(START + 501 * MS, JIT + 8)
    simple(f, d, r)


@row
def fork_inherits(f):
    d = ten()
    d.load("later", START + 200 * MS)
    r = recorded()
    r.fork(PID + 1, START + 100 * MS)
    for i in range(11):
        r.sample(START + 500 * MS + i, JIT + 0x1000 * i + 8, PID + 1)
    simple(f, d, r)


@row
def in_memfd(f):
    backed(f, "/memfd:doublemapper (deleted)")


@row
def in_dev_zero(f):
    backed(f, "/dev/zero (deleted)")


@row
def in_sysv(f):
    backed(f, "/SYSV00000000 (deleted)")


@row
def in_hugepage(f):
    backed(f, "/anon_hugepage (deleted)")


@row
def in_named_anon(f):
    backed(f, "[anon:v8]")


@row
def in_nameless(f):
    backed(f, "")


@row
def jsc_file_name(f):
    r = Recording()
    r.comm()
    r.map("//anon")
    r.marker(f"jit-4194009-{PID}.dump")
    put(f, sampled(r), **{f"jit_4194009-{PID}_dump": ten()})


@row
def more_than_4_gib(f):
    d = Dump()
    for i in range(6):
        body = d.pack("IIQQQQ", PID, PID, JIT + (i << 30), JIT + (i << 30), 1 << 30, i)
        d.record(0, START, body + f"f{i}".encode() + b"\0")
    r = Recording()
    r.comm()
    r.map("//anon", size=6 << 30)
    r.marker()
    for i in range(6):
        r.sample(START + 500 * MS + i, JIT + (i << 30) + 12345)
    simple(f, d, r)


@row
def name_not_utf8(f):
    d = Dump()
    d.load(b"latin\xfc")
    simple(f, d, sampled(recorded(), 1))


@row
def size_zero_of_debug_and_unknown(f):
    d = Dump()
    for i in range(10):
        if i in (3, 6):
            d.record(2 if i == 3 else 77, START, b"", 0)
        d.load(f"f{i}", START + i * MS)
    simple(f, d)


@row
def bad_record(f):
    d = ten()
    b = bytearray(d.bytes)
    b[d.places[4]:d.places[4] + 90] = bytes([0xAB]) * 90
    simple(f, bytes(b))


@row
def line_behind_the_sample(f):
    """Entries that begin behind the address, or lie at the code's end."""
    d = Dump()
    for i in range(10):
        base = JIT + 0x1000 * i
        d.debug(base, [(base + 64, 0, b"")] if i % 2 else [(base + 60, 7, b"late.c")])
        d.load(f"f{i}", START + i * MS)
    simple(f, d)


@row
def elf_in_place_of_a_dump(f):
    """A file of the dump's name that is something else; the map has the names."""
    put(f, sampled(recorded()), jit_PID_dump=b"\x7fELF\2\1\1" + bytes(200), perf_PID_map=MAP_10)


@row
def remapped_over(f):
    """Anonymous memory mapped over published code does not take its name."""
    r = recorded()
    r.map("//anon", JIT, 0x1000, START + 100 * MS)
    r.map("//anon", JIT, 0x200000, START + 101 * MS)
    simple(f, ten(), sampled(r))


@row
def file_mapped_over(f):
    """A file mapping does."""
    r = recorded()
    r.map("/gone/lib.so", JIT, 0x1000, START + 100 * MS)
    simple(f, ten(), sampled(r))


@row
def nothing_published(f):
    r = Recording()
    r.comm()
    r.map("//anon")
    put(f, sampled(r, 2))


@row
def two_libraries_at_one_address(f):
    r = Recording()
    r.comm()
    r.map("/gone/liba.so", 0x7D0000000000, 0x1000, START)
    r.map("/gone/libb.so", 0x7D0000000000, 0x1000, START + 100 * MS)
    r.sample(START + 50 * MS, 0x7D0000000010)
    r.sample(START + 150 * MS, 0x7D0000000010)
    put(f, r)

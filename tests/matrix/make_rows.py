#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes rows/NAME/{perf.data,jit-PID.dump,perf-PID.map,...}: one folder for
each way in which recordings and code maps are known to go wrong. ROWS.tsv says
what must come out; it is written by hand, not by this program. Run it in this
folder; its output is committed."""

import shutil
import struct
from pathlib import Path

PID = 4194001  # above what a machine gives by default
START = 100_000_000_000
MS = 1_000_000
JIT = 0x7F0000000000
IP, TID, TIME, ADDR, ID = 1, 2, 4, 8, 64


class Recording:
    """A perf.data file of one or two events, byte by byte."""

    def __init__(self, clockid=1, timed=True, order="<", size=128, events=((1, 0),)):
        self.order, self.timed, self.size = order, timed, size
        self.kind = IP | TID | (TIME if timed else 0)
        if len(events) > 1:
            self.kind |= 1 << 16
        self.events = events
        self.clockid = clockid
        self.data = b""

    def pack(self, form, *values):
        return struct.pack(self.order + form, *values)

    def attr(self, event):
        flags = 1 << 8 | 1 << 9 | 1 << 10 | 1 << 13 | 1 << 18 | 1 << 23 | 1 << 24
        if self.clockid is not None:
            flags |= 1 << 25
        kind, config = event
        # The second of two events has another layout.
        sample = self.kind | (ADDR if event != self.events[0] else 0)
        body = self.pack("IIQQQQ", kind, self.size, config, 999, sample, 0)
        body += self.pack("Q", flags) if self.order == "<" else self.pack(
            "Q", int(f"{flags:064b}"[::-1], 2))
        body += bytes(92 - len(body)) + self.pack("i", self.clockid or 0)
        return body + bytes(self.size - len(body))

    def record(self, kind, misc, body):
        self.data += self.pack("IHH", kind, misc, 8 + len(body)) + body

    def side(self, kind, misc, body, when, pid=PID):
        """With the trailer that says whose and when."""
        body += self.pack("II", pid, pid)
        if self.timed:
            body += self.pack("Q", when)
        if len(self.events) > 1:
            body += self.pack("Q", 1)
        self.record(kind, misc, body)

    def text(self, text):
        text = text.encode() + b"\0"
        return text + bytes(-len(text) % 8)

    def comm(self, name="prog", pid=PID, when=0, execs=False):
        self.side(3, 1 << 13 if execs else 0,
                  self.pack("II", pid, pid) + self.text(name), when, pid)

    def map(self, path, start=JIT, size=0x100000, when=0, pid=PID, offset=0, build_id=False):
        body = self.pack("IIQQQ", pid, pid, start, size, offset)
        body += (self.pack("B3x", 20) + bytes(range(20)) if build_id
                 else self.pack("IIQQ", 8, 1, 77, 0))
        body += self.pack("II", 5, 2) + self.text(path)
        self.side(10, 2 | (1 << 14 if build_id else 0), body, when, pid)

    def marker(self, name=None, when=START, pid=PID, folder="/gone"):
        self.map(f"{folder}/{name or f'jit-{pid}.dump'}", 0x7E0000000000, 0x1000, when, pid)

    def fork(self, child, when, parent=PID):
        body = self.pack("IIIIQ", child, parent, child, parent, when)
        self.side(7, 0, body, when, child)

    def sample(self, when, address, pid=PID, event=0):
        body = b""
        if len(self.events) > 1:
            body += self.pack("Q", event + 1)
        body += self.pack("QII", address, pid, pid)
        if self.timed:
            body += self.pack("Q", when)
        if event:
            body += self.pack("Q", 0)
        self.record(9, 2, body)

    def bytes(self):
        attrs, ids = b"", b""
        first = 104 + (self.size + 16) * len(self.events)
        for i, event in enumerate(self.events):
            attrs += self.attr(event) + self.pack("QQ", first + 8 * i, 8)
            ids += self.pack("Q", i + 1)
        head = b"PERFILE2" if self.order == "<" else b"2ELIFREP"
        head += self.pack("QQQQQQ", 104, self.size + 16, 104, len(attrs),
                          first + len(ids), len(self.data))
        return head + bytes(104 - len(head)) + attrs + ids + self.data

    def pipe(self):
        attr = self.attr(self.events[0]) + self.pack("Q", 1)
        head = b"PERFILE2" + self.pack("Q", 16)
        return head + self.pack("IHH", 64, 0, 8 + len(attr)) + attr + self.data


class Dump:
    def __init__(self, order="<", pid=PID, version=1, size=40, machine=62, flags=0, when=START):
        self.order, self.pid, self.index = order, pid, 0
        self.bytes = self.pack("IIIIIIQQ", 0x4A695444, version, size, machine, 0, pid, when, flags)
        self.places = []

    def pack(self, form, *values):
        return struct.pack(self.order + form, *values)

    def record(self, number, when, body, size=None):
        self.places.append(len(self.bytes))
        total = 16 + len(body) if size is None else size
        self.bytes += self.pack("IIQ", number, total, when) + body

    def load(self, name, when=START, avma=None, size=64, index=None, pid=None, nul=b"\0", stated=None):
        avma = JIT + 0x1000 * self.index if avma is None else avma
        pid = self.pid if pid is None else pid
        name = name.encode() if isinstance(name, str) else name
        body = self.pack("IIQQQQ", pid, pid, avma, avma, size if stated is None else stated,
                         self.index if index is None else index)
        self.record(0, when, body + name + nul + b"\x90" * (size - 1) + b"\xc3")
        self.index += 1
        return avma

    def move(self, old, new, size=64, index=0, when=START):
        self.record(1, when, self.pack("IIQQQQQ", self.pid, self.pid, new, old, new, size, index))

    def debug(self, avma, entries, when=START):
        body = self.pack("QQ", avma, len(entries))
        for at, line, name in entries:
            body += self.pack("QII", at, line, 0) + name + b"\0"
        self.record(2, when, body)


ROWS = {}


def row(function):
    ROWS[function.__name__] = function
    return function


def recorded(**options):
    r = Recording(**options)
    r.comm()
    r.map("//anon")
    r.marker()
    return r


def ten(d=None, **options):
    """f0 ... f9, one after the other, and a sample in each."""
    d = d or Dump(**options)
    for i in range(10):
        d.load(f"f{i}", START + i * MS)
    return d


def sampled(r, count=10, when=START + 500 * MS):
    for i in range(count):
        r.sample(when + i * MS, JIT + 0x1000 * i + 8)
    return r


def put(folder, recording, **files):
    folder.mkdir(parents=True)
    (folder / "perf.data").write_bytes(recording if isinstance(recording, bytes)
                                       else recording.bytes())
    for name, content in files.items():
        name = name.replace("_dump", ".dump").replace("_map", ".map").replace("PID", str(PID))
        name = name.replace("_", "-", 1)
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.bytes)


def simple(folder, dump, recording=None):
    put(folder, recording or sampled(recorded()), jit_PID_dump=dump)


# ---- perf's failure matrix ----

@row
def good(f):
    simple(f, ten())


@row
def half_truncated(f):
    d = ten()
    simple(f, d.bytes[: d.places[5] + 30])


@row
def size_zero_after_four(f):
    d = Dump()
    for i in range(10):
        if i == 4:
            d.record(0, START, b"", 0)
        d.load(f"f{i}", START + i * MS)
    simple(f, d)


@row
def header_48(f):
    d = Dump(size=48)
    d.bytes += bytes(8)
    simple(f, ten(d))


@row
def header_48_lies(f):
    simple(f, ten(size=48))


@row
def header_128(f):
    d = Dump(size=128)
    d.bytes += bytes(88)
    simple(f, ten(d))


@row
def header_8(f):
    simple(f, ten(size=8, version=2))


@row
def header_0(f):
    simple(f, ten(size=0))


@row
def header_2_31(f):
    simple(f, ten(size=1 << 31))


@row
def version_2(f):
    simple(f, ten(version=2))


@row
def reserved_flag(f):
    simple(f, ten(flags=2))


@row
def unknown_record(f):
    d = Dump()
    for i in range(10):
        d.record(5 + i * 7, START, b"of a later format")
        d.load(f"f{i}", START + i * MS)
    simple(f, d)


@row
def code_size_mib(f):
    d = Dump()
    for i in range(10):
        d.load(f"f{i}", START + i * MS, stated=1 << 20 if i == 3 else None)
    simple(f, d)


@row
def code_size_ffffffff(f):
    d = Dump()
    for i in range(10):
        d.load(f"f{i}", START + i * MS, stated=0xFFFFFFFF if i == 3 else None)
    simple(f, d)


@row
def code_size_2_64(f):
    d = Dump()
    for i in range(10):
        d.load(f"f{i}", START + i * MS, stated=(1 << 64) - 1 if i == 3 else None)
    simple(f, d)


@row
def name_without_nul(f):
    d = Dump()
    for i in range(10):
        d.load(f"f{i}", START + i * MS, nul=b"" if i == 3 else b"\0")
    simple(f, d)


@row
def all_index_0(f):
    d = Dump()
    for i in range(10):
        d.load(f"f{i}", START + i * MS, index=0)
    simple(f, d)


@row
def times_later(f):
    """Samples before the code was published, as the dump says, have no name."""
    d = Dump()
    for i in range(10):
        d.load(f"f{i}", START + i * 100 * MS)
    simple(f, d)


@row
def byte_swapped(f):
    simple(f, ten(order=">", machine=22))


@row
def recording_byte_swapped(f):
    r = Recording(order=">")
    r.comm()
    r.map("//anon")
    r.marker()
    simple(f, ten(order=">", machine=22), sampled(r))


@row
def empty_file(f):
    simple(f, b"")


@row
def bad_magic(f):
    simple(f, b"\x7fELF" + ten().bytes[4:])


def two_processes():
    r = sampled(recorded())
    r.comm("other", PID + 1)
    r.map("//anon", pid=PID + 1)
    r.marker(pid=PID + 1)
    r.sample(START + 600 * MS, JIT + 8, PID + 1)
    return r


@row
def missing_file(f):
    put(f, two_processes(), jit_PID_dump=ten())


@row
def two_processes_both(f):
    d = Dump(pid=PID + 1)
    d.load("of the other")
    put(f, two_processes(), jit_PID_dump=ten(), **{f"jit_{PID + 1}_dump": d})


@row
def moved(f):
    d = ten()
    d.move(JIT, JIT + 0x50000, index=0, when=START + 100 * MS)
    r = sampled(recorded())
    r.sample(START + 50 * MS, JIT + 8)
    r.sample(START + 700 * MS, JIT + 0x50008)
    simple(f, d, r)


@row
def container(f):
    """The dump says the pid of an inner namespace."""
    r = Recording()
    r.comm()
    r.map("//anon")
    r.marker("jit-7.dump")
    put(f, sampled(r), jit_7_dump=ten(pid=7))


@row
def attached(f):
    """The code is older than the recording."""
    simple(f, ten(when=START - 9000 * MS), sampled(recorded(), when=START + 9000 * MS))


@row
def dump_unlinked(f):
    r = Recording()
    r.comm()
    r.map("//anon")
    r.marker(f"jit-{PID}.dump (deleted)")
    put(f, sampled(r), jit_PID_dump=ten())


@row
def no_timestamp(f):
    r = Recording(timed=False)
    r.comm()
    r.map("//anon")
    r.marker()
    simple(f, ten(), sampled(r))


@row
def pipe(f):
    put(f, sampled(recorded()).pipe(), jit_PID_dump=ten())


@row
def two_events(f):
    r = recorded(events=((1, 0), (1, 1)))
    for i in range(10):
        r.sample(START + 500 * MS + i * MS, JIT + 0x1000 * i + 8, event=i % 2)
    simple(f, ten(), r)


@row
def hybrid_cpu(f):
    """cpu_core and cpu_atom cycles: one profile."""
    r = recorded(events=((0, 4 << 32), (0, 10 << 32)))
    for i in range(10):
        r.sample(START + 500 * MS + i * MS, JIT + 0x1000 * i + 8, event=i % 2)
    simple(f, ten(), r)


@row
def buildid_mmap(f):
    r = Recording()
    r.comm()
    r.map("//anon", build_id=True)
    r.marker()
    r.map("/usr/bin/prog", 0x400000, 0x1000, build_id=True)
    simple(f, ten(), sampled(r))


@row
def attr_144(f):
    """As a newer perf writes it."""
    simple(f, ten(), sampled(recorded(size=144)))


@row
def attr_64(f):
    r = recorded(size=96)
    simple(f, ten(), sampled(r))


@row
def long_names(f):
    d = Dump()
    d.load("n" * 400)
    simple(f, d, sampled(recorded(), 1))


# ---- what producers do ----

@row
def v8_names_and_bias(f):
    d = Dump()
    for i in range(10):
        base = JIT + 0x1000 * i
        name = b"\xa1@\1\0\0\0\0\0\xde\x78" if i == 3 else b"/a/app.js"
        d.debug(base, [(base + 0x40, 10 + i, name), (base + 0x50, 11 + i, name)])
        d.load(f"f{i}", START + i * MS)
    simple(f, d)


@row
def cpython_fork(f):
    """34 bytes of a record in the middle, then good ones and two once more."""
    d = Dump(machine=0)
    for i in range(4):
        d.load(f"f{i}", START + i * MS)
    again = d.bytes[d.places[2]:]
    d.bytes += d.bytes[-34:] + again
    for i in range(4, 10):
        d.load(f"f{i}", START + i * MS)
    simple(f, d)


@row
def dotnet_half(f):
    d = Dump()
    d.load("f0")
    d.load("stub", size=65536)
    r = sampled(recorded(), 1)
    r.sample(START + 600 * MS, JIT + 0x1000 + 40000)
    simple(f, d.bytes[: d.places[1] + 32854], r)


@row
def mono_times_0(f):
    d = Dump(version=2, size=8)
    for i in range(10):
        d.load(f"f{i}", 0)
    simple(f, d)


@row
def same_code_other_name(f):
    """Equal bytes of code: other tools give both the first name."""
    d = Dump()
    for i in range(10):
        d.load(f"f{i}", START + i * MS, size=16)
    simple(f, d)


# ---- what other profilers lose ----

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


def backed(f, path, **files):
    r = Recording()
    r.comm()
    r.marker()
    r.map(path, when=START + 1)
    put(f, sampled(r), **(files or {"jit_PID_dump": ten()}))


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


def lines(*entries):
    return b"".join(e if isinstance(e, bytes) else e.encode() for e in entries)


MAP_10 = lines(*(f"{JIT + 0x1000 * i:x} 40 f{i}\n" for i in range(10)))


@row
def map_in_memfd(f):
    backed(f, "/memfd:JITCode:QtQml (deleted)", perf_PID_map=MAP_10)


@row
def map_in_dev_zero(f):
    backed(f, "/dev/zero (deleted)", perf_PID_map=MAP_10)


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


# ---- clocks ----

@row
def arch_clock(f):
    """Ticks of the CPU's counter, and no conversion in the recording."""
    d = Dump(flags=1, when=77)
    for i in range(10):
        d.load(f"f{i}", 3_000_000_000_000 + i)
    simple(f, d)


@row
def arch_flag_but_ns(f):
    """libxsmm: the flag is set, the values are nanoseconds all the same."""
    simple(f, ten(flags=1))


def main():
    shutil.rmtree("rows", ignore_errors=True)
    for name, function in ROWS.items():
        function(Path("rows") / name)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: MIT
"""A way in which perf's injection fails, each."""

from form import PID, START, MS, JIT, Recording, Dump, row, recorded, ten, sampled, put, simple


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
def empty_functions(f):
    d = Dump()
    for i in range(10):
        d.load(f"f{i}", START + i * MS)
        d.record(0, START + i * MS, d.pack(
            "IIQQQQ", d.pid, d.pid, JIT + 0x1000 * i + 0x80, JIT + 0x1000 * i + 0x80, 0, 100 + i)
            + b"label\0")
    simple(f, d)


@row
def wrong_size_of_one(f):
    """Its record says 0, all else is right."""
    b = bytearray(ten().bytes)
    at = ten().places[4]
    b[at + 4:at + 8] = bytes(4)
    simple(f, bytes(b))


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

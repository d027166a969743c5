# SPDX-License-Identifier: MIT
"""What runtimes write."""

from form import START, MS, JIT, Dump, row, recorded, sampled, simple


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

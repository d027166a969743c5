# SPDX-License-Identifier: MIT
"""Recordings and dumps of the matrix, byte by byte; see make_rows.py."""

import struct

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


def backed(f, path, **files):
    r = Recording()
    r.comm()
    r.marker()
    r.map(path, when=START + 1)
    put(f, sampled(r), **(files or {"jit_PID_dump": ten()}))


def lines(*entries):
    return b"".join(e if isinstance(e, bytes) else e.encode() for e in entries)


MAP_10 = lines(*(f"{JIT + 0x1000 * i:x} 40 f{i}\n" for i in range(10)))

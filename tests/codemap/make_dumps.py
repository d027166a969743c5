#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes dumps/*.dump and, beside each, what a reader must see in it; copies of
some are repair_seeds/.

The expectations come from what was written, never from our reader. Run it in
this folder; its output is committed.
"""

import struct
from pathlib import Path

MAGIC = 0x4A695444
X86_64, I386, S390 = 62, 3, 22
PID = 4242

# Of these every byte is changed in turn before they are repaired.
SEEDS = ["all_kinds", "fork", "v8_lines", "unwinding_orders", "indexes", "cut",
         "empty_functions"]


class Dump:
    def __init__(self, order="<", machine=X86_64, version=1, size=40, pad=0):
        self.order = order
        self.machine = machine
        self.when = 10_000_000_000
        self.bytes = self.pack(
            "IIIIIIQQ", MAGIC, version, size, machine, pad, PID, self.when, 0
        )
        self.bytes += bytes(max(0, size - 40))
        self.events = []
        self.findings = []
        self.index = 0
        self.file, self.line, self.eh_frame = "", 0, 0

    def pack(self, form, *values):
        return struct.pack(self.order + form, *values)

    @property
    def at(self):
        return len(self.bytes)

    def find(self, name, value, at=None):
        self.findings.append((name, self.at if at is None else at, value))

    def record(self, number, body, pad=0):
        self.when += 1000
        size = 16 + len(body) + pad
        whole = self.pack("IIQ", number, size, self.when) + body + bytes(pad)
        self.bytes += whole
        return whole

    def event(self, kind, avma, size, index, name="", code=0, old=0, pid=PID, tid=7):
        self.events.append(
            f"{kind} {self.when} {pid} {tid} {avma:x} {size:x} {old:x} {index} "
            f"[{name}] [{self.file}] {self.line} {self.eh_frame} {code}"
        )

    def load(self, name, avma=None, code=None, index=None, tid="I", stated=None,
             nul=b"\0", seen=None, seen_code=None, gap=b"", encoding="utf-8"):
        index = self.index if index is None else index
        self.index += 1
        avma = 0x7F0000001000 + index * 0x100 if avma is None else avma
        code = bytes([0x90] * 24 + [0xC3]) if code is None else code
        size = len(code) if stated is None else stated
        mask = (1 << 64) - 1
        body = self.pack("I" + tid + "QQQQ", PID, 7, 0 if tid == "I" else avma,
                         avma & mask, size, index)
        whole = self.record(0, body + name.encode(encoding) + nul + gap + code)
        if self.machine == I386:
            avma &= 0xFFFFFFFF
        self.event("LOAD", avma, size if seen is None else seen, index, name,
                   len(code) if seen_code is None else seen_code)
        self.file, self.line, self.eh_frame = "", 0, 0
        return whole

    def load_raw(self, name):
        """A name of any bytes."""
        self.load(name.decode("latin-1"), encoding="latin-1")
        self.events[-1] = self.events[-1].replace(
            name.decode("latin-1"), name.decode(errors="surrogateescape"))

    def unwinding_raw(self, data, header, mapped):
        self.record(4, self.pack("QQQ", len(data), header, mapped) + data)

    def move(self, old, new, size, index, seen=None):
        body = self.pack("IIQQQQQ", PID, 7, 0, old, new, size, index)
        self.record(1, body)
        file, line, self.file, self.line = self.file, self.line, "", 0
        self.event("MOVE", new, size if seen is None else seen, index, old=old)
        self.file, self.line = file, line

    def debug(self, avma, entries, file=None, line=None, pad=0):
        body = self.pack("QQ", avma, len(entries))
        for address, number, column, name in entries:
            body += self.pack("QII", address, number, column) + name + b"\0"
        whole = self.record(2, body, pad)
        self.file = entries[0][3].decode() if file is None else file
        self.line = entries[0][1] if line is None else line
        return whole

    def unwinding(self, frame=56, header=20, mapped=80, pad=4):
        body = self.pack("QQQ", frame + header, header, mapped)
        body += bytes([0xEE] * frame + [0x1B] * header)
        whole = self.record(4, body, pad)
        self.eh_frame = frame
        return whole

    def close(self):
        self.record(3, b"")
        self.event("CLOSE", 0, 0, 0, pid=0, tid=0)

    def write(self, name):
        Path("dumps", name + ".dump").write_bytes(self.bytes)
        if name in SEEDS:
            Path("repair_seeds", name + ".dump").write_bytes(self.bytes)
        text = "".join(e + "\n" for e in self.events)
        text += "".join(f"{i} @{at} {value}\n" for i, at, value in self.findings)
        Path("dumps", name + ".expected").write_text(text, errors="surrogateescape")


def all_kinds(order, machine):
    d = Dump(order, machine)
    d.load("first")
    d.debug(0x1100, [(0x1100, 12, 3, b"app/\xc3\xbc.js"), (0x1108, 13, 1, b"\xff")],
            pad=3)
    d.unwinding()
    d.load("py::f:/a b/ü.py")
    d.load("x" * 700)
    d.move(0x7F0000001000, 0x7F0000009000, 25, 0)
    d.debug(0x1300, [(0x1300, 0, 0, b""), (0x1304, 44, 0, b"later.c")],
            file="later.c", line=44)
    d.load("")
    d.unwinding(frame=0)
    d.load("b")
    d.close()
    return d


def fork():
    """CPython: the child flushes its copy of the buffer into the file."""
    d = Dump(machine=0, pad=0xDEAD0001)
    d.find("JD005", 0, 12)
    d.find("JD006", 0xDEAD0001, 16)
    for i in range(3):
        d.unwinding()
        d.load(f"before_{i}")
    copies = [d.unwinding(), d.load("twice")]
    again = d.events[-1]
    d.find("JD010", 34)
    d.bytes += copies[1][-34:]
    first = d.at
    d.bytes += copies[0]
    at = d.at
    d.bytes += copies[1]
    d.events.append(again)
    d.find("JD028", 3, at)
    for i in range(3):
        d.unwinding()
        d.load(f"after_{i}")
    d.find("JD030", 1000, first)
    return d


def main():
    all_kinds("<", X86_64).write("all_kinds")
    all_kinds(">", S390).write("all_kinds_swapped")
    fork().write("fork")

    d = Dump(version=2, size=8)
    d.find("JD003", 2, 4)
    d.find("JD004", 8, 8)
    d.load("hot_alpha")
    d.load("hot_alpha")
    d.write("mono_header")

    d = Dump(size=128)
    d.find("JD004", 128, 8)
    d.load("behind_a_large_header")
    d.write("large_header")

    # A header that lies about its size: the records begin at 40.
    d = Dump()
    d.bytes = d.bytes[:8] + struct.pack("<I", 100) + d.bytes[12:]
    d.find("JD004", 100, 8)
    d.find("JD011", 40, 0)
    d.load("one")
    d.load("two")
    d.write("lying_header")

    # total_size 0
    d = Dump()
    d.load("one")
    d.find("JD010", 16)
    d.bytes += struct.pack("<IIQ", 0, 0, d.when)
    d.load("two")
    d.write("size_zero")

    # Functions without code: alone, at the beginning of another one, in one.
    d = Dump()
    d.load("one")
    for name, avma in ("alone", 0x7F0000008000), ("label", 0x7F0000001000), (
        "inside", 0x7F0000001008
    ):
        d.find("JD025", 0)
        d.load(name, avma=avma, code=b"")
    d.load("two")
    d.move(0x7F0000008000, 0x7F0000009000, 0, 1)
    d.write("empty_functions")

    # LOADs that are whole but for the size they say: none, some, too many.
    d = Dump()
    d.load("one")
    for size in 0, 1, 57, 0x8000, 0xFFFFFFFF:
        d.find("JD015", size)
        at = d.at
        d.load(f"says_{size:x}")
        d.bytes = d.bytes[:at + 4] + struct.pack("<I", size) + d.bytes[at + 8:]
        if size != 0xFFFFFFFF:
            d.load(f"behind_{size:x}")
    d.write("wrong_sizes")

    # 200 MB announced, 70 bytes there
    d = Dump()
    d.load("one")
    d.find("JD010", 70)
    d.bytes += struct.pack("<IIQ", 0x1234, 200 << 20, 77) + bytes([0xAB] * 54)
    d.load("two")
    d.load("three")
    d.write("garbage_size")

    # Bytes were lost in the middle: the next record begins inside this one,
    # which ends inside another one or behind the end.
    for name, lost, behind, code in ("lost_bytes", 300, 9, 400), (
        "lost_bytes_at_the_end", 300, 2, 0
    ):
        d = Dump()
        d.load("one")
        at = d.at
        d.load("lost_its_end", code=bytes([0x90] * 400), seen_code=code)
        d.bytes = d.bytes[:-lost]
        d.find("JD011", d.at - at, at)
        for i in range(behind):
            d.load(f"behind_{i}")
        d.write(name)

    for tid, fixed in ("Q", 60), ("IQ", 64):
        d = Dump()
        d.find("JD020", fixed)
        for i in range(3):
            if tid == "Q":
                d.load(f"mac_{i}", tid="Q")
            else:
                mac = Mac64()
                mac.into(d, f"mac_{i}")
        d.write(f"tid64_{fixed}")

    # The first one is damaged: how the others are laid out is told by them.
    d = Dump()
    at = d.at
    d.find("JD021", 0xFFFF000000000019)
    d.load("first", tid="Q", stated=0xFFFF000000000019, seen=25)
    d.find("JD020", 60)
    d.load("second", tid="Q")
    d.load("third", tid="Q")
    d.write("tid64_damaged")

    # code_size says 1 MiB, the record holds 25 bytes
    d = Dump()
    d.load("one")
    d.find("JD021", 1 << 20)
    d.load("oversize", stated=1 << 20, seen=25)
    d.load("two")
    d.write("oversize")

    d = Dump()
    d.find("JD024", 64)
    d.load("kept_its_bytes", code=b"", stated=64)
    d.find("JD025", 0)
    d.load("nothing", code=b"")
    d.load("two")
    d.write("no_bytes")

    d = Dump()
    d.load("one")
    d.find("JD022", 12)
    d.load("without_a_nul"[:12], nul=b"")
    d.find("JD023", 3)
    d.load("gap", gap=b"\1\2\0\3")
    d.load("two")
    d.write("names")

    # V8: freed memory as the name, NULs in it, the walk goes off
    d = Dump(pad=0xDEADBEEF)
    d.find("JD006", 0xDEADBEEF, 16)
    avma = 0x7F0000001000
    d.debug(avma, [(avma + 0x40, 5, 1, b"a.js"), (avma + 25 + 0x38, 6, 1, b"\xff")])
    d.find("JD041", 64, 40)
    d.load("biased")
    d.find("JD040", 2)
    d.debug(0x1100, [(avma + 0x140, 304, 33, b"\xa1@\1\0\0\0\0\0\xde\x78"),
                     (avma + 0x148, 305, 1, b"\xa1@\1\0\0\0\0\0\xde\x78")], file="")
    d.load("garbage_names")
    biased = [f for f in d.findings if f[0] == "JD041"]
    d.findings = [f for f in d.findings if f[0] != "JD041"] + biased
    d.write("v8_lines")

    d = Dump(machine=I386)
    d.find("JD026", 0xFFFFFFFFF5F7C56C)
    d.load("high", avma=0xFFFFFFFFF5F7C56C)
    d.load("low", avma=0x1000)
    d.write("sign_extended")

    d = Dump()
    d.load("one")
    d.find("JD013", 7)
    d.record(7, b"of a later format")
    d.load("two")
    d.write("unknown_record")

    d = Dump()
    d.load("one")
    d.find("JD042", 4)
    d.unwinding()
    d.unwinding()
    at = d.at
    d.load("cut", code=bytes(200), seen_code=0)
    d.bytes = d.bytes[:-150]
    d.find("JD012", d.at - at, at)
    d.write("cut")

    d = Dump()
    d.load("one")
    d.find("JD043", 16 + 24 + 30)
    d.record(4, d.pack("QQQ", 1000, 20, 0) + bytes(30))
    d.load("two")
    d.load("again", index=1, avma=0x9000)
    d.find("JD027", 1, d.at - len("again") - 1 - 25 - 56)
    d.write("bad_unwinding")

    for more in (odd_headers, times, closed, sizes, size_zero_of_others, unknown,
                 odd_names, indexes, lines, unwinding, dotnet, empty):
        more()

    d = Dump()
    d.load("one")
    d.when -= 5000
    d.find("JD030", 4000)
    d.load("earlier")
    d.load("two")
    d.write("times_go_back")


def odd_headers():
    """Sizes, flags, times and words that say nothing about the records."""
    for size in 0, 8, 39, 41, 0x80000000, 0xFFFFFFFF:
        d = Dump()
        d.bytes = d.bytes[:8] + struct.pack("<I", size) + d.bytes[12:]
        d.find("JD004", size, 8)
        if size == 41:
            d.find("JD011", 40, 0)
        d.load("one")
        d.load("two")
        d.write(f"header_{size:x}")

    # V8, CPython: wall clock in microseconds; JavaScriptCore: later than the
    # first records.
    d = Dump(pad=0xDEADBEEF)
    d.bytes = d.bytes[:24] + struct.pack("<QQ", 1_764_000_000_000_000, 6) + d.bytes[40:]
    d.find("JD006", 0xDEADBEEF, 16)
    d.find("JD007", 6, 32)
    d.find("JD008", 1_764_000_000_000_000, 24)
    d.load("one")
    d.write("header_words")

    d = Dump()
    d.bytes = d.bytes[:24] + struct.pack("<QQ", d.when + 5_000_000, 1) + d.bytes[40:]
    d.find("JD009", 1, 32)
    d.load("one")
    d.write("arch_clock")


def times():
    """Equal, zero, late ones of a second thread; the order of the file stays."""
    d = Dump()
    for name in "equal_a", "equal_b":
        d.when = 10_000_000_000
        d.load(name, avma=0x7F0000001000)
    d.when = -1000
    d.find("JD031", 0)
    first = d.at
    d.load("zero")
    d.when = -1000
    d.load("zero_again")
    d.when = 10_000_000_000
    d.load("last")
    d.find("JD030", 10_000_001_000, first)
    d.write("times_equal_and_zero")


def closed():
    d = Dump()
    d.load("before")
    d.close()
    d.find("JD014", 0)
    d.load("behind")
    d.close()
    d.load("behind_two")
    d.write("behind_close")


def sizes():
    """Code that a record cannot hold, and more of it than 4 GiB."""
    d = Dump()
    for i in range(6):
        d.find("JD024", 1 << 30)
        d.load(f"gib_{i}", avma=0x7F0000000000 + (i << 30), code=b"", stated=1 << 30)
    d.find("JD021", 0xFFFFFFFF)
    d.load("all_ones", stated=0xFFFFFFFF, seen=25)
    d.find("JD021", (1 << 64) - 1)
    d.find("JD025", (1 << 64) - 1)
    d.load("no_bytes_and_absurd", code=b"", stated=(1 << 64) - 1, seen=0)
    d.load("at_the_end", avma=(1 << 64) - 25)
    d.find("JD045", 25)
    d.load("beyond_the_end", avma=(1 << 64) - 24, seen=24, seen_code=24)
    d.find("JD045", 64)
    d.move(0x7F0000001000, (1 << 64) - 16, 64, 1, seen=16)
    d.load("last")
    d.write("sizes")


def size_zero_of_others():
    """total_size 0, or less than a prefix, in records of other kinds."""
    d = Dump()
    d.load("one")
    for number, size in (2, 0), (9, 0), (4, 15), (3, 8):
        d.find("JD010", 16)
        d.bytes += struct.pack("<IIQ", number, size, d.when)
        d.load(f"behind_{number}")
    d.write("size_zero_of_others")


def unknown():
    """Records of a later format, with ids and payloads of any kind."""
    d = Dump()
    d.load("one")
    for number in 5, 255, 4096, 65535:
        d.find("JD013", number)
        d.record(number, bytes(range(200)))
        d.load(f"behind_{number}")
    d.write("unknown_records")


def odd_names():
    d = Dump()
    d.load_raw(b"latin1_\xfc\xff")
    d.load("colour\x1b[1m\r;semicolon")
    d.load("ünïcödé_函数 with blanks:3:1")
    d.load("n" * 9000)
    d.write("odd_names")


def indexes():
    """All with index 0; and big ones that no array should have room for."""
    d = Dump()
    d.load("first", index=0)
    for name in "second", "third":
        d.find("JD027", 0)
        d.load(name, index=0, avma=0x7F0000005000 + len(name))
    d.load("big", index=(1 << 64) - 1, avma=0x7000)
    d.load("middle", index=70000, avma=0x8000)
    d.find("JD027", 70000)
    d.load("middle_again", index=70000, avma=0x9000)
    d.write("indexes")


def lines():
    """Entries that begin late or lie at the code's end: the name stays."""
    d = Dump()
    base = 0x7F0000001000
    d.debug(base, [(base + 25, 0, 0, b"")], file="", line=0)
    d.load("qemu: only an entry at the end, without a line")
    base += 0x100
    d.debug(base, [(base - 50, 7, 0, b"erl.erl"), (base + 25, 0, 0, b"")])
    d.load("erlang: begins before the code")
    base += 0x100
    d.debug(base, [(base + 9, 70, 0, b"late.c")])
    d.load("begins late")
    base += 0x100
    d.debug(base, [(base, 1, 0, b"/m\xfcll/latin1.c")],
            file="/m\udcfcll/latin1.c")
    d.load("a file name of an older encoding")
    base += 0x100
    d.debug(base, [], file="", line=0)
    d.load("no entries")
    d.write("lines")

    # LLVM: every name in full, biased; on a 32-bit machine the bias is 52.
    for machine, bias in (X86_64, 64), (I386, 52):
        d = Dump(machine=machine)
        base = 0x1000
        d.debug(base, [(base + bias, 3, 0, b"m.c"), (base + bias + 20, 4, 0, b"m.c")])
        d.find("JD041", bias, 40)
        d.load("biased", avma=base)
        d.write(f"bias_{bias}")


def unwinding():
    """The format's text has the header first, every producer has it last."""
    header = bytes([1, 0x1B, 3, 0x3B]) + bytes(16)
    frame = bytes([0xEE] * 56)
    d = Dump()
    d.load("none")
    d.unwinding_raw(frame + header, 20, 80)
    d.eh_frame = 56
    d.load("perf's order")
    at = d.at
    d.unwinding_raw(header + frame, 20, 76)
    d.find("JD044", 20, at)
    d.eh_frame = 76  # an unused entry takes the header's place
    d.load("the text's order")
    at = d.at
    d.unwinding_raw(frame, 0, 0)
    d.find("JD046", 56, at)
    d.eh_frame = 56
    d.load("without a header")
    d.unwinding_raw(header, 20, 0)
    d.load("use the frame pointer")
    d.load("none again")
    d.write("unwinding_orders")


def dotnet():
    """The writer stops within a record, far from its end."""
    d = Dump()
    d.load("whole")
    at = d.at
    d.load("stub block", code=bytes([0xCC] * 65536), seen_code=0)
    d.bytes = d.bytes[: at + 32854]
    d.find("JD012", 32854, at)
    d.write("half_a_block")


def empty():
    d = Dump()
    d.write("nothing_yet")
    d.bytes = d.bytes[:23]
    d.find("JD002", 23, 0)
    d.write("half_a_header")


class Mac64:
    """A tid of 64 bits, aligned by the compiler."""

    def into(self, d, name):
        code = b"\xc3" * 8
        avma = 0x7F0000001000 + d.index * 0x100
        body = d.pack("IIQQQQQ", PID, 0, 7, avma, avma, len(code), d.index)
        d.record(0, body + name.encode() + b"\0" + code)
        d.event("LOAD", avma, len(code), d.index, name, len(code))
        d.index += 1


if __name__ == "__main__":
    main()

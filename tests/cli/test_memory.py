# SPDX-License-Identifier: MIT
"""Inputs are not amplified: of these recordings and code maps a report takes no
more than eight times their size and 64 MiB."""

import itertools
import os
import struct
import sys

from command import TICKMAP

MIB = 1 << 20
IP, TID, TIME, CHAIN = 1, 2, 4, 32
ID_ALL, PLAIN = 1 << 18, 0
FIRST_PID = 1 << 30  # nobody's on this machine
CODE = 0x7F0000000000


def header(sample_type, flags, size):
    attr = struct.pack("<IIQQQQQ", 1, 112, 0, 1000, sample_type, 0, flags).ljust(112, b"\0")
    return struct.pack("<8s8Q32x", b"PERFILE2", 104, 128, 104, 128, 232, size, 0, 0) + attr + bytes(16)


def record(kind, body, misc=2):
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def text(name):
    return name.encode().ljust(len(name) // 8 * 8 + 8, b"\0")


def mmap(pid, start, size, path, tail=b""):
    return record(1, struct.pack("<IIQQQ", pid, pid, start, size, 0) + text(path) + tail)


def comm(pid, tid, name, misc=0):
    return record(3, struct.pack("<II", pid, tid) + text(name), misc)


def task(pid, parent, when, kind=7):
    return record(kind, struct.pack("<IIIIQ", pid, parent, pid, parent, when))


def plain(*fields):
    return record(9, struct.pack(f"<{len(fields)}Q", *fields))


def chain(when, addresses):
    return plain(addresses[-1], 1 << 32 | 1, when, len(addresses), *addresses)


def spread(i, step, bits):
    return (i * 2654435761 + step) % (1 << bits)


COUNT = itertools.count
USUAL = IP | TID | TIME

# name: (sample type, flags, records)
RECORDINGS = {
    "empty samples": (0, PLAIN, lambda: (plain() for i in COUNT())),
    "addresses alone": (IP, PLAIN, lambda: (plain(16 * i) for i in COUNT())),
    "a process a sample": (IP | TID, PLAIN, lambda: (plain(64, FIRST_PID + i) for i in COUNT())),
    "a thread a sample": (IP | TID, PLAIN, lambda: (plain(64, i << 32 | 1) for i in COUNT())),
    "samples backwards": (USUAL, PLAIN, lambda: (plain(i, 1, 10**12 - i) for i in COUNT())),
    "deep chains, all unknown": (USUAL | CHAIN, PLAIN, lambda: (
        chain(i, [2**64 - 512] + [spread(i, 7919 * j, 47) for j in range(7000)]) for i in COUNT())),
    "deep chains, all kernel": (USUAL | CHAIN, PLAIN, lambda: (
        chain(i, [2**64 - 128] + [(0xFFFF << 48) + spread(i, 7919 * j, 40) for j in range(7000)])
        for i in COUNT())),
    "deep chains in no file": (USUAL | CHAIN, PLAIN, lambda: itertools.chain(
        [mmap(1, 0x1000, 1 << 46, "/no/such/file")],
        (chain(i, [2**64 - 512] + [spread(i, 7919 * j, 40) for j in range(7000)]) for i in COUNT()))),
    "short chains that branch": (USUAL | CHAIN, PLAIN, lambda: (
        chain(i, [spread(i, j, 40) for j in range(3)]) for i in COUNT())),
    "names of one thread": (0, PLAIN, lambda: (comm(1, 1, f"{i:x}") for i in COUNT())),
    "names of processes": (0, PLAIN, lambda: (comm(i, i, f"{i:x}", 0x2000) for i in COUNT(1))),
    "forks": (0, PLAIN, lambda: (task(i + 1, 1, i) for i in COUNT(1))),
    "forks of forks": (0, PLAIN, lambda: (task(i + 1, i, i) for i in COUNT(1))),
    "forks with one pid": (0, PLAIN, lambda: (task(2, 1, i) for i in COUNT(1))),
    "forks that map": (0, PLAIN, lambda: (
        r for i in COUNT(1) for r in (task(i + 1, i, i), mmap(i + 1, 4096 * (i % 999), 4096, "/a")))),
    "forks, each sampled": (IP | TID, PLAIN, lambda: (
        r for i in COUNT(1) for r in (task(FIRST_PID + i, 1, i), plain(64, FIRST_PID + i)))),
    "forks of forks, each sampled": (IP | TID, PLAIN, lambda: (
        r for i in COUNT(FIRST_PID) for r in (task(i + 1, i, i), plain(64, i + 1)))),
    "forks that map, each sampled": (IP | TID, PLAIN, lambda: (
        r for i in COUNT(FIRST_PID) for r in (
            task(i + 1, i, i), mmap(i + 1, 4096 * (i % 999), 4096, "/a"), plain(64, i + 1)))),
    "files of processes, each sampled": (IP | TID, PLAIN, lambda: (
        r for i in COUNT(FIRST_PID) for r in (mmap(i, 4096, 4096, "/a"), plain(4096, i)))),
    "forks with one pid, each sampled": (USUAL, PLAIN, lambda: (
        r for i in COUNT() for r in (task(1, 2, 2 * i), plain(64, 1, 2 * i + 1)))),
    "execs of one, each sampled": (USUAL, ID_ALL, lambda: (
        r for i in COUNT() for r in (
            record(3, struct.pack("<II8sIIQ", 1, 1, b"a", 1, 1, 2 * i), 0x2000),
            plain(64, 1, 2 * i + 1)))),
    "execs, each sampled": (IP | TID, PLAIN, lambda: (
        r for i in COUNT(FIRST_PID) for r in (comm(i, i, "a", 0x2000), plain(4096, i)))),
    "execs of one": (IP | TID, PLAIN, lambda: itertools.chain(
        [plain(4096, 1)], (comm(1, 1, "a", 0x2000) for i in COUNT()))),
    "memory of processes, each sampled": (IP | TID, PLAIN, lambda: (
        r for i in COUNT(FIRST_PID) for r in (mmap(i, 4096, 4096, "//anon"), plain(4096, i)))),
    "exits": (0, PLAIN, lambda: (task(i + 1, 1, i, 4) for i in COUNT(1))),
    "files": (0, PLAIN, lambda: (mmap(1, i << 12, 4096, f"/{i:x}") for i in COUNT(1))),
    "a sample a file": (IP | TID, PLAIN, lambda: (
        r for i in COUNT(1) for r in (mmap(1, i << 12, 4096, f"/{i:x}"), plain(i << 12, 1)))),
    "files of processes": (0, PLAIN, lambda: (mmap(i, 4096, 4096, "/a") for i in COUNT(1))),
    "huge mappings with holes": (IP | TID, PLAIN, lambda: itertools.chain(
        [plain(1 << 40, 1), mmap(1, 4096, 1 << 46, "/a")],
        (mmap(1, spread(i, 0, 34) << 12, 4096, "/b") for i in COUNT()))),
    "mappings in mappings": (IP | TID, PLAIN, lambda: itertools.chain(
        [plain(1 << 40, 1)],
        (mmap(1, i << 12, (1 << 46) - (i << 13), "/a") for i in COUNT()))),
    "markers": (0, PLAIN, lambda: (mmap(i, 4096, 4096, f"/no/jit-{i}.dump") for i in COUNT(1))),
    "images of functions": (0, PLAIN, lambda: (
        mmap(1, i << 12, 4096, f"/no/jitted-1-{i}.so") for i in COUNT(1))),
}


def load(i, avma, size, name):
    code = bytes(size)
    return struct.pack("<IIQIIQQQQ", 0, 56 + len(name) + 1 + size, i, 1, 1, avma, avma, size, i) + \
        name + b"\0" + code


def move(i, old, avma, size):
    return struct.pack("<IIQIIQQQQQ", 1, 64, i, 1, 1, avma, old, avma, size, i % 1000)


def debug(avma, count):
    entries = b"".join(struct.pack("<QII", avma, j, 0) + (b"\xff\0" if j else b"f.c\0")
                       for j in range(count))
    return struct.pack("<IIQQQ", 2, 32 + len(entries), 1, avma, count) + entries


MAPS = {
    "one line": lambda: ("1 1 a\n" for i in COUNT()),
    "short lines": lambda: (f"{i:x} 1 a\n" for i in COUNT()),
    "short lines, all names": lambda: (f"{i:x} 1 {i:x}\n" for i in COUNT()),
    "usual lines": lambda: (f"{CODE + 64 * i:x} 40 f{i}\n" for i in COUNT()),
    "lines of two bytes": lambda: ("a\n" for i in COUNT()),
    "lines over the sample": lambda: (f"{CODE - i:x} fffffff {i:x}\n" for i in COUNT()),
    "lines in lines": lambda: (f"{CODE + 8 * i:x} {(1 << 27) - 16 * i:x} a\n" for i in COUNT()),
}

DUMPS = {
    "functions of a byte": lambda: (load(i, CODE + 16 * i, 1, b"a") for i in COUNT()),
    "functions with names": lambda: (load(i, CODE + 16 * i, 1, b"%x" % i) for i in COUNT()),
    "functions that cut": lambda: (load(i, CODE + spread(i, 0, 30), 16, b"a") for i in COUNT()),
    "reuse": lambda: (load(i, CODE + 16 * (i % 50), 16, b"%x" % i) for i in COUNT()),
    "moves": lambda: itertools.chain(
        (load(i, CODE + 16 * i, 16, b"a") for i in range(1000)),
        (move(i, CODE + 16000 * i, CODE + 16000 * (i + 1), 16000) for i in COUNT())),
    "lines of one file": lambda: (
        r for i in COUNT() for r in (debug(CODE + 16 * i, 900), load(i, CODE + 16 * i, 16, b"a"))),
    "lines of no function": lambda: (debug(CODE + 16 * i, 1) for i in COUNT()),
    "unknown records": lambda: (struct.pack("<IIQ", 99, 16, i) for i in COUNT()),
    "zeros": lambda: (bytes(4096) for i in COUNT()),
}


def write(path, begin, pieces, size):
    """As many pieces as there is room for; how large they are together."""
    written = 0
    with open(path, "wb") as out:
        out.write(begin)
        while written < size:
            block = b"".join(p if isinstance(p, bytes) else p.encode()
                             for p in itertools.islice(pieces, 50))
            out.write(block)
            written += len(block)
    return written


def write_recording(folder, kind, size):
    path = folder / "perf.data"
    sample_type, flags, make = kind
    written = write(path, header(sample_type, flags, 0), make(), size)
    with open(path, "r+b") as out:
        out.write(header(sample_type, flags, written))


def write_base(folder):
    """One process with memory for code, a marker, and a sample in its code."""
    tail = struct.pack("<IIQ", 1, 1, 1)
    records = mmap(1, CODE, 1 << 30, "//anon", tail) + \
        mmap(1, 4096, 4096, str(folder / "jit-1.dump"), tail) + plain(CODE, 1 << 32 | 1, 10**12)
    (folder / "perf.data").write_bytes(header(USUAL, ID_ALL, len(records)) + records)


def write_sampled_map(folder, name_of, size):
    """A line of a perf map and a sample in it, again and again."""
    records = [mmap(1, 4096, 1 << 46, "//anon")]
    with open(folder / "perf-1.map", "w") as out:
        for i in range(4096, 4096 + size // 36):
            out.write(f"{i:x} 1 {name_of(i)}\n")
            records.append(plain(i, 1 << 32 | 1))
    body = b"".join(records)
    (folder / "perf.data").write_bytes(header(IP | TID, PLAIN, len(body)) + body)


SAMPLED_MAPS = {
    "each line sampled": lambda i: "a",
    "each line and name sampled": lambda i: f"{i:x}",
}


def peak_of(folder):
    """Of `tickmap report`; run by a small process, whose own memory counts."""
    if not os.fork():
        os.chdir(folder)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(1, 2)
        os.execv(TICKMAP, [str(TICKMAP), "report", "--json", "--code-maps", ".", "perf.data"])
    _, status, usage = os.wait4(-1, 0)
    assert os.waitstatus_to_exitcode(status) in (0, 1)
    return usage.ru_maxrss * 1024


def measure(folder, kind, write_kind):
    points = []
    for size in 1 * MIB, 5 * MIB:
        write_kind(size)
        held = sum(f.stat().st_size for f in folder.iterdir())
        points.append((held, peak_of(folder)))
        for f in folder.iterdir():
            f.unlink()
    (small, least), (large, peak) = points
    ratio = (peak - least) / (large - small)
    print(f"{kind:26} {large / MIB:5.1f} MiB in, peak {peak / MIB:6.1f} MiB of "
          f"{8 * large / MIB + 64:6.1f}; {ratio:5.1f} times and {(least - ratio * small) / MIB:5.1f} MiB",
          flush=True)
    return [] if peak <= 8 * large + 64 * MIB and least <= 8 * small + 64 * MIB else [kind]


def main(folder):
    too_much = []
    for kind, how in RECORDINGS.items():
        too_much += measure(folder, kind, lambda size: write_recording(folder, how, size))
    for kind, make in MAPS.items():
        def write_map(size):
            write_base(folder)
            write(folder / "perf-1.map", b"", make(), size)
        too_much += measure(folder, "map: " + kind, write_map)
    for kind, name_of in SAMPLED_MAPS.items():
        too_much += measure(folder, "map: " + kind,
                            lambda size: write_sampled_map(folder, name_of, size))
    begin = struct.pack("<IIIIIIQQ", 0x4A695444, 1, 40, 62, 0, 1, 1, 0)
    for kind, make in DUMPS.items():
        def write_dump(size):
            write_base(folder)
            write(folder / "jit-1.dump", begin, make(), size)
        too_much += measure(folder, "dump: " + kind, write_dump)
    kinds = len(RECORDINGS) + len(MAPS) + len(SAMPLED_MAPS) + len(DUMPS)
    print(f"{kinds - len(too_much)} of {kinds} kinds within 8 times and 64 MiB")
    assert not too_much, too_much


def test_no_input_takes_more_than_eight_times_its_size_and_64_mib(tmp_path):
    """In a process of its own: a child's peak begins with its parent's size."""
    import subprocess
    done = subprocess.run([sys.executable, __file__, str(tmp_path)], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    print(done.stdout)
    assert done.returncode == 0, done.stdout


if __name__ == "__main__":
    import pathlib
    main(pathlib.Path(sys.argv[1]))

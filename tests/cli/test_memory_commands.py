# SPDX-License-Identifier: MIT
"""The bound of test_memory.py for the other commands: what they write may be
much larger than what they read, what they hold may not."""

import itertools
import os
import pathlib
import resource
import struct
import sys

import test_memory as hostile
from command import TICKMAP
from test_memory import CODE, MIB, chain, comm, mmap, plain, spread

COUNT = itertools.count
BEGIN = struct.pack("<IIIIIIQQ", 0x4A695444, 1, 40, 62, 0, 1, 1, 0)
CPU_SECONDS = 30  # of one command; none needs a tenth of it


def chains(depth):
    return (chain(i, [2**64 - 512] + [CODE + spread(i, 7919 * j, 23) for j in range(depth)])
            for i in COUNT())


RECORDINGS = {
    **{name: hostile.RECORDINGS[name] for name in (
        "addresses alone", "a thread a sample", "deep chains, all unknown",
        "deep chains, all kernel", "short chains that branch")},
}

# Small ones that say much: a line of output is of megabytes, a file of gigabytes.
SMALL = {
    "a path longer than any": (lambda: [mmap(1, CODE, 1 << 30, "/" + "p" * 60000)], 7000, ""),
    "a thread's name longer than any": (lambda: [comm(1, 1, "c" * 60000)], 20, ""),
    "chains in one long name": (lambda: [mmap(1, CODE, 1 << 30, "//anon")], 7000,
                                f"{CODE:x} 800000 {'a' * 20000}\n"),
}


def missing(i):
    """A LOAD with a size of 1 MiB and without its code."""
    return struct.pack("<IIQIIQQQQ", 0, 58, i, 1, 1, CODE + (i << 20), CODE + (i << 20),
                       1 << 20, i) + b"a\0"


DUMPS = {
    **hostile.DUMPS,
    "code that is missing": lambda: (missing(i) for i in COUNT()),
    "a size of 4 GiB": lambda: itertools.chain(
        [struct.pack("<IIQIIQQQQ", 0, 2**32 - 1, 1, 1, 1, CODE, CODE, 2**32 - 59, 1) + b"a\0"],
        (bytes(4096) for i in COUNT())),
    "line names that are said once": lambda: (
        r for i in COUNT() for r in (
            struct.pack("<IIQQQ", 2, 32 + 16 + 51 + 99 * 18, 1, CODE + 64 * i, 100) +
            struct.pack("<QII", CODE + 64 * i, 1, 0) + b"f" * 50 + b"\0" +
            b"".join(struct.pack("<QII", CODE + 64 * i + j, j, 0) + b"\xff\0" for j in range(1, 100)),
            hostile.load(i, CODE + 64 * i, 64, b"a"))),
}

EXPORTS = [["export", "-f", form, "--code-maps", ".", "-o", "/dev/stdout", "perf.data"]
           for form in ("folded", "html", "perf-script")]


def of_map(name):
    return [["dump", "--json", name], ["lint", name], ["repair", "-o", "-", name]]


def peak_of(folder, arguments):
    if not os.fork():
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
        os.chdir(folder)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(1, 2)
        os.execv(TICKMAP, [str(TICKMAP), *arguments])
    _, status, usage = os.wait4(-1, 0)
    return usage.ru_maxrss * 1024, os.waitstatus_to_exitcode(status)


def measure(folder, kind, commands, sizes, write_kind):
    line, too_much = [], []
    for size in sizes:
        write_kind(size)
        held = sum(f.stat().st_size for f in folder.iterdir())
        for command in commands:
            peak, code = peak_of(folder, command)
            line.append(f"{peak / MIB:5.1f}")
            if peak > 8 * held + 64 * MIB or code not in (0, 1, 3):
                too_much.append((kind, command, size, peak, code))
        for f in folder.iterdir():
            f.unlink()
    print(f"{kind:32}", *line, flush=True)
    return too_much


def main(folder):
    too_much = []

    def write_recording(size):
        hostile.write_recording(folder, how, size)

    def write_small(count):
        begin, depth, code_map = how
        data = b"".join([*begin(), *itertools.islice(chains(depth), count)])
        (folder / "perf.data").write_bytes(
            hostile.header(hostile.USUAL | hostile.CHAIN, 0, len(data)) + data)
        (folder / "perf-1.map").write_text(code_map)

    def write_map(size):
        hostile.write(folder / "perf-1.map", b"", how(), size)

    def write_dump(size):
        hostile.write(folder / "jit-1.dump", BEGIN, how(), size)

    for kind, how in RECORDINGS.items():
        too_much += measure(folder, kind, EXPORTS, [MIB, 5 * MIB], write_recording)
    for kind in "markers", "empty samples":
        how = hostile.RECORDINGS[kind]
        too_much += measure(folder, "lint: " + kind, [["lint", "perf.data"]], [5 * MIB],
                            write_recording)
    for kind, how in SMALL.items():
        too_much += measure(folder, kind, EXPORTS, [2], write_small)
    for kind, how in hostile.MAPS.items():
        too_much += measure(folder, "map: " + kind, of_map("perf-1.map"), [MIB], write_map)
    for kind, how in DUMPS.items():
        too_much += measure(folder, "dump: " + kind, of_map("jit-1.dump"), [5 * MIB], write_dump)
    print(len(too_much), "commands took too much")
    assert not too_much, too_much


def test_no_command_takes_more_than_eight_times_its_input_and_64_mib(tmp_path):
    """In a process of its own: a child's peak begins with its parent's size."""
    import subprocess
    done = subprocess.run([sys.executable, __file__, str(tmp_path)], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    print(done.stdout)
    assert done.returncode == 0, done.stdout


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))

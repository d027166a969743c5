#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A program that compiles code for ever: what it holds, with us and without.

    bench/python/memory.py [--count N] [--python PATH]...

lambdas     N evaluated lambda expressions, each called: one function to a
            reader, so one trampoline
names       N functions with names made up as it goes: trampolines end at 2^18
kept        N/10 lambdas that stay alive, as in a program that grows

Printed: resident set after a tenth of the calls and after all of them, in MB,
and the size of the jitdump, in KB. Exits with 1 if the lambdas let either grow
by more than they do without us (and 2 MB, 1 KB).
"""
import argparse
import subprocess
import sys
import tempfile

from run import HOME, Python, environment, find_pythons

PROGRAM = r"""
import glob, os, sys
kind, count, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3]

def held():
    with open("/proc/self/statm") as file:
        resident = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return resident, sum(os.path.getsize(p) for p in glob.glob(folder + "/jit-*.dump"))

def lambdas(first, last):
    for i in range(first, last):
        assert eval("lambda: 1")() == 1

def names(first, last):
    for i in range(first, last):
        space = {}
        exec("def f%d(): return 1" % i, space)
        space["f%d" % i]()

alive = []
def kept(first, last):
    for i in range(first // 10, last // 10):
        alive.append(eval("lambda: 1"))
        alive[-1]()

work = {"lambdas": lambdas, "names": names, "kept": kept}[kind]
work(0, count // 10)
before = held()
work(count // 10, count)
print(*before, *held())
"""


def grow(python, kind, count, ours):
    """Resident bytes and bytes of the dump, early and late."""
    with tempfile.TemporaryDirectory(prefix="tickmap-bench-") as maps:
        more = {}
        if ours:
            more = {"TICKMAP": "jitdump", "TICKMAP_DIR": maps, "TICKMAP_PYTHON_HOME": str(HOME), "PYTHONPATH": str(HOME / "boot")}
        out = subprocess.run([python.path, "-c", PROGRAM, kind, str(count), maps], env=environment(more),
                             check=True, stdout=subprocess.PIPE, text=True).stdout
    return list(map(int, out.split()))


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].strip())
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--python", action="append")
    options = parser.parse_args()
    pythons = [Python(p) for p in options.python] if options.python else find_pythons()
    if not pythons:
        sys.exit("no interpreter with an extension in %s" % HOME)
    grown = 0
    print("%-9s %-8s %-6s %9s %9s %9s %9s   (%d calls)" % ("CPython", "", "", "MB early", "MB late", "KB early", "KB late", options.count))
    for python in pythons:
        for kind in ("lambdas", "names", "kept"):
            rows = {ours: grow(python, kind, options.count, ours) for ours in (False, True)}
            for ours, (early, early_file, late, late_file) in rows.items():
                print("%-9s %-8s %-6s %9.1f %9.1f %9.1f %9.1f" % (
                    "%d.%d.%d" % python.version, kind, "ours" if ours else "plain",
                    early / 1e6, late / 1e6, early_file / 1e3, late_file / 1e3), flush=True)
            plain, ours = rows[False], rows[True]
            if kind == "lambdas" and (ours[2] - ours[0] > plain[2] - plain[0] + 2_000_000 or ours[3] - ours[1] > 1000):
                grown += 1
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What trampolines cost: ours beside the interpreter's own, in one run.

    bench/python/run.py [--rounds N] [--scale S] [--python PATH]... [--check] [NAME]...

The least CPU seconds of each workload in a process without trampolines, with
ours (writing a jitdump, a perf map) and with the interpreter's own where it
has some (-X perf from 3.12, -X perf_jit from 3.13). Rounds are interleaved:
each starts one process of each kind, in random order; a ratio is to the plain
process of the same round, and the median over the rounds is printed. The
startup row is a whole process that imports much. Without --python: one
interpreter for each version found that has an extension in $TICKMAP_BUILD.

--check: exit 1 where our geometric mean without the pure-call row is above
that of the interpreter's own best trampolines by more than the noise.
"""
import argparse
import glob
import math
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
HOME = pathlib.Path(os.environ.get("TICKMAP_BUILD") or ROOT / "build").resolve() / "python"
WORKLOADS = str(pathlib.Path(__file__).resolve().parent / "workloads.py")
IMPORTS = "import asyncio, argparse, decimal, email.message, http.client, json, logging.config, unittest.mock"
PURE = "pure_calls"


class Python:
    def __init__(self, path):
        out = subprocess.run(
            [path, "-c", "import sys, sysconfig; print(sys.implementation.cache_tag, sysconfig.get_config_var('EXT_SUFFIX'), *sys.version_info[:3])"],
            env=environment({}), check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout.split()
        self.path = path
        self.tag, suffix = out[:2]
        self.version = tuple(map(int, out[2:]))
        self.extension = HOME / self.tag / ("_tickmap" + suffix)

    def modes(self, maps):
        """Kind of process → the variables that make it."""
        ours = {"TICKMAP_DIR": maps, "TICKMAP_PYTHON_HOME": str(HOME), "PYTHONPATH": str(HOME / "boot")}
        modes = {"plain": {}, "jitdump": dict(ours, TICKMAP="jitdump"), "perfmap": dict(ours, TICKMAP="perfmap")}
        if self.version >= (3, 12):
            modes["-X perf"] = {"PYTHONPERFSUPPORT": "1"}
        if self.version >= (3, 13):
            modes["-X perf_jit"] = {"PYTHON_PERF_JIT_SUPPORT": "1"}
        return modes


def environment(more):
    return dict({k: os.environ[k] for k in ("PATH", "HOME") if k in os.environ}, LANG="C.UTF-8", PYTHONHASHSEED="1", **more)


def find_pythons():
    paths = [p for p in map(shutil.which, ("python3.%d" % n for n in range(9, 16))) if p and "shims" not in p]
    paths += glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python3")) + ["/usr/bin/python3"]
    found = {}
    for path in paths:
        try:
            python = Python(path)
        except (OSError, ValueError, subprocess.SubprocessError):
            continue
        if python.extension.exists():
            found.setdefault(python.tag, python)
    return sorted(found.values(), key=lambda p: p.version)


def process(command, variables):
    """Its output and its CPU seconds; what it left in /tmp is removed."""
    child = subprocess.Popen(command, env=environment(variables), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    out = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    child.stdout.close()
    for name in "/tmp/perf-%d.map" % child.pid, "/tmp/jit-%d.dump" % child.pid:
        if os.path.exists(name):
            os.unlink(name)
    if child.returncode != 0:
        sys.exit("%s exits with %d" % (" ".join(command), child.returncode))
    return out, usage.ru_utime + usage.ru_stime


def measure(python, variables, scale, names):
    """Workload → CPU seconds."""
    out, _ = process([python.path, WORKLOADS, str(scale), *names], variables)
    seconds = {name: float(value) for name, value in (line.split() for line in out.splitlines())}
    if not names or "startup" in names:
        seconds["startup"] = min(process([python.path, "-c", IMPORTS], variables)[1] for _ in range(2))
    return seconds


def bench(python, rounds, scale, names):
    """mode → workload → ratios to plain, one a round; and plain seconds."""
    ratios, plain = {}, {}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory(prefix="tickmap-bench-") as maps:
            modes = list(python.modes(maps).items())
            random.shuffle(modes)
            seconds = {mode: measure(python, variables, scale, names) for mode, variables in modes}
        for mode, times in seconds.items():
            for name, value in times.items():
                ratios.setdefault(mode, {}).setdefault(name, []).append(value / seconds["plain"][name])
                if mode == "plain":
                    plain.setdefault(name, []).append(value)
    return ratios, plain


def geomean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def table(python, ratios, plain):
    """Prints it; returns mode → geometric mean without the pure calls."""
    modes = [m for m in ratios if m != "plain"]
    modes.sort(key=["jitdump", "perfmap", "-X perf", "-X perf_jit"].index)
    rounds = len(next(iter(plain.values())))
    print("CPython %d.%d.%d, median of %d rounds, ratio to plain" % (*python.version, rounds))
    print("%-16s %9s" % ("", "plain ms") + "".join("%12s" % m for m in modes))
    median = {m: {n: statistics.median(v) for n, v in ratios[m].items()} for m in modes}
    for name, seconds in plain.items():
        print("%-16s %9.2f" % (name, 1000 * statistics.median(seconds)) + "".join("%12.3f" % median[m][name] for m in modes))
    result = {}
    for title, left_out in (("geometric mean", ()), ("  without calls", (PURE,))):
        means = {m: geomean([v for n, v in median[m].items() if n not in left_out] or [1]) for m in modes}
        print("%-26s" % title + "".join("%12.3f" % means[m] for m in modes))
        result = means
    return result


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].strip())
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scale", type=float, default=0.4)
    parser.add_argument("--python", action="append")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    pythons = [Python(p) for p in options.python] if options.python else find_pythons()
    if not pythons:
        sys.exit("no interpreter with an extension in %s" % HOME)
    behind = 0
    for python in pythons:
        ratios, plain = bench(python, options.rounds, options.scale, options.names)
        means = table(python, ratios, plain)
        own = [means[m] for m in ("-X perf", "-X perf_jit") if m in means]
        if own and means["jitdump"] > own[-1]:
            print("behind the interpreter's own by %.1f %%" % (100 * (means["jitdump"] / own[-1] - 1)))
            behind += means["jitdump"] > own[-1] * 1.02
        print(flush=True)
    return 1 if options.check and behind else 0


if __name__ == "__main__":
    sys.exit(main())

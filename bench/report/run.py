#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tickmap report: what it costs to read a recording.

Made-up recordings of code out of a jitdump, every chain different (100,000
functions; 10^5 and 10^6 samples of 10 frames), and one of node (dwarf stacks, 10
s, 999 Hz) against the host's perf inject --jit and perf report --children
--no-inline. CPU seconds and peak memory, the least of the rounds. samply's import
of the same 10^5 was measured once, on another day: 1.0 CPU s, 193 MB; where
TICKMAP_SAMPLY names it, it runs here.
"""
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("TICKMAP_BUILD", ROOT / "build")).resolve()
TICKMAP = BUILD / "tickmap"
MAKE = BUILD / "bench" / "report" / "make_recording"
ROUNDS = 3

WORK = """
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
class Shape { area(x) { let s = 0; for (let i = 0; i < x; i++) s += Math.sqrt(i) * fib(5); return s; } }
const until = Date.now() + 10000, shape = new Shape();
let kept = 0;
while (Date.now() < until) {
  kept += shape.area(500);
  JSON.parse(JSON.stringify({ a: [1, 2, 3, kept] }));
  [5, 3, 1].map((x) => x * 2).sort();
}
console.log(kept);
"""


def cost(calls, cwd, env=None):
    """CPU seconds, with all descendants, and peak memory in MB."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    peak = 0
    for call in calls:
        with open(os.devnull, "w") as null:
            child = subprocess.Popen(call, cwd=cwd, env=env, stdout=null,
                                     stderr=null)
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            sys.exit("%s: exit %d" % (" ".join(map(str, call)), child.returncode))
        peak = max(peak, usage.ru_maxrss / 1024)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime
            - before.ru_stime, peak)


def least(rounds):
    return min(r[0] for r in rounds), min(r[1] for r in rounds)


def made_up(scratch):
    seconds = {}
    for samples in (100000, 1000000):
        folder = scratch / str(samples)
        folder.mkdir()
        subprocess.run([MAKE, folder, str(samples), "10", "100000"], check=True)
        rounds = ROUNDS if samples == 100000 else 1
        took, peak = least([cost([[TICKMAP, "report", "perf.data"]], folder)
                            for _ in range(rounds)])
        seconds[samples] = took
        print("%8d samples x 10 frames: %6.2f CPU s, %5.0f MB" % (
            samples, took, peak), end="")
        if samples == 100000:
            print("  (%.2f x samply's 1.0 s, %.2f x its 193 MB)" % (
                took / 1.0, peak / 193))
            samply(folder, took, peak)
        else:
            print("  (%.1f x the time of a tenth)" % (took / seconds[100000]))
        shutil.rmtree(folder)


def samply(folder, took, peak):
    program = os.environ.get("TICKMAP_SAMPLY")
    if not program:
        return
    rounds = [cost([[program, "import", "--save-only", "-o", "out.json.gz",
                     "perf.data"]], folder) for _ in range(ROUNDS)]
    theirs, their_peak = least(rounds)
    print("  samply import, here: %.2f CPU s, %.0f MB: ours is %.2f x the time,"
          " %.2f x the memory" % (theirs, their_peak, took / theirs,
                                  peak / their_peak))


def node(scratch):
    perf, program = shutil.which("perf"), shutil.which("node")
    if not perf or not program:
        print("node: %s is not here" % ("node" if perf else "perf"))
        return
    env = dict(os.environ, HOME=str(scratch), DEBUGINFOD_URLS="")
    (scratch / "work.js").write_text(WORK)
    done = subprocess.run(
        [perf, "record", "-q", "-k", "1", "-F", "999", "--call-graph", "dwarf",
         "-o", "node.data", program, "--perf-prof",
         "--interpreted-frames-native-stack", "work.js"], cwd=scratch, env=env,
        capture_output=True, text=True)
    if done.returncode:
        print("node: perf record: " + done.stderr[-200:])
        return
    ours, theirs = [], []
    for _ in range(ROUNDS):
        ours.append(cost([[TICKMAP, "report", "node.data"]], scratch, env))
        theirs.append(cost(
            [[perf, "inject", "--jit", "-i", "node.data", "-o", "in.data"],
             [perf, "report", "--stdio", "--children", "--no-inline", "-i",
              "in.data"]], scratch, env))
    took, peak = least(ours)
    their_time, their_peak = least(theirs)
    print("node, dwarf: %.2f CPU s, %.0f MB; perf inject --jit and report: %.2f"
          " CPU s, %.0f MB: %.2f of it" % (took, peak, their_time, their_peak,
                                           took / their_time))


def main():
    with tempfile.TemporaryDirectory(prefix="tickmap-bench-") as scratch:
        made_up(pathlib.Path(scratch))
        node(pathlib.Path(scratch))


if __name__ == "__main__":
    main()

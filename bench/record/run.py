#!/usr/bin/env python3
"""What recording costs: ours beside perf, py-spy and samply, in interleaved
rounds of the same fixed work on the same machine.

    bench/record/run.py [--rounds N] [--seconds S] [--python PATH]

slowdown   the program's own CPU seconds, ratio to the same work without a
           recorder; median of the ratios within each round
recorder   CPU seconds of the recorder and its helpers, % of the program's
memory     its largest resident set, MB
lost       samples that it says it lost
size       of what it wrote, KB for 10 s

samply is found on PATH or by TICKMAP_SAMPLY; TICKMAP_SAMPLY_SHIM is preloaded
into it (`tools/peers BUILD samply` makes both), and perf_event_paranoid is 1
while it records, as it demands.
Timings on a shared machine are no test; read the ratios.
"""
import argparse
import contextlib
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("TICKMAP_BUILD", ROOT / "build")).resolve()
TICKMAP = str(BUILD / "tickmap")
SAMPLY = os.environ.get("TICKMAP_SAMPLY") or shutil.which("samply")
PARANOID = pathlib.Path("/proc/sys/kernel/perf_event_paranoid")
WORK = str(pathlib.Path(__file__).resolve().parent / "work.py")


def high_water(pid):
    try:
        text = pathlib.Path("/proc/%d/status" % pid).read_text()
        return int(re.search(r"VmHWM:\s*(\d+)", text).group(1)) / 1024
    except (OSError, AttributeError):
        return 0


def run(command, out, env=None):
    """(program's CPU, all CPU, peak MB, stderr)"""
    with tempfile.TemporaryFile("w+") as stdout, \
            tempfile.TemporaryFile("w+") as stderr:
        child = subprocess.Popen(command, stdout=stdout, stderr=stderr,
                                 cwd=out, env=env)
        peak = 0
        while True:
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
            if pid:
                break
            peak = max(peak, high_water(child.pid))
            time.sleep(0.02)
        child.returncode = status
        stdout.seek(0)
        stderr.seek(0)
        text, said = stdout.read(), stderr.read()
    numbers = re.findall(r"^\d+\.\d+$", text, re.M)
    own = float(numbers[-1]) if numbers else float("nan")
    return own, usage.ru_utime + usage.ru_stime, peak, said


def tickmap_lost(out):
    done = subprocess.run([TICKMAP, "report", "--json", str(out / "data")],
                          capture_output=True, text=True)
    return json.loads(done.stdout)["lost"] if done.returncode == 0 else "?"


def perf_lost(out):
    done = subprocess.run(["perf", "report", "--stats", "-i",
                           str(out / "data")], capture_output=True, text=True)
    lost = re.findall(r"LOST\w* events:\s*(\d+)", done.stdout)
    return sum(int(n) for n in lost)


def modes(hz, pyspy):
    hz = str(hz)
    table = {
        "alone": ([], None),
        "tickmap": ([TICKMAP, "record", "-q", "-F", hz, "-o", "data", "--"],
                    tickmap_lost),
        "tickmap --no-python": ([TICKMAP, "record", "-q", "-F", hz,
                                 "--no-python", "-o", "data", "--"],
                                tickmap_lost),
    }
    if shutil.which("perf"):
        perf = ["perf", "record", "-q", "-F", hz, "-k", "1", "-o", "data"]
        table["perf --call-graph dwarf"] = (
            perf + ["--call-graph", "dwarf", "--"], perf_lost)
        table["perf -g"] = (perf + ["-g", "--"], perf_lost)
    if pyspy:
        table["py-spy"] = ([pyspy, "record", "-r", hz, "-f", "raw", "-o",
                            "data", "--"], lambda out: "-")
    if SAMPLY:
        table["samply"] = ([SAMPLY, "record", "-s", "-r", hz, "-o", "data",
                            "--"], lambda out: "-")
    return table


@contextlib.contextmanager
def as_samply_wants(mode):
    """The environment for it; for others nothing changes."""
    if mode != "samply":
        yield None
        return
    before = PARANOID.read_text()
    shim = os.environ.get("TICKMAP_SAMPLY_SHIM")
    if int(before) > 1:
        PARANOID.write_text("1\n")
    try:
        yield dict(os.environ, LD_PRELOAD=shim) if shim else None
    finally:
        PARANOID.write_text(before)


def find_pyspy():
    found = shutil.which("py-spy")
    if found:
        return found
    home = BUILD / "bench-venv"
    if not (home / "bin" / "py-spy").exists():
        done = subprocess.run(
            "python3 -m venv %s && %s/bin/pip install -q py-spy" % (home, home),
            shell=True, capture_output=True, text=True)
        if done.returncode:
            print("py-spy is left out: it could not be installed")
            return None
    return str(home / "bin" / "py-spy")


def calibrate(python, kind, seconds):
    n = 4
    while True:
        done = subprocess.run([python, WORK, kind, str(n)],
                              capture_output=True, text=True, check=True)
        cpu = float(done.stdout)
        if cpu > 0.5:
            return max(1, int(n * seconds / cpu)), seconds
        n *= 2


def bench(python, kind, hz, args, pyspy):
    n, _ = calibrate(python, kind, args.seconds)
    table = modes(hz, pyspy)
    rows = {mode: [] for mode in table}
    for _ in range(args.rounds):
        base = None
        for mode, (prefix, lost) in table.items():
            with tempfile.TemporaryDirectory() as scratch:
                out = pathlib.Path(scratch)
                with as_samply_wants(mode) as env:
                    own, total, peak, said = run(
                        [*prefix, python, WORK, kind, str(n)], out, env)
                data = out / "data"
                size = data.stat().st_size if data.exists() else 0
                lost_count = lost(out) if lost and data.exists() else "-"
            base = base or own
            rows[mode].append((own / base, (total - own) / own, peak,
                               lost_count, size / own * 10))
    version = subprocess.run([python, "-V"], capture_output=True,
                             text=True).stdout.strip()
    print("\n%s, %s, %d Hz, %d rounds of %.0f CPU s" % (
        version, kind, hz, args.rounds, args.seconds))
    print("  %-26s %9s %10s %10s %6s %12s" % (
        "", "slowdown", "recorder", "memory", "lost", "size of 10 s"))
    for mode, values in rows.items():
        ratio, cpu, peak, lost_count, size = zip(*values)
        print("  %-26s %9.3f %9.1f%% %7.1f MB %6s %9.0f KB" % (
            mode, statistics.median(ratio), 100 * statistics.median(cpu),
            statistics.median(peak),
            max(lost_count, key=lambda x: -1 if x == "-" else x),
            statistics.median(size) / 1000))
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--python", default="/usr/bin/python3")
    args = parser.parse_args()
    pyspy = find_pyspy()
    if not SAMPLY:
        print("samply is left out: it is not installed "
              "(tools/peers BUILD samply)")
    for kind, hz in (("mixed", 999), ("mixed", 5000), ("calls", 999)):
        bench(args.python, kind, hz, args, pyspy)


if __name__ == "__main__":
    main()

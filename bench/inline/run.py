#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What inlined functions cost: CPU of `tickmap report --inline` against that of
`tickmap report`, the median of interleaved rounds, for a node program and a C++
program with -g, both recorded by `perf record --call-graph dwarf`. `perf
report --children`, which looks inlined functions up by default, is ended after
PERF_TIMEOUT seconds.

SECONDS_RECORDED (10), ROUNDS (7) and PERF_TIMEOUT (120) can be set in the
environment.
"""
import os
import pathlib
import re
import select
import shutil
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("TICKMAP_BUILD", ROOT / "build")).resolve()
TICKMAP = BUILD / "tickmap"
SECONDS = float(os.environ.get("SECONDS_RECORDED", "10"))
ROUNDS = int(os.environ.get("ROUNDS", "7"))
PERF_TIMEOUT = float(os.environ.get("PERF_TIMEOUT", "120"))
LIMIT = 2.0

NODE = """
const end = Date.now() + %d;
function parse(s) { return JSON.parse(s); }
function sortOf(n) {
  const a = [];
  for (let i = 0; i < n; i++) a.push({ k: (i * 7919) %% 1009, s: 'x' + i });
  a.sort((x, y) => x.k - y.k || (x.s < y.s ? -1 : 1));
  return a;
}
function words(t) {
  const m = new Map();
  for (const w of t.split(/[^a-z]+/)) m.set(w, (m.get(w) || 0) + 1);
  return m.size;
}
const { createHash } = require('crypto');
const { deflateSync } = require('zlib');
let sum = 0;
while (Date.now() < end) {
  const a = sortOf(500), text = JSON.stringify(a);
  sum += parse(text).length + words(text) + deflateSync(text).length;
  sum += createHash('sha256').update(text).digest()[0];
}
console.log(sum);
"""


def cpu(command, timeout=None):
    """User and system seconds; None if it did not end in time."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    pid = process.pid
    try:
        if timeout:
            # Its children (addr2line) count, too: they are waited for by it.
            process_wait(pid, timeout)
    except TimeoutError:
        process.kill()
        os.wait4(pid, 0)
        process.returncode = -9
        return None
    _, status, usage = os.wait4(pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return usage.ru_utime + usage.ru_stime


def process_wait(pid, timeout):
    fd = os.pidfd_open(pid)
    try:
        ready, _, _ = select.select([fd], [], [], timeout)
    finally:
        os.close(fd)
    if not ready:
        raise TimeoutError


def record(folder, name, command):
    data = folder / f"{name}.data"
    subprocess.run(["perf", "record", "-q", "-e", "cpu-clock", "-k", "1",
                    "--call-graph", "dwarf", "-F", "999", "-o", data, "--",
                    *map(str, command)],
                   cwd=folder, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL)
    assert data.exists()
    return data


def measure(name, data):
    plain = [TICKMAP, "report", data]
    inlined = [TICKMAP, "report", "--inline", data]
    rows = []
    cpu(plain)  # files come into the cache
    cpu(inlined)
    for _ in range(ROUNDS):
        rows.append((cpu(plain), cpu(inlined)))
    ratio = statistics.median(b / a for a, b in rows)
    text = subprocess.run(inlined, capture_output=True, text=True).stdout
    samples = re.search(r"samples +([\d,]+)", text)
    print(f"{name}: {samples.group(1)} samples; report "
          f"{statistics.median(a for a, _ in rows):.3f} s CPU, --inline "
          f"{statistics.median(b for _, b in rows):.3f} s: ratio "
          f"{ratio:.2f} (limit {LIMIT})")
    spent = cpu(["perf", "report", "--stdio", "--children", "-i", data],
                PERF_TIMEOUT)
    print(f"{name}: perf report --children with its inlined functions: "
          + (f"{spent:.1f} s CPU" if spent else
             f"not done after {PERF_TIMEOUT:g} s"))
    return ratio <= LIMIT


def main():
    good = True
    if not shutil.which("perf"):
        print("skipped: perf is not installed")
        return 0
    with tempfile.TemporaryDirectory(prefix="tickmap-bench-") as name:
        folder = pathlib.Path(name)
        program = folder / "inline"
        subprocess.run(["g++", "-O2", "-g", "-o", program,
                        ROOT / "tests/symbolize/inline.cc"], check=True)
        data = record(folder, "cpp", ["timeout", "-s", "INT", SECONDS,
                                      program, 1000000000])
        good &= measure("C++ with -g", data)
        if not shutil.which("node"):
            print("skipped: node is not installed")
        else:
            script = folder / "work.js"
            script.write_text(NODE % int(SECONDS * 1000))
            data = record(folder, "node",
                          ["node", "--perf-prof",
                           "--interpreted-frames-native-stack", script])
            good &= measure("node", data)
    print("within the limit" if good else "over the limit")
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A perf's view of the toy JIT against the truth that each sample carries.

The toy keeps the ids of the functions on its stack in r15, which perf record
writes into every sample: whatever perf inject and perf script make of the
sample can be compared with what was really running.

usage: toy_perf.py TOYJIT [PERF]    exit code 77: skipped, the reason is printed
"""
import collections
import contextlib
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

# perf 7.2 unwinds only through images whose path starts with /tmp/jitted-.
DUMPS = "/tmp"
ENTER_ID = 0x5a
LEAST = 0.99
ROUNDS = "1000"


class Skip(Exception):
    pass


def run(args, env):
    done = subprocess.run(args, env=env, capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(f"{args[:3]}: exit {done.returncode}: "
                             f"{done.stderr[-2000:]}")
    return done.stdout


def name_of(number):
    return "toy_enter" if number == ENTER_ID else f"toy_{number:02x}"


def true_stack(r15):
    """Names, innermost first; None: not in the toy's code."""
    ids = []
    while r15:
        ids.append(r15 & 0xff)
        r15 >>= 8
    if ids and ids[0] == 0:  # between the two instructions of an entry
        ids.pop(0)
    if not ids or ids[-1] != ENTER_ID:
        return None
    if not all(1 <= number <= 0x7f for number in ids):
        return None
    return [name_of(number) for number in ids]


def samples(text):
    for block in text.split("\n\n"):
        r15 = re.search(r"\bR15:0x([0-9a-f]+)", block)
        frames = [line.split(None, 1)[1].split("+")[0]
                  for line in block.splitlines()
                  if re.match(r"\s+[0-9a-f]+ \S", line)]
        if r15:
            yield true_stack(int(r15[1], 16)), frames


def judge(truth, frames):
    """right: named and unwound to main; edge: so is all but the leaf, which is
    on its way onto the true stack or off it."""
    if frames and frames[0] == "toy_probe":
        frames = frames[1:]
    rest = frames[len(truth):]
    if frames[:len(truth)] == truth:
        return "right" if "main" in rest else "cut"
    if frames and frames[0].startswith("toy_") and \
            frames[1:len(truth) + 1] == truth and "main" in rest:
        return "edge"
    return "wrong"


def check(toyjit, perf, graph, frames, churn, work):
    # perf keeps copies of images under HOME.
    env = dict(os.environ, HOME=work, LC_ALL="C", DEBUGINFOD_URLS="")
    plain = os.path.join(work, "plain.data")
    injected = os.path.join(work, "injected.data")
    # With dwarf it is among the registers anyway.
    registers = ["--user-regs=r15"] if graph == "fp" else []
    done = subprocess.run(
        [perf, "record", "-q", "-k", "1", "-e", "cpu-clock:u", "-F", "997",
         *registers, "--call-graph", graph, "-o", plain, toyjit, "--dir",
         DUMPS, "--frames", frames, "--churn", churn, "--rounds", ROUNDS],
        env=env, capture_output=True, text=True)
    if done.returncode:
        raise Skip("perf record: " + done.stderr.strip()[-300:])
    dump = done.stdout.strip()
    pid = re.search(r"jit-(\d+)\.dump$", dump)[1]
    try:
        run([perf, "inject", "--jit", "-i", plain, "-o", injected], env)
        text = run([perf, "script", "--no-inline", "-i", injected, "-F",
                    "ip,sym,uregs"], env)
    finally:
        for path in glob.glob(f"{DUMPS}/jitted-{pid}-*.so") + [dump]:
            with contextlib.suppress(FileNotFoundError):
                os.remove(path)

    verdicts = collections.Counter()
    example = None
    for truth, frames_seen in samples(text):
        if truth is None:
            continue
        verdict = judge(truth, frames_seen)
        verdicts[verdict] += 1
        if verdict in ("wrong", "cut") and not example:
            example = (verdict, truth, frames_seen)
    total = sum(verdicts.values())
    right = verdicts["right"] + verdicts["edge"]
    print(f"{graph}, {frames}, churn {churn}: {right} of {total} JIT samples "
          f"named rightly and unwound to main; {dict(verdicts)}")
    assert total >= 300, f"only {total} samples"
    assert verdicts["edge"] <= total // 50, verdicts
    assert right >= LEAST * total, (verdicts, example)


def has_bad_moves(perf):
    """perf 7.x ends with SIGSEGV at any record of moved code."""
    version = run([perf, "--version"], dict(os.environ))
    return int(re.search(r"(\d+)\.", version)[1]) >= 7


def check_all(toyjit, perf):
    """Frames of several layouts only without churn: perf's unwinders (6.1 with
    libunwind, 7.2 with libdw) keep the call frame information of the first
    code at an address for all that come after it."""
    churn = "reuse" if has_bad_moves(perf) else "move"
    for graph, frames, how in (("fp", "fp", churn),
                               ("dwarf,8192", "fp", churn),
                               ("dwarf,8192", "mixed", "none")):
        with tempfile.TemporaryDirectory(prefix="tickmap-toy-") as work:
            check(toyjit, perf, graph, frames, how, work)


def main():
    perf = sys.argv[2] if len(sys.argv) > 2 else shutil.which("perf")
    try:
        if not perf:
            raise Skip("perf is not installed")
        check_all(os.path.abspath(sys.argv[1]), perf)
    except Skip as reason:
        print("skipped:", reason)
        sys.exit(77)
    print("good")


if __name__ == "__main__":
    main()

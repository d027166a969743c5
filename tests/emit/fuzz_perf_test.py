#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""perf reads whatever a random sequence of calls has left, and does not fall.

usage: fuzz_perf_test.py FUZZ_ONCE [PERF]
exit code 77: skipped, the reason is printed
"""
import os
import random
import shutil
import subprocess
import sys
import tempfile

ROUNDS = 6
# A forked child's dump cannot be begun: perf is not to hear of it.
FULL = 21543434


def skip(reason):
    print("skipped:", reason)
    sys.exit(77)


def calls(rng):
    """Mostly publishes, so that there is something to read."""
    data = b""

    def number(value):
        return value.to_bytes(2, "big")

    data += number(0) + number(rng.choice((2, 3, 0x12, 0x1a)))
    for _ in range(rng.randrange(20, 60)):
        call = rng.choice((1, 2, 3, 4, 6, 8, 10) + (20,) * 20)
        data += number(call) + rng.randbytes(rng.randrange(2, 40))
    return data


def main():
    program = os.path.abspath(sys.argv[1])
    perf = sys.argv[2] if len(sys.argv) > 2 else shutil.which("perf")
    if not perf:
        skip("perf is not installed")
    version = subprocess.run([perf, "--version"], capture_output=True,
                             text=True).stdout
    # perf 7.x ends with SIGSEGV at any record of moved code.
    with_moves = int(version.split()[-1].split(".")[0]) < 7
    for seed in FULL, random.randrange(1 << 32):
        print("seed", seed)
        read_all(program, perf, with_moves, random.Random(seed))
    print("good")


def read_all(program, perf, with_moves, rng):
    dumps = 0
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory(prefix="tickmap-fuzz-") as work:
            env = dict(os.environ, HOME=work, LC_ALL="C",
                       TICKMAP_EMIT_FUZZ_KEEP=work)
            if not with_moves:
                env["TICKMAP_EMIT_FUZZ_NO_MOVES"] = "1"
            path = os.path.join(work, "calls")
            with open(path, "wb") as file:
                file.write(calls(rng))
            plain, out = os.path.join(work, "plain"), os.path.join(work, "out")
            done = subprocess.run(
                [perf, "record", "-q", "-k", "1", "-e", "cpu-clock:u", "-o",
                 plain, program, path], env=env, capture_output=True, text=True)
            if done.returncode and not os.path.exists(plain):
                skip("perf record: " + done.stderr.strip()[-300:])
            assert done.returncode == 0, done.stderr[-2000:]
            for _, _, files in os.walk(work):
                dumps += sum(name.endswith(".dump") for name in files)
            for args in (["inject", "--jit", "-i", plain, "-o", out],
                         ["script", "--no-inline", "-i", out]):
                done = subprocess.run([perf, *args], env=env, timeout=60,
                                      capture_output=True, text=True)
                assert done.returncode == 0, \
                    (args, done.returncode, done.stderr[-2000:])
    print(f"{dumps} dumps read by perf")
    assert dumps >= ROUNDS


main()

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""perf's own consumer reads what the emit library has written.

perf record -k 1, perf inject --jit and perf script must name the toy's
functions, unwind through them to main and show their lines; readelf must
accept the frames in the images that perf makes.

usage: perf_test.py PERF_TARGET [PERF]
exit code 77: skipped, the reason is printed
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

FUNCTIONS = {"toy_with_fp", "toy_without_fp", "toy_twin_a", "toy_twin_b"}
LOOPS = "300000000"
TWIN = bytes.fromhex("554889e548ffcf75fb5dc3")
# perf 7.2 unwinds only through images whose path starts with /tmp/jitted-.
DUMPS = "/tmp"


def skip(reason):
    print("skipped:", reason)
    sys.exit(77)


def run(args, env):
    done = subprocess.run(args, env=env, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{args[:3]}: exit {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


def stacks(text):
    """Lists of symbols, leaf first, one for each sample."""
    for block in text.split("\n\n"):
        frames = [line.split()[1] for line in block.splitlines()
                  if re.match(r"\s+[0-9a-f]+ ", line)]
        if frames:
            yield [frame.split("+")[0] for frame in frames]


def record(perf, target, work, env, graph, *more):
    data = os.path.join(work, "perf.data")
    done = subprocess.run(
        [perf, "record", "-q", "-k", "1", "-e", "cpu-clock:u", "-F", "997",
         "--call-graph", graph, "-o", data, target, DUMPS, *more],
        env=env, capture_output=True, text=True)
    if done.returncode:
        skip("perf record: " + done.stderr.strip()[-300:])
    return data, done.stdout.strip()


def check_stacks(samples, strangers):
    leaves = collections.Counter(stack[0] for stack in samples)
    print(dict(leaves))
    for name in FUNCTIONS:
        mine = [stack for stack in samples if stack[0] == name]
        assert len(mine) >= 20, f"{name}: {len(mine)} samples"
        whole = sum(stack[1:3] == ["spin_here", "main"] for stack in mine)
        assert whole >= 0.99 * len(mine), \
            f"{name}: {whole} of {len(mine)} unwind to main: {mine[0]}"
    assert leaves["[unknown]"] <= strangers, leaves


def images_of(dump):
    pid = re.search(r"jit-(\d+)\.dump$", dump)[1]
    return glob.glob(os.path.join(DUMPS, f"jitted-{pid}-*.so"))


def build_ids(images, env):
    return {re.search(r"Build ID: ([0-9a-f]+)",
                      run(["readelf", "-n", image], env))[1]
            for image in images}


def check_images(images, env):
    assert len(images) == len(FUNCTIONS), images
    frames = set()
    for image in images:
        text = run(["readelf", "--debug-dump=frames", image], env)
        assert text.count(" CIE\n") + text.count(" CIE ") >= 1, text
        fde = re.search(r"FDE cie=0+ pc=([0-9a-f]+)\.\.([0-9a-f]+)", text)
        symbol = run(["readelf", "-sW", image], env)
        value, size = re.search(
            r"1: ([0-9a-f]+) +(\d+) FUNC", symbol).groups()
        assert int(fde[1], 16) == int(value, 16), (text, symbol)
        assert int(fde[2], 16) - int(fde[1], 16) == int(size), (text, symbol)
        assert "DW_CFA_def_cfa_offset" in text, text
        assert "Augmentation data:" in text, text
        frames.add(run(["readelf", "-x", ".eh_frame", image], env))
    assert len(build_ids(images, env)) == len(images), "build ids are not unique"
    assert len(frames) == len(images), "images are not unique"


def code_of(image, work, env):
    text = os.path.join(work, "text")
    run(["objcopy", "-O", "binary", "--only-section=.text", image, text], env)
    with open(text, "rb") as file:
        return file.read()


def check_twins(perf, target, work, env):
    """Same code, same name: told apart by what lies behind the code."""
    plain, dump = record(perf, target, work, env, "fp", "1000", "twins")
    try:
        run([perf, "inject", "--jit", "-i", plain, "-o",
             os.path.join(work, "twins.data")], env)
        images = images_of(dump)
        assert len(images) == len(FUNCTIONS), images
        ids = build_ids(images, env)
        print(f"{len(images)} images, {len(ids)} build ids")
        assert len(ids) == len(images), "twins have one build id"
        codes = [code_of(image, work, env) for image in images]
        assert sum(code.startswith(TWIN) for code in codes) == 3, codes
    finally:
        remove(dump)


def check_lines(perf, data, env):
    text = run([perf, "script", "--no-inline", "-i", data, "-F",
                "ip,sym,srcline"], env)
    lines = set(re.findall(r"target\.toy:(\d+)", text))
    # The loop lies behind the second and last entry.
    assert "20" in lines, text[:2000]


def check(perf, plain, dump, work, env):
    data = os.path.join(work, "injected.data")
    run([perf, "inject", "--jit", "-i", plain, "-o", data], env)
    text = run([perf, "script", "--no-inline", "-i", data, "-F", "ip,sym"],
               env)
    samples = list(stacks(text))
    check_stacks(samples, len(samples) // 20)
    check_images(images_of(dump), env)
    check_lines(perf, data, env)


def remove(dump):
    for path in images_of(dump) + [dump]:
        with contextlib.suppress(FileNotFoundError):
            os.remove(path)


def main():
    perf = sys.argv[2] if len(sys.argv) > 2 else shutil.which("perf")
    if not perf:
        skip("perf is not installed")
    target = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="tickmap-emit-") as work:
        # perf keeps copies of images under HOME.
        env = dict(os.environ, HOME=work, LC_ALL="C", DEBUGINFOD_URLS="")
        plain, dump = record(perf, target, work, env, "dwarf,8192", LOOPS)
        try:
            check(perf, plain, dump, work, env)
        finally:
            remove(dump)
        check_twins(perf, target, work, env)
    print("good")


main()

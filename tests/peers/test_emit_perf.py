# SPDX-License-Identifier: MIT
"""The toy JIT's truth against a newer perf, and against samply.

TICKMAP_NEWER_PERF names the newer perf; without it, the first perf of version
6.2 or later among PATH's and /usr/lib/linux-tools' is taken.
"""
import glob
import gzip
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("TICKMAP_BUILD", ROOT / "build"))
TOYJIT = BUILD / "tests" / "emit" / "toyjit"
FUZZ = BUILD / "tests" / "emit" / "emit_fuzz_once"
sys.path.insert(0, str(ROOT / "tests" / "emit"))
import toy_perf  # noqa: E402


def version_of(perf):
    done = subprocess.run([perf, "--version"], capture_output=True, text=True)
    found = re.search(r"(\d+)\.(\d+)", done.stdout)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def newer_perf():
    named = os.environ.get("TICKMAP_NEWER_PERF")
    if named:
        return named
    candidates = [os.path.join(folder, "perf")
                  for folder in os.environ["PATH"].split(":")]
    candidates += glob.glob("/usr/lib/linux-tools/*/perf")
    for perf in candidates:
        if os.access(perf, os.X_OK) and version_of(perf) >= (6, 2):
            return perf
    pytest.skip("no perf newer than 6.1: TICKMAP_NEWER_PERF names one")


def test_a_newer_perf_names_and_unwinds_the_toy():
    if not TOYJIT.exists():
        pytest.skip(f"{TOYJIT} is not built")
    try:
        toy_perf.check_all(str(TOYJIT), newer_perf())
    except toy_perf.Skip as reason:
        pytest.skip(str(reason))


def test_a_newer_perf_survives_random_calls():
    if not FUZZ.exists():
        pytest.skip(f"{FUZZ} is not built")
    done = subprocess.run(
        [sys.executable, ROOT / "tests" / "emit" / "fuzz_perf_test.py", FUZZ,
         newer_perf()], capture_output=True, text=True)
    print(done.stdout)
    if done.returncode == 77:
        pytest.skip(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr


def toy_chains(profile):
    """Names of each sample's frames, innermost first, for every thread."""
    for thread in profile["threads"]:
        strings = profile.get("shared", {}).get("stringArray") or \
            thread.get("stringArray")
        func = thread["funcTable"]["name"]
        frame = thread["frameTable"]["func"]
        stack = thread["stackTable"]
        for at in thread["samples"]["stack"]:
            names = []
            while at is not None:
                names.append(strings[func[frame[stack["frame"][at]]]])
                at = stack["prefix"][at]
            yield names


def test_samply_names_the_toy(tmp_path):
    """samply walks frame pointers, so that the toy keeps them."""
    samply = shutil.which("samply")
    if not samply:
        pytest.skip("samply is not installed")
    out = tmp_path / "profile.json.gz"
    done = subprocess.run(
        [samply, "record", "--save-only", "-o", out, "--", TOYJIT, "--dir",
         tmp_path, "--frames", "fp", "--churn", "reuse", "--rounds", "1000"],
        capture_output=True, text=True)
    if done.returncode and "perf_event" in done.stderr:
        pytest.skip("samply: " + done.stderr[-300:])
    assert done.returncode == 0, done.stderr
    profile = json.loads(gzip.decompress(out.read_bytes()))
    jit = named = 0
    for names in toy_chains(profile):
        if "toy_enter" not in names:
            continue
        jit += 1
        depth = names.index("toy_enter")
        # A chain of the toy is at most three functions deep.
        named += depth <= 4 and all(
            re.fullmatch(r"toy_[0-9a-f]{2}|toy_probe", name)
            for name in names[:depth])
    print(f"samply: {named} of {jit} JIT stacks named down to toy_enter")
    assert jit >= 200
    assert named >= 0.99 * jit

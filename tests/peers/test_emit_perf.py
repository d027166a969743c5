# SPDX-License-Identifier: MIT
"""The toy JIT's truth against a newer perf, and against samply.

TICKMAP_NEWER_PERF names the newer perf; without it, the first perf of version
6.2 or later among PATH's and /usr/lib/linux-tools' is taken.
"""
import collections
import glob
import itertools
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
import samply

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("TICKMAP_BUILD", ROOT / "build"))
TOYJIT = BUILD / "tests" / "emit" / "toyjit"
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


@pytest.mark.parametrize("script, program", [
    ("perf_test.py", "emit_perf_target"),
    ("fuzz_perf_test.py", "emit_fuzz_once")],
    ids=["names_lines_and_look_alikes", "random_calls"])
def test_a_newer_perf_reads_what_the_hosts_does(script, program):
    program = BUILD / "tests" / "emit" / program
    assert program.exists(), f"{program} is not built"
    done = subprocess.run(
        [sys.executable, ROOT / "tests" / "emit" / script, program,
         newer_perf()], capture_output=True, text=True)
    print(done.stdout)
    if done.returncode == 77:
        pytest.skip(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr


# Ids are given in the order of compilation: the last function of a chain first.
CHAINS = [[f"toy_{at + depth:02x}" for depth in range(3)]
          for at in range(1, 13, 3)]


def is_chain(names, churn):
    """Whole: up to three functions of a chain, the entry, C code to main."""
    toys = list(itertools.takewhile(lambda name: name != "toy_enter", names))
    if toys and toys[0] == "toy_probe":
        toys = toys[1:]
    if "toy_enter" not in names or "main" not in names:
        return False
    if churn == "none":
        return toys in [chain[at:] for chain in CHAINS
                        for at in range(len(chain) + 1)]
    return len(toys) <= 3 and all(re.fullmatch("toy_[0-9a-f]{2}", name)
                                  for name in toys)


@pytest.mark.parametrize("churn", ["none", "reuse"])
def test_samply_names_the_toy(churn, tmp_path):
    """samply walks frame pointers, so the toy keeps them."""
    profile = samply.record(
        [TOYJIT, "--dir", tmp_path, "--frames", "fp", "--churn", churn,
         "--rounds", "1000"], tmp_path / "profile.json.gz")
    jit = whole = other = 0
    wrong = collections.Counter()
    for process, _, names in profile.stacks():
        if process != "toyjit":
            continue
        # In the toy's code, or in what nobody has a name for.
        if not any(re.match("toy_(enter|[0-9a-f]{2})$|0x", name)
                   for name in names):
            other += 1
            continue
        jit += 1
        if is_chain(names, churn):
            whole += 1
        else:
            wrong[";".join(names)] += 1
    print(f"samply, churn {churn}: {whole} of {jit} JIT stacks named and whole "
          f"to main; {other} samples outside of JIT code")
    assert jit >= 200
    assert whole >= 0.99 * jit, wrong.most_common(5)

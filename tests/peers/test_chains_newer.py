# SPDX-License-Identifier: MIT
"""Recordings of a newer perf, in each of its forms: our call chains are those
that it shows itself. TICKMAP_NEWER_PERF names it."""
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PERF = os.environ.get("TICKMAP_NEWER_PERF")


@pytest.mark.skipif(not PERF, reason="TICKMAP_NEWER_PERF is not set")
def test_our_chains_are_a_newer_perfs():
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider",
         "tests/cli/test_perf_chains.py", "-k", "perf_scripts or pipe"],
        cwd=ROOT, env=dict(os.environ, PERF=PERF), capture_output=True,
        text=True)
    print(done.stdout)
    assert done.returncode == 0, done.stdout[-4000:]
    assert " passed" in done.stdout

# SPDX-License-Identifier: MIT
"""A newer perf reads our recordings, and newer Pythons show their functions.

TICKMAP_NEWER_PERF names the perf; TICKMAP_PYTHONS the interpreters, for which
the build in TICKMAP_BUILD has the extension.
"""
import os
import subprocess

import pytest

from recorded import INTERPRETERS, ROOT, TRUTH, judge, label, python_frames
from recorded import record, window

CHAIN = str(ROOT / "tests" / "truth" / "chain.py")
WANTED = ["py::%s:%s" % (f, CHAIN) for f in ("foo", "bar", "baz")]
NEWER = [p for p in os.environ.get("TICKMAP_PYTHONS", "").split()
         if p in INTERPRETERS]
PERF = os.environ.get("TICKMAP_NEWER_PERF")

no_newer = pytest.mark.skipif(not NEWER, reason="TICKMAP_PYTHONS names none")
each_newer = pytest.mark.parametrize("python", NEWER or [None],
                                     ids=lambda p: label(p) if p else "none")


@pytest.mark.skipif(not PERF, reason="TICKMAP_NEWER_PERF is not set")
def test_a_newer_perf_opens_a_recording_without_a_warning(tmp_path):
    recording = record(tmp_path, ["/usr/bin/python3", CHAIN])
    done = subprocess.run(
        [PERF, "script", "--max-stack", "1000", "-i", recording.path, "-F",
         "comm,tid,time,ip,sym"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == ""
    samples = [s for s in done.stdout.split("\n\n") if s.strip()]
    assert len(samples) == recording.report()["samples"]
    done = subprocess.run([PERF, "report", "--stdio", "-i", recording.path],
                          capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == ""


@no_newer
@each_newer
def test_the_chain_on_newer_pythons(python, tmp_path):
    recording = record(tmp_path, [python, CHAIN])
    of_baz = right = 0
    for _, frames, count in recording.stacks():
        names = python_frames(frames)
        if WANTED[-1] in names:
            of_baz += count
            right += count if names[-3:] == WANTED else 0
    print("\n%s: %d of %d samples of baz are right" % (
        label(python), right, of_baz))
    assert of_baz >= 0.9 * 2 * 999
    assert right >= 0.99 * of_baz


@no_newer
@each_newer
def test_whole_stacks_on_newer_pythons(python, tmp_path):
    recording = record(tmp_path, [python, TRUTH, "--seconds", "6"])
    said = recording.said()
    # Not the imports: 3.14's importing nests deeper than the 64 KiB of stack
    # that the kernel copies.
    stacks = recording.stacks(*window(said["begin_ns"], said["last_ns"]))
    verdict = judge(stacks, {"py::<module>:" + TRUTH}, set(),
                    pairs_matter=False)
    verdict.show(label(python))
    assert verdict.share("whole") >= 0.999

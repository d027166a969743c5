"""foo, bar, baz: in this order, on every interpreter, or not at all."""
import pathlib

import pytest

from recorded import INTERPRETERS, ROOT, label, python_frames, record

CHAIN = str(ROOT / "tests" / "truth" / "chain.py")
WANTED = ["py::%s:%s" % (f, CHAIN) for f in ("foo", "bar", "baz")]

each_python = pytest.mark.parametrize("python", list(INTERPRETERS), ids=label)


@each_python
def test_the_chain_stands_in_every_sample_of_baz(python, tmp_path):
    recording = record(tmp_path, [python, CHAIN])
    of_baz = right = 0
    for _, frames, count in recording.stacks():
        names = python_frames(frames)
        if WANTED[-1] in names:
            of_baz += count
            right += count if names[-3:] == WANTED else 0
    report = recording.report()
    all_samples = report["samples"]
    assert of_baz == sum(f["total"] for f in report["functions"]
                         if f["name"] == WANTED[-1])
    print("\n%s: %d of %d samples of baz are right; %d samples outside" % (
        label(python), right, of_baz, all_samples - of_baz))
    assert of_baz >= 0.9 * 2 * 999
    assert right >= 0.99 * of_baz


@each_python
def test_without_trampolines_no_name_shows(python, tmp_path):
    recording = record(tmp_path, [python, CHAIN], ["--no-python"])
    stacks = recording.stacks()
    assert sum(count for _, _, count in stacks) >= 0.9 * 2 * 999
    assert not [f for _, frames, _ in stacks for f in frames if "py::" in f]

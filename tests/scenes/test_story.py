# SPDX-License-Identifier: MIT
"""foo calls bar calls baz, which works: whoever publishes and whoever records,
the names are there; ours stand in order, whole; without publishing there are
none. (Ours in our own recording: tests/truth/test_chain.py; samply:
tests/peers/test_story_samply.py.)

perf is asked with its dwarf stacks. Its frame pointer mode shows nothing in
interpreters built without frame pointers, whatever is published; tests/peers
has one built with them.
"""
import os
import shutil
import sys

import pytest

from recorded import INTERPRETERS, label
from story import (HZ, OFF, OUR_MAP, OURS, SECONDS, own_switches, under_perf,
                   under_tickmap)

PERF = shutil.which("perf")
DWARF = "dwarf,16384"

each_python = pytest.mark.parametrize("python", list(INTERPRETERS), ids=label)
by_perf = pytest.mark.skipif(not PERF, reason="perf is not installed")


@by_perf
@each_python
def test_perf_shows_our_chain_whole(python, tmp_path):
    verdict = under_perf(PERF, tmp_path, python, OURS, DWARF)
    verdict.show("%s, our jitdump, perf" % label(python))
    verdict.assert_whole()


@by_perf
@each_python
def test_perf_shows_the_names_of_a_perf_map(python, tmp_path):
    """A map has no unwind tables: perf stops at the innermost function."""
    verdict = under_perf(PERF, tmp_path, python, OUR_MAP, DWARF)
    verdict.show("%s, our perf map, perf" % label(python))
    assert verdict.of_baz >= 0.85 * float(SECONDS) * HZ


@by_perf
@each_python
def test_perf_shows_no_name_when_nothing_is_published(python, tmp_path):
    verdict = under_perf(PERF, tmp_path, python, OFF, DWARF)
    verdict.show("%s, off, perf" % label(python))
    assert verdict.samples >= 0.85 * float(SECONDS) * HZ
    assert verdict.named == 0


SWITCHES = [(python, switch) for python in INTERPRETERS
            for switch in own_switches(python)]
each_switch = pytest.mark.parametrize(
    "python, switch", SWITCHES or [(None, None)],
    ids=["%s %s" % (label(p), s) for p, s in SWITCHES] or ["none"])
has_switch = pytest.mark.skipif(
    not SWITCHES, reason="no Python with a perf switch of its own (3.12)")


@by_perf
@has_switch
@each_switch
def test_perf_shows_the_names_of_the_interpreters_own_switch(
        python, switch, tmp_path):
    verdict = under_perf(PERF, tmp_path, python,
                         own_switches(python)[switch], DWARF)
    verdict.show("%s, %s, perf" % (label(python), switch))
    assert verdict.of_baz >= 0.85 * float(SECONDS) * HZ
    if switch == "-X perf_jit":
        verdict.assert_whole()


@has_switch
@each_switch
def test_tickmap_shows_the_chain_of_the_interpreters_own_switch(
        python, switch, tmp_path):
    """Ours, which is on for everybody under record, stands back."""
    verdict, _ = under_tickmap(tmp_path, python, own_switches(python)[switch])
    verdict.show("%s, %s, tickmap" % (label(python), switch))
    verdict.assert_whole()


@pytest.mark.skipif(sys.platform != "darwin", reason="this is not macOS: "
                    "the test is written, and was not run")
def test_samply_shows_our_chain_whole_on_macos(tmp_path):
    from story import under_samply
    samply = os.environ.get("TICKMAP_SAMPLY") or shutil.which("samply")
    if not samply:
        pytest.skip("samply is not installed")
    for number, python in enumerate(INTERPRETERS):
        folder = tmp_path / str(number)
        folder.mkdir()
        verdict = under_samply(samply, folder, python, OURS)
        verdict.show("%s, our jitdump, samply" % label(python))
        verdict.assert_whole()

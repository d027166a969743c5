# SPDX-License-Identifier: MIT
"""What `tickmap repair` makes of damaged dumps is what strict readers accept:
perf inject --jit, the system's and a newer one, takes each of the
matrix without a complaint, and gives the samples the names that we do."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MATRIX = ROOT / "tests" / "matrix"
sys.path.insert(0, str(MATRIX))

from test_rows import ROWS, TICKMAP, leaves_of  # noqa: E402

MARKER = re.compile(rb"/gone/(jit-(\d+)\.dump)\0")

NO_CONVERSION = "ticks, and a recording without TIME_CONV"
FIRST_HIDDEN = "the memory is mapped, like a file, behind the first function: perf drops that one"
# What perf does not do with a good dump: every perf, the system's (6.1), newer.
ALWAYS = {
    "recording_byte_swapped": "a recording of the other byte order",
    "records_between": "records of types that it does not know",
    "unfinished": "an unfinished recording", "unfinished_within_a_sample": "an unfinished recording",
    "chain_contexts": "a guest's part in the chains: perf looks for the guest",
    "missing_file": "there is no dump", "empty_file": "there is no dump",
    "arch_clock": NO_CONVERSION, "arch_flag_but_ns": NO_CONVERSION,
    "map_and_dump_disagree": "half of the names are a perf map's",
    "in_dev_zero": FIRST_HIDDEN, "in_sysv": FIRST_HIDDEN, "in_hugepage": FIRST_HIDDEN,
    "in_nameless": FIRST_HIDDEN,
}
SYSTEM = {
    "container": "pids of another namespace",
    "pipe": "pipe mode", "attr_144": "attrs larger than its own",
}
NEWER = {"moved": "it crashes on any MOVE", "move_of_stale_address": "it crashes on any MOVE"}


def run(command, folder):
    return subprocess.run(["timeout", "20", *[str(c) for c in command]], cwd=folder, text=True,
                          errors="replace", stdin=subprocess.DEVNULL, capture_output=True)


def repaired(row, folder):
    """The row with its dumps repaired, where its markers say; None: no dump of
    it is one, or no marker names it."""
    recording = (MATRIX / "rows" / row / "perf.data").read_bytes()
    names = {m[1].decode() for m in MARKER.finditer(recording)}
    dumps = [d for d in (MATRIX / "rows" / row).glob("jit-*.dump") if d.name in names]
    if not dumps:
        return None
    (folder / "gg").mkdir()
    # As long as before, and below the folder that perf runs in.
    (folder / "perf.data").write_bytes(recording.replace(b"/gone/jit-", b"./gg//jit-"))
    for dump in dumps:
        done = run([TICKMAP, "repair", dump, "-o", folder / "gg" / dump.name], folder)
        if done.returncode:
            return None
    return folder / "perf.data"


def names_of(perf, folder):
    done = run([perf, "inject", "--jit", "-i", "perf.data", "-o", "injected.data"], folder)
    # The matrix's recordings do not say how many CPUs there were.
    said = "".join(line for line in (done.stdout + done.stderr).splitlines(True)
                   if "HEADER_NRCPUS" not in line)
    if done.returncode or said:
        return None, said
    done = run([perf, "script", "-i", "injected.data", "-F", "ip,sym"], folder)
    return [line.split(None, 1)[1] for line in done.stdout.splitlines()
            if len(line.split(None, 1)) == 2], done.stderr


def our_names(row):
    """Of the samples, by the dump as it was."""
    done = subprocess.run([TICKMAP, "export", "--format", "folded", "-o", "-",
                           MATRIX / "rows" / row / "perf.data"], capture_output=True)
    return {k.decode(errors="replace"): v for k, v in leaves_of(done.stdout).items()
            if not k.startswith(b"[")}


@pytest.mark.parametrize("newer", [False, True], ids=["perf", "newer perf"])
def test_perf_injects_every_repaired_dump_of_the_matrix(newer, tmp_path):
    perf = os.environ.get("TICKMAP_NEWER_PERF") if newer else shutil.which("perf")
    if not perf:
        pytest.skip("TICKMAP_NEWER_PERF is not set" if newer else "no perf")
    left_out = ALWAYS | (NEWER if newer else SYSTEM)
    tried = named = wanted = without = 0
    wrong = []
    for row in [r[0] for r in ROWS]:
        folder = tmp_path / row
        folder.mkdir()
        if row in left_out:
            continue
        if not repaired(row, folder):
            without += 1
            continue
        tried += 1
        ours = our_names(row)
        names, said = names_of(perf, folder)
        hit = sum(n in ours for n in names or [])
        named += hit
        wanted += sum(ours.values())
        if names is None or hit < sum(ours.values()):
            wrong.append((row, hit, ours, said))
    print("%s: %d rows, %d of %d samples named; %d rows without a dump; left out:" % (
        perf, tried, named, wanted, without))
    for row, why in left_out.items():
        print("  %s: %s" % (row, why))
    assert not wrong
    assert tried >= 40

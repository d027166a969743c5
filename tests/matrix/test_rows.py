# SPDX-License-Identifier: MIT
"""Every row of ROWS.tsv through the front door: report and export."""

import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TICKMAP = pathlib.Path(os.environ.get("TICKMAP_BUILD", ROOT / "build")) / "tickmap"
ROWS = [line.rstrip("\n").split("\t") for line in (HERE / "ROWS.tsv").open()
        if not line.startswith("#")]
LEFT_OUT = [line.rstrip("\n").split("\t") for line in (HERE / "LEFT_OUT.tsv").open()
            if not line.startswith("#")]


def run(*arguments):
    done = subprocess.run([TICKMAP, *map(str, arguments)], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def expected_leaves(text):
    leaves = {}
    text = re.sub(r"\bALL\b", " ".join("f%d=1" % i for i in range(10)), text)
    for name, count in re.findall(r"(\S.*?)=(\d+)(?: |$)", text):
        name = re.sub(r"^(\w)\*(\d+)$", lambda m: m[1] * int(m[2]), name)
        raw = name.encode().decode("unicode_escape").encode("latin-1")
        leaves[raw] = int(count)
    return leaves


def leaves_of(folded):
    leaves = {}
    for line in folded.split(b"\n"):
        if line:
            stack, count = line.rsplit(b" ", 1)
            leaf = stack.split(b";")[-1]
            leaves[leaf] = leaves.get(leaf, 0) + int(count)
    return leaves


def plain(leaves):
    """Formats want UTF-8: what is none is replaced, a byte by a character."""
    return {re.sub(b"[\x80-\xff]+", b"?", k.replace("\N{REPLACEMENT CHARACTER}".encode(), b"\xff")): v
            for k, v in leaves.items()}


def test_every_folder_is_in_the_table_and_the_other_way_round():
    assert [r[0] for r in ROWS] == list(dict.fromkeys(r[0] for r in ROWS))
    assert {r[0] for r in ROWS} == {p.name for p in (HERE / "rows").iterdir()}
    assert all(len(r) == 5 for r in ROWS)
    print("%d rows, %d kinds left out, with reasons" % (len(ROWS), len(LEFT_OUT)))


@pytest.mark.parametrize("origin, what, where, why", LEFT_OUT, ids=[r[1] for r in LEFT_OUT])
def test_what_is_left_out_is_checked_elsewhere(origin, what, where, why):
    path, _, name = where.partition(":")
    assert origin in ("perf", "producer", "peer") and why
    assert re.search(r"\b%s\b" % re.escape(name), (ROOT / path).read_text())


@pytest.mark.parametrize("name, origin, leaves, said, what", ROWS, ids=[r[0] for r in ROWS])
def test_row(tmp_path, name, origin, leaves, said, what):
    # Elsewhere and new: nothing is found by its place or its age.
    folder = tmp_path / "row"
    shutil.copytree(HERE / "rows" / name, folder)
    for path in folder.iterdir():
        os.utime(path)
    data = folder / "perf.data"
    before = sorted(p.name for p in folder.iterdir())

    assert plain(leaves_of(run("export", "--format", "folded", data))) == plain(
        expected_leaves(leaves))
    report = json.loads(run("report", "--json", data))
    assert report["samples"] == sum(expected_leaves(leaves).values())
    found = {f.split(":")[0] for f in report["findings"]}
    unresolved = {}
    for word in said.split():
        if "=" in word:
            unresolved[word.split("=")[0]] = int(word.split("=")[1])
        else:
            assert word in found
    assert {k: v for k, v in report["unresolved"].items() if v} == unresolved
    script = run("export", "--format", "perf-script", data)
    assert script.count(b"\n\n") >= report["samples"] - 1
    assert sorted(p.name for p in folder.iterdir()) == before


def test_lines_of_v8_are_those_of_the_source(tmp_path):
    shutil.copytree(HERE / "rows/v8_names_and_bias", tmp_path / "row")
    report = json.loads(run("report", "--json", tmp_path / "row/perf.data"))
    where = {f["name"]: (f["file"], f["line"]) for f in report["functions"]}
    assert where["f2"] == ("/a/app.js", 12)
    assert where["f3"][1] == 13 and not where["f3"][0]

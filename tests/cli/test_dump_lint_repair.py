# SPDX-License-Identifier: MIT
"""dump, lint and repair on the committed dumps and maps."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from command import ROOT, TICKMAP

sys.path.insert(0, str(ROOT / "tests/matrix"))

from form import JIT, PID, START, Recording

DUMPS = ROOT / "tests/codemap/dumps"
MAPS = ROOT / "tests/codemap/maps"
ALL = sorted(DUMPS.glob("*.dump"))


def objects(text):
    return [json.loads(line) for line in text.splitlines()]


def expected(path):
    """Events and findings as the generator wrote them."""
    text = path.with_suffix(".expected").read_bytes().decode(errors="replace")
    lines = text.split("\n")
    findings = [re.match(r"(JD\d+)[!]? @(\d+) (\d+)$", line) for line in lines]
    loads = [line for line in lines if line.startswith("LOAD")]
    return loads, [m.groups() for m in findings if m]


@pytest.mark.parametrize("path", ALL, ids=lambda p: p.stem)
def test_lint_says_each_finding_with_id_severity_offset_and_why(tickmap, path):
    _, findings = expected(path)
    run = tickmap("lint", "--json", path)
    *said, total = objects(run.out)
    assert [(f["id"], str(f["offset"]), str(f["value"])) for f in said] == findings
    for f in said:
        assert f["file"] == str(path) and f["what"] and f["why"] and f["value_is"]
        assert f["severity"] in ("error", "warning", "info")
    errors = [f for f in said if f["severity"] == "error"]
    assert run.code == (1 if errors else 0)
    assert total["errors"] == len(errors)
    assert total["errors"] + total["warnings"] + total["infos"] == len(said)

    text = tickmap("lint", path)
    assert text.code == run.code
    assert len(re.findall(r"^%s:0x[0-9a-f]+: (error|warning|info) JD\d{3} " % re.escape(str(path)),
                          text.out, re.M)) == len(said)


@pytest.mark.parametrize("path", ALL, ids=lambda p: p.stem)
def test_dump_prints_every_record_one_a_line(tickmap, path):
    loads, findings = expected(path)
    records = objects(tickmap("dump", "--json", path).out)
    seen = [r for r in records if r.get("record") == "LOAD"]
    assert [(r["avma"], r["time"], r["index"]) for r in seen] == [
        (r["avma"], int(l.split()[1]), int(l.split()[7])) for r, l in zip(seen, loads)]
    assert len(seen) == len(loads)
    assert len([r for r in records if "finding" in r]) == len(findings)
    if path.stem != "half_a_header":
        assert next(r["record"] for r in records if "record" in r) == "HEADER"
    text = tickmap("dump", path).out.splitlines()
    assert len(text) == len(records)
    assert all(re.match(r"0x[0-9a-f]+ [A-Z]", line) for line in text)


def test_dump_of_a_map_and_from_standard_input(tickmap, tmp_path):
    path = tmp_path / "any.name"
    path.write_bytes(b"0x7f00 1a a b\xff\x1b[1m\nbad\n7f20 0 none\n")
    run = tickmap("dump", path)
    assert run.code == 0
    assert run.out.splitlines() == [
        "0x0 ENTRY avma 0x7f00 size 0x1a a b\\xff\\x1b[1m",
        "0x0 PM008 name is not UTF-8: 8",
        "0x13 PM001 line is not an entry: 3",
        "0x17 ENTRY avma 0x7f20 size 0x0 none",
        "0x17 PM002 entry of size 0: 32544",
    ]
    piped = subprocess.run([TICKMAP, "dump", "-"], input=path.read_bytes(),
                           stdout=subprocess.PIPE, timeout=60)
    assert piped.stdout.decode() == run.out


def test_lines_of_debug_records(tickmap):
    first = [r for r in objects(tickmap("dump", "--json", "--lines", DUMPS / "all_kinds.dump").out)
             if r.get("record") == "DEBUG_INFO"][0]
    assert first["entries"] == 2
    assert first["lines"] == [
        {"avma": 0x1100, "line": 12, "column": 3, "file": "app/\u00fc.js"},
        {"avma": 0x1108, "line": 13, "column": 1, "file": "app/\u00fc.js"}]


def test_several_files_and_one_that_cannot_be_read(tickmap):
    run = tickmap("lint", DUMPS / "fork.dump", "absent.dump", MAPS / "mixed.map")
    assert run.code == 3 and "absent.dump" in run.err
    assert "fork.dump: jitdump, 8 functions" in run.out
    assert "4 functions recovered behind 1 damaged places" in run.out
    assert "mixed.map: perf map" in run.out
    assert tickmap("lint", DUMPS / "fork.dump", MAPS / "mixed.map").code == 1
    assert tickmap("lint", DUMPS / "all_kinds.dump").code == 0


@pytest.mark.parametrize("command", ["dump", "lint", "repair"])
def test_what_is_no_code_map_is_refused_with_what_to_type(tickmap, tmp_path, command):
    more = ["-o", tmp_path / "out"] if command == "repair" else []
    run = tickmap(command, *more, "/bin/true")
    assert run.code == 3 and "neither a jitdump nor a perf map" in run.err
    assert run.out == "" and not (tmp_path / "out").exists()
    assert tickmap(command, *more).code == 2
    assert tickmap(command, *more, "absent").code == 3
    assert tickmap(command, *more, tmp_path).code == 3
    text = tmp_path / "README"
    text.write_text("This is text.\n")
    run = tickmap(command, *more, text)
    assert run.code == (1 if command == "lint" else 3)


def test_a_recording_has_its_code_maps_judged(tickmap, recording):
    run = tickmap("lint", recording)
    assert run.code == 0, run.err
    assert re.search(r"\(.*\): (jitdump|perf map), [1-9]\d* functions", run.out)
    run = tickmap("dump", recording)
    assert run.code == 3 and "tickmap lint" in run.err


# ---- repair ----

@pytest.mark.parametrize("path", ALL + sorted(MAPS.glob("*.map")), ids=lambda p: p.name)
def test_repair_leaves_nothing_to_find_and_is_a_fixed_point(tickmap, tmp_path, path):
    out, again = tmp_path / "out", tmp_path / "again"
    before = path.read_bytes()
    run = tickmap("repair", path, "-o", out)
    if path.stem == "half_a_header":
        assert run.code == 3 and not out.exists()
        return
    assert run.code == 0 and run.out == ""
    assert run.err.count("\n") == 1
    said = [f for f in objects(tickmap("lint", "--json", out).out) if "id" in f]
    # What is not known cannot be mended.
    kept = {"arch_clock": "JD009", "times_equal_and_zero": "JD031"}.get(path.stem)
    assert [f["id"] for f in said if f["id"] not in ("PM009", kept)] == []
    assert tickmap("repair", out, "-o", again).code == 0
    assert again.read_bytes() == out.read_bytes()
    assert path.read_bytes() == before

    if path.suffix == ".dump":
        loads, _ = expected(path)
        names = {line.split(" [", 1)[1].rsplit("] [", 1)[0] for line in loads}
        kept = {r["name"] for r in objects(tickmap("dump", "--json", out).out)
                if r.get("record") == "LOAD"}
        assert kept == names


def test_repaired_fields(tickmap, tmp_path):
    out = tmp_path / "out"
    tickmap("repair", DUMPS / "v8_lines.dump", "-o", out)
    records = objects(tickmap("dump", "--json", "--lines", out).out)
    debug = [r for r in records if r["record"] == "DEBUG_INFO"]
    avma = 0x7F0000001000
    assert [(e["avma"], e["line"], e["file"]) for e in debug[0]["lines"]] == [
        (avma, 5, "a.js"), (avma + 25 - 8, 6, "a.js")]
    # Of the damaged names the numbers stay: entries lie equally far apart.
    assert [(e["avma"], e["line"], e["file"]) for e in debug[1]["lines"]] == [
        (avma + 0x100, 304, ""), (avma + 0x108, 305, "")]
    assert records[-1]["record"] == "CLOSE"
    header = records[0]
    assert (header["version"], header["bytes"], header["flags"]) == (1, 40, 0)


def test_functions_without_code_get_a_byte_that_is_nobody_elses(tickmap, tmp_path):
    """perf 6.1 never ends over a mapping of no bytes."""
    out = tmp_path / "out"
    tickmap("repair", DUMPS / "empty_functions.dump", "-o", out)
    loads = [(r["name"], r["size"]) for r in objects(tickmap("dump", "--json", out).out)
             if r["record"] == "LOAD"]
    # What lies in "one" comes before it, and is hidden by it.
    assert loads == [("label", 1), ("inside", 1), ("one", 25), ("alone", 1), ("two", 25)]


def test_repair_writes_to_standard_output_and_never_over_its_input(tickmap, tmp_path):
    path = tmp_path / "jit-1.dump"
    shutil.copy(DUMPS / "fork.dump", path)
    to_file = tickmap("repair", path, "-o", "out")
    assert to_file.code == 0
    piped = subprocess.run([TICKMAP, "repair", path, "-o", "-"], stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
    assert piped.returncode == 0 and piped.stdout == (tmp_path / "out").read_bytes()
    before = path.read_bytes()
    (tmp_path / "link").symlink_to(path)
    os.link(path, tmp_path / "hard")
    for same in (path, "link", "hard", "./jit-1.dump"):
        run = tickmap("repair", path, "-o", same)
        assert run.code == 2 and "OUT is FILE itself" in run.err
    assert path.read_bytes() == before
    assert tickmap("repair", path).code == 2
    assert tickmap("repair", path, path, "-o", "x").code == 2
    assert not (tmp_path / "x").exists()
    run = tickmap("repair", path, "-o", "/nonexistent/x")
    assert run.code == 4 and "/nonexistent/x" in run.err
    run = tickmap("repair", path, "-o", "/dev/full")
    assert run.code == 4


def test_of_equal_starts_in_a_map_the_last_stays(tickmap, tmp_path):
    path = tmp_path / "perf-1.map"
    path.write_bytes(b"0x10 8 old\r\n20 8 other\nnonsense\n  10\t10 new name\n30 0 none\n"
                     b"50 8 ends twice\r\r\n60 8 \r\r\n40 4 cut")
    assert tickmap("repair", path, "-o", "out").code == 0
    assert (tmp_path / "out").read_bytes() == (
        b"20 8 other\n10 10 new name\n50 8 ends twice\n40 4 cut\n")


def test_every_finding_is_documented_as_the_readers_know_it(tickmap, tmp_path):
    page = (ROOT / "docs/findings.md").read_text()
    code = re.sub(r"\\\n", "", (ROOT / "src/codemap/findings.h").read_text())
    rows = re.findall(r'X\((\w+), (\w+),\s*"([^"]*)",\s*"([^"]*)"', code)
    assert len(rows) > 35
    entries = re.findall(r"^### (\w+): (.*)\n\n\*(\w+)\*; the number is: (.*)\.$", page, re.M)
    assert entries == [(i, what, severity.lower(), value) for i, severity, what, value in rows]



def plain(name):
    """readelf has its own ways with what is not ASCII."""
    return re.sub(r"[^ -~]+", "?", name)


PERFS = [p for p in (shutil.which("perf"), os.environ.get("TICKMAP_NEWER_PERF")) if p]


def inject(perf, folder, dump):
    """The names of the images that perf makes of a dump's functions."""
    path = folder / ("jit-%d.dump" % PID)
    shutil.copy(dump, path)
    r = Recording()
    r.comm()
    r.map("//anon")
    r.marker(folder=str(folder))
    r.sample(START, JIT)
    (folder / "perf.data").write_bytes(r.bytes())
    done = subprocess.run([perf, "inject", "--jit", "-i", "perf.data", "-o", "injected.data"],
                          cwd=folder, env=dict(os.environ, HOME=str(folder)),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=120)
    images = list(folder.glob("jitted-*.so"))
    names = [re.findall(r" FUNC .* (\S.*)$", subprocess.run(
        ["readelf", "-Ws", image], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        ).stdout.decode(errors="replace"), re.M) for image in images]
    return done.returncode, sorted(n[0].split()[-1] for n in names if n)


@pytest.mark.skipif(not PERFS, reason="no perf here")
@pytest.mark.parametrize("name, broken", [
    ("fork", True), ("mono_header", True), ("indexes", True), ("tid64_60", True),
    ("size_zero", True), ("lying_header", True), ("header_words", True),
    ("v8_lines", False), ("times_go_back", False), ("unwinding_orders", False),
    ("half_a_block", True), ("all_kinds", False)])
@pytest.mark.parametrize("perf", PERFS, ids=lambda p: p.strip("/").replace("/", "-"))
def test_perf_inject_takes_all_of_a_repaired_dump(tickmap, tmp_path, perf, name, broken):
    if name == "all_kinds" and perf != shutil.which("perf"):
        pytest.skip("newer perfs crash on any MOVE")
    source = DUMPS / (name + ".dump")
    assert tickmap("repair", source, "-o", "repaired").code == 0
    wanted = sorted((r["name"].split() or [""])[-1]
                    for r in objects(tickmap("dump", "--json", tmp_path / "repaired").out)
                    if r.get("record") == "LOAD")
    for folder in ("before", "after"):
        (tmp_path / folder).mkdir()
    code, names = inject(perf, tmp_path / "after", tmp_path / "repaired")
    assert code == 0
    # readelf shows the section number last where a name is empty.
    assert [plain(n) for n in names if n != "1"] == [plain(n) for n in wanted if n]
    if broken:  # or the test would show nothing
        assert inject(perf, tmp_path / "before", source) != (0, names)


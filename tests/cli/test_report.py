# SPDX-License-Identifier: MIT
"""report and export on a real recording."""

import json
import os
import pty
import re
import select
import stat
import subprocess

import pytest

from command import TICKMAP


def facts(tickmap, *arguments):
    run = tickmap("report", "--json", *arguments)
    assert run.code == 0, run.err
    return json.loads(run.out)


def by_name(report, start):
    rows = [f for f in report["functions"] if f["name"].startswith(start)]
    assert len(rows) == 1, rows
    return rows[0]


def test_json_has_every_fact_of_the_contract(tickmap, recording):
    got = facts(tickmap, recording)
    for key in ("samples", "lost", "truncated", "jit_samples", "jit_resolved", "unresolved",
                "clock", "functions", "event", "frequency", "cpu_seconds", "start_ns", "end_ns",
                "threads", "truncated_by", "hints", "finished"):
        assert key in got
    assert set(got["clock"]) == {"domain", "method", "code_maps", "offset_ns", "error_ns",
                                 "violations"}
    for key in ("name", "dso", "file", "line", "self", "total", "managed_self"):
        assert all(key in f for f in got["functions"])
    assert got["samples"] > 100 and len(got["threads"]) >= 2
    assert 0.3 * got["samples"] / 999 < got["cpu_seconds"] < 3 * got["samples"] / 999
    assert sum(t["samples"] for t in got["threads"]) == got["samples"]
    assert sum(f["self"] for f in got["functions"]) == got["samples"]
    assert all(f["self"] <= f["total"] <= got["samples"] for f in got["functions"])
    spin = by_name(got, "py::spin:")
    assert spin["dso"] == "[jit]" and spin["managed_self"] > 0.2 * got["samples"]


def test_text_says_how_good_the_data_is_and_fits_eighty_columns(tickmap, recording):
    run = tickmap("report", recording, COLUMNS="80")
    assert run.code == 0 and run.err == ""
    first = run.out.split("FUNCTIONS")[0]
    for word in ("samples", "on CPU", "lost", "truncated", "JIT", "clock", "unresolved"):
        assert word in first
    assert "py::spin" in run.out and "CALL TREE" in run.out
    assert "_PyEval_EvalFrameDefault" not in re.search(
        r"py::main.*?\n\n", run.out.split("CALL TREE")[1], re.S)[0]
    assert max(map(len, run.out.split("\n"))) <= 80
    assert max(map(len, tickmap("report", recording, COLUMNS="60").out.split("\n"))) <= 60
    # Nobody's terminal: names stand whole.
    assert "py::spin:/" in tickmap("report", recording).out
    assert "CALL TREE" not in tickmap("report", "--no-children", recording).out


def test_the_default_file_is_tickmap_data(tickmap, recording, tmp_path):
    (tmp_path / "tickmap.data").write_bytes(recording.read_bytes())
    assert tickmap("report").out == tickmap("report", recording).out
    assert tickmap("export", "-f", "folded").out == \
        tickmap("export", "-f", "folded", recording).out != ""


def test_pid_and_tid_filter(tickmap, recording):
    whole = facts(tickmap, recording)
    for thread in whole["threads"]:
        got = facts(tickmap, recording, "--tid", thread["tid"])
        assert {t["tid"] for t in got["threads"]} == {thread["tid"]}
        assert got["samples"] + got["filtered"] == whole["samples"]
    tids = ",".join(str(t["tid"]) for t in whole["threads"])
    assert facts(tickmap, recording, "--tid", tids)["samples"] == whole["samples"]
    run = tickmap("report", recording, "--pid", "2147483647")
    assert run.code == 1 and run.out == ""
    assert "leave out all %d samples" % whole["samples"] in run.err


def test_time_ranges_split_a_recording_without_remainder(tickmap, recording):
    whole = facts(tickmap, recording)
    count = lambda range_: facts(tickmap, recording, "--time", range_)["samples"]
    assert count("0%-50%") + count("50%-100%") == whole["samples"]
    assert 0 < count("0%,50%") < whole["samples"]
    middle = (whole["start_ns"] + whole["end_ns"]) // 2
    at = "%d.%09d" % divmod(middle, 10**9)
    assert count("," + at) + count(at + ",") == whole["samples"]
    since = "+%d.%09d" % divmod(middle - whole["start_ns"], 10**9)
    assert count("," + since) == count("," + at)


def test_by_thread_has_a_part_for_each(tickmap, recording):
    whole = facts(tickmap, recording)
    out = tickmap("report", "--by", "thread", recording).out
    assert out == tickmap("report", "-T", recording).out
    assert {int(t) for t in re.findall(r"^thread (\d+) of process", out, re.M)} == \
        {t["tid"] for t in whole["threads"]}
    processes = re.findall(r"^process (\d+)", tickmap("report", "-P", recording).out, re.M)
    assert {int(p) for p in processes} == {t["pid"] for t in whole["threads"]}


def test_limit_bounds_the_table(tickmap, recording):
    table = lambda *o: tickmap("report", recording, *o).out.split("FUNCTIONS")[1] \
        .split("CALL TREE")[0]
    rows = lambda text: len(re.findall(r"^ +(?:<?[\d.]+% +){3}", text, re.M))
    assert rows(table("-n", "3")) == 3
    assert rows(table()) <= 30
    assert rows(table("--limit", "0")) > 30


def test_folded_counts_add_up_and_keep_the_interpreter_unless_asked(tickmap, recording):
    whole = facts(tickmap, recording)
    both = []
    for options in ([], ["--no-interpreter-frames"]):
        run = tickmap("export", "--format", "folded", recording, "-o", "-", *options)
        assert run.code == 0 and run.err == ""
        lines = [line.rsplit(" ", 1) for line in run.out.splitlines()]
        assert sum(int(n) for _, n in lines) == whole["samples"]
        spin = sum(int(n) for s, n in lines if ";py::spin:" in s)
        assert spin == by_name(whole, "py::spin:")["total"]
        both.append([s for s, _ in lines if ";py::spin:" in s])
    assert any("_PyEval_EvalFrameDefault" in s for s in both[0])
    assert not any("_PyEval_EvalFrameDefault" in s for s in both[1])


def test_export_writes_a_whole_file_or_none(tickmap, recording, tmp_path):
    out = tmp_path / "p.html"
    run = tickmap("export", recording, "--format", "html", "-o", out, "--title", "A <b>title")
    assert run.code == 0 and run.out == run.err == ""
    page = out.read_text()
    assert page.startswith("<!DOCTYPE html>") and page.endswith("</html>\n")
    assert "A \\u003cb>title" in page
    assert stat.S_IMODE(out.stat().st_mode) == 0o666 & ~current_umask()
    assert os.listdir(tmp_path) == ["p.html"]
    # What fails leaves the old file and nothing else.
    run = tickmap("export", tmp_path / "absent", "--format", "html", "-o", out)
    assert run.code == 3 and out.read_text() == page
    small = subprocess.run(["bash", "-c", 'ulimit -f 8; trap "" XFSZ; exec "$@"', "-", TICKMAP,
                            "export", recording, "-f", "html", "-o", out],
                           stderr=subprocess.PIPE)
    assert small.returncode == 4 and b"cannot write: File too large" in small.stderr
    assert os.listdir(tmp_path) == ["p.html"] and out.read_text() == page


def current_umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_export_follows_links_and_writes_devices_in_place(tickmap, recording, tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    assert tickmap("export", recording, "-f", "folded", "-o", "link").code == 0
    assert (tmp_path / "link").is_symlink() and "py::spin" in (tmp_path / "real").read_text()
    assert tickmap("export", recording, "-f", "folded", "-o", "/dev/null").code == 0
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert tickmap("export", recording, "-f", "folded", "-o", "no/such/folder").code == 4
    full = tickmap("export", recording, "-f", "folded", "-o", "/dev/full")
    assert full.code == 4 and "No space left" in full.err


def test_a_full_disk_behind_standard_output_is_an_error(recording):
    with open("/dev/full", "w") as full:
        for words in (["report"], ["report", "--json"], ["export", "-f", "folded"]):
            run = subprocess.run([TICKMAP, *words, recording], stdout=full,
                                 stderr=subprocess.PIPE)
            assert run.returncode == 4 and b"No space left" in run.stderr


@pytest.mark.parametrize("content", [b"", b"PERFILE2", b"not a recording at all\n" * 100])
def test_what_is_no_recording_is_bad_input(tickmap, tmp_path, content):
    (tmp_path / "x").write_bytes(content)
    for words in (["report"], ["export", "-f", "folded"]):
        run = tickmap(*words, "x")
        assert run.code == 3 and run.out == "" and run.err.startswith("tickmap: x: ")
        assert "record first" not in run.err


def test_a_folder_is_bad_input(tickmap):
    assert tickmap("report", "/").code == 3


def test_nothing_to_show_is_said_with_a_reason(tickmap, empty_recording, tmp_path):
    run = tickmap("report", empty_recording)
    assert run.code == 1 and run.out == "" and "no samples" in run.err
    run = tickmap("report", "--json", empty_recording)
    assert run.code == 1 and json.loads(run.out)["samples"] == 0
    run = tickmap("export", "-f", "html", "-o", "p.html", empty_recording)
    assert run.code == 1 and not (tmp_path / "p.html").exists()


def on_terminal(*words, **env):
    """What the command prints when its output is a terminal."""
    master, slave = pty.openpty()
    process = subprocess.Popen([TICKMAP, *map(str, words)], stdout=slave, stderr=slave,
                               env={**os.environ, "TERM": "xterm", **env})
    os.close(slave)
    out = b""
    while select.select([master], [], [], 60)[0]:
        try:
            chunk = os.read(master, 65536)
        except OSError:
            break
        if not chunk:
            break
        out += chunk
    process.wait(60)
    os.close(master)
    return out.decode()


def test_colour_is_for_terminals_that_did_not_say_no(tickmap, recording):
    assert "\033[1m" in on_terminal("report", recording)
    assert "\033[1m" not in on_terminal("report", recording, NO_COLOR="1")
    assert "\033[1m" in on_terminal("report", recording, NO_COLOR="")
    assert "\033[1m" not in on_terminal("report", recording, TERM="dumb")
    assert "\033" not in tickmap("report", recording).out

# SPDX-License-Identifier: MIT
"""The text report, JSON, folded stacks and perf script's text."""

import collections
import json
import random
import re
import subprocess

import pytest

import naive
from description import (JIT, MAKE_PROFILE, NATIVE, NOT_IN_MAP, STRIPPED, UNRESOLVED,
                         Profile, app)


def random_profile(seed):
    """Small alphabets, so that names, frames and stacks meet again."""
    r = random.Random(seed)
    p = Profile(event="cpu-clock", frequency=r.choice([0, 99, 4000]))
    seen = set()
    for _ in range(r.randint(1, 30)):
        kind = r.randrange(5)
        f = dict(name=r.choice(["py::f", "g", "h h", "a;b", "op<x>", "\u00e9"])
                 + r.choice(["", "", "1", ";"]),
                 kind=kind, dso=r.choice(["libc.so.6", "[jit]", "a b.so"]),
                 file=r.choice(["", "", "/x/y.c"]), line=r.choice([0, 0, 7, 9]),
                 interpreter=r.random() < 0.4 and kind == NATIVE,
                 reason=r.choice([STRIPPED, NOT_IN_MAP]) if kind == UNRESOLVED else 0)
        key = tuple(f.values())
        if key not in seen:
            seen.add(key)
            p.frame(**f)
    for i in range(r.randint(1, 4)):
        p.thread(r.choice([1, 2]), 10 + i, r.choice(["a", "b b", "c;d", ""]))
    for _ in range(r.randint(1, 120)):
        p.sample(r.randrange(len(p.threads)), r.randint(1, 9),
                 *(r.randrange(len(p.frames)) for _ in range(r.randint(0, 12))),
                 truncated=r.choice([0, 0, 1, 2]))
    return p


SEEDS = range(40)


@pytest.mark.parametrize("name, form, options", [
    ("report.txt", "text", []),
    ("report-colour.txt", "text", ["colour"]),
    ("report-interpreter.txt", "text", ["interpreter"]),
    ("report-no-children.txt", "text", ["no-children"]),
    ("report-narrow.txt", "text", ["width=50", "limit=5"]),
    ("report-wide.txt", "text", ["width=0"]),
    ("report-by-thread.txt", "text", ["by-thread"]),
    ("report-by-process.txt", "text", ["by-process", "limit=1"]),
    ("report.json", "json", []),
    ("stacks.folded", "folded", []),
    ("stacks-no-interpreter.folded", "folded", ["no-interpreter"]),
])
def test_the_output_is_the_golden_one(golden, name, form, options):
    golden(name, app().write(form, *options))


def test_perf_script_text_is_the_golden_one(golden):
    p = app()
    p.samples = [(t, 1, trunc, stack) for t, _, trunc, stack in p.samples[:4] + p.samples[-4:]]
    golden("script.txt", p.write("perf-script"))


def test_no_line_of_a_report_is_wider_than_the_terminal():
    for seed in SEEDS:
        p = random_profile(seed)
        p.frame("n" * 300)
        p.frame("\u00fc" * 300, JIT, "[jit]")
        p.sample(0, 3, len(p.frames) - 2, len(p.frames) - 1)
        for width in (60, 80, 200):
            text = p.write("text", "width=%d" % width).decode()
            assert max(map(len, text.split("\n"))) <= width


def test_colour_changes_nothing_but_colour():
    p = app()
    coloured = p.write("text", "colour").decode()
    assert "\033[" in coloured
    assert re.sub(r"\033\[\d*m", "", coloured) == p.write("text").decode()


@pytest.mark.parametrize("seed", SEEDS)
def test_json_counts_what_a_look_at_every_sample_counts(seed):
    p = random_profile(seed)
    got = json.loads(p.write("json"))
    assert {(f["name"], f["dso"], f["file"], f["line"]):
            [f["self"], f["total"], f["managed_self"]] for f in got["functions"]} \
        == naive.counts(p)
    assert len(got["functions"]) == len(naive.counts(p))
    total = sum(n for _, n, _, _ in p.samples)
    assert got["samples"] == total
    assert got["truncated"] == sum(n for _, n, t, _ in p.samples if t)
    assert sum(got["truncated_by"].values()) == got["truncated"]
    assert sum(t["samples"] for t in got["threads"]) == total
    by_thread = collections.Counter()
    for t, n, _, _ in p.samples:
        by_thread[p.threads[t]] += n
    assert {(t["pid"], t["tid"], t["comm"]): t["samples"] for t in got["threads"]} == by_thread


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("interpreter", [True, False])
def test_folded_stacks_are_those_of_the_samples(seed, interpreter):
    p = random_profile(seed)
    text = p.write("folded", *([] if interpreter else ["no-interpreter"])).decode()
    lines = text.split("\n")
    assert lines.pop() == ""
    got = {}
    for line in lines:
        stack, count = line.rsplit(" ", 1)
        assert stack not in got, "one stack a line"
        got[stack] = int(count)
    assert got == naive.folded(p, interpreter)


def table(text):
    """name -> shares of the table of functions, without the interpreter."""
    rows = {}
    body = text[text.index("FUNCTIONS"):].split("CALL TREE")[0]
    for m in re.finditer(r"^ +((?:<?[\d.]+% +)+)(\S.*?)(?:  .*)?$", body, re.M):
        rows[m[2]] = [float(s.strip("<%")) for s in m[1].split()]
    return rows


def test_what_the_interpreter_did_counts_for_the_python_function_it_ran():
    p = Profile()
    t = p.thread(1, 1, "p")
    start = p.frame("Py_RunMain", interpreter=True)
    ev = p.frame("_PyEval_EvalFrameDefault", interpreter=True)
    f, g = p.python("f:/a.py"), p.python("g:/a.py")
    lib = p.frame("inflate", dso="libz.so.1")
    p.sample(t, 60, start, f, ev)
    p.sample(t, 25, start, f, ev, lib)
    p.sample(t, 10, start, f, ev, g)
    p.sample(t, 5, start)  # no Python yet: shown
    text = p.write("text").decode()
    assert "_PyEval" not in text
    assert table(text) == {"py::f": [85, 60, 95], "py::g": [10, 10, 10],
                           "inflate": [0, 25, 25], "Py_RunMain": [0, 5, 5]}
    assert table(p.write("text", "interpreter").decode())["_PyEval_EvalFrameDefault"] \
        == [0, 60, 95]


def test_a_busy_library_function_is_in_a_short_table_of_many_python_functions():
    p = Profile()
    t = p.thread(1, 1, "p")
    busy = p.frame("sha256_block", dso="libcrypto.so.3")
    for i in range(50):
        f = p.python("f%d:/a.py" % i)
        p.sample(t, 1, f)
    p.sample(t, 40, f, busy)
    rows = table(p.write("text", "limit=3").decode())
    assert "sha256_block" in rows and "py::f49" in rows and len(rows) == 3


def test_recursion_is_one_line_that_says_how_deep():
    p = Profile()
    t = p.thread(1, 1, "p")
    main, a, b, c = (p.frame(n, dso="x") for n in ("main", "is_even", "is_odd", "walk"))
    p.sample(t, 10, main, *[a, b] * 20, a)
    p.sample(t, 10, main, *[c] * 40)
    tree = p.write("text").decode().split("CALL TREE")[1]
    assert re.search(r"100\.0% .* main", tree)
    assert len(re.findall("walk", tree)) == 1 and "walk  \u00d740 deep" in tree
    assert len(re.findall("is_odd", tree)) == 1
    assert len(re.findall("is_even", tree)) <= 2


def test_a_long_run_of_calls_is_shortened_unless_all_is_asked_for():
    p = Profile()
    t = p.thread(1, 1, "p")
    p.sample(t, 10, *(p.frame("step_%02d" % i, dso="x") for i in range(30)))
    tree = p.write("text").decode().split("CALL TREE")[1]
    assert "26 calls that only pass on" in tree
    assert re.findall(r"step_\d\d", tree) == ["step_00", "step_01", "step_28", "step_29"]
    tree = p.write("text", "limit=0").decode().split("CALL TREE")[1]
    assert re.findall(r"step_\d\d", tree) == ["step_%02d" % i for i in range(30)]


def test_control_bytes_do_not_reach_the_terminal():
    p = Profile(event="cpu\\x1b[31m", command="a\\x07b", hint=["h\\x1bh"])
    t = p.thread(1, 1, "c\\x1b]0;x\\x07")
    p.sample(t, 3, p.frame("f\\x1b[2J\\x0a;g", dso="d\\x1bd"))
    for form in ("text", "folded", "perf-script"):
        for options in ([], ["by-thread"]) if form == "text" else ([],):
            got = p.write(form, *options)
            assert not re.search(rb"[\x00-\x08\x0b-\x1f\x7f]", got), got
    assert p.write("folded") == b"c?]0:x?;f?[2J?:g 3\n"


def test_bytes_that_are_not_utf8_leave_valid_json():
    p = Profile()
    t = p.thread(1, 1, "c\\xff")
    p.sample(t, 1, p.frame("f\\xfe\\xc3", JIT, "[jit]"))
    got = json.loads(p.write("json").decode())
    assert got["functions"][0]["name"] == "f\ufffd\ufffd"


# The patterns by which speedscope and stackcollapse-perf read perf's text.
HEAD = re.compile(r"^(\S.*?)\s+(\d+)/(\d+)\s+\[(\d+)\]\s+(\d+\.\d+):\s+(\S+):\s*$")
LINE = re.compile(r"^\s*(\w+)\s*(.+) \((\S*)\)$")


@pytest.mark.parametrize("seed", SEEDS)
def test_perf_script_text_is_read_back_as_the_same_stacks(seed):
    p = random_profile(seed)
    got = collections.Counter()
    text = p.write("perf-script").decode()
    for block in text.split("\n\n")[:-1]:
        head, *lines = block.split("\n")
        m = HEAD.match(head)
        assert m, head
        frames = []
        for line in lines:
            n = LINE.match(line)
            assert n, line
            frames.append((n[2], n[3]))
        got[m[1], int(m[2]), int(m[3]), tuple(reversed(frames))] += 1
    want = collections.Counter()
    for thread, n, _, stack in p.samples:
        pid, tid, comm = p.threads[thread]
        frames = []
        for f in stack:
            frame = p.frames[f]
            line = ":%d" % frame["line"] if naive.needs_line(p, frame) else ""
            frames.append((frame["name"] + line, frame["dso"].replace(" ", "_")))
        want[comm or "[unknown]", pid, tid, tuple(frames)] += n
    assert got == want


def test_perf_script_stamps_seconds_of_the_recordings_clock():
    p = Profile(event="cpu-clock")
    t = p.thread(7, 8, "x")
    p.sample(t, 2, p.frame("f", dso="d"))
    heads = p.write("perf-script").decode().split("\n")[::3]
    assert heads[0] == "x 7/8 [000] 5.000000: cpu-clock:"
    assert heads[1] == "x 7/8 [000] 5.001001: cpu-clock:"


def test_a_hundred_thousand_stacks_are_written_in_seconds():
    p = Profile()
    t = p.thread(1, 1, "p")
    frames = [p.frame("f%d" % i, dso="x") for i in range(500)]
    r = random.Random(1)
    for _ in range(20000):
        p.sample(t, 1, *(frames[r.randrange(500)] for _ in range(20)))
    for form in ("text", "json", "folded", "html"):
        got = subprocess.run([MAKE_PROFILE, form], input=p.text().encode(),
                             stdout=subprocess.PIPE, check=True, timeout=20).stdout
        assert got

# SPDX-License-Identifier: MIT
"""A recording that begins later than the program it is of: functions that were
entered before it have their names."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import pytest

from recorded import BUILD, INTERPRETERS, TICKMAP, Recording, label
from scene import PROGRAMS, Rows, Starts, Truth, judge, row_of

PERF = shutil.which("perf")

each_python = pytest.mark.parametrize("python", list(INTERPRETERS), ids=label)


class Activated:
    """activated.py, up to the point where it waits to be recorded."""

    def __init__(self, python, folder, times=0):
        self.truth = folder / "truth"
        self.truth.mkdir()
        env = {k: v for k, v in os.environ.items()
               if not k.startswith(("PYTHON", "TICKMAP"))}
        env.update(SCENE_TRUTH=str(self.truth),
                   PYTHONPATH=str(BUILD / "python"))
        self.process = subprocess.Popen(
            [python, str(PROGRAMS / "activated.py"), str(times)], env=env,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pids = [int(n) for n in self.process.stdout.readline().split()]

    def go(self):
        self.process.stdin.write(b"gg")
        self.process.stdin.flush()

    def truths(self):
        assert self.process.wait(60) == 0
        found = [Truth(p) for p in sorted(self.truth.glob("*.json"))]
        assert sorted(t.pid for t in found) == sorted(self.pids)
        return found

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        for pid in self.pids:
            for path in pathlib.Path("/tmp").glob("*-%d*" % pid):
                if path.name in ("jit-%d.dump" % pid, "perf-%d.map" % pid) or \
                        path.name.startswith("jitted-%d-" % pid):
                    path.unlink()


def check(rows, truths, title):
    rows.show(title)
    assert rows.counts["whole"] >= 0.9 * 999 * sum(t.cpu for t in truths)
    assert rows.good >= 0.99 * rows.in_python


def stop_when_done(recorder, program, number):
    truths = program.truths()
    recorder.send_signal(number)
    _, said = recorder.communicate(timeout=120)
    return truths, said


@each_python
def test_attaching_to_a_program_that_activated_itself_and_to_its_child(
        python, tmp_path):
    data = tmp_path / "t.data"
    with Activated(python, tmp_path, 20) as program:
        recorder = subprocess.Popen(
            [TICKMAP, "record", "-o", str(data),
             *[w for pid in program.pids for w in ("-p", str(pid))]],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while not data.exists() or not data.stat().st_size:
            time.sleep(0.05)
        time.sleep(0.3)
        program.go()
        truths, said = stop_when_done(recorder, program, signal.SIGINT)
    assert recorder.returncode == 0, said
    check(judge(Recording(data, "", said, 0), truths), truths,
          "%s, tickmap attached" % label(python))


def perf_rows(text, truths):
    """perf script's samples, each in its row."""
    rows = Rows()
    by_pid = {t.pid: t for t in truths}
    for block in text.split("\n\n"):
        head = re.match(r"\s*(\d+)/\d+\s+(\d+)\.(\d{9}):", block)
        names = [line.split(None, 1)[1].strip() for line in block.splitlines()
                 if re.match(r"\s+[0-9a-f]+ \S", line)][::-1]
        if not head or not names:
            continue
        truth = by_pid[int(head[1])]
        if truth.first_ns <= int(head[2] + head[3]) <= truth.last_ns:
            published = [n for n in names if n.startswith("py::")]
            rows.add(row_of(truth, names, published, Starts(())), 1, names)
    return rows


@pytest.mark.skipif(not PERF, reason="perf is not installed")
@each_python
def test_perf_attached_to_such_a_program_and_to_its_child(python, tmp_path):
    """The child tells perf, too, what it has inherited."""
    env = dict(os.environ, HOME=str(tmp_path), LC_ALL="C", DEBUGINFOD_URLS="")
    data, injected = tmp_path / "perf.data", tmp_path / "injected.data"
    with Activated(python, tmp_path) as program:
        recorder = subprocess.Popen(
            [PERF, "record", "-k", "1", "-e", "cpu-clock", "-F", "999",
             "--call-graph", "dwarf,16384", "-o", str(data), "-p",
             ",".join(map(str, program.pids))], env=env,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while not data.exists() or data.stat().st_size < 4096:
            time.sleep(0.05)
        time.sleep(0.3)
        program.go()
        truths, said = stop_when_done(recorder, program, signal.SIGINT)
        subprocess.run([PERF, "inject", "--jit", "-i", data, "-o", injected],
                       env=env, check=True, capture_output=True)
        text = subprocess.run(
            [PERF, "script", "--no-inline", "--ns", "--max-stack", "1000",
             "-F", "pid,tid,time,ip,sym", "-i", injected], env=env, check=True,
            capture_output=True, text=True).stdout
    check(perf_rows(text, truths), truths, "%s, perf attached" % label(python))

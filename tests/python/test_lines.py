# SPDX-License-Identifier: MIT
"""File and line of a function, as perf's own images show them."""

import re
import shutil
import subprocess
import textwrap

import pytest

import jitdump

PROGRAM = """\
import sys
import time
def work(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end: sum(range(1000))
pair = [lambda: work(0.1),
        lambda: work(0.1)]
class C:
    def same(self): pair[0]()
def same(): pair[1]()
C().same(); same()
"""


def perf(*arguments, folder):
    environment = {"HOME": str(folder), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(["perf"] + list(arguments), cwd=str(folder), env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def test_the_images_that_perf_makes_have_file_and_line(python, run, tmp_path):
    """What perf annotate, Hotspot and gdb read: addr2line over the image."""
    if not shutil.which("perf") or not shutil.which("addr2line"):
        pytest.skip("perf or binutils is not installed")
    maps = tmp_path / "maps"
    maps.mkdir()
    script = tmp_path / "program.py"
    script.write_text(textwrap.dedent(PROGRAM))
    command = ["perf", "record", "-q", "-k", "1", "-e", "cpu-clock", "-F", "199", "-o", str(tmp_path / "perf.data"), python.path, str(script)]
    done = subprocess.run(command, env=dict(run.environment(maps, "jitdump"), HOME=str(tmp_path)), stderr=subprocess.PIPE)
    if done.returncode != 0 and b"ermission" in done.stderr:
        pytest.skip("perf may not record here")
    assert done.returncode == 0, done.stderr
    perf("inject", "--jit", "-i", "perf.data", "-o", "injected.data", folder=tmp_path)
    (path,) = maps.glob("jit-*.dump")
    dump = jitdump.Dump(path)
    ours = [f for f in dump.functions if f.name.endswith(":%s" % script)]
    assert len(ours) == 7
    found = {}
    for function in ours:
        image = maps / ("jitted-%d-%d.so" % (dump.pid, function.index))
        # perf puts the code behind the image's headers, at the symbol.
        symbols = subprocess.run(["readelf", "-sW", str(image)], stdout=subprocess.PIPE, check=True).stdout.decode()
        (start,) = re.findall(r"([0-9a-f]{8,}) +\d+ FUNC .*py::", symbols)
        text = subprocess.run(
            ["addr2line", "-e", str(image), "0x" + start, hex(int(start, 16) + function.size - 1)], stdout=subprocess.PIPE, check=True
        ).stdout.decode()
        lines = set(text.split("\n")[:2])
        assert len(lines) == 1, text
        where, line = lines.pop().rsplit(":", 1)
        assert where.endswith("program.py"), text
        found.setdefault(function.short.rsplit(".", 1)[-1], []).append(int(line.split()[0]))
    found = {name: sorted(numbers) for name, numbers in found.items()}
    assert found == {"<module>": [1], "work": [3], "<lambda>": [6, 7], "C": [8], "same": [9, 10]}

# SPDX-License-Identifier: MIT
"""What a native profiler sees: whole chains, each function in its place."""

import collections
import re
import shutil
import subprocess

import pytest

import jitdump

PROGRAM = """
import sys, time
def work(seconds):
    x, end = 0, time.process_time() + seconds
    while time.process_time() < end:
        for i in range(2000): x += i * i
def middle(s): work(s)
class C:
    def __init__(self, s): C(s + 1) if s < 0 else middle(s)
    def __getitem__(self, s): return self[s + 1] if s < 0 else middle(s)
    @property
    def p(self): return middle(0.1)
def generator(s): yield middle(s)
def deeply(c):
    # What is kept from being inlined is let be inlined there, and no longer.
    sys.setrecursionlimit(1_000_000)
    if sys.version_info[:2] == (3, 13) and getattr(sys, "_is_gil_enabled", bool)():
        C(-15_000)
    if (3, 11) <= sys.version_info < (3, 11, 7):
        c[-15_000]
def main():
    c = C(0)
    for i in range(30): C(0); c[0]
    for i in range(3): deeply(c)
    for i in range(30): C(0); c[0]
    middle(0.1); C(-0.9); c[0.1]; c.p; list(generator(0.1))
main()
"""

CHAINS = ["main", "main;C.__init__;C.__init__", "main;C.__getitem__", "main;C.p", "main;generator"]


def disassembly(path, symbol):
    out = subprocess.run(["objdump", "-d", "--no-show-raw-insn", str(path)], stdout=subprocess.PIPE, check=True).stdout.decode()
    found = re.search(r"<%s>:\n(.*?)\n\n" % symbol, out + "\n", re.S)
    assert found, "no " + symbol
    return [line.split("\t", 1)[1].strip() for line in found.group(1).splitlines() if "\t" in line]


def test_the_hook_leaves_no_frame_of_its_own(python):
    """It ends in a jump to the trampoline; a call would cut every chain."""
    code = disassembly(python.extension, "tickmap_evaluate")
    assert any(re.match(r"jmp\s+\*%r", line) for line in code), code
    assert not any(line.startswith("call") for line in code), code
    # The way of calls out of the ordinary is a jump as well.
    assert any("jmp" in line and "evaluate_uncommon" in line for line in code), code


def test_a_trampoline_is_what_its_table_says(python, run):
    """A frame pointer behind the first instructions, and none behind leave."""
    dump = jitdump.read_one(run(python, "pass"))
    code = dump.functions[0].code
    assert re.match(rb"(\xf3\x0f\x1e\xfa)?\x55\x48\x89\xe5", code)
    assert re.search(rb"\xff\xd1.*[\x5d\xc9]\xc3\x0f\x1f\x80....$", code, re.S)


def chains(script):
    """Python function names, outermost first -> samples."""
    counts = collections.Counter()
    for sample in script.split("\n\n"):
        names = re.findall(r" py::(.*):\S*program\.py", sample)
        if names and names[0] == "work":
            counts[";".join(reversed(names))] += 1
    return counts


def perf(*arguments):
    done = subprocess.run(("perf",) + arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")


def test_perf_shows_whole_chains(python, run, tmp_path):
    if not shutil.which("perf"):
        pytest.skip("no perf")
    (tmp_path / "program.py").write_text(PROGRAM)
    maps = tmp_path / "maps"
    maps.mkdir()
    data, injected = str(tmp_path / "perf.data"), str(tmp_path / "injected.data")
    record = ["perf", "record", "-q", "-e", "cpu-clock:u", "-F", "199", "-k", "1", "--call-graph", "dwarf,65528", "-o", data]
    done = subprocess.run(
        record + [python.path, str(tmp_path / "program.py")],
        env=dict(run.environment(maps, "jitdump"), HOME=str(tmp_path)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    if done.returncode != 0:
        pytest.skip("perf may not record here: " + done.stderr.decode()[-200:])
    code, _, err = perf("inject", "--jit", "-i", data, "-o", injected)
    assert code == 0, err
    _, out, _ = perf("script", "-i", injected, "-F", "comm,ip,sym")
    counts = chains(out)
    total = sum(counts.values())
    assert total > 50
    for chain in CHAINS:
        if python.version < (3, 11):
            chain = chain.replace("C.", "")
        whole = "<module>;%s;middle;work" % chain
        # A fifth of the time was spent in each.
        assert total * 0.1 < counts[whole] < total * 0.3, counts
    assert sum(c for n, c in counts.items() if n.startswith("<module>;main")) > total * 0.95, counts

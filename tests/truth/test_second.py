# SPDX-License-Identifier: MIT
"""A second program with another truth: second.py notes the whole stack of each
leaf it runs, so a sample below a leaf is right or wrong, frame by frame.

TICKMAP_SECOND_SECONDS makes the runs longer."""
import collections
import os

import pytest

from recorded import (INTERPRETERS, ROOT, label, python_frames, record,
                      window)

SECOND = str(ROOT / "tests" / "truth" / "second.py")
SECONDS = os.environ.get("TICKMAP_SECOND_SECONDS", "4")
HZ = 999

each_python = pytest.mark.parametrize("python", list(INTERPRETERS), ids=label)


def own(function):
    return "py::%s:%s" % (function, SECOND)


class Second:
    def __init__(self, python, folder, *options):
        self.python = python
        self.recording = record(folder, [python, SECOND, "--seconds", SECONDS,
                                         *options])
        self.said = self.recording.said()
        self.cpu = self.said["cpu"]
        self.leaves = set(self.said["leaves"])
        self.true = {tuple(stack) for stack in self.said["stacks"]}
        self.calls = {tuple(pair) for pair in self.said["calls"]}
        self.calls |= {pair for s in self.true for pair in zip(s, s[1:])}
        self.callers = {caller for caller, _ in self.calls
                        if caller.endswith(SECOND)}
        self.callers -= {own("<module>"), own("main")}
        self.roots = {s[0] for s in self.true} | {own("<module>")}
        self.stacks = self.recording.stacks(*window(self.said["begin_ns"],
                                                    self.said["last_ns"]))
        self.rows = collections.Counter()
        self.examples = {}
        for comm, frames, count in self.stacks:
            row = self.row_of(frames, python_frames(frames))
            self.rows[row] += count
            self.examples.setdefault(row, [comm] + frames)

    def row_of(self, frames, names):
        if any(f.startswith("[jit") for f in frames):
            return "generated code without a name"
        if not names and frames[0] == "clone3":
            return "a thread before or behind its Python code"
        if not names:
            return "no Python frame"
        if names[0] not in self.roots:
            return "does not begin at a root"
        down_to = next((i for i in range(len(names), 0, -1)
                        if names[i - 1] in self.leaves), 0)
        if not down_to:
            for pair in zip(names, names[1:]):
                if pair[0] in self.callers and pair[1].endswith(SECOND) and \
                        pair not in self.calls:
                    return "an impossible call"
            return "whole, between the leaves"
        if tuple(names[:down_to]) in self.true:
            return "whole"
        if self.lacks_an_init(names[:down_to]):
            return "an __init__ of 3.13 is missing"
        return "a stack that the program did not have"

    def lacks_an_init(self, names):
        if INTERPRETERS[self.python][:2] != (3, 13):
            return False
        return any(tuple(names) == tuple(n for n in s if "__init__:" not in n)
                   for s in self.true)

    @property
    def total(self):
        return sum(self.rows.values())

    def missing(self):
        """The program's functions on the way to a leaf that no sample has."""
        seen = {n for _, frames, _ in self.stacks
                for n in python_frames(frames)}
        return {n for stack in self.true for n in stack
                if n.endswith(SECOND)} - seen

    def shares(self):
        counts = collections.Counter()
        for _, frames, count in self.stacks:
            names = set(python_frames(frames))
            inside = [s for s in self.said["spent"] if
                      own(s) in names or own("Share." + s) in names]
            counts[inside[0] if len(inside) == 1 else None] += count
        outside = counts.pop(None, 0)
        total = sum(counts.values())
        return {s: counts[s] / total for s in self.said["spent"]}, outside

    def check(self):
        apart = self.rows["a thread before or behind its Python code"]
        good = self.rows["whole"] + self.rows["whole, between the leaves"]
        report = self.recording.report()
        print("\n%s: %d of %d samples are whole (%.3f %%); %.3f of %d Hz x "
              "%.2f CPU s; %d lost; truncated: %s" % (
                  label(self.python), good, self.total, 100 * good /
                  self.total, self.total / (HZ * self.cpu), HZ, self.cpu,
                  report["lost"], report["truncated_by"] or "none"))
        for row, count in self.rows.most_common():
            print("  %7d  %s" % (count, row))
            if not row.startswith("whole"):
                print("           e.g. " +
                      ";".join(self.examples[row])[-900:])
        spent = sum(self.said["spent"].values())
        shares, outside = self.shares()
        worst = 0
        for name, seconds in self.said["spent"].items():
            error = 100 * (shares[name] - seconds / spent)
            worst = max(worst, abs(error))
            print("  %-6s true %6.2f %%, shown %6.2f %%" % (
                name, 100 * seconds / spent, 100 * shares[name]))
        print("  %d samples outside the three" % outside)
        assert worst <= 1.0
        assert self.rows["a stack that the program did not have"] == 0
        assert self.rows["an impossible call"] == 0
        assert self.total >= 0.97 * HZ * self.cpu
        assert good >= 0.999 * (self.total - apart)
        assert apart <= 0.005 * self.total


@each_python
def test_another_program_of_one_thread_is_shown_truly(python, tmp_path):
    second = Second(python, tmp_path)
    second.check()
    missing = second.missing()
    print("  functions that no sample has: %s" % (sorted(missing) or "none"))
    assert not missing


@each_python
def test_another_program_of_eight_threads_is_shown_truly(python, tmp_path):
    Second(python, tmp_path, "--threads", "8", "--seed", "2").check()

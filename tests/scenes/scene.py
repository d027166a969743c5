# SPDX-License-Identifier: MIT
"""Records a program that writes down its own stacks (programs/truthful.py) and
holds the recording against them.

Each sample between a process's first and last statement is in one row:

whole                 its innermost marker's stack is one that the program saw
                      there, frame by frame from the first Python frame on
whole, no marker      outside markers: begins at its thread's first Python
                      frame, and each evaluator's frame has its function
not in Python         no Python frame and no evaluator, from the thread's start
                      on: threads that begin or end
anything else is a fault, and named
"""
import collections
import json
import pathlib
import re

from recorded import (ROOT, TICKMAP, INTERPRETERS, label, python_frames,
                      record, window)

PROGRAMS = ROOT / "tests" / "scenes" / "programs"
GOOD = ("whole", "whole, no marker")
APART = "not in Python"
STARTS = ("_start", "clone3", "__clone3", "clone", "__clone")
EVALUATOR = "_PyEval_EvalFrameDefault"


def without_inits(names):
    return tuple(n for n in names if "__init__:" not in n)


class Truth:
    """Of one process."""

    def __init__(self, path):
        said = json.loads(path.read_text())
        self.pid, self.cpu = said["pid"], said["cpu"]
        self.first_ns, self.last_ns = said["first_ns"], said["last_ns"]
        self.unseen = said["unseen"]  # began before functions were published
        self.markers = set(said["markers"])
        self.stacks = {tuple(stack) for stack in said["stacks"]}
        self.roots = set(said["roots"])
        self.bare = {without_inits(stack) for stack in self.stacks}

    def marked(self, names):
        """The frames down to the innermost marker, or none."""
        for i in range(len(names), 0, -1):
            if names[i - 1] in self.markers:
                return tuple(names[:i])
        return ()


class Rows:
    def __init__(self):
        self.counts = collections.Counter()
        self.examples = {}

    def add(self, row, count, example):
        self.counts[row] += count
        self.examples.setdefault(row, example)

    @property
    def total(self):
        return sum(self.counts.values())

    @property
    def in_python(self):
        return self.total - self.counts[APART]

    @property
    def good(self):
        return sum(self.counts[row] for row in GOOD)

    def show(self, title):
        print("\n%s: %d of %d samples in Python have their whole Python stack "
              "(%.2f %%)" % (title, self.good, self.in_python, 100 * self.good
                             / max(1, self.in_python)))
        for row, count in self.counts.most_common():
            print("  %7d  %6.2f %%  %s" % (
                count, 100 * count / max(1, self.total), row))
            if row not in GOOD:
                print("           e.g. " + ";".join(self.examples[row])[-700:])


def bare_evaluators(frames):
    """Frames of the evaluator whose caller is not a function's trampoline."""
    return sum(frame == EVALUATOR and (i == 0 or not
                                       frames[i - 1].startswith("py::"))
               for i, frame in enumerate(frames))


ADDRESS = re.compile(r"\[(.*)\+(0x[0-9a-f]+)\]$")


class Starts:
    """Where threads begin: by name, or, in libraries without symbols, near
    where those begin that have Python frames."""

    def __init__(self, stacks):
        self.places = set()
        for _, frames, _ in stacks:
            place = ADDRESS.match(frames[0])
            if place and python_frames(frames):
                self.places.add((place[1], int(place[2], 16)))

    def have(self, frame):
        if frame in STARTS:
            return True
        place = ADDRESS.match(frame)
        return bool(place) and any(
            place[1] == image and abs(int(place[2], 16) - address) < 64
            for image, address in self.places)


def row_of(truth, frames, names, starts):
    if any(f.startswith("[jit") for f in frames):
        return "generated code without a name"
    if not names and EVALUATOR in frames:
        return "evaluator, but no Python frame"
    if not names:
        return APART if starts.have(frames[0]) else "cut in native code"
    marked = truth.marked(names)
    if marked in truth.stacks:
        return "whole"
    if marked and without_inits(marked) in truth.bare:
        return "an __init__ is missing"
    if marked:
        if names[0] not in truth.roots:
            return "cut: does not begin at a root"
        return "a stack that the program did not have"
    if names[0] not in truth.roots:
        return "no marker, and does not begin at a root"
    if bare_evaluators(frames) > truth.unseen:
        return "an evaluator's frame without its function"
    return "whole, no marker"


def judge(recording, truths):
    rows = Rows()
    for truth in truths:
        stacks = recording.stacks(
            "--pid", str(truth.pid), *window(truth.first_ns, truth.last_ns))
        stacks = list(stacks)
        starts = Starts(stacks)
        for comm, frames, count in stacks:
            names = python_frames(frames)
            rows.add(row_of(truth, frames, names, starts), count,
                     [comm] + frames)
    return rows


class Scene:
    def __init__(self, python, folder, arguments, options=(), env=None, **kw):
        """`arguments`: what the interpreter is given."""
        self.title = label(python) + " " + " ".join(
            pathlib.Path(a).name for a in map(str, arguments))
        truth = pathlib.Path(folder) / "truth"
        truth.mkdir()
        env = dict(env or {}, SCENE_TRUTH=str(truth))
        self.recording = record(folder, [python, *map(str, arguments)],
                                options, env=env, **kw)
        self.truths = [Truth(p) for p in sorted(truth.glob("*.json"))]
        self.rows = judge(self.recording, self.truths)
        self.cpu = sum(truth.cpu for truth in self.truths)

    def check(self, least=0.99, processes=1, sampled=0.95,
              hz=999):
        self.rows.show(self.title)
        report = self.recording.report()
        print("  %d processes, %.2f CPU s, %.3f samples of %d Hz; %d lost, "
              "truncated: %s" % (len(self.truths), self.cpu, self.rows.total /
                                max(0.001, self.cpu * hz), hz,
                                report["lost"],
                                report["truncated_by"] or "none"))
        assert len(self.truths) == processes
        assert self.rows.counts["whole"] >= 0.4 * self.rows.total
        assert self.rows.total > sampled * hz * self.cpu
        assert self.rows.good >= least * self.rows.in_python

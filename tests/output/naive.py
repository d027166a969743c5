# SPDX-License-Identifier: MIT
"""What the outputs should count, computed sample by sample."""

import collections

from description import JIT, KERNEL, PYTHON


def function(frame):
    return frame["name"], frame["dso"], frame["file"] or None, frame["line"] or None


def without_interpreter(profile, stack):
    """In a stack with a Python frame, none of the interpreter's."""
    if any(profile.frames[f]["kind"] == PYTHON for f in stack):
        return [f for f in stack if not profile.frames[f]["interpreter"]]
    return list(stack)


def counts(profile):
    """(name, dso, file, line) -> [self, total, managed_self]"""
    out = collections.defaultdict(lambda: [0, 0, 0])
    for _, n, _, stack in profile.samples:
        frames = [profile.frames[f] for f in stack]
        if not frames:
            continue
        out[function(frames[-1])][0] += n
        for key in {function(f) for f in frames}:
            out[key][1] += n
        managed = [f for f in frames if f["kind"] in (PYTHON, JIT)]
        if managed:
            out[function(managed[-1])][2] += n
    return dict(out)


def needs_line(profile, frame):
    return bool(frame["line"]) and any(
        (f["name"], f["file"], f["dso"]) == (frame["name"], frame["file"], frame["dso"])
        and f["line"] != frame["line"] for f in profile.frames)


def clean(text):
    return "".join(":" if c == ";" else "?" if ord(c) < 32 or ord(c) == 127 else c
                   for c in text)


def folded_name(profile, index):
    frame = profile.frames[index]
    return (clean(frame["name"]) + (":%d" % frame["line"] if needs_line(profile, frame) else "")
            + ("_[k]" if frame["kind"] == KERNEL else ""))


def folded(profile, interpreter=True):
    """line without its count -> count"""
    out = collections.Counter()
    for thread, n, _, stack in profile.samples:
        if not interpreter:
            stack = without_interpreter(profile, stack)
        comm = clean(profile.threads[thread][2]) or "[unknown]"
        out[";".join([comm] + [folded_name(profile, f) for f in stack])] += n
    return out

# SPDX-License-Identifier: MIT
"""What a program writes down about itself while it is recorded.

A marker is a function that calls mark() first and then works for a while. The
whole Python stack that mark() sees, outermost first and the marker last, is
then the truth for every sample whose innermost marker it is: such a sample must
show one of the stacks that were seen, frame by frame.

    truthful.begin()            at the first statement of a process
    @truthful.marker            on each marker: it is known by its name alone
    truthful.mark()             in each marker, first
    truthful.end()              last: writes FOLDER/PID.json

FOLDER is in the environment variable SCENE_TRUTH.
"""
import json
import os
import sys
import threading
import time

cpu = time.thread_time
markers = set()
codes = {}
stacks = set()
roots = set()  # where a stack of this process may begin
times = {}
skipped = [0]


def published(code):
    name = getattr(code, "co_qualname", code.co_name)
    return "py::%s:%s" % (name, code.co_filename)


def marker(function):
    markers.add(published(function.__code__))
    return function


def mark():
    frame = sys._getframe(1)
    stack = []
    while frame is not None:
        code = frame.f_code
        stack.append(id(code))
        codes[id(code)] = code  # and keeps it alive, so that ids stay true
        frame = frame.f_back
    stacks.add(tuple(stack))


def begin(unseen=0):
    """Forgets what a forked child has inherited. `unseen`: so many of the
    outermost frames began before functions were published."""
    stacks.clear()
    codes_of = []
    frame = sys._getframe(1)
    while frame is not None:
        codes_of.append(frame.f_code)
        frame = frame.f_back
    skipped[0] = unseen
    roots.update([published(codes_of[-1 - unseen]),
                  published(threading.Thread._bootstrap.__code__)])
    times["first_ns"] = time.monotonic_ns()
    times["cpu"] = time.process_time()


def end():
    last_ns = time.monotonic_ns()
    spent = time.process_time() - times["cpu"]
    names = {number: published(code) for number, code in codes.items()}
    path = os.path.join(os.environ["SCENE_TRUTH"], "%d.json" % os.getpid())
    with open(path, "w") as out:
        json.dump({
            "pid": os.getpid(),
            "first_ns": times["first_ns"],
            "last_ns": last_ns,
            "cpu": spent,
            "unseen": skipped[0],
            "roots": sorted(roots),
            "markers": sorted(markers),
            "stacks": sorted([names[n] for n in reversed(stack)][skipped[0]:]
                             for stack in list(stacks)),
        }, out)


def work(seconds):
    """How long a marker works, as the time when it is done."""
    return cpu() + seconds

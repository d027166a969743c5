"""Runs a program under `tickmap record` and looks at the recording through the
product's own front door: `report --json` and `export --format folded`."""
import collections
import glob
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("TICKMAP_BUILD", ROOT / "build"))
TICKMAP = str(BUILD / "tickmap")
TRUTH = str(ROOT / "tests" / "truth" / "truth.py")


def version_of(python):
    code = "import sys; print('%d.%d.%d' % sys.version_info[:3])"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True)
    if done.returncode:
        return None
    return tuple(int(n) for n in done.stdout.split("."))


def interpreters():
    """Every CPython from 3.9 on: Debian's, pyenv's, and TICKMAP_PYTHONS."""
    paths = ["/usr/bin/python3"]
    paths += sorted(glob.glob(os.path.expanduser(
        "~/.pyenv/versions/*/bin/python3")))
    paths += os.environ.get("TICKMAP_PYTHONS", "").split()
    found = {}
    for path in paths:
        version = version_of(path) if os.path.exists(path) else None
        if version and version >= (3, 9):
            found[path] = version
    return found


INTERPRETERS = interpreters()


def label(python):
    name = "%d.%d.%d" % INTERPRETERS[python]
    return name + ("-debian" if python.startswith("/usr/bin") else "")


class Recording:
    def __init__(self, path, stdout, stderr, code):
        self.path = str(path)
        self.stdout, self.stderr, self.code = stdout, stderr, code

    def said(self):
        return json.loads(self.stdout.splitlines()[-1])

    def report(self, *options):
        done = subprocess.run([TICKMAP, "report", self.path, "--json",
                               *options], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def stacks(self, *options):
        """[(comm, [frames, root first], count)]"""
        done = subprocess.run([TICKMAP, "export", self.path, "--format",
                               "folded", "-o", "-", *options],
                              capture_output=True)
        assert done.returncode in (0, 1), done.stderr.decode()
        result = []
        for line in done.stdout.decode("utf-8", "replace").splitlines():
            stack, count = line.rsplit(" ", 1)
            comm, *frames = stack.split(";")
            result.append((comm, frames, int(count)))
        return result


def record(directory, command, options=(), env=None, check=True, timeout=300):
    path = pathlib.Path(directory) / "tickmap.data"
    done = subprocess.run(
        [TICKMAP, "record", "-o", str(path), *options, "--", *command],
        capture_output=True, text=True, timeout=timeout,
        env=dict(os.environ, **(env or {})))
    if check:
        assert done.returncode == 0, done.stderr + done.stdout
    return Recording(path, done.stdout, done.stderr, done.returncode)


def window(begin_ns, end_ns):
    return ["--time", "%.9f,%.9f" % (begin_ns / 1e9, end_ns / 1e9)]


def python_frames(frames):
    """Names as published: text formats add :LINE where two share the rest."""
    return [re.sub(r":\d+$", "", f) for f in frames if f.startswith("py::")]


def calls_of(python, directory):
    """The calls that happen, as the interpreter itself tells them."""
    path = pathlib.Path(directory) / "calls.json"
    subprocess.run([python, TRUTH, "--calls", str(path)], check=True,
                   timeout=120)
    def name(code):
        # What stands in for main while the calls are collected.
        return code.replace("py::everything_once:", "py::main:")
    calls = {(name(a), name(b)) for a, b in json.loads(path.read_text())}
    calls.add(("py::<module>:" + TRUTH, "py::main:" + TRUTH))
    # Making a coroutine enters its frame once, which no profile function sees.
    calls.add(("py::asynchronous:" + TRUTH, "py::coroutine:" + TRUTH))
    # Runs before a thread's profile function is set.
    calls |= {(inner.replace("_bootstrap_inner", "_bootstrap"), inner)
              for pair in calls for inner in pair
              if "_bootstrap_inner:" in inner}
    return calls


class Verdict:
    """Every sample is in exactly one row."""

    def __init__(self):
        self.rows = collections.Counter()
        self.examples = {}

    def add(self, row, count, stack):
        self.rows[row] += count
        self.examples.setdefault(row, stack)

    @property
    def total(self):
        return sum(self.rows.values())

    def share(self, row):
        return self.rows[row] / max(1, self.total)

    def show(self, title):
        print("\n%s: %d samples" % (title, self.total))
        for row, count in self.rows.most_common():
            print("  %7d  %6.2f %%  %s" % (
                count, 100 * count / max(1, self.total), row))
            if row != "whole":
                print("           e.g. " +
                      ";".join(self.examples[row])[-600:])


def judge(stacks, roots, calls, leaves=None, pairs_matter=True):
    """Sorts samples by what is wrong with their Python stack."""
    verdict = Verdict()
    for comm, frames, count in stacks:
        names = python_frames(frames)
        if any(f.startswith("[jit") for f in frames):
            verdict.add("generated code without a name", count,
                        [comm] + frames)
        elif not names:
            verdict.add("no Python frame", count, [comm] + frames)
        elif names[0] not in roots:
            verdict.add("does not begin at a root", count, [comm] + frames)
        elif leaves and names[-1] not in leaves:
            verdict.add("leaf is not in the source", count, [comm] + frames)
        elif pairs_matter and any(pair not in calls for pair in
                                  zip(names, names[1:])):
            wrong = next(p for p in zip(names, names[1:]) if p not in calls)
            verdict.add("impossible call", count,
                        ["%s -> %s" % wrong, comm] + frames)
        else:
            verdict.add("whole", count, frames)
    return verdict


if __name__ == "__main__":
    print(json.dumps({k: label(k) for k in INTERPRETERS}), file=sys.stderr)

# SPDX-License-Identifier: MIT
"""foo calls bar calls baz: recorded by perf, by samply and by us, published by
us and by the interpreter's own switches."""
import contextlib
import glob
import gzip
import json
import os
import pathlib
import re
import subprocess

from recorded import BUILD, INTERPRETERS, ROOT, python_frames, record

HZ = 999
SECONDS = os.environ.get("TICKMAP_STORY_SECONDS", "1")
CHAIN = str(ROOT / "tests" / "truth" / "chain.py")
WANTED = ["py::%s:%s" % (f, CHAIN) for f in ("foo", "bar", "baz")]
BOOT = BUILD / "python" / "boot"


def environment(**more):
    """Ours, without what changes how an interpreter starts."""
    env = {k: v for k, v in os.environ.items()
           if not k.startswith(("PYTHON", "TICKMAP"))}
    env.update(LC_ALL="C", DEBUGINFOD_URLS="", **more)
    return env


# A way to publish: variables of the environment, options of the interpreter.
OURS = ({"TICKMAP": "jitdump", "PYTHONPATH": str(BOOT)}, [])
OUR_MAP = ({"TICKMAP": "perfmap", "PYTHONPATH": str(BOOT)}, [])
OFF = ({}, [])


def own_switches(python):
    """The interpreter's own ways, by name."""
    found = {}
    if INTERPRETERS[python] >= (3, 12):
        found["-X perf"] = ({}, ["-X", "perf"])
    if INTERPRETERS[python] >= (3, 13):
        found["-X perf_jit"] = ({}, ["-X", "perf_jit"])
    return found


class Verdict:
    def __init__(self):
        self.samples = self.named = self.of_baz = self.whole = 0
        self.example = None

    def add(self, names, count=1):
        """`names`: those published, root first."""
        self.samples += count
        self.named += count if names else 0
        if WANTED[-1] not in names:
            return
        self.of_baz += count
        if names[-3:] == WANTED:
            self.whole += count
        elif not self.example:
            self.example = names

    def show(self, title):
        print("%-40s %5d samples, %5d with a published name; foo, bar, baz "
              "whole in %d of %d of baz%s" % (
                  title + ":", self.samples, self.named, self.whole,
                  self.of_baz,
                  "; e.g. %s" % self.example if self.example else ""))

    def assert_whole(self):
        assert self.of_baz >= 0.85 * float(SECONDS) * HZ
        assert self.whole >= 0.99 * self.of_baz


@contextlib.contextmanager
def nothing_left_in_tmp():
    """Removes what the run published, and perf's images of it."""
    def published():
        return {path for pattern in ("jit-*.dump", "perf-*.map",
                                     "jitted-*.so")
                for path in glob.glob("/tmp/" + pattern)}
    before = published()
    pids = []
    try:
        yield pids
    finally:
        own = re.compile(r"(jit|perf|jitted)-(%s)[-.]" % (
            "|".join(map(str, pids)) or "none"))
        for path in published() - before:
            if own.match(os.path.basename(path)):
                with contextlib.suppress(FileNotFoundError):
                    os.remove(path)


def run(command, env):
    done = subprocess.run([str(c) for c in command], env=env,
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, "%s\n%s" % (command, done.stderr[-2000:])
    return done.stdout


def program(python, options):
    """Prints its pid at the end."""
    return [python, *options, CHAIN, SECONDS]


def published(frames):
    """Published names of a stack, outermost first."""
    return [f for f in frames if f.startswith("py::")]


def perf_samples(text):
    """Names of each sample's frames, outermost first."""
    for block in text.split("\n\n"):
        names = [line.split(None, 1)[1].strip() for line in block.splitlines()
                 if re.match(r"\s+[0-9a-f]+ \S", line)]
        if names:
            yield names[::-1]


def under_perf(perf, folder, python, way, graph):
    """The verdict of perf record -k 1, perf inject --jit, perf script."""
    variables, options = way
    # perf keeps copies of images below HOME.
    env = environment(HOME=str(folder), **variables)
    plain, injected = folder / "perf.data", folder / "injected.data"
    verdict = Verdict()
    with nothing_left_in_tmp() as pids:
        said = run([perf, "record", "-q", "-k", "1", "-e", "cpu-clock", "-F",
                    HZ, "--call-graph", graph, "-o", plain, "--",
                    *program(python, options)], env)
        pids.append(int(said))
        run([perf, "inject", "--jit", "-i", plain, "-o", injected], env)
        text = run([perf, "script", "--no-inline", "--max-stack", "1000",
                    "-F", "ip,sym", "-i", injected], env)
        for frames in perf_samples(text):
            verdict.add(published(frames))
    return verdict


def under_tickmap(folder, python, way, *more):
    """The verdict of tickmap record and export."""
    variables, options = way
    recording = record(folder, program(python, options), more,
                       env={"PYTHONPATH": "", **variables})
    verdict = Verdict()
    for _, frames, count in recording.stacks():
        verdict.add(python_frames(frames), count)
    return verdict, recording


def samply_stacks(profile):
    """Names of each sample's frames, outermost first, for every thread."""
    for thread in profile["threads"]:
        strings = (profile.get("shared", {}).get("stringArray")
                   or thread["stringArray"])
        func = thread["funcTable"]["name"]
        frame = thread["frameTable"]["func"]
        stack = thread["stackTable"]
        for at in thread["samples"]["stack"]:
            names = []
            while at is not None:
                names.append(strings[func[frame[stack["frame"][at]]]])
                at = stack["prefix"][at]
            yield names[::-1]


def under_samply(samply, folder, python, way, preload=None):
    """The verdict of samply record --save-only. `preload`: into samply alone."""
    variables, options = way
    out = folder / "profile.json.gz"
    verdict = Verdict()
    env = environment(**variables)
    if preload:
        env["LD_PRELOAD"] = preload
    with nothing_left_in_tmp() as pids:
        said = run([samply, "record", "--save-only", "-r", HZ, "-o", out,
                    "--", *program(python, options)], env)
        pids.append(int(said.split()[-1]))
        profile = json.loads(gzip.decompress(out.read_bytes()))
    for frames in samply_stacks(profile):
        verdict.add(published(frames))
    return verdict

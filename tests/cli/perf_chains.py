# SPDX-License-Identifier: MIT
"""Our call chains against perf script's, sample by sample, frame by frame."""
import collections
import functools
import os
import re
import subprocess

FRAME = re.compile(r"^\s+([0-9a-f]+) (.*) \((.*)\)$")
HEAD = re.compile(r"^.*?\s(\d+)/(\d+)\s.*?(\d+)\.(\d{6}):")
PERF = os.environ.get("PERF", "perf")


class Sample:
    def __init__(self, key):
        self.key = key
        self.frames = []


def parse(text):
    """Samples by (tid, time); perf's as well as ours."""
    samples, sample = collections.defaultdict(list), None
    for line in text.split("\n"):
        if not line.strip():
            continue
        frame = FRAME.match(line)
        if line[0] in " \t" and frame:
            name, dso = frame.group(2), frame.group(3)
            name = re.sub(r"\+0x[0-9a-f]+$", "", name)
            if sample:
                sample.frames.append((name, dso))
            continue
        head = HEAD.match(line)
        if not head:
            continue
        pid, tid, s, us = map(int, head.groups())
        sample = Sample((tid, s * 1000000 + us))
        samples[sample.key].append(sample)
    return samples


def is_unnamed(name):
    return name.startswith("[") or not name


class Verdict:
    """What of it is equal; `pairs`: names that are not, and how often."""
    def __init__(self):
        self.samples = self.equal = self.missing = self.extra = 0
        self.shorter = self.longer = self.other = 0
        self.frames = self.same_frames = 0
        self.pairs = collections.Counter()
        self.examples = []

    def __str__(self):
        return ("%d of %d chains equal (%d missing, %d extra; ours shorter %d,"
                " longer %d, other names %d); %d of %d frames" % (
                    self.equal, self.samples, self.missing, self.extra,
                    self.shorter, self.longer, self.other, self.same_frames,
                    self.frames))


def plain(name):
    """Without a symbol's version."""
    return re.sub(r"@.*", "", name)


@functools.lru_cache(None)
def addresses(dso):
    """name -> its addresses, in the file and its debug file."""
    table = collections.defaultdict(set)
    files = [dso]
    notes = subprocess.run(["readelf", "-n", dso], capture_output=True,
                           text=True, errors="replace").stdout
    build_id = re.search(r"Build ID: (\w\w)(\w+)", notes)
    if build_id:
        files.append("/usr/lib/debug/.build-id/%s/%s.debug" % build_id.groups())
    for file in files:
        for option in ("-s", "--dyn-syms"):
            out = subprocess.run(["readelf", option, "-W", file],
                                 capture_output=True, text=True,
                                 errors="replace").stdout
            for line in out.split("\n"):
                row = line.split()
                if len(row) >= 8 and re.fullmatch("[0-9a-f]{16}", row[1]):
                    table[plain(row[7])].add(int(row[1], 16))
    return table


def same_name(theirs, ours, dso):
    """Equal; or both unnamed; or perf's is ours without what a demangler adds
    (perf leaves parameters and return types out); or two names of one place."""
    if theirs == ours or (is_unnamed(theirs) and is_unnamed(ours)):
        return True
    if plain(theirs) == plain(ours):
        return True
    at = ours.find(theirs + "(")
    if at == 0 or (at > 0 and ours[at - 1] in " *&"):
        return True
    if not dso.startswith("/"):
        return False
    table = addresses(dso)
    return bool(table[plain(theirs)] & table[plain(ours)])


def compare(theirs, ours):
    v = Verdict()
    for key, samples in theirs.items():
        mine = ours.get(key, [])
        for i, t in enumerate(samples):
            v.samples += 1
            if i >= len(mine):
                v.missing += 1
                continue
            o = mine[i]
            names = [(a[0], b[0]) for a, b in zip(t.frames, o.frames)]
            good = [same_name(a[0], b[0], a[1])
                    for a, b in zip(t.frames, o.frames)]
            v.frames += len(t.frames)
            v.same_frames += sum(good)
            if all(good) and len(t.frames) == len(o.frames):
                v.equal += 1
                continue
            if len(v.examples) < 5:
                v.examples.append((t, o))
            if not all(good):
                v.other += 1
                first = good.index(False)
                v.pairs[names[first]] += 1
            elif len(o.frames) < len(t.frames):
                v.shorter += 1
                v.pairs[(t.frames[len(o.frames)][0], "(end)")] += 1
            else:
                v.longer += 1
                v.pairs[("(end)", o.frames[len(t.frames)][0])] += 1
    for key, samples in ours.items():
        v.extra += max(0, len(samples) - len(theirs.get(key, [])))
    return v


def perf_script(path, cwd, perf=PERF):
    done = subprocess.run(
        [perf, "script", "-i", path, "--no-inline", "--max-stack", "2000",
         "-F", "comm,pid,tid,time,event,ip,sym,dso"], cwd=cwd,
        capture_output=True, text=True, errors="replace")
    assert done.returncode == 0, done.stderr
    return parse(done.stdout)


def ours(tickmap, path, cwd, *more):
    done = subprocess.run(
        [tickmap, "export", "--format", "perf-script", "-o", "-", *more, path],
        cwd=cwd, capture_output=True, text=True, errors="replace")
    assert done.returncode in (0, 1), done.stderr
    return parse(done.stdout)

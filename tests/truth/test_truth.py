"""Is the answer true? A program that knows where its time went, recorded and
reported by the product, on every installed interpreter."""
import collections
import os
import statistics

import pytest

import recorded
from recorded import (INTERPRETERS, TRUTH, calls_of, judge, label, python_frames,
                      record, window)

SEEDS = [1, 2, 3]
SECONDS = os.environ.get("TICKMAP_TRUTH_SECONDS", "9.2")
PARTS = ["part_a", "part_b", "part_c"]
HZ = 999

each_python = pytest.mark.parametrize("python", list(INTERPRETERS), ids=label)


def name(function, file=TRUTH):
    return "py::%s:%s" % (function, file)


def measured_shares(stacks):
    counts = collections.Counter()
    outside = 0
    for _, frames, count in stacks:
        names = set(python_frames(frames))
        inside = [p for p in PARTS if name(p) in names]
        if len(inside) == 1:
            counts[inside[0]] += count
        else:
            outside += count
    total = sum(counts.values())
    return {p: counts[p] / total for p in PARTS}, total, outside


def true_shares(said):
    total = sum(said["spent"].values())
    return {p: said["spent"][p] / total for p in PARTS}


def thread_roots(calls):
    return {callee for caller, callee in calls if caller == ""} | {
        name("<module>")}


def is_init_hole(python, pair, calls):
    """3.13 inlines __init__ behind every hook: the callers of an __init__ then
    seem to call what it calls."""
    caller, callee = pair
    if recorded.INTERPRETERS[python][:2] != (3, 13):
        return False
    middle = [m for c, m in calls if c == caller and "__init__:" in m]
    return any((m, callee) in calls for m in middle)


def called_under_anybody(frame):
    """The garbage collector and weak references call these wherever they
    happen to run."""
    return (frame.endswith(("/_weakrefset.py", "/weakref.py"))
            or frame.split(":")[2].split(".")[-1] == "__del__")


def check_calls(python, stacks, calls):
    """Every call shown from or to the program's own code really happens. Calls
    inside the standard library that the interpreter did not happen to make
    while it told us are counted apart."""
    known = {callee for _, callee in calls} | {c for c, _ in calls}
    pairs = hole = library = 0
    wrong, foreign = collections.Counter(), collections.Counter()
    for _, frames, count in stacks:
        names = python_frames(frames)
        for n in names:
            if n.endswith(TRUTH) and n not in known:
                foreign[n] += count
        for pair in zip(names, names[1:]):
            pairs += count
            if pair in calls:
                continue
            if is_init_hole(python, pair, calls):
                hole += count
            elif (not any(n.endswith(TRUTH) for n in pair)
                  or called_under_anybody(pair[1])):
                library += count
            else:
                wrong[pair] += count
    print("  calls: %d pairs in samples, %d impossible, %d by the __init__ "
          "hole of 3.13, %d not judged inside the library" % (
              pairs, sum(wrong.values()), hole, library))
    assert not wrong, wrong.most_common(5)
    assert not foreign, foreign.most_common(5)
    assert library <= 0.001 * pairs


def check_recursion(stacks):
    depths = collections.Counter()
    for _, frames, count in stacks:
        names = python_frames(frames)
        if name("recursion") in names:
            n = sum(f in (name("recurse"), name("recursion_leaf"))
                    for f in names)
            # On its way down or up the recursion is less deep.
            if names[-1] == name("recursion_leaf"):
                depths[n] += count
    print("  depth of the recursion at its leaf:", dict(depths))
    assert sum(depths.values()) > 20
    assert set(depths) == {51}, "50 calls of recurse and the leaf"


def check_native(stacks):
    """deflate under compressing, libcrypto's function under hashing."""
    found = collections.Counter()
    for _, frames, count in stacks:
        last = max((i for i, f in enumerate(frames) if f.startswith("py::")),
                   default=None)
        if last is None:
            continue
        owner = python_frames([frames[last]])[0]
        native = frames[last + 1:]
        if owner in (name("compressing"), name("hashing")):
            found[owner, "all"] += count
        if any(f == "deflate" for f in native):
            found[owner, "deflate"] += count
        if any("sha256" in f.lower() or f.startswith("EVP_") or "SHA256" in f
               for f in native):
            found[owner, "hash"] += count
    print("  native:", {"%s %s" % (k[0].split(":")[2], k[1]): v
                        for k, v in found.items()})
    # The rest: zlib's and the kernel's work for its 270 KB of memory, and the
    # loop, which asks the CPU clock each time.
    assert found[name("compressing"), "deflate"] >= 0.5 * found[
        name("compressing"), "all"] > 0
    assert found[name("hashing"), "hash"] >= 0.5 * found[
        name("hashing"), "all"] > 0
    for (owner, what), count in found.items():
        if what == "deflate":
            assert owner == name("compressing"), (owner, count)


def run(python, directory, seed, options=(), seconds=SECONDS, **kw):
    recording = record(directory, [python, TRUTH, "--seed", str(seed),
                                   "--seconds", seconds, *options], **kw)
    said = recording.said()
    inside = window(said["begin_ns"], said["last_ns"])
    return recording, said, recording.stacks(*inside)


def shares_are_true(python, directory, options):
    calls = calls_of(python, directory)
    errors = []
    for seed in SEEDS:
        recording, said, stacks = run(python, directory, seed, options)
        truth = true_shares(said)
        shares, inside, outside = measured_shares(stacks)
        cpu = sum(said["spent"].values())
        samples = inside + outside
        print("\n%s seed %d: %d samples inside the parts, %d between them; "
              "%.3f of %d Hz x %.2f CPU s" % (
                  label(python), seed, inside, outside,
                  samples / (HZ * cpu), HZ, cpu))
        for p in PARTS:
            error = 100 * abs(shares[p] - truth[p])
            errors.append(error)
            print("  %s true %.2f %% shown %.2f %%" % (
                p, 100 * truth[p], 100 * shares[p]))
        check_calls(python, stacks, calls)
        check_recursion(stacks)
        check_native(stacks)
        assert samples >= 0.97 * HZ * cpu
        lost = recording.report()["lost"]
        print("  lost: %d" % lost)
        # None on a machine of its own; a busy one may keep the recorder waiting.
        assert lost <= 0.005 * samples
    print("  median error %.2f points, worst %.2f" % (
        statistics.median(errors), max(errors)))
    assert statistics.median(errors) <= 1.0
    assert max(errors) <= 2.0


@each_python
def test_shares_of_one_thread_are_true(python, tmp_path):
    shares_are_true(python, tmp_path, [])


@each_python
def test_shares_of_4_busy_threads_of_32_are_true(python, tmp_path):
    shares_are_true(python, tmp_path, ["--threads", "32"])


def whole_stacks(python, directory, options, first="first_ns", **kw):
    recording = record(directory, [python, TRUTH, "--seed", "5", "--seconds",
                                   "6", *options], **kw)
    said = recording.said()
    stacks = recording.stacks(*window(said[first], said["last_ns"]))
    return recording, judge(stacks, {name("<module>")}, set(),
                            pairs_matter=False), stacks


@each_python
def test_stacks_are_whole_from_first_to_last_statement(python, tmp_path):
    recording, verdict, _ = whole_stacks(python, tmp_path, [])
    verdict.show(label(python))
    assert verdict.total > 5000
    assert verdict.share("whole") >= 0.999
    assert recording.report()["truncated"] <= 0.001 * verdict.total


@each_python
def test_stacks_of_90_python_frames_are_whole(python, tmp_path):
    recording, verdict, stacks = whole_stacks(
        python, tmp_path, ["--depth", "90"], first="begin_ns")
    verdict.show(label(python) + ", 90 deep")
    depths = collections.Counter()
    for _, frames, count in stacks:
        depths[len(python_frames(frames))] += count
    print("  Python frames a sample:", depths.most_common(4))
    assert depths.most_common(1)[0][0] == 90
    assert verdict.share("whole") >= 0.999


@each_python
def test_deeper_stacks_are_counted_as_truncated_and_keep_their_leaf(
        python, tmp_path):
    recording, _, stacks = whole_stacks(python, tmp_path, ["--depth", "600"],
                                        first="begin_ns")
    report = recording.report()
    total = sum(count for _, _, count in stacks)
    with_leaf = sum(count for _, frames, count in stacks
                    if python_frames(frames)[-1:] == [name("recursion_leaf")])
    seen = max(len(python_frames(frames)) for _, frames, _ in stacks)
    print("\n%s: %d samples, %d truncated, %d with their leaf, up to %d "
          "Python frames seen" % (label(python), total, report["truncated"],
                                  with_leaf, seen))
    assert report["truncated"] >= 0.95 * total
    assert with_leaf >= 0.95 * total
    assert seen >= 80

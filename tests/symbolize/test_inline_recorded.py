# SPDX-License-Identifier: MIT
"""A known inlined stack, recorded by tickmap and by perf, and the addresses of
its frames."""
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("TICKMAP_BUILD", HERE.parents[1] / "build"))
TICKMAP = BUILD / "tickmap"
SOURCE = HERE / "inline.c"
INLINED = ["outer", "middle", "leaf"]


def run(*command):
    return subprocess.run(command, stdin=subprocess.DEVNULL, check=True,
                          capture_output=True, timeout=300).stdout.decode(
                              errors="replace")


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("inline") / "spin"
    run("gcc", "-O2", "-g", "-o", path, SOURCE)
    return path


@pytest.fixture(scope="module", params=["tickmap", "perf dwarf"])
def recording(request, program):
    """About half a second of CPU."""
    data = program.parent / (request.param.replace(" ", "-") + ".data")
    if request.param == "tickmap":
        run(TICKMAP, "record", "-o", data, "--", program, "4000000")
    else:
        if not shutil.which("perf"):
            pytest.skip("perf is not installed")
        run("perf", "record", "-q", "-e", "cpu-clock", "-F", "999", "-k", "1",
            "--call-graph", "dwarf", "-o", data, program, "4000000")
    return data


def stacks(data, *options):
    """[(functions without the kernel's, count)]"""
    out = []
    for line in run(TICKMAP, "export", "-f", "folded", *options,
                    data).splitlines():
        stack, count = line.rsplit(" ", 1)
        out.append(([f for f in stack.split(";")[1:]
                     if not f.endswith("_[k]")], int(count)))
    return out


def test_the_inlined_stack_is_the_source_s(recording):
    whole = inside = all_samples = 0
    for stack, count in stacks(recording, "--inline"):
        if "work" not in stack:
            continue
        all_samples += count
        rest = stack[stack.index("work") + 1:]
        inside += count if rest else 0
        whole += count if rest == INLINED else 0
        assert rest == INLINED[:len(rest)]
        assert stack[stack.index("work") - 1] == "main"
    print(f"\n{recording.name}: {whole} of {all_samples} samples of work in "
          f"outer, middle, leaf; {all_samples - inside} in work itself")
    assert all_samples > 100
    assert whole >= 0.9 * all_samples


def test_without_the_option_nothing_is_inlined(recording):
    plain = stacks(recording)
    assert not any(f in INLINED for stack, _ in plain for f in stack)
    inlined = stacks(recording, "--inline")
    assert sum(n for _, n in inlined) == sum(n for _, n in plain)
    # The same stacks, but for the inlined functions; libc and the loader, where
    # their debug files are installed, have others of their own.
    merged, expected = {}, {}
    for stack, count in inlined:
        if "work" in stack:
            key = tuple(f for f in stack if f not in INLINED)
            merged[key] = merged.get(key, 0) + count
    for stack, count in plain:
        if "work" in stack:
            key = tuple(stack)
            expected[key] = expected.get(key, 0) + count
    assert merged == expected


def line_of(function):
    """Where the source declares it."""
    lines = SOURCE.read_text().splitlines()
    return 1 + next(i for i, line in enumerate(lines)
                    if re.search(rf"\b{function}\(", line))


def test_json_tells_inlined_functions_and_where_they_begin(recording):
    report = json.loads(run(TICKMAP, "report", "--json", "--inline",
                            recording))
    rows = {f["name"]: f for f in report["functions"]}
    for name in [*INLINED, "work", "main"]:
        assert rows[name]["file"] == str(SOURCE), name
        assert rows[name]["line"] == line_of(name), name
        assert rows[name].get("inlined", False) == (name in INLINED), name
        assert rows[name]["dso"] == "spin"
    assert rows["outer"]["total"] >= rows["leaf"]["total"]
    plain = json.loads(run(TICKMAP, "report", "--json", recording))
    for f in plain["functions"]:
        assert "inlined" not in f
        if f["dso"] == "spin":
            assert f["file"] is None and f["line"] is None
    assert plain["samples"] == report["samples"]


def test_text_marks_them(recording):
    text = run(TICKMAP, "report", "--inline", recording)
    assert re.search(r"% +leaf \(inlined\) ", text)
    assert not re.search(r"work \(inlined\)", text)
    assert "(inlined)" not in run(TICKMAP, "report", recording)
    script = run(TICKMAP, "export", "-f", "perf-script", "--inline", recording)
    assert re.search(r"^\t +[0-9a-f]+ leaf \(inlined\)\n"
                     r"\t +[0-9a-f]+ middle \(inlined\)\n"
                     r"\t +[0-9a-f]+ outer \(inlined\)\n"
                     r"\t +[0-9a-f]+ work \(/.*/spin\)$", script, re.M)


def samples_of_script(text):
    samples = []
    for line in text.splitlines():
        if line and line[0] != "\t":
            samples.append([])
        elif line and not line.endswith(" (inlined)"):
            samples[-1].append(int(line.split()[0], 16))
    return samples


def samples_of_dump(text):
    """The chains as recorded: perf script itself shows offsets in files."""
    samples, chain = [], None
    for line in text.splitlines():
        if re.match(r"^\S.*PERF_RECORD_", line):
            chain = [] if "PERF_RECORD_SAMPLE" in line else None
            if chain is not None:
                samples.append(chain)
        entry = re.match(r"^\.{5} +\d+: ([0-9a-f]{16})$", line)
        if entry and chain is not None and \
                int(entry[1], 16) < 2**64 - 4096:  # no PERF_CONTEXT_...
            chain.append(int(entry[1], 16))
    return samples


@pytest.mark.parametrize("options", [[], ["--inline"]])
def test_perf_script_has_every_frame_s_own_address(program, options):
    if not shutil.which("perf"):
        pytest.skip("perf is not installed")
    data = program.parent / "addresses.data"
    run(TICKMAP, "record", "-o", data, "--", program, "3000000")
    ours = samples_of_script(run(TICKMAP, "export", "-f", "perf-script",
                                 *options, data))
    perfs = samples_of_dump(run("perf", "script", "-D", "-i", data))
    equal = sum(x == y for s, t in zip(ours, perfs) for x, y in zip(s, t))
    frames = sum(map(len, perfs))
    print(f"\n{equal} of {frames} addresses equal in {len(perfs)} samples")
    assert len(perfs) > 100 and frames > 3 * len(perfs)
    assert ours == perfs


def test_functions_in_dwo_files_are_missed_aloud(tmp_path):
    path, data = tmp_path / "split", tmp_path / "split.data"
    run("gcc", "-O2", "-g", "-gsplit-dwarf", "-o", path, SOURCE)
    run(TICKMAP, "record", "-o", data, "--", path, "2000000")
    plain, inlined = ([s for s in stacks(data, *options) if "work" in s[0]]
                      for options in ([], ["--inline"]))
    assert plain == inlined
    hints = [json.loads(run(TICKMAP, "report", "--json", *options, data))
             ["hints"] for options in ([], ["--inline"])]
    assert not any(".dwo" in h for h in hints[0])
    assert sum("split: " in h and ".dwo" in h for h in hints[1]) == 1


def test_broken_dwarf_leaves_the_symbols(program, tmp_path):
    path = tmp_path / "spin"
    data = tmp_path / "broken.data"
    shutil.copy(program, path)
    run(TICKMAP, "record", "-o", data, "--", path, "2000000")
    before = stacks(data)
    sections = run("readelf", "-SW", path)
    at, size = re.search(r"\.debug_info +PROGBITS +\w+ (\w+) (\w+)",
                         sections).groups()
    with open(path, "r+b") as file:  # in place: the inode stays
        file.seek(int(at, 16) + 4)
        file.write(b"\xff" * (int(size, 16) - 4))
    def of_work(*options):
        return sorted(s for s in stacks(data, *options) if "work" in s[0])

    assert stacks(data) == before
    assert of_work("--inline") == of_work()

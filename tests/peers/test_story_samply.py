# SPDX-License-Identifier: MIT
"""foo calls bar calls baz under samply, which ignores unwind tables of published
code and walks frame pointers there: ours are kept, so the chain is whole, which
no trampoline of CPython's own before 3.15 gives it.

TICKMAP_SAMPLY names samply; TICKMAP_SAMPLY_SHIM what is preloaded into it where
there are no hardware counters (tools/peers BUILD samply).
"""
import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "scenes"))
from recorded import INTERPRETERS, ROOT, label  # noqa: E402
from story import (HZ, OFF, OUR_MAP, OURS, SECONDS, own_switches,  # noqa: E402
                   under_perf, under_samply)

SAMPLY = os.environ.get("TICKMAP_SAMPLY") or shutil.which("samply")
PARANOID = pathlib.Path("/proc/sys/kernel/perf_event_paranoid")
FUNCTION = "_PyEval_EvalFrameDefault"

each_python = pytest.mark.parametrize("python", list(INTERPRETERS), ids=label)
by_samply = pytest.mark.skipif(
    not SAMPLY, reason="no samply: TICKMAP_SAMPLY names one")


@pytest.fixture
def samply():
    """A function like under_samply, where samply may record."""
    before = PARANOID.read_text()
    shim = os.environ.get("TICKMAP_SAMPLY_SHIM")
    if not has_cycles() and not shim:
        pytest.skip("no hardware counters, and TICKMAP_SAMPLY_SHIM is not set")
    if int(before) > 1:  # refused by samply, whoever runs it
        try:
            PARANOID.write_text("1\n")
        except OSError as error:
            pytest.skip("perf_event_paranoid is %s and samply wants 1: %s" % (
                before.strip(), error.strerror))
    try:
        yield lambda folder, python, way: under_samply(
            SAMPLY, folder, python, way, None if has_cycles() else shim)
    finally:
        with contextlib.suppress(OSError):
            PARANOID.write_text(before)


def has_cycles():
    done = subprocess.run(["perf", "stat", "-e", "cycles", "true"],
                          capture_output=True, text=True)
    return done.returncode == 0 and "not supported" not in done.stderr


def least():
    return 0.85 * float(SECONDS) * HZ


@by_samply
@each_python
@pytest.mark.parametrize("way", [OURS, OUR_MAP], ids=["jitdump", "perf map"])
def test_samply_shows_our_chain_whole(python, way, samply, tmp_path):
    verdict = samply(tmp_path, python, way)
    verdict.show("%s, ours, samply" % label(python))
    verdict.assert_whole()


@by_samply
@each_python
def test_samply_shows_no_name_when_nothing_is_published(python, samply,
                                                        tmp_path):
    verdict = samply(tmp_path, python, OFF)
    verdict.show("%s, off, samply" % label(python))
    assert verdict.samples >= least()
    assert verdict.named == 0


@by_samply
@each_python
def test_samply_shows_the_names_of_the_interpreters_own_switches(
        python, samply, tmp_path):
    switches = own_switches(python)
    if not switches:
        pytest.skip("this Python has no perf switch of its own (3.12 has)")
    for number, (switch, way) in enumerate(switches.items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        verdict = samply(folder, python, way)
        verdict.show("%s, %s, samply" % (label(python), switch))
        assert verdict.of_baz >= least()


# ---- perf's frame pointer mode, where the interpreter keeps them ----

def frame_pointer_share(binary, *options):
    """How many functions begin with push %rbp; mov %rsp,%rbp, in parts of 1."""
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", *options,
                           binary], capture_output=True, text=True).stdout
    functions = re.split(r"(?m)^[0-9a-f]+ <.*>:$", text)[1:]
    keep = [re.match(r"(\n.*endbr64)?\s*\n.*push +%rbp\s*\n.*mov +%rsp,%rbp",
                     function) for function in functions]
    return sum(map(bool, keep)) / max(1, len(keep))


def keeps_frame_pointers(python):
    """The evaluator, as a glance; then the others: in a 3.14 without frame
    pointers the evaluator has one, and so does 1 function of 100. In a 3.15
    with them it is 28 of 100; the others begin with something else."""
    code = ("import sys, sysconfig, os\n"
            "name = sysconfig.get_config_var('INSTSONAME') or ''\n"
            "lib = os.path.join(sysconfig.get_config_var('LIBDIR') or '', name)\n"
            "print(lib if os.path.isfile(lib) else os.path.realpath("
            "sys.executable))")
    binary = subprocess.run([python, "-c", code], capture_output=True,
                            text=True, check=True).stdout.strip()
    return frame_pointer_share(binary, "--disassemble=" + FUNCTION) > 0.9 and \
        frame_pointer_share(binary) > 0.1


@each_python
def test_perf_with_frame_pointers_shows_our_chain_whole(python, tmp_path):
    if not keeps_frame_pointers(python):
        pytest.skip("%s was built without frame pointers: perf's fp mode has "
                    "no stack there, whatever is published" % label(python))
    for number, way in enumerate((OURS, OUR_MAP)):
        folder = tmp_path / str(number)
        folder.mkdir()
        verdict = under_perf("perf", folder, python, way, "fp")
        verdict.show("%s, ours, perf -g" % label(python))
        verdict.assert_whole()


# ---- macOS: compiled and linked, not run ----

MACH_O = {"x86_64": bytes.fromhex("cffaedfe07000001"),
          "aarch64": bytes.fromhex("cffaedfe0c000001")}


def zig():
    for python in (os.environ.get("TICKMAP_ZIG_PYTHON"), sys.executable):
        if python and subprocess.run([python, "-c", "import ziglang"],
                                     capture_output=True).returncode == 0:
            return [python, "-m", "ziglang", "cc"]
    pytest.skip("no Python with the package ziglang "
                "(TICKMAP_ZIG_PYTHON names one)")


@each_python
@pytest.mark.parametrize("machine", list(MACH_O))
def test_the_extension_is_compiled_and_linked_for_macos(python, machine,
                                                        tmp_path):
    done = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_paths()"
         "['include'])"], capture_output=True, text=True, check=True)
    include = pathlib.Path(done.stdout.strip())
    header = include / "pyconfig.h"
    if not header.exists() or "multiarch" in header.read_text():
        pytest.skip("these headers are of a Linux distribution alone")
    out = tmp_path / "_tickmap.so"
    sources = [path for folder in ("python", "python/" + machine, "src/emit")
               for path in sorted((ROOT / folder).glob("*.c"))]
    built = subprocess.run(
        [*zig(), "-target", machine + "-macos", "-std=gnu11", "-O2", "-shared",
         "-undefined", "dynamic_lookup", "-Wall", "-Wextra", "-Werror",
         "-fno-omit-frame-pointer", "-fvisibility=hidden", "-D_GNU_SOURCE",
         "-DTICKMAP_EMIT_API=", "-I", ROOT / "include", "-I", ROOT / "python",
         "-I", ROOT / "python" / machine, "-isystem", include, *sources,
         "-o", out], capture_output=True, text=True)
    assert built.returncode == 0, built.stderr[-3000:]
    assert out.read_bytes()[:8] == MACH_O[machine]

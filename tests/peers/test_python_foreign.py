# SPDX-License-Identifier: MIT
"""The Python extension for another machine and another C library.

aarch64: cross-compiled, and run by qemu in unpacked Debian interpreters that
TICKMAP_AARCH64_PYTHONS names (DIR/usr/bin/pythonX.Y). musl: compiled, not run.
"""
import glob
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "python"))
import jitdump  # noqa: E402
import test_calls  # noqa: E402

PYTHONS = os.environ.get("TICKMAP_AARCH64_PYTHONS", "").split()
FLAGS = ["-std=gnu11", "-O2", "-g", "-fPIC", "-shared", "-pthread",
         "-fno-omit-frame-pointer", "-foptimize-sibling-calls",
         "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror",
         "-D_GNU_SOURCE", "-DTICKMAP_EMIT_API="]

CHAINS = """
import json, sys
home, maps, probe = sys.argv[1:]
sys.path[:0] = [home, probe]
import probe, tickmap
tickmap.activate("both", maps)
def foo(n): return bar(n) if n else probe.chain()
class C:
    def __init__(self, n): self.chain = foo(n)
    def __getitem__(self, n): return C(n).chain
def bar(n): return C(0)[n - 1]
def generator(): yield foo(2)
def main(): return next(generator())
print(json.dumps(main()))
"""
WANTED = ["main", "generator", "foo", "bar", "C.__getitem__", "C.__init__"]
WANTED += WANTED[2:] + ["foo"]


def sources(machine):
    """What meson.build and setup.py compile."""
    folders = [ROOT / "python", ROOT / "python" / machine,
               ROOT / "src" / "emit"]
    return [path for f in folders for path in sorted(f.glob("*.c"))]


def compile_extension(compiler, machine, include, out):
    command = [compiler, *FLAGS, "-I", ROOT / "include", "-I",
               ROOT / "python", "-I", ROOT / "python" / machine]
    for path in include:
        command += ["-isystem", path]
    done = subprocess.run(
        [str(a) for a in [*command, *sources(machine), "-o", out]],
        capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


class Foreign:
    """An interpreter under qemu, with the extension and the probe."""

    def __init__(self, path, folder):
        path = pathlib.Path(path)
        self.path, self.root = path, path.parents[2]
        self.minor = int(path.name.split(".")[1])
        self.home, self.probe = folder / "home", folder / "probe"
        tag = "cpython-3%d" % self.minor
        suffix = ".%s-aarch64-linux-gnu.so" % tag
        include = self.root / "usr" / "include" / path.name
        (self.home / tag).mkdir(parents=True)
        self.probe.mkdir()
        self.extension = self.home / tag / ("_tickmap" + suffix)
        compile_extension("aarch64-linux-gnu-gcc", "aarch64", [include],
                          self.extension)
        shutil.copytree(ROOT / "python" / "tickmap", self.home / "tickmap")
        subprocess.run(
            ["aarch64-linux-gnu-gcc", "-O2", "-fPIC", "-shared", "-isystem",
             include, "-fno-omit-frame-pointer",
             ROOT / "tests" / "python" / "probe.c", "-o",
             self.probe / ("probe" + suffix)], check=True)

    def run(self, program, *arguments):
        qemu = shutil.which("qemu-aarch64-static") or \
            shutil.which("qemu-aarch64")
        env = {"PYTHONHOME": str(self.root / "usr"), "PATH": "/usr/bin:/bin",
               "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [qemu, "-L", self.root, self.path, "-c", program,
             *[str(a) for a in arguments]], env=env, capture_output=True,
            text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture(scope="module", params=PYTHONS or [None],
                ids=lambda p: p.rsplit("/", 1)[-1] if p else "none")
def foreign(request, tmp_path_factory):
    if not request.param:
        pytest.skip("TICKMAP_AARCH64_PYTHONS names no interpreter")
    for tool in ("aarch64-linux-gnu-gcc", "qemu-aarch64-static"):
        if not shutil.which(tool):
            pytest.skip(tool + " is not installed")
    return Foreign(request.param, tmp_path_factory.mktemp("aarch64"))


def one_dump(folder):
    (path,) = folder.glob("jit-*.dump")
    return jitdump.Dump(path, jitdump.MACHINE_AARCH64)


@pytest.mark.parametrize("warm", [False, True], ids=["cold", "warm"])
def test_every_call_runs_through_its_own_trampoline(foreign, tmp_path, warm):
    argument = test_calls.argument_of(foreign.home, tmp_path, foreign.probe,
                                      warm)
    callers, inits = foreign.run(test_calls.PROGRAM, argument)
    test_calls.check_counts((3, foreign.minor), callers, inits,
                            one_dump(tmp_path))
    print("%d constructs" % len(test_calls.CONSTRUCTS))


def test_frame_pointers_lead_through_every_trampoline(foreign, tmp_path):
    """And the perf map says the same as the dump."""
    chain = foreign.run(CHAINS, foreign.home, tmp_path, foreign.probe)
    # Where an interpreter signs its return addresses (trixie's does), the bits
    # above the address are a signature.
    chain = [address & ((1 << 48) - 1) for address in chain]
    dump = one_dump(tmp_path)
    names = [dump.at(a).short for a in reversed(chain) if dump.at(a)]
    assert names == WANTED
    assert all(f.has_unwinding for f in dump.functions)
    (perfmap,) = tmp_path.glob("perf-*.map")
    lines = [line.split(" ", 2) for line in perfmap.read_text().splitlines()]
    assert [(int(a, 16), int(s, 16), n) for a, s, n in lines] == \
        [(f.addr, f.size, f.name) for f in dump.functions]


def test_a_trampoline_is_what_its_table_says(foreign, tmp_path):
    foreign.run(CHAINS, foreign.home, tmp_path, foreign.probe)
    code = one_dump(tmp_path).functions[0].code
    (tmp_path / "code").write_bytes(code)
    text = subprocess.run(
        ["aarch64-linux-gnu-objdump", "-D", "-b", "binary", "-m", "aarch64",
         "--no-show-raw-insn", tmp_path / "code"], capture_output=True,
        text=True, check=True).stdout
    words = re.findall(r"^\s+[0-9a-f]+:\s+(\S+)\s*(.*?)\s*$", text, re.M)
    assert [w for w, _ in words[:3]] == ["bti", "stp", "mov"]
    size = re.search(r"\[sp, #-(\d+)\]!", words[1][1])[1]
    assert words[1][1].startswith("x29, x30, ") and words[2][1] == "x29, sp"
    assert ("blr", "x3") in words
    end = [w for w, _ in words].index("ret")
    assert words[end - 1] == ("ldp", "x29, x30, [sp], #" + size)


def test_the_hook_leaves_no_frame_of_its_own(foreign):
    text = subprocess.run(
        ["aarch64-linux-gnu-objdump", "-d", "--no-show-raw-insn",
         foreign.extension], capture_output=True, text=True, check=True).stdout
    body = text.split("<tickmap_evaluate>:\n", 1)[1].split("\n\n", 1)[0]
    assert re.search(r"\tbr\tx1[67]", body)
    assert not re.search(r"\tblr?\t", body), body


def test_musl_compiles_it(tmp_path):
    compiler = shutil.which("musl-gcc")
    if not compiler:
        pytest.skip("musl-tools is not installed")
    include = "/usr/include/python3.11"
    if not os.path.exists(include + "/Python.h"):
        pytest.skip("python3-dev is not installed")
    # Debian's pyconfig.h of this machine, where musl has no multiarch folder.
    folder = tmp_path / "include"
    (folder / "x86_64-linux-gnu").mkdir(parents=True)
    for path in glob.glob("/usr/include/x86_64-linux-gnu/python3.11"):
        (folder / "x86_64-linux-gnu" / "python3.11").symlink_to(path)
    out = tmp_path / "_tickmap.so"
    compile_extension(compiler, "x86_64", [include, folder], out)
    assert out.read_bytes()[:4] == b"\x7fELF"
    needed = subprocess.run(["readelf", "-d", out], capture_output=True,
                            text=True, check=True).stdout
    assert "libc.so.6" not in needed

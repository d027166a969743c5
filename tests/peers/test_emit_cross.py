# SPDX-License-Identifier: MIT
"""The emit library on other machines and other C libraries.

aarch64, riscv64 and s390x (big-endian) are cross-compiled, static, and run by
qemu; musl runs here; macOS is compiled and linked by zig, and not run.
"""
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
EMIT = ROOT / "tests" / "emit"
TOY = ROOT / "examples" / "toyjit"
WARNINGS = ["-Wall", "-Wextra", "-Werror"]

USE = """\
#include "tickmap_emit.h"
int main(void)
{
	struct tickmap_emit_options options = TICKMAP_EMIT_OPTIONS_INIT;
	struct tickmap_code code = TICKMAP_CODE_INIT;
	struct tickmap_emit *emit;
	options.dir = ".";
	code.addr = 4096;
	code.code_size = 16;
	code.name = "function";
	return tickmap_emit_open(&options, &emit) ||
	       tickmap_emit_code(emit, &code) || tickmap_emit_close(emit);
}
"""


def run(args, **options):
    done = subprocess.run([str(arg) for arg in args], capture_output=True,
                          text=True, **options)
    assert done.returncode == 0, f"{args}\n{done.stdout}{done.stderr}"
    return done.stdout


def compile_portable(compiler, out, has_toy):
    sources = sorted((ROOT / "src" / "emit").glob("*.c"))
    sources += [EMIT / "portable.c", EMIT / "strict.c"]
    if has_toy:
        sources += [TOY / "toyjit.c", TOY / "toyjit_aarch64.c",
                    TOY / "toyjit_x86_64.c"]
    run([*compiler, "-std=gnu11", *WARNINGS, "-O1", "-static",
         "-fno-omit-frame-pointer", "-fexceptions", "-D_GNU_SOURCE",
         "-I", ROOT / "include", *sources, "-lpthread", "-o", out])


@pytest.mark.parametrize("arch, number, has_toy", [
    ("aarch64", 183, True), ("riscv64", 243, False), ("s390x", 22, False)])
def test_another_machine_under_qemu(tmp_path, arch, number, has_toy):
    compiler = shutil.which(f"{arch}-linux-gnu-gcc")
    if not compiler:
        pytest.skip(f"gcc-{arch}-linux-gnu is not installed")
    qemu = shutil.which(f"qemu-{arch}-static") or shutil.which(f"qemu-{arch}")
    if not qemu:
        pytest.skip("qemu-user-static is not installed")
    program = tmp_path / "portable"
    compile_portable([compiler], program, has_toy)
    output = run([qemu, program, tmp_path, number], timeout=200)
    print(output)
    assert output.endswith("good\n")
    assert ("8 true stacks unwound" in output) == has_toy


@pytest.fixture(scope="module")
def amalgamated(tmp_path_factory):
    folder = tmp_path_factory.mktemp("amalgamated")
    run([ROOT / "tools" / "amalgamate", folder])
    (folder / "use.c").write_text(USE)
    return folder


def test_musl(amalgamated):
    compiler = shutil.which("musl-gcc")
    if not compiler:
        pytest.skip("musl-tools is not installed")
    for link in ([], ["-static"]):
        run([compiler, *WARNINGS, "-O2", *link, "tickmap_emit.c", "use.c",
             "-o", "use"], cwd=amalgamated)
        run(["./use"], cwd=amalgamated)
    dumps = list(amalgamated.glob("jit-*.dump"))
    assert len(dumps) == 2, dumps


def zig():
    """A `zig cc` command: zig itself, or the ziglang package of a Python."""
    if shutil.which("zig"):
        return ["zig", "cc"]
    for python in (os.environ.get("TICKMAP_ZIG_PYTHON"), sys.executable,
                   shutil.which("python3")):
        if python and subprocess.run([python, "-c", "import ziglang"],
                                     capture_output=True).returncode == 0:
            return [python, "-m", "ziglang", "cc"]
    pytest.skip("no zig, nor a Python with the package ziglang "
                "(TICKMAP_ZIG_PYTHON names one)")


@pytest.mark.parametrize("target, magic", [
    ("aarch64-macos", bytes.fromhex("cffaedfe0c000001")),
    ("x86_64-macos", bytes.fromhex("cffaedfe07000001"))])
def test_macos_is_compiled_and_linked(amalgamated, target, magic):
    out = amalgamated / f"use-{target}"
    run([*zig(), "-target", target, *WARNINGS, "-O1", "tickmap_emit.c",
         "use.c", "-o", out], cwd=amalgamated)
    assert out.read_bytes()[:8] == magic

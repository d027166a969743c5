# SPDX-License-Identifier: MIT
"""The extension, built with sanitizers and loaded into an ordinary Python: many
threads that enter new functions, code that is made for ever, a fork, toggling.
"""

import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYTHON = "/usr/bin/python3"

PROGRAM = """
import os, sys, threading
sys.path.append(os.environ["TICKMAP_PYTHON_HOME"])
import tickmap
assert tickmap.is_active()

def f(n):
    return g(n) + 1

def g(n):
    space = {}
    exec("def h%d(x):\\n  return x + 1\\nh%d(1)" % (n, n), space)
    return sum(i for i in range(50))

def work(first):
    for n in range(first, first + 300):
        f(n)

threads = [threading.Thread(target=work, args=(i * 1000,)) for i in range(8)]
[t.start() for t in threads]
for _ in range(50):
    tickmap.deactivate()
    work(90000)
    tickmap.activate()
[t.join() for t in threads]
pid = os.fork()
if pid == 0:
    work(50000)
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
print("ran")
"""


def include():
    code = "import sysconfig; print(sysconfig.get_paths()['include'])"
    return subprocess.run([PYTHON, "-c", code], capture_output=True, text=True).stdout.strip()


def library(name):
    path = subprocess.run(["gcc", "-print-file-name=lib%s.so" % name], capture_output=True, text=True).stdout.strip()
    return path if os.path.isabs(path) else None


@pytest.mark.parametrize("sanitizer,runtime", [("address", "asan"), ("thread", "tsan"), ("undefined", "ubsan")])
def test_the_sanitizer_has_nothing_to_say(tmp_path, sanitizer, runtime):
    if not shutil.which("gcc") or not library(runtime):
        pytest.skip("no gcc with lib%s" % runtime)
    if not pathlib.Path(include(), "Python.h").exists():
        pytest.skip("no headers of %s" % PYTHON)
    home = tmp_path / "home"
    for folder in ("boot", "tickmap"):
        shutil.copytree(ROOT / "python" / folder, home / folder)
    tag = subprocess.run([PYTHON, "-c", "import sys, _imp; print(sys.implementation.cache_tag, _imp.extension_suffixes()[0])"], capture_output=True, text=True).stdout.split()
    (home / tag[0]).mkdir()
    extension = home / tag[0] / ("_tickmap" + tag[1])
    machine = ROOT / "python" / "x86_64"
    sources = [p for f in (ROOT / "python", machine, ROOT / "src" / "emit") for p in sorted(f.glob("*.c"))]
    sources = [s for s in sources if "macos" not in s.name]
    subprocess.run(
        ["gcc", "-std=gnu11", "-O1", "-g", "-fPIC", "-shared", "-pthread", "-fno-omit-frame-pointer", "-foptimize-sibling-calls",
         "-fvisibility=hidden", "-D_GNU_SOURCE", "-DTICKMAP_EMIT_API=", "-fsanitize=" + sanitizer, "-I", ROOT / "include", "-I", ROOT / "python", "-I", machine,
         "-isystem", include(), *sources, "-o", extension],
        check=True, cwd=ROOT)
    dumps = tmp_path / "dumps"
    dumps.mkdir()
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    done = subprocess.run(
        [PYTHON, script], capture_output=True, text=True, timeout=300,
        env=dict(os.environ, LD_PRELOAD=library(runtime), ASAN_OPTIONS="detect_leaks=0", PYTHONPATH=str(home / "boot"),
                 TICKMAP="jitdump", TICKMAP_DIR=str(dumps), TICKMAP_NOTES=str(dumps / "notes"), TICKMAP_PYTHON_HOME=str(home)))
    assert done.returncode == 0 and done.stdout == "ran\n", done.stderr[-3000:]
    assert "Sanitizer" not in done.stderr and "runtime error" not in done.stderr, done.stderr[-3000:]
    assert len(list(dumps.glob("jit-*.dump"))) == 2, "the sanitized extension published, in both processes"

# SPDX-License-Identifier: MIT
"""pip with build isolation, from the network, in newer interpreters; and
mypy's opinion of the stubs. TICKMAP_MYPY_PYTHON has the package mypy."""
import glob
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
from pythons import HOME, clean_environment  # noqa: E402

PYTHONS = ["/usr/bin/python3"] + [
    p for p in os.environ.get("TICKMAP_PYTHONS", "").split()
    if not p.startswith("/usr/bin/")]
SOURCE = ("LICENSE", "README.md", "meson.build", "setup.py", "setup.cfg",
          "pyproject.toml", "MANIFEST.in", "python", "include", "src", "docs")


def pip_for(python):
    """Its own, or the newest of all: an old pip does not start in a new Python."""
    def wheels(of):
        return glob.glob("%s/usr/share/python-wheels/pip-*.whl" % pathlib.Path(of).parents[2])

    def version(wheel):
        return [int(n) for n in re.findall(r"\d+", pathlib.Path(wheel).name)]
    return (wheels(python) or sorted((w for p in PYTHONS for w in wheels(p)), key=version))[-1]


@pytest.mark.parametrize("python", PYTHONS,
                         ids=lambda p: p.rsplit("/", 1)[-1])
def test_pip_installs_it_by_itself(python, tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    for name in SOURCE:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, source / name)
    venv = tmp_path / "venv"
    env = clean_environment()
    subprocess.run([python, "-m", "venv", "--without-pip", venv], check=True,
                   env=env)
    pip = pip_for(python)
    command = [venv / "bin" / "python", "-m", "pip", "install", "-q",
               "--disable-pip-version-check", source]
    done = subprocess.run(command, env=dict(env, PYTHONPATH=pip),
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    env.update(TICKMAP="both", TICKMAP_DIR=str(tmp_path))
    subprocess.run([venv / "bin" / "python", "-c", "def f(): pass\nf()"],
                   check=True, env=env)
    (path,) = tmp_path.glob("jit-*.dump")
    assert jitdump.Dump(path).named("f")


def test_mypy_finds_the_stubs_true():
    python = os.environ.get("TICKMAP_MYPY_PYTHON")
    if not python:
        pytest.skip("TICKMAP_MYPY_PYTHON names no Python with mypy")
    done = subprocess.run([python, "-m", "mypy.stubtest", "tickmap"],
                          env=dict(clean_environment(), PYTHONPATH=str(HOME)),
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no issues found" in done.stdout

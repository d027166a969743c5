# SPDX-License-Identifier: MIT
"""The interpreters that are tested, and how a program is run in one.

The build folder is $TICKMAP_BUILD or build/ in the project's root. Others than
the installed ones are named in $TICKMAP_TEST_PYTHONS, separated by blanks;
$TICKMAP_TEST_JIT=1 runs them all with their experimental JIT on.
"""

import glob
import json
import os
import pathlib
import re
import subprocess
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = ROOT / "tests" / "python"
BUILD = pathlib.Path(os.environ.get("TICKMAP_BUILD") or ROOT / "build").resolve()
HOME = BUILD / "python"
BOOT = HOME / "boot"

FACTS = """
import json, sys, sysconfig, platform
print(json.dumps([
    platform.python_implementation(), list(sys.version_info[:3]), sys.implementation.cache_tag,
    sysconfig.get_config_var("EXT_SUFFIX"), sysconfig.get_paths()["include"], sys.executable]))
"""


def clean_environment():
    """Ours, without anything that changes how an interpreter starts."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "TICKMAP", "PYENV", "VIRTUAL_ENV"))}
    if os.environ.get("TICKMAP_TEST_JIT") == "1":
        env["PYTHON_JIT"] = "1"
    return env


class Python:
    """An installed interpreter."""

    def __init__(self, path):
        out = subprocess.run([path, "-c", FACTS], env=clean_environment(), check=True, stdout=subprocess.PIPE)
        name, version, self.tag, self.suffix, self.include, self.executable = json.loads(out.stdout)
        self.path = path
        self.is_cpython = name == "CPython"
        self.version = tuple(version)
        self.extension = HOME / self.tag / ("_tickmap" + (self.suffix or ""))

    @property
    def label(self):
        kind = ("t" if self.is_free_threaded else "") + ("d" if "d-" in (self.suffix or "") else "")
        return "%s%s-%s" % (".".join(map(str, self.version)), kind, self.path.split("/")[1])

    @property
    def is_free_threaded(self):
        return re.search(r"\dtd?-", self.suffix or "") is not None

    @property
    def library(self):
        """The name of the folder in lib."""
        return "python%d.%d" % self.version[:2] + ("t" if self.is_free_threaded else "")


def find_pythons():
    paths = os.environ.get("TICKMAP_TEST_PYTHONS", "").split()
    if not paths:
        paths = ["/usr/bin/python3"] + sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/*/bin/python")))
    found = []
    for path in paths:
        try:
            python = Python(path)
        except (OSError, ValueError, subprocess.SubprocessError):
            continue
        if python.is_cpython and python.version >= (3, 9):
            found.append(python)
    return found


PYTHONS = find_pythons()


class Result:
    def __init__(self, done, maps, notes):
        self.code = done.returncode
        self.out = done.stdout.decode("utf-8", "surrogateescape")
        self.err = done.stderr.decode("utf-8", "surrogateescape")
        self.maps = maps
        self.notes = notes.read_text().splitlines() if notes.exists() else []

    @property
    def json(self):
        return json.loads(self.out)

    def dumps(self):
        return sorted(self.maps.glob("**/jit-*.dump"))

    def perfmaps(self):
        return sorted(self.maps.glob("**/perf-*.map"))


class Runner:
    """Runs a program as `tickmap record` would, or plainly."""

    def __init__(self, folder):
        self.folder = folder
        self.count = 0

    def environment(self, maps, form, home=HOME):
        env = clean_environment()
        if form:
            env.update(
                TICKMAP=form,
                TICKMAP_DIR=str(maps),
                TICKMAP_PYTHON_HOME=str(home),
                TICKMAP_KEEP_EXISTING="1",
                TICKMAP_FOLLOWED="1",
                TICKMAP_NOTES=str(maps / "notes"),
                PYTHONPATH=str(BOOT),
            )
        return env

    def __call__(self, python, program, *arguments, form="jitdump", home=HOME, env={}, before=(), code=0, timeout=180):
        """`code` None: any exit code will do."""
        self.count += 1
        maps = self.folder / ("maps%d" % self.count)
        maps.mkdir()
        command = [getattr(python, "path", python)] + list(before)
        if program is not None:
            script = self.folder / "program.py"
            script.write_text(textwrap.dedent(program))
            command.append(str(script))
        environment = self.environment(maps, form, home)
        environment.update(env)
        done = subprocess.run(
            command + list(arguments),
            env={k: v for k, v in environment.items() if v is not None},
            cwd=str(self.folder),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=timeout,
        )
        result = Result(done, maps, maps / "notes")
        if code is not None:
            assert result.code == code, result.err + result.out
        return result

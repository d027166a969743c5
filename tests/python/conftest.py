# SPDX-License-Identifier: MIT
"""Runs each test in every CPython that is installed and has a build."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from pythons import HERE, HOME, PYTHONS, Runner  # noqa: E402


@pytest.fixture(params=PYTHONS, ids=lambda p: p.label)
def python(request):
    if not request.param.extension.exists():
        pytest.skip("no extension was built for %s in %s" % (request.param.label, HOME))
    return request.param


@pytest.fixture
def run(tmp_path):
    return Runner(tmp_path)


@pytest.fixture(scope="session")
def probe_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("probe")


@pytest.fixture
def probe(python, probe_folder):
    """A folder with probe.c built for this interpreter."""
    compiler = shutil.which("cc")
    if not compiler or not os.path.exists(os.path.join(python.include, "Python.h")):
        pytest.skip("no compiler or no headers for " + python.label)
    folder = probe_folder / python.label
    if not folder.exists():
        folder.mkdir()
        command = [compiler, "-O2", "-g", "-fno-omit-frame-pointer", "-fPIC", "-shared", "-I", python.include]
        command += [str(HERE / "probe.c"), "-o", str(folder / ("probe" + python.suffix))]
        subprocess.run(command, check=True)
    return folder

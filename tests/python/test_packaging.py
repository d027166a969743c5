# SPDX-License-Identifier: MIT
"""`pip install .` without Meson and without the network, from what the source
archive holds, into a virtual environment of each interpreter."""

import email
import glob
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import zipfile

import pytest

import jitdump
from pythons import ROOT, clean_environment
from test_unwinding import disassembly

DEBIAN = "/usr/lib/python3/dist-packages/"
WHEELS = "/usr/share/python-wheels/"
ASK = """
import importlib.util, sys, sysconfig
print([m for m in ("pip", "setuptools", "wheel") if importlib.util.find_spec(m)])
print(sysconfig.get_paths()["stdlib"])
"""

USE = """
import os, tickmap
status = tickmap.status()
def f(): pass
f()
print(status["active"], os.path.dirname(tickmap.__file__), tickmap._extension.__name__)
"""


def version():
    return re.search(r"^  version: '(.*)'", (ROOT / "meson.build").read_text(), re.M).group(1)


def tools_for(python, folder):
    """A folder to import pip, setuptools and wheel from: the interpreter's
    own, else those its library carries, else Debian's. pip builds without
    isolation with them; nothing is fetched."""
    out = subprocess.run([python.path, "-c", ASK], env=clean_environment(), check=True, stdout=subprocess.PIPE)
    found, stdlib = out.stdout.decode().splitlines()
    folder.mkdir()
    for tool in ("pip", "setuptools", "wheel"):
        if repr(tool) in found:
            continue
        wheels = glob.glob(stdlib + "/test/wheeldata/%s-*.whl" % tool) + glob.glob(stdlib + "/ensurepip/_bundled/%s-*.whl" % tool)
        if not wheels and tool != "pip":  # another interpreter's will do
            wheels = glob.glob(os.path.expanduser("~/.pyenv/versions/*/lib/python*/test/wheeldata/%s-*.whl" % tool))
        if python.path.startswith("/usr/bin/") or (tool == "wheel" and not wheels):
            wheels += glob.glob(WHEELS + tool + "-*.whl")
            if not wheels and os.path.isdir(DEBIAN + tool):
                os.symlink(DEBIAN + tool, str(folder / tool))
                for about in glob.glob(DEBIAN + tool + "-*-info"):
                    os.symlink(about, str(folder / os.path.basename(about)))
                continue
        if not wheels:
            pytest.skip("there is no %s for %s, and tests fetch nothing" % (tool, python.label))
        with zipfile.ZipFile(wheels[0]) as wheel:
            wheel.extractall(str(folder))
    return folder


@pytest.fixture(scope="module")
def bare_path(tmp_path_factory):
    """A PATH with a compiler and nothing else."""
    folder = tmp_path_factory.mktemp("bin")
    for name in ("as", "ld", "cc", "gcc", "g++", "c++", "x86_64-linux-gnu-gcc", "x86_64-linux-gnu-g++"):
        if shutil.which(name):
            (folder / name).symlink_to(os.path.realpath(shutil.which(name)))
    assert not shutil.which("meson", path=str(folder))
    return str(folder)


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """The source archive, made from a copy: the tree stays as it is."""
    folder = tmp_path_factory.mktemp("sdist")
    copy = folder / "copy"
    ignore = shutil.ignore_patterns("build*", ".git", "__pycache__", "*.egg-info")
    for name in ("LICENSE", "README.md", "meson.build", "setup.py", "setup.cfg", "pyproject.toml", "MANIFEST.in"):
        copy.mkdir(exist_ok=True)
        shutil.copy(str(ROOT / name), str(copy / name))
    for name in ("python", "include", "src", "docs"):
        shutil.copytree(str(ROOT / name), str(copy / name), ignore=ignore)
    command = ["/usr/bin/python3", "setup.py", "-q", "sdist", "--formats=gztar", "-d", str(folder)]
    done = subprocess.run(command, cwd=str(copy), env=clean_environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout.decode()
    (made,) = folder.glob("*.tar.gz")
    return made


def test_pip_installs_it_without_meson_and_without_the_network(python, run, archive, bare_path, tmp_path):
    tools = tools_for(python, tmp_path / "tools")
    with tarfile.open(str(archive)) as tar:
        tar.extractall(str(tmp_path / "source"))
    (source,) = (tmp_path / "source").iterdir()
    venv = tmp_path / "venv"
    make = [python.path, "-m", "venv", "--without-pip", "--system-site-packages", str(venv)]
    if subprocess.run(make, env=clean_environment()).returncode != 0:
        pytest.skip("%s cannot make virtual environments" % python.label)
    program = str(venv / "bin" / "python")
    # Flags from outside cannot take away what the hook needs.
    hostile = dict(clean_environment(), PATH=bare_path, PYTHONPATH=str(tools), CFLAGS="-O0 -fomit-frame-pointer")
    command = [program, "-m", "pip", "install", "--no-index", "--no-deps", "--no-build-isolation", str(source)]
    command += ["--disable-pip-version-check", "--no-cache-dir"]
    done = subprocess.run(command, env=hostile, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout.decode()

    (site,) = venv.glob("lib/python*/site-packages")
    (extension,) = site.glob("tickmap/_tickmap*.so")
    code = disassembly(extension, "tickmap_evaluate")
    assert any(re.match(r"jmp\s+\*%r", line) for line in code), code
    (about,) = site.glob("tickmap-*.dist-info/METADATA")
    assert email.message_from_string(about.read_text())["Version"] == version()

    # By the environment alone, and with all that -I and -E shut out.
    for before in ([], ["-I"], ["-E"]):
        result = run(program, USE, before=before, env={"PYTHONPATH": None, "TICKMAP_PYTHON_HOME": None})
        assert (result.out, result.err) == ("True %s tickmap._tickmap\n" % (site / "tickmap"), "")
        assert jitdump.read_one(result).named("f")
    # Under a recorder its own copy works, and no other.
    result = run(program, USE)
    assert result.out == "True %s _tickmap\n" % (site / "tickmap")
    assert jitdump.read_one(result).named("f")
    # Where a recorder has none for this interpreter the installed one works,
    # and the interpreter's own trampolines do not join it.
    (tmp_path / "none").mkdir()
    ask = USE + "import sys\nprint(getattr(sys, 'is_stack_trampoline_active', bool)())"
    result = run(program, ask, home=tmp_path / "none")
    assert (result.out, result.notes) == ("True %s tickmap._tickmap\nFalse\n" % (site / "tickmap"), [])
    # -I keeps the recorder's copy out.
    result = run(program, USE, before=["-I"])
    assert result.out == "True %s tickmap._tickmap\n" % (site / "tickmap")
    assert jitdump.read_one(result).named("f")
    # Without being asked for it does nothing.
    program_text = "import os\nprint('_tickmap' in open('/proc/self/maps').read())"
    for env in ({}, {"TICKMAP": "0", "PYTHONPERFSUPPORT": "0"}):
        assert run(program, program_text, form=None, env=env).out == "False\n"


def test_the_versions_agree(python, run):
    out = run(python, None, "-c", "import tickmap; print(tickmap.__version__)", form=None, env=package_path())
    assert out.out.strip() == version()


def package_path():
    from pythons import HOME

    return {"PYTHONPATH": str(HOME)}


def test_the_archive_holds_what_is_built_and_nothing_made(archive):
    with tarfile.open(str(archive)) as tar:
        names = {pathlib.PurePath(*pathlib.PurePath(n).parts[1:]) for n in tar.getnames()}
    names = {str(n) for n in names}
    wanted = {str(p.relative_to(ROOT)) for folder in ("python", "src/emit") for p in (ROOT / folder).glob("**/*.[ch]")}
    assert wanted <= names
    assert {"LICENSE", "pyproject.toml", "setup.py", "include/tickmap/emit.h", "python/tickmap/py.typed"} <= names
    assert not [n for n in names if n.endswith((".o", ".so", ".pyc"))]



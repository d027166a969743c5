# SPDX-License-Identifier: MIT
"""Servers, daemons, test runners and notebooks under `tickmap record`."""
import os
import pathlib
import shutil
import subprocess

import pytest

from recorded import INTERPRETERS, label
from scene import PROGRAMS, Scene

each_python = pytest.mark.parametrize("python", list(INTERPRETERS), ids=label)


@each_python
def test_a_server_that_forks_its_workers_in_advance(python, tmp_path):
    scene = Scene(python, tmp_path, [PROGRAMS / "prefork.py"])
    started = int(scene.recording.stdout.split()[-1])
    # 200 requests, 15 a worker, 3 at once.
    assert started >= 200 // 15
    scene.check(processes=started + 1, sampled=0.8)


@each_python
def test_a_daemon_of_two_forks(python, tmp_path):
    Scene(python, tmp_path, [PROGRAMS / "daemon.py", "wait"]).check(
        processes=2)


PYTEST = ["_pytest", "pytest", "attr", "attrs", "iniconfig", "pluggy",
          "packaging", "pygments", "exceptiongroup", "tomli", "py"]


@pytest.fixture(scope="module")
def pytest_alone(tmp_path_factory):
    """The pytest that runs this, without its neighbours."""
    folder = tmp_path_factory.mktemp("pytest")
    home = pathlib.Path(pytest.__file__).parents[1]
    for name in PYTEST:
        if (home / name).is_dir():
            shutil.copytree(home / name, folder / name)
        elif (home / (name + ".py")).exists():
            shutil.copy(home / (name + ".py"), folder)
    for info in home.glob("*-info"):
        if info.name.split("-")[0] in PYTEST:
            (shutil.copytree if info.is_dir() else shutil.copy)(
                info, folder / info.name)
    return folder


def with_pytest(python, folders):
    """Variables for the first of the folders whose pytest runs there."""
    reasons = []
    for folder in folders:
        env = {"PYTHONPATH": "%s:%s" % (folder, PROGRAMS),
               "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        done = subprocess.run([python, "-c", "import pytest"], env=dict(
            os.environ, **env), capture_output=True, text=True)
        if done.returncode == 0:
            return env
        reasons.append(done.stderr.strip().splitlines()[-1])
    pytest.skip("pytest %s does not run there, and TICKMAP_PYTEST names none "
                "that does: %s" % (pytest.__version__, "; ".join(reasons)))


@each_python
def test_pytest(python, pytest_alone, tmp_path):
    newer = os.environ.get("TICKMAP_PYTEST")
    env = with_pytest(python, [pytest_alone] + ([newer] if newer else []))
    suite = PROGRAMS / "suite_sample.py"
    scene = Scene(python, tmp_path, [
        "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", tmp_path,
        suite], env=env)
    assert "13 passed" in scene.recording.stdout
    scene.check()


@each_python
def test_a_kernel_of_notebooks(python, tmp_path):
    scene = Scene(python, tmp_path, [PROGRAMS / "kernel.py"])
    assert scene.recording.stdout.split() == ["6"], "one failing cell a round"
    scene.check()

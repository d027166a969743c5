# SPDX-License-Identifier: MIT
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from command import BUILD, Run

PROGRAM = """
import hashlib, threading
def spin(n):
    total = 0
    for i in range(n):
        total += i * i
    return total
def hash_much(n):
    for _ in range(n):
        hashlib.sha256(bytes(1 << 16)).digest()
def main():
    t = threading.Thread(target=hash_much, args=(400,))
    t.start()
    for _ in range(8):
        spin(1000000)
    t.join()
main()
"""


@pytest.fixture
def tickmap(tmp_path):
    """Runs the command in an empty folder."""
    def run(*arguments, cwd=tmp_path, **env):
        return Run(arguments, cwd, env)
    return run


@pytest.fixture(scope="session")
def recording(tmp_path_factory):
    """A real one, made here: two threads of a Python program."""
    if not list((BUILD / "python").rglob("_tickmap*.so")):
        pytest.skip("this build has no Python extension")
    folder = tmp_path_factory.mktemp("recording")
    (folder / "app.py").write_text(PROGRAM)
    made = Run(["record", "-o", "app.data", "--", "/usr/bin/python3", "app.py"], folder, {})
    if made.code == 4:
        pytest.skip("no recording here: " + made.err.strip())
    assert made.code == 0, made.err
    return folder / "app.data"


@pytest.fixture(scope="session")
def empty_recording(tmp_path_factory):
    """One with no samples: of a program that hardly runs, sampled rarely."""
    folder = tmp_path_factory.mktemp("empty")
    for _ in range(5):
        made = Run(["record", "-F", "1", "-o", "empty.data", "--", "/bin/true"], folder, {})
        if made.code == 4:
            pytest.skip("no recording here: " + made.err.strip())
        assert made.code == 0, made.err
        if '"samples":0,' in Run(["report", "--json", "empty.data"], folder, {}).out:
            return folder / "empty.data"
    pytest.skip("even /bin/true was sampled, five times")

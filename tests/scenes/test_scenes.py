# SPDX-License-Identifier: MIT
"""Programs as people write them, recorded without a line changed: every sample
in Python has its whole Python stack."""
import pytest

from recorded import INTERPRETERS, label
from scene import PROGRAMS, Scene

each_python = pytest.mark.parametrize("python", list(INTERPRETERS), ids=label)


@each_python
def test_a_web_application_in_threads(python, tmp_path):
    # The kernel starts each thread with a whole period, of which the rest is
    # lost at the thread's end: half a sample of each of the 200 requests.
    Scene(python, tmp_path, [PROGRAMS / "web.py"]).check(sampled=0.85)


@each_python
def test_asyncio(python, tmp_path):
    Scene(python, tmp_path, [PROGRAMS / "asynchronous.py"]).check()


@each_python
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_eight_children_of_multiprocessing(python, method, tmp_path):
    Scene(python, tmp_path, [PROGRAMS / "children.py", method]).check(
        processes=9)


@each_python
def test_c_extensions_that_call_back(python, tmp_path):
    Scene(python, tmp_path, [PROGRAMS / "extensions.py"]).check()

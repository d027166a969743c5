# SPDX-License-Identifier: MIT
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))


def pytest_addoption(parser):
    try:
        parser.addoption("--update", action="store_true",
                         help="rewrite the golden files")
    except ValueError:
        pass  # another folder has it


@pytest.fixture
def golden(request):
    """Compare bytes with a file of golden/."""
    def check(name, got):
        path = pathlib.Path(__file__).parent / "golden" / name
        if request.config.getoption("--update"):
            path.write_bytes(got)
        assert got.decode() == path.read_bytes().decode()
    return check

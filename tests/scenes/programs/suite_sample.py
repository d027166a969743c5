# SPDX-License-Identifier: MIT
"""A small suite for pytest: fixtures, parameters, classes, raises, marks."""
import pytest

import truthful

truthful.begin()

UNIT = 0.01


@truthful.marker
def work(n):
    truthful.mark()
    end, x = truthful.work(UNIT), n
    while truthful.cpu() < end:
        for i in range(200):
            x += i & 3
    return x


@pytest.fixture(scope="session", autouse=True)
def truth():
    yield
    truthful.end()


@pytest.fixture(scope="module")
def shared():
    yield work(1)
    work(2)


@pytest.fixture
def each(shared):
    work(3)
    yield shared
    work(4)


@pytest.mark.parametrize("n", range(10))
def test_with_fixtures(each, n):
    assert work(n) >= n


class TestThings:
    def setup_method(self):
        work(5)

    def test_a_method(self, each):
        assert work(1)

    def test_raises(self):
        with pytest.raises(LookupError):
            self.fail(work(2))

    def fail(self, n):
        work(n)
        raise LookupError(n)


def test_patched(monkeypatch, tmp_path):
    monkeypatch.setattr("os.getcwd", lambda: work(6))
    import os
    assert os.getcwd()

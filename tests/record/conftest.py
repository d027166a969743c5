import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "truth"))


@pytest.fixture(autouse=True)
def own_folder_for_code_maps(tmp_path, monkeypatch):
    """Other recorders on this machine make and remove theirs in /tmp."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))

"""What a child is started from."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from optiml_magic.child.process import Start


def test_the_folder_that_python_looks_into_first_has_its_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """``python -c`` has an empty one, which is another folder where a child works."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", "/elsewhere"])
    path = dict(Start.now("any", []).variables)["PYTHONPATH"]
    assert path.split(os.pathsep) == [str(tmp_path), "/elsewhere"]

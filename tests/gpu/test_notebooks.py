"""The quickstart on a card, unchanged."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = [pytest.mark.gpu, pytest.mark.slow, pytest.mark.timeout(900)]

QUICKSTART = Path(__file__).parents[2] / "notebooks" / "00_quickstart.ipynb"


def test_the_quickstart_runs_on_the_card_unchanged(tmp_path: Path) -> None:
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.read(QUICKSTART, as_version=4)
    nbclient.NotebookClient(
        notebook, timeout=800, resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    shown = [
        output.data["text/plain"]
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        if "text/html" in output.get("data", {})
    ]
    # No time is asserted: on a card a small kernel may be as fast as it gets.
    outcome = re.compile(r"(\w+): (?:[\d.]+x faster, events|no significant change|.* than CuPy)")
    found = {match[1] for text in shown if (match := outcome.match(text))}
    assert found == {"transpose", "matmul", "row_sum", "rms_norm"}, shown
    assert not re.search(r"\d [mun]s estimated|emulated:\w", "".join(shown))
    (tmp_path / "executed.ipynb").write_text(nbformat.writes(notebook))

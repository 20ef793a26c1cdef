"""The quickstart as its readers get it: stored, executed anew, and turned into a page."""

from __future__ import annotations

import getpass
import os
import platform
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
QUICKSTART = ROOT / "notebooks" / "00_quickstart.ipynb"
TASKS = ("transpose", "matmul", "row_sum", "rms_norm")


class Page(HTMLParser):
    """The texts of a page, by the tags that they stand in."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.texts: dict[str, list[str]] = {"h3": [], "pre": [], "summary": []}
        self._open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in self.texts:
            self.texts[tag].append("")
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self._open:
            del self._open[len(self._open) - 1 - self._open[::-1].index(tag) :]

    def handle_data(self, data: str) -> None:
        for tag in self._open:
            self.texts[tag][-1] += data


def assert_outcomes(html: str) -> None:
    """Three kernels and a reference made faster, each with its findings, its diff and its best program."""
    texts = Page(html).texts
    gains = re.findall(r"<h3[^>]*>(\w+)</h3><div[^>]*>([\d.]+)x faster</div>", html)
    found = {name: float(gain) for name, gain in gains}
    assert tuple(found) == TASKS
    assert all(gain > 1 for gain in found.values())
    diffs = [text for text in texts["pre"] if re.match(r"lines \d+ to \d+$", text, re.MULTILINE)]
    for name in TASKS:
        own = [text for text in diffs if f"launch {name}" in text]
        assert own, name
        assert re.search(r"^\+ #pragma optiml", own[0], re.MULTILINE)
    assert "touches 32.0 sectors a request" in html
    assert texts["summary"].count("Findings on the input kernel") >= len(TASKS) - 1
    assert "Findings on the lowered reference" in texts["summary"]
    assert "row_sum: \u2717 wrong" in texts["h3"]
    assert any("KernelFailed" in text and "line 6" in text for text in texts["pre"])


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_is_stored_tells_nothing_of_the_machine_that_ran_it(path: Path) -> None:
    text = path.read_text()
    import nbformat

    notebook = nbformat.reads(text, as_version=4)
    nbformat.validate(notebook)
    assert notebook.metadata.language_info == {"name": "python"}
    assert "widget-view" not in text
    assert str(ROOT) not in text
    for name in (platform.node(), getpass.getuser()):
        assert not re.search(rf"\b{re.escape(name)}\b", text)
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            assert not ("text/html" in data and "text/plain" in data)
            assert not re.search(r"evaluations? in [\d.]+ s", str(data))
            assert not re.search(r"/(home|root|tmp|usr)/", str(output))


def test_the_stored_quickstart_shows_outcomes_diffs_and_findings() -> None:
    import nbformat

    notebook = nbformat.read(QUICKSTART, as_version=4)
    ran = [cell.execution_count for cell in notebook.cells if cell.cell_type == "code"]
    assert ran == list(range(1, len(ran) + 1))
    parts = []
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            parts.append(output.get("data", {}).get("text/html", ""))
            parts.append(f"<pre>{''.join(output.get('traceback', ()))}</pre>")
    assert_outcomes("".join(parts))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_executed_and_turned_into_a_page_it_shows_the_same(tmp_path: Path) -> None:
    subprocess.run(
        [
            *(sys.executable, "-m", "nbconvert", "--to", "html", "--execute", str(QUICKSTART)),
            *("--output-dir", str(tmp_path), "--log-level", "ERROR"),
        ],
        check=True,
        timeout=590,
        env={**os.environ, "OPTIML_DEVICE": "emulated:h200", "OPTIML_LLM": "none"},
    )
    page = (tmp_path / "00_quickstart.html").read_text()
    assert "application/vnd.jupyter.widget-view+json" not in page
    assert_outcomes(page)

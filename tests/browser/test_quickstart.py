"""The quickstart in a real JupyterLab: watched, stopped, saved, and opened again."""

from __future__ import annotations

import re
from typing import Any

import nbformat
import pytest

from tests.browser.lab import ROOT, Lab, Notebook

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(240)]

QUICKSTART = nbformat.read(ROOT / "notebooks" / "00_quickstart.ipynb", as_version=4)
SOURCES = {cell.id: cell.source for cell in QUICKSTART.cells}
TASKS = ("transpose", "matmul", "row_sum")
NUMBERS = {cell.id: number for number, cell in enumerate(QUICKSTART.cells)}


@pytest.fixture
def quickstart(page: Any, lab: Lab) -> Notebook:
    """The quickstart without outputs."""
    bare = nbformat.from_dict(QUICKSTART)
    for cell in bare.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    nbformat.write(bare, lab.folder / "quickstart.ipynb")
    return lab.open(page, "quickstart.ipynb")


def headlines(notebook: Notebook) -> list[str]:
    found: list[str] = notebook.page.locator(".jp-OutputArea h3").all_text_contents()
    return found


def until_headlines(notebook: Notebook, count: int) -> None:
    """JupyterLab draws cells off the screen when it has time."""
    notebook.page.wait_for_function(
        "count => document.querySelectorAll('.jp-OutputArea h3').length >= count", arg=count
    )


def test_run_all_then_save_and_open_it_again(quickstart: Notebook, lab: Lab, picture: Any) -> None:
    page = quickstart.page
    quickstart.run_all()
    quickstart.until_steps(3)
    page.wait_for_function("document.querySelector('.optiml-lead strong') !== null")
    assert "of 16 evaluations" in page.locator(".optiml-search").first.text_content()
    quickstart.look_at(".optiml-search")
    picture(page, "quickstart-searching")
    quickstart.until_ran(NUMBERS["error-line"], seconds=150)
    page.locator(".optiml-search").first.wait_for(state="detached", timeout=5000)
    assert "KernelFailed: line 6" in quickstart.text(NUMBERS["error-line"])
    assert "Traceback" not in quickstart.text(NUMBERS["error-line"])
    assert [line.split(":")[0] for line in headlines(quickstart)] == [*TASKS, "row_sum"]
    before = headlines(quickstart)
    quickstart.save()
    assert "widget-view" not in quickstart.path.read_text()

    again = lab.open(page, "quickstart.ipynb")
    until_headlines(again, len(before))
    assert headlines(again) == before
    for name in TASKS:
        shown = again.text(NUMBERS[f"{name.replace('_', '-')}-optimize"])
        assert "Findings on the input kernel" in shown
        assert f"+++ {name} (best)" in shown
    for theme in ("light", "dark"):
        again.dark(theme == "dark")
        for name in ("transpose-profile", "transpose-optimize", "wrong-check"):
            again.look_at(f".jp-Notebook .jp-Cell:nth-child({NUMBERS[name] + 1}) .jp-OutputArea")
            page.wait_for_timeout(300)
            picture(page, f"reloaded-{name}-{theme}")


def test_stop_keeps_the_best_so_far_and_the_kernel_lives_on(
    page: Any, lab: Lab, picture: Any
) -> None:
    search = SOURCES["transpose-optimize"].replace("--budget 16", "--budget 100000")
    cells = [
        SOURCES["load"],
        SOURCES["transpose-data"],
        search,
        SOURCES["transpose-best"],
    ]
    notebook = lab.open(page, lab.write("stopped.ipynb", cells))
    notebook.run_all()
    notebook.until_steps(4)
    page.wait_for_function("document.querySelector('.optiml-lead strong') !== null")
    notebook.look_at(".optiml-search")
    picture(page, "stop-searching")
    page.locator(".optiml-stop").click()
    notebook.until_ran(3, seconds=30)
    assert re.search(r"transpose: [\d.]+x faster", notebook.text(2))
    assert re.search(r"ended\s*stopped", notebook.text(2))
    # Called on new arrays in the next cell, by the same kernel.
    assert "+++ transpose (best)" in notebook.text(3)
    picture(page, "stop-stopped")

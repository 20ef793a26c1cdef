"""The quickstart in a real JupyterLab: watched, stopped, saved, and opened again."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.browser.lab import ROOT, Lab, Notebook

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(600)]

QUICKSTART = ROOT / "notebooks" / "00_quickstart.ipynb"
CELLS = json.loads(QUICKSTART.read_text())["cells"]
SOURCES = {cell["id"]: "".join(cell["source"]) for cell in CELLS}
TASKS = ("transpose", "matmul", "row_sum")  # kernels
NUMBERS = {cell["id"]: number for number, cell in enumerate(CELLS)}


@pytest.fixture
def quickstart(page: Any, lab: Lab) -> Notebook:
    """The quickstart without outputs."""
    import nbformat

    bare = nbformat.read(QUICKSTART, as_version=4)
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
    quickstart.look_at(NUMBERS["transpose-profile"])
    picture(page, "quickstart-searching")
    quickstart.until_ran(NUMBERS["error-line"], seconds=400)
    page.locator(".optiml-search").first.wait_for(state="detached", timeout=5000)
    assert "KernelFailed: line 6" in quickstart.text(NUMBERS["error-line"])
    assert "Traceback" not in quickstart.text(NUMBERS["error-line"])
    before = headlines(quickstart)
    faster = page.locator(".jp-OutputArea").get_by_text(re.compile(r"^[\d.]+x faster$"))
    assert faster.count() == len([*TASKS, "row_sum", "rms_norm"])
    assert "the lowered reference" in quickstart.text(NUMBERS["rms-norm-synthesize"])
    quickstart.save()
    assert "widget-view" not in quickstart.path.read_text()

    again = lab.open(page, "quickstart.ipynb")
    until_headlines(again, len(before))
    assert headlines(again) == before
    for name in TASKS:
        shown = again.text(NUMBERS[f"{name.replace('_', '-')}-optimize"])
        assert "Findings on the input kernel" in shown
        assert "Diff of the input kernel and the best" in shown
    for theme in ("light", "dark"):
        again.dark(theme == "dark")
        for name in (
            "transpose-profile",
            "transpose-optimize",
            "rms-norm-synthesize",
            "wrong-check",
        ):
            again.look_at(NUMBERS[name])
            picture(page, f"reloaded-{name}-{theme}")


def test_the_stored_outcomes_show_where_nobody_has_run_or_trusted_them(
    page: Any, lab: Lab, picture: Any
) -> None:
    (lab.folder / "stored.ipynb").write_bytes(QUICKSTART.read_bytes())
    notebook = lab.open(page, "stored.ipynb")
    until_headlines(notebook, 6)
    assert page.locator(".jp-mod-trusted h3").count() == 0  # the page's own text was sanitised
    for name in TASKS:
        number = NUMBERS[f"{name.replace('_', '-')}-optimize"]
        shown = notebook.text(number)
        assert re.search(rf"{name}[\d.]+x faster\u2713 verified", shown)
        assert "Diff of the input kernel and the best" in shown
        assert "would need alone" not in shown  # words of a picture that lost its lines
    for name in ("transpose", "matmul"):
        number = NUMBERS[f"{name}-optimize"]
        notebook.look_at(number)
        wide = (
            notebook.outputs(number)
            .locator("img")
            .evaluate_all("all => all.map(e => e.naturalWidth > 400)")
        )
        assert wide == [True] * 4
        picture(page, f"stored-untrusted-{name}")
    page.set_viewport_size({"width": 560, "height": 900})
    notebook.look_at(NUMBERS["transpose-optimize"])
    picture(page, "stored-untrusted-narrow")


def test_stop_keeps_the_best_so_far_and_the_kernel_lives_on(
    page: Any, lab: Lab, picture: Any
) -> None:
    search = SOURCES["transpose-optimize"].replace("--budget 16", "--budget 400")
    cells = [
        SOURCES["load"],
        SOURCES["transpose-data"],
        search,
        SOURCES["transpose-best"],
    ]
    notebook = lab.open(page, lab.write("stopped.ipynb", cells))
    notebook.run_all()
    notebook.until_steps(8)
    page.wait_for_function("document.querySelector('.optiml-lead strong') !== null")
    for theme in ("dark", "light"):
        notebook.dark(theme == "dark")
        picture(notebook.cell(2), f"stop-searching-{theme}")
    for tab in ("Best kernel", "Diff", "Findings"):
        page.get_by_role("tab", name=tab).click()
        picture(page, f"stop-{tab.split()[0].lower()}")
    page.set_viewport_size({"width": 480, "height": 900})
    picture(page, "stop-narrow")
    page.locator(".optiml-stop").click()
    notebook.until_ran(3, seconds=60)
    assert re.search(r"transpose[\d.]+x faster", notebook.text(2))
    assert re.search(r"ended\s*stopped", notebook.text(2))
    # Called on new arrays in the next cell, by the same kernel.
    assert "+++ transpose (best)" in notebook.text(3)
    picture(page, "stop-stopped")

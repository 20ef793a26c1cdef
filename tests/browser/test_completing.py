"""Tab and Shift+Tab in cells of the magics, as JupyterLab shows what the kernel says."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.lab import Notebook

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

SETUP = """\
%load_ext optiml_magic
import numpy as np
def wanted(a): return a.T
"""
KERNEL = """\
__global__ void transpose(const float* a, float* out, int rows, int columns) {
    out[0] = a[0];
}"""


PLACES = [
    ("%%optiml check --ref wan\n" + KERNEL, len(KERNEL) + 1, "%%optiml check --ref wanted\n"),
    ("%%optiml check --device emulated:rt\n" + KERNEL, len(KERNEL) + 1, "--device emulated:rtx4090\n"),
    ("%%optiml check\n#pragma optiml lau", 0, "#pragma optiml launch"),
    ("%%optiml check\n" + KERNEL[:-1] + "  colu", 0, "  columns"),
    ("%%optiml check\n" + KERNEL[:-1] + "  __syncw", 0, "  __syncwarp"),
]  # fmt: skip


@pytest.fixture
def notebook(opened: Any) -> Notebook:
    notebook: Notebook = opened(SETUP, "")
    notebook.run(0)
    notebook.until_ran(0)
    return notebook


def write(notebook: Notebook, text: str, back: int = 0) -> None:
    """The second cell's text, as if pasted, and the cursor so many characters before its end."""
    notebook.cell(1).locator(".cm-content").click()
    notebook.page.keyboard.press("Control+a")
    notebook.page.keyboard.insert_text(text)
    for _ in range(back):
        notebook.page.keyboard.press("ArrowLeft")


def offered(notebook: Notebook) -> list[str]:
    notebook.page.keyboard.press("Tab")
    shown = notebook.page.locator(".jp-Completer:not(.lm-mod-hidden) .jp-Completer-match")
    shown.first.wait_for(timeout=20_000)
    found: list[str] = shown.all_inner_texts()
    return found


def taken(notebook: Notebook) -> str:
    """The cell's text after the first one is chosen."""
    notebook.page.keyboard.press("Enter")
    notebook.page.locator(".jp-Completer.lm-mod-hidden").wait_for(state="attached")
    found: str = notebook.page.evaluate(
        "() => jupyterapp.shell.currentWidget.content.widgets[1].model.sharedModel.getSource()"
    )
    return found


def test_values_are_offered_and_nothing_of_python(notebook: Notebook) -> None:
    write(notebook, "%%optiml optimize --objective ")
    found = offered(notebook)
    assert found[:2] == ["speed", "energy"]
    # JupyterLab itself adds the words that the cell has, as its language splits them.
    assert all(word in "%%optiml optimize --objective " for word in found[2:])
    assert taken(notebook) == "%%optiml optimize --objective speed"


def test_what_fits_is_offered_and_taken(notebook: Notebook) -> None:
    for text, back, wanted in PLACES:
        write(notebook, text, back)
        assert offered(notebook)[0] in wanted
        assert wanted in taken(notebook)


def test_a_line_tells_what_stands_there(notebook: Notebook) -> None:
    write(notebook, "%%optiml optimize --budget")
    notebook.page.keyboard.press("Shift+Tab")
    tooltip = notebook.page.locator(".jp-Tooltip")
    said = "--budget BUDGET: evaluations, input included (24)"
    tooltip.get_by_text(said).wait_for(timeout=20_000)

"""The line of documentation under the pointer, in cells of the magic."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.browser.cells import CUDA, PYTHON, SETUP
from tests.browser.lab import EXTENSION, Notebook
from tests.browser.window import comes_to

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(240),
    pytest.mark.skipif(
        not EXTENSION.is_dir(), reason="the extension is not built: make lab-extension"
    ),
]

PLACE = """([cell, text]) => {
  const view = jupyterapp.shell.currentWidget.content.widgets[cell].editor.editor;
  const box = view.coordsAtPos(view.state.doc.toString().indexOf(text), 1);
  return [box.left + 3, (box.top + box.bottom) / 2];
}"""


def point(notebook: Notebook, cell: int, text: str) -> None:
    """Move the pointer from elsewhere to the first letter of a text, and leave it."""
    where = notebook.page.evaluate(PLACE, [cell, text])
    notebook.page.mouse.move(5, 5)
    notebook.page.mouse.move(where[0] + 1, where[1])
    notebook.page.mouse.move(*where)


def shown(notebook: Notebook) -> Any:
    return notebook.page.locator(".optiml-hover:visible")


def tells(notebook: Notebook, cell: int, text: str, wanted: str) -> None:
    found = shown(notebook).get_by_text(wanted)
    until = time.monotonic() + 20
    while not found.count() and time.monotonic() < until:  # not while the kernel is still busy
        point(notebook, cell, text)
        notebook.page.wait_for_timeout(1500)
    found.wait_for(timeout=1000)
    box = shown(notebook).bounding_box()
    assert 0 <= box["x"] <= box["x"] + box["width"] <= 1200


def test_the_word_under_the_pointer_is_told_in_a_line(opened: Any, picture: Any) -> None:
    notebook = opened(SETUP, CUDA, PYTHON)
    notebook.run(0)
    notebook.until_ran(0)
    tells(notebook, 1, "--ref", "--ref REF: ")
    tells(notebook, 1, "launch", "#pragma optiml launch KERNEL grid(BLOCKS) block(THREADS): ")
    tells(notebook, 1, "blockIdx", "blockIdx")
    picture(notebook.page, "extension-hover")
    tells(
        notebook,
        1,
        "x[i];",
        "const float* x: parameter of scale; x of the notebook is float32[1024]",
    )
    notebook.page.mouse.move(5, 5)
    comes_to(shown(notebook).count, 0)
    # Neither on another word of C, nor in a comment, nor in Python.
    for cell, text in ((1, "a comment"), (1, "2.0f"), (2, "twice"), (2, "len")):
        point(notebook, cell, text)
        notebook.page.wait_for_timeout(900)  # three times what a pointer has to rest
        assert shown(notebook).count() == 0, text


@pytest.mark.slow
def test_nothing_is_told_while_the_kernel_is_busy_or_without_the_magic(opened: Any) -> None:
    notebook = opened(SETUP, CUDA, "import time; time.sleep(3)")
    point(notebook, 1, "float")
    notebook.page.wait_for_timeout(900)
    assert shown(notebook).count() == 0  # Python has a float too
    notebook.run(0)
    notebook.until_ran(0)
    notebook.run(2)
    point(notebook, 1, "launch")
    notebook.page.wait_for_timeout(900)
    assert shown(notebook).count() == 0
    notebook.until_ran(2)
    assert shown(notebook).count() == 0
    tells(notebook, 1, "launch", "#pragma optiml launch")


@pytest.mark.slow
def test_it_is_switched_off_in_the_settings(opened: Any) -> None:
    notebook = opened(SETUP, CUDA)
    notebook.run(0)
    notebook.until_ran(0)
    tells(notebook, 1, "launch", "#pragma optiml launch")
    page = notebook.page
    notebook.command("settingeditor:open", query="OptiML cells")
    switch = page.get_by_role("checkbox", name="Words explained")
    switch.click()
    comes_to(switch.is_checked, False)
    page.get_by_role("tab", name=notebook.path.name).click()
    page.wait_for_timeout(1500)  # settings are saved a moment after they change
    point(notebook, 1, "launch")
    page.wait_for_timeout(900)
    assert shown(notebook).count() == 0
    page.get_by_role("tab", name="Settings", exact=True).click()
    switch.click()
    page.get_by_role("tab", name=notebook.path.name).click()
    page.wait_for_timeout(1500)
    tells(notebook, 1, "launch", "#pragma optiml launch")

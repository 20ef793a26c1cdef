"""A toy search in a real JupyterLab: run the cell, watch it, steer it, reload the page meanwhile."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

import pytest

from tests.browser.lab import Lab, Notebook

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

SETUP = """\
from functools import partial
from IPython.display import display
from optiml_magic.background import Handle
from optiml_magic.search.controls import Controls
from optiml_magic.widgets.live import live_view, watched
from optiml_magic.widgets.subject import Subject
from tests.unit.widgets.steps import search

def watch(pause=0.15, background=False, keep=False):
    subject = Subject("toy", "none", "a toy search", 40, 60.0, background)
    view = live_view(subject, get_ipython(), display, keep=keep)
    return view, watched(view, partial(search, pause=pause, edited=True), in_place=background)
"""
BLOCKING = """\
view, run = watch(keep=True)
result = run(lambda *step: None, Controls())
print("ended:", result.summary.trajectory.stopped, len(result.summary.trajectory.steps))
"""
ENDING = """\
view, run = watch(pause=0.05)
result = run(lambda *step: None, Controls())
print("ended:", result.summary.trajectory.stopped)
"""
LONG = """\
view, run = watch(pause=2.0)
result = run(lambda *step: None, Controls())
print("ended:", result.summary.trajectory.stopped)
"""
BACKGROUND = """\
view, run = watch(pause=0.4, background=True)
view.show()
handle = Handle(run, name="toy")
print("the cell has returned")
"""


@pytest.fixture
def notebook(page: Any, lab: Lab, request: pytest.FixtureRequest) -> Notebook:
    """A notebook of two cells, the setup and the parameter, that runs."""
    name = re.sub(r"\W+", "-", request.node.name) + ".ipynb"
    opened = lab.open(page, lab.write(name, [SETUP, request.param]))
    opened.run_all()
    return opened


@pytest.mark.parametrize("notebook", [BLOCKING], indirect=True)
def test_stop_ends_a_cell_that_runs(notebook: Notebook, picture: Any) -> None:
    page, outputs = notebook.page, notebook.outputs(1)
    notebook.until_steps(6)
    picture(page, "lab-running")
    page.locator(".optiml-stop").click()
    outputs.get_by_text("ended: stopped").wait_for(timeout=5000)
    count = int(outputs.get_by_text("ended:").inner_text().split()[-1])
    assert 6 <= count < 40
    page.wait_for_function("document.querySelector('.optiml-state').textContent == 'stopped'")
    assert page.locator(".optiml-node").count() == count
    picture(page, "lab-stopped")


@pytest.mark.slow
@pytest.mark.parametrize("notebook", [ENDING], indirect=True)
def test_at_the_end_no_widget_is_left_in_the_notebook(notebook: Notebook) -> None:
    outputs = notebook.outputs(1)
    notebook.until_steps(3)
    outputs.get_by_text("ended: budget").wait_for(timeout=30_000)
    notebook.page.locator(".optiml-search").wait_for(state="detached", timeout=5000)
    assert "40 evaluations in" in outputs.inner_text()
    notebook.save()
    assert "ended: budget" in notebook.path.read_text()
    assert "widget-view" not in notebook.path.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("notebook", [BACKGROUND], indirect=True)
def test_a_search_in_the_background_stops_and_its_result_takes_the_place(
    notebook: Notebook, picture: Any
) -> None:
    page, outputs = notebook.page, notebook.outputs(1)
    outputs.get_by_text("the cell has returned").wait_for(timeout=30_000)
    notebook.until_steps(5)
    picture(page, "lab-background")
    page.locator(".optiml-stop").click()
    page.locator(".optiml-search").wait_for(state="detached", timeout=10_000)
    assert re.search(r"trajectory of \d+ steps: .*, stopped>", outputs.inner_text())


def reload(notebook: Notebook, *, saved: bool = True) -> None:
    """As a person does who then waits for the notebook; where it is not saved the browser asks."""
    if saved:
        notebook.save()
    notebook.page.once("dialog", lambda dialog: dialog.accept())
    notebook.page.reload()
    notebook.page.locator(".jp-Notebook .jp-Cell").first.wait_for(timeout=60_000)


def the_report_lands(notebook: Notebook) -> None:
    report = notebook.outputs(1).locator("[data-panel=report]")
    report.get_by_text("The tree of all").wait_for(timeout=60_000)
    assert report.locator("h3").text_content() == "toy"
    assert notebook.page.get_by_role("tab", selected=True, name="Report").is_visible()


@pytest.mark.parametrize("notebook", [LONG], indirect=True)
def test_a_reload_while_the_cell_runs_keeps_the_view_and_the_outcome_lands(
    notebook: Notebook, picture: Any
) -> None:
    page = notebook.page
    notebook.until_steps(3)
    reload(notebook)
    notebook.until_steps(4)
    page.wait_for_function("document.querySelector('.optiml-state').textContent == 'preparing'")
    late = pytest.importorskip("playwright.sync_api").TimeoutError
    chosen = page.locator(".optiml-heading").get_by_text("#0")
    for _ in range(4):  # a click is lost where the view is drawn anew meanwhile
        page.locator(".optiml-node").first.click()
        with suppress(late):
            chosen.wait_for(timeout=8_000)
            break
    chosen.wait_for(timeout=8_000)
    before = page.locator(".optiml-node").count()
    notebook.until_steps(before + 1)
    picture(page, "lab-reloaded")
    page.locator(".optiml-stop").click()
    page.wait_for_function("document.querySelector('.optiml-state').textContent == 'stopped'")
    assert page.locator(".optiml-node").count() < 40
    the_report_lands(notebook)
    picture(page, "lab-reloaded-report")


@pytest.mark.slow
@pytest.mark.parametrize("notebook", [BACKGROUND], indirect=True)
def test_a_reload_beside_a_search_keeps_the_view_and_the_outcome_lands(notebook: Notebook) -> None:
    notebook.until_steps(3)
    reload(notebook)
    notebook.until_steps(4)
    the_report_lands(notebook)
    reload(notebook)  # and it stays, as long as the kernel does
    the_report_lands(notebook)


@pytest.mark.slow
@pytest.mark.parametrize("notebook", [BACKGROUND], indirect=True)
def test_without_a_save_the_page_has_no_output_and_the_kernel_has_the_result(
    notebook: Notebook,
) -> None:
    notebook.until_steps(3)
    reload(notebook, saved=False)
    notebook.page.wait_for_timeout(3000)
    assert notebook.text(1) == ""
    notebook.cell(0).locator(".cm-content").click()
    notebook.page.keyboard.press("Control+A")
    notebook.page.keyboard.insert_text("handle.result().summary.trajectory.stopped")
    notebook.page.keyboard.press("Control+Enter")
    notebook.page.get_by_text("budget of 40 evaluations spent").wait_for(timeout=60_000)


@pytest.mark.slow
@pytest.mark.parametrize("notebook", [LONG], indirect=True)
def test_keys_in_the_view_are_the_views_own(notebook: Notebook, picture: Any) -> None:
    """JupyterLab's own would cut the cell, or go to another."""
    page = notebook.page
    page.set_viewport_size({"width": 600, "height": 900})
    notebook.until_steps(4)
    page.locator(".optiml-node").first.click()
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    page.locator(".optiml-heading").get_by_text("made from").or_(
        page.get_by_text("Diff against #")
    ).first.wait_for(timeout=10_000)
    page.get_by_role("button", name="Edit").click()
    page.keyboard.press("Control+A")
    page.keyboard.type("xdda: 111")
    assert page.locator(".optiml-text").input_value() == "xdda: 111"
    assert page.locator(".jp-Notebook .jp-Cell").count() == 2
    page.get_by_role("button", name="Evaluate").click()
    page.get_by_text("Taken: it is evaluated next.").wait_for(timeout=10_000)
    page.get_by_role("button", name="Pause").click()
    page.get_by_role("button", name="Resume").wait_for(timeout=10_000)
    notebook.look_at(1)
    picture(page, "lab-600")
    page.get_by_role("button", name="Resume").click()
    page.get_by_role("button", name="Stop").click()
    notebook.outputs(1).get_by_text("ended: stopped").wait_for(timeout=10_000)
    page.set_viewport_size({"width": 1200, "height": 900})

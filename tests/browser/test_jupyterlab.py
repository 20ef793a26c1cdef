"""A toy search in a real JupyterLab: run the cell, watch it, press Stop."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.browser.lab import Lab, Notebook

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(240)]

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
    return view, watched(view, partial(search, pause=pause), in_place=background)
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
BACKGROUND = """\
view, run = watch(background=True)
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
    assert "stopped='stopped'" in outputs.inner_text()

"""A search in a real JupyterLab: run the cell, watch it, press Stop."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(240)]

pytest.importorskip("jupyterlab", reason="jupyterlab is not installed")
pytest.importorskip("anywidget", reason="anywidget is not installed")

ROOT = Path(__file__).parents[2]
TOKEN = "only-this-test"
QUIET = {"fetchNews": "false", "checkForUpdates": False}  # else a question lies over the page
SETUP = """\
from functools import partial
from IPython.display import display
from optiml_magic.background import Handle
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
result = run(lambda step: None, lambda: False)
print("ended:", result.summary.trajectory.stopped, len(result.summary.trajectory.steps))
"""
ENDING = """\
view, run = watch(pause=0.05)
result = run(lambda step: None, lambda: False)
print("ended:", result.summary.trajectory.stopped)
"""
BACKGROUND = """\
view, run = watch(background=True)
view.show()
handle = Handle(run, name="toy")
print("the cell has returned")
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """A JupyterLab on loopback with empty settings of its own; its address and its folder."""
    home, folder = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("notebooks")
    log = home / "log"
    settings = home / "settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    (settings / "notification.jupyterlab-settings").write_text(json.dumps(QUIET))
    environment = {
        **os.environ,
        "HOME": str(home),
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
        "PYTHONPATH": str(ROOT),
        "PYTHONWARNINGS": "default",
    }
    with log.open("wb") as output:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"),
                *("--ServerApp.ip=127.0.0.1", "--ServerApp.port=0"),
                *(f"--IdentityProvider.token={TOKEN}", f"--ServerApp.root_dir={folder}"),
                *("--LabApp.news_url=", "--LabApp.extension_manager=readonly"),
                "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
            ],
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
        )
    try:
        yield _address(process, home / "runtime", log), folder
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _address(process: subprocess.Popen[bytes], runtime: Path, log: Path) -> str:
    """Where the server listens: it writes its port to a file, then answers."""
    until = time.monotonic() + 90
    while time.monotonic() < until:
        assert process.poll() is None, log.read_text()[-3000:]
        for path in runtime.glob("jpserver-*.json"):
            try:
                url = f"http://127.0.0.1:{json.loads(path.read_text())['port']}/"
                with urllib.request.urlopen(f"{url}api?token={TOKEN}"):
                    return url
            except (OSError, ValueError, urllib.error.URLError):
                continue
        time.sleep(0.2)
    raise AssertionError(log.read_text()[-3000:])


@pytest.fixture
def notebook(page: Any, lab: tuple[str, Path], request: pytest.FixtureRequest) -> Any:
    """Opens a notebook of two cells, the setup and the parameter, and runs both."""
    address, folder = lab
    name = re.sub(r"\W+", "-", request.node.name) + ".ipynb"
    cells = [nbformat.v4.new_code_cell(text) for text in (SETUP, request.param)]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), folder / name)
    page.goto(f"{address}lab/tree/{name}?token={TOKEN}&reset")
    page.locator(".jp-Notebook").wait_for(timeout=60_000)
    _run_setup(page)
    page.locator(".jp-Cell").nth(1).locator(".cm-content").click()
    page.keyboard.press("Shift+Enter")
    page.path = folder / name
    return page


def _run_setup(page: Any) -> None:
    """Run the first cell. A cell run before the kernel is there is forgotten, so ask until it ran."""
    late = pytest.importorskip("playwright.sync_api").TimeoutError
    first = page.locator(".jp-Cell").first
    until = time.monotonic() + 60
    while True:
        # Asked too early, JupyterLab may want to know which kernel is meant.
        question = page.locator(".jp-Dialog .jp-mod-accept")
        if question.is_visible():
            question.click()
        try:
            first.locator(".cm-content").click(timeout=3000)
            page.keyboard.press("Control+Enter")
            return first.get_by_text(re.compile(r"^\[\d+\]:$")).wait_for(timeout=3000)
        except late:
            assert time.monotonic() < until


def outputs(page: Any) -> Any:
    return page.locator(".jp-Cell").nth(1).locator(".jp-OutputArea")


def wait_for_steps(page: Any, count: int) -> None:
    page.locator(".optiml-search").wait_for(timeout=60_000)
    page.wait_for_function(
        f"document.querySelectorAll('.optiml-node').length >= {count}", timeout=30_000
    )


@pytest.mark.parametrize("notebook", [BLOCKING], indirect=True)
def test_stop_ends_a_cell_that_runs(notebook: Any, picture: Any) -> None:
    wait_for_steps(notebook, 6)
    picture(notebook, "lab-running")
    notebook.locator(".optiml-stop").click()
    outputs(notebook).get_by_text("ended: stopped").wait_for(timeout=5000)
    count = int(outputs(notebook).get_by_text("ended:").inner_text().split()[-1])
    assert 6 <= count < 40
    notebook.wait_for_function("document.querySelector('.optiml-state').textContent == 'stopped'")
    assert notebook.locator(".optiml-node").count() == count
    picture(notebook, "lab-stopped")


@pytest.mark.parametrize("notebook", [ENDING], indirect=True)
def test_at_the_end_no_widget_is_left_in_the_notebook(notebook: Any) -> None:
    wait_for_steps(notebook, 3)
    outputs(notebook).get_by_text("ended: budget").wait_for(timeout=30_000)
    notebook.locator(".optiml-search").wait_for(state="detached", timeout=5000)
    assert "40 evaluations in" in outputs(notebook).inner_text()
    notebook.keyboard.press("Control+s")
    until = time.monotonic() + 15
    while "ended: budget" not in notebook.path.read_text():
        assert time.monotonic() < until
        time.sleep(0.2)
    assert "widget-view" not in notebook.path.read_text()


@pytest.mark.parametrize("notebook", [BACKGROUND], indirect=True)
def test_a_search_in_the_background_stops_and_its_result_takes_the_place(
    notebook: Any, picture: Any
) -> None:
    outputs(notebook).get_by_text("the cell has returned").wait_for(timeout=30_000)
    wait_for_steps(notebook, 5)
    picture(notebook, "lab-background")
    notebook.locator(".optiml-stop").click()
    notebook.locator(".optiml-search").wait_for(state="detached", timeout=10_000)
    assert "stopped='stopped'" in outputs(notebook).inner_text()

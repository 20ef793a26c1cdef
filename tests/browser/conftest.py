"""A headless Chromium that talks to this machine alone."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from present import BROWSER

from tests.browser.lab import Lab, Notebook, serving
from tests.browser.window import Heard, Window

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
)


FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    report = yield
    item.stash[FAILED] = item.stash.get(FAILED, False) or report.failed
    return report


@pytest.fixture(scope="package")  # no longer: its event loop would be in the way of other tests
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as started:
        context = started.chromium.launch_persistent_context(
            str(tmp_path_factory.mktemp("chromium")),
            executable_path=BROWSER,
            args=list(FLAGS),
            headless=True,
            viewport={"width": 1200, "height": 900},
        )
        yield context
        context.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page; afterwards it must have asked nobody but this machine, and raised nothing."""
    page = browser.new_page()
    heard = Heard(page)
    yield page
    page.close()
    assert heard.wrong(console=False) == []


@pytest.fixture
def picture() -> Callable[[Any, str], None]:
    """Keeps a screenshot in OPTIML_SCREENSHOTS, where that is set."""
    folder = os.environ.get("OPTIML_SCREENSHOTS")

    def take(target: Any, name: str) -> None:
        if folder:
            target.screenshot(path=str(Path(folder, f"{name}.png")))

    return take


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """One JupyterLab for all tests of a run."""
    pytest.importorskip("jupyterlab", reason="jupyterlab is not installed")
    pytest.importorskip("anywidget", reason="anywidget is not installed")
    home, folder = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("notebooks")
    with serving(home, folder) as served:
        yield served


@pytest.fixture(scope="package")
def loaded(browser: Any, lab: Lab) -> Iterator[Window]:
    window = Window(browser, lab)
    yield window
    window.drop()


@pytest.fixture
def window(loaded: Window, request: pytest.FixtureRequest) -> Iterator[Window]:
    """A JupyterLab that is loaded already, unless the last test in it failed.

    Meanwhile it must have asked nobody but this machine, raised nothing, and said nothing of
    errors on its console.
    """
    yield loaded
    if request.node.stash[FAILED]:
        loaded.drop()
    else:
        assert loaded.clear() == []


@pytest.fixture
def opened(window: Window, request: pytest.FixtureRequest) -> Any:
    """Opens a notebook of these cells in the window."""

    def write(*cells: str, ready: bool = True) -> Notebook:
        name = re.sub(r"\W+", "-", request.node.name)
        return window.open(window.lab.write(f"{name}.ipynb", cells), ready=ready)

    return write

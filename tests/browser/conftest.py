"""A headless Chromium that talks to this machine alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from present import BROWSER

from tests.browser.lab import Lab, Notebook, serving

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


@pytest.fixture(scope="module")
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
    asked: list[str] = []
    errors: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield page
    page.close()
    here = ("http://127.0.0.1:", "ws://127.0.0.1:", "http://localhost:", "data:", "blob:")
    assert [url for url in asked if not url.startswith(here)] == []
    assert errors == []


@pytest.fixture
def picture(tmp_path: Path) -> Callable[[Any, str], None]:
    """Keeps a screenshot, in OPTIML_SCREENSHOTS where that is set."""
    folder = Path(os.environ.get("OPTIML_SCREENSHOTS", tmp_path))

    def take(target: Any, name: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        target.screenshot(path=str(folder / f"{name}.png"))

    return take


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """One JupyterLab for all tests of a run."""
    pytest.importorskip("jupyterlab", reason="jupyterlab is not installed")
    pytest.importorskip("anywidget", reason="anywidget is not installed")
    home, folder = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("notebooks")
    with serving(home, folder) as served:
        yield served


@pytest.fixture
def quiet(page: Any) -> Iterator[None]:
    """The page says nothing on its console of errors."""
    errors: list[str] = []
    page.on("console", lambda said: said.type == "error" and errors.append(said.text))
    yield
    assert errors == []


@pytest.fixture
def opened(page: Any, lab: Lab, quiet: None, request: pytest.FixtureRequest) -> Any:
    """Opens a notebook of these cells, whose page stays quiet."""

    def write(*cells: str) -> Notebook:
        name = request.node.name.split("[")[0] + ".ipynb"
        return lab.open(page, lab.write(name, cells))

    return write

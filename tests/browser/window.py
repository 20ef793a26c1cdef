"""One loaded JupyterLab that tests take in turns: a page takes seconds to load."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

from tests.browser.lab import TOKEN, Lab, Notebook, darken

T = TypeVar("T")
HERE = ("http://127.0.0.1:", "ws://127.0.0.1:", "http://localhost:", "data:", "blob:")
OPEN = "path => { void jupyterapp.commands.execute('docmanager:open', {path}); }"
# Looked at again and again: the inspector holds a promise weakly, and one of these was collected.
OPENED = """path => {
  const all = [...jupyterapp.shell.widgets('main')];
  const widget = all.find(each => each.context?.path === path);
  if (!widget?.context.isReady) return false;
  for (const other of all) if (other.id.startsWith('launcher')) other.dispose();
  jupyterapp.shell.activateById(widget.id);
  return true;
}"""
CLOSE = """async () => {
  const open = [...jupyterapp.shell.widgets('main')];
  open.sort((one, other) => one.isVisible - other.isVisible);  // so that none comes up meanwhile
  await Promise.all(open.map(widget => widget.sessionContext?.ready));
  for (const widget of open) widget.dispose();
  jupyterapp.shell.collapseLeft();
  await jupyterapp.serviceManager.sessions.shutdownAll();
}"""

OURS = "/lab/extensions/optiml-magic/"  # in a stack


class Heard:
    """What a page asks for, raises, and writes on its console as an error."""

    def __init__(self, page: Any) -> None:
        self._asked: list[str] = []
        self._raised: list[str] = []
        self._said: list[str] = []
        page.on("request", lambda request: self._asked.append(request.url))
        page.on("pageerror", lambda error: self._raised.append(error.stack or str(error)))
        page.on("console", lambda told: told.type == "error" and self._said.append(told.text))

    def wrong(self, *, console: bool) -> list[str]:
        """What should not have been since the last time: others asked, errors raised or said."""
        found = [url for url in self._asked if not url.startswith(HERE)]
        found += self._raised + (self._said if console else [])
        for each in (self._asked, self._raised, self._said):
            each.clear()
        return found


class Window:
    """A page with JupyterLab in it, as it is after it was loaded: nothing open, light, wide."""

    def __init__(self, browser: Any, lab: Lab) -> None:
        self.lab = lab
        self._browser = browser
        self._page: Any = None
        self._heard: Heard | None = None

    @property
    def page(self) -> Any:
        """Loaded anew where there is none."""
        if self._page is None:
            self._page = self._browser.new_page()
            self._heard = Heard(self._page)
            self._page.goto(f"{self.lab.url}lab?token={TOKEN}&reset")
            self._page.wait_for_function("window.jupyterapp?.restored", timeout=60_000)
            self._page.evaluate(f"() => jupyterapp.restored.then({CLOSE})")
        return self._page

    def open(self, name: str, *, ready: bool = True) -> Notebook:
        """That notebook; its kernel is waited for unless the test runs none of its cells."""
        self.show(name)
        self.page.locator(".jp-Notebook .jp-Cell").first.wait_for(timeout=60_000)
        notebook = Notebook(self.page, self.lab.folder / name)
        if ready:
            notebook.until_ready()
        return notebook

    def show(self, path: str) -> None:
        """Any file of the folder, in what JupyterLab opens it with."""
        self.page.evaluate(OPEN, path)
        self.page.wait_for_function(OPENED, arg=path, timeout=60_000)

    def clear(self) -> list[str]:
        """Close everything, and end the kernels; what the page did wrong meanwhile."""
        if self._page is None or self._heard is None:
            return []
        wrong = self._heard.wrong(console=True)
        try:
            if self.page.evaluate("document.body.dataset.jpThemeLight") == "false":
                darken(self.page, is_dark=False)
            self.page.set_viewport_size({"width": 1200, "height": 900})
            self.page.evaluate(CLOSE)
        except BaseException:
            self.drop()
            raise
        # JupyterLab itself asks what is closed, and a kernel that ends, now and then.
        later = self._heard.wrong(console=True)
        wrong += [each for each in later if OURS in each or each.startswith(("http", "ws"))]
        if wrong:
            self.drop()
        return wrong

    def drop(self) -> None:
        """The next test loads the page anew, with the settings that the server began with."""
        if self._page is not None:
            self._page.close()
        self._page = self._heard = None
        self.lab.forget()


def comes_to(read: Callable[[], T], wanted: T, seconds: float = 10) -> None:
    """Read until it is as wanted: a page lays itself out in its own time."""
    until = time.monotonic() + seconds
    while (seen := read()) != wanted and time.monotonic() < until:
        time.sleep(0.05)
    assert seen == wanted

"""A JupyterLab of the tests' own, and notebooks open in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
TOKEN = "only-this-test"
QUIET = {"fetchNews": "false", "checkForUpdates": False}  # else a question lies over the page
NOTICES = "notification.jupyterlab-settings"
EXTENSION = ROOT / "optiml_magic" / "labextension"  # where `make lab-extension` builds it
KERNEL = {
    "kernelspec": {"name": "python3", "display_name": "Python 3"},
    "language_info": {"name": "python", "mimetype": "text/x-python", "file_extension": ".py"},
}


@dataclass(frozen=True)
class Lab:
    """A running server: its address, and the folders of its notebooks and of its settings."""

    url: str
    folder: Path
    settings: Path

    def forget(self) -> None:
        """What was set since it began."""
        for path in self.settings.rglob("*.jupyterlab-settings"):
            if path.name != NOTICES:
                path.unlink()

    def write(self, name: str, cells: Sequence[str]) -> str:
        """A notebook of code cells; its name."""
        import nbformat

        made = nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell(text) for text in cells], metadata=KERNEL
        )
        nbformat.write(made, self.folder / name)
        return name

    def open(self, page: Any, name: str) -> Notebook:
        """That notebook on the page, with its kernel ready."""
        page.goto(f"{self.url}lab/tree/{name}?token={TOKEN}&reset")
        page.locator(".jp-Notebook .jp-Cell").first.wait_for(timeout=60_000)
        page.wait_for_function("window.jupyterapp?.shell.currentWidget?.sessionContext?.isReady")
        opened = Notebook(page, self.folder / name)
        opened.until_ready()
        page.evaluate("jupyterapp.shell.collapseLeft()")
        return opened


@dataclass(frozen=True)
class Notebook:
    """An open notebook: its page and its file."""

    page: Any
    path: Path

    def command(self, name: str, **arguments: Any) -> None:
        """One of JupyterLab's own commands; not waited for."""
        self.page.evaluate(
            "([name, given]) => { jupyterapp.commands.execute(name, given); }", [name, arguments]
        )

    def until_ready(self) -> None:
        """Wait for its kernel."""
        context = "jupyterapp.shell.currentWidget.sessionContext"
        self.page.wait_for_function(
            f"{context}.isReady && {context}.session?.kernel?.status == 'idle'", timeout=60_000
        )

    def run_all(self) -> None:
        self.command("notebook:run-all-cells")

    def run(self, number: int) -> None:
        """One cell, the first being 0."""
        self.cell(number).locator(".cm-content").click()
        self.page.keyboard.press("Control+Enter")

    def cell(self, number: int) -> Any:
        return self.page.locator(".jp-Notebook .jp-Cell").nth(number)

    def outputs(self, number: int) -> Any:
        return self.cell(number).locator(".jp-OutputArea")

    def text(self, number: int) -> str:
        """What that cell's outputs say, on the screen or off it."""
        found: str = self.outputs(number).text_content()
        return found

    def look_at(self, number: int) -> None:
        """Scroll that cell's outputs to the top of the page, and let it settle."""
        show = "e => e.scrollIntoView({block: 'start', behavior: 'instant'})"
        for _ in range(2):  # cells off the screen get their height when they come near it
            self.outputs(number).first.evaluate(show)
            self.page.wait_for_timeout(300)

    def until_ran(self, number: int, seconds: float = 60) -> None:
        """Wait for the number in that cell's prompt."""
        self.page.wait_for_function(
            "at => /\\[\\d+\\]/.test(document.querySelectorAll('.jp-Notebook .jp-Cell')[at]"
            ".querySelector('.jp-InputPrompt').textContent)",
            arg=number,
            timeout=1000 * seconds,
        )

    def until_steps(self, count: int, seconds: float = 60) -> None:
        """Wait for a live view that shows at least so many steps."""
        self.page.wait_for_function(
            "count => document.querySelectorAll('.optiml-node').length >= count",
            arg=count,
            timeout=1000 * seconds,
        )

    def save(self) -> None:
        """Save, and wait until the file is there."""
        self.page.evaluate("() => jupyterapp.commands.execute('docmanager:save').then(() => null)")

    def dark(self, is_dark: bool = True) -> None:
        darken(self.page, is_dark)

    def close(self) -> None:
        """As it is, saved or not; its kernel goes on."""
        self.page.evaluate("jupyterapp.shell.currentWidget.dispose()")


def darken(page: Any, is_dark: bool = True) -> None:
    theme = "JupyterLab Dark" if is_dark else "JupyterLab Light"
    page.evaluate("theme => jupyterapp.commands.execute('apputils:change-theme', {theme})", theme)
    page.wait_for_function(
        "is => (document.body.dataset.jpThemeLight == 'false') == is", arg=is_dark
    )
    page.locator("#jupyterlab-splash").wait_for(state="detached", timeout=20_000)


def serious(page: Any, part: str) -> list[tuple[str, str]]:
    """What axe finds in a part of the page, of some weight."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page, part).response["violations"]
    return [
        (each["id"], each["nodes"][0]["html"])
        for each in found
        if each["impact"] in ("serious", "critical")
    ]


@contextmanager
def serving(home: Path, folder: Path) -> Iterator[Lab]:
    """A JupyterLab on loopback with empty settings of its own."""
    log = home / "log"
    settings = home / "settings"
    notices = settings / "@jupyterlab" / "apputils-extension" / NOTICES
    notices.parent.mkdir(parents=True)
    notices.write_text(json.dumps(QUIET))
    if EXTENSION.is_dir():
        extensions = home / "data" / "labextensions"
        extensions.mkdir(parents=True)
        (extensions / "optiml-magic").symlink_to(EXTENSION)
    environment = {
        **os.environ,
        "HOME": str(home),
        "OPTIML_HOME": str(home / "optiml"),
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(settings),
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
                "--LabApp.expose_app_in_browser=True",
            ],
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
        )
    try:
        yield Lab(_address(process, home / "runtime", log), folder, settings)
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

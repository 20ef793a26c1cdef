"""The panel of runs and what it opens, with markup in every text of a journal and of a file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.lab import EXTENSION
from tests.browser.test_hostile import EVIL, IMAGE, KERNEL, OPTIONS, SETUP
from tests.browser.window import Window, comes_to

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.timeout(400),
    pytest.mark.skipif(
        not EXTENSION.is_dir(), reason="the extension is not built: make lab-extension"
    ),
]

SEARCH = f"%%optiml optimize {OPTIONS} --budget 2 --llm none\n{KERNEL}"
TEXTS = (
    "task", "device_reason", "oracle", "launch", "model", "title", "rationale", "proposer",
    "because", "summary", "cause", "stopped",
)  # fmt: skip
FORGING = f"""\
import json
from pathlib import Path
from optiml_magic.settings import resolve

def forged(value, key=""):
    if isinstance(value, dict):
        return {{name: forged(each, name) for name, each in value.items()}}
    if isinstance(value, list):
        return [{EVIL!r}] if key == "notes" else [forged(each, key) for each in value]
    return {EVIL!r} if key in {TEXTS!r} and isinstance(value, str) else value

journal = max(resolve().runs.glob("*.jsonl"), key=lambda path: path.stat().st_mtime)
lines = [json.loads(line) for line in journal.read_text().splitlines()]
for name in ({IMAGE!r}, {IMAGE!r} + " again"):
    changed = [forged(line) for line in lines]
    changed[0]["header"]["run"] = name
    journal.with_name(name + ".jsonl").write_text("".join(json.dumps(one) + "\\n" for one in changed))
%optiml save {IMAGE!r} saved.optiml.json
"""


@pytest.fixture
def hacked(window: Window) -> Iterator[list[str]]:
    """What ran on the page."""
    calls: list[str] = []
    window.page.expose_function("hacked", lambda: calls.append("hacked"))
    yield calls
    assert calls == []
    window.page.evaluate("hacked()")
    assert calls == ["hacked"]  # it would have been seen
    window.drop()  # a page keeps what is exposed to it


def test_the_panel_shows_markup_as_text(
    opened: Any, window: Window, hacked: list[str], picture: Any
) -> None:
    notebook = opened(SETUP, SEARCH, FORGING)
    page = window.page
    notebook.run(0)
    notebook.until_ran(0)
    notebook.run(1)
    notebook.outputs(1).get_by_text("The tree of all").wait_for(timeout=60_000)
    notebook.run(2)
    notebook.outputs(2).get_by_text("written").wait_for(timeout=60_000)

    notebook.command("optiml:show-runs")
    panel = page.get_by_role("region", name="OptiML runs")
    runs = panel.get_by_role("list", name="Runs", exact=True).get_by_role("listitem")
    for name in (IMAGE, f"{IMAGE} again"):
        runs.get_by_text(name, exact=True).wait_for(timeout=20_000)
        runs.filter(has=page.get_by_text(name, exact=True)).get_by_role("checkbox").check()
    assert runs.filter(has=page.get_by_text(IMAGE)).get_by_text(EVIL).count() == 2  # their kernel
    panel.get_by_role("button", name="Compare").click()
    compared = panel.locator(".optiml-comparison")
    compared.get_by_role("columnheader", name=IMAGE, exact=True).wait_for(timeout=20_000)
    picture(page, "extension-hostile-panel")

    page.locator(".jp-Notebook .jp-Cell").nth(1).locator(".cm-content").click()
    panel.get_by_role("button", name="Insert the best kernel of").first.click()
    comes_to(page.locator(".jp-Notebook .jp-Cell").count, 4)

    panel.get_by_role("button", name=f"Open the report of {IMAGE}", exact=True).click()
    page.get_by_role("tab", name=IMAGE, selected=True).wait_for(timeout=20_000)
    walk(window)
    window.show("saved.optiml.json")
    walk(window)
    saved = json.loads((window.lab.folder / "saved.optiml.json").read_text())
    assert EVIL in json.dumps(saved["summary"]["device_reason"])
    assert panel.locator("script, img, svg[onload]").count() == 0


def walk(window: Window) -> None:
    """Choose every candidate of the run on the page; its texts are markup, shown as text."""
    run = window.page.locator(".optiml-run:visible")
    candidates = run.get_by_role("treeitem")
    candidates.first.wait_for(timeout=20_000)
    for candidate in candidates.all():
        candidate.click()
        run.get_by_role("heading", level=3).get_by_text(EVIL).wait_for(timeout=10_000)
        assert EVIL in run.get_by_role("region", name="Program").inner_text()
    assert run.locator("script, img, svg").count() == 0

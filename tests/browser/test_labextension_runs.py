"""Runs in JupyterLab: a saved one without a kernel, and the panel of those of a home."""

from __future__ import annotations

import re
from typing import Any

import pytest

from optiml_magic.replay.past import recalled
from optiml_magic.runs.saved import save
from tests.browser.cells import LONG_SETUP, SEARCH
from tests.browser.lab import EXTENSION, Notebook, darken, serious
from tests.browser.window import Window, comes_to
from tests.unit.widgets.steps import EVIL, finding, some, step, summary

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(240),
    pytest.mark.skipif(
        not EXTENSION.is_dir(), reason="the extension is not built: make lab-extension"
    ),
]


def open_run(window: Window, name: str) -> Any:
    window.show(name)
    run = window.page.locator(".optiml-run:visible")
    run.wait_for(timeout=60_000)
    return run


def running(page: Any) -> int:
    """How many kernels the page knows of."""
    number: int = page.evaluate(
        "async () => { const all = jupyterapp.serviceManager.kernels;"
        " await all.refreshRunning(); return [...all.running()].length; }"
    )
    return number


def test_a_saved_run_opens_without_a_kernel(window: Window, picture: Any) -> None:
    page = window.page
    save(recalled(summary(some()), None), window.lab.folder / "toy.optiml.json")
    before = running(page)
    run = open_run(window, "toy.optiml.json")
    assert running(page) == before
    candidates = run.get_by_role("treeitem")
    levels = "all => all.map(each => each.ariaLevel)"
    comes_to(lambda: candidates.evaluate_all(levels), ["1", "2", "3", "3", "2"])
    heading = run.get_by_role("heading", level=3)
    comes_to(heading.inner_text, "#3 pad the tile")  # the winner
    assert "bank conflicts" in run.inner_text()
    picture(page, "extension-run-light")
    candidates.first.click()
    comes_to(heading.inner_text, "#0 the input kernel")
    assert run.get_by_text("strided access").first.is_visible()
    page.keyboard.press("ArrowDown")
    comes_to(heading.inner_text, "#1 map threads along rows")
    assert candidates.nth(1).get_attribute("aria-selected") == "true"
    assert run.get_by_role("region", name="Program").inner_text() == "program 1\nline two\n"
    assert (
        "program 1"
        in run.get_by_role("region", name="Difference")
        .locator(".optiml-added")
        .all_inner_texts()[-1]
    )
    page.keyboard.press("End")
    comes_to(lambda: candidates.last.get_attribute("aria-selected"), "true")
    assert serious(page, ".optiml-run") == []
    darken(page)
    assert serious(page, ".optiml-run") == []
    page.set_viewport_size({"width": 700, "height": 900})
    picture(page, "extension-run-700")
    fits = "() => { const at = document.querySelector('.optiml-renderer'); return at.scrollWidth <= at.clientWidth; }"
    comes_to(lambda: page.evaluate(fits), True)


def test_hostile_texts_of_a_run_are_texts(window: Window) -> None:
    steps = [
        step(0, title=EVIL, findings=(finding(EVIL),)),
        step(1, 0, 5e-6, title=EVIL, findings=(finding(EVIL),)),
    ]
    place = save(recalled(summary(steps), None), window.lab.folder / "evil.optiml.json")
    evil = '"' + EVIL.replace('"', '\\"')
    text = place.read_text().replace('"headline":"', f'"headline":{evil} ')
    place.write_text(text.replace('"program 1', f"{evil} 1"))
    run = open_run(window, "evil.optiml.json")
    shown = run.inner_text()
    assert shown.count(EVIL) >= 5  # headline, two titles, finding, program
    assert window.page.evaluate("window.hacked") is None
    assert run.locator("script, img").count() == 0


def test_what_is_no_run_says_so(window: Window) -> None:
    for name, text, why in (
        ("text.optiml.json", "{", "not JSON"),
        ("other.optiml.json", '{"format": "optiml", "schema": 1}', "not a saved run"),
        ("newer.optiml.json", '{"format": "optiml run", "schema": 9}', "schema 9"),
    ):
        (window.lab.folder / name).write_text(text)
        open_run(window, name).get_by_role("alert").get_by_text(why).wait_for(timeout=10_000)


def shown_panel(notebook: Notebook) -> Any:
    notebook.command("optiml:show-runs")
    panel = notebook.page.get_by_role("region", name="OptiML runs")
    panel.wait_for(timeout=10_000)
    return panel


@pytest.mark.slow
def test_the_panel_lists_compares_opens_inserts_and_stops(opened: Any, picture: Any) -> None:
    short, long = SEARCH.replace("500", "3"), SEARCH.replace("500", "5")
    notebook = opened(
        LONG_SETUP,
        f"%%optiml optimize {short}",
        f"%%optiml optimize {long}",
        f"%%optiml optimize beside --background {SEARCH}",
    )
    page = notebook.page
    panel = shown_panel(notebook)
    panel.get_by_text("The magic is not loaded in this kernel").wait_for(timeout=20_000)
    for cell in (0, 1, 2):
        notebook.run(cell)
        notebook.until_ran(cell)
    panel.get_by_role("button", name="Refresh").click()
    runs = panel.get_by_role("list", name="Runs", exact=True).get_by_role("listitem")
    runs.nth(1).wait_for(timeout=20_000)
    for at, count in enumerate(("5", "3")):  # the newest first
        runs.nth(at).get_by_text(f"{count} evaluations").wait_for(timeout=20_000)

    compare = panel.get_by_role("button", name="Compare")
    assert compare.is_disabled()
    for run in runs.all()[:2]:
        run.get_by_role("checkbox").focus()
        page.keyboard.press("Space")
    compare.click()
    compared = panel.locator(".optiml-comparison")
    compared.get_by_role("heading", level=3).wait_for(timeout=20_000)
    assert compared.get_by_role("row", name=re.compile("^evaluations ")).count() == 1
    picture(page, "extension-panel-light")
    assert serious(page, "#optiml-runs") == []
    notebook.dark()
    picture(page, "extension-panel-dark")
    assert serious(page, "#optiml-runs") == []

    notebook.cell(2).locator(".cm-content").click()
    panel.get_by_role("button", name="Insert the best kernel of").first.click()
    page.wait_for_function("document.querySelectorAll('.jp-Notebook .jp-Cell').length == 5")
    inserted = page.evaluate(
        "jupyterapp.shell.currentWidget.content.widgets[3].model.sharedModel.getSource()"
    )
    assert inserted.startswith("%%optiml check --ref matmul\n")
    assert "__global__ void product" in inserted
    notebook.run(3)
    notebook.outputs(3).get_by_text("output elements right").first.wait_for(timeout=60_000)

    notebook.run(4)
    notebook.until_steps(2)
    panel.get_by_role("button", name="Refresh").click()
    panel.get_by_role("button", name="Stop beside").click()
    panel.get_by_text("beside: stopping after the evaluation").wait_for(timeout=20_000)
    notebook.outputs(4).get_by_text("The tree of all").wait_for(timeout=60_000)

    panel.get_by_role("button", name="Open the report of").last.click()
    page.locator(".optiml-run").get_by_role("treeitem").first.wait_for(timeout=20_000)
    picture(page, "extension-opened")


@pytest.mark.slow
def test_the_panel_answers_while_a_cell_runs(opened: Any) -> None:
    """With subshells; else it says that the kernel is busy."""
    notebook = opened(LONG_SETUP, f"%%optiml optimize {SEARCH}")
    notebook.run(0)
    notebook.until_ran(0)
    notebook.run(1)
    notebook.until_steps(2)
    panel = shown_panel(notebook)
    panel.get_by_text("running").first.wait_for(timeout=20_000)
    assert "*" in notebook.cell(1).locator(".jp-InputPrompt").inner_text()  # still
    notebook.page.locator(".optiml-stop").click()
    notebook.until_ran(1)

"""Texts that are markup, wherever they come from: none of them is ever run on a page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.browser.lab import Lab, Notebook
from tests.unit.llms.endpoint import Answer, completed, serving

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(400)]

IMAGE = "<img src=x onerror=hacked()>"
EVIL = f"{IMAGE}<script>hacked()</script><svg onload=hacked()>"
KERNEL = f"""\
// </pre></textarea>{EVIL}
__global__ void twice(const float* a, float* out, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2 * a[i]; // {EVIL}
}}
"""
SETUP = f"""\
%load_ext optiml_magic
import json
import numpy as np
n = 1000
a = np.arange(n, dtype=np.float32)
def ref(a): return 2 * a
ref.__name__ = {EVIL!r}
def raising(a): raise ValueError({EVIL!r})
"""
OPTIONS = "--ref ref --device emulated:h200 --experience none"
SAVED = f"""\
def evil(value):
    if isinstance(value, dict):
        return {{key: evil(one) for key, one in value.items()}}
    if isinstance(value, list):
        return [evil(one) for one in value]
    return value

%optiml save twice {IMAGE!r}.json
saved = json.load(open({IMAGE!r} + ".json"))
summary = saved["summary"]
for key in ("task", "device_reason", "oracle", "launch", "model"):
    summary[key] = {EVIL!r}
summary["notes"] = [{EVIL!r}]
summary["trajectory"]["stopped"] = {EVIL!r}
for step in summary["trajectory"]["steps"]:
    step["candidate"]["proposal"].update(title={EVIL!r}, rationale={EVIL!r}, proposer={EVIL!r})
    step["evaluation"]["verdict"]["summary"] = {EVIL!r}
    for finding in step["evaluation"]["findings"]:
        finding["cause"] = {EVIL!r}
json.dump(saved, open("evil.json", "w"))
"""
PRINTING = KERNEL.replace(
    "int i", f'if (threadIdx.x == 0 && blockIdx.x == 0) printf("{EVIL}");\n    int i'
)
AFTER = [
    "twice",
    SAVED,
    "%optiml load evil.json evil",
    "%optiml compare twice evil",
    "%optiml history",
    "evil.tree",
    "evil.trajectory",
    "evil.pictures()['tree']",
    "evil.roofline()",
    f"%%optiml check {OPTIONS}\n{PRINTING}",
    f"%%optiml check {OPTIONS}\n{KERNEL.replace('2 * a[i]', '3 * a[i]')}",
    f"%%optiml check {OPTIONS}\n#error {EVIL}\n{KERNEL}",
    f"%%optiml check {OPTIONS.replace('ref ref', 'ref raising')}\n{KERNEL}",
    f"%%optiml annotate {OPTIONS}\n{KERNEL}",
    f"%%optiml profile {OPTIONS}\n{KERNEL}",
    f"%%optiml {IMAGE}",
]


def proposing(_: dict[str, Any]) -> Answer:
    """A model whose every word is markup; the program is right."""
    hypothesis = {"metric": "dram__bytes.sum", "direction": "lower", "because": EVIL}
    proposal = {"title": EVIL, "rationale": EVIL, "hypothesis": hypothesis, "edits": None}
    program = KERNEL.replace("2 * a[i]", "a[i] + a[i]")
    said = completed(json.dumps({"proposals": [{**proposal, "program": program}]}))
    return replace(said, delay=1.0)  # there is time to press Pause


@pytest.fixture
def hacked(page: Any) -> Iterator[list[str]]:
    """What ran on the page, also before a reload of it."""
    calls: list[str] = []
    page.expose_function("hacked", lambda: calls.append("hacked"))
    yield calls
    assert calls == []
    page.evaluate("hacked()")
    assert calls == ["hacked"]  # it would have been seen


def written(notebook: Notebook, number: int) -> str:
    """What that cell shows, which must say the text as text somewhere."""
    notebook.run(number)
    notebook.until_ran(number)
    notebook.page.wait_for_timeout(200)
    return notebook.text(number)


def test_no_text_of_anybody_is_run(page: Any, lab: Lab, hacked: list[str], picture: Any) -> None:
    with serving(proposing) as endpoint:
        model = f"--llm '{IMAGE}' --llm-url {endpoint.url}"
        search = f"%%optiml optimize {OPTIONS} --budget 12 {model}\n{KERNEL}"
        notebook = lab.open(page, lab.write("hostile.ipynb", [SETUP, search, *AFTER]))
        written(notebook, 0)
        notebook.run(1)
        notebook.until_steps(2)
        page.get_by_role("button", name="Pause").click()
        page.wait_for_timeout(1500)
        for at in range(page.locator(".optiml-node").count()):
            page.locator(".optiml-node").nth(at).click()
            page.wait_for_timeout(300)
        assert "tokens in" in notebook.text(1)
        for name in ("Best kernel", "Diff", "Findings", "Roofline", "Tree"):
            page.get_by_role("tab", name=name).click()
            page.wait_for_timeout(300)
        notebook.save()
        page.once("dialog", lambda dialog: dialog.accept())
        page.reload()
        notebook.until_steps(2)
        page.get_by_role("button", name="Resume").click()
        page.locator("[data-panel=report]").get_by_text("evaluations", exact=True).wait_for(
            state="attached", timeout=60_000
        )
        assert EVIL in notebook.text(1)
        for number in range(2, 2 + len(AFTER)):
            shown = written(notebook, number)
            assert shown.strip(), AFTER[number - 2]
        assert EVIL in notebook.text(2)
        assert f"written: {IMAGE}.json" in notebook.text(3)
        assert EVIL in notebook.text(4)
        notebook.save()
    stored = json.loads(notebook.path.read_text())
    stored["metadata"]["changed"] = "by somebody else"  # so that it is not trusted
    other = lab.folder / "hostile-untrusted.ipynb"
    other.write_text(json.dumps(stored))
    opened = lab.open(page, other.name)
    for number in range(2, 2 + len(AFTER)):
        opened.look_at(number)
    assert EVIL in opened.text(2)
    assert hacked == []

"""The parts of a report: the claim, the bars, advice told once, code in colour, the tree, the run."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest

from optiml_magic.model.evaluation import EXHAUSTED
from optiml_magic.model.finding import Action, Finding
from optiml_magic.model.refusal import Refusal
from optiml_magic.model.roofline import Roofs, Standing, Work
from optiml_magic.reports import code, html, outcome, text, tree
from optiml_magic.reports.advice import merged
from optiml_magic.reports.branches import branches
from optiml_magic.reports.colour import coloured
from optiml_magic.reports.figure import Picture
from optiml_magic.reports.summary import Summary
from tests.unit.test_pictures import run, texts

BEFORE = """\
__global__ void k(const float* a, float* out, int n) {
    int i = threadIdx.x;
    if (i < n) out[i] = a[i] * 2.0f; // twice
}
"""
AFTER = BEFORE.replace("* 2.0f", "+ a[i]")


def bare(markup: str) -> str:
    return unescape(re.sub(r"<[^>]*>", "", markup))


def standing_at(found: Summary) -> Summary:
    """With what limits each step: a floor of 5 us, by bytes."""
    roofs = Roofs("h200", 1e12, 5e13, 2.5e13, 8e14, 2e-6, "measured")
    work = Work(None, 5e6, "unknown", "declared")
    steps = []
    for step in found.trajectory.steps:
        standing = Standing("memory", "why", work, roofs, 0.0)
        steps.append(replace(step, evaluation=replace(step.evaluation, standing=standing)))
    return replace(found, trajectory=replace(found.trajectory, steps=tuple(steps)))


def finding(severity: str, cause: str, *advice: str) -> Finding:
    actions = tuple(Action(one) for one in advice)
    return Finding(cause, severity, cause, (), actions, (1.0, 2.0))  # type: ignore[arg-type]


def test_the_claim_the_bars_and_the_limit_stand_first_in_both() -> None:
    found = standing_at(run(40, 10))
    bars = [(bar.name, bar.told, bar.role) for bar in outcome.bars(found)]
    assert bars == [
        ("input kernel", "40 us estimated", "before"),
        ("best", "10 us estimated", "after"),
        ("floor", "5 us", "other"),
    ]
    head, first, second, third, limit = text.render(found).splitlines()[:5]
    assert "4x faster, estimated (between 3.08x and 5.2x), verified" in head
    assert first.count("#") == 40
    assert (second.count("#"), third.count("#")) == (10, 5)
    assert limit == "  limited by device memory (why), 2x above its floor of 5 us"
    shown = bare(html.fragment(found))
    order = ["4x faster", "verified", "40 us", "Now limited by device memory", "Diff of", "How it"]
    order += ["Findings on the best", "Findings on the input kernel", "Pictures", "The tree of all"]
    assert sorted(order, key=shown.index) == order
    assert shown.index("Details: ") > shown.index("The tree of all")


def test_nothing_found_and_a_failure_are_claimed_as_they_are() -> None:
    assert outcome.claim(run(10, 9.9)) == "no significant change found in 1 candidate"
    near = "no significant change found in 1 candidate; the fastest, 1.18x, is within the error"
    assert outcome.claim(run(10, 8.5)).startswith(near)
    alone = run(10)
    refused = (Refusal("tile", "one"), Refusal("tile", "two"), Refusal("swap", "three"))
    for stopped, told, said in (
        (EXHAUSTED, (), "no rule found a place to change"),
        (EXHAUSTED, refused, "no rule found a place to change; 2 rules came close and refused"),
        ("budget of 1 evaluations spent", refused, "no significant change found in 0 candidates"),
    ):
        trajectory = replace(alone.trajectory, stopped=stopped).told({0: told})
        assert outcome.claim(replace(alone, trajectory=trajectory)) == said
    failed = run(None)
    assert outcome.claim(failed) == "the input kernel failed"
    assert outcome.bars(failed) == []
    assert "verified" not in text.headline(failed)
    assert "not verified" in html.fragment(failed)


def test_equal_advice_is_told_once_the_worst_first() -> None:
    found = [
        finding("note", "few warps", "use more"),
        finding("warning", "line 3", "stage it", "pad it"),
        finding("critical", "line 9", "stage it", "pad it"),
        finding("critical", "line 9", "stage it", "pad it"),
    ]
    worst, other = merged(found)
    assert (worst.severity, worst.causes) == ("critical", ("line 3", "line 9"))
    assert other.tools == "few warps"
    lines = text.findings(found)
    assert sum("stage it" in line for line in lines) == 1
    assert lines[0] == "[warning] line 3: line 3"


def test_a_difference_has_every_line_and_its_colours() -> None:
    shown = code.diff(BEFORE, AFTER)
    assert bare(shown).splitlines() == [
        "lines 1 to 4",
        "  __global__ void k(const float* a, float* out, int n) {",
        "      int i = threadIdx.x;",
        "-     if (i < n) out[i] = a[i] * 2.0f; // twice",
        "+     if (i < n) out[i] = a[i] + a[i]; // twice",
        "  }",
    ]
    for word in ("__global__", "const", "float", "threadIdx", "2.0f", "// twice"):
        assert re.search(rf'<span style="[^"]*color[^"]*">{re.escape(word)}</span>', shown), word
    assert bare("\n".join(code.lines(BEFORE))).rstrip("\n") == BEFORE.rstrip("\n")
    evil = code.diff("<script>alert(1)</script>\x1b", "</pre><img src=x onerror=1>")
    assert "<script" not in evil
    assert "<img" not in evil
    assert "\\x1b" in evil


def test_colours_are_for_terminals_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    report = text.render(run(40, 20, None, 10))
    assert coloured(report, io.StringIO()) == report
    shown = coloured(report, Terminal())
    assert "\x1b[32m+++ " in shown
    assert re.sub(r"\x1b\[[\d;]*m", "", shown) == report
    monkeypatch.setenv("NO_COLOR", "1")
    assert not re.search(r"\x1b\[[\d;]*3\d", coloured(report, Terminal()))


def test_the_tree_is_drawn_with_its_ends_and_the_path_to_the_best() -> None:
    found = run(40, 20, None, 10)
    page = tree.fragment(found)
    assert [page.count(sign) for sign in ("\u2605", "\u2713", "\u2717")] == [1, 2, 1]
    rows = page.split("<tr>")[2:]
    assert ["font-weight:600" in row for row in rows] == [True, False, False, True]
    picture = branches(found)
    assert isinstance(picture, Picture)
    assert {"40", "4x", "verified", "failed", "the path to the best"} & set(texts(picture)) == {
        "4x", "verified", "failed", "the path to the best",
    }  # fmt: skip
    assert "4 candidates, 1 failed; the best is 1 edit from where it began" in repr(picture)


def test_a_report_names_its_run_as_replay_takes_it() -> None:
    kept = replace(run(40, 10), journal=Path("/home/me/.cache/optiml/runs/k-0123abcd.jsonl"))
    assert kept.run == "k-0123abcd"
    assert "  run          k-0123abcd (optiml replay k-0123abcd)" in text.render(kept)
    assert "k-0123abcd</summary>" in html.fragment(kept)
    assert replace(kept, journal=Path("/tmp/mine.jsonl")).run == "/tmp/mine.jsonl"
    assert run(40, 10).run == ""
    assert "optiml replay" not in text.render(run(40, 10))


def test_the_picture_of_a_run_is_an_image_with_its_data_in_it() -> None:
    (first, *_) = (p for p in [branches(run(40, 10))] if isinstance(p, Picture))
    assert first._repr_html_().startswith('<img alt="The search tree of')
    assert 'src="data:image/svg+xml;base64,' in first.image
    assert "prefers-color-scheme:dark" in first.svg
    assert '<rect class="ground"' in first.svg

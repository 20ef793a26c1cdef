"""Marks on lines of a cell: data beside an output."""

from __future__ import annotations

from dataclasses import replace

from optiml_magic.model.evaluation import Evaluation
from optiml_magic.model.hazard import Hazard
from optiml_magic.model.verdict import Outcome, Verdict
from optiml_magic.reports import marks
from tests.unit.widgets.steps import finding

TEXT = "\n__global__ void k(float* x) {\n    x[0] = y;\n}\n"


def bundle(verdict: Verdict, *findings: str) -> list[dict[str, object]]:
    evaluation = Evaluation(0, "", verdict, findings=tuple(map(finding, findings)))
    found = marks.evaluated(TEXT, evaluation)
    assert found == {} or found[marks.MIME]["schema"] == marks.SCHEMA
    listed: list[dict[str, object]] = found[marks.MIME]["marks"] if found else []
    return listed


def test_a_verdict_marks_the_line_that_it_points_at_and_quotes_it() -> None:
    failed = Verdict(Outcome.COMPILE_ERROR, "y is undefined", 3, "fix this line")
    assert bundle(failed) == [
        {
            "line": 3,
            "severity": "error",
            "text": "compile error: y is undefined\nfix: fix this line",
            "source": "x[0] = y;",
        }
    ]


def test_nothing_is_marked_where_no_line_is_known_or_there_is_none() -> None:
    assert bundle(Verdict(Outcome.PASSED, "right", 3)) == []
    assert bundle(Verdict(Outcome.WRONG, "wrong")) == []
    assert bundle(Verdict(Outcome.WRONG, "wrong", 9)) == []


def test_a_race_is_marked_on_both_lines_and_findings_by_their_severity() -> None:
    race = Hazard("race", "two threads", "a barrier", 2, 3)
    found = bundle(Verdict(Outcome.PASSED, "", hazards=(race,)), "strided")
    assert [(mark["line"], mark["severity"]) for mark in found] == [
        (2, "error"), (3, "error"), (3, "warning"),
    ]  # fmt: skip
    assert found[2]["text"] == "coalescing: strided\nstage strided (by hand)"
    note = replace(finding("small"), severity="note")
    assert marks.advised(TEXT.splitlines(), [note])[marks.MIME]["marks"][0]["severity"] == "note"


def test_hidden_letters_are_spelled_out() -> None:
    (mark,) = bundle(Verdict(Outcome.WRONG, "a\u202eb", 2))
    assert mark["text"] == "wrong: a\\u202eb"

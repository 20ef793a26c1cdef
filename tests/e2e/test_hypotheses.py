"""Whether edits did what they promised, from the search to the journal and the reports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from optiml_magic.evaluation import Evaluator
from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.optimize import optimize
from optiml_magic.problem import prepare
from optiml_magic.profilers.levels import Levels
from optiml_magic.reports import contract, html
from optiml_magic.result import Result
from optiml_magic.session import session
from optiml_magic.settings import resolve
from optiml_magic.testing.kernels import known_task

STORES = "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Result:
    home = tmp_path_factory.mktemp("home")
    settings = resolve({"device": "emulated", "llm": "none", "budget": 3, "home": home})
    return optimize(known_task("transpose_naive", rows=256, cols=192), settings)


def parent_lines(result: Result) -> list[str]:
    return result.trajectory.root.candidate.text.splitlines()


def test_a_tile_lowers_the_sectors_of_the_stores_as_promised(result: Result) -> None:
    step = result.trajectory.steps[1]
    test = step.evaluation.test
    assert step.candidate.proposal.answers == "uncoalesced_access"
    assert test is not None
    assert (test.state, test.time, test.source) == ("confirmed", "alike", "emulated")
    answered = step.evaluation.answered
    assert answered is not None
    store = next(n for n, t in enumerate(parent_lines(result), 1) if "out[" in t)
    assert (answered.tool, answered.line) == ("uncoalesced_access", store)
    assert test.before == 256 * 192
    assert test.after == 256 * 192 / 8
    assert all(s.evaluation.test is not None for s in result.trajectory.steps[1:])
    assert result.trajectory.root.evaluation.test is None


def test_the_journal_keeps_it(result: Result) -> None:
    assert result.summary.journal is not None
    lines = [json.loads(line) for line in result.summary.journal.read_text().splitlines()]
    kept = [x["evaluated"]["evaluation"]["test"] for x in lines if x.get("evaluated")]
    assert [t and t["state"] for t in kept] == [
        s.evaluation.test and s.evaluation.test.state for s in result.trajectory.steps
    ]
    assert kept[1]["after"] == 256 * 192 / 8


def test_every_report_tells_what_was_expected_and_what_came(result: Result) -> None:
    came = "confirmed: from 4.915e+04 to 6144 sector, emulated, 8x lower"
    hypothesis = result.trajectory.steps[1].candidate.proposal.hypothesis
    assert hypothesis is not None
    assert (hypothesis.metric, hypothesis.direction) == (STORES, "lower")
    assert f"expected {hypothesis}" in repr(result)
    assert came in repr(result)
    assert "hypotheses   " in repr(result)
    assert came in html.fragment(result.summary)
    first = contract.optimized(result.summary)["steps"][1]
    assert first["hypothesis"]["factor"] == list(hypothesis.factor)
    assert (first["answers"], first["test"]["state"]) == ("uncoalesced_access", "confirmed")
    assert first["answered"]["tool"] == "uncoalesced_access"
    row = result.rows()[1]
    assert (row["hypothesis"], row["kept"]) == ("confirmed", "confirmed")
    assert row["answered"].startswith("uncoalesced_access on line ")


@pytest.mark.slow
def test_what_an_edit_promises_is_counted_of_it_and_of_later_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in a run that is resumed: children of a candidate are compared with it."""
    problem = prepare(known_task("saxpy", n=4096), seeds=1)
    fp64 = "smsp__inst_executed_pipe_fp64.sum"
    text = problem.program.text
    root = Candidate(0, None, Proposal(text, "", "user"))
    child = Candidate(
        1, 0, Proposal(text.replace("256", "128"), "", "test", hypothesis=Hypothesis(fp64, "lower"))
    )
    later = Candidate(2, 1, Proposal(text.replace("256", "64"), "", "test"))
    asked: list[tuple[str, ...]] = []
    begin = Levels.begin

    def spy(*args: Any, also: tuple[str, ...] = (), **more: Any) -> Any:
        asked.append(tuple(also))
        return begin(*args, also=also, **more)

    monkeypatch.setattr(Levels, "begin", spy)
    settings = resolve({"device": "emulated", "home": tmp_path})
    with session(settings) as members:
        evaluator = Evaluator(problem, members.tools)
        done = [evaluator([candidate])[0] for candidate in (root, child, later)]
        resumed = Evaluator(problem, members.tools)
        for candidate, evaluation in zip((root, child), done, strict=False):
            resumed.remember(candidate, evaluation)
        resumed([later])
    assert asked == [(), (fp64,), (fp64,), (fp64,)]


@pytest.mark.slow
def test_a_duplicate_is_held_to_its_own_promise(tmp_path: Path) -> None:
    """Machine code of another candidate, in the same batch: its figures, but another parent's."""
    task = known_task("saxpy", n=4096)
    problem = prepare(task, seeds=1)
    text = problem.program.text

    def candidate(number: int, parent: int | None, program: str, metric: str) -> Candidate:
        expected = Hypothesis(metric, "lower") if metric else None
        return Candidate(number, parent, Proposal(program, "", "test", hypothesis=expected))

    fewer = text.replace("256", "128")
    assert fewer != text
    blocks = "launch__grid_size"
    settings = resolve({"device": "emulated", "home": tmp_path})
    with session(settings, task=task) as members:
        evaluator = Evaluator(problem, members.tools)
        evaluator([candidate(0, None, text, "")])
        first, again, wrong, nothing = evaluator(
            [
                candidate(1, 0, fewer, blocks),
                candidate(2, 0, fewer + "// the same\n", "launch__block_size"),
                candidate(3, 0, fewer.replace("alpha *", "2.0f *"), blocks),
                candidate(4, 0, fewer + "// and again\n", ""),
            ]
        )
    states = [e.test.state if e.test else None for e in (first, again, wrong, nothing)]
    assert states == ["refuted", "confirmed", "not_measurable", None]
    assert again.duplicate_of == 1
    assert again.measurement == first.measurement
    assert again.findings == first.findings
    assert again.reward == first.reward

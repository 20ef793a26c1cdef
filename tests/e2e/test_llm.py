"""A model beside the rules: a real HTTP server behind the real client, in a whole search."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from optiml_magic.journal.lines import read_whole
from optiml_magic.llms.spending import Spent
from optiml_magic.model.verdict import Outcome
from optiml_magic.optimize import optimize
from optiml_magic.settings import resolve
from optiml_magic.testing.kernels import known_task
from tests.unit.llms.endpoint import Answer, completed, failed, serving, streamed

TILED = known_task("transpose_tiled").text
HYPOTHESIS = {"metric": "dram__bytes.sum", "direction": "lower", "because": "whole sectors"}


def saying(*programs: tuple[str, str]) -> Answer:
    proposals = [
        {"title": t, "rationale": "", "hypothesis": HYPOTHESIS, "program": p, "edits": None}
        for t, p in programs
    ]
    return completed(json.dumps({"proposals": proposals}))


def test_a_models_program_competes_under_the_same_verification(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-of-the-test")
    task = known_task("transpose_naive", rows=512, cols=512)
    wrong = task.text.replace("= a[", "= 2 * a[")
    tiled = known_task("transpose_tiled").text
    answers = [
        failed(400, "response_format json_schema is not supported"),
        saying(("a wrong one", wrong), ("a tile from the model", tiled)),
        *[saying() for _ in range(20)],
    ]
    with serving(*answers) as endpoint:
        endpoint.models = ["toy"]
        settings = resolve({"llm_url": endpoint.url, "budget": 14})
        result = optimize(task, settings)
        asked = "".join(json.dumps(body) for body in endpoint.bodies)
    steps = {s.candidate.proposal.title: s for s in result.trajectory.steps}
    tile = steps["a tile from the model"]
    assert f"expected dram__bytes.sum lower, {tile.evaluation.test}" in asked
    assert steps["a wrong one"].evaluation.verdict.outcome is Outcome.WRONG
    assert steps["a tile from the model"].evaluation.verdict.passed
    assert steps["a tile from the model"].candidate.proposal.proposer == "llm:toy"
    proposers = {s.candidate.proposal.proposer for s in result.trajectory.steps}
    assert proposers > {"transpose_tile", "llm:toy"}
    assert result.summary.model == "toy: auto took the endpoint's only model"
    assert any("tokens in" in note for note in result.summary.notes)
    assert result.summary.journal is not None
    journal = result.summary.journal.read_text()
    assert "sk-secret" not in journal + repr(result)


@pytest.mark.slow
def test_an_endpoint_that_is_gone_is_said_and_the_rules_go_on() -> None:
    with serving() as endpoint:
        url = endpoint.url
    settings = resolve({"llm": "toy", "llm_url": url, "budget": 2})
    result = optimize(known_task("transpose_naive", rows=128, cols=128), settings)
    assert len(result.trajectory.steps) == 2
    assert any("toy" in note and "connect" in note.lower() for note in result.summary.notes)


def eager(body: Any) -> Answer:
    """Four programs at a time that differ from the one shown, right and with code of their own."""
    question = body["messages"][1]["content"]
    shown = re.search(r"```cuda\n(.*?)```", question, re.DOTALL)
    wanted = re.search(r"up to (\d+) different", question)
    if shown is None or wanted is None:
        return saying()
    text = shown[1]
    number = len(text)
    return saying(
        *(
            (f"edit {number + k}", re.sub(r"\{\n", f"{{\n    if (rows == -{number + k}) return;\n", text, count=1))
            for k in range(int(wanted[1]))
        )
    )  # fmt: skip


@pytest.mark.parametrize("budget", [12, pytest.param(24, marks=pytest.mark.slow)])
def test_what_was_paid_for_is_run_and_the_rules_are_not_forgotten(budget: int, home: Path) -> None:
    task = known_task("transpose_naive", rows=256, cols=192)
    alone = optimize(task, resolve({"llm": "none", "budget": budget, "experience": "none"}))
    with serving(eager) as endpoint:
        url = {"llm": "toy", "llm_url": endpoint.url}
        result = optimize(task, resolve({**url, "budget": budget, "experience": "none"}))
    assert result.summary.journal is not None
    lines, _ = read_whole(result.summary.journal)
    given = [
        noted
        for line in lines
        if line.expansion is not None
        for noted in line.expansion.ideas
        if noted.paid
    ]
    tried = [s for s in result.trajectory.steps if s.candidate.proposal.proposer == "llm:toy"]
    assert len(tried) >= 0.8 * len(given)
    assert len(tried) >= budget / 3
    assert result.speedup >= alone.speedup


def test_what_failed_comes_back_to_the_model_and_is_repaired() -> None:
    task = known_task("transpose_naive", rows=128, cols=96)
    wrong = task.text.replace("= a[", "= 2 * a[")
    tiled = known_task("transpose_tiled").text
    bodies: list[str] = []

    def react(body: Any) -> Answer:
        question = body["messages"][1]["content"]
        bodies.append(question)
        if "What was wrong with it" in question:
            return saying(("a tile", tiled))
        return saying(("a wrong one", wrong)) if len(bodies) == 1 else saying()

    with serving(react) as endpoint:
        url = {"llm": "toy", "llm_url": endpoint.url}
        result = optimize(task, resolve({**url, "budget": 10, "experience": "none"}))
    steps = {s.candidate.proposal.title: s for s in result.trajectory.steps}
    assert steps["a wrong one"].evaluation.verdict.outcome is Outcome.WRONG
    assert steps["a wrong one, repaired"].evaluation.verdict.passed
    (asked,) = [body for body in bodies if "What was wrong with it" in body]
    assert "elements of `out` are wrong" in asked
    assert "= 2 * a[" in asked


def test_a_key_that_is_withdrawn_ends_the_models_part_and_keeps_the_result() -> None:
    task = known_task("transpose_naive", rows=128, cols=96)
    with serving(
        saying(("a tile", known_task("transpose_tiled").text)), failed(401, "no")
    ) as server:
        url = {"llm": "toy", "llm_url": server.url}
        result = optimize(task, resolve({**url, "budget": 8, "experience": "none"}))
    assert len(result.trajectory.steps) >= 8
    (tile,) = [s for s in result.trajectory.steps if s.candidate.proposal.title == "a tile"]
    assert tile.evaluation.verdict.passed
    assert any("the model is not asked again" in note for note in result.summary.notes)


@pytest.mark.slow
def test_a_model_that_drips_leaves_the_search_its_seconds() -> None:
    """It would take minutes for an answer, and is never silent for long."""
    task = known_task("transpose_naive", rows=128, cols=96)
    with serving(replace(saying(("a tile", "x" * 4000)), pace=0.05)) as server:
        url = {"llm": "toy", "llm_url": server.url}
        began = time.monotonic()
        result = optimize(task, resolve({**url, "budget": 6, "seconds": 6.0, "experience": "none"}))
    assert time.monotonic() - began < 60  # the endpoint would take 200
    assert len(result.trajectory.steps) > 1
    assert any("no whole answer within" in note for note in result.summary.notes)


def test_what_a_model_cost_is_told_with_its_price_and_all_that_was_said_can_be_read(
    capsys: pytest.CaptureFixture[str],
) -> None:
    task = known_task("transpose_naive", rows=128, cols=96)
    with serving(saying(("a tile", known_task("transpose_tiled").text)), saying()) as server:
        url = {"llm": "toy", "llm_url": server.url, "experience": "none", "show_prompts": True}
        result = optimize(task, resolve({**url, "budget": 4, "llm_prices": "1,2"}))
    assert any("at 1,2 a million" in note for note in result.summary.notes)
    shown = capsys.readouterr().err
    assert "--- to toy ---\n# The program" in shown
    assert "a tile" in shown


def test_tokens_and_money_are_told_while_an_answer_is_on_its_way() -> None:
    told: list[Spent] = []
    task = known_task("transpose_naive", rows=128, cols=96)
    tile = json.dumps({"proposals": [{"title": "a tile", "program": TILED}]})
    with serving(streamed(tile, pace=0.01), saying()) as server:
        url = {"llm": "toy", "llm_url": server.url, "experience": "none", "llm_prices": "1,2"}
        more = {"budget": 4, "llm_temperature": 0.2, "llm_effort": "low"}
        result = optimize(task, resolve({**url, **more}), spent=told.append)
        assert all(body["temperature"] == 0.2 for body in server.bodies)
        assert all(body["reasoning_effort"] == "low" for body in server.bodies)
    under_way = [spent.completion_tokens for spent in told if spent.under_way]
    assert len(set(under_way)) > 3
    assert max(under_way) > 100
    assert told[-1].under_way == 0
    assert not told[-1].estimated
    assert str(told[-1]) in result.summary.notes
    assert "a tile" in {s.candidate.proposal.title for s in result.trajectory.steps}


def test_without_tokens_left_the_rules_go_on_alone() -> None:
    with serving(saying()) as server:
        url = {"llm": "toy", "llm_url": server.url, "experience": "none"}
        task = known_task("transpose_naive", rows=128, cols=96)
        result = optimize(task, resolve({**url, "budget": 3, "llm_budget": 300}))
        assert not server.bodies
    assert len(result.trajectory.steps) == 3
    assert any("no more is to be spent" in note for note in result.summary.notes)


@pytest.mark.parametrize("later", ["none", "other"])
def test_a_run_goes_on_with_another_model_or_none(later: str) -> None:
    """What the first model proposed is run from the journal; it is not asked again."""
    task = known_task("transpose_naive", rows=128, cols=96)
    tiled = known_task("transpose_tiled").text
    with serving(saying(("a tile", tiled))) as first:
        flags = {"llm": "toy", "llm_url": first.url, "budget": 2, "experience": "none"}
        before = optimize(task, resolve(flags))
    journal = before.summary.journal
    assert journal is not None
    with serving(saying(), saying()) as second:
        flags |= {"llm": later, "llm_url": second.url, "budget": 8}
        result = optimize(task, resolve(flags), resume=journal)
        assert bool(second.bodies) == (later == "other")
    steps = result.trajectory.steps
    assert [step.candidate.digest for step in steps[:2]] == [
        step.candidate.digest for step in before.trajectory.steps
    ]
    assert {s.candidate.proposal.title for s in steps} >= {"a tile"}
    said = "rules" if later == "none" else "rules and llm:other"
    assert f"resumed with {said}; it began with rules and llm:toy" in result.summary.notes

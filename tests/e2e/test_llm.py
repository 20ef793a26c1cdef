"""A model beside the rules: a real HTTP server behind the real client, in a whole search."""

from __future__ import annotations

import json

from optiml_magic.model.verdict import Outcome
from optiml_magic.optimize import optimize
from optiml_magic.settings import resolve
from optiml_magic.testing.kernels import known_task
from tests.unit.llms.endpoint import completed, failed, serving

HYPOTHESIS = {"metric": "dram__bytes.sum", "direction": "lower", "because": "whole sectors"}


def saying(*programs: tuple[str, str]):  # type: ignore[no-untyped-def]
    proposals = [
        {"title": t, "rationale": "", "hypothesis": HYPOTHESIS, "program": p, "edits": None}
        for t, p in programs
    ]
    return completed(json.dumps({"proposals": proposals}))


def test_a_models_program_competes_under_the_same_verification(monkeypatch) -> None:  # type: ignore[no-untyped-def]
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
    journal = result.summary.journal.read_text()
    assert "sk-secret" not in journal + repr(result)


def test_an_endpoint_that_is_gone_is_said_and_the_rules_go_on() -> None:
    with serving() as endpoint:
        url = endpoint.url
    settings = resolve({"llm": "toy", "llm_url": url, "budget": 2})
    result = optimize(known_task("transpose_naive", rows=128, cols=128), settings)
    assert len(result.trajectory.steps) == 2
    assert any("toy" in note and "connect" in note.lower() for note in result.summary.notes)

"""Whole searches beside a model whose endpoint does at random all that endpoints do wrong."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from optiml_magic.optimize import optimize
from optiml_magic.replay.recording import Recording
from optiml_magic.reports import html, text
from optiml_magic.settings import resolve
from optiml_magic.testing.kernels import known_task
from tests.unit.llms.endpoint import Answer, chunk, completed, event, failed, serving, streamed

KEY = "sk-planted-93c1d7"
TASK = known_task("transpose_naive", rows=96, cols=64)
TILED = known_task("transpose_tiled").text
SECONDS = 20.0
REQUESTS = 200


def says(*programs: str) -> Answer:
    drafts = [{"title": f"edit {len(p)}", "program": p} for p in programs]
    return completed(json.dumps({"proposals": drafts}))


def faults(rng: random.Random, *, obeys: bool) -> Iterator[Answer]:
    """One of each kind, in any order, for ever; one that ``obeys`` keeps to its limit of tokens."""
    wrong = TASK.text.replace("= a[", "= 3 * a[")
    while True:
        edited = TASK.text.replace(
            "{\n", f"{{\n    if (rows == -{rng.randint(2, 10**6)}) return;\n"
        )
        round_ = [
            says(TILED, edited),
            says(edited),
            says(wrong),
            says(edited[: len(edited) // 2]),
            says(),
            Answer(429, "{}", {"retry-after-ms": "5"}),
            Answer(429, "{}", {"retry-after": "1"}),
            failed(500, f"it broke; you sent {KEY}"),
            failed(503, "busy"),
            failed(400, "response_format json_schema is not supported"),
            failed(400, "this is too long"),
            Answer(0),
            replace(says(edited), pace=0.02),
            replace(says(edited), delay=1.5),
            completed(json.dumps({"proposals": []})[:7], finish="length"),
            completed("", finish="length"),
            completed("I would rather not.", refusal="no"),
            completed("Certainly! What a lovely kernel."),
            completed("{" * 3000),
            Answer(200, "<html>502 Bad Gateway</html>"),
            Answer(200, b"\xff\xfe\x00"),
        ]
        whole = in_pieces(says(edited))
        middle = rng.randrange(1, len(whole.pieces))
        half = whole.pieces[middle][: rng.randrange(1, 40)]
        broken = event({"error": {"message": f"overloaded; you sent {KEY}", "code": 503}})
        round_ += [
            in_pieces(says(TILED, edited)),
            in_pieces(says(wrong)),
            in_pieces(says()),
            in_pieces(completed("I would rather not.", refusal="no")),
            in_pieces(completed(json.dumps({"proposals": []})[:7], finish="length")),
            in_pieces(completed("Certainly! What a lovely kernel.")),
            replace(whole, pace=0.002),
            replace(whole, pace=0.3),
            replace(whole, pieces=whole.pieces[:-2]),  # it does not say what it cost
            replace(whole, pieces=(*whole.pieces[:middle], half), end="reset"),
            replace(whole, pieces=(*whole.pieces[:middle], half)),
            replace(whole, pieces=whole.pieces[:middle], end="open"),
            replace(whole, pieces=(*whole.pieces[:middle], broken)),
            replace(whole, pieces=(*whole.pieces[:middle], event("{" * 300))),
            replace(whole, pieces=(b": busy\n\n",), pace=0.05, endless=True),
            failed(400, "Unrecognized request argument: stream_options"),
            failed(400, "streaming is not supported"),
        ]
        if not obeys:
            on = event(chunk({"content": "and so on, "}))
            round_ += [replace(whole, pieces=(on,), pace=0.0005, endless=True)]
        rng.shuffle(round_)
        yield from round_


@pytest.mark.timeout(1200)
@pytest.mark.slow
def test_whatever_the_endpoint_does_the_search_is_right_in_time_and_keeps_the_key(
    home: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPTIML_LLM_KEY", KEY)
    told, asked, rng = "", 0, random.Random("faults")
    spent = list[int]()

    def react(body: Any) -> Answer:
        answer, took = costing(next(coming), body)
        spent.append(took)
        return answer

    while asked < REQUESTS:
        spent.clear()
        with serving(react) as endpoint:
            limit = rng.choice([0, 20_000])
            coming = faults(rng, obeys=bool(limit))
            settings = resolve({
                "llm": "toy", "llm_url": endpoint.url, "experience": "none", "budget": 10,
                "seconds": SECONDS, "llm_budget": limit, "llm_seconds": 1.0, "show_prompts": True,
                "seed": rng.randint(0, 99),
            })  # fmt: skip
            began = time.monotonic()
            result = optimize(TASK, settings)
            assert time.monotonic() - began < 3 * SECONDS  # this machine may be busy
            asked += max(1, len(spent))
            assert not limit or sum(spent) <= limit
        assert result.trajectory.best.evaluation.verdict.passed
        assert len(result.trajectory.steps) > 1
        journal = result.summary.journal
        assert journal is not None
        again = Recording.read(journal)
        assert [s.candidate for s, _ in again.steps()] == [
            s.candidate for s in result.trajectory.steps
        ]
        told += repr(result) + str(html.fragment(result.summary)) + text.render(result.summary)
    told += "".join(capfd.readouterr())
    assert "--- to toy ---" in told
    for path in home.rglob("*"):
        if path.is_file():
            told += path.read_bytes().decode(errors="replace")
    assert KEY not in told


def in_pieces(answer: Answer) -> Answer:
    """The same answer as a stream."""
    choice = json.loads(answer.body)["choices"][0]
    message = choice["message"]
    if message["refusal"]:
        return streamed([{"refusal": message["refusal"]}], finish=choice["finish_reason"])
    return streamed(message["content"], finish=choice["finish_reason"])


def costing(answer: Answer, body: Any) -> tuple[Answer, int]:
    """An answer that tells what it took: a token for three characters, and some that nobody sees.

    One in pieces that ends before it tells that took it all the same.
    """
    limit = body.get("max_tokens") or body.get("max_completion_tokens") or 10**6
    asked = len(json.dumps(body["messages"])) // 3
    if answer.pieces:
        answered = min(limit, 700 + sum(map(len, answer.pieces)) // 30)
        usage = {"prompt_tokens": asked, "completion_tokens": answered}
        told = event(chunk(usage=usage))
        pieces = tuple(told if b'"usage": {' in piece else piece for piece in answer.pieces)
        return replace(answer, pieces=pieces), asked + answered
    try:
        said = json.loads(answer.body)
        usage = said["usage"]
    except (ValueError, KeyError, TypeError):
        return answer, 0
    answered = min(limit, 700 + len(said["choices"][0]["message"]["content"] or "") // 3)
    usage.update(prompt_tokens=asked, completion_tokens=answered)
    return replace(answer, body=json.dumps(said)), asked + answered

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from optiml_magic.errors import UsageError
from optiml_magic.model.evaluation import Step
from optiml_magic.model.idea import Idea, Ready
from optiml_magic.model.refusal import Refusal
from optiml_magic.model.verdict import Outcome, Verdict
from optiml_magic.proposers import answer, brief, prompt
from optiml_magic.proposers.brief import Contents
from optiml_magic.source.program import parse_program

from .views import SCALE, step, view


def test_the_question_tells_what_is_known() -> None:
    wrong = Verdict(Outcome.WRONG, "3 of 12 wrong: first out[0] = 1, wanted 2", line=6)
    asked = brief.plan(
        view(
            SCALE,
            step(number=1, seconds=4e-6, title="halved", sectors=8.0),
            step(number=2, title="broken", verdict=wrong),
            step(number=3, title="same", duplicate_of=1),
        ),
        3,
    )
    for told in (
        f"```cuda\n{SCALE}```",
        "It is right.\n",
        "Time: 8 us, estimated, on h200.",
        "limited by memory traffic",
        "[critical] uncoalesced_access: The store on line 6",
        "= 32 sector/request, threshold 6 (emulated), line 6: `out[i] = 2.0f * a[i];`",
        "try: Let threadIdx.x run along",
        "halved: right, 4 us, estimated, on h200, 2x the speed of the input kernel (estimated)",
        "expected sectors.ratio 2x to 8x lower, confirmed: from 32 to 8 sector/request, emulated, 4x",
        "broken: It failed (wrong) at line 6: `out[i] = 2.0f * a[i];`: 3 of 12 wrong",
        "same: the compiler made the same machine code",
        "NVIDIA H200",
        "emulator of PTX",
        "up to 3 different edits",
    ):
        assert told in asked


def test_every_time_says_that_it_is_estimated() -> None:
    asked = brief.plan(view(SCALE, step(number=1)), 4)
    for line in asked.splitlines():
        if " us" in line and "us," in line:
            assert "estimated" in line


def test_metrics_are_named_without_their_values() -> None:
    section = brief.plan(view(), 4).split("# Metrics for hypotheses")[1].split("#")[0]
    assert section.strip() == "sectors.ratio"


def test_only_the_latest_tries_are_told() -> None:
    tried = [step(number=n, title=f"try {n}.") for n in range(1, 31)]
    asked = brief.plan(view(SCALE, *tried), 4)
    assert "(18 earlier ones are left out)" in asked
    assert "try 18." not in asked
    assert "try 19." in asked
    assert "try 30." in asked


def test_of_a_proposers_own_ideas_the_latest_are_told_once() -> None:
    def by(number: int, proposer: str) -> Step:
        found = step(number=number, title=f"try {number}.")
        told = replace(found.candidate.proposal, proposer=proposer)
        return replace(found, candidate=replace(found.candidate, proposal=told))

    mine = [by(number, "llm:toy") for number in range(1, 21)]
    seen = replace(view(SCALE, *mine[-2:]), evaluated=(*mine, by(30, "block_size")))
    asked = brief.plan(seen, 4, own="llm:toy")
    told = asked.split("# What became of your other ideas in this search")[1].split("\n#")[0]
    assert told.count("\n- ") == 8
    assert "(10 earlier ones are left out)" in told
    assert "try 11." in told
    assert "try 18." in told
    assert asked.count("try 19.") == 1
    assert "try 30." not in asked
    assert "your other ideas" not in brief.plan(seen, 4)


def test_what_waits_is_told_and_not_more_than_the_next() -> None:
    ideas = tuple(Idea(f"wait {at}.", "llm:toy", Ready(""), str(at)) for at in range(20))
    asked = brief.plan(replace(view(SCALE), find_queued=lambda: ideas), 4)
    told = asked.split("# What waits to be tried")[1].split("\n#")[0]
    assert told.strip().splitlines() == [f"{at + 1}. wait {at}." for at in range(12)]
    assert "What waits" not in brief.plan(view(SCALE), 4)


def test_a_fence_is_longer_than_those_inside() -> None:
    assert prompt.fenced("a\n````\nb").splitlines()[0] == "`````cuda"


def test_the_texts_are_whole_and_their_examples_parse() -> None:
    assert "@" not in brief.plan(view(), 4).split("# Your task")[1]
    system = prompt.system()
    assert "tune NAME in {8, 16, 32} = 16" in system
    parse_program("#pragma optiml tune NAME in {8, 16, 32} = 16\n")
    parse_program("#pragma optiml scratch NAME float[2 * n]\n#pragma optiml zero(NAME)\n")
    parse_program("#pragma optiml require n % 4 == 0\n#pragma optiml repeat(n) swap(a, b)\n")


def test_the_schema_is_strict() -> None:
    def check(node: object) -> None:
        if isinstance(node, list):
            for item in node:
                check(item)
        if isinstance(node, dict):
            assert "default" not in node
            if node.get("type") == "object":
                assert node["additionalProperties"] is False
                assert node["required"] == list(node["properties"])
            for value in node.values():
                check(value)

    schema = json.loads(answer.schema())
    check(schema)
    assert schema["properties"]["proposals"]["items"] == {"$ref": "#/$defs/Draft"}


def test_what_the_rules_refused_is_told_with_the_line_and_is_bounded() -> None:
    seen = view()
    refused = [Refusal("tile", "the loop is left early", 2)]
    refused += [Refusal("swap", f"reason {number}") for number in range(30)]
    seen = replace(seen, step=replace(seen.step, refused=tuple(refused)))
    told = brief.plan(seen, 4).split("# What the rules refused and why")[1].split("\n#")[0]
    line = seen.step.candidate.text.splitlines()[1].strip()
    assert f"- tile: the loop is left early, line 2: `{line}`" in told
    assert told.count("\n- ") == 12
    assert "refused" not in brief.plan(view(), 4)


def test_a_model_is_told_where_every_bit_must_stay() -> None:
    assert "Every bit of every output" in brief.plan(view(), 4, Contents(exact=True))
    assert "Every bit" not in brief.plan(view(), 4)


def test_a_user_may_put_a_text_in_place_of_one_and_the_digest_tells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = prompt.digest()
    assert before == prompt.digest()
    (tmp_path / "plan.md").write_text("Plan @COUNT@ edits, small ones.\n")
    monkeypatch.setenv("OPTIML_PROMPTS", str(tmp_path))
    assert "Plan 3 edits, small ones." in brief.plan(view(), 3)
    assert "You make CUDA kernels faster" in prompt.system()
    assert prompt.digest() != before
    monkeypatch.delenv("OPTIML_PROMPTS")
    assert prompt.digest() == before


def test_a_text_that_cannot_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "system.md").write_bytes(b"\xff\xfe")
    monkeypatch.setenv("OPTIML_PROMPTS", str(tmp_path))
    with pytest.raises(UsageError, match=r"system\.md cannot be read"):
        prompt.system()

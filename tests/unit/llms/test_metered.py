"""Tokens that a search may spend, kept whatever the endpoint does; and all of it to be read."""

from __future__ import annotations

from dataclasses import replace
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optiml_magic.llms.base import LlmFailure, Reply, Request
from optiml_magic.llms.metered import Metered
from optiml_magic.llms.scripted import ScriptedLLM
from optiml_magic.llms.shown import Shown

ASK = Request("be brief", "x" * 2000, max_tokens=1000)  # 1,004 tokens at the most


class Endpoint:
    """Takes up to all that it may, and counts what it took."""

    def __init__(self, share: float, *, tells: bool = True) -> None:
        self.name = "toy"
        self.spent = 0
        self._share = share
        self._tells = tells

    def complete(self, request: Request) -> Reply | LlmFailure:
        asked = (len(request.system) + len(request.user)) // 2
        answered = int(request.max_tokens * self._share)
        self.spent += asked + answered
        return Reply("{}", asked, answered) if self._tells else Reply("{}")


@pytest.mark.parametrize("tells", [True, False])
@given(limit=st.integers(0, 9000), share=st.floats(0, 1))
def test_no_more_is_spent_than_the_limit(limit: int, share: float, *, tells: bool) -> None:
    endpoint = Endpoint(share, tells=tells)
    llm = Metered(endpoint, limit)
    found = [llm.complete(ASK) for _ in range(12)]
    assert endpoint.spent <= limit
    assert isinstance(found[-1], LlmFailure) or limit >= 12 * 2004 or share < 1
    for one in found:
        if isinstance(one, LlmFailure):
            assert (one.kind, one.may_pass) == ("spent", False)
            assert f"the {limit} tokens of this search are spent" in one.message


def test_what_was_not_used_is_there_for_the_next() -> None:
    endpoint = Endpoint(0.1)
    llm = Metered(endpoint, 5000)
    assert sum(isinstance(llm.complete(ASK), Reply) for _ in range(9)) == 4
    assert endpoint.spent == 3 * 1104 + 1072  # the last may be no longer than what is left


def test_the_last_answer_is_shorter() -> None:
    script = ScriptedLLM([Reply("{}", 1004, 1000)] * 9)
    llm = Metered(script, 3300)
    while isinstance(llm.complete(ASK), Reply):
        pass
    assert [request.max_tokens for request in script.requests] == [1000, 292]


@pytest.mark.parametrize(
    ("kind", "asked"), [("unreachable", 9), ("rate_limited", 9), ("timeout", 2)]
)
def test_a_failure_costs_nothing_unless_nobody_knows(kind: str, asked: int) -> None:
    script = ScriptedLLM([LlmFailure(kind, "no")] * 9)  # type: ignore[arg-type]
    llm = Metered(script, 4200)
    for _ in range(9):
        llm.complete(ASK)
    assert len(script.requests) == asked


def test_several_ask_at_once_and_keep_to_it() -> None:
    endpoint = Endpoint(1.0)
    llm = Metered(endpoint, 9000)
    threads = [Thread(target=llm.complete, args=(ASK,)) for _ in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 0 < endpoint.spent <= 9000


def test_all_that_is_sent_and_comes_back_can_be_read() -> None:
    written: list[str] = []
    llm = Shown(
        ScriptedLLM(["an \x1b[2J answer", LlmFailure("server", "it fails")]), written.append
    )
    llm.complete(replace(ASK, user="why?"))
    llm.complete(ASK)
    whole = "".join(written)
    for part in (
        "system ---\nbe brief",
        "to scripted ---\nwhy?",
        "an \\x1b[2J answer",
        "(it fails)",
    ):
        assert part in whole

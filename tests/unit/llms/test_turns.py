"""Several ask one endpoint at once: no more than it may have, and no longer than each may wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import replace

import pytest

from optiml_magic.errors import MachineError
from optiml_magic.llms.base import LLM, LlmFailure, Reply, Request
from optiml_magic.llms.metered import Metered
from optiml_magic.llms.turns import InTurns

from .endpoint import completed, failed, streamed
from .test_openai import ASK, asked


def together(llm: LLM, requests: Sequence[Request]) -> list[Reply | LlmFailure]:
    found: dict[int, Reply | LlmFailure] = {}

    def ask(number: int, request: Request) -> None:
        found[number] = llm.complete(request)

    threads = [threading.Thread(target=ask, args=one) for one in enumerate(requests)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [found[number] for number in range(len(requests))]


@pytest.mark.parametrize("most", [1, 2, 4])
def test_an_endpoint_has_so_many_requests_at_once_and_no_more(most: int) -> None:
    with asked(streamed("a" * 40, delay=0.4)) as (llm, endpoint):
        found = together(InTurns(llm, most), [ASK] * 8)
    assert all(isinstance(one, Reply) for one in found)
    assert len(endpoint.bodies) == 8
    assert endpoint.most == most


@pytest.mark.slow
def test_waiting_counts_against_the_seconds_and_costs_nothing() -> None:
    with asked(replace(completed("{}"), delay=3.0)) as (llm, endpoint):
        metered = Metered(llm, 10_000)
        turns = InTurns(metered, 1)
        first = threading.Thread(target=turns.complete, args=(ASK,))
        first.start()
        while not endpoint.bodies:
            time.sleep(0.01)
        late = turns.complete(replace(ASK, seconds=0.3))
        assert isinstance(late, LlmFailure)
        assert late.kind == "timeout"
        assert late.may_pass
        assert "for another request to end, and was not sent" in late.message
        assert 0.2 < late.seconds < 2.5
        assert (late.prompt_tokens, late.completion_tokens) == (0, 0)
        began = time.monotonic()
        assert isinstance(turns.complete(replace(ASK, seconds=4.5)), LlmFailure)  # 3 + 3 are more
        assert time.monotonic() - began < 5.9
        first.join()


def test_who_waits_is_told_of_the_end_of_the_search() -> None:
    stopped = threading.Event()
    with asked(replace(completed("{}"), delay=30.0), cancelled=stopped.is_set) as (llm, _):
        threading.Timer(1.0, stopped.set).start()
        began = time.monotonic()
        found = together(InTurns(llm, 1, stopped.is_set), [ASK] * 3)
        assert time.monotonic() - began < 20
    assert all(isinstance(one, LlmFailure) and one.kind == "timeout" for one in found)


def test_an_error_gives_the_turn_back() -> None:
    with asked(failed(401, "no"), completed("{}")) as (llm, _):
        turns = InTurns(llm, 1)
        with pytest.raises(MachineError):
            turns.complete(ASK)
        assert isinstance(turns.complete(replace(ASK, seconds=5)), Reply)

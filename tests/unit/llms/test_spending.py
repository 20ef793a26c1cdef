"""What a model costs, while it is asked and afterwards, over a real server."""

from __future__ import annotations

import threading

from optiml_magic.llms.base import LlmFailure, Reply
from optiml_magic.llms.scripted import ScriptedLLM
from optiml_magic.llms.spending import Counted, Spending, Spent

from .endpoint import completed, failed, streamed
from .test_openai import ASK, asked


def test_an_answer_under_way_is_told_before_it_is_there() -> None:
    told: list[Spent] = []
    account = Spending("1,2", told.append)
    slow = streamed("abcd" * 20, pace=0.05)
    with asked(slow, completed("{}"), heard=account.tell) as (llm, _):
        account.open("llm:toy", llm)
        counted = Counted(llm, account)
        counted.complete(ASK)
        counted.complete(ASK)
    growing = [spent.completion_tokens for spent in told if spent.under_way]
    assert len(set(growing)) > 2
    assert growing[0] < max(growing)
    assert told[0].estimated
    assert not told[-1].estimated
    assert told[-1] == account.now
    assert str(account.now).startswith("llm:toy: 22 + 14 tokens in 2 requests, ")
    assert str(account.now).endswith(" s, 5e-05 at 1,2 a million")
    assert account.now.brief == "36 tokens, cost 5e-05"
    assert "1 under way" in str(told[0])


def test_failures_count_and_what_is_guessed_is_said_to_be() -> None:
    account = Spending()
    assert account.now.brief == ""
    outcomes = [LlmFailure("server", "no", 5, 0, 1.0), Reply("{}", 10, 3, 2.0, estimated=True)]
    counted = Counted(ScriptedLLM(outcomes), account)
    counted.complete(ASK)
    assert account.now.brief == "5 tokens"
    counted.complete(ASK)
    assert str(account.now).endswith("about 15 + 3 tokens in 2 requests, 3 s")
    assert account.now.brief == "about 18 tokens"


def test_several_at_once_are_all_counted() -> None:
    account = Spending()
    counted = Counted(ScriptedLLM([Reply("{}", 3, 2)] * 64), account)
    threads = [threading.Thread(target=counted.complete, args=(ASK,)) for _ in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (account.now.requests, account.now.prompt_tokens) == (64, 192)


def test_an_effort_is_asked_for_and_one_that_is_not_taken_is_noted() -> None:
    def react(body: object) -> object:
        assert isinstance(body, dict)
        if "reasoning_effort" in body:
            return failed(400, "Unrecognized request argument: reasoning_effort")
        return completed("{}")

    account = Spending()
    with asked(completed("{}"), react, effort="low") as (llm, endpoint):  # type: ignore[arg-type]
        account.open("llm:toy", llm)
        assert isinstance(llm.complete(ASK), Reply)
        assert account.notes == ()
        assert isinstance(llm.complete(ASK), Reply)
    sent = [body.get("reasoning_effort") for body in endpoint.bodies]
    assert sent == ["low", "low", None]
    (note,) = account.notes
    assert "llm:toy: the endpoint takes no effort" in note
    assert all(body["temperature"] == ASK.temperature for body in endpoint.bodies)

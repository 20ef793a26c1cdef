from __future__ import annotations

from optiml_magic.llms.base import LLM, LlmFailure, Reply, Request
from optiml_magic.llms.scripted import ScriptedLLM


def test_it_answers_in_order_and_keeps_the_questions() -> None:
    failure = LlmFailure("timeout", "slow")
    scripted = ScriptedLLM(["one", Reply("two", 3, 4), failure])
    llm: LLM = scripted
    asked = [Request("s", str(number)) for number in range(4)]
    answers = [llm.complete(request) for request in asked]
    assert answers[:3] == [Reply("one", model="scripted"), Reply("two", 3, 4), failure]
    assert isinstance(answers[3], LlmFailure)
    assert answers[3].kind == "exhausted"
    assert scripted.requests == asked

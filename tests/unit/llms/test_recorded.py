from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from optiml_magic.errors import UsageError
from optiml_magic.llms.base import LLM, Request
from optiml_magic.llms.recorded import NOTHING, Answered, RecordedLLM, Topic, packed, read
from optiml_magic.proposers import brief
from optiml_magic.proposers.answer import Draft
from optiml_magic.proposers.prompt import failed
from tests.unit.proposers.views import SCALE, step, view

PLAN = brief.plan(view(), 3)
WRITE = brief.write(view(), Draft(title="a tile  in shared memory", rationale="it is reused"))
DEBUG = failed(step())
PROGRAM = SCALE.rstrip("\n")


def answered(question: str, reply: str) -> Answered:
    return Answered(question, reply, "somebody", "2026-11-23")


def said(llm: LLM, question: str) -> str:
    reply = llm.complete(Request("", question))
    assert not hasattr(reply, "kind")
    return reply.text


def test_a_question_is_about_a_program_in_a_role() -> None:
    assert Topic.of(PLAN) == Topic("plan", PROGRAM)
    assert Topic.of(WRITE) == Topic("write", PROGRAM, "a tile in shared memory")
    assert Topic.of(DEBUG) == Topic("debug", PROGRAM)
    assert Topic.of("hello") == Topic("plan", "")


def test_a_program_that_holds_titles_and_fences_is_read_whole() -> None:
    text = SCALE + "/*\n# The plan\n\n```cuda\n*/\n"
    question = brief.plan(view(text), 3)
    assert Topic.of(question) == Topic("plan", text.rstrip("\n"))


def test_the_nth_answer_of_a_topic_is_for_the_nth_time_it_comes() -> None:
    record = [answered(PLAN, "one"), answered(WRITE, "code"), answered(PLAN, "two")]
    llm = RecordedLLM(record)
    assert [said(llm, question) for question in (PLAN, PLAN, WRITE)] == ["one", "two", "code"]
    assert [said(llm, question) for question in (PLAN, DEBUG)] == [NOTHING, NOTHING]
    assert (llm.given, llm.exact, llm.unanswered) == (3, 3, 2)


def test_other_words_about_the_same_program_get_the_answer_and_are_counted() -> None:
    llm = RecordedLLM([answered(PLAN, "one")])
    assert said(llm, f"{PLAN}\n\nBe quick.") == "one"
    assert (llm.given, llm.exact) == (1, 0)


def test_what_is_not_recorded_is_asked_for() -> None:
    asked: list[tuple[Topic, int, str]] = []

    def missing(topic: Topic, before: int, question: str) -> str | None:
        asked.append((topic, before, question))
        return "two" if before == 1 else None

    llm = RecordedLLM([answered(PLAN, "one")], missing=missing)
    assert [said(llm, PLAN) for _ in range(3)] == ["one", "two", NOTHING]
    assert asked == [(Topic.of(PLAN), 1, PLAN), (Topic.of(PLAN), 2, PLAN)]


def test_a_record_is_read_as_it_was_written_and_a_broken_line_is_named(tmp_path: Path) -> None:
    record = [answered(PLAN, '{"proposals": []}'), answered(DEBUG, "é\u2028")]
    path = tmp_path / "answers.jsonl.gz"
    path.write_bytes(packed(record))
    assert read(path) == record
    assert path.read_bytes()[4:8] == bytes(4)  # where gzip has the time that a file was made at
    path.write_bytes(packed(record[:1]) + gzip.compress(b"{}\n"))
    with pytest.raises(UsageError, match="line 2 of"):
        read(path)

"""A language model whose answers somebody wrote down: for tests and benchmarks.

Prompts change their words, so an answer belongs to what its question is about, and how many were
given to the very words that they were written for is counted.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Lock

from optiml_magic.errors import UsageError
from optiml_magic.llms.base import Reply, Request

NOTHING = '{"proposals": []}'
_PROGRAM = re.compile(r"^(`{3,})cuda\n(.*?)\n\1$", re.DOTALL | re.MULTILINE)
_PLAN = re.compile(r"^# The plan\n\n(.*)$", re.MULTILINE)
_FAILED = re.compile(r"^# What was wrong with it$", re.MULTILINE)


@dataclass(frozen=True)
class Topic:
    """What a question is about: a program, and the ``role`` that it is asked in.

    ``title`` is that of the plan that is to be written, else empty.
    """

    role: str
    program: str
    title: str = ""

    @classmethod
    def of(cls, question: str) -> Topic:
        """That of a question; one of no program has an empty one."""
        shown = _PROGRAM.search(question)
        program, rest = (shown[2], question[shown.end() :]) if shown else ("", question)
        if planned := _PLAN.search(rest):
            return cls("write", program, planned[1].strip())
        return cls("debug" if _FAILED.search(rest) else "plan", program)


@dataclass(frozen=True)
class Answered:
    """A question in full and what ``author`` replied to it on a ``date``."""

    question: str
    reply: str
    author: str
    date: str


def packed(answers: Iterable[Answered]) -> bytes:
    """A file of them: a line of JSON each, compressed, with no time in it."""
    lines = (f"{json.dumps(asdict(one))}\n" for one in answers)
    return gzip.compress("".join(lines).encode(), mtime=0)


def read(path: Path) -> list[Answered]:
    """The lines of a file; raises UsageError for one that is not as ``packed`` made it."""
    found = []
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    for number, line in enumerate(lines, 1):
        try:
            found.append(Answered(**json.loads(line)))
        except (ValueError, TypeError) as unfit:
            raise UsageError(
                f"line {number} of {path} is not a recorded answer: {unfit}",
                fix="record it again",
                line=number,
            ) from None
    return found


class RecordedLLM:
    """Gives the n-th recorded answer to the n-th question of a topic.

    Where none is recorded ``missing`` is asked, with the topic, how often it came before, and the
    question; without an answer of it there are no proposals. ``given`` counts answers from the
    record, ``exact`` those among them to the very question that was recorded, and ``unanswered``
    the questions that there was none for.
    """

    def __init__(
        self,
        recorded: Iterable[Answered],
        *,
        name: str = "recorded",
        missing: Callable[[Topic, int, str], str | None] = lambda *_: None,
    ) -> None:
        self.name = name
        self.given = self.exact = self.unanswered = 0
        self._answers: dict[Topic, list[Answered]] = {}
        for one in recorded:
            self._answers.setdefault(Topic.of(one.question), []).append(one)
        self._times: Counter[Topic] = Counter()
        self._missing = missing
        self._lock = Lock()

    def complete(self, request: Request) -> Reply:
        topic = Topic.of(request.user)
        with self._lock:
            before = self._times[topic]
            self._times[topic] += 1
            found = self._answers.get(topic, [])[before : before + 1]
            self.given += len(found)
            self.exact += sum(one.question == request.user for one in found)
            self.unanswered += not found
        told = found[0].reply if found else self._missing(topic, before, request.user)
        return Reply(NOTHING if told is None else told, model=self.name)

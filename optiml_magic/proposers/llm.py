"""A language model as a proposer: a step in words out, edits of its program back.

Deterministic as far as the model is; the journal keeps its answers, so a resumed run asks nothing
again.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from optiml_magic.errors import MachineError, UsageError
from optiml_magic.llms.base import LLM, LlmFailure, Reply, Request
from optiml_magic.model.evaluation import Step
from optiml_magic.model.idea import Idea, Ideas
from optiml_magic.model.view import View
from optiml_magic.proposers import answer, brief, prompt
from optiml_magic.proposers.answer import Fault
from optiml_magic.proposers.drafts import Unusable, idea, one_line
from optiml_magic.source.program import Program, parse_program

_LONGEST_PROGRAM = 100_000  # characters that are put into a prompt
_LONGEST_QUOTE = 20_000  # characters of what cannot be used that the model is shown again
_MOST_QUOTED = 8
_MOST_NOTES = 50
_REPAIRS = 2  # of what cannot be used, and of what failed its evaluation
_MOST_FAILURES = 3  # in a row, then the model is not asked again: each may take minutes
_MOST_USELESS = 5  # replies in a row, likewise
_BACKOFF = 1.0  # seconds after a first failure, then four times as long each time
_PART = 2  # of the seconds and of the evaluations that are left a request is for
_PRIOR, _PRIOR_STEP, _PRIOR_FLOOR = 0.6, 0.05, 0.1
_MARKS = (", repaired", ", repaired twice")


@dataclass(frozen=True)
class Usage:
    """What the model was asked for so far, failures included."""

    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0

    def plus(self, spent: Reply | LlmFailure) -> Usage:
        """This and one more request."""
        return Usage(
            self.requests + 1,
            self.prompt_tokens + spent.prompt_tokens,
            self.completion_tokens + spent.completion_tokens,
            self.seconds + spent.seconds,
        )

    def and_then(self, other: Usage) -> Usage:
        """This and what another was asked for."""
        return Usage(
            self.requests + other.requests,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.seconds + other.seconds,
        )


@dataclass(frozen=True)
class Room:
    """What a search has for its model: ``evaluations`` in all, seconds that are ``left`` to it.

    ``most`` edits are asked for at a time, and ``pause`` waits so many seconds.
    """

    evaluations: int | None = None
    left: Callable[[], float] = lambda: math.inf
    most: int = 4
    pause: Callable[[float], None] = time.sleep


@dataclass(frozen=True)
class _Asked:
    """What a question is about: what edits apply to, and what each answer must fit."""

    view: View
    program: Program
    root: Program
    wanted: int


class LlmProposer:
    """Asks for a few edits at a time, once those before are evaluated.

    What cannot be used is asked for again, alone and twice at most; so is a program that failed its
    evaluation. A failure of the endpoint is tried again after a while, and ends the model's part
    in the search after three in a row, as five useless replies do, and an endpoint that refuses
    the key or the model in the middle of it. ``notes`` has what went wrong, the latest last.
    """

    def __init__(
        self,
        llm: LLM,
        *,
        temperature: float = 0.7,
        seed: int = 0,
        max_tokens: int = 8192,
        exact: bool = False,
        reference: str = "",
        room: Room = Room(),  # a frozen value
    ) -> None:
        self.name = one_line(f"llm:{llm.name}", 80)
        self.usage = Usage()
        self.llm = llm
        self._temperature = temperature
        self._seed = seed
        self._max_tokens = max_tokens
        self._exact = exact
        self._reference = reference
        self._room = room
        self._answered = False
        self._failures = 0
        self._useless = 0
        self._off = False
        self._titles: set[str] = set()  # of what it gave
        self._notes: deque[str] = deque(maxlen=_MOST_NOTES)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should know, the latest last; older ones are forgotten."""
        return tuple(self._notes)

    def propose(self, view: View, count: int) -> Ideas:  # see above
        if self._off or count < 1:
            return Ideas()
        if any(waiting.paid for waiting in view.queued):
            return Ideas(more=True)
        if len(view.step.candidate.text) > _LONGEST_PROGRAM:
            self._note(view, f"the program is longer than {_LONGEST_PROGRAM} characters")
            return Ideas()
        try:
            program = parse_program(view.step.candidate.text)
            root = parse_program(view.root.candidate.text)
        except UsageError as unfit:
            self._note(view, f"the program cannot be parsed: {unfit.message}")
            return Ideas()
        failed = self._failed(view)
        ideas = self._corrected(view, failed, root) if failed is not None else []
        if not ideas:
            wanted = min(count, self._worth_asking(view))
            question = brief.user(
                view, wanted, exact=self._exact, own=self.name, reference=self._reference
            )
            ideas = self._asked(_Asked(view, program, root, wanted), question)
        self._titles.update(one.title for one in ideas)
        return Ideas(tuple(ideas))

    def _worth_asking(self, view: View) -> int:
        """How many edits there is room for beside those of others."""
        if self._room.evaluations is None:
            return self._room.most
        left = self._room.evaluations - len(view.evaluated)
        return min(self._room.most, max(1, left // _PART))

    def _asked(self, about: _Asked, question: str) -> list[Idea]:
        """What a question brings, with what was unusable at first and was asked for again."""
        ideas: list[Idea] = []
        asked, faults = question, list[Fault]()
        for _ in range(1 + _REPAIRS):
            reply = self._reply(about.view, asked)
            if reply is None:
                return ideas
            faults = self._read(about, reply, ideas)
            if not faults or len(ideas) >= about.wanted:
                break
            asked = f"{question}\n\n{_repair(faults)}"
        else:
            self._note(about.view, f"gave up after {_REPAIRS} repairs")
        if not ideas and not faults:
            self._note(about.view, "the model has no more ideas")
        self._useless = self._useless + 1 if faults and not ideas else 0
        if self._useless == _MOST_USELESS:
            self._end(about.view, f"{_MOST_USELESS} useless replies in a row")
        return ideas

    def _read(self, about: _Asked, reply: Reply, ideas: list[Idea]) -> list[Fault]:
        """What is wrong with a reply; its ideas join ``ideas``."""
        tools = {finding.tool for finding in about.view.step.evaluation.findings}
        drafts, faults = answer.read(reply.text)
        for draft in drafts[: about.wanted - len(ideas)]:
            prior = max(_PRIOR_FLOOR, round(_PRIOR - _PRIOR_STEP * len(ideas), 3))
            try:
                made = idea(
                    draft, about.program, about.root, proposer=self.name, prior=prior, tools=tools
                )
            except Unusable as why:
                faults.append(Fault(draft.said, f"`{one_line(draft.title, 60)}`: {why}"))
                continue
            if self._exact and made.arithmetic:
                rule = f"`{made.title}`: no edit may change the arithmetic"
                faults.append(Fault(draft.said, rule))
            elif made.key not in {earlier.key for earlier in ideas}:
                ideas.append(made)
        for fault in faults:
            self._note(about.view, fault.why)
        return faults

    def _failed(self, view: View) -> Step | None:
        """The latest program of its own that failed, and that it was not shown yet."""
        own = [s for s in view.evaluated if s.candidate.proposal.proposer == self.name]
        titles = self._titles | {step.candidate.proposal.title for step in own}
        for step in reversed(own):
            again = _again(step.candidate.proposal.title)
            whole = step.evaluation.duplicate_of is None
            if again and again not in titles and whole and not step.evaluation.verdict.passed:
                return step
        return None

    def _corrected(self, view: View, failed: Step, root: Program) -> list[Idea]:
        """What it makes of a program that failed, under a title that says so."""
        title = _again(failed.candidate.proposal.title)
        self._titles.add(title)  # it is shown once, whatever comes of it
        about = _Asked(view, parse_program(failed.candidate.text), root, 1)
        made = self._asked(about, prompt.failed(failed, exact=self._exact))
        same = failed.candidate.parent == view.step.candidate.number
        hypothesis = failed.candidate.proposal.hypothesis if same else None
        return [replace(one, title=title, hypothesis=hypothesis) for one in made]

    def _reply(self, view: View, question: str) -> Reply | None:
        """What the model says; None where nothing is to be had of it now."""
        request = self._request(view, question)
        while not self._off:
            try:
                outcome = self.llm.complete(replace(request, seconds=self._room.left() / _PART))
            except (MachineError, UsageError) as refused:
                if not self._answered:
                    raise
                self._end(view, refused.message)
                return None
            self.usage = self.usage.plus(outcome)
            if isinstance(outcome, Reply):
                self._answered, self._failures = True, 0
                return outcome
            self._note(view, outcome.message)
            if outcome.kind == "truncated" and request.max_tokens == self._max_tokens:
                shorter = f"{question}\n\n{prompt.text('shorten')}"
                request = replace(request, max_tokens=2 * self._max_tokens, user=shorter)
                continue
            self._failures += 1
            if outcome.kind == "spent":
                self._end(view, "no more is to be spent")
            elif self._failures == _MOST_FAILURES:
                self._end(view, f"{_MOST_FAILURES} failures in a row")
            elif not outcome.may_pass:
                return None
            else:
                wait = _BACKOFF * 4.0 ** (self._failures - 1)
                self._room.pause(min(wait, max(0.0, self._room.left() / _PART)))
        return None

    def _end(self, view: View, why: str) -> None:
        self._off = True
        self._note(view, f"{why}: the model is not asked again")

    def _request(self, view: View, question: str) -> Request:
        # A later visit of the same step shall not draw the same sample.
        seed = self._seed + 1000 * view.step.candidate.number + len(view.tried)
        return Request(
            prompt.system(),
            question,
            answer.SCHEMA_NAME,
            answer.schema(),
            self._temperature,
            seed,
            self._max_tokens,
        )

    def _note(self, view: View, what: str) -> None:
        self._notes.append(f"{self.name} on #{view.step.candidate.number}: {one_line(what, 300)}")


def _again(title: str) -> str:
    """The title of what is made of a program that failed; empty where it had its chances."""
    once, twice = _MARKS
    if title.endswith(twice):
        return ""
    return title.removesuffix(once) + twice if title.endswith(once) else title + once


def _repair(faults: Sequence[Fault]) -> str:
    """What could not be used and why, for the model to fix."""
    shown = []
    for fault in faults[:_MOST_QUOTED]:
        quoted = fault.said[:_LONGEST_QUOTE].encode(errors="replace").decode()
        shown.append(f"{quoted}\n\nFault: {one_line(fault.why, 500)}")
    return "\n\n".join(
        ["# What could not be used", *shown, "# Your task now", prompt.text("repair")]
    )

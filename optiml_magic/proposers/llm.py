"""A language model as a proposer: a step in words out, edits of its program back.

Deterministic as far as the model is; the journal keeps its answers, so a resumed run asks nothing
again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from optiml_magic.errors import UsageError
from optiml_magic.llms.base import LLM, LlmFailure, Reply, Request
from optiml_magic.model.idea import Idea, Ideas
from optiml_magic.model.view import View
from optiml_magic.proposers import answer, prompt
from optiml_magic.proposers.drafts import Unusable, idea, one_line
from optiml_magic.source.program import Program, parse_program

_LONGEST_PROGRAM = 100_000  # characters that are put into a prompt
_LONGEST_QUOTE = 20_000  # characters of an unusable reply that the model is shown again
_MOST_NOTES = 50
_MOST_FAILURES = 3  # in a row, then the model is not asked again: each may take minutes
_PRIOR, _PRIOR_STEP, _PRIOR_FLOOR = 0.6, 0.05, 0.1


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


class LlmProposer:
    """Asks for a few edits at a time; a reply that cannot be used gets one chance of repair.

    What went wrong stands in ``notes``, the latest last. An unusable reply, an endpoint that is
    down and a model with no more ideas all give no ideas: the search goes on without.
    """

    def __init__(
        self,
        llm: LLM,
        *,
        most: int = 4,
        temperature: float = 0.7,
        seed: int = 0,
        max_tokens: int = 8192,
        exact: bool = False,
    ) -> None:
        self.name = one_line(f"llm:{llm.name}", 80)
        self.usage = Usage()
        self.llm = llm
        self._most = most
        self._temperature = temperature
        self._seed = seed
        self._max_tokens = max_tokens
        self._exact = exact
        self._failures = 0
        self._notes: deque[str] = deque(maxlen=_MOST_NOTES)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should know, the latest last; older ones are forgotten."""
        return tuple(self._notes)

    def propose(self, view: View, count: int) -> Ideas:  # see above
        if self._failures >= _MOST_FAILURES or count < 1:
            return Ideas()
        text = view.step.candidate.text
        if len(text) > _LONGEST_PROGRAM:
            self._note(view, f"the program is longer than {_LONGEST_PROGRAM} characters")
            return Ideas()
        try:
            parent, root = parse_program(text), parse_program(view.root.candidate.text)
        except UsageError as unfit:
            self._note(view, f"the program cannot be parsed: {unfit.message}")
            return Ideas()
        wanted = min(count, self._most)
        request = self._request(view, wanted)
        ideas, repair = self._round(view, request, parent, root, wanted)
        if repair:
            question = f"{request.user}\n\n{repair}"
            again = self._request(view, wanted, question)
            ideas, repair = self._round(view, again, parent, root, wanted)
            if repair:
                self._note(view, "gave up after one repair")
        return Ideas(tuple(ideas))

    def _round(
        self, view: View, request: Request, parent: Program, root: Program, wanted: int
    ) -> tuple[list[Idea], str]:
        """One question: the ideas, or how to ask again where nothing could be used."""
        outcome = self.llm.complete(request)
        self.usage = self.usage.plus(outcome)
        if isinstance(outcome, LlmFailure):
            return [], self._failed(view, outcome)
        self._failures = 0
        tools = {finding.tool for finding in view.step.evaluation.findings}
        drafts, complaints = answer.read(outcome.text)
        ideas: list[Idea] = []
        for draft in drafts[:wanted]:
            prior = max(_PRIOR_FLOOR, round(_PRIOR - _PRIOR_STEP * len(ideas), 3))
            try:
                made = idea(draft, parent, root, proposer=self.name, prior=prior, tools=tools)
            except Unusable as why:
                complaints.append(f"`{one_line(draft.title, 60)}`: {why}")
                continue
            if self._exact and made.arithmetic:
                complaints.append(f"`{made.title}`: no edit may change the arithmetic")
            elif made.key not in {earlier.key for earlier in ideas}:
                ideas.append(made)
        for complaint in complaints:
            self._note(view, complaint)
        if not ideas and not complaints:
            self._note(view, "the model has no more ideas")
        unusable = complaints and not ideas
        return ideas, _repair(outcome.text, complaints) if unusable else ""

    def _failed(self, view: View, failure: LlmFailure) -> str:
        self._note(view, failure.message)
        if failure.kind == "truncated":
            return prompt.text("shorten")
        self._failures += 1
        if self._failures == _MOST_FAILURES:
            self._note(view, f"{_MOST_FAILURES} failures in a row: the model is not asked again")
        return ""

    def _request(self, view: View, wanted: int, question: str = "") -> Request:
        # A later visit of the same step shall not draw the same sample.
        seed = self._seed + 1000 * view.step.candidate.number + len(view.tried)
        return Request(
            prompt.system(),
            question or prompt.user(view, wanted, exact=self._exact, own=self.name),
            answer.SCHEMA_NAME,
            answer.schema(),
            self._temperature,
            seed,
            self._max_tokens,
        )

    def _note(self, view: View, what: str) -> None:
        self._notes.append(f"{self.name} on #{view.step.candidate.number}: {one_line(what, 300)}")


def _repair(reply: str, complaints: Sequence[str]) -> str:
    """The unusable reply and its faults, for the model to fix."""
    faults = "\n".join(f"- {one_line(complaint, 500)}" for complaint in complaints[:8])
    quoted = reply[:_LONGEST_QUOTE].encode(errors="replace").decode()
    return "\n\n".join(
        ["# Your last reply", quoted, "# What was wrong", prompt.text("repair"), faults]
    )

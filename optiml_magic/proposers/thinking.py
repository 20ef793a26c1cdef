"""A mixture of thoughts: a model writes programs by the best few strategies, side by side.

OptiML (arXiv 2602.12305) calls its first stage so and says no more of it than that it is a policy
over strategies of implementation; all of this is ours. What is right becomes a root of the search,
beside the straightforward program; what is wrong is repaired twice at most.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial

from pydantic import BaseModel, ConfigDict, ValidationError

from optiml_magic.llms.base import Reply, Request
from optiml_magic.llms.together import together
from optiml_magic.model.candidate import Proposal
from optiml_magic.model.evaluation import Step
from optiml_magic.model.thought import Attempt, Thought, Wanted, Wave
from optiml_magic.proposers import prompt
from optiml_magic.proposers.asking import Asker
from optiml_magic.proposers.drafts import Unusable, arithmetic_of, check, one_line, unfenced
from optiml_magic.proposers.replies import described, json_object, strict_schema
from optiml_magic.source.comments import commented
from optiml_magic.source.program import Program, parse_program
from optiml_magic.synthesis.thoughts import strategies, weighed

_TEMPERATURES = (0.3, 0.9)  # at which each thought is developed; ours
_PART = 2  # of the budget of a search is what the first attempts take at most; ours
_REPAIRS = 2
_LEAST_PRIOR = 0.1
_SCHEMA_NAME = "kernel_program"


class _Written(BaseModel):
    model_config = ConfigDict(extra="forbid")
    program: str
    rationale: str = ""
    arithmetic: list[str] | None = None


@cache
def schema() -> str:
    """The JSON schema of a reply."""
    return strict_schema(_Written)


class Thinker:
    """Writes what the search is to begin from, wave by wave.

    The first wave tries the ``most`` best thoughts at each temperature; each later one repairs what
    failed, where nothing else of its thought is right, and none does when it is ``late``. ``notes``
    has what a person should know.
    """

    def __init__(
        self,
        asker: Asker,
        wanted: Wanted,
        *,
        budget: int,
        most: int = 3,
        seed: int = 0,
        max_tokens: int = 8192,
        late: Callable[[], bool] = lambda: False,
    ) -> None:
        self.requests = 0
        self.name = asker.name
        self._asker = asker
        self._wanted = wanted
        self._thoughts = most
        self._first = max(1, min(most * len(_TEMPERATURES), budget // _PART))
        self._seed = seed
        self._max_tokens = max_tokens
        self._late = late
        self._notes: dict[str, None] = {wanted.note: None} if wanted.note else {}

    @property
    def notes(self) -> tuple[str, ...]:
        """What went wrong at the endpoint, each once."""
        return tuple(self._notes)

    def __call__(self, earlier: Sequence[Wave], steps: Sequence[Step]) -> Wave:
        """The next attempts, after those of ``earlier`` waves became ``steps``."""
        baseline = steps[0] if steps and steps[0].evaluation.verdict.passed else None
        if not earlier and self._wanted.first is not None:
            return self._wanted.first
        if not earlier:
            limit = (baseline.evaluation.roofline or "") if baseline else ""
            gate = weighed(strategies(), self._wanted.words, self._wanted.features, limit)
            pairs = [(t, one) for t in _TEMPERATURES for one in gate[: self._thoughts]]
            asked = [
                (Attempt(one.name, t, 0, None), self._question(one.name, baseline))
                for t, one in pairs[: self._first]
            ]
            return Wave(self._attempts(asked, gate, baseline), gate)
        if self._late():
            return Wave(())
        gate = earlier[0].gate
        latest = {(one.thought, one.temperature): one for one in earlier[-1].attempts}
        right = {one.thought for wave in earlier for one in wave.attempts if _right(one, steps)}
        asked = [
            (one, f"{self._question(one.thought, baseline)}\n\n{fault}")
            for one in latest.values()
            if one.thought not in right and one.repairs < _REPAIRS
            if (fault := _fault(one, steps))
        ]
        repaired = [(_again(one), question) for one, question in asked]
        return Wave(self._attempts(repaired, gate, baseline))

    def _attempts(
        self,
        asked: Sequence[tuple[Attempt, str]],
        gate: Sequence[Thought],
        baseline: Step | None,
    ) -> tuple[Attempt, ...]:
        """What the model answers, all questions asked at once; in their order."""
        if not asked:
            return ()
        by_name = {thought.name: thought for thought in gate}
        known = parse_program(baseline.candidate.text if baseline else self._wanted.interface)
        system = "\n".join(map(prompt.text, ("thought_system", "program", "thought_reply")))
        requests = [
            Request(
                system,
                question,
                _SCHEMA_NAME,
                schema(),
                attempt.temperature,
                self._seed + 100 * attempt.repairs + number,
                self._max_tokens,
            )
            for number, (attempt, question) in enumerate(asked)
        ]
        replies = together([partial(self._replied, request) for request in requests])
        return tuple(
            self._attempt(attempt, by_name[attempt.thought], *replied, known)
            for (attempt, _), replied in zip(asked, replies, strict=True)
        )

    def _replied(self, request: Request) -> tuple[Reply | None, tuple[str, ...]]:
        """What the model says, and what went wrong at the endpoint."""
        notes: list[str] = []
        return self._asker.reply(request, notes.append), tuple(notes)

    def _attempt(
        self,
        asked: Attempt,
        thought: Thought,
        reply: Reply | None,
        notes: Sequence[str],
        known: Program,
    ) -> Attempt:
        self.requests += 1
        self._notes |= {f"{self.name}: {one_line(note, 300)}": None for note in notes}
        empty = (asked.thought, asked.temperature, asked.repairs, None)
        if reply is None:
            return Attempt(*empty, notes[0] if notes else "the model is not asked any more")
        written = _read(reply.text)
        if isinstance(written, str):
            return Attempt(*empty, written, reply.text)
        program = _with_words(unfenced(written.program), self._wanted.words)
        try:
            check(program, known, known)
        except Unusable as why:
            return Attempt(*empty, str(why), program)
        again = f", repaired {'twice' if asked.repairs > 1 else 'once'}" if asked.repairs else ""
        proposal = Proposal(
            program,
            f"{thought.title} (temperature {asked.temperature:g}{again})",
            self.name,
            one_line(written.rationale, 1000),
            prior=max(_LEAST_PRIOR, round(thought.weight, 3)),
            arithmetic=arithmetic_of(written.arithmetic),
        )
        return Attempt(asked.thought, asked.temperature, asked.repairs, proposal)

    def _question(self, thought: str, baseline: Step | None) -> str:
        strategy = next(one for one in strategies() if one.name == thought)
        wanted = self._wanted
        given = ("The interface: it computes nothing", prompt.fenced(wanted.interface))
        if baseline is not None:
            given = ("A straightforward program", prompt.fenced(baseline.candidate.text))
        reference = prompt.fenced(wanted.reference, "python") if wanted.reference else ""
        return prompt.joined(
            ("What is wanted", wanted.words),
            ("The reference", reference),
            ("Sizes", wanted.sizes),
            given,
            ("The chip", prompt.chip(baseline) if baseline else ""),
            (f"The strategy: {strategy.title}", strategy.text),
            ("Your task", prompt.text("thought_ask")),
        )


def _read(reply: str) -> _Written | str:
    found = json_object(reply, "program")
    if isinstance(found, str):
        return found
    try:
        return _Written.model_validate(found)
    except ValidationError as unfit:
        return described(unfit)


def _with_words(program: str, words: str) -> str:
    """A program with the user's words as its comment."""
    comment = commented(words)
    return program if program.startswith(comment) else comment + program


def _again(attempt: Attempt) -> Attempt:
    return Attempt(attempt.thought, attempt.temperature, attempt.repairs + 1, None)


def _step(attempt: Attempt, steps: Sequence[Step]) -> Step | None:
    """What became of an attempt; None where it was not tried."""
    if attempt.proposal is None:
        return None
    digest = attempt.proposal.digest
    return next((step for step in steps if step.candidate.digest == digest), None)


def _right(attempt: Attempt, steps: Sequence[Step]) -> bool:
    step = _step(attempt, steps)
    return step is not None and step.evaluation.verdict.passed


def _fault(attempt: Attempt, steps: Sequence[Step]) -> str:
    """What is to be fixed, for the model; "" where there is nothing to go on from."""
    step = _step(attempt, steps)
    if step is not None:
        told, text = prompt.verdict(step), step.candidate.text
    else:
        told, text = attempt.said, attempt.text
    if not text:
        return ""
    return prompt.joined(
        ("Your last program", prompt.fenced(text)),
        ("What was wrong", told),
        ("Your task now", prompt.text("thought_repair")),
    )

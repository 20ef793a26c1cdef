"""Programs that a model writes by a named strategy, a thought, for a search to begin from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from optiml_magic.model.candidate import Proposal
from optiml_magic.model.evaluation import Step

Author = Literal["reference", "model"]
"""Who wrote a program that the user did not: what lowers references, or a language model."""
BASELINES: Mapping[Author | None, str] = MappingProxyType({
    None: "the input kernel",
    "reference": "the lowered reference",
    "model": "the first right program of the model",
})  # fmt: skip
"""What a search calls the program that all others are compared with, by its author."""


@dataclass(frozen=True)
class Thought:
    """A strategy as the gate weighs it; the weights of all add up to 1.

    ``because`` says what speaks for it and against it, as in ``+2 reduces along rows``.
    """

    name: str
    title: str
    weight: float
    because: tuple[str, ...] = ()


@dataclass(frozen=True)
class Attempt:
    """What a model wrote for a thought, and how often it was repaired before: ``repairs``.

    Where it is not a program that can be tried, ``proposal`` is None, ``said`` tells why, and
    ``text`` is what there is of it; "" where the endpoint gave nothing.
    """

    thought: str
    temperature: float
    repairs: int
    proposal: Proposal | None
    said: str = ""
    text: str = ""


@dataclass(frozen=True)
class Wave:
    """Attempts that were made side by side; the first wave has what the gate said of all thoughts.

    No attempts: there are no more.
    """

    attempts: tuple[Attempt, ...]
    gate: tuple[Thought, ...] = ()

    @property
    def proposals(self) -> tuple[Proposal, ...]:
        """Those that can be tried."""
        return tuple(one.proposal for one in self.attempts if one.proposal is not None)


@dataclass(frozen=True)
class Wanted:
    """What programs are to compute.

    Attributes:
        words: the user's; "" where there is a reference alone.
        reference: the source of the reference; "" where it is not known.
        sizes: in words, with the arrays that they give.
        features: of the traced reference, by the names of ``synthesis.thoughts.FEATURES``.
        interface: a program of the wanted names and types that computes nothing, for where there is
            no straightforward one.
        author: who wrote the straightforward program.
        note: what the user should know of it.
        first: the first attempts, where they were made before there was a baseline.
    """

    words: str = ""
    reference: str = ""
    sizes: str = ""
    features: tuple[str, ...] = ()
    interface: str = ""
    author: Author = "reference"
    note: str = ""
    first: Wave | None = None


@dataclass(frozen=True)
class Fate:
    """A thought and what became of its attempts: each with the step that it was, if it was one."""

    thought: Thought
    attempts: tuple[tuple[Attempt, Step | None], ...] = ()

    @property
    def best(self) -> Step | None:
        """The fastest of its programs that are right."""
        steps = [step for _, step in self.attempts if step is not None]
        right = [s for s in steps if s.evaluation.verdict.passed and s.evaluation.measurement]
        return min(right, key=_seconds, default=None)

    @property
    def outcome(self) -> str:
        """In a word: ``not asked for``, ``right``, or how its last attempt failed."""
        if not self.attempts:
            return "not asked for"
        if self.best is not None:
            return "right"
        attempt, step = self.attempts[-1]
        if step is not None:
            return str(step.evaluation.verdict.outcome)
        return "not tried" if attempt.proposal is not None else "no program"


def fates(waves: Sequence[Wave], steps: Sequence[Step]) -> tuple[Fate, ...]:
    """What became of each thought in a search: the fastest first, those without by weight."""
    roots = {step.candidate.digest: step for step in steps if step.candidate.parent is None}
    found = [
        Fate(thought, tuple(_tried(thought, waves, roots)))
        for thought in (waves[0].gate if waves else ())
    ]
    return tuple(sorted(found, key=_rank))


def _tried(
    thought: Thought, waves: Sequence[Wave], roots: dict[str, Step]
) -> Iterator[tuple[Attempt, Step | None]]:
    for wave in waves:
        for attempt in wave.attempts:
            if attempt.thought == thought.name:
                text = attempt.proposal
                yield attempt, roots.get(text.digest) if text is not None else None


def _rank(fate: Fate) -> tuple[float, float]:
    return (_seconds(fate.best) if fate.best is not None else float("inf"), -fate.thought.weight)


def _seconds(step: Step) -> float:
    measured = step.evaluation.measurement
    return measured.seconds if measured is not None else float("inf")

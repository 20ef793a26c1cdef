"""What of a search with a model is left out, and one search of each kind.

Searches have no experience; on the emulated device one set of inputs and few other ones, on a card
what any search there has.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

from optiml_magic.composition import proposers_of
from optiml_magic.journal.lines import read_whole
from optiml_magic.llms.choice import ModelChoice
from optiml_magic.llms.recorded import RecordedLLM, Topic, read
from optiml_magic.llms.spending import Spending
from optiml_magic.model.candidate import Proposal, text_digest
from optiml_magic.model.evaluation import Step
from optiml_magic.model.task import Task
from optiml_magic.optimize import optimize
from optiml_magic.proposers.asking import Asker, Room
from optiml_magic.proposers.brief import ALL, Contents
from optiml_magic.proposers.judge import Agreement
from optiml_magic.proposers.llm import LlmProposer
from optiml_magic.result import Result
from optiml_magic.settings import Settings, resolve

ROOT = Path(__file__).parents[2]
ANSWERS = ROOT / "tests" / "golden" / "answers"
DEVICE = "emulated:h200"
_SECONDS = 1e6  # a search ends by its evaluations
# Of other inputs a busy machine tries fewer in this time than an idle one, so that now and then a
# program is no duplicate there; all else is the same on any machine.
_TRIAL_SECONDS = 0.5


@dataclass(frozen=True)
class Variant:
    """Who proposes, and what the model is told."""

    rules: bool = True
    model: bool = True
    contents: Contents = ALL


VARIANTS: Mapping[str, Variant] = {
    "none": Variant(model=False),
    "model": Variant(rules=False),
    "both": Variant(),
    "no-findings": Variant(contents=Contents(findings=False)),
    "no-feedback": Variant(contents=Contents(feedback=False)),
    "raw-counters": Variant(contents=Contents(findings=False, counters=True)),
}


def answers_of(variant: str) -> Path:
    """The file of the answers that were written for the questions of a variant."""
    return ANSWERS / f"{variant}.jsonl.gz"


def recorded(variant: str, **more: Any) -> RecordedLLM:
    """The model that gives them; of none where nothing is recorded."""
    path = answers_of(variant)
    return RecordedLLM(read(path) if path.exists() else [], **more)


def slug(task: str, topic: Topic, before: int) -> str:
    """A name for the question of a topic that came so often before."""
    words = re.sub(r"[^a-z0-9]+", "-", topic.title.lower()).strip("-")[:60]
    digest = text_digest(topic.program)[:8]
    return "-".join(filter(None, (task, digest, topic.role, words, str(before + 1))))


@dataclass(frozen=True)
class Searched:
    """A search, the model that was asked, and how its order of ideas compares with the gains."""

    result: Result
    llm: RecordedLLM
    agreement: Agreement

    @property
    def steps(self) -> tuple[Step, ...]:
        return tuple(self.result.trajectory.steps)

    @property
    def curve(self) -> list[float]:
        """How many times faster than the input kernel the best is, after each evaluation.

        A duplicate is none: it takes nothing of the budget.
        """
        times = [seconds_of(s) for s in self.steps if s.evaluation.duplicate_of is None]
        return [times[0] / min(times[: count + 1]) for count in range(len(times))]

    @property
    def given(self) -> list[tuple[int, Proposal]]:
        """What could be used of what the model said, each with the candidate that it is for."""
        assert self.result.summary.journal is not None
        lines, _ = read_whole(self.result.summary.journal)
        expansions = (line.expansion for line in lines if line.expansion is not None)
        paid = {
            (said.candidate, one.key): one.proposal
            for said in expansions
            for one in said.ideas
            if one.paid
        }
        return [(number, proposal) for (number, _), proposal in paid.items()]

    @property
    def tried(self) -> list[Proposal]:
        """Those of them that were evaluated."""
        run = {step.candidate.text for step in self.steps}
        return [proposal for _, proposal in self.given if proposal.text in run]


def seconds_of(step: Step) -> float:
    """Of a program that is right; infinite for others."""
    measured = step.evaluation.measurement if step.evaluation.verdict.passed else None
    return measured.seconds if measured is not None else float("inf")


def settings_of(
    variant: Variant,
    budget: int,
    home: str = "",
    trial_seconds: float = _TRIAL_SECONDS,
    device: str = DEVICE,
) -> Settings:
    """Those of a search; ``home`` is a folder for its journal and what is compiled.

    ``trial_seconds`` are those for other inputs: next to none leaves the fewest.
    """
    given = {"device": device, "budget": budget, "seconds": _SECONDS, "experience": "none"}
    given |= {"home": home or None}
    if device == DEVICE:
        given |= {"verify_seeds": 1, "trial_seconds": trial_seconds}
    return resolve({**given, "llm": "recorded" if variant.model else "none"})


def searched(
    task: Task,
    variant: Variant,
    llm: RecordedLLM,
    *,
    budget: int,
    home: str = "",
    trial_seconds: float = _TRIAL_SECONDS,
    device: str = DEVICE,
) -> Searched:
    """One search, with ``settings_of`` the last four."""
    asked: list[LlmProposer] = []

    @contextmanager
    def opened(
        chosen: ModelChoice,
        settings: Settings,
        left: Callable[[], float],
        reference: str,
        _spending: Spending,
    ) -> Iterator[LlmProposer | None]:
        asker = Asker(llm, Room(settings.budget, left))
        asked.append(LlmProposer(asker, contents=replace(variant.contents, reference=reference)))
        yield asked[0] if chosen.name else None

    def members(*given: Any) -> tuple[Any, ...]:
        found = proposers_of(*given)
        return found if variant.rules else found[1:]

    with (
        mock.patch("optiml_magic.optimize.language_model", opened),
        mock.patch("optiml_magic.optimize.proposers_of", members),
    ):
        result = optimize(task, settings_of(variant, budget, home, trial_seconds, device))
    return Searched(result, llm, asked[0].agreement(result.trajectory.steps))

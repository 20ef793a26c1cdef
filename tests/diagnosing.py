"""Both kernels of a pair evaluated in one go on one device."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self, get_args

from optiml_magic.evaluation import Evaluator
from optiml_magic.findings import Subject
from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.evaluation import Evaluation
from optiml_magic.model.finding import Finding, RooflineClass
from optiml_magic.model.measurement import Bound
from optiml_magic.optimize import prepared
from optiml_magic.problem import Problem
from optiml_magic.session import Session, session
from optiml_magic.settings import resolve
from optiml_magic.testing.findings import Pair
from optiml_magic.testing.findings.tasks import task


class Diagnoses:
    """Evaluations of pairs; an emulated chip stays open for the next pair.

    A card does not: what ncu wraps is given its cases at the start.
    """

    def __init__(self, family: str) -> None:
        self._family = family
        self._stack = ExitStack()
        self._open: dict[str, Session] = {}
        self.subjects: list[Subject] = []  # of the last pair

    def __enter__(self) -> Self:
        self._home = Path(self._stack.enter_context(TemporaryDirectory()))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def of(self, pair: Pair) -> tuple[Evaluation, Evaluation | None]:
        """The faulty kernel, and the sound one where this device can tell."""
        device = "cuda" if self._family == "cuda" else f"emulated:{pair.chip}"
        settings = resolve({"device": device, "verify_seeds": 1, "home": self._home})
        problem = prepared(task(pair, self._family), settings)
        if self._family == "cuda":
            rules = pair.name == "ncu_rules"  # which take ncu seconds, and no other tool reads them
            with session(settings, task=problem.task, counted=True, machine=rules) as members:
                members.begin(problem)
                return self._evaluated(pair, problem, members)
        if device not in self._open:
            members = self._stack.enter_context(session(settings, machine=True))
            self._open[device] = members
        return self._evaluated(pair, problem, self._open[device])

    def _evaluated(
        self, pair: Pair, problem: Problem, members: Session
    ) -> tuple[Evaluation, Evaluation | None]:
        texts = [pair.faulty, *([pair.sound] if self._family in pair.without else [])]
        self.subjects.clear()
        tools = replace(members.tools, findings=(*members.tools.findings, Recorder(self.subjects)))
        found = Evaluator(problem, tools)(
            [
                Candidate(number, 0 if number else None, Proposal(text, "", "test"))
                for number, text in enumerate(texts)
            ]
        )
        for evaluation in found:
            assert evaluation.verdict.passed, evaluation.verdict
        return found[0], found[1] if len(found) > 1 else None


class Recorder:
    """A tool that finds nothing, and keeps what it was shown."""

    name = "recorder"
    classes: frozenset[RooflineClass] = frozenset(get_args(RooflineClass))
    metrics: tuple[str, ...] = ()

    def __init__(self, kept: list[Subject]) -> None:
        self._kept = kept

    def diagnose(self, subject: Subject) -> Iterator[Finding]:
        self._kept.append(subject)
        return iter(())


def as_on_a_card(subject: Subject) -> Subject:
    """What is left of emulated evidence where it is ncu that counts."""
    measured = subject.measured
    kernels = tuple(
        replace(
            counts,
            source="ncu",
            memory=tuple(replace(site, contention=0) for site in counts.memory),
            blocks=(),
            read_sectors_unique=None,
            write_sectors_unique=None,
            read_sectors_per_block=None,
            memory_warps=None,
            dram_read_sectors=None,
        )
        for counts in measured.kernels
    )
    counted = ("emulated", "modelled", "sass")
    metrics = tuple(
        replace(m, source="ncu") if m.source in counted or m.name == "dram__bytes.sum" else m
        for m in measured.metrics
    )
    timed = replace(
        measured,
        source="events",
        bounds=(Bound("measured", measured.seconds),),
        kernels=kernels,
        metrics=metrics,
    )
    return replace(subject, measured=timed)


def lines(evaluation: Evaluation, tool: str) -> list[int]:
    """The lines that a tool named."""
    return [finding.line for finding in evaluation.findings if finding.tool == tool]

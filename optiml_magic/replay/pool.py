"""Pools: every program that some runs of one task evaluated, over which any policy can search.

An idea is there for a structure where a run tried it on that structure, whatever its numbers were;
it becomes the program that the run made of it, of the same numbers if there is one. A point of a
space is there where a run evaluated it. So a policy sees less than it would in a run of its own,
and every policy sees the same; no time is spent, none is measured.
"""

from __future__ import annotations

import gzip
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path

from optiml_magic.errors import SourceError, UsageError
from optiml_magic.journal import Noted, RunHeader
from optiml_magic.model.candidate import Candidate, Proposal, text_digest
from optiml_magic.model.codec import from_json, to_json
from optiml_magic.model.evaluation import Evaluation, Step, Trajectory
from optiml_magic.model.idea import Idea, Ideas
from optiml_magic.model.space import Point, Space
from optiml_magic.model.suggestion import HAND
from optiml_magic.model.view import View
from optiml_magic.proposers.spaces import space_of
from optiml_magic.replay.recording import Recording
from optiml_magic.search.loop import Batches, Budget, at_once, run
from optiml_magic.search.policies import POLICIES
from optiml_magic.search.search import TreeSearch
from optiml_magic.search.sources import also
from optiml_magic.source.program import parse_program

_SAME = (
    "task", "program", "inputs_digest", "reference_digest", "device", "compiler", "exact",
    "options_digest", "objective",
)  # fmt: skip


@dataclass(frozen=True)
class Program:
    """One that was evaluated. ``point`` has the values of its tuned names."""

    text: str
    point: Point
    evaluation: Evaluation

    @property
    def seconds(self) -> float:
        """Of a run; infinite where it failed."""
        measured = self.evaluation.measurement
        return measured.seconds if measured is not None else float("inf")

    @cached_property
    def structure(self) -> str:
        """The digest of its text without the values of its tuned names."""
        return structure(self.text)


@dataclass(frozen=True)
class Tried:
    """An idea for the program of digest ``parent``, which became that of digest ``child``."""

    parent: str
    child: str
    idea: Noted


@dataclass(frozen=True)
class Pool:
    """Programs by the order in which runs evaluated them, the input kernel first, and ideas.

    ``roots`` are the programs that runs began from beside the input kernel.
    """

    header: RunHeader  # of the first run
    programs: tuple[Program, ...]
    tried: tuple[Tried, ...]
    roots: tuple[Proposal, ...] = ()

    @classmethod
    def of(cls, recordings: Sequence[Recording], *, slim: bool = False) -> Pool:
        """The pool of runs of one task; UsageError where they are not.

        A ``slim`` one has times and rewards, and neither counters nor findings.
        """
        header = recordings[0].header
        for other in recordings[1:]:
            differing = [n for n in _SAME if getattr(other.header, n) != getattr(header, n)]
            if differing:
                raise UsageError(
                    f"{other.header.run} and {header.run} are not runs of one task: "
                    f"{', '.join(differing)} differ",
                    fix="name runs of the same kernel, inputs and device",
                )
        programs: dict[str, Program] = {}
        for recording in recordings:
            for step, _ in recording.steps():
                evaluation = bare(step.evaluation) if slim else step.evaluation
                found = Program(step.candidate.text, point_of(step.candidate.text), evaluation)
                programs.setdefault(step.candidate.digest, found)
        tried = {
            (one.parent, one.child, one.idea.key): one
            for recording in recordings
            for one in _tried(recording)
            if one.child in programs
        }
        roots = {
            step.candidate.digest: step.candidate.proposal
            for recording in recordings
            for step, _ in recording.steps()
            if step.candidate.parent is None and step.candidate.number
        }
        return cls(header, tuple(programs.values()), tuple(tried.values()), tuple(roots.values()))

    @classmethod
    def read(cls, path: Path) -> Pool:
        """What ``write`` wrote; UsageError for anything else."""
        try:
            return from_json(cls, gzip.decompress(path.read_bytes()))
        except (OSError, ValueError, EOFError) as cause:
            raise UsageError(f"{path} is not a pool", fix="name a file of Pool.write") from cause

    def write(self, path: Path) -> None:
        """Into one file of compressed JSON, the same for the same pool."""
        path.write_bytes(gzip.compress(to_json(Pool, self).encode(), mtime=0))

    @property
    def root(self) -> Program:
        """The input kernel."""
        return self.programs[0]

    @property
    def best(self) -> Program:
        """The fastest that passed; the input kernel where none did."""
        return min(self.programs, key=lambda program: program.seconds)

    def search(self, policy: str, *, budget: int, seed: int = 0, batch: int = 1) -> Trajectory:
        """How a policy would have gone over it."""
        root = Proposal(self.root.text, "the input kernel", "user", prior=1.0)
        made = POLICIES[policy]()
        tree = TreeSearch(
            root, self.expand, self.spaces, roots=also(*self.roots), policy=made, seed=seed
        )
        return run(tree, at_once(self.evaluator()), Budget(budget), batches=Batches(batch))

    def expand(self, view: View, count: int) -> Ideas:
        """The ideas that were tried on the structure of a step, best prior first."""
        del count
        at = view.step.candidate.digest
        here: dict[str, Tried] = {}
        for one in self._ideas.get(structure(view.step.candidate.text), ()):
            if one.idea.key not in here or one.parent == at:
                here[one.idea.key] = one
        ideas = [self._idea(one) for one in here.values()]
        return Ideas(tuple(sorted(ideas, key=lambda idea: -idea.prior)))

    def spaces(self, step: Step) -> Space | None:
        """The open numbers of a step's program: only points that were evaluated can run."""
        space = space_of(lambda _: None, step)
        if space is None:
            return None

        def promise(point: Point) -> float:
            likely = space.promise(point)
            return likely if likely > 0 and space.text(point) in self._by_text else 0.0

        return replace(space, promise=promise)

    def evaluator(self) -> Callable[[Sequence[Candidate]], list[Evaluation]]:
        """An evaluation that looks up; duplicates are those of its own calls."""
        seen: dict[str, int] = {}

        def evaluate(candidates: Sequence[Candidate]) -> list[Evaluation]:
            return [self._looked_up(candidate, seen) for candidate in candidates]

        return evaluate

    def _looked_up(self, candidate: Candidate, seen: dict[str, int]) -> Evaluation:
        found, number = self._by_text[candidate.text].evaluation, candidate.number
        first = seen.setdefault(found.identity, number) if found.identity else number
        # What became of a promise was told against another parent.
        return replace(
            found, candidate=number, duplicate_of=first if first != number else None, test=None
        )

    def _idea(self, one: Tried) -> Idea:
        text = self._by_digest[one.child].text
        told = Idea.of(replace(one.idea.proposal, text=text))
        return replace(told, key=one.idea.key, starts=one.idea.starts, paid=one.idea.paid)

    @cached_property
    def _by_text(self) -> dict[str, Program]:
        return {program.text: program for program in self.programs}

    @cached_property
    def _by_digest(self) -> dict[str, Program]:
        return {text_digest(program.text): program for program in self.programs}

    @cached_property
    def _ideas(self) -> dict[str, list[Tried]]:
        """By the structure that they are edits of."""
        found: dict[str, list[Tried]] = defaultdict(list)
        for one in self.tried:
            if one.parent in self._by_digest:
                found[self._by_digest[one.parent].structure].append(one)
        return found


@lru_cache(maxsize=4096)
def structure(text: str) -> str:
    """The digest of a program's text without the values of its tuned names."""
    try:
        tunes = parse_program(text).tunes
    except SourceError:
        return text_digest(text)
    # No values stand in their place: those that some program has need not be legal together.
    for tune in sorted(tunes, key=lambda tune: -tune.value_start):
        missing = " = " if tune.value is None else ""
        text = text[: tune.value_start] + missing + text[tune.value_end :]
    return text_digest(text)


def point_of(text: str) -> Point:
    """The values of a program's tuned names; none where it cannot be read."""
    try:
        return parse_program(text).values
    except SourceError:
        return {}


def _tried(recording: Recording) -> Iterator[Tried]:
    """Every idea of a run that became a text, those that another had made before among them.

    What was written by hand is one of them.
    """
    digests = {step.candidate.number: step.candidate.digest for step, _ in recording.steps()}
    for step, _ in recording.steps():
        candidate = step.candidate
        if candidate.proposal.proposer == HAND and candidate.parent is not None:
            noted = Noted(Idea.of(candidate.proposal).key, candidate.proposal)
            yield Tried(digests[candidate.parent], candidate.digest, _textless(noted))
    ideas: dict[tuple[int, str], Noted] = {}
    for line in recording.lines:
        if line.expansion is not None:
            parent = line.expansion.candidate
            for idea in line.expansion.ideas:
                ideas.setdefault((parent, idea.key), _textless(idea))
                if idea.proposal.text:
                    child = text_digest(idea.proposal.text)
                    yield Tried(digests[parent], child, _textless(idea))
        elif line.made is not None and isinstance(line.made.made, str):
            idea = ideas[line.made.candidate, line.made.key]
            yield Tried(digests[line.made.candidate], text_digest(line.made.made), idea)


def _textless(idea: Noted) -> Noted:
    return replace(idea, proposal=replace(idea.proposal, text=""))


def bare(evaluation: Evaluation) -> Evaluation:
    """One with its times and its reward, without counters, findings and what verified it."""
    measured = evaluation.measurement
    return replace(
        evaluation,
        measurement=replace(measured, metrics=(), conditions=None) if measured else None,
        verdict=replace(evaluation.verdict, checks=(), hazards=()),
        resources=(),
        standing=None,
        findings=(),
        test=None,
    )

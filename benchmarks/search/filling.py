"""Many searches of one task at once, each program evaluated once for all of them.

The searches are real ones: rules and their findings, spaces and the tuner as in ``optimize``. What
one of them asks for and another had is looked up, so that a hundred cost little more than what is
new in each. What was evaluated is in a file before any search is told.
"""

from __future__ import annotations

import gzip
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from benchmarks.search.record import Heard, Offered, Record
from benchmarks.search.variants import Variant
from optiml_magic.errors import UsageError
from optiml_magic.evaluation import Evaluator
from optiml_magic.experience import shipped
from optiml_magic.experience.kinds import kind_of
from optiml_magic.journal import Noted, RunHeader
from optiml_magic.model.candidate import Candidate, Proposal, text_digest
from optiml_magic.model.codec import from_json, to_json
from optiml_magic.model.evaluation import Evaluation, Step
from optiml_magic.model.experience import NOTHING_KNOWN, Known, known
from optiml_magic.model.facts import Facts
from optiml_magic.model.idea import Idea, Ideas
from optiml_magic.model.refusal import Refusal
from optiml_magic.model.space import Point, Space
from optiml_magic.model.task import Task
from optiml_magic.model.view import View
from optiml_magic.optimize import prepared
from optiml_magic.proposers.mixture import mixed
from optiml_magic.proposers.rules import RuleProposer
from optiml_magic.proposers.spaces import space_of
from optiml_magic.replay.pool import Pool, Program, Tried, bare, point_of
from optiml_magic.search.search import TreeSearch
from optiml_magic.session import header_of, session
from optiml_magic.settings import Settings


@dataclass
class Run:
    """A search that can go on: as many evaluations as a budget says, without what came before."""

    variant: Variant
    tree: TreeSearch
    texts: dict[int, str] = field(default_factory=dict)  # by its own numbers
    first: dict[str, int] = field(default_factory=dict)  # its own number, by identity
    evaluated: int = 0
    repeated: int = 0
    over: bool = False


class Filling:
    """The evaluations of one task, kept in ``raw``, and what the rules said of each program."""

    def __init__(
        self, evaluator: Evaluator, header: RunHeader, raw: Path, told: Callable[[View], Known]
    ) -> None:
        self._evaluator, self._header, self._raw = evaluator, header, raw
        self._told = told
        self._steps: dict[str, Step] = {}  # by text; numbers are those of this class
        self._ideas: dict[tuple[str, tuple[str, ...] | None], Ideas] = {}
        self._made: dict[tuple[str, str, bool], str | Refusal] = {}
        self._noted: dict[tuple[str, str, bool], Noted] = {}
        self._spaces: dict[str, Space | None] = {}
        for line in raw.read_text().splitlines() if raw.exists() else ():
            step = from_json(Step, line)
            evaluator.remember(step.candidate, step.evaluation)
            self._steps[step.candidate.text] = step

    def run(self, variant: Variant, seed: int) -> Run:
        """A search that nothing was asked of yet."""
        root = Proposal(self._header.program, "the input kernel", "user", prior=1.0)
        expand = partial(self.expand, known=variant.experience)
        return Run(variant, variant.tree(root, expand, self.space, seed))

    def go_on(self, run: Run, budget: int, late: Callable[[], bool]) -> None:
        """Until so many were evaluated, or came before, or nothing is left, or it is late."""
        while not run.over and max(run.evaluated, run.repeated) < budget and not late():
            asked = run.tree.ask(1)
            run.over = not asked
            for candidate in asked:
                run.texts[candidate.number] = candidate.text
                told = run.variant.told(self._seen_by(run, candidate))
                run.evaluated += told.duplicate_of is None
                run.repeated += told.duplicate_of is not None
                run.tree.tell([told])
                run.over = candidate.number == 0 and not told.verdict.passed

    def expand(self, view: View, count: int, *, known: bool) -> Ideas:
        """What the rules say of a program, asked once for all searches."""
        text = view.step.candidate.text
        path = tuple(step.candidate.proposal.move for step in view.path[1:]) if known else None
        if (text, path) not in self._ideas:
            step = self._steps[text]
            asked = replace(view, step=step, find_facts=partial(self._facts, step.candidate))
            told = self._told if known else (lambda _: NOTHING_KNOWN)
            answer = mixed([RuleProposer()], asked, count, find_known=told)
            ideas = tuple(self._kept(text, idea, known) for idea in answer.ideas)
            self._ideas[text, path] = replace(answer, ideas=ideas)
        return self._ideas[text, path]

    def space(self, step: Step) -> Space | None:
        """The open numbers of a program; what arithmetic says of a point is worked out once."""
        text = step.candidate.text
        if text not in self._spaces:
            self._spaces[text] = self._space_of(text)
        return self._spaces[text]

    def record(self, command: str, ended: str) -> Record:
        """All of it so far."""
        programs = tuple(
            Program(text, point_of(text), bare(replace(step.evaluation, duplicate_of=None)))
            for text, step in self._steps.items()
        )
        plain, informed = self._heard(known=False), self._heard(known=True)
        pool = Pool(self._header, programs, plain.tried)
        return Record(pool, plain, informed, command, time.strftime("%Y-%m-%d"), ended)

    def __len__(self) -> int:
        return len(self._steps)

    def _seen_by(self, run: Run, candidate: Candidate) -> Evaluation:
        """An evaluation in the numbers of one search, whose own programs alone can come again."""
        found = self._evaluated(run, candidate).evaluation
        number = candidate.number
        first = run.first.setdefault(found.identity, number) if found.identity else number
        return replace(
            found, candidate=number, duplicate_of=first if first != number else None, test=None
        )

    def _evaluated(self, run: Run, candidate: Candidate) -> Step:
        text = candidate.text
        if text not in self._steps:
            parent = run.texts.get(candidate.parent) if candidate.parent is not None else None
            number = self._steps[parent].candidate.number if parent is not None else None
            mine = replace(candidate, number=len(self._steps), parent=number)
            (evaluation,) = self._evaluator([mine])
            step = Step(mine, evaluation)
            with self._raw.open("a") as file:
                file.write(to_json(Step, step) + "\n")
            self._steps[text] = step
        return self._steps[text]

    def _kept(self, parent: str, idea: Idea, known: bool) -> Idea:
        """An idea whose text is made once, and noted."""
        place = (parent, idea.key, known)
        self._noted.setdefault(
            place, Noted(idea.key, idea.proposal(""), tuple(map(dict, idea.starts)), idea.paid)
        )

        def made() -> str | Refusal:
            if place not in self._made:
                self._made[place] = idea.make()
            return self._made[place]

        return replace(idea, make=made)

    def _facts(self, candidate: Candidate) -> Facts | None:
        return self._evaluator.facts(candidate)

    def _space_of(self, text: str) -> Space | None:
        space = space_of(self._facts, self._steps[text])
        if space is None:
            return None
        promises: dict[tuple[int, ...], float] = {}

        def promise(point: Point) -> float:
            key = tuple(point.values())
            if key not in promises:
                promises[key] = space.promise(point)
            return promises[key]

        return replace(space, promise=promise)

    def _heard(self, *, known: bool) -> Heard:
        tried, offered = [], []
        for (parent, key, informed), noted in self._noted.items():
            if informed is not known:
                continue
            made = self._made.get((parent, key, known))
            at = text_digest(parent)
            if isinstance(made, str) and made in self._steps:
                tried.append(Tried(at, text_digest(made), noted))
            elif not isinstance(made, Refusal):
                offered.append(Offered(at, key, noted.proposal.proposer, noted.proposal.prior))
        asked = dict.fromkeys(t for t, path in self._ideas if (path is not None) is known)
        return Heard(tuple(tried), tuple(offered), tuple(map(text_digest, asked)))


@contextmanager
def filling(task: Task, settings: Settings, raw: Path) -> Iterator[Filling]:
    """The device, the compiler and the evaluator of one task, for as many searches as time allows.

    Raises UsageError where the evaluations in ``raw`` are of another task, device or release.
    """
    header_file = raw.with_suffix(".header.json")
    with _unpacked(raw), session(settings, task=task, counted=True) as members:
        problem = prepared(task, settings)
        members.begin(problem)
        header = header_of(problem, members, settings, [RuleProposer()], batch=1)
        if raw.exists():
            before = from_json(RunHeader, header_file.read_text())
            if differing := before.differences(header):
                raise UsageError(
                    f"{raw} has other evaluations: {', '.join(differing)} differ",
                    fix="name another folder",
                )
        header_file.write_text(to_json(RunHeader, header))
        evaluator = Evaluator(problem, members.tools)
        others, _ = shipped.read(settings.shipped)
        source, family = members.tools.profiler.source, members.tools.chip.family

        found: list[Known] = []

        def told(view: View) -> Known:
            if not found:
                kind = kind_of(problem.program, evaluator.facts(view.root.candidate), family)
                found.append(known(kind, source, (), others))
            return found[0]

        yield Filling(evaluator, header, raw, told)


@contextmanager
def _unpacked(raw: Path) -> Iterator[None]:
    """The file as text while it grows, compressed before and afterwards."""
    packed = raw.with_suffix(".jsonl.gz")
    if packed.exists() and not raw.exists():
        raw.write_bytes(gzip.decompress(packed.read_bytes()))
    yield
    if raw.exists():
        packed.write_bytes(gzip.compress(raw.read_bytes(), mtime=0))
        raw.unlink()


def rounds(
    filling: Filling,
    variants: Sequence[Sequence[Variant]],
    seeds: int,
    budgets: Sequence[int],
    late: Callable[[], bool],
) -> str:
    """Every variant with every seed, the first group ahead by a budget; what was left undone."""
    runs = [[filling.run(v, seed) for seed in range(seeds) for v in group] for group in variants]
    order = sorted(
        ((at + behind, behind) for at in range(len(budgets)) for behind in range(len(runs))),
    )
    for place, behind in order:
        budget = budgets[place - behind]
        for run in runs[behind]:
            filling.go_on(run, budget, late)
            if late():
                return f"{run.variant.name} without {run.variant.without or 'nothing'}, {budget}"
    return ""

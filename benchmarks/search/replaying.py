"""Searches over a record: nothing runs, and what it lacks is counted."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from benchmarks.search.record import Heard, Offered, Record
from benchmarks.search.variants import Variant
from optiml_magic.model.candidate import Proposal, text_digest
from optiml_magic.model.evaluation import Step
from optiml_magic.model.idea import Idea, Ideas
from optiml_magic.model.refusal import Refusal
from optiml_magic.model.space import TUNER, Point, Space
from optiml_magic.model.view import View
from optiml_magic.proposers.spaces import space_of
from optiml_magic.replay.pool import Pool, structure
from optiml_magic.search.search import TreeSearch

_LOOKED_AT = 4096  # points of a space, for one that nobody evaluated
_FAILED = float("inf")
Key = tuple[int, ...]
Lacking = Callable[[], None]


@dataclass(frozen=True)
class Replay:
    """One search over a record.

    ``seconds`` are those of each program that was evaluated, infinite where it failed, ``edits``
    how many edits made each, numbers apart. ``lacks`` are the evaluations that there had been each
    time when it asked for what nobody evaluated. One that found nothing more to do ended early.
    """

    seconds: tuple[float, ...]
    edits: tuple[int, ...]
    lacks: tuple[int, ...]

    def at(self, budget: int) -> float:
        """Seconds of the best program after so many evaluations."""
        return min(self.seconds[:budget])

    def least(self, budget: int) -> float:
        """The same if all that was lacking had cost an evaluation each and brought nothing."""
        left = (n for n in range(budget, 0, -1) if n + self.lacking(n) <= budget)
        return self.at(next(left, 1))

    def lacking(self, budget: int) -> int:
        """How much was lacking within so many evaluations."""
        return sum(at < budget for at in self.lacks)

    def until(self, seconds: float, budget: int) -> int:
        """Evaluations until a program was as fast; the budget where none was."""
        near = (at for at, found in enumerate(self.seconds[:budget], 1) if found <= seconds)
        return next(near, budget)


class Replaying:
    """A record as searches see it: ideas and points that became programs of it, and its gaps."""

    def __init__(self, record: Record) -> None:
        self.pool = record.pool
        self._plain = _Side.of(record.pool, record.plain)
        self._known = _Side.of(record.pool, record.known)
        self._points: dict[str, set[Key]] = defaultdict(set)
        for program in record.pool.programs:
            self._points[program.structure].add(tuple(program.point.values()))
        self._spaces: dict[str, Space | None] = {}
        self._more: dict[str, bool] = {}

    def search(self, variant: Variant, budget: int, seed: int) -> Replay:
        """How one search would have gone."""
        side = self._known if variant.experience else self._plain
        lacks: list[int] = []
        seconds: list[float] = []
        edits: list[int] = []

        def lacking() -> None:
            lacks.append(len(seconds))

        root = Proposal(self.pool.root.text, "the input kernel", "user", prior=1.0)
        tree = variant.tree(root, partial(side.expand, lacking), self.space, seed)
        evaluate = self.pool.evaluator()
        made: dict[int, int] = {}  # by how many edits, by the number of the candidate
        ended: set[int] = set()  # nodes whose points came to an end
        repeated = 0
        while max(len(seconds), repeated) < budget and (asked := tree.ask(1)):
            (told,) = (variant.told(evaluation) for evaluation in evaluate(asked))
            tree.tell([told])
            ((number, parent, proposal),) = ((c.number, c.parent, c.proposal) for c in asked)
            edit = proposal.proposer != TUNER and parent is not None
            made[number] = edit + (made[parent] if parent is not None else 0)
            if told.duplicate_of is None:
                measured = told.measurement if told.verdict.passed else None
                seconds.append(measured.seconds if measured else _FAILED)
                edits.append(made[number])
            else:
                repeated += 1
            for step in _run_out(tree, ended):
                if self._has_more(step):
                    lacking()
        return Replay(tuple(seconds), tuple(edits), tuple(lacks))

    def space(self, step: Step) -> Space | None:
        """The open numbers of a program, of which only what was evaluated can run."""
        text = step.candidate.text
        if text not in self._spaces:
            space = space_of(lambda _: None, step)
            points = self._points[structure(text)]
            closed = replace(space, promise=_Closed(space, points)) if space else None
            self._spaces[text] = closed
        return self._spaces[text]

    def informed(self) -> bool:
        """Whether anybody searched with experience."""
        return self.pool.root.structure in self._known.expanded

    def _has_more(self, step: Step) -> bool:
        """Whether a structure has points that could run and that nobody evaluated."""
        here = structure(step.candidate.text)
        if here not in self._more:
            space = space_of(lambda _: None, step)
            assert space is not None
            every = itertools.islice(itertools.product(*space.values.values()), _LOOKED_AT)
            points = ({**space.present, **dict(zip(space.values, p, strict=True))} for p in every)
            known = self._points[here]
            self._more[here] = any(
                tuple(point.values()) not in known and space.promise(point) > 0 for point in points
            )
        return self._more[here]


@dataclass(frozen=True)
class _Side:
    """What the rules said without experience, or with it."""

    pool: Pool
    expanded: frozenset[str]  # structures
    offered: dict[str, tuple[Offered, ...]]  # by structure

    @classmethod
    def of(cls, pool: Pool, heard: Heard) -> _Side:
        structures = {text_digest(one.text): one.structure for one in pool.programs}
        offered: dict[str, tuple[Offered, ...]] = defaultdict(tuple)
        for one in heard.offered:
            if one.parent in structures:
                offered[structures[one.parent]] += (one,)
        expanded = frozenset(structures[at] for at in heard.expanded if at in structures)
        return cls(replace(pool, tried=heard.tried), expanded, offered)

    def expand(self, lacking: Lacking, view: View, count: int) -> Ideas:
        """What is known of it; an idea of which nobody knows what it becomes is refused."""
        here = structure(view.step.candidate.text)
        if here not in self.expanded:
            lacking()
            return Ideas()
        known = {idea.key: idea for idea in self.pool.expand(view, count).ideas}
        for one in self.offered.get(here, ()):
            known.setdefault(one.key, _unknown(one, lacking))
        return Ideas(tuple(sorted(known.values(), key=lambda idea: -idea.prior)))


def _unknown(offered: Offered, lacking: Lacking) -> Idea:
    def made() -> Refusal:
        lacking()
        return Refusal(offered.proposer, "nobody evaluated what it becomes")

    return Idea(offered.key, offered.proposer, made, offered.key, prior=offered.prior)


class _Closed:
    """The promise of a point, once for all searches; none where nobody evaluated it."""

    def __init__(self, space: Space, points: set[Key]) -> None:
        self._space, self._points = space, points
        self._found: dict[Key, float] = {}

    def __call__(self, point: Point) -> float:
        key = tuple(point.values())
        if key not in self._points:
            return 0.0
        if key not in self._found:
            self._found[key] = self._space.promise(point)
        return self._found[key]


def _run_out(tree: TreeSearch, ended: set[int]) -> list[Step]:
    """The programs of which the last point was asked for just now."""
    found = []
    for node in tree.nodes:
        number = node.candidate.number
        if node.tuner is not None and not node.tunable and number not in ended:
            ended.add(number)
            found += [node.step] if node.step is not None else []
    return found

"""The tree as data: a node a structure, its numbers left to a tuner of its own.

An evaluation is either a new structure, made by an idea from the best program of a node, or another
point of a node's space. Both count as one visit of the node and of all above it. A program that had
come before by another way (a transposition) does not count as a visit: it
stands for the node of the earlier one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from optiml_magic.model.candidate import Candidate
from optiml_magic.model.evaluation import Step
from optiml_magic.model.idea import Idea, Ideas
from optiml_magic.model.refusal import Refusal
from optiml_magic.model.space import Point, Space
from optiml_magic.tuning.base import Tuner

NOTHING = float("-inf")
Edits = tuple[str, ...]
"""A set of ideas by their keys, sorted: a tuple, since a tree has as many as it has ideas."""


class Lead(NamedTuple):
    """The child of a node that a policy goes on from, and how far ahead of all else it is.

    With ``scale``, what rewards were compared by, its rivals among the children and arms were worth
    ``second`` at most where exploring had the weight ``spread``; each more of that weight adds
    ``steepest`` at most. It holds until something but the child changes (Node.begin and others).
    """

    child: Node
    scale: tuple[float, ...]
    spread: float
    second: float
    steepest: float


@dataclass(eq=False, slots=True)
class Node:
    """One structure: a program as an idea made it, and its other points.

    ``begun`` counts the evaluations below and at this node, ``pending`` those of them in flight,
    ``failures`` the finished ones that did not pass; ``value_sum`` and ``value_max`` are over the
    rewards of the others; ``value`` is the reward of the best of its points: what the structure is
    worth. ``edits`` are the keys of the ideas that led here, sorted. ``untried`` are ideas
    that nothing was made of yet, best first; ``later`` those that another node planned with the
    same edits in another order; ``heard`` the keys of all. ``ground`` is the step that they are
    edits of: the best of the node when the proposers were asked. ``spent``: they have no more.
    ``same`` is the node whose program this one's turned out to be: this one is then a dead end.
    ``gains`` counts the children that were the best of the run when they came, ``tuned`` its own
    points of which that is true; ``opened`` are
    those that passed and may have something to try, at them or below.
    """

    candidate: Candidate
    parent: Node | None
    prior: float = 1.0
    edits: Edits = ()
    starts: Sequence[Point] = ()
    children: tuple[Node, ...] = ()  # tuples, small and without cost where a node has none
    opened: tuple[Node, ...] = ()
    untried: tuple[Idea, ...] = ()
    later: tuple[Idea, ...] = ()
    heard: tuple[str, ...] = ()
    refused: tuple[Refusal, ...] = ()
    step: Step | None = None
    same: Node | None = None
    best: Step | None = None
    ground: Step | None = None
    tuner: Tuner | None = None
    space: Space | None = None
    at: Point | None = None  # the best one's
    tunable: bool = True
    points: int = 0
    gains: int = 0
    tuned: int = 0
    begun: int = 0
    pending: int = 0
    failures: int = 0
    value: float = NOTHING
    value_sum: float = 0.0
    value_max: float = NOTHING
    spent: bool = False
    closed: bool = False
    lead: Lead | None = None

    @property
    def visits(self) -> int:
        """Finished evaluations below and at this node."""
        return self.begun - self.pending

    def path(self) -> Iterator[Node]:
        """This node and its ancestors up to the root."""
        node: Node | None = self
        while node is not None:
            yield node
            node = node.parent

    def close(self) -> None:
        """Nothing is left to try here and below."""
        if not self.closed:
            self.closed = True
            above = self.parent
            if above is not None:
                above.opened = tuple([node for node in above.opened if node is not self])
                if above.lead is not None and above.lead.child is self:
                    above.lead = None

    def reopen(self) -> None:
        """Something is, on the whole path."""
        for node in self.path():
            node.closed = False
            node.lead = None
            if node.parent is not None and node not in node.parent.opened:
                node.parent.opened += (node,)

    def take(self, answer: Ideas, planned: set[Edits]) -> None:
        """Keep what a proposer's answer has that is new here; ``planned`` are the edits of all.

        Edits mostly commute, so what is planned elsewhere can wait: the tree would try every order
        of few edits before it tried many.
        """
        self.refuse(*answer.refused)
        heard = dict.fromkeys(self.heard)
        untried: list[Idea] = []
        later: list[Idea] = []
        for idea in answer.ideas:
            if idea.key in heard:
                continue
            heard[idea.key] = None
            edits = self.and_then(idea)
            (later if edits in planned else untried).append(idea)
            planned.add(edits)
        if len(heard) > len(self.heard):
            self.heard = tuple(heard)
            self.untried += tuple(untried)
            self.later += tuple(later)

    def and_then(self, idea: Idea) -> Edits:
        """The edits of a child."""
        edits, key = self.edits, idea.key
        at = bisect_left(edits, key)
        return edits if key in edits[at : at + 1] else (*edits[:at], key, *edits[at:])

    def refuse(self, *refusals: Refusal) -> None:
        """Keep what the proposers would not do here, each once."""
        if refusals:
            self.refused = tuple(dict.fromkeys((*self.refused, *refusals)))

    def begin(self) -> None:
        """Count an evaluation as in flight on the whole path."""
        below: Node | None = None
        node: Node | None = self
        while node is not None:
            if node.lead is not None and node.lead.child is not below:
                node.lead = None
            node.begun += 1
            node.pending += 1
            below, node = node, node.parent

    def finish(self, step: Step) -> bool:
        """Give an evaluation of this node to every node of the path; whether it is its best."""
        evaluation = step.evaluation
        passed, reward = evaluation.verdict.passed, evaluation.reward
        first = self.step is None
        if first:
            self.step = step
        better = passed and reward > self.value
        if better:
            self.best, self.value = step, reward
        below: Node | None = None
        node: Node | None = self
        while node is not None:
            if node.lead is not None and node.lead.child is not below:
                node.lead = None
            node.pending -= 1
            if passed:
                node.value_sum += reward
                if reward > node.value_max:  # noqa: PLR1730  # a call
                    node.value_max = reward
            else:
                node.failures += 1
            below, node = node, node.parent
        if self.best is None:
            self.closed = True
        elif first and self.parent is not None:
            self.parent.opened += (self,)
        return better

    def refer(self, step: Step, same: Node) -> None:
        """Give an evaluation to this node that is of the program of another, or of this one.

        Nothing is tried below both, and nobody above learns from it.
        """
        if self.step is None:
            self.step, self.same, self.closed = step, same, True
        for node in self.path():
            node.lead = None
            node.begun -= 1
            node.pending -= 1

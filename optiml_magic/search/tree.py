"""The tree as data: a node a candidate, with what selection reads and backup writes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from optiml_magic.model.candidate import Candidate
from optiml_magic.model.evaluation import Evaluation, Step
from optiml_magic.model.idea import Idea, Ideas
from optiml_magic.model.refusal import Refusal


@dataclass
class Node:
    """One candidate.

    ``visits`` counts finished simulations through this node, ``pending`` those in flight.
    ``edits`` are the keys of the ideas that led here. ``untried`` holds ideas that no child was
    made of yet, ``later`` those that another node planned with the same edits in another order;
    ``heard`` are the keys of all that there were, and ``spent`` says that the proposers have no
    more. ``refused`` is what became of no idea, or of one whose text could not be made. ``closed``
    nodes are never selected: failed, duplicated, or with nothing left below them.
    """

    candidate: Candidate
    parent: Node | None
    children: list[Node] = field(default_factory=list)
    edits: frozenset[str] = frozenset()
    untried: deque[Idea] = field(default_factory=deque)
    later: deque[Idea] = field(default_factory=deque)
    heard: set[str] = field(default_factory=set)
    refused: dict[Refusal, None] = field(default_factory=dict)
    evaluation: Evaluation | None = None
    visits: int = 0
    pending: int = 0
    value_sum: float = 0.0
    value_max: float = -1.0
    spent: bool = False
    closed: bool = False

    @property
    def step(self) -> Step:
        """The candidate as it stands, once it is evaluated."""
        assert self.evaluation is not None
        return Step(self.candidate, self.evaluation, tuple(self.refused))

    def take(self, answer: Ideas, planned: set[frozenset[str]]) -> None:
        """Keep what a proposer's answer has that is new here; ``planned`` are the edits of all.

        Edits mostly commute, so what is planned elsewhere can wait: the tree would try every order
        of few edits before it tried many.
        """
        self.refused |= dict.fromkeys(answer.refused)
        for idea in answer.ideas:
            if idea.key in self.heard:
                continue
            self.heard.add(idea.key)
            edits = self.edits | {idea.key}
            (self.later if edits in planned else self.untried).append(idea)
            planned.add(edits)

    def path(self) -> Iterator[Node]:
        """This node and its ancestors up to the root."""
        node: Node | None = self
        while node is not None:
            yield node
            node = node.parent

    def open_children(self) -> list[Node]:
        """Evaluated children that may still have something below them."""
        return [child for child in self.children if child.evaluation and not child.closed]

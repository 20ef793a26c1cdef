"""The tree as data: a node a candidate, with what selection reads and backup writes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.evaluation import Evaluation


@dataclass
class Node:
    """One candidate.

    ``visits`` counts finished simulations through this node, ``pending`` those in flight.
    ``untried`` holds proposals that no child was made of yet; ``spent`` says that the proposers
    have no more. ``closed`` nodes are never selected: failed, duplicated, or with nothing left
    below them.
    """

    candidate: Candidate
    parent: Node | None
    children: list[Node] = field(default_factory=list)
    untried: deque[Proposal] = field(default_factory=deque)
    evaluation: Evaluation | None = None
    visits: int = 0
    pending: int = 0
    value_sum: float = 0.0
    value_max: float = -1.0
    spent: bool = False
    closed: bool = False

    def path(self) -> Iterator[Node]:
        """This node and its ancestors up to the root."""
        node: Node | None = self
        while node is not None:
            yield node
            node = node.parent

    def open_children(self) -> list[Node]:
        """Evaluated children that may still have something below them."""
        return [child for child in self.children if child.evaluation and not child.closed]

"""Hill climbing: edits and numbers of the best program alone, the best prior first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from optiml_magic.search.policies.base import Arm, Edit, Tune

if TYPE_CHECKING:
    from optiml_magic.search.search import TreeSearch
    from optiml_magic.search.tree import Node


@dataclass(frozen=True)
class Greedy:
    """Of the best node that has an arm left: its ideas above ``tuning``, its numbers, the rest."""

    tuning: float = 0.35

    def choose(self, tree: TreeSearch) -> Arm | None:
        best = tree.other_than(set())
        return self.of(tree, best) if best else None

    def of(self, tree: TreeSearch, node: Node) -> Arm | None:
        """The next arm of one node."""
        tunable, editable = tree.tunable(node), tree.editable(node)
        prior = node.untried[0].prior if node.untried else 1.0
        if editable and (prior > self.tuning or not tunable):
            return Edit(node)
        return Tune(node) if tunable else None

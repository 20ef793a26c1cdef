"""Best of N: edits of the roots, and their numbers; nothing is built on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from optiml_magic.search.policies.base import Arm, Edit, Tune

if TYPE_CHECKING:
    from optiml_magic.search.search import TreeSearch


@dataclass(frozen=True)
class BestOfN:
    """First every idea of each root, then the numbers of the best of them."""

    def choose(self, tree: TreeSearch) -> Arm | None:
        for root in tree.base.children:
            if root.best and tree.editable(root):
                return Edit(root)
        ranked = sorted((n for n in tree.nodes if n.best), key=lambda n: -n.value)
        return next((Tune(node) for node in ranked if tree.tunable(node)), None)

"""Random search: any node, any of its arms; the baseline that a policy has to beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from optiml_magic.search.policies.base import Arm, Edit, Tune

if TYPE_CHECKING:
    from optiml_magic.search.search import TreeSearch


@dataclass(frozen=True)
class Uniform:
    """Every arm of every program that passed is as likely; priors order a node's ideas alone."""

    def choose(self, tree: TreeSearch) -> Arm | None:
        arms: list[Arm] = []
        for node in tree.nodes:
            if node.best:
                arms += [Edit(node)] * tree.editable(node) + [Tune(node)] * tree.tunable(node)
        return tree.rng.choice(arms) if arms else None

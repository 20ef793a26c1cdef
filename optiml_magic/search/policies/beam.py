"""Beam search: level by level, from the best few of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from optiml_magic.search.policies.base import Arm
from optiml_magic.search.policies.greedy import Greedy

if TYPE_CHECKING:
    from optiml_magic.search.search import TreeSearch
    from optiml_magic.search.tree import Node


@dataclass(frozen=True)
class Beam:
    """The ``width`` best nodes of a level have ``each`` evaluations before the next begins."""

    width: int = 3
    each: int = 4

    def choose(self, tree: TreeSearch) -> Arm | None:
        level = list(tree.base.children)
        later: list[Node] = []
        while level:
            beam = sorted((n for n in level if n.best), key=lambda n: -n.value)[: self.width]
            for node in beam:
                spent = len(node.children) + node.points
                arm = Greedy().of(tree, node)
                if arm and spent < self.each:
                    return arm
                later += [node] if arm else []
            level = [child for node in beam for child in node.children]
        return next((arm for node in later if (arm := Greedy().of(tree, node))), None)

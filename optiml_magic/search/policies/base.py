"""The seam of the policies: a tree in, one arm of one node out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from optiml_magic.search.search import TreeSearch
    from optiml_magic.search.tree import Node


@dataclass(frozen=True, slots=True)
class Edit:
    """The next idea of a node becomes a child; the proposers are asked where none is known."""

    node: Node


@dataclass(frozen=True, slots=True)
class Tune:
    """The next point of a node's own space."""

    node: Node


Arm = Edit | Tune


class Policy(Protocol):
    """Chooses among the arms of a tree. It keeps no state but what the tree holds."""

    def choose(self, tree: TreeSearch) -> Arm | None:
        """What is tried next; None where all that could be waits for what is in flight."""

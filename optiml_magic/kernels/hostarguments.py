"""The branches of a host function that ask how many arguments its program is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from optiml_magic.kernels.hostbranches import arm_of, leaves, outward
from optiml_magic.source.formals import text_of
from optiml_magic.source.syntax import walk

if TYPE_CHECKING:
    from collections.abc import Callable

    from tree_sitter import Node

COUNT = "argc"
_STRAIGHT = frozenset(
    {"compound_statement", "else_clause", "expression_statement", "assignment_expression"}
)


@dataclass(frozen=True, eq=False)
class Arguments:
    """``number`` gives the value of a condition in a run without arguments."""

    number: Callable[[Node], int | float | None]

    def is_left_out(self, node: Node) -> bool:
        """Whether a run without arguments does not come to a node."""
        return any(self._takes(*step) is False for step in outward(node))

    def is_sure(self, node: Node) -> bool:
        """Whether nothing but the branches that such a run takes is around a node."""
        return all(
            self._takes(child, parent) is True
            if arm_of(child, parent) is not None
            else parent.type in _STRAIGHT
            for child, parent in outward(node)
        )

    def _takes(self, child: Node, branch: Node) -> bool | None:
        """Whether such a run takes that side of a branch; one that leaves then says nothing."""
        arm = arm_of(child, branch)
        answer = self._answer(arm.condition) if arm is not None else None
        side = "consequence" if answer else "alternative"
        if arm is None or answer is None or leaves(branch.child_by_field_name(side)):
            return None
        return answer == arm.taken

    def _answer(self, condition: Node) -> bool | None:
        """What a condition that asks for the number of arguments alone comes to."""
        names = {text_of(node) for node in walk(condition) if node.type == "identifier"}
        number = self.number(condition) if names == {COUNT} else None
        return None if number is None else bool(number)

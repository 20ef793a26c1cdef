"""Which branch of a host function a launch is in, and whether the program takes it as it runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from optiml_magic.source.formals import text_of
from optiml_magic.source.syntax import walk

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tree_sitter import Node

    from optiml_magic.kernels.hostscope import Call
    from optiml_magic.kernels.hostvalues import HostValues

_LEAVES = frozenset({"break_statement", "return_statement", "goto_statement"})
_RETURNS = frozenset({"return_statement", "throw_statement"})
_EXITS = frozenset({"exit", "abort", "_exit", "quick_exit"})
_ASKED = frozenset({"argc", "argv"})


@dataclass(frozen=True, eq=False)
class Arm:
    """One side of an ``if`` whose condition is not known."""

    condition: Node
    taken: bool

    @property
    def place(self) -> int:
        """Of which ``if`` it is one side."""
        return self.condition.start_byte


def is_reached(node: Node, values: HostValues) -> bool:
    """Whether no branch around a node is one that the program, as it runs, does not take.

    Nor does it leave before that; where it asks for arguments it has some.
    """
    for child, parent in outward(node):
        if parent.type == "compound_statement" and _is_left(parent, child, values):
            return False
        if (arm := arm_of(child, parent)) is not None:
            number = values.number(arm.condition)
            if number is not None and bool(number) != arm.taken:
                return False
        elif parent.type == "case_statement" and _is_passed_by(parent, values):
            return False
    return True


def _is_left(block: Node, before: Node, values: HostValues) -> bool:
    """Whether a branch ahead of a statement is taken and leaves the function."""
    for one in block.named_children:
        if one == before:
            break
        if one.type != "if_statement":
            continue
        clause = one.child_by_field_name("condition")
        condition = clause.child_by_field_name("value") if clause is not None else None
        if condition is None or {text_of(node) for node in walk(condition)} & _ASKED:
            continue
        sides = ("consequence", "alternative")
        leaving = [leaves(one.child_by_field_name(side)) for side in sides]
        number = values.number(condition) if any(leaving) else None
        if number is not None and leaving[0 if number else 1]:
            return True
    return False


def leaves(side: Node | None) -> bool:
    """Whether one side of a branch leaves the function at its end."""
    while side is not None and side.type in ("compound_statement", "else_clause"):
        side = side.named_children[-1] if side.named_children else None
    if side is None or side.type in _RETURNS:
        return side is not None
    plain = side.type == "expression_statement" and side.named_child_count  # not a bare `;`
    call = side.named_child(0) if plain else None
    called = text_of(call.child_by_field_name("function")) if call is not None else ""
    return called.rpartition("::")[2] in _EXITS


def arms(node: Node, values: HostValues) -> Iterator[Arm]:
    """The sides that a node is on of branches that are not decided, the innermost first."""
    for child, parent in outward(node):
        arm = arm_of(child, parent)
        if arm is not None and values.number(arm.condition) is None:
            yield arm


def outward(node: Node) -> Iterator[tuple[Node, Node]]:
    """Each node around one within its function, with the child of it that leads there."""
    parent = node.parent
    while parent is not None and parent.type != "function_definition":
        yield node, parent
        node, parent = parent, parent.parent


def arm_of(child: Node, branch: Node) -> Arm | None:
    """The side of an ``if`` that a child of it is; None for its condition and for other nodes."""
    if branch.type != "if_statement":
        return None
    clause = branch.child_by_field_name("condition")
    condition = clause.child_by_field_name("value") if clause is not None else None
    if condition is None or child == clause:
        return None
    return Arm(condition, child != branch.child_by_field_name("alternative"))


def _is_passed_by(case: Node, values: HostValues) -> bool:
    """Whether a ``switch`` goes to another case, which does not run on into this one."""
    body = case.parent
    switch = body.parent if body is not None else None
    clause = switch.child_by_field_name("condition") if switch is not None else None
    asked = values.number(clause.child_by_field_name("value")) if clause is not None else None
    if asked is None or body is None:
        return False
    cases = [child for child in body.named_children if child.type == "case_statement"]
    labels = [child.child_by_field_name("value") for child in cases]
    numbers = [values.number(label) if label is not None else None for label in labels]
    if any(n is None and label is not None for n, label in zip(numbers, labels, strict=True)):
        return False
    matching = [at for at, number in enumerate(numbers) if number == asked]
    matching = matching or [at for at, label in enumerate(labels) if label is None]
    if not matching:
        return True
    way = cases[matching[0] : cases.index(case)] if matching[0] <= cases.index(case) else None
    return way is None or any(
        inner.type in _LEAVES for one in way for inner in one.named_children
        for inner in (inner, *(walk(inner) if inner.type == "compound_statement" else ()))
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Group:
    """Launches of which one runs, and the conditions of all but the last, as they are asked.

    None where the branches are not a plain ``if`` and ``else`` of one launch each.
    """

    calls: tuple[Call, ...]
    conditions: tuple[Node | None, ...] = ()


def groups(calls: Sequence[Call]) -> list[Group]:
    """The launches in order, those that exclude one another together."""
    found: list[Group] = []
    at = 0
    while at < len(calls):
        end = at + 1
        while end < len(calls) and all(_exclude(calls[end], one) for one in calls[at:end]):
            end += 1
        together = calls[at:end]
        beyond = calls[end] if end < len(calls) else None
        several = beyond is not None and any(_exclude(beyond, one) for one in together)
        found.append(Group(tuple(together), () if several else _conditions(together)))
        at = end
    return found


def _exclude(one: Call, other: Call) -> bool:
    """Whether two launches are on two sides of a branch."""
    if one.place != other.place:
        return False
    mine, others = one.sides, other.sides
    return any(mine[at].taken != others[at].taken for at in mine.keys() & others.keys())


def _conditions(calls: Sequence[Call]) -> tuple[Node | None, ...]:
    """What is asked for each of ``if``, ``else if`` and ``else``; none for other branches."""
    sides = [call.sides for call in calls]
    common = set.intersection(*(set(each) for each in sides)) if sides else set()
    common = {at for at in common if len({each[at].taken for each in sides}) == 1}
    found: list[Node | None] = []
    asked: list[int] = []
    for each in sides:
        own = sorted(at for at in each if at not in common)
        taken = [at for at in own if each[at].taken]
        if [at for at in own if not each[at].taken] != asked or len(taken) > 1:
            return ()
        found.append(each[taken[0]].condition if taken else None)
        asked = own
    return tuple(found) if found and found[-1] is None else ()

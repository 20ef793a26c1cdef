"""Which sums of a product belong to a row or a column alone: a square of each of its elements.

A thread has one of these for each of its rows, and adds to it once for all of its columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from optiml_magic.kernels.editing import Node, edited, lines
from optiml_magic.kernels.expressions import (
    Assign,
    Call,
    Expr,
    Name,
    Step,
    Unread,
    builtin,
    every,
)
from optiml_magic.kernels.primitives.operands import COLUMN, ROW, Contraction
from optiml_magic.kernels.tree import Declare, Evaluate, If, Statement, Variable, expressions, walk


def sum_sides(parts: Contraction) -> dict[str, str]:
    """The side that each sum belongs to by its place, empty for those of an output."""
    variables = parts.variables()
    found = {}
    for reduction in parts.reductions:
        sides = _sides(parts, variables[reduction.place])
        found[reduction.place] = sides.pop() if len(sides) == 1 else ""
    return found


def margins(parts: Contraction, sides: Mapping[str, str]) -> frozenset[str]:
    """The places of sums of one side whose rounds ask for nothing but elements of the tiles."""
    variables, tiles = parts.variables(), {a.own for o in parts.operands for a in o.accesses}
    others = {a.own for o in parts.others for a in o.accesses}

    def plain(place: str) -> bool:
        asked = [*_asked(parts, variables[place])]
        counted = any(isinstance(e, Name) and e.variable is parts.axis.variable for e in asked)
        return not counted and not others & {*asked} and bool(tiles & {*asked})

    return frozenset(place for place, side in sides.items() if side and plain(place))


def once(
    parts: Contraction, places: Iterable[str], first: str, swaps: Mapping[Node, Node | None]
) -> dict[Node, Node]:
    """What stands for the statements that add to these places, where ``first`` holds."""
    variables = parts.variables()
    return {
        s: lines(f"if ({first}) {parts.kernel.show(s, swaps)}")
        for place in places for s in adding(parts, variables[place])
    }  # fmt: skip


def adding(parts: Contraction, variable: Variable) -> list[Statement]:
    """The statements of a round that add to a sum."""
    return [
        s for s in walk(parts.loop.body)
        if isinstance(s, Evaluate) and variable in parts.effects.changed(s)
    ]  # fmt: skip


def unasked(body: Statement, swaps: Mapping[Node, Node | None]) -> set[Statement]:
    """The declarations of names that nobody asks for any more: indices of what is in registers."""
    found: set[Statement] = set()
    while True:
        left = edited(body, {**swaps, **dict.fromkeys(found)})
        asked = {e.variable for e in expressions(left) if isinstance(e, Name)}
        idle = {
            s for s in walk(body)
            if isinstance(s, Declare) and s not in found and not asked & {*s.variables}
            and all(v.value is None or _plain(v.value) for v in s.variables)
        }  # fmt: skip
        if not idle:
            return found
        found |= idle


def _plain(value: Expr) -> bool:
    """Whether to compute a value does nothing else."""
    return not any(isinstance(e, Assign | Step | Call | Unread) for e in every(value))


def _sides(parts: Contraction, own: Variable) -> set[str]:
    """What a sum depends on, of a row and a column; both where that is not known."""
    sides, both = set[str](), {ROW, COLUMN}
    of_loads = {a.own: o.side for o in (*parts.operands, *parts.others) for a in o.accesses}
    inside = {v for s in walk(parts.loop.body) if isinstance(s, Declare) for v in s.variables}
    steady = parts.effects.lasting | {*parts.kernel.function.parameters}
    for expr in _asked(parts, own):
        if expr in of_loads:
            sides |= {of_loads[expr]} - {""}
        elif builtin(expr):
            return both
        elif isinstance(expr, Name) and expr.variable not in (None, own, parts.axis.variable):
            variable = expr.variable
            assert variable is not None
            if variable not in steady or (
                variable not in inside and variable.storage != "parameter"
            ):
                return both
    return sides


def _asked(parts: Contraction, own: Variable) -> Iterator[Expr]:
    """What the rounds of a sum ask for, by locals as well; of loads not how they are reached."""
    loads = {a.own for o in (*parts.operands, *parts.others) for a in o.accesses}
    around = [s for s in walk(parts.loop.body) if isinstance(s, If)
              and own in parts.effects.changed(s)]  # fmt: skip
    todo = [e for s in adding(parts, own) for e in s.expressions] + [s.test for s in around]
    known = set[Variable]()
    while todo:
        expr = todo.pop()
        yield expr
        if expr in loads:
            continue
        variable = expr.variable if isinstance(expr, Name) else None
        if variable is not None and variable not in known:
            known.add(variable)
            todo += [variable.value] if variable.value is not None and variable is not own else []
        todo += expr.parts

"""Which sums of a product belong to a row or a column alone: a square of each of its elements.

A thread has one of these for each of its rows, and adds to it once for all of its columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from optiml_magic.kernels.editing import Node, lines
from optiml_magic.kernels.expressions import Expr, Name, builtin
from optiml_magic.kernels.primitives.operands import COLUMN, ROW, Contraction
from optiml_magic.kernels.tree import Declare, Evaluate, If, Statement, Variable, expressions, walk


def sum_sides(parts: Contraction) -> dict[str, str]:
    """The side that each sum belongs to by its place, empty for those of an output."""
    variables = parts.variables()
    found = {}
    for reduction in parts.reductions:
        variable = variables[reduction.place]
        asked = [e for s in _adding(parts, variable) for e in expressions(s)]
        around = [s for s in walk(parts.loop.body) if isinstance(s, If)
                  and variable in parts.effects.changed(s)]  # fmt: skip
        sides = _sides(parts, [*asked, *(s.test for s in around)], variable)
        found[reduction.place] = sides.pop() if len(sides) == 1 else ""
    return found


def once(
    parts: Contraction, places: Iterable[str], first: str, swaps: Mapping[Node, Node | None]
) -> dict[Node, Node]:
    """What stands for the statements that add to these places, where ``first`` holds."""
    variables = parts.variables()
    return {
        s: lines(f"if ({first}) {parts.kernel.show(s, swaps)}")
        for place in places for s in _adding(parts, variables[place])
    }  # fmt: skip


def _adding(parts: Contraction, variable: Variable) -> list[Statement]:
    return [
        s for s in walk(parts.loop.body)
        if isinstance(s, Evaluate) and variable in parts.effects.changed(s)
    ]  # fmt: skip


def _sides(parts: Contraction, asked: list[Expr], own: Variable) -> set[str]:
    """What expressions depend on, of a row and a column; both where that is not known."""
    sides, both = set[str](), {ROW, COLUMN}
    of_loads = {a.own: o.side for o in (*parts.operands, *parts.others) for a in o.accesses}
    inside = {v for s in walk(parts.loop.body) if isinstance(s, Declare) for v in s.variables}
    known = {own, parts.axis.variable}
    todo = [*asked]
    while todo:
        expr = todo.pop()
        if expr in of_loads:
            sides |= {of_loads[expr]} - {""}
            continue
        if builtin(expr):
            return both
        if isinstance(expr, Name) and expr.variable is not None and expr.variable not in known:
            variable = expr.variable
            known.add(variable)
            outer = variable not in inside and variable.storage != "parameter"
            if outer or variable not in parts.effects.lasting | {*parts.kernel.function.parameters}:
                return both
            todo += [variable.value] if variable.value is not None else []
        todo += expr.parts
    return sides

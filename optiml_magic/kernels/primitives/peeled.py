"""P19, peeled: the first round of a loop that asks for it in its rounds stands in front of it.

``for (i) for (j) if (i == 0 || j == 0) d[i][j] = 0; else d[i][j] = f(d[i - 1][j], d[i][j - 1]);``
is a row, and rows of which each begins with an element: the form that steps for tables look for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited, lines, spread, text
from optiml_magic.kernels.expressions import Binary, Choice, Expr, Literal, Name, Unary, every
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, counts_up, loops_in
from optiml_magic.kernels.primitives.scoped import quiet
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.tree import Block, If, Leave, Statement, walk

_Swaps = dict[Node, "Node | tuple[Statement, ...] | None"]
_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "==": "==", "!=": "!="}


@primitive
def peeled(kernel: Kernel) -> Kernel:
    """The kernel whose loops over local tables have their first rounds in front of them."""
    found = next(_loops(kernel), None)
    if found is None:
        raise NotLegal("no loop over a local table asks for its first round")
    made = kernel.rewritten(edited(kernel.function.body, {found.node: _parts(kernel, found)}))
    more = peeled(made)
    return more if isinstance(more, Kernel) else made


def _loops(kernel: Kernel) -> Iterator[Axis]:
    effects = Effects(kernel)
    tables = {n for n, a in kernel.reading.arrays.items()
              if a.space == "local" and len(a.extents) == 2}  # fmt: skip
    stored = [a.own for a in kernel.reading.accesses if a.array in tables and a.mode == "store"]
    for loop in loops_in(kernel.function.body) if stored else ():
        axis = kernel.axes().get(loop)
        if axis is None or not counts_up(axis, effects) or axis.trips == 0:
            continue
        start = axis.start.value if axis.start is not None else None
        if start is None or not {*stored} & effects.inside(loop.body):
            continue
        whole = not any(isinstance(s, Leave) for s in walk(loop.body))
        if whole and all(_decided(axis, loop.body, first) for first in (True, False)):
            yield axis


def _parts(kernel: Kernel, axis: Axis) -> tuple[Statement, ...]:
    """The first round of a loop, and the loop from its second one on."""
    loop, variable = axis.node, axis.variable
    assert variable is not None
    assert axis.start is not None
    start = axis.start.value or 0
    kind, name = variable.type.base, variable.name
    first = kernel.show_inside(edited(loop.body, _decided(axis, loop.body, True)))
    rest = replace(
        loop, before=lines(f"{kind} {name} = {start + 1};"), span=None, head=None,
        body=edited(loop.body, _decided(axis, loop.body, False)),
    )  # fmt: skip
    own = f"const {kind} {name} = {start};\n{first}"
    if axis.trips is None:  # there may be no round
        assert loop.test is not None
        asked: _Swaps = {e: text(str(start)) for e in every(loop.test)
                 if isinstance(e, Name) and e.variable is variable}  # fmt: skip
        return lines(f"if ({kernel.spelled(loop.test, asked)}) {{\n{own}\n}}"), rest
    return lines(f"{{\n{own}\n}}"), rest


def _decided(axis: Axis, body: Statement, first: bool) -> _Swaps:
    """What tests for the first round become in that one, or in all others."""
    swaps: _Swaps = {}
    for inner in body.statements if not isinstance(body, If) else (body,):
        if not isinstance(inner, If) or inner.before is not None:
            swaps |= _decided(axis, inner, first) if not isinstance(inner, If) else {}
            continue
        told = _told(inner.test, axis, first)
        ways = [(w, _decided(axis, _whole(w), first)) for w in (inner.then, inner.other)
                if w is not None]  # fmt: skip
        shown = [edited(_whole(way), own) for way, own in ways]
        if isinstance(told, bool):
            swaps[inner] = (
                spread(shown[0]) if told else spread(shown[1] if len(shown) > 1 else None)
            )
        elif told is not inner.test or any(own for _, own in ways):
            other = shown[1] if len(shown) > 1 else None
            swaps[inner] = replace(
                inner, test=told, then=shown[0], other=other, span=None, head=None, middle=None
            )
    for expr in body.expressions if not isinstance(body, If) else ():
        swaps |= _choices(expr, axis, first)
    return swaps


def _whole(way: Statement) -> Statement:
    """A way in braces, so that tests directly in it are inside of it."""
    return way if isinstance(way, Block) else Block(None, way.line, (way,))


def _choices(expr: Expr, axis: Axis, first: bool) -> _Swaps:
    if isinstance(expr, Choice):
        told = _told(expr.test, axis, first)
        ways = [edited(way, _choices(way, axis, first)) for way in (expr.then, expr.other)]
        if isinstance(told, bool):
            return {expr: ways[0] if told else ways[1]}
        if told is not expr.test:
            return {expr: replace(expr, test=told, then=ways[0], other=ways[1], span=None)}
    swaps: _Swaps = {}
    for part in expr.parts:
        swaps |= _choices(part, axis, first)
    return swaps


def _told(test: Expr, axis: Axis, first: bool) -> Expr | bool:
    """What a test says in the first round or in all others, or what is left of it to ask."""
    match test:
        case Binary(op="||" | "&&" as op, left=left, right=right):
            whole = op == "||"
            sides = [_told(left, axis, first), _told(right, axis, first)]
            if sides[0] is whole:
                return whole
            if sides[1] is whole:
                return whole if quiet(left) else test
            open_ = [side for side in sides if not isinstance(side, bool)]
            if len(open_) < 2:
                return open_[0] if open_ else not whole
            same = sides[0] is left and sides[1] is right
            return test if same else replace(test, left=open_[0], right=open_[1], span=None)
        case Unary(op="!", operand=operand):
            told = _told(operand, axis, first)
            return not told if isinstance(told, bool) else test
        case Name(variable=variable) if variable is axis.variable:
            return _compared("!=", 0, axis, first, test)
        case Binary(op=op, left=Name(variable=variable), right=Literal(value=int(value))):
            if variable is axis.variable and op in _MIRRORED:
                return _compared(op, value, axis, first, test)
        case Binary(op=op, left=Literal(value=int(value)), right=Name(variable=variable)):
            if variable is axis.variable and op in _MIRRORED:
                return _compared(_MIRRORED[op], value, axis, first, test)
    return test


def _compared(op: str, value: int, axis: Axis, first: bool, test: Expr) -> Expr | bool:
    """How a counter compares with a number, where that is alike in all rounds that are asked of."""
    assert axis.start is not None
    start = axis.start.value or 0
    holds = {"<": int.__lt__, ">": int.__gt__, "<=": int.__le__, ">=": int.__ge__,
             "==": int.__eq__, "!=": int.__ne__}[op]  # fmt: skip
    if first:
        return bool(holds(start, value))
    if value <= start or (value == start + 1 and op in ("<", ">=")):
        return bool(holds(max(start, value) + 1, value))
    return test

"""Normal form: an element whose members are stored one by one, side by side, is stored as a whole.

``out[i].x = re; out[i].y = im;`` becomes ``out[i] = make_float2(re, im);``: one store of the type
of its array, as steps look for it, and one request where there were several.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from optiml_magic.kernels.combining import same
from optiml_magic.kernels.editing import Node, edited, lines
from optiml_magic.kernels.expressions import Assign, Expr, Index, Member, Name
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.scoped import quiet
from optiml_magic.kernels.tree import Blank, Block, Evaluate, Statement, walk
from optiml_magic.kernels.types import named

_VECTOR = re.compile(r"(u?(char|short|int|long|longlong)|float|double)[234]")
_LANES = "xyzw"


@primitive
def stored_whole(kernel: Kernel) -> Kernel:
    """The kernel with all such stores as one each."""
    swaps: dict[Node, Node | tuple[Statement, ...]] = {}
    effects = Effects(kernel)
    for block in (s for s in walk(kernel.function.body) if isinstance(s, Block)):
        rest = [s for s in block.body if not isinstance(s, Blank)]
        for at, statement in enumerate(rest):
            whole = _whole(kernel, effects, rest[at:]) if statement not in swaps else None
            if whole is not None:
                words, count = whole
                swaps |= dict.fromkeys(rest[at : at + count], ())
                swaps[statement] = (lines(words),)
    if not swaps:
        raise NotLegal("no element is stored member by member")
    return kernel.rewritten(edited(kernel.function.body, swaps), tidy=False)


def _whole(
    kernel: Kernel, effects: Effects, statements: Sequence[Statement]
) -> tuple[str, int] | None:
    """The store of an element that the first of the statements begin, and how many these are."""
    first = _member(statements[0])
    if first is None:
        return None
    place = first.place
    base = place.base.variable if isinstance(place.base, Name) else None
    if base is None or base.type.depth != 1 or base.type.volatile or not quiet(place):
        return None
    name = named(base.type.base, kernel.unit.aliases).name
    if not _VECTOR.fullmatch(name):
        return None
    values, lanes = dict[str, Expr](), _LANES[: int(name[-1])]
    for at, statement in enumerate(statements[: len(lanes)]):
        one, accesses = _member(statement), effects.accesses(statement)
        stored = [a for a in accesses if a.mode != "load"]
        if one is None or not same(one.place, place) or not quiet(one.value) or len(stored) != 1:
            return None
        loaded = {a.array for a in accesses if a.mode == "load"}
        if stored[0].space != "global" or (
            at and any(effects.same(array, stored[0].array) for array in loaded)
        ):
            return None
        values[one.field] = one.value
    if values.keys() != {*lanes}:
        return None
    given = ", ".join(kernel.spelled(values[lane]) for lane in lanes)
    return f"{kernel.spelled(place)} = make_{name}({given});", len(lanes)


@dataclass(frozen=True)
class _Member:
    """A member of an element, and what it is given."""

    place: Index
    field: str
    value: Expr


def _member(statement: Statement) -> _Member | None:
    match statement:
        case Evaluate(
            expression=Assign(
                op="=", target=Member(base=Index() as place, field=field, arrow=False), value=value
            )
        ):
            return _Member(place, field, value)
    return None

"""Normal form: a local that each round of a loop turns from 0 to 1 and back is the round's number.

In ``for (i) { ...; cur = 1 - cur; }`` ``cur`` becomes ``i & 1``, and ``1 - cur`` ``(i + 1) & 1``:
which of two rows a round fills then is a matter of its number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from optiml_magic.kernels.editing import Node, edited, text
from optiml_magic.kernels.expressions import Expr, Literal, Name
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.taking_turns import (
    Turns,
    exchanged,
    opposite,
    turned,
    turning,
)
from optiml_magic.kernels.tree import Statement, Variable, body_of, expressions
from optiml_magic.kernels.types import named


@dataclass(frozen=True, eq=False)
class _Flip:
    """Locals that a loop's last ``statements`` turn in each round."""

    turns: Turns
    locals: tuple[Variable, ...]
    statements: tuple[Statement, ...]


@primitive
def flipped(kernel: Kernel) -> Kernel:
    """The kernel with the number of the round for such locals."""
    for flip in _flips(kernel):
        try:
            made = _made(kernel, flip)
        except NotLegal:
            continue
        more = flipped(made)
        return more if isinstance(more, Kernel) else made
    raise NotLegal("no loop turns a local from 0 to 1 and back")


def _flips(kernel: Kernel) -> Iterator[_Flip]:
    for turns in turning(kernel):
        body = body_of(turns.loop.body)
        one, pair = turned(body[-1]), exchanged(body[-3:])
        if one is not None:
            yield _Flip(turns, (one,), body[-1:])
        elif pair is not None:
            yield _Flip(turns, pair, body[-3:])


def _made(kernel: Kernel, flip: _Flip) -> Kernel:
    effects, turns = Effects(kernel), flip.turns
    begun = dict[Variable, int]()
    for local in flip.locals:
        match local.value:
            case Literal(value=int(first)) if first in (0, 1) and local in turns.held:
                begun[local] = first
        whole = not local.type.depth and not local.array and not local.type.volatile
        kind = named(local.type.base, kernel.unit.aliases)
        if local not in begun or not whole or not kind.integral or local in effects.lent:
            raise NotLegal("it does not begin as 0 or 1", local.line)
    if len(flip.locals) == 2 and sum(begun.values()) != 1:
        raise NotLegal("both begin as the same", turns.loop.line)
    changes: dict[Node, Node | tuple[Statement, ...] | None] = dict.fromkeys(flip.statements)
    gone = frozenset().union(*(effects.inside(s) for s in flip.statements))
    own: set[Expr] = {e for e in expressions(kernel.function.body)
           if isinstance(e, Name) and e.variable in begun and e not in gone}  # fmt: skip
    told = set[Expr]()
    for place, number in ((p, n) for part, n in turns.parts() for p in part):
        other = opposite(place)
        if other in begun and place not in gone:
            changes[place] = text(number(begun[other] + 1))
            told |= {part for part in place.parts if part in own}
        elif place in own and place not in told:
            assert isinstance(place, Name)
            assert place.variable is not None
            changes.setdefault(place, text(number(begun[place.variable])))
            told.add(place)
    if told != own or any(_is_changed(e, own) for e in expressions(kernel.function.body)):
        raise NotLegal("it is asked for elsewhere too", turns.loop.line)
    return kernel.rewritten(edited(kernel.function.body, changes))


def _is_changed(expr: Expr, own: set[Expr]) -> bool:
    return getattr(expr, "target", None) in own

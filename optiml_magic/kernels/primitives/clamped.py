"""Places that tests bring back within bounds, as the functions that do so.

``int p = i; if (p < 0) p = 0; if (p >= w) p = w - 1;`` is ``int p = min(max(i, 0), w - 1)``, which
never changes afterwards, so that steps that look for such a place find it. So is ``int p = i;
p = p < 0 ? 0 : p >= w ? w - 1 : p;`` where ``w - 1`` is certainly not below 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, pairwise

from optiml_magic.kernels.combining import same
from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import (
    MIRRORED,
    Assign,
    Binary,
    Call,
    Cast,
    Choice,
    Expr,
    Literal,
    Name,
)
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, loops_in, names
from optiml_magic.kernels.primitives.pinned import Scalars
from optiml_magic.kernels.ranges import holds
from optiml_magic.kernels.tree import Blank, Block, Declare, Evaluate, If, Statement, Variable, walk


@dataclass(frozen=True)
class _Clamp:
    """``if (v < bound) v = bound``, which keeps the greater, or the lesser, of the two."""

    function: str
    bound: Expr


@primitive
def clamped(kernel: Kernel) -> Kernel:
    """The kernel whose places are brought back within bounds where they are declared."""
    effects, swaps = Effects(kernel), dict[Node, Node | tuple[Statement, ...] | None]()
    scalars = Scalars(effects.moved)
    ordered = partial(_is_ordered, kernel, scalars)
    for block in walk(kernel.function.body):
        if isinstance(block, Block):
            _block(effects, block, swaps, partial(ordered, block))
    if not swaps:
        raise NotLegal("no test brings a place back within bounds")
    return kernel.rewritten(edited(kernel.function.body, swaps))


def _block(
    effects: Effects,
    block: Block,
    swaps: dict[Node, Node | tuple[Statement, ...] | None],
    ordered: Callable[[_Clamp, _Clamp], bool],
) -> None:
    """The declarations of a block that tests follow which do nothing else to what is declared."""
    body = [s for s in block.body if not isinstance(s, Blank)]
    for at, statement in enumerate(body):
        if not isinstance(statement, Declare):
            continue
        made = list[Variable]()
        for variable in statement.variables:
            found = _found(effects, variable, body[at + 1 :], ordered)
            others = (s for s in body if s not in found and s is not statement)
            if found and not any(variable in effects.changed(s) for s in others):
                made.append(
                    replace(variable, value=_whole(effects, variable, chain(*found.values())))
                )
                swaps |= dict.fromkeys(found)
            else:
                made.append(variable)
        if made != [*statement.variables]:
            swaps[statement] = replace(statement, variables=tuple(made), span=None)


def _found(
    effects: Effects,
    place: Variable,
    behind: Sequence[Statement],
    ordered: Callable[[_Clamp, _Clamp], bool],
) -> dict[Statement, list[_Clamp]]:
    """The tests behind a declaration that do nothing but to bring it back, before it is used."""
    found = dict[Statement, list[_Clamp]]()
    plain = place.type.base == "int" and not (place.type.depth or place.type.reference)
    if not plain or place.array or place.value is None:
        return found
    if place not in effects.changing or place in effects.lent:
        return found
    for test in behind:
        clamps = _clamps(effects, test, place)
        if clamps and all(ordered(one, other) for one, other in pairwise(clamps)):
            found[test] = clamps
        elif not isinstance(test, Declare | If) or place in effects.mentions(test):
            break
    return found


def _whole(effects: Effects, place: Variable, clamps: Iterable[_Clamp]) -> Expr:
    whole = place.value
    assert whole is not None
    kind = effects.reading.types.get(whole)
    if kind is None or kind.name != "int" or kind.depth:
        whole = Cast(None, "int", whole)
    for clamp in clamps:
        whole = Call(None, clamp.function, (whole, clamp.bound))
    return whole


def _is_ordered(kernel: Kernel, scalars: Scalars, block: Block, low: _Clamp, high: _Clamp) -> bool:
    """Whether what one clamp brings back the next one leaves alone, in the rounds of a loop."""
    around = [loop for loop in loops_in(kernel.function.body) if block in walk(loop)]
    axis = kernel.axes().get(around[-1]) if around else None
    least, most = scalars.form(low.bound), scalars.form(high.bound)
    if axis is None or least is None or most is None:
        return False
    if low.function == "min":
        least, most = most, least
    apart = low.function != high.function
    return apart and holds(most - least, axis.guard, kernel.reading.symbols)


def _clamps(effects: Effects, test: Statement, place: Variable) -> list[_Clamp]:
    """What a branch or a choice does to a place where it only brings it back within bounds."""
    match test:
        case Evaluate(
            expression=Assign(op="=", target=Name(variable=own), value=Choice() as value)
        ):
            return _chosen(effects, value, place) if own is place else []
    clamp = _clamp(effects, test, place)
    return [clamp] if clamp is not None else []


def _chosen(effects: Effects, choice: Choice, place: Variable) -> list[_Clamp]:
    """Each bound that a choice among it and a place says, the first one first."""
    rest = choice.other
    whole = Assign(None, "=", Name(None, place.name, place), choice.then)
    branch = If(None, 0, choice.test, Evaluate(None, 0, whole))
    clamp = _clamp(effects, branch, place)
    if clamp is None:
        return []
    match rest:
        case Name(variable=own) if own is place:
            return [clamp]
        case Choice():
            more = _chosen(effects, rest, place)
            return [clamp, *more] if more else []
    return []


def _clamp(effects: Effects, test: Statement, place: Variable) -> _Clamp | None:
    """What a branch does to a place where it only brings it back within a bound."""
    match test:
        case If(before=None, other=None, constant=False, test=Binary(op=op) as asked, then=then):
            inner = (
                [s for s in then.body if not isinstance(s, Blank)]
                if isinstance(then, Block)
                else [then]
            )
        case _:
            return None
    match inner:
        case [Evaluate(expression=Assign(op="=", target=Name(variable=own), value=value))]:
            pass
        case _:
            return None
    left, right = asked.left, asked.right
    if isinstance(right, Name) and right.variable is place and op in MIRRORED:
        left, right, op = right, left, MIRRORED[op]
    is_place = isinstance(left, Name) and left.variable is place and own is place
    scalars = names([value, right])
    if not is_place or op not in MIRRORED or any(v.storage != "parameter" for v in scalars):
        return None
    if scalars & effects.changing or any(v.type.base != "int" or v.type.depth for v in scalars):
        return None
    return _Clamp("max" if op[0] == "<" else "min", value) if _kept(op, right, value) else None


def _kept(op: str, bound: Expr, value: Expr) -> bool:
    """Whether a place becomes the last that the test leaves alone: ``v >= n``, ``n - 1``."""
    if same(bound, value):
        return True
    match bound, value:
        case Literal(value=int() as one), Literal(value=int() as other):
            return op in ("<=", ">=") and other == (one + 1 if op == "<=" else one - 1)
        case _, Binary(op=sign, left=left, right=Literal(value=1)):
            return (op, sign) in (("<=", "+"), (">=", "-")) and same(left, bound)
    return False

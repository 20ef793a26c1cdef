"""Places that tests bring back within bounds, as the functions that do so.

``int p = i; if (p < 0) p = 0; if (p >= w) p = w - 1;`` is ``int p = min(max(i, 0), w - 1)``, which
never changes afterwards, so that steps that look for such a place find it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from optiml_magic.kernels.combining import same
from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import Assign, Binary, Call, Cast, Expr, Literal, Name
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, names
from optiml_magic.kernels.tree import Blank, Block, Declare, Evaluate, If, Statement, Variable, walk

_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


@dataclass(frozen=True)
class _Clamp:
    """``if (v < bound) v = bound``, which keeps the greater, or the lesser, of the two."""

    function: str
    bound: Expr


@primitive
def clamped(kernel: Kernel) -> Kernel:
    """The kernel whose places are brought back within bounds where they are declared."""
    effects, swaps = Effects(kernel), dict[Node, Node | tuple[Statement, ...] | None]()
    for block in walk(kernel.function.body):
        if isinstance(block, Block):
            _block(effects, block, swaps)
    if not swaps:
        raise NotLegal("no test brings a place back within bounds")
    return kernel.rewritten(edited(kernel.function.body, swaps))


def _block(
    effects: Effects, block: Block, swaps: dict[Node, Node | tuple[Statement, ...] | None]
) -> None:
    """The declarations of a block that tests follow which do nothing else to what is declared."""
    body = [s for s in block.body if not isinstance(s, Blank)]
    for at, statement in enumerate(body):
        if not isinstance(statement, Declare):
            continue
        made = list[Variable]()
        for variable in statement.variables:
            found = _found(effects, variable, body[at + 1 :])
            others = (s for s in body if s not in found and s is not statement)
            if found and not any(variable in effects.changed(s) for s in others):
                made.append(replace(variable, value=_whole(effects, variable, found.values())))
                swaps |= dict.fromkeys(found)
            else:
                made.append(variable)
        if made != [*statement.variables]:
            swaps[statement] = replace(statement, variables=tuple(made), span=None)


def _found(
    effects: Effects, place: Variable, behind: Sequence[Statement]
) -> dict[Statement, _Clamp]:
    """The tests behind a declaration that do nothing but to bring it back, before it is used."""
    found = dict[Statement, _Clamp]()
    plain = place.type.base == "int" and not (place.type.depth or place.type.reference)
    if not plain or place.array or place.value is None:
        return found
    if place not in effects.changing or place in effects.lent:
        return found
    for test in behind:
        clamp = _clamp(effects, test, place)
        if clamp is not None:
            found[test] = clamp
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
    if isinstance(right, Name) and right.variable is place and op in _MIRRORED:
        left, right, op = right, left, _MIRRORED[op]
    is_place = isinstance(left, Name) and left.variable is place and own is place
    scalars = names([value, right])
    if not is_place or op not in _MIRRORED or any(v.storage != "parameter" for v in scalars):
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

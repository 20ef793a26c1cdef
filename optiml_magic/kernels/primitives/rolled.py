"""P5 undone: what a text does twice, the second time a block's width further, as two rounds.

``if (i < n) f(i); if (i + blockDim.x < n) f(i + blockDim.x);`` is a loop over both, which
``uncoarsened`` makes a thread for each of.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Binary, Expr, Literal, Member, Name, Unread, every
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, loops_in, names
from optiml_magic.kernels.tree import Declare, Leave, Statement, Variable, expressions, walk
from optiml_magic.kernels.types import named

_PLACES = frozenset({"span", "lead", "line", "head", "middle", "foot", "tail"})
_MOST = 32  # rounds; ours
_WIDTH = Member(None, Name(None, "blockDim", None), "x", False)


@primitive
def rolled(kernel: Kernel) -> Kernel:
    """The kernel whose last statements, alike but for where they stand, are rounds of a loop."""
    body = kernel.function.body.body
    inside = [s for one in body for s in walk(one)]
    if loops_in(kernel.function.body) or any(isinstance(s, Leave) for s in inside):
        raise NotLegal("it has loops, or ways out")
    effects = Effects(kernel)
    effects.straightforward()
    own = [v for s in body if isinstance(s, Declare) for v in s.variables]
    kept = [v for v in own if v.value is not None and v not in effects.changing]
    for place in kept:
        further = [v for v in kept if _asks(v.value, place) and _stays(kernel, effects, v)]
        found = _rounds(kernel, body, place, further)
        if found is not None:
            return found
    raise NotLegal("nothing in it is done twice, a block's width apart")


def _rounds(
    kernel: Kernel, body: Sequence[Statement], place: Variable, further: Sequence[Variable]
) -> Kernel | None:
    """The kernel with rounds over places from this one, of which the ``further`` ones are told."""
    first = len(body) - 1
    while first and not isinstance(body[first - 1], Declare):
        first -= 1
    values: dict[Node, Node] = {
        e: v.value for s in body[first:] for e in expressions(s) for v in further
        if isinstance(e, Name) and e.variable is v and v.value is not None
    }  # fmt: skip
    asking = [edited(s, values) for s in body[first:]]
    for count in range(2, min(_MOST, len(asking)) + 1):
        size, rest = divmod(len(asking), count)
        parts = [asking[at : at + size] for at in range(0, len(asking), size)]
        if rest or any(isinstance(s, Declare) for s in parts[0]):
            continue
        for steps in _steps(kernel, count):
            if all(
                _same(part, _moved(parts[0], place, by))
                for part, by in zip(parts[1:], steps, strict=True)
            ):
                return _looped(kernel, body[:first], parts[0], place, count)
    return None


def _looped(
    kernel: Kernel, before: Sequence[Statement], part: Sequence[Statement], place: Variable,
    count: int,
) -> Kernel:  # fmt: skip
    name = kernel.fresh("turn")
    moved = _moved(part, place, Binary(None, "*", text(name), _WIDTH))
    shown = "\n".join(map(kernel.show, moved))
    loop = lines(f"for (int {name} = 0; {name} < {count}; ++{name}) {{\n{shown}\n}}")
    return kernel.rewritten(replace(kernel.function.body, body=(*before, loop)), tidy=False)


def _stays(kernel: Kernel, effects: Effects, local: Variable) -> bool:
    """Whether what a local begins with may stand in its place: it is of its type, and lasts."""
    assert local.value is not None
    kind, inside = kernel.reading.types.get(local.value), {*every(local.value)}
    own = None if local.type.base == "auto" else named(local.type.base, kernel.unit.aliases)
    if kind is None or kind.depth != local.type.depth or local.type.volatile:
        return False
    plain = own is None or (own.kind, own.size, own.lanes) == (kind.kind, kind.size, kind.lanes)
    loads = {a.array for a in kernel.reading.accesses if a.own in inside}
    met = any(not a or effects.same(a, b) for a in loads for b in kernel.reading.written)
    return plain and not met and not names([local.value]) & effects.changing


def _asks(value: Expr | None, place: Variable) -> bool:
    return any(isinstance(e, Name) and e.variable is place for e in (every(value) if value else ()))


def _steps(kernel: Kernel, count: int) -> Iterator[list[Expr]]:
    """How far the second round is from the first, the third, and so on, as a text may say it."""
    width, numbers = kernel.block[0], range(2, count)
    for one in (_WIDTH, *([text(str(width))] if width else ())):
        yield [one, *(Binary(None, "*", text(str(number)), one) for number in numbers)]
        yield [one, *(Binary(None, "*", one, text(str(number))) for number in numbers)]
    if width:
        yield [text(str(number * width)) for number in range(1, count)]


def _moved(part: Sequence[Statement], place: Variable, by: Expr) -> list[Statement]:
    swaps: dict[Node, Node] = {
        e: Binary(None, "+", e, by)
        for s in part for e in expressions(s) if isinstance(e, Name) and e.variable is place
    }  # fmt: skip
    return [edited(s, swaps) for s in part]


def _same(one: object, other: object) -> bool:
    """Whether two trees are spelled alike, wherever they stand."""
    match one, other:
        case (Variable(name=name), Variable(name=called)):
            return name == called and _same(one.value, other.value)
        case (Unread(), _) | (_, Unread()):
            return _number(one) is not None and _number(one) == _number(other)
        case (Name(name=name), Name(name=called)):
            return name == called
        case (tuple() | list(), tuple() | list()):
            return len(one) == len(other) and all(map(_same, one, other))
        case (Expr() | Statement(), Expr() | Statement()):
            own = [f.name for f in fields(one) if f.name not in _PLACES]
            return type(one) is type(other) and all(
                _same(getattr(one, name), getattr(other, name)) for name in own
            )
    return one == other


def _number(expr: object) -> str | None:
    """A number as it was read, or as it is spelled here."""
    match expr:
        case Literal(text=words) | Unread(text=words):
            return words
    return None

"""What the threads of a block hold, each for itself: the values of ``lockstep``.

A number may be known for each thread. A value may be the same for all of them, or be computed by
each from where it stands. And a value may be what some threads have put together of what all of
them found: who has everything has what one thread would have found alone.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Cast,
    Expr,
    Literal,
    Name,
    Unary,
    every,
)
from optiml_magic.kernels.functions import bare as bare_name
from optiml_magic.kernels.primitives.base import NotLegal
from optiml_magic.kernels.tree import Declare, Evaluate, Statement, Variable
from optiml_magic.kernels.types import CType, named

Mask = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]
Made = tuple[Statement, ...]
_OPERATORS: Mapping[str, Callable[[Numbers, Numbers], Numbers]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "&": operator.and_,
    "|": operator.or_, "^": operator.xor, "<<": operator.lshift, ">>": operator.rshift,
    "<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge, "==": operator.eq,
    "!=": operator.ne, "&&": lambda a, b: (a != 0) & (b != 0),
    "||": lambda a, b: (a != 0) | (b != 0),
}  # fmt: skip
IDENTITIES = {"+": "0", "*": "1", "|": "0", "^": "0", "&": "-1"}
#: What is kept of two parts by another comparison than their own: that of an extreme.
ALONG = "along"
IDEMPOTENT = frozenset({"min", "max", "&", "|", ALONG})


@dataclass(frozen=True, eq=False)
class Local:
    """A local that each thread gives its value for itself: its type as declared, and that."""

    words: str
    name: str
    form: Expr


@dataclass(frozen=True, eq=False)
class Value:
    """``form`` spells it in a program of one thread; ``where`` it is certain of which threads.

    ``locals`` are those that the form asks for, ``loads`` the arrays that it loads from, ``?`` for
    one that is not known.
    """

    form: Expr
    where: Mask
    locals: tuple[Local, ...] = ()
    loads: frozenset[str] = frozenset()


@dataclass(frozen=True, eq=False)
class Known(Value):
    """A whole number, known of each thread."""

    numbers: Numbers = field(kw_only=True)

    def only(self, mask: Mask) -> int | None:
        """The number of all these threads, if it is one."""
        found = self.numbers[mask]
        return int(found[0]) if found.size and bool((found == found[0]).all()) else None


@dataclass(frozen=True, eq=False)
class Same(Value):
    """The same for all threads; ``key`` says which constant it is, if it certainly is one."""

    key: str = ""


@dataclass(frozen=True, eq=False)
class Each(Value):
    """What each thread computes from where it stands; a number of this type."""

    kind: CType | None = None


@dataclass(eq=False)
class Source:
    """What all threads have each a part of, that is combined by ``op``, once that is known.

    ``name`` has the whole of its ``count`` parts in a program of one thread. All parts begin with
    the constant ``begun``; where it is empty, with something else. ``each`` is what a thread has as
    its part where no loop has combined it. What goes along with an extreme ``follows`` that; it
    ``grows`` where later rounds, or later threads, certainly have greater numbers.
    """

    name: str
    kind: CType
    count: int = 1
    op: str = ""
    begun: str = ""
    variable: Variable | None = None
    each: Each | None = None
    words: str = ""
    dead: bool = False
    follows: Source | None = None
    grows: bool = False


@dataclass(frozen=True, eq=False)
class Share(Value):
    """Which parts of a source each thread has put together, as bits; None where that is none.

    ``nothing`` are the constants that stand where no part is.
    """

    source: Source = field(kw_only=True)
    parts: tuple[int | None, ...] = field(kw_only=True)
    nothing: frozenset[str] = frozenset()


@dataclass(frozen=True, eq=False)
class Shared(Value):
    """An address in shared memory, so many elements behind the beginning of an array."""

    array: Variable = field(kw_only=True)
    kind: CType | None = None
    offset: Numbers = field(kw_only=True)


@dataclass(frozen=True, eq=False)
class State:
    """What locals and shared memory hold somewhere in a kernel."""

    env: dict[Variable, Value]
    cells: dict[Variable, Value]
    single: dict[tuple[Variable, int], Value]


class Kept(Exception):  # noqa: N818  # it says what to do
    """A local is to be kept as one that the program has, whatever is known of it."""

    def __init__(self, variable: Variable) -> None:
        super().__init__(variable.name)
        self.variable = variable


class Worded(Exception):  # noqa: N818  # it says what to do
    """How many blocks there are is to be said in numbers, or in the kernel's own sizes."""


def adds_nothing(source: Source, key: str) -> bool:
    """Whether a constant changes none of what is combined."""
    if source.op in IDENTITIES:
        return key == IDENTITIES[source.op]
    if key and key == source.begun:
        return True
    if source.op not in ("min", "max") or not (key and source.begun):
        return False
    try:
        one, other = float(_number(key)), float(_number(source.begun))
    except ValueError:
        return False
    return one <= other if source.op == "max" else one >= other


def _number(key: str) -> str:
    return key.replace("INFINITY", "inf").replace("FLT_MAX", "3.4028234663852886e38")


def combined(one: Share, other: Share, op: str, mask: Mask) -> Share:
    """What threads have that combine these two. Raises NotLegal where that is not a reduction."""
    source = one.source
    if source is not other.source or source.dead:
        raise NotLegal("what its threads combine are not parts of one reduction")
    if source.op != op:
        raise NotLegal("its threads combine their parts by another operation")
    again = op in IDEMPOTENT
    parts: list[int | None] = []
    for own, also, active in zip(one.parts, other.parts, mask, strict=True):
        lost = own is None or also is None or (not again and own & also)
        parts.append(None if lost or not active else own | also)  # type: ignore[operator]
    nothing = one.nothing | other.nothing
    where = one.where & other.where & mask
    return Share(one.form, where, source=source, parts=tuple(parts), nothing=nothing)


def whole(share: Share, mask: Mask) -> bool:
    """Whether all these threads have everything."""
    source, full = share.source, (1 << share.source.count) - 1
    if source.dead or (not source.op and source.count > 1):
        return False
    if not all(adds_nothing(source, key) for key in share.nothing):
        return False
    return all(p == full for p, m in zip(share.parts, mask, strict=False) if m)


def chosen(value: Value, places: Numbers, mask: Mask) -> Value:
    """What threads get who take what others have, at these places."""
    inside = mask & (places >= 0) & (places < len(value.where))
    at = np.where(inside, places, 0)
    where = inside & value.where[at]
    match value:
        case Known(numbers=numbers):
            return replace(value, where=where, numbers=numbers[at])
        case Share(parts=parts):
            taken = tuple(parts[int(i)] if w else None for i, w in zip(at, where, strict=True))
            return replace(value, where=where, parts=taken)
    return replace(value, where=where)


def mentions(form: Expr, *names: str) -> bool:
    return any(isinstance(e, Name) and e.name in names for e in every(form))


def declared(statement: Statement | None) -> tuple[Variable, ...]:
    """The variables that a statement declares."""
    return statement.variables if isinstance(statement, Declare) else ()


def put(name: Expr, form: Expr) -> Statement:
    """The assignment of a value to a local."""
    return Evaluate(None, 0, Assign(None, "=", name, form))


def number(value: int) -> Expr:
    return Literal(None, str(value), value)


def digit_of(whole: Expr, stride: int, extent: int | None) -> Expr:
    """A digit of a number in the range of ``extent``; the highest one has None."""
    found = Binary(None, "/", whole, number(stride)) if stride > 1 else whole
    return Binary(None, "%", found, number(extent)) if extent is not None else found


def joined(found: Sequence[Value]) -> tuple[Local, ...]:
    """The locals that any of these asks for, each once, in their order."""
    return tuple({one.name: one for value in found for one in value.locals}.values())


def everywhere(found: Sequence[Value], where: Mask) -> Mask:
    """The threads for which all of these are certain."""
    for value in found:
        where = where & value.where
    return where


def computed(expr: Expr, given: list[Numbers]) -> Numbers | None:
    """What an operator makes of numbers; None where that is not followed."""
    match expr, given:
        case Binary(op="/" | "%" as op), [one, other]:
            if bool((other <= 0).any()) or bool((one < 0).any()):
                return None
            return one // other if op == "/" else one % other
        case Binary(op="<<" | ">>" as op), [one, other]:
            if bool((other < 0).any()) or bool((other > 31).any()):
                return None
            found: Numbers = _OPERATORS[op](one, other)
            return found
        case Binary(op=op), [one, other] if op in _OPERATORS:
            return np.asarray(_OPERATORS[op](one, other), np.int64)
        case Unary(op="-"), [one]:
            return -one
        case Unary(op="+"), [one]:
            return one
        case Unary(op="~"), [one]:
            return ~one
        case Unary(op="!"), [one]:
            return np.asarray(one == 0, np.int64)
        case Cast(type=type_), [one]:
            kind = named(type_, {})
            return one if kind.integral and (kind.size or 0) >= 4 else None
        case Call(function=name), [one, other]:
            plain = bare_name(name)
            if plain in ("min", "max"):
                return np.minimum(one, other) if plain == "min" else np.maximum(one, other)
    return None

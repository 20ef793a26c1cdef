"""P19, whole quotients: ``int c = floorf((float)x / n)`` becomes ``int c = x / n``.

How an image is enlarged is often said in floats. A quotient of whole numbers tells rules which
items have the same one, and costs a shift once ``n`` is a number.

Let ``x`` and ``n`` be whole, ``x >= 0``, ``n >= 1`` and ``x + n <= 2^24``, so that floats hold
both, and ``v`` the next whole number above their quotient. The quotient is ``1 / n`` below it or
more, which is at least ``v / 2^24``, since ``n v <= x + n``. Half of the step from ``v`` to the
float before it is less than that. So no quotient is rounded up to ``v``, neither at once nor by a
double first. The launch is asked for these sizes. A division by an approximate reciprocal is none
of these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from optiml_magic.kernels.editing import Node, edited, text
from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Cast,
    Expr,
    Lambda,
    Literal,
    Name,
    Unread,
    every,
)
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.cutting import uses
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.grids import form_of, needed, said_alike
from optiml_magic.kernels.primitives.sizes import value
from optiml_magic.kernels.tree import Declare, Variable, walk
from optiml_magic.kernels.types import CType, named
from optiml_magic.source.directives import RequireDirective
from optiml_magic.source.expressions import parse_expression

_EXACT = 2**24  # up to which a float holds all whole numbers
_WORD = 4
_DOWN = ("floor", "floorf", "trunc", "truncf")
_TO_INT = ("__float2int_rd", "__float2int_rz", "__double2int_rd", "__double2int_rz")


@dataclass(frozen=True)
class _Quotient:
    """A quotient of an index, by a number or a size; ``more`` is added to it."""

    index: Expr
    axis: str
    by: int | str
    more: int = 0


@primitive
def floored(kernel: Kernel) -> Kernel:
    """The kernel with such quotients of indices in the grid; there must be one."""
    found = _Finder(kernel).found()
    if not found:
        raise NotLegal("no quotient of an index is rounded down")
    swaps: dict[Node, Node] = {}
    asked = dict[str, None]()
    for node, quotient in found:
        whole: Expr = Binary(None, "/", quotient.index, text(str(quotient.by)))
        if quotient.more:
            op = "-" if quotient.more < 0 else "+"
            whole = Binary(None, op, whole, text(str(abs(quotient.more))))
        made = isinstance(node, Call) and node.function in _TO_INT
        swaps[node] = Cast(None, "int", whole) if made else whole
        asked |= dict.fromkeys(_asked(kernel, quotient))
    return kernel.rewritten(
        edited(kernel.function.body, swaps),
        directives=[RequireDirective(parse_expression(one)) for one in asked],
        tidy=False,
    )


def _asked(kernel: Kernel, quotient: _Quotient) -> Iterator[str]:
    """What must hold of the sizes, so that the quotient is exact."""
    count = needed(kernel, quotient.axis, loads=True)
    most = _EXACT - abs(quotient.more)
    if isinstance(quotient.by, str):
        yield f"{quotient.by} >= 1"
        yield f"{count} + {quotient.by} <= {most}"
    else:
        yield f"{count} <= {most - quotient.by}"


class _Finder:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.effects = Effects(kernel)
        self.types = kernel.reading.types
        declared = [p.name for p in kernel.function.parameters]
        for statement in walk(kernel.function.body):
            if isinstance(statement, Declare):
                declared += [variable.name for variable in statement.variables]
        self.once = {name for name, number in Counter(declared).items() if number == 1}

    def found(self) -> list[tuple[Expr, _Quotient]]:
        """What is rounded to a whole number, by what it is. None of them is in another."""
        return [
            (node, quotient)
            for node, kind in self._converted()
            if kind is not None  # nothing is known of what is never computed
            and (quotient := self._rounded(node)) is not None
            and _holds(kind)
            and (kind.signed or quotient.more >= 0)
            and self._fits(quotient)
        ]

    def _converted(self) -> Iterator[tuple[Expr, CType | None]]:
        """Floats that become whole numbers, or calls that make them such, with their new types."""
        for statement in walk(self.kernel.function.body):
            for variable in statement.variables if isinstance(statement, Declare) else ():
                if variable.value is not None and not variable.type.depth:
                    yield variable.value, named(variable.type.base, self.kernel.unit.aliases)
            for top in statement.expressions:
                inside = [*every(top)]
                for expr in () if any(isinstance(e, Lambda | Unread) for e in inside) else inside:
                    match expr:
                        case Cast(operand=operand):
                            yield operand, self.types.get(expr)
                        case Call(function=name, arguments=(_,)) if name in _TO_INT:
                            yield expr, self.types.get(expr)
                        case Assign(op="=", target=target, value=given):
                            yield given, self.types.get(target)

    def _rounded(self, expr: Expr) -> _Quotient | None:
        match expr:
            case Call(function=name, arguments=(inner,)) if name in _DOWN or name in _TO_INT:
                return None if self.kernel.unit.called(name, 1) else self._quotient(inner)
            case Binary(op="+" | "-" as op, left=Call(function=name) as left, right=right):
                before = self._rounded(left) if name in _DOWN else None
                more = _whole_number(right)
                if before is None or more is None or not _is_float(self.types.get(expr)):
                    return None
                return _Quotient(before.index, before.axis, before.by, -more if op == "-" else more)
        return self._quotient(expr) if _is_float(self.types.get(expr)) else None

    def _quotient(self, expr: Expr) -> _Quotient | None:
        """A float that is the quotient of an index by a size or a number, rounded to nearest."""
        if not _is_float(self.types.get(expr)):
            return None
        match expr:
            case Cast(operand=operand):
                return self._quotient(operand)
            case Name(variable=Variable() as local):
                return self._quotient(given) if (given := self._given(local)) is not None else None
            case Binary(op="/", left=left, right=right):
                index, by = self._whole(left), self._by(right)
            case Binary(op="*", left=left, right=Literal(value=float() as part)) if part > 0:
                index, by = self._whole(left), round(1 / part)
                if by * part != 1 or by & (by - 1):
                    return None
            case _:
                return None
        axis = self._axis(index) if index is not None else ""
        return _Quotient(index, axis, by) if index is not None and axis and by is not None else None

    def _given(self, local: Variable) -> Expr | None:
        """What a local always is; its name means it alone."""
        plain = not local.type.depth and not local.array and local.name in self.once
        return local.value if plain and local in self.effects.lasting else None

    def _whole(self, expr: Expr) -> Expr | None:
        """The whole number that a float is, in text that has the same value elsewhere."""
        kind = self.types.get(expr)
        if kind is not None and kind.integral:
            return expr
        match expr:
            case Cast(operand=operand) if _is_float(kind):
                return self._whole(operand)
            case Name(variable=Variable() as local) if _is_float(kind):
                given = self._given(local)
                return self._whole(given) if given is not None else None
        return None

    def _by(self, expr: Expr) -> int | str | None:
        """A size that never changes, or a number; floats too."""
        number = _whole_number(expr)
        if number is not None:
            return number if number >= 1 else None
        match self._whole(expr):
            case Name(name=name, variable=Variable(storage="parameter") as size):
                kind = named(size.type.base, self.kernel.unit.aliases)
                plain = _holds(kind) and not size.type.depth and name in self.once
                still = size not in self.effects.changing and size not in self.effects.addressed
                return name if plain and still and said_alike(self.kernel, [name]) else None
        return None

    def _axis(self, expr: Expr) -> str:
        """The axis along which an expression is the thread's index in the grid; or nothing."""
        if isinstance(expr, Name) and expr.variable is not None:
            given = self._given(expr.variable)
            return self._axis(given) if given is not None else ""
        return next((a for a in "xyz" if expr in uses(self.kernel, a).whole), "")

    def _fits(self, quotient: _Quotient) -> bool:
        """Whether the threads that work are known, and few enough at the measured sizes."""
        count = needed(self.kernel, quotient.axis, loads=True)
        form = form_of(count.tree, self.kernel.reading.symbols) if count is not None else None
        if form is None or count is None or not said_alike(self.kernel, count.names):
            return False
        most, by = value(self.kernel, form), quotient.by
        given = self.kernel.facts.scalars if self.kernel.facts is not None else {}
        size = by if isinstance(by, int) else int(given.get(by, 1))
        return size >= 1 and (most or 0) + size + abs(quotient.more) <= _EXACT


def _is_float(kind: CType | None) -> bool:
    return kind is not None and kind.floating and kind.lanes == 1 and (kind.size or 0) >= _WORD


def _holds(kind: CType | None) -> bool:
    """Whether a type has all whole numbers that are not negative and that a float holds."""
    return kind is not None and kind.kind == "int" and kind.lanes == 1 and (kind.size or 0) >= _WORD


def _whole_number(expr: Expr) -> int | None:
    match expr:
        case Cast(operand=operand):
            return _whole_number(operand)
        case Literal(value=int() | float() as number) if number == int(number):
            return int(number)
    return None

"""The expressions of a kernel, as C++ has them; ``span`` is in bytes of the preprocessed text.

A node is equal to itself alone, so that facts can be kept beside each; an edited one has no span.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from optiml_magic.kernels.tree import Function, Variable

Span = tuple[int, int]


@dataclass(frozen=True, slots=True, eq=False)
class Expr:
    """``span`` is None for a node that no text has."""

    span: Span | None

    @property
    def parts(self) -> tuple[Expr, ...]:
        """The operands, in the order of the text."""
        return ()


@dataclass(frozen=True, slots=True, eq=False)
class Literal(Expr):
    """A number, a character, ``true``, ``nullptr`` or a string; ``value`` is None for the last."""

    text: str
    value: int | float | None


@dataclass(frozen=True, slots=True, eq=False)
class Name(Expr):
    """``variable`` is None where the name is none of a parameter or a local."""

    name: str
    variable: Variable | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Member(Expr):
    """``base.field`` or ``base->field``."""

    base: Expr
    field: str
    arrow: bool = False

    @property
    def parts(self) -> tuple[Expr, ...]:
        return (self.base,)


@dataclass(frozen=True, slots=True, eq=False)
class Index(Expr):
    """``base[index]``."""

    base: Expr
    index: Expr

    @property
    def parts(self) -> tuple[Expr, ...]:
        return (self.base, self.index)


@dataclass(frozen=True, slots=True, eq=False)
class Unary(Expr):
    """``- + ! ~``, ``*`` of a pointer and ``&`` of a place."""

    op: str
    operand: Expr

    @property
    def parts(self) -> tuple[Expr, ...]:
        return (self.operand,)


@dataclass(frozen=True, slots=True, eq=False)
class Binary(Expr):
    """Arithmetic, comparisons, ``&&``, ``||`` and the comma."""

    op: str
    left: Expr
    right: Expr

    @property
    def parts(self) -> tuple[Expr, ...]:
        return (self.left, self.right)


@dataclass(frozen=True, slots=True, eq=False)
class Choice(Expr):
    """``test ? then : other``."""

    test: Expr
    then: Expr
    other: Expr

    @property
    def parts(self) -> tuple[Expr, ...]:
        return (self.test, self.then, self.other)


@dataclass(frozen=True, slots=True, eq=False)
class Cast(Expr):
    """A conversion; ``spelled`` is how it is written: ``(``, ``static_cast``, ``int(`` ..."""

    type: str
    operand: Expr
    spelled: str = "("

    @property
    def parts(self) -> tuple[Expr, ...]:
        return (self.operand,)


@dataclass(frozen=True, slots=True, eq=False)
class Call(Expr):
    """A call of a function by name, with explicit template arguments where it has them.

    ``values`` are those that are values, None for a type. ``callee`` is what is called instead: a
    local, a lambda on the spot, or a function of a type. ``arrow`` leads to the receiver.
    """

    function: str
    arguments: tuple[Expr, ...]
    template: tuple[str, ...] = ()
    values: tuple[Expr | None, ...] = ()
    receiver: Expr | None = None
    callee: Expr | None = None
    arrow: bool = False

    @property
    def parts(self) -> tuple[Expr, ...]:
        called = (part for part in (self.receiver, self.callee) if part is not None)
        return (*called, *self.arguments)


@dataclass(frozen=True, slots=True, eq=False)
class Assign(Expr):
    """``target op value``, where ``op`` is ``=``, ``+=`` ..."""

    op: str
    target: Expr
    value: Expr

    @property
    def parts(self) -> tuple[Expr, ...]:
        return (self.target, self.value)


@dataclass(frozen=True, slots=True, eq=False)
class Step(Expr):
    """``++x`` and its kin."""

    op: str
    target: Expr
    prefix: bool

    @property
    def parts(self) -> tuple[Expr, ...]:
        return (self.target,)


@dataclass(frozen=True, slots=True, eq=False)
class Braces(Expr):
    """``{a, b}``, or ``float2{a, b}`` with a type."""

    type: str
    members: tuple[Expr, ...]

    @property
    def parts(self) -> tuple[Expr, ...]:
        return self.members


@dataclass(frozen=True, slots=True, eq=False)
class Lambda(Expr):
    """A lambda; ``copies`` where it has the values that its captures had when it was made."""

    function: Function
    copies: bool
    mentions: tuple[Expr, ...] = ()

    @property
    def parts(self) -> tuple[Expr, ...]:
        return self.mentions


@dataclass(frozen=True, slots=True, eq=False)
class Unread(Expr):
    """An expression beyond this reading; ``mentions`` are the names and calls in it."""

    text: str
    mentions: tuple[Expr, ...] = ()

    @property
    def parts(self) -> tuple[Expr, ...]:
        return self.mentions


def every(expression: Expr) -> Iterator[Expr]:
    """An expression and all that it consists of, each before its parts."""
    stack = [expression]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(current.parts))


#: Comparisons with their sides exchanged.
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}

BUILTINS = frozenset(
    f"{name}.{axis}" for name in ("threadIdx", "blockIdx", "blockDim", "gridDim") for axis in "xyz"
)


def builtin(expression: Expr) -> str:
    """``threadIdx.x`` for such an expression, an empty string for any other."""
    match expression:
        case Member(base=Name(name=name, variable=None), field=field):
            spelled = f"{name}.{field}"
            return spelled if spelled in BUILTINS else ""
    return ""


def is_logical(expression: Expr) -> bool:
    return isinstance(expression, Binary) and expression.op in ("&&", "||")


def conjuncts(test: Expr) -> Iterator[Expr]:
    """The parts of a test joined by ``&&``, in their order."""
    if isinstance(test, Binary) and test.op == "&&":
        yield from conjuncts(test.left)
        yield from conjuncts(test.right)
    else:
        yield test

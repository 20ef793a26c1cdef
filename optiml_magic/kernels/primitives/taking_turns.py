"""Loops whose rounds take turns: what is one thing in even rounds and another one in odd ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Expr,
    Literal,
    Name,
    Unary,
)
from optiml_magic.kernels.functions import bare
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.effects import Effects, counts_up, declared_in
from optiml_magic.kernels.primitives.naming import speller_before
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    Evaluate,
    Leave,
    Loop,
    Statement,
    Variable,
    body_of,
    expressions,
    walk,
)


@dataclass(frozen=True, eq=False)
class Turns:
    """A loop that counts up by one, and the statements of the block that it stands in."""

    kernel: Kernel
    axis: Axis
    block: tuple[Statement, ...]

    @property
    def loop(self) -> Loop:
        return self.axis.node

    @property
    def held(self) -> set[Variable]:
        """Locals of the block: they begin anew where the loop does."""
        return {v for s in self.block if isinstance(s, Declare) for v in s.variables}

    def parts(self) -> Iterator[tuple[Sequence[Expr], Callable[[int], str]]]:
        """The expressions before the loop, in it and behind it, outermost first.

        With them goes what says there in words the parity of rounds so far and a number.
        """
        at = self.block.index(self.loop)
        yield self._inside(self.block[:at]), lambda number: str(number % 2)
        yield self._inside((self.loop,)), self._in_round
        yield self._inside(self.block[at + 1 :]), self._after

    def _inside(self, statements: Sequence[Statement]) -> list[Expr]:
        return [e for s in statements for e in expressions(s)]

    def _in_round(self, number: int) -> str:
        axis = self.axis
        assert axis.variable is not None
        assert axis.start is not None
        if axis.start.value is None:
            raise NotLegal("the number of the first round is not known", self.loop.line)
        name = axis.variable.name
        if any(v.name == name for v in declared_in(self.loop.body)):
            raise NotLegal(f"`{name}` means something else in a round too", self.loop.line)
        return f"({name} + 1) & 1" if (axis.start.value + number) % 2 else f"{name} & 1"

    def _after(self, number: int) -> str:
        axis, kernel = self.axis, self.kernel
        assert axis.start is not None
        assert axis.stop is not None
        count = axis.stop - axis.start
        if not Ranges(axis.guard, kernel.reading.symbols).nonnegative(count):
            zero = Polynomial.constant(0)
            count = kernel.reading_operations().extreme("max", count, zero, axis.guard)
        if count.value is not None:
            return str((count.value + number) % 2)
        speller = speller_before(kernel, Effects(kernel), self.loop)
        words = speller.form(speller.local(count))
        return f"({words} + 1) & 1" if number % 2 else f"({words}) & 1"


def turning(kernel: Kernel) -> Iterator[Turns]:
    """The loops of a kernel that may be such."""
    effects = Effects(kernel)
    blocks = [s.body for s in walk(kernel.function.body) if isinstance(s, Block)]
    for loop, axis in kernel.axes().items():
        block = next((body for body in blocks if loop in body), None)
        left = any(isinstance(s, Leave) for s in walk(loop.body))
        if block and counts_up(axis, effects) and not left and body_of(loop.body):
            yield Turns(kernel, axis, block)


def exchanged(statements: Sequence[Statement]) -> tuple[Variable, Variable] | None:
    """The two locals that these statements exchange, and no more."""
    match [_copied(s) for s in statements]:
        case [None]:
            match statements[0]:
                case Evaluate(expression=Call(function=name, arguments=(Name() as a, Name() as b))):
                    return _two(a.variable, b.variable) if bare(name) == "swap" else None
        case [(kept, begun), (one, other), (last, held)]:
            if (begun, other, held) == (one, last, kept):
                return _two(one, other)
    return None


def _copied(statement: Statement) -> tuple[Variable, Variable] | None:
    """What a statement gives the value of another local, and which."""
    match statement:
        case Declare(variables=(Variable(value=Name(variable=Variable() as other)) as one,)):
            return one, other
        case Evaluate(
            expression=Assign(
                op="=", target=Name(variable=Variable() as one),
                value=Name(variable=Variable() as other),
            )
        ):  # fmt: skip
            return one, other
    return None


def _two(one: Variable | None, other: Variable | None) -> tuple[Variable, Variable] | None:
    if one is None or other is None or one is other:
        return None
    return (one, other) if one.type == other.type and not one.type.volatile else None


def turned(statement: Statement) -> Variable | None:
    """The local that a statement turns from 0 to 1 and back."""
    match statement:
        case Evaluate(expression=Assign(op="^=", target=Name() as own, value=Literal(value=1))):
            return own.variable
        case Evaluate(expression=Assign(op="=", target=Name() as own, value=value)):
            return own.variable if opposite(value) is own.variable else None
    return None


def opposite(expr: Expr) -> Variable | None:
    """The local of which an expression is the other number of 0 and 1."""
    match expr:
        case Binary(op="-" | "^", left=Literal(value=1), right=Name(variable=variable)):
            return variable
        case Binary(op="^", left=Name(variable=variable), right=Literal(value=1)):
            return variable
        case Unary(op="!", operand=Name(variable=variable)):
            return variable
    return None

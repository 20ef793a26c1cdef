"""Exponentials of places taken apart, as ``e^(i + j)`` is ``e^i e^j``.

One of what memory holds is not, since its parts may be out of range where the whole is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import reduce

from optiml_magic.kernels.expressions import Binary, Call, Cast, Expr, Name, Unary
from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.effects import Effects, names
from optiml_magic.kernels.primitives.powers import RAISING
from optiml_magic.kernels.tree import Declare, Variable

EXPONENTIALS = frozenset(RAISING)


@dataclass(frozen=True)
class Exponentials:
    """Exponentials in the rounds of a loop.

    Attributes:
        lets: the locals that a round declares.
        moving: what is another number in each round.
        touching: the expressions that touch memory.
    """

    kernel: Kernel
    effects: Effects
    lets: Mapping[Variable, Declare]
    moving: AbstractSet[Variable]
    touching: AbstractSet[Expr]

    def value(self, variable: Variable) -> Expr:
        """What a local of a round is declared with."""
        value = self.lets[variable].variables[0].value
        assert value is not None
        return value

    def means(self, variable: Variable, name: Expr) -> bool:
        """Whether a local of a round stands for what it is declared with, in the same type."""
        types = self.kernel.reading.types
        return variable in self.lets and types.get(name) == types.get(self.value(variable))

    def of(self, whole: Call, power: Expr) -> Iterator[Expr]:
        """The parts that do not move and those that do; the whole where it has but one of these."""
        terms = [*self._terms(power)]
        outer = [term for term in terms if not self.moving & names([term])]
        inner = [term for term in terms if term not in outer]
        if not outer or not inner or not self._is_place(power):
            yield whole
            return
        for some in (outer, inner):
            yield replace(whole, span=None, arguments=(reduce(_plus, some),))

    def _terms(self, value: Expr) -> Iterator[Expr]:
        """What adds up to a number, each part by itself."""
        kind = self.kernel.reading.types.get(value)
        if kind is None or not (kind.floating or (kind.integral and kind.signed)):
            yield value
            return
        match value:
            case Binary(op="+", left=left, right=right):
                yield from self._terms(left)
                yield from self._terms(right)
            case Binary(op="-", left=left, right=right):
                yield from self._terms(left)
                yield from (Unary(None, "-", term) for term in self._terms(right))
            case Unary(op="-", operand=operand):
                yield from (Unary(None, "-", term) for term in self._terms(operand))
            case Binary(op="/", left=left, right=right) if kind.floating:
                yield from (Binary(None, "/", term, right) for term in self._terms(left))
            case Binary(op="*", left=left, right=right):
                some = [*self._terms(left)]
                if len(some) > 1:
                    yield from (Binary(None, "*", term, right) for term in some)
                else:
                    yield from (Binary(None, "*", left, term) for term in self._terms(right))
            case Cast(operand=operand) if kind.floating:
                yield from (replace(value, span=None, operand=t) for t in self._terms(operand))
            case Name(variable=Variable() as variable) if variable in self.lets:
                terms = [*self._terms(self.value(variable))]
                same = self.means(variable, value)
                yield from terms if len(terms) > 1 and same else [value]
            case _:
                yield value

    def _is_place(self, value: Expr) -> bool:
        """Whether a number is made of indices, counters and scalars alone."""
        todo, seen = [value], set[Variable]()
        while todo:
            expr = todo.pop()
            if expr in self.touching:
                return False
            todo += expr.parts
            variable = expr.variable if isinstance(expr, Name) else None
            if variable is None or variable in seen or variable.storage == "parameter":
                continue
            seen.add(variable)
            if variable in self.effects.lasting and variable.value is not None:
                todo.append(variable.value)
            elif variable not in self._counters:
                return False
        return True

    @property
    def _counters(self) -> set[Variable]:
        return {a.variable for a in self.kernel.axes().values() if a.variable is not None}


def _plus(left: Expr, right: Expr) -> Expr:
    return Binary(None, "+", left, right)

"""Sums of products with powers, and a round of a loop followed in them.

What is one value is one form, however it is spelled: ``exp(a) * exp(b)`` is ``exp(a + b)``, and
``exp(0)`` is 1. A local that a comparison replaces is followed for one outcome at a time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Cast,
    Choice,
    Expr,
    Index,
    Literal,
    Member,
    Name,
    Step,
    Unary,
    every,
)
from optiml_magic.kernels.functions import COMBINING, FUSED, READERS, bare, pure
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.effects import names
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    Evaluate,
    If,
    Statement,
    Variable,
    expressions,
)
from optiml_magic.kernels.types import named

Factors = tuple[str, ...]
Power = tuple[tuple[Factors, float], ...]
Term = tuple[Power, Factors]
#: The functions that raise one base to a power; the last is what ``fast`` makes of the others.
RAISING = {"exp": "e", "expf": "e", "__expf": "e", "exp2": "2", "exp2f": "2", "fast_exp2": "2"}
_OF_TWO = "ex2.approx.ftz.f32"
_GREATER = {">": True, ">=": True, "<": False, "<=": False}


def of_library(kernel: Kernel, function: str) -> bool:
    """Whether the text has no other function of this name than the one that ``fast`` writes."""
    return all(
        [e.function for e in expressions(own.body) if isinstance(e, Call)] == [_OF_TWO]
        for own in kernel.unit.called(function, 1)
    )


@dataclass(frozen=True)
class Value:
    """A sum: by powers and factors of each product, how often it is there."""

    terms: tuple[tuple[Term, float], ...] = ()

    @staticmethod
    def of(terms: Iterable[tuple[Term, float]]) -> Value:
        found: dict[Term, float] = {}
        for term, times in terms:
            found[term] = found.get(term, 0.0) + times
        return Value(tuple(sorted((t, n) for t, n in found.items() if n)))

    @staticmethod
    def constant(value: float) -> Value:
        return Value.of([(((), ()), float(value))])

    @staticmethod
    def factor(name: str) -> Value:
        return Value.of([(((), (name,)), 1.0)])

    def __add__(self, other: Value) -> Value:
        return Value.of([*self.terms, *other.terms])

    def __neg__(self) -> Value:
        return Value(tuple((term, -times) for term, times in self.terms))

    def __sub__(self, other: Value) -> Value:
        return self + -other

    def __mul__(self, other: Value) -> Value:
        return Value.of(
            ((_sum((*one[0], *two[0])), tuple(sorted((*one[1], *two[1])))), times * more)
            for one, times in self.terms
            for two, more in other.terms
        )

    def raised(self) -> Value:
        """The base to this power. Raises NotLegal where powers are in it already."""
        if any(power for (power, _), _ in self.terms):
            raise NotLegal("a power of a power is not followed")
        return Value.of([((_sum((factors, n) for (_, factors), n in self.terms), ()), 1.0)])

    @property
    def factors(self) -> frozenset[str]:
        """All that stands in it."""
        plain = {f for (_, factors), _ in self.terms for f in factors}
        return frozenset(plain | {f for (power, _), _ in self.terms for fs, _ in power for f in fs})

    def spelled(self) -> str:
        """The sum as text. Raises NotLegal where it has powers, or parts of a product."""
        words = []
        for (power, factors), times in self.terms:
            if power or times != int(times):
                raise NotLegal("what is summed up is not a plain product")
            count = [] if abs(times) == 1 and factors else [str(int(abs(times)))]
            words.append(("-" if times < 0 else "+", " * ".join([*count, *factors])))
        if not words:
            return "0"
        first = ("-" if words[0][0] == "-" else "") + words[0][1]
        return first + "".join(f" {sign} {product}" for sign, product in words[1:])


def _sum(found: Iterable[tuple[Factors, float]]) -> Power:
    total: dict[Factors, float] = {}
    for factors, times in found:
        total[factors] = total.get(factors, 0.0) + times
    return tuple(sorted((f, n) for f, n in total.items() if n))


def reads(call: Call) -> bool:
    """Whether a call does no more than to compute, or to load."""
    return pure(call.function) or READERS.fullmatch(call.function) is not None


@dataclass
class Following:
    """A round, where a ``greater`` value than that of ``most`` comes, or none does.

    ``moving`` are the locals that are followed; all else is a factor by how it is written. ``top``
    is the value that ``most`` is compared with, once it is known; ``tested`` whether by a branch,
    ``even`` whether a power of nothing is asked for, of a value less itself.
    """

    kernel: Kernel
    most: Variable
    moving: frozenset[Variable]
    greater: bool
    known: dict[Variable, Value]
    top: Value | None = None
    tested: bool = False
    even: bool = False
    raising: list[str] = field(default_factory=list)

    def run(self, statement: Statement) -> None:
        """Follow a statement; raises NotLegal for what is none of sums, products and powers."""
        match statement:
            case Block(body=body):
                for inner in body:
                    self.run(inner)
            case Declare(variables=variables):
                for variable in variables:
                    if variable in self.moving and variable.value is not None:
                        self._check_kept(variable, variable.value)
                        self.known[variable] = self.value(variable.value)
            case Evaluate(expression=Assign(op=op, target=Name(variable=Variable() as local)) as a):
                if local not in self.moving:
                    raise NotLegal("it changes more than what it sums up", statement.line)
                self._check_kept(local, a.value)
                self.known[local] = self._assigned(op, local, self.value(a.value), statement.line)
            case If(before=None, constant=False, test=test, then=then, other=other):
                if self._chosen(test):
                    self.run(then)
                elif other is not None:
                    self.run(other)
            case _:
                raise NotLegal("its rounds do more than to sum up", statement.line)

    def _check_kept(self, local: Variable, value: Expr) -> None:
        """Raise NotLegal where a local of whole numbers does not hold all of a value."""
        kind = named(local.type.base, self.kernel.unit.aliases)
        whole = local.type.base != "auto" and not kind.floating
        if whole and self.kernel.reading.types.get(value) != kind:
            raise NotLegal("it converts to a whole number", local.line)

    def _assigned(self, op: str, local: Variable, value: Value, line: int) -> Value:
        if op == "=":
            return value
        old = self.known.get(local)
        if old is None or op not in ("+=", "-=", "*="):
            raise NotLegal(f"`{local.name}` is changed by {op}", line)
        return old + value if op == "+=" else old - value if op == "-=" else old * value

    def value(self, expr: Expr) -> Value:
        """An expression of the round; raises NotLegal where it is not followed."""
        match expr:
            case Literal(value=int() | float() as number) if number in (0, 1):
                return Value.constant(number)
            case Name(variable=Variable() as variable) if variable in self.moving:
                if variable not in self.known:
                    raise NotLegal(f"`{variable.name}` has no value yet")
                return self.known[variable]
            case Unary(op="-", operand=operand):
                return -self.value(operand)
            case Binary(op="+", left=left, right=right):
                return self.value(left) + self.value(right)
            case Binary(op="-", left=left, right=right):
                return self.value(left) - self.value(right)
            case Binary(op="*", left=left, right=right):
                return self.value(left) * self.value(right)
            case Choice(test=test, then=then, other=other) if self.moving & names([test]):
                return self.value(then if self._chosen(test) else other)
            case Call(function=function, arguments=(inner,)) if bare(
                function
            ) in RAISING and of_library(self.kernel, function):
                self.raising.append(function)
                power = self.value(inner)
                self.even |= not power.terms
                return power.raised()
            case Call(function=function, arguments=(one, two, three)) if bare(function) in FUSED:
                return self.value(one) * self.value(two) + self.value(three)
            case Call(function=function, arguments=(one, two)) if self._extreme(function, expr):
                return self._most(self.value(one), self.value(two))
            case Cast(type=kind, operand=operand) if self.moving & names([expr]):
                if not named(kind, self.kernel.unit.aliases).floating:
                    raise NotLegal("it converts to a whole number")
                return self.value(operand)
        return self._apart(expr)

    def _extreme(self, function: str, expr: Expr) -> bool:
        return COMBINING.get(bare(function)) == "max" and bool(self.moving & names([expr]))

    def _apart(self, expr: Expr) -> Value:
        """What no local that is followed stands in: a factor, by its text."""
        parts = [*every(expr)]
        calls = [e for e in parts if isinstance(e, Call)]
        if self.moving & names([expr]) or any(isinstance(e, Assign | Step) for e in parts):
            raise NotLegal("its rounds do more than to sum up")
        other = [c.function for c in calls if not reads(c)]
        if other:
            raise NotLegal(f"it calls `{other[0]}`")
        words = self.kernel.spelled(expr)
        whole = isinstance(expr, Name | Literal | Index | Member | Call)
        return Value.factor(words if whole else f"({words})")

    def _most(self, one: Value, other: Value) -> Value:
        own = Value.factor(self.most.name)
        if own not in (one, other):
            raise NotLegal("another value than the greatest is compared")
        self._compared(other if one == own else one)
        assert self.top is not None
        return self.top if self.greater else own

    def _chosen(self, test: Expr) -> bool:
        """Whether a test holds, which asks for what is greater."""
        own = Value.factor(self.most.name)
        if isinstance(test, Binary) and test.op in _GREATER:
            sides = self.value(test.left), self.value(test.right)
            if own in sides:
                turned = sides[0] == own
                self._compared(sides[1] if turned else sides[0])
                self.tested = True
                return self.greater == (_GREATER[test.op] != turned)
        raise NotLegal("a branch asks for more than what is greater")

    def _compared(self, value: Value) -> None:
        if self.top not in (None, value) or self.most.name in value.factors:
            raise NotLegal("several values are compared with the greatest")
        self.top = value

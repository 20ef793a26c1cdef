"""What passes add for each key: a power of how far it is below the maximum, and the rest."""

from __future__ import annotations

from collections.abc import Iterator

from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Cast,
    Choice,
    Expr,
    Literal,
    Name,
    every,
)
from optiml_magic.kernels.functions import bare as bare_name
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.effects import Effects, declared_in, names
from optiml_magic.kernels.primitives.naming import type_of
from optiml_magic.kernels.primitives.passes import Passes, Sum
from optiml_magic.kernels.primitives.passes_values import floating
from optiml_magic.kernels.primitives.powers import RAISING, of_library
from optiml_magic.kernels.tree import Variable
from optiml_magic.kernels.types import named

Factors = tuple[list[Expr], list[Expr]]  # that multiply, and that divide
FLOATS = ("float", "double")
_ROOTS = frozenset({"sqrtf", "sqrt", "rsqrtf", "rsqrt", "__fsqrt_rn", "__frsqrt_rn"})


class Terms:
    """The terms of these passes, where ``late`` is what is known behind one of them alone.

    ``raising`` is the function that takes powers, and what it takes of a difference, as a format.
    """

    def __init__(self, passes: Passes, late: frozenset[Variable]) -> None:
        self.passes, self.kernel, self.late = passes, passes.kernel, late
        self.raising: tuple[str, str] | None = None

    def parts(self, one: Sum) -> tuple[Factors, Factors]:
        """The factors of what a pass adds but for the power, and those that are known late."""
        own: Factors = ([], [])
        late: Factors = ([], [])
        powers = 0
        inner = declared_in(self.passes.first)
        for expr, under in factors(self.kernel, one.value):
            asked = names([expr])
            if self.passes.most in asked:
                self._raise(expr)
                powers += 1 + under
            elif asked & self.late:
                steady = {*self.late, *self.kernel.function.parameters}
                if asked & inner or not asked <= steady or loads(self.kernel, expr):
                    raise NotLegal("what is known behind a pass is in what it adds")
                late[under].append(expr)
            else:
                own[under].append(expr)
        if self.passes.most is not None and powers != 1:
            raise NotLegal("it adds what no power of the difference multiplies", one.target.line)
        kind = type_of(self.kernel, one.target).name
        whole = [e for e in (*own[0], *own[1], *late[0], *late[1]) if not floating(self.kernel, e)]
        if kind not in FLOATS or (self.passes.most is None and whole):
            raise NotLegal(f"`{one.target.name}` is not a sum of floats", one.target.line)
        return own, late

    def _raise(self, expr: Expr) -> None:
        """Note how a power is raised, which is the same for all of them."""
        passes = self.passes
        match self._bare(expr):
            case Call(function=function, arguments=(power,)) if bare_name(
                function
            ) in RAISING and of_library(self.kernel, function):
                found = self._difference(self._bare(power))
            case _:
                raise NotLegal("it does more with the maximum than to take powers")
        if self.raising not in (None, (function, found)):
            raise NotLegal("it takes powers of several kinds")
        self.raising = (function, found)
        assert passes.most is not None

    def _difference(self, expr: Expr) -> str:
        """How a power asks for what its score is below the maximum, as a format."""
        passes = self.passes
        assert passes.score is not None
        match expr:
            case Binary(op="-", left=left, right=Name(variable=own)) if own is passes.most:
                one, other = self._bare(left), self._bare(passes.score)
                same = self.kernel.spelled(one) == self.kernel.spelled(other)
                if same and names([one]) == names([other]):
                    return "{}"
            case Binary(op="*", left=left, right=right):
                for one, other, words in ((left, right, "({}) * %s"), (right, left, "%s * ({})")):
                    asked = names([other])
                    if passes.most not in names([one]) or passes.most in asked:
                        continue
                    steady = not asked & ({*self.late} | declared_in(passes.first))
                    if steady and positive(self.kernel, other):
                        inner = self._difference(self._bare(one))
                        return (words % _spelled(self.kernel, other)).format(inner)
        raise NotLegal("a power is not of what a score is below the maximum")

    def _bare(self, expr: Expr) -> Expr:
        """An expression without conversions to the type of the maximum, which it is of."""
        assert self.passes.most is not None
        own = type_of(self.kernel, self.passes.most)
        while isinstance(expr, Cast) and named(expr.type, self.kernel.unit.aliases) == own:
            expr = expr.operand
        return expr


def positive(kernel: Kernel, expr: Expr) -> bool:
    """Whether an expression is certainly above 0, or no number, and the same wherever it stands.

    By anything else, a power of what lies below the maximum may be as great as can be.
    """
    match expr:
        case Literal(value=int() | float() as value):
            return value > 0
        case Cast(operand=operand) if floating(kernel, expr):
            return positive(kernel, operand)
        case Name(variable=Variable(value=value) as variable) if value is not None:
            return variable in Effects(kernel).lasting and positive(kernel, value)
        case Binary(op="*" | "/", left=left, right=right) if floating(kernel, expr):
            return positive(kernel, left) and positive(kernel, right)
        case Call(function=function, arguments=(one,)) if bare_name(function) in _ROOTS:
            return not loads(kernel, one)
    return False


def product(kernel: Kernel, factors: Factors, first: str = "") -> str:
    """The product of ``first`` and of factors, as text."""
    over, under = ([_spelled(kernel, e) for e in part] for part in factors)
    words = " * ".join([*([first] if first else []), *over]) or "1.0f"
    return "".join([words, *(f" / {w}" for w in under)])


def _spelled(kernel: Kernel, expr: Expr) -> str:
    """A factor, in brackets where it needs them."""
    words = kernel.spelled(expr)
    return f"({words})" if isinstance(expr, Binary | Choice | Assign) else words


def loads(kernel: Kernel, expr: Expr) -> bool:
    inside = {*every(expr)}
    return any(a.node in inside for a in kernel.reading.accesses)


def factors(kernel: Kernel, expr: Expr, *, under: bool = False) -> Iterator[tuple[Expr, bool]]:
    """The factors of a product of floats, and whether each divides."""
    match expr:
        case Binary(op="*" | "/" as op, left=left, right=right) if floating(kernel, expr):
            yield from factors(kernel, left, under=under)
            yield from factors(kernel, right, under=under ^ (op == "/"))
        case _:
            yield expr, under

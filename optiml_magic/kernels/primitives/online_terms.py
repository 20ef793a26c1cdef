"""What passes add for each key: a power of how far it is below the maximum, and the rest."""

from __future__ import annotations

from collections.abc import Iterator

from optiml_magic.kernels.expressions import Assign, Binary, Call, Choice, Expr, Name, every
from optiml_magic.kernels.functions import bare as bare_name
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.effects import declared_in, names
from optiml_magic.kernels.primitives.naming import type_of
from optiml_magic.kernels.primitives.passes import Passes, Sum
from optiml_magic.kernels.primitives.places import bare
from optiml_magic.kernels.primitives.powers import RAISING
from optiml_magic.kernels.tree import Variable

Factors = tuple[list[Expr], list[Expr]]  # that multiply, and that divide
FLOATS = ("float", "double")


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
        for expr, under in _factors(one.value):
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
        if kind not in FLOATS:
            raise NotLegal(f"`{one.target.name}` is no sum of floats", one.target.line)
        return own, late

    def _raise(self, expr: Expr) -> None:
        """Note how a power is raised, which is the same for all of them."""
        passes = self.passes
        match bare(expr):
            case Call(function=function, arguments=(power,)) if bare_name(function) in RAISING:
                found = self._difference(bare(power))
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
                if self.kernel.spelled(bare(left)) == self.kernel.spelled(bare(passes.score)):
                    return "{}"
            case Binary(op="*", left=left, right=right):
                for one, other, words in ((left, right, "({}) * %s"), (right, left, "%s * ({})")):
                    asked = names([other])
                    if passes.most not in names([one]) or passes.most in asked:
                        continue
                    steady = not asked & ({*self.late} | declared_in(passes.first))
                    if steady and not loads(self.kernel, other):
                        inner = self._difference(bare(one))
                        return (words % _spelled(self.kernel, other)).format(inner)
        raise NotLegal("a power is not of what a score is below the maximum")


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


def _factors(expr: Expr, *, under: bool = False) -> Iterator[tuple[Expr, bool]]:
    """The factors of a product of floats, and whether each divides."""
    match expr:
        case Binary(op="*" | "/" as op, left=left, right=right):
            yield from _factors(left, under=under)
            yield from _factors(right, under=under ^ (op == "/"))
        case _:
            yield expr, under

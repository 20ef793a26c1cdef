"""P14, coarser quotients: ``(w * 16 + k) / 64`` of rounds ``k`` below 16 is ``w / 4``.

What is loaded from there, such as the scale of a group of weights, is then the same in all rounds,
for a compiler as well, which does not see it in the sum. The sum is not negative. Its remainder,
``(w * 16 + k) % 16``, is ``k``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from optiml_magic.kernels.editing import Node, edited, text
from optiml_magic.kernels.expressions import Binary, Cast, Choice, Expr, Name, builtin
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, is_counted
from optiml_magic.kernels.primitives.naming import shadowed
from optiml_magic.kernels.primitives.sizes import whole_number
from optiml_magic.kernels.tree import Variable, expressions
from optiml_magic.kernels.types import named

_WORD = 4  # bytes of a whole number, at least
_STEPS = {"+": 1, "-": -1}


@dataclass(frozen=True)
class _Sum:
    """Whole numbers times what they are of, as it is written, and a number."""

    terms: dict[str, tuple[int, Expr]]
    number: int

    def plus(self, other: _Sum, by: int = 1) -> _Sum:
        terms = {**self.terms}
        for words, (factor, atom) in other.terms.items():
            terms[words] = (terms.get(words, (0, atom))[0] + by * factor, atom)
        left = {words: term for words, term in terms.items() if term[0]}
        return _Sum(left, self.number + by * other.number)


@primitive
def coarser(kernel: Kernel) -> Kernel:
    """The kernel with quotients without the counters that do not change them; it has some."""
    finder = _Quotients(kernel)
    swaps: dict[Node, Node] = dict(finder.found())
    if not swaps:
        raise NotLegal("no quotient is the same for all rounds of a loop")
    return kernel.rewritten(edited(kernel.function.body, swaps))


class _Quotients:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        effects = Effects(kernel)
        self.lasting = effects.lasting
        self.shadowed = shadowed(kernel.function)
        self.rounds = dict[Variable, int | None]()  # of counters that go up from 0 or more
        for axis in kernel.axes().values():
            start, step = axis.start, axis.step
            if axis.variable is None or not is_counted(axis, effects) or start is None:
                continue
            if step is not None and (step.value or 0) > 0 and (start.value or 0) >= 0:
                nonnegative = not start.symbols - self._builtins() and all(
                    factor > 0 for _, factor in start.terms
                )
                trips = axis.trips if start.value == 0 and step.value == 1 else None
                if nonnegative:
                    self.rounds[axis.variable] = trips

    def _builtins(self) -> set[str]:
        return {f"{name}.{axis}" for name in ("threadIdx", "blockIdx") for axis in "xyz"}

    def found(self) -> Iterator[tuple[Expr, Expr]]:
        for expr in expressions(self.kernel.function.body):
            whole = self._divisor(expr)
            if whole is None or not isinstance(expr, Binary):
                continue
            kind, top = self.kernel.reading.types.get(expr), self._sum(expr.left)
            if top is None or kind is None or not kind.integral:
                continue
            found = self._rest if expr.op == "%" else self._without
            words = found(top, whole, "" if kind.name == "int" else f"({kind.name})")
            if words is not None:
                yield expr, text(words)

    def _divisor(self, expr: Expr) -> int | None:
        match expr:
            case Binary(op="/" | "%", right=right):
                by = whole_number(self.kernel, right)
                return by if by is not None and by > 1 else None
            case Binary(op=">>", right=right):
                bits = whole_number(self.kernel, right)
                return 1 << bits if bits is not None and 0 < bits < 31 else None
        return None

    def _sum(self, expr: Expr) -> _Sum | None:
        """A sum of counters and places of threads; None for anything else."""
        number = whole_number(self.kernel, expr)
        if number is not None:
            return _Sum({}, number)
        match expr:
            case Cast(operand=operand, type=kind):
                own = named(kind, self.kernel.unit.aliases)
                return self._sum(operand) if own.integral and (own.size or 0) >= _WORD else None
            case Name(variable=Variable() as variable) if variable.name in self.shadowed:
                return None
            case Name(variable=Variable() as variable) if variable in self.rounds:
                return _Sum({variable.name: (1, expr)}, 0)
            case Name(variable=Variable(value=Expr() as value) as variable) if (
                variable in self.lasting and not variable.type.depth and not variable.array
            ):
                own = named(variable.type.base, self.kernel.unit.aliases)
                return self._sum(value) if own.integral and (own.size or 0) >= _WORD else None
            case Binary(op="+" | "-" as op, left=left, right=right):
                one, other = self._sum(left), self._sum(right)
                return one.plus(other, _STEPS[op]) if one and other else None
            case Binary(op="*", left=left, right=right):
                for side, rest in ((left, right), (right, left)):
                    by = whole_number(self.kernel, side)
                    inner = self._sum(rest) if by is not None else None
                    if by is not None and inner is not None:
                        return _Sum({}, 0).plus(inner, by)
            case Binary(op="/" | "%", left=left, right=right):
                by, inner = whole_number(self.kernel, right), self._sum(left)
                if by is None or by < 1 or inner is None or not _positive(inner):
                    return None
                return _Sum({self.kernel.spelled(expr): (1, expr)}, 0)
        return _Sum({builtin(expr): (1, expr)}, 0) if builtin(expr) in self._builtins() else None

    def _rest(self, top: _Sum, by: int, kind: str) -> str | None:
        """The remainder in other words, where what is divided is whole rows and a part of one."""
        inner = [term for term in top.terms.values() if term[0] % by]
        if not _positive(top) or len(inner) == len(top.terms) or top.number >= by:
            return None
        most = [self._most(atom) for _, atom in inner]
        if None in most:
            return None
        last = sum(f * (m or 0) for (f, _), m in zip(inner, most, strict=True))
        if last + top.number >= by:
            return None
        terms = [_times(f, f"{kind}{self._shown(a, kind)}") for f, a in inner]
        terms += [f"{kind}{top.number}"] * (top.number > 0 or not terms)
        words = " + ".join(terms)
        return words if len(terms) == 1 and " " not in words else f"({words})"

    def _without(self, top: _Sum, by: int, kind: str) -> str | None:
        """The quotient in other words, of this type, where some counters do not change it."""
        if not _positive(top):
            return None
        for each in _divisors(by):
            outer = {w: term for w, term in top.terms.items() if term[0] % each == 0}
            inner = [term for w, term in top.terms.items() if w not in outer]
            most = [self._most(atom) for _, atom in inner]
            if not inner or None in most:
                continue
            last = sum(f * (m or 0) for (f, _), m in zip(inner, most, strict=True))
            if last + top.number % each >= each:
                continue
            terms = [_times(f // each, f"{kind}{self._shown(a, kind)}") for f, a in outer.values()]
            terms += [f"{kind}{top.number // each}"] * (top.number >= each or not terms)
            words, rest = " + ".join(terms), by // each
            alone = words if len(terms) == 1 and " " not in words else f"({words})"
            return alone if rest == 1 else f"({alone} / {rest})"
        return None

    def _most(self, atom: Expr) -> int | None:
        """The greatest value of a counter that begins at 0, of a rest or of a thread's place."""
        if isinstance(atom, Binary):
            by = whole_number(self.kernel, atom.right)
            return by - 1 if atom.op == "%" and by is not None else None
        if name := builtin(atom):
            extent = self.kernel.block["xyz".index(name[-1])] if name[0] == "t" else None
            return extent - 1 if extent is not None else None
        trips = self.rounds.get(atom.variable) if isinstance(atom, Name) and atom.variable else None
        return trips - 1 if trips else None

    def _shown(self, atom: Expr, kind: str) -> str:
        own = self.kernel.reading.types.get(atom)
        words = self.kernel.spelled(atom)
        if isinstance(atom, Binary | Choice):
            words = f"({words})"
        return words if kind or (own is not None and own.signed) else f"(int){words}"


def _positive(top: _Sum) -> bool:
    """Whether no part of a sum takes something away."""
    return top.number >= 0 and all(factor > 0 for factor, _ in top.terms.values())


def _divisors(number: int) -> list[int]:
    """Those above 1, the greatest first."""
    small = [n for n in range(1, math.isqrt(number) + 1) if number % n == 0]
    return sorted({*small, *(number // n for n in small)} - {1}, reverse=True)


def _times(factor: int, words: str) -> str:
    return words if factor == 1 else f"{words} * {factor}"

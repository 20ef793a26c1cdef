"""The indices of a launch, each cut where a kernel cuts it: ``t / n`` and ``t % n`` are two digits.

An access over digits tells along which of them its elements are neighbours, whether the launch has
an axis for each or one for all.
"""

from __future__ import annotations

from dataclasses import dataclass

from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.grids import needed_form
from optiml_magic.kernels.symbols import Compare, Condition, Every, Some

_ONE = Polynomial.constant(1)
_AXES = "xyz"


@dataclass(frozen=True)
class Digit:
    """``count`` of them, or as many as the axis has room for where it is the first: None.

    ``weight`` is what one of it adds to the index of its axis.
    """

    name: str
    axis: str
    weight: Polynomial
    count: Polynomial | None

    @property
    def form(self) -> Polynomial:
        return Polynomial.symbol(self.name)


class Digits:
    """The digits of one kernel; raises NotLegal where its axes are not cut in one way."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.symbols = kernel.reading.symbols
        if None in kernel.block:
            raise NotLegal("the extents of its block are not numbers")
        self.widths = {a: w for a, w in zip(_AXES, kernel.block, strict=True) if w is not None}
        self.axes: dict[str, tuple[Digit, ...]] = {}
        for at, axis in enumerate(_AXES):
            used = {f"threadIdx.{axis}", f"blockIdx.{axis}"} & self.symbols.table.keys()
            if at < len(kernel.launch.grid) and used:
                self.axes[axis] = self._cut(axis)
        self._placed: dict[str, Polynomial | None] = {}

    @property
    def every(self) -> tuple[Digit, ...]:
        return tuple(digit for digits in self.axes.values() for digit in digits)

    def bound(self, axis: str) -> Polynomial | None:
        """How many threads along an axis do something, where guards keep all beyond from it."""
        return needed_form(self.kernel, axis)

    def whole(self, axis: str) -> Polynomial:
        """The index along an axis as the sum of its digits."""
        whole = Polynomial()
        if axis not in self.axes:
            raise NotLegal(f"its launch has no axis {axis}")
        for digit in self.axes[axis]:
            whole = whole + digit.weight * digit.form
        return whole

    # -- forms

    def form(self, form: Polynomial) -> Polynomial:
        """A form over digits; raises NotLegal for one that tells more of the launch."""
        found = Polynomial()
        for monomial, factor in self._whole(form).terms:
            product = Polynomial.constant(factor)
            for name in monomial:
                product = product * self._symbol(name)
            found = found + product
        return found

    def condition(self, condition: Condition) -> Condition:
        """A condition over digits, as a form is."""
        match condition:
            case Compare(op=op, form=form, roots=roots):
                return Compare(op, self.form(form), roots)
            case Every(parts=parts):
                return Every(tuple(map(self.condition, parts)))
            case Some(parts=parts):
                return Some(tuple(map(self.condition, parts)))
        return condition

    def _whole(self, form: Polynomial) -> Polynomial:
        """A form with ``@x`` where it had the index of a thread along x."""
        for axis, width in self.widths.items():
            thread, block = f"threadIdx.{axis}", f"blockIdx.{axis}"
            whole = Polynomial.symbol(f"@{axis}")
            if width == 1:
                form = _exchanged(_exchanged(form, thread, Polynomial()), block, whole)
            by = form.coefficient(thread)
            if by is None:
                raise NotLegal("an index is not a sum of where its threads are")
            if by.terms:
                start = Polynomial.symbol(block) * Polynomial.constant(width)
                form = form - by * Polynomial.symbol(thread) + by * (whole - start)
            if {thread, block} & form.symbols:
                raise NotLegal("an index tells blocks from threads")
        return form

    def _symbol(self, name: str) -> Polynomial:
        if name.startswith("@"):
            return self.whole(name[1:])
        if name not in self._placed:
            self._placed[name] = self._operation(name)
        found = self._placed[name]
        if found is None:
            raise NotLegal("an index is not a sum of where its threads are")
        return found

    def _operation(self, name: str) -> Polynomial | None:
        """A symbol that does not depend on the launch, or a quotient or a rest of digits."""
        symbol = self.symbols[name]
        places = {f"{word}.{axis}" for word in ("threadIdx", "blockIdx") for axis in self.axes}
        if not self.symbols.inside(Polynomial.symbol(name)) & places:
            return Polynomial.symbol(name)
        if symbol.op not in ("/", "%") or len(symbol.arguments) != 2:
            return None
        return self.divided(self.form(symbol.arguments[0]), symbol.op, symbol.arguments[1])

    def divided(self, of: Polynomial, op: str, by: Polynomial) -> Polynomial | None:
        """The quotient or the rest of a form over digits, where digits are all of the rest."""
        quotient, rest = _divided(of, by)
        return (quotient if op == "/" else rest) if self._below(rest, by) else None

    def _below(self, rest: Polynomial, by: Polynomial) -> bool:
        """Whether digits are all of those below ``by``: their greatest is one less."""
        most = rest
        for digit in self.every:
            if digit.name in rest.symbols:
                if digit.count is None:
                    return False
                most = _exchanged(most, digit.name, digit.count - _ONE)
        return most == by - _ONE

    # -- cuts

    def _cut(self, axis: str) -> tuple[Digit, ...]:
        """The digits of an axis, those of the largest weight first."""
        weights = [*self._weights(axis), _ONE]
        if len(weights) == 1:
            return (Digit(f"@{axis}0", axis, _ONE, None),)
        found = []
        for at, weight in enumerate(weights):
            count = weights[at - 1].over(weight) if at else None
            if at and count is None:
                raise NotLegal("its index is cut in more than one way")
            found.append(Digit(f"@{axis}{at}", axis, weight, count))
        return tuple(found)

    def _weights(self, axis: str) -> list[Polynomial]:
        """What the index of an axis is divided by."""
        found: dict[Polynomial, None] = {}
        for symbol in self.symbols.table.values():
            if symbol.op in ("/", "%") and len(symbol.arguments) == 2:
                reached = self._reach(symbol.arguments[0], axis)
                by = symbol.arguments[1]
                if reached is not None and len(by.terms) == 1 and by.value != 1:
                    found[reached * by] = None
        return sorted(found, key=lambda f: (-len(f.terms[0][0]), -f.terms[0][1]))

    def _reach(self, form: Polynomial, axis: str) -> Polynomial | None:
        """What the index was divided by to become this; None for anything else."""
        try:
            if self._whole(form) == Polynomial.symbol(f"@{axis}"):
                return _ONE
        except NotLegal:
            return None
        name = next(iter(form.symbols), "")
        symbol = self.symbols.table.get(name)
        if symbol is None or symbol.op != "/" or form != Polynomial.symbol(name):
            return None
        before = self._reach(symbol.arguments[0], axis)
        by = symbol.arguments[1]
        return before * by if before is not None and len(by.terms) == 1 else None


def _divided(form: Polynomial, by: Polynomial) -> tuple[Polynomial, Polynomial]:
    """The terms that a product of sizes divides, divided by it, and the others."""
    if len(by.terms) != 1:
        return Polynomial(), form
    (names, factor), quotient, rest = by.terms[0], {}, {}
    for monomial, times in form.terms:
        left = list(monomial)
        inside = all(name in left and not left.remove(name) for name in names)  # type: ignore[func-returns-value]
        if inside and times % factor == 0:
            quotient[tuple(left)] = times // factor
        else:
            rest[monomial] = times
    return Polynomial.of(quotient), Polynomial.of(rest)


def _exchanged(form: Polynomial, name: str, new: Polynomial) -> Polynomial:
    """A form with another in the place of a symbol, which is in no term twice."""
    by = form.coefficient(name)
    if by is None:
        raise NotLegal("an index is not a sum of where its threads are")
    return form.without([name]) + by * new

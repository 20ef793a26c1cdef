"""Where the blocks of tiles that turn are, and how many there are of them, digit by digit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from optiml_magic.kernels.formulas import expression
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import NotLegal
from optiml_magic.kernels.primitives.digits import Digit
from optiml_magic.kernels.primitives.turns import Turn
from optiml_magic.kernels.spelling import Speller
from optiml_magic.source.expressions import Expression, parse_expression


class Blocks:
    """``extents`` are those of the tile along the digits that it goes along.

    ``names`` are what the kernel calls a place along each digit. ``decoded`` are declarations.
    """

    def __init__(self, parts: Turn, extents: Mapping[Digit, str]) -> None:
        self.parts = parts
        self.kernel = parts.kernel
        self.extents = extents
        self.names: dict[str, str] = {}
        for axis, digits in parts.digits.axes.items():
            for at, digit in enumerate(digits):
                name = f"tile_{axis}{at if len(digits) > 1 else ''}"
                self.names[digit.name] = self.kernel.fresh(name)
        self.decoded = self._decoded()

    def placed(self, digits: Iterable[Digit], row: str, column: str) -> Iterator[str]:
        """Declarations of digits, of an element of the tile."""
        places = {self.parts.load: column, self.parts.store: row}
        for digit in digits:
            block = self.block(digit)
            if digit in places:
                block = f"{block} * {self.extents[digit]} + {places[digit]}"
            yield f"const int {self.names[digit.name]} = {block};"

    def block(self, digit: Digit) -> str:
        """Which block, or which single place, of a digit this is."""
        return self.blocks.get(digit.name, f"blockIdx.{digit.axis}")

    def _decoded(self) -> list[str]:
        """The blocks of an axis that is cut: several numbers in one."""
        self.blocks: dict[str, str] = {}
        made = []
        for axis, digits in self.parts.digits.axes.items():
            first = int(self._count(axis, digits[0]) == "1")  # of which there is nothing to tell
            self.blocks |= {digit.name: "0" for digit in digits[:first] if len(digits) > 1}
            for at, digit in enumerate(digits if len(digits) > 1 else ()):
                if at < first:
                    continue
                below = " * ".join(self._parts(d) for d in digits[at + 1 :])
                found = f"blockIdx.{axis}"
                if below:
                    found += f" / {below}" if at + 2 == len(digits) else f" / ({below})"
                if at > first:
                    found += f" % {self._parts(digit)}"
                name = self.kernel.fresh(f"block_{axis}{at}")
                self.blocks[digit.name] = name
                made.append(f"const int {name} = {found};")
        return made

    def _parts(self, digit: Digit) -> str:
        """How many blocks or places of a digit there are, as the kernel counts them."""
        count = digit.count
        assert count is not None  # only the first digit has none, and nobody divides by that
        spelled = self.speller().form(count)
        if digit in (self.parts.load, self.parts.store):
            side = self.extents[digit]
            return f"(({spelled} + {side} - 1) / {side})"
        return f"({spelled})" if " " in spelled else spelled

    def speller(self, *, wide: bool = False) -> Speller:
        reading = self.kernel.reading
        steady = frozenset(a for a in reading.arrays if a not in reading.written)
        named = {p.name: p.name for p in self.kernel.function.parameters}
        named |= {name: name for name in self.kernel.program.values}
        return Speller(reading.symbols, {**named, **self.names}, wide=wide, steady=steady)

    def grid(self, axis: str) -> Expression:
        made = []
        for digit in self.parts.digits.axes[axis]:
            made.append(self._count(axis, digit))
            if digit in (self.parts.load, self.parts.store):
                made[-1] = f"cdiv({made[-1]}, {self.extents[digit]})"
        return parse_expression(made[0] if len(made) == 1 else " * ".join(map(_factor, made)))

    def _count(self, axis: str, digit: Digit) -> str:
        bound = self.parts.bounds[axis]
        if digit.count is not None:
            return self._spelled(digit.count)
        exact = bound.over(digit.weight)
        if exact is not None:
            return self._spelled(exact)
        return f"cdiv({self._spelled(bound)}, {self._spelled(digit.weight)})"

    def _spelled(self, form: Polynomial) -> str:
        names = [p.name for p in self.kernel.function.parameters] + [*self.kernel.program.values]
        found = expression(form, self.kernel.reading.symbols, names)
        if found is None:
            raise NotLegal("how many there are of what it copies is not said by sizes alone")
        return str(found)


def _factor(words: str) -> str:
    return f"({words})" if " " in words and not words.startswith("cdiv(") else words

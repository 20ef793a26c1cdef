"""Where windows are, in words of the kernel: between the bounds that margins set along an axis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.margins import Margin
from optiml_magic.kernels.primitives.naming import LocalSpeller


@dataclass(frozen=True, eq=False)
class InnerPlaces:
    """The places of a kernel's items that have a window. No sum in its words may overflow."""

    kernel: Kernel
    effects: Effects
    margins: Sequence[Margin]

    @property
    def alone(self) -> bool:
        """Whether only items with a window do something behind the tests of the margins."""
        return not any(margin.others or margin.behind for margin in self.margins)

    def bounds(self, axis: str) -> bool:
        """Whether margins bound the items along an axis."""
        return any(of == axis for m in self.margins for of, _ in (*m.lows, *m.lasts))

    def least(self, axis: str) -> str:
        """The first place along an axis that may have a window; empty where margins set none."""
        lows = self._lows(axis)
        return _nested("max", ["0", *lows]) if lows else ""

    def start(self, axis: str, first: str, own: str) -> str:
        """Of the ``own`` places from ``first`` on the first with a window, or how many they are."""
        parts = [
            f"{low} <= {first} ? 0 : {low} - {first} < {own} ? (int)({low} - {first}) : {own}"
            for low in self._lows(axis)
        ]
        return _nested("max", parts) if parts else "0"

    def end(self, axis: str, first: str, own: str, items: Polynomial) -> str:
        """The place behind the last of them with a window, or 0; there are so many ``items``."""
        parts = [
            f"{last} < {first} ? 0 : {last} - {first} < {own} ? (int)({last} - {first}) + 1 : {own}"
            for last in self._lasts(axis, items)
        ]
        return _nested("min", parts) if parts else own

    def holds(self, axis: str, place: str) -> list[str]:
        """What holds of a place along an axis that has a window."""
        lows = [f"{place} >= {low}" for low in self._lows(axis)]
        return lows + [f"{place} <= {last}" for last in self._lasts(axis, Polynomial())]

    def _lows(self, axis: str) -> list[str]:
        return self._said(form for m in self.margins for a, form in m.lows if a == axis)

    def _lasts(self, axis: str, items: Polynomial) -> list[str]:
        """But for those that say no more than how many items there are."""
        known = items - Polynomial.constant(1)
        forms = (form for m in self.margins for a, form in m.lasts if a == axis)
        return self._said(form for form in forms if form != known)

    def _said(self, forms: Iterator[Polynomial]) -> list[str]:
        speller = LocalSpeller(self.kernel.reading.symbols, {}, moved=self.effects.moved)
        speller.kernel = self.kernel
        words = [speller.form(form) for form in forms]
        return [one if one.isidentifier() or one.isdigit() else f"({one})" for one in words]


def _nested(function: str, parts: Sequence[str]) -> str:
    """The least or the greatest of several."""
    made = parts[0]
    for part in parts[1:]:
        made = f"{function}({made}, {part})"
    return made

"""Parallel indices in conditions: what bounds the blocks of a grid."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.symbols import Compare, Condition, Every, Some, Symbols

AXES = "xyz"
_ONE = Polynomial.constant(1)
_MOST_QUOTIENTS = 3


@dataclass(frozen=True)
class Names:
    """What a directive may name: whole scalars of the kernel, and the names that are tuned."""

    scalars: tuple[str, ...]
    tuned: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[str, ...]:
        return (*self.scalars, *self.tuned)


@dataclass(frozen=True)
class Bound:
    """A block ``b`` along ``axis`` does something only where ``stride * b < extent``.

    ``threads`` are the axes of the block whose threads the same index counts.
    """

    axis: int
    extent: Polynomial
    stride: Polynomial
    threads: frozenset[int]

    @property
    def form(self) -> Polynomial:
        """What is not negative where a block does something."""
        return self.extent - _ONE - self.stride * Polynomial.symbol(f"blockIdx.{AXES[self.axis]}")


def comparisons(condition: Condition) -> Iterator[Compare]:
    """All comparisons in a condition, whether they hold or not."""
    if isinstance(condition, Compare):
        yield condition
    elif isinstance(condition, Every | Some):
        for part in condition.parts:
            yield from comparisons(part)


def bound_of(form: Polynomial, symbols: Symbols, names: Names) -> Bound | None:
    """The bound that ``form >= 0`` puts on the blocks along one axis, if it does."""
    form = _multiplied(form, symbols)
    inside = symbols.inside(form)
    blocks = [axis for axis in range(3) if f"blockIdx.{AXES[axis]}" in inside]
    if len(blocks) != 1:
        return None
    block = f"blockIdx.{AXES[blocks[0]]}"
    found = form.coefficient(block)
    if found is None or not found.terms:
        return None
    stride = -found
    rest = form.without([block])
    extent: dict[tuple[str, ...], int] = {}
    threads = set[int]()
    for monomial, factor in rest.terms:
        parts = symbols.inside(Polynomial.of({monomial: 1}))
        if block in parts:
            return None
        if all(symbols[name].kind == "operation" or name in names.all for name in parts):
            extent[monomial] = factor
            continue
        # What only adds to the index moves it further from its start.
        if factor > 0 or not all(_positive(name, symbols, names) for name in monomial):
            return None
        threads |= {axis for axis in range(3) if f"threadIdx.{AXES[axis]}" in parts}
    if not is_width(stride, symbols, names):
        return None
    return Bound(blocks[0], Polynomial.of(extent) + _ONE, stride, frozenset(threads))


def _positive(name: str, symbols: Symbols, names: Names) -> bool:
    low = symbols[name].low
    return name in names.tuned or (low is not None and low >= 0)


def is_width(form: Polynomial, symbols: Symbols, names: Names) -> bool:
    """Whether this is a product of sizes of a block, tuned names and a number above zero."""
    if len(form.terms) != 1 or form.terms[0][1] < 1:
        return False
    return all(
        name.startswith("blockDim") or symbols[name].op == "/" or name in names.tuned
        for name in symbols.inside(form)
    )


def _multiplied(form: Polynomial, symbols: Symbols) -> Polynomial:
    """``i / 32 < rows`` as ``i < 32 * rows``."""
    for _ in range(_MOST_QUOTIENTS):
        for name in form.symbols:
            symbol = symbols[name]
            if symbol.op != "/" or symbol.low != 0 or form.coefficient(name) != -_ONE:
                continue
            above, below = symbol.arguments
            if not any("blockIdx" in inner for inner in above.symbols):
                continue
            limit = form + Polynomial.symbol(name)
            form = below * limit + below - _ONE - above
            break
        else:
            break
    return form

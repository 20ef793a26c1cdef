"""Parallel indices in forms: what bounds the blocks of a grid, and how many threads they count on.

An index such as ``blockIdx.x * blockDim.x + threadIdx.x`` is a number in mixed radix: a thread's
digit counts up to the next larger stride, which is the number of threads where it is a number.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
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
        if factor > 0 or not all(_positive(name, symbols) for name in monomial):
            return None
        threads |= {axis for axis in range(3) if f"threadIdx.{AXES[axis]}" in parts}
    if not is_width(stride, symbols, names):
        return None
    return Bound(blocks[0], Polynomial.of(extent) + _ONE, stride, frozenset(threads))


def _positive(name: str, symbols: Symbols) -> bool:
    low = symbols[name].low
    return low is not None and low >= 0


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


def widths(
    form: Polynomial, anchors: Collection[str], symbols: Symbols, names: Names
) -> dict[int, tuple[Polynomial, bool]]:
    """How many threads along each axis of the block an index counts on, where it says so.

    ``anchors`` are the symbols that begin where the threads end: blocks, or rounds of a loop. With
    each comes whether a loop in between narrowed it down.
    """
    found: dict[int, tuple[Polynomial, bool]] = {}
    larger = [(name, c) for name in form.symbols if (c := form.coefficient(name)) and c.terms]
    for name, own in larger:
        axis, over = _thread(name, symbols)
        if axis is None or len(own.terms) != 1:
            continue
        ratios = []
        for other, stride in larger:
            moves = other in anchors or symbols[other].kind == "counter" or (
                _thread(other, symbols)[0] not in (None, axis))  # fmt: skip
            ratio = _ratio(stride, own) if moves and other != name else None
            if ratio is not None and ratio != _ONE and ratio.symbols <= set(names.tuned):
                ratios.append((ratio, other not in anchors))
        if not any(not narrowed for _, narrowed in ratios):
            continue
        for ratio, narrowed in ratios:
            if all(_ratio(r, ratio) is not None for r, _ in ratios):
                narrowed = narrowed and any(r != ratio for r, _ in ratios)
                found[axis] = (ratio * Polynomial.constant(over), narrowed)
                break
    return found


def _thread(name: str, symbols: Symbols) -> tuple[int | None, int]:
    """The axis of ``threadIdx.x`` and of ``threadIdx.x / 32``, and by what it is divided."""
    if name.startswith("threadIdx"):
        return AXES.index(name[-1]), 1
    symbol = symbols[name]
    if symbol.op == "/":
        above, below = symbol.arguments
        if len(above.symbols) == 1 and below.value is not None:
            (inner,) = above.symbols
            if inner.startswith("threadIdx") and above == Polynomial.symbol(inner):
                return AXES.index(inner[-1]), below.value
    return None, 1


def _ratio(large: Polynomial, small: Polynomial) -> Polynomial | None:
    """The quotient of a product by another, where none of it is left over."""
    if len(large.terms) != 1 or len(small.terms) != 1:
        return None
    (above, times), (below, by) = large.terms[0], small.terms[0]
    rest = list(above)
    for name in below:
        if name not in rest:
            return None
        rest.remove(name)
    quotient, left = divmod(times, by)
    return None if left or quotient < 1 else Polynomial.of({tuple(rest): quotient})


def block_free(form: Polynomial, axis: int, blocks: Collection[str], symbols: Symbols) -> bool:
    """Whether a form says the same however many threads a block has along an axis.

    ``blocks`` are those that begin where the threads of that axis end: they, too, must count in
    whole blocks.
    """
    thread, size = f"threadIdx.{AXES[axis]}", f"blockDim.{AXES[axis]}"
    dependent = {thread, size, *blocks}
    plain = dependent & form.symbols
    for name in form.symbols - dependent:
        symbol = symbols[name]
        arguments = [*symbol.arguments]
        if symbol.condition is not None:
            arguments += [c.form for c in comparisons(symbol.condition)]
        if any(not block_free(argument, axis, blocks, symbols) for argument in arguments):
            return False
    if not plain:
        return True
    own = form.coefficient(thread)
    if own is None or not own.terms:
        return False
    counted = False
    for monomial, _ in form.terms:
        begins = any(name in blocks for name in monomial)
        if size in monomial:
            others = [name for name in monomial if name != size]
            if not any(symbols[n].kind == "counter" or "Idx" in n for n in others):
                return False
            counted = counted or thread not in monomial
        elif begins:
            return False
    return counted
